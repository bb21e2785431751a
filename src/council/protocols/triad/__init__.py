"""Draft, merge."""
