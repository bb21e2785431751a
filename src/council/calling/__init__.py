"""Carrying a step out: the one retry loop and its table."""
