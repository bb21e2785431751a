"""Which search is meant: what was said, the settings and the keys become one word that can stand in a plan."""

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
ELSE = "or search your own documents with --search files:FOLDER, or go on without research with --no-search"
NOT_ENABLED = (
    f"{OFF} It researches first, and no search is set up: set {KEYS['tavily']} or {KEYS['brave']}, "
    f"or name a SearXNG address with --search http://ADDRESS, {ELSE}"
)


def chosen(said: str | None, settings: Settings, env: Mapping[str, str], folder: Path = Path()) -> str | None:
    """The search that is meant, as one word: tavily, brave, searxng:ADDRESS, files:FOLDER. None: none is enabled.

    `said` is the value of --search. FOLDER is seen from `folder`, the one the run belongs to.
    """
    meant = said if said is not None else settings.search.get("provider")
    if meant is None:
        return next((name for name, key in KEYS.items() if env.get(key, "").strip()), None)
    name, value = parted(str(meant))
    if name in KEYS:
        return _keyed(name, value, env)
    return _searxng(value, settings) if name == "searxng" else _files(value, settings, folder)


def parted(word: str) -> tuple[str, str]:
    """The provider, and what was said about it."""
    word = word.strip()
    if word.lower().startswith(("http://", "https://")):
        return "searxng", word
    name, _, value = word.partition(":")
    if name.strip().lower() in KNOWN:
        return name.strip().lower(), value.strip()
    near = get_close_matches(name.strip().lower(), KNOWN, n=1)
    hint = f", did you mean {quoted(near[0])}? Take" if near else ": take"
    raise UsageError(
        f"--search {quoted(one_line(word))} is no search that is known{hint} tavily, brave, searxng:ADDRESS or files:FOLDER"
    )


def address_of(name: str, settings: Settings) -> str:
    """[search] base_url, if it is meant for this provider: the key of one is never shown to another."""
    own = settings.search.get("provider") in (None, name)
    return str(settings.search.get("base_url") or "") if own else ""


def place(value: str, folder: Path) -> Path:
    """The folder that `files:` searches."""
    try:
        return Path(os.path.normpath(folder.absolute() / Path(value).expanduser()))
    except RuntimeError:  # ~somebody, of whom nothing is known here
        return folder.absolute() / value


def _keyed(name: str, value: str, env: Mapping[str, str]) -> str:
    if value:
        raise UsageError(
            f"--search {name} takes nothing after it: its key is read from {KEYS[name]}, never from a flag"
        )
    if not env.get(KEYS[name], "").strip():
        raise SearchNotEnabled(f"{OFF} The search {quoted(name)} has no key: set {KEYS[name]}, {ELSE}")
    return name


def _searxng(value: str, settings: Settings) -> str:
    address = value or address_of("searxng", settings)
    if not address:
        raise SearchNotEnabled(
            f'{OFF} The search "searxng" has no address: name it with --search searxng:http://ADDRESS or as base_url in [search], {ELSE}'
        )
    return f"searxng:{_sound_address(address)}"


def _sound_address(address: str) -> str:
    try:
        parts = urlsplit(address)
        good = parts.scheme in ("http", "https") and parts.hostname and (parts.port is None or parts.port > 0)
    except ValueError:
        good = False
    if not good or any(char.isspace() for char in address):
        raise UsageError(
            f"--search names {quoted(one_line(address))}, which is no address: write it as http://HOST:PORT"
        )
    if "@" in parts.netloc:
        raise UsageError("--search names an address with a password in it, which a plan would show: leave it out")
    return address.partition("?")[0].partition("#")[0].rstrip("/").removesuffix("/search").rstrip("/")


def _files(value: str, settings: Settings, folder: Path) -> str:
    said = value or str(settings.search.get("folder") or "")
    if not said:
        raise SearchNotEnabled(
            f'{OFF} The search "files" has no folder: name it with --search files:FOLDER or as folder in [search], '
            "or go on without research with --no-search"
        )
    there = place(said, folder)
    if trouble := _no_folder(there):
        raise UsageError(
            f"{'--search files' if value else '[search] folder'} names {quoted(one_line(said))}, {trouble}"
        )
    inside = there.is_relative_to(folder.absolute())
    return f"files:{there.relative_to(folder.absolute()).as_posix() if inside else there.as_posix()}"


def _no_folder(there: Path) -> str:
    """Why this cannot be searched; nothing, if it can."""
    try:
        if there.is_dir():
            return "" if os.access(there, os.R_OK | os.X_OK) else "which cannot be read: check its permissions"
        if there.exists():
            return "and that is a file: name the folder it lies in"
    except (OSError, ValueError):
        pass  # a name that no file can have
    return "and there is no such folder: check the name"
