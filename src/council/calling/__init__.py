"""Calls to members: retry, fallback, concurrency, budget and prices."""
