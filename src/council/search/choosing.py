"""Choose the search provider from --search, settings and API keys, as one word for the plan."""

from __future__ import annotations

import os
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from urllib.parse import urlsplit

from council.errors import SearchNotEnabled, UsageError
from council.foreign import one_line
from council.settings import Settings, quoted

KEYS = {"tavily": "TAVILY_API_KEY", "brave": "BRAVE_SEARCH_API_KEY"}
KNOWN = {"tavily": "", "brave": "", "searxng": "", "files": ""}
OFF = "General Council is not enabled."
ELSE = "or search your own documents with --search files:FOLDER, or skip research with --no-search"
NOT_ENABLED = (
    f"{OFF} It needs a search provider, and none is configured: set {KEYS['tavily']} or {KEYS['brave']}, "
    f"or use SearXNG with --search http://ADDRESS, {ELSE}"
)


def chosen(said: str | None, settings: Settings, env: Mapping[str, str], folder: Path = Path()) -> str | None:
    """Return the search provider as one word: tavily, brave, searxng:ADDRESS or files:FOLDER; None if none is enabled.

    `said` is the value of --search. FOLDER is relative to `folder`, the run's folder.
    """
    meant = said if said is not None else settings.search.get("provider")
    if meant is None:
        return next((name for name, key in KEYS.items() if env.get(key, "").strip()), None)
    name, value = parted(str(meant))
    if name in KEYS:
        return _keyed(name, value, env)
    return _searxng(value, settings) if name == "searxng" else _files(value, settings, folder)


def parted(word: str) -> tuple[str, str]:
    """Split a --search value into provider name and argument."""
    word = word.strip()
    if word.lower().startswith(("http://", "https://")):
        return "searxng", word
    name, _, value = word.partition(":")
    if name.strip().lower() in KNOWN:
        return name.strip().lower(), value.strip()
    near = get_close_matches(name.strip().lower(), KNOWN, n=1)
    hint = f": did you mean {quoted(near[0])}? Use" if near else ": use"
    raise UsageError(
        f"--search {quoted(one_line(word))} is not a known search provider{hint} tavily, brave, searxng:ADDRESS or files:FOLDER"
    )


def address_of(name: str, settings: Settings) -> str:
    """Return [search] base_url if it belongs to this provider, so that no key is sent to another provider."""
    own = settings.search.get("provider") in (None, name)
    return str(settings.search.get("base_url") or "") if own else ""


def place(value: str, folder: Path) -> Path:
    """Return the absolute folder that `files:` searches."""
    try:
        return Path(os.path.normpath(folder.absolute() / Path(value).expanduser()))
    except RuntimeError:  # ~user of an unknown user
        return folder.absolute() / value


def _keyed(name: str, value: str, env: Mapping[str, str]) -> str:
    if value:
        raise UsageError(f"--search {name} takes no value: set its key in {KEYS[name]}")
    if not env.get(KEYS[name], "").strip():
        raise SearchNotEnabled(f"{OFF} The search provider {quoted(name)} has no key: set {KEYS[name]}, {ELSE}")
    return name


def _searxng(value: str, settings: Settings) -> str:
    address = value or address_of("searxng", settings)
    if not address:
        raise SearchNotEnabled(
            f'{OFF} The search provider "searxng" has no address: use --search searxng:http://ADDRESS or set base_url in [search], {ELSE}'
        )
    return f"searxng:{_sound_address(address)}"


def _sound_address(address: str) -> str:
    try:
        parts = urlsplit(address)
        good = parts.scheme in ("http", "https") and parts.hostname and (parts.port is None or parts.port > 0)
    except ValueError:
        good = False
    if not good or any(char.isspace() for char in address):
        raise UsageError(f"--search {quoted(one_line(address))} is not a valid address: write it as http://HOST:PORT")
    if "@" in parts.netloc:
        raise UsageError("--search has an address with a password, which the plan would show: remove the password")
    return address.partition("?")[0].partition("#")[0].rstrip("/").removesuffix("/search").rstrip("/")


def _files(value: str, settings: Settings, folder: Path) -> str:
    said = value or str(settings.search.get("folder") or "")
    if not said:
        raise SearchNotEnabled(
            f'{OFF} The search provider "files" has no folder: use --search files:FOLDER or set folder in [search], '
            "or skip research with --no-search"
        )
    there = place(said, folder)
    if trouble := _no_folder(there):
        raise UsageError(f"{'--search files' if value else '[search] folder'} is {quoted(one_line(said))}: {trouble}")
    inside = there.is_relative_to(folder.absolute())
    return f"files:{there.relative_to(folder.absolute()).as_posix() if inside else there.as_posix()}"


def _no_folder(there: Path) -> str:
    """Return why this folder cannot be searched, or ""."""
    try:
        if there.is_dir():
            return "" if os.access(there, os.R_OK | os.X_OK) else "the folder cannot be read, check its permissions"
        if there.exists():
            return "that is a file, use the folder that contains it"
    except (OSError, ValueError):
        pass  # not a valid file name
    return "no such folder"
