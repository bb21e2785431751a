"""Web and document search: query one provider and return its results as untrusted rows."""

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
    """Create the search provider for a value of `chosen`; raise its errors if the provider is not available."""
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
    """Return the folder whose documents a search may read: the one of `files:`, else the run's folder."""
    name, value = parted(said)
    return place(value, folder) if name == "files" else folder
