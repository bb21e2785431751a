"""Locations of configuration, data and cache; reading, printing and editing configuration files."""

from __future__ import annotations

import getpass
import json
import os
import re
import socket
import stat
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from council.errors import ConfigError, option
from council.settings.private_files import (
    describe_changes,
    describe_failures,
    make_private_folder,
    open_private_file,
    repair_folder,
)
from council.settings.schema import quote_value

MAX_CONFIG_BYTES = 256_000  # bytes; TOML takes quadratic time for some texts


def find_project_file(folder: Path, env: Mapping[str, str], config: Path | None = None) -> Path | None:
    """Return the named file, or the project's nearest council.toml or pyproject.toml with [tool.council]."""
    named = config or env.get("COUNCIL_CONFIG", "").strip()
    if named:
        named_path = folder / Path(named).expanduser()
        if not named_path.is_file():
            raise ConfigError(
                f"configuration file {quote_value(named)} not found: pass another with {option('config')} or COUNCIL_CONFIG"
            )
        return named_path
    return next(filter(None, map(_find_config_in, _project_folders(folder.absolute(), _home_folders(env)))), None)


def find_ignored_file(folder: Path, env: Mapping[str, str], config: Path | None = None) -> Path | None:
    """Return the nearest council.toml that is ignored because it belongs to another user."""
    if config or env.get("COUNCIL_CONFIG", "").strip():
        return None
    for place in _project_folders(folder.absolute(), _home_folders(env)):
        if _find_config_in(place):
            return None
        if (named := place / "council.toml").is_file():
            return named
    return None


def _project_folders(folder: Path, homes: Sequence[Path]) -> list[Path]:
    """Return the folders from here up to the repository root; outside a repository up to the home folder.

    A folder that is not below the home folder is searched up to the root of the file system.
    """
    folders = [folder, *folder.parents]
    repo = next((parent for parent in folders if (parent / ".git").exists()), None)
    last = repo or next((home for home in homes if home in folders), folders[-1])
    return folders[: folders.index(last) + 1]


def _home_folders(env: Mapping[str, str]) -> list[Path]:
    """Return the home folder as it is written and without symbolic links; empty if there is none."""
    try:
        home = Path(env["HOME"]) if env.get("HOME") else Path.home()
    except RuntimeError:
        return []
    return [home.absolute(), home.resolve()]


def _find_config_in(place: Path) -> Path | None:
    named, pyproject = place / "council.toml", place / "pyproject.toml"
    if _is_own_file(named):
        return named
    has_table = _is_own_file(pyproject) and "council" in _read_text(pyproject) and read_config(pyproject)
    return pyproject if has_table else None


def _is_own_file(path: Path) -> bool:
    """Return whether this is a file of the current user. Files of other users could choose where questions are sent."""
    try:
        if not path.is_file():
            return False
        return not hasattr(os, "getuid") or {path.stat().st_uid, path.lstat().st_uid} == {os.getuid()}
    except OSError:
        return False


def read_config(path: Path) -> Mapping[str, Any]:
    """Return the unvalidated tables of a configuration file; of a pyproject.toml only [tool.council]."""
    try:
        tables: dict[str, Any] = tomllib.loads(_read_text(path))
    except (ValueError, RecursionError) as error:  # also an integer of thousands of digits, and deep nesting
        raise ConfigError(f"{path} is not valid TOML: {quote_value(error)}; fix that line") from None
    if path.name != "pyproject.toml":
        return tables
    tools = tables.get("tool", {})
    table = tools.get("council", {}) if isinstance(tools, Mapping) else {}
    if not isinstance(table, Mapping):
        raise ConfigError(
            f'{path}: "tool.council" is {quote_value(table)}, but it must be a table: write [tool.council] and put its keys below'
        )
    return table


def _read_text(path: Path) -> str:
    try:
        if path.stat().st_size > MAX_CONFIG_BYTES:
            raise ConfigError(f"{path} is larger than {MAX_CONFIG_BYTES // 1000} kB: shorten it")
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"cannot read the configuration file {path}: {quote_value(error)}; it must be readable UTF-8 text"
        ) from None


# Changes


def fingerprint_files(folder: Path, env: Mapping[str, str], config: Path | None = None) -> tuple[object, ...]:
    """Return a value that differs after any change of the files that the settings of a folder come from."""
    user = os.fspath(config_folder(env))
    named = config or env.get("COUNCIL_CONFIG", "").strip()
    found: list[object] = [_fingerprint_file(f"{user}/config.toml"), _fingerprint_file(f"{user}/trust.json")]
    if named:
        return (*found, _fingerprint_file(os.fspath(folder / Path(named).expanduser())))
    files, repositories = _list_candidates(os.fspath(folder.absolute()))
    found += map(_fingerprint_file, files)
    found += map(os.path.exists, repositories)
    return tuple(found)


@lru_cache(maxsize=256)
def _list_candidates(folder: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the configuration files that a folder and those above it may have, and the marks of a repository."""
    folders = [Path(folder), *Path(folder).parents]
    files = (os.fspath(place / name) for place in folders for name in ("council.toml", "pyproject.toml"))
    return tuple(files), tuple(os.fspath(place / ".git") for place in folders)


def _fingerprint_file(path: str) -> object:
    """Return the owner and the content of a file; its time is too coarse to notice two quick changes."""
    try:
        found = os.stat(path)  # noqa: PTH116  # called for every folder above a run's folder
        if not stat.S_ISREG(found.st_mode) or found.st_size > MAX_CONFIG_BYTES:
            return found.st_dev, found.st_ino, found.st_mode, found.st_size
        with open(path, "rb") as file:  # noqa: PTH123
            return found.st_uid, found.st_mode, file.read()
    except (OSError, ValueError) as error:
        return getattr(error, "errno", None)


# Text of configuration files


def format_toml(value: Any) -> str:
    """Return a value as TOML, with tables on one line."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, Mapping):
        pairs = (f"{_format_key(key)} = {format_toml(item)}" for key, item in value.items() if item is not None)
        return "{" + ", ".join(pairs) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(format_toml, value)) + "]"
    return repr(value)  # int or float


