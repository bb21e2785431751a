"""Choose the search provider from --search, settings and API keys, as one word for the plan."""

from __future__ import annotations

import os
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from urllib.parse import urlsplit

from council.errors import SearchNotEnabled, UsageError
from council.search.brave import Brave
from council.search.local_files import LocalFiles
from council.search.provider import Hit, ReadFile, SearchError, SearchProvider
from council.search.results import research
from council.search.searxng import Searxng
from council.search.tavily import Tavily
from council.settings import Settings
from council.settings.schema import quote_value
from council.text_cleanup import redact_line

KEY_VARIABLES = {"tavily": "TAVILY_API_KEY", "brave": "BRAVE_SEARCH_API_KEY"}
PROVIDERS = {"tavily": "", "brave": "", "searxng": "", "files": ""}
NOT_ENABLED_PREFIX = "General Council is not enabled."
ALTERNATIVES = "or search your own documents with --search files:FOLDER, or skip research with --no-search"
NOT_ENABLED = (
    f"{NOT_ENABLED_PREFIX} It needs a search provider, and none is configured: set {KEY_VARIABLES['tavily']} or {KEY_VARIABLES['brave']}, "
    f"or use SearXNG with --search http://ADDRESS, {ALTERNATIVES}"
)


def resolve_search(choice: str | None, settings: Settings, env: Mapping[str, str], folder: Path = Path()) -> str | None:
    """Return the search provider as one word: tavily, brave, searxng:ADDRESS or files:FOLDER; None if none is enabled.

    `said` is the value of --search. FOLDER is relative to `folder`, the run's folder.
    """
    meant = choice if choice is not None else settings.search.get("provider")
    if meant is None:
        return next((name for name, key in KEY_VARIABLES.items() if env.get(key, "").strip()), None)
    name, value = split_search(str(meant))
    if name in KEY_VARIABLES:
        return _resolve_keyed(name, value, env)
    return _resolve_searxng(value, settings) if name == "searxng" else _resolve_files(value, settings, folder)


def split_search(word: str) -> tuple[str, str]:
    """Split a --search value into provider name and argument."""
    word = word.strip()
    if word.lower().startswith(("http://", "https://")):
        return "searxng", word
    name, _, value = word.partition(":")
    if name.strip().lower() in PROVIDERS:
        return name.strip().lower(), value.strip()
    near = get_close_matches(name.strip().lower(), PROVIDERS, n=1)
    hint = f": did you mean {quote_value(near[0])}? Use" if near else ": use"
    raise UsageError(
        f"--search {quote_value(redact_line(word))} is not a known search provider{hint} tavily, brave, searxng:ADDRESS or files:FOLDER"
    )


def provider_url(name: str, settings: Settings) -> str:
    """Return [search] base_url if it belongs to this provider, so that no key is sent to another provider."""
    own = settings.search.get("provider") in (None, name)
    return str(settings.search.get("base_url") or "") if own else ""


def resolve_folder(value: str, folder: Path) -> Path:
    """Return the absolute folder that `files:` searches."""
    try:
        return Path(os.path.normpath(folder.absolute() / Path(value).expanduser()))
    except RuntimeError:  # ~user of an unknown user
        return folder.absolute() / value


def _resolve_keyed(name: str, value: str, env: Mapping[str, str]) -> str:
    if value:
        raise UsageError(f"--search {name} takes no value: set its key in {KEY_VARIABLES[name]}")
    if not env.get(KEY_VARIABLES[name], "").strip():
        raise SearchNotEnabled(
            f"{NOT_ENABLED_PREFIX} The search provider {quote_value(name)} has no key: set {KEY_VARIABLES[name]}, {ALTERNATIVES}"
        )
    return name


def _resolve_searxng(value: str, settings: Settings) -> str:
    address = value or provider_url("searxng", settings)
    if not address:
        raise SearchNotEnabled(
            f'{NOT_ENABLED_PREFIX} The search provider "searxng" has no address: use --search searxng:http://ADDRESS or set base_url in [search], {ALTERNATIVES}'
        )
    return f"searxng:{_check_url(address)}"


def _check_url(address: str) -> str:
    try:
        parts = urlsplit(address)
        good = parts.scheme in ("http", "https") and parts.hostname and (parts.port is None or parts.port > 0)
    except ValueError:
        good = False
    if not good or any(char.isspace() for char in address):
        raise UsageError(
            f"--search {quote_value(redact_line(address))} is not a valid address: write it as http://HOST:PORT"
        )
    if "@" in parts.netloc:
        raise UsageError("--search has an address with a password, which the plan would show: remove the password")
    return address.partition("?")[0].partition("#")[0].rstrip("/").removesuffix("/search").rstrip("/")


def _resolve_files(value: str, settings: Settings, folder: Path) -> str:
    said = value or str(settings.search.get("folder") or "")
    if not said:
        raise SearchNotEnabled(
            f'{NOT_ENABLED_PREFIX} The search provider "files" has no folder: use --search files:FOLDER or set folder in [search], '
            "or skip research with --no-search"
        )
    there = resolve_folder(said, folder)
    if trouble := _folder_problem(there):
        raise UsageError(
            f"{'--search files' if value else '[search] folder'} is {quote_value(redact_line(said))}: {trouble}"
        )
    inside = there.is_relative_to(folder.absolute())
    return f"files:{there.relative_to(folder.absolute()).as_posix() if inside else there.as_posix()}"


def _folder_problem(there: Path) -> str:
    """Return why this folder cannot be searched, or ""."""
    try:
        if there.is_dir():
            return "" if os.access(there, os.R_OK | os.X_OK) else "the folder cannot be read, check its permissions"
        if there.exists():
            return "that is a file, use the folder that contains it"
    except (OSError, ValueError):
        pass  # not a valid file name
    return "no such folder"


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
