"""Advisors in rounds, and a referee."""
