"""Choose the search provider from --search, settings and API keys, as one word for the plan.

The table of providers is `council.extensions.SEARCH`; each provider declares its key and what it takes after its name.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from council.errors import ConfigError, CouncilError, SearchNotEnabled, UsageError, is_interrupt, option
from council.extensions import SEARCH
from council.search.provider import ReadFile, SearchError, SearchProvider, SearchSetup
from council.settings import Settings
from council.settings.schema import quote_value
from council.text_cleanup import redact_line

URL_PROVIDER = "searxng"  # the provider that --search http://… means
NOT_ENABLED = "General Council is not enabled."


def _without_research() -> str:
    return f"or skip research with {option('no_search', True)}"


def _alternatives() -> str:
    return f"or search your own documents with {option('search', 'files:FOLDER')}, {_without_research()}"


def not_enabled_message() -> str:
    keys = " or ".join(_key_variables().values())
    return (
        f"{NOT_ENABLED} It needs a search provider, and none is configured: set {keys}, "
        f"or use SearXNG with {option('search', 'http://ADDRESS')}, {_alternatives()}"
    )


def resolve_search(choice: str | None, settings: Settings, env: Mapping[str, str], folder: Path = Path()) -> str | None:
    """Return the search provider as one word: NAME, NAME:ADDRESS or NAME:FOLDER; None if none is enabled.

    `choice` is the value of --search. FOLDER is relative to `folder`, the run's folder.
    """
    meant = choice if choice is not None else settings.search.get("provider")
    if meant is None:
        return next((name for name, key in _key_variables().items() if env.get(key, "").strip()), None)
    name, value = split_search(str(meant))
    provider = SEARCH.load(name)
    key = _key_of(provider)
    match getattr(provider, "argument", ""):
        case "ADDRESS":
            word = f"{name}:{_resolve_address(name, value, settings)}"
        case "FOLDER":
            word = f"{name}:{_resolve_files(name, value, settings, folder)}"
        case _:
            word = name
            if value:
                fix = f"set its key in {key}" if key else f"write {name}"
                raise UsageError(f"{option('search')} {name} takes no value: {fix}")
    if key and not env.get(key, "").strip():
        raise _not_enabled(name, "key", f"set {key}, {_alternatives()}")
    return word


def can_search(settings: Settings, env: Mapping[str, str], folder: Path = Path()) -> bool:
    """Return whether a search provider is configured and can be used."""
    try:
        return resolve_search(None, settings, env, folder) is not None
    except CouncilError:
        return False


def _key_of(provider: Any) -> str:
    return str(getattr(provider, "key_env", ""))


def _key_variables() -> dict[str, str]:
    """Return the key variable of each provider that needs only a key. A broken package is left out."""
    variables = {}
    for name in SEARCH.names:
        try:
            provider = SEARCH.load(name)
        except ConfigError:
            continue
        if _key_of(provider) and not getattr(provider, "argument", ""):
            variables[name] = _key_of(provider)
    return variables


def split_search(word: str) -> tuple[str, str]:
    """Split a --search value into provider name and argument."""
    word = word.strip()
    if word.lower().startswith(("http://", "https://")):
        return URL_PROVIDER, word
    name, _, value = word.partition(":")
    if name.strip().lower() in SEARCH:
        return name.strip().lower(), value.strip()
    near = get_close_matches(name.strip().lower(), SEARCH.names, n=1)
    hint = f": did you mean {quote_value(near[0])}? Use" if near else ": use"
    *others, last = (_format_form(name) for name in SEARCH.names)
    raise UsageError(
        f"{option('search')} {quote_value(redact_line(word))} is not a known search provider{hint} {', '.join(others)} or {last}"
    )


def search_needs(name: str) -> str:
    """Return what a provider needs: its key variable, or its address or folder."""
    provider = SEARCH.load(name)
    return _key_of(provider) or f"--search {_format_form(name)}"


def _format_form(name: str) -> str:
    """Return how --search names a provider, such as files:FOLDER."""
    try:
        argument = getattr(SEARCH.load(name), "argument", "")
    except ConfigError:
        return name
    return f"{name}:{argument}" if argument else name


def provider_url(name: str, settings: Settings) -> str:
    """Return [search] base_url if it belongs to this provider, so that no key is sent to another provider."""
    is_own = settings.search.get("provider") in (None, name)
    return str(settings.search.get("base_url") or "") if is_own else ""


def resolve_folder(value: str, folder: Path) -> Path:
    """Return the absolute folder that `files:` searches."""
    try:
        return Path(os.path.normpath(folder.absolute() / Path(value).expanduser()))
    except RuntimeError:  # ~user of an unknown user
        return folder.absolute() / value


def _not_enabled(name: str, lacking: str, fix: str) -> SearchNotEnabled:
    return SearchNotEnabled(f"{NOT_ENABLED} The search provider {quote_value(name)} has no {lacking}: {fix}")


def _resolve_address(name: str, value: str, settings: Settings) -> str:
    address = value or provider_url(name, settings)
    if not address:
        use = f"use {option('search', f'{name}:http://ADDRESS')} or set base_url in [search]"
        raise _not_enabled(name, "address", f"{use}, {_alternatives()}")
    return _check_url(address)


def _check_url(address: str) -> str:
    try:
        parts = urlsplit(address)
        good = parts.scheme in ("http", "https") and parts.hostname and (parts.port is None or parts.port > 0)
    except ValueError:
        good = False
    if not good or any(char.isspace() for char in address):
        raise UsageError(
            f"{option('search')} {quote_value(redact_line(address))} is not a valid address: write it as http://HOST:PORT"
        )
    if "@" in parts.netloc:
        raise UsageError(
            f"{option('search')} has an address with a password, which the plan would show: remove the password"
        )
    return address.partition("?")[0].partition("#")[0].rstrip("/").removesuffix("/search").rstrip("/")


def _resolve_files(name: str, value: str, settings: Settings, folder: Path) -> str:
    folder_name = value or str(settings.search.get("folder") or "")
    if not folder_name:
        use = f"use {option('search', f'{name}:FOLDER')} or set folder in [search]"
        raise _not_enabled(name, "folder", f"{use}, {_without_research()}")
    path = resolve_folder(folder_name, folder)
    if trouble := _folder_problem(path):
        given = f"{option('search')} {name}" if value else "[search] folder"
        raise UsageError(f"{given} is {quote_value(redact_line(folder_name))}: {trouble}")
    inside = path.is_relative_to(folder.absolute())
    return path.relative_to(folder.absolute()).as_posix() if inside else path.as_posix()


def _folder_problem(path: Path) -> str:
    """Return why this folder cannot be searched, or ""."""
    try:
        if path.is_dir():
            return "" if os.access(path, os.R_OK | os.X_OK) else "the folder cannot be read, check its permissions"
        if path.exists():
            return "that is a file, use the folder that contains it"
    except (OSError, ValueError):
        pass  # not a valid file name
    return "no such folder"


def make_provider(
    choice: str, settings: Settings, env: Mapping[str, str], folder: Path, read_file: ReadFile
) -> SearchProvider:
    """Create the search provider for a value of `resolve_search`; raise its errors if it is not available.

    If the code of a package's provider fails, raise SearchError.
    """
    meant = resolve_search(choice, settings, env, folder)
    assert meant is not None
    name, value = split_search(meant)
    provider = SEARCH.load(name)
    argument = str(resolve_folder(value, folder)) if getattr(provider, "argument", "") == "FOLDER" else value
    key = env.get(_key_of(provider), "").strip()
    setup = SearchSetup(argument, key, provider_url(name, settings), folder, read_file)
    try:
        made: SearchProvider = provider(setup)
    except BaseException as error:
        if name in SEARCH.added and not is_interrupt(error):
            raise SearchError(str(SEARCH.added[name].error(SEARCH.what, error))) from error
        raise
    return made


def search_folder(choice: str, folder: Path) -> Path:
    """Return the folder whose documents a search may read: the one of --search, else the run's folder."""
    name, value = split_search(choice)
    return resolve_folder(value, folder) if getattr(SEARCH.load(name), "argument", "") == "FOLDER" else folder
