"""Research: one search provider is asked, and what it gives becomes rows that nobody has to trust."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from council.search.brave import Brave
from council.search.choosing import KEYS, NOT_ENABLED, address_of, chosen, parted, place
from council.search.files import Files
from council.search.hits import Admit, Finder, Hit, Trouble
from council.search.researching import research
from council.search.searxng import Searxng
from council.search.tavily import Tavily
from council.settings import Settings

__all__ = ["NOT_ENABLED", "Admit", "Finder", "Hit", "Trouble", "chosen", "finder", "research", "searched_folder"]


def finder(said: str, settings: Settings, env: Mapping[str, str], folder: Path, admit: Admit) -> Finder:
    """The search that a word of `chosen` means. Raises what `chosen` does, if it cannot be used any more."""
    meant = chosen(said, settings, env, folder)
    assert meant is not None
    name, value = parted(meant)
    if name == "files":
        return Files(place(value, folder), folder, admit)
    if name == "searxng":
        return Searxng(value)
    key, address = env[KEYS[name]].strip(), address_of(name, settings)
    return Tavily(key, address) if name == "tavily" else Brave(key, address)


def searched_folder(said: str, folder: Path) -> Path:
    """The folder whose documents a search may read: that of `files:`, else the run's own."""
    name, value = parted(said)
    return place(value, folder) if name == "files" else folder
