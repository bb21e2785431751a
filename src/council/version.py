"""Version of Council: the one place where it is set. Runs store it, so that another version can tell whose they are."""

from __future__ import annotations

__version__ = "0.3.0"
RULES = 5  # number of the rules and prompts: raise it when a verdict, a report or a prompt changes within one version