def _format_key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else format_toml(key)


def edit_config(text: str, values: Mapping[str, Any]) -> str:
    """Return a configuration with these dotted keys set, or removed if None. All else stays, also comments."""
    import tomlkit  # only needed to write

    missing = (key for key, value in values.items() if "." not in key and value is not None)
    for key in missing:
        if key not in tomllib.loads(text):
            text = _insert_at_top(text, f"{key} = {format_toml(values[key])}\n")
    document: Any = tomlkit.parse(text)
    for dotted, value in values.items():
        *tables, leaf = dotted.split(".")
        if value is None:
            _remove_key(document, tables, leaf)
            continue
        place = document
        for depth, name in enumerate(tables):
            if name not in place:
                place[name] = tomlkit.table(is_super_table=depth < len(tables) - 1)
            place = place[name]
        if place.get(leaf) != value:
            place[leaf] = value
    return str(tomlkit.dumps(document))


def _insert_at_top(text: str, line: str) -> str:
    """Insert a line before everything but a heading: comments that an empty line separates from the rest."""
    heading = re.match(r"(?:#[^\n]*\n)+(?=\n|\Z)", text)
    at = heading.end() if heading else 0
    rest = text[at:].lstrip("\n")
    before = f"{text[:at]}\n" if at else ""
    return f"{before}{line}\n{rest}" if rest else before + line


def _remove_key(document: Any, tables: list[str], leaf: str) -> None:
    place = document
    for name in tables:
        place = place.get(name, {})
    if leaf in place:
        del place[leaf]


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner can read, in one step. A link is kept, and its target is replaced."""
    target = path.resolve()
    try:
        make_private_folder(target.parent)
        draft = target.with_name(f".{target.name}.{os.getpid()}")
        with open_private_file(draft, encoding="utf-8") as file:
            file.write(text)
        draft.replace(target)
    except OSError as error:
        raise ConfigError(f"cannot write {path} ({error.strerror}): check the folder's permissions") from None


# Folders, projects and commands


@lru_cache(maxsize=1)
def default_owner() -> str:
    """Return user@host, the name that runs are stored under if the settings have none."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = str(os.getuid())
    return f"{user}@{socket.gethostname()}"


def find_root(folder: Path) -> Path:
    """Return the top folder of the repository that a folder is in, else the folder."""
    return next((place for place in (folder, *folder.parents) if (place / ".git").exists()), folder)


@lru_cache(maxsize=256)
def find_names(folder: Path, owner: str | None) -> tuple[str, str]:
    """Return the names that a folder's runs are stored under: the owner's, and the repository's or folder's."""
    return owner or default_owner(), find_root(folder).name


def find_command(name: str, env: Mapping[str, str]) -> Path | None:
    """Return the executable of that name on PATH. Relative PATH entries are skipped because they are not trusted."""
    places = (Path(entry) for entry in env.get("PATH", "").split(os.pathsep))
    candidates = (place / name for place in places if place.is_absolute())
    return next((path for path in candidates if path.is_file() and os.access(path, os.X_OK)), None)


def data_folder(env: Mapping[str, str]) -> Path:
    return _resolve_folder(env, "COUNCIL_DATA", "XDG_DATA_HOME", "user_data_path")


def cache_folder(env: Mapping[str, str]) -> Path:
    return _resolve_folder(env, "COUNCIL_CACHE", "XDG_CACHE_HOME", "user_cache_path")


def store_cache(path: Path, rows: Mapping[str, Any]) -> None:
    """Replace a JSON file of the cache folder. A folder that cannot be written is no error."""
    with suppress(ConfigError):
        write_private(path, json.dumps(rows))


def config_folder(env: Mapping[str, str]) -> Path:
    return _resolve_folder(env, "", "XDG_CONFIG_HOME", "user_config_path")


def repair_folders(env: Mapping[str, str]) -> list[str]:
    """Make Council's folders private, where an older version or a umask left them open. Return notices.

    A cache that the user named may be shared on purpose: it has weights, and nothing of the user.
    """
    with suppress(RuntimeError):  # there is no home folder
        places = {data_folder(env): bool(env.get("COUNCIL_DATA"))}
        places |= {config_folder(env): False} | ({} if env.get("COUNCIL_CACHE") else {cache_folder(env): False})
        repairs = [repair_folder(folder, is_named=is_named) for folder, is_named in places.items()]
        return [line for line in (describe_changes(repairs), describe_failures(repairs)) if line]
    return []


def _resolve_folder(
    env: Mapping[str, str],
    variable: str,
    xdg_variable: str,
    kind: Literal["user_data_path", "user_cache_path", "user_config_path"],
) -> Path:
    if variable and env.get(variable):
        return _make_path(env[variable]) if env[variable][0] != "~" else Path(env[variable]).expanduser()
    if env.get(xdg_variable):
        return _make_path(env[xdg_variable], "council")
    return _find_platform_folder(kind, os.environ.get(xdg_variable), os.environ.get("HOME"))


_make_path = lru_cache(maxsize=64)(Path)


@lru_cache(maxsize=16)
def _find_platform_folder(kind: str, xdg_folder: str | None, home: str | None) -> Path:
    """Return a folder of the system's kind. It depends on these variables."""
    import platformdirs  # only needed if the variables are not set

    path: Path = getattr(platformdirs, kind)("council", appauthor=False)
    return path
