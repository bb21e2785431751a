"""Research: one search provider is asked, and what it gives becomes rows that nobody has to trust."""

from __future__ import annotations

from council.search.choosing import NOT_ENABLED, chosen
from council.search.hits import Admit, Finder, Hit

__all__ = ["NOT_ENABLED", "Admit", "Finder", "Hit", "chosen"]
