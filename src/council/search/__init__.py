"""Web and document search: query one provider and return its results as untrusted rows."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from council.search.brave import Brave
from council.search.choosing import (
    KEY_VARIABLES,
    NOT_ENABLED,
    provider_url,
    resolve_folder,
    resolve_search,
    split_search,
)
from council.search.files import LocalFiles
from council.search.hits import Hit, ReadFile, SearchError, SearchProvider
from council.search.researching import research
from council.search.searxng import Searxng
from council.search.tavily import Tavily
from council.settings import Settings

__all__ = [
    "NOT_ENABLED",
    "Hit",
    "ReadFile",
    "SearchError",
    "SearchProvider",
    "make_provider",
    "research",
    "resolve_search",
    "search_folder",
]


def make_provider(
    choice: str, settings: Settings, env: Mapping[str, str], folder: Path, read_file: ReadFile
) -> SearchProvider:
    """Create the search provider for a value of `chosen`; raise its errors if the provider is not available."""
    meant = resolve_search(choice, settings, env, folder)
    assert meant is not None
    name, value = split_search(meant)
    if name == "files":
        return LocalFiles(resolve_folder(value, folder), folder, read_file)
    if name == "searxng":
        return Searxng(value)
    key, address = env[KEY_VARIABLES[name]].strip(), provider_url(name, settings)
    return Tavily(key, address) if name == "tavily" else Brave(key, address)


def search_folder(choice: str, folder: Path) -> Path:
    """Return the folder whose documents a search may read: the one of `files:`, else the run's folder."""
    name, value = split_search(choice)
    return resolve_folder(value, folder) if name == "files" else folder
