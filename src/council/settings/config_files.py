"""Locations of configuration, data and cache, and the reader of configuration files."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from council.errors import ConfigError, option
from council.settings.schema import quote_value


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
    candidates = (candidate for place in _project_folders(folder.absolute()) if (candidate := _find_config_in(place)))
    return next(candidates, None)


def _project_folders(folder: Path) -> list[Path]:
    """Return the folders from here up to the repository root.

    Outside a repository only this folder: parent folders may belong to another user.
    """
    folders = [folder, *folder.parents]
    root = next((parent for parent in folders if (parent / ".git").exists()), folder)
    return folders[: folders.index(root) + 1]


def _find_config_in(place: Path) -> Path | None:
    if (place / "council.toml").is_file():
        return place / "council.toml"
    pyproject = place / "pyproject.toml"
    return pyproject if pyproject.is_file() and "council" in _read_text(pyproject) and read_config(pyproject) else None


def read_config(path: Path) -> Mapping[str, Any]:
    """Return the unvalidated tables of a configuration file; of a pyproject.toml only [tool.council]."""
    try:
        tables: dict[str, Any] = tomllib.loads(_read_text(path))
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path} is not valid TOML: {quote_value(error)}; fix that line") from None
    if path.name != "pyproject.toml":
        return tables
    return _tool_table(tables.get("tool", {}), path)


def _tool_table(tools: Any, path: Path) -> Mapping[str, Any]:
    table = tools.get("council", {}) if isinstance(tools, Mapping) else {}
    if not isinstance(table, Mapping):
        raise ConfigError(
            f'{path}: "tool.council" is {quote_value(table)}, but it must be a table: write [tool.council] and put its keys below'
        )
    return table


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"cannot read the configuration file {path}: {quote_value(error)}; it must be readable UTF-8 text"
        ) from None


def find_command(name: str, env: Mapping[str, str]) -> Path | None:
    """Return the executable of that name on PATH. Relative PATH entries are skipped because they are not trusted."""
    places = (Path(entry) for entry in env.get("PATH", "").split(os.pathsep))
    candidates = (place / name for place in places if place.is_absolute())
    return next((path for path in candidates if path.is_file() and os.access(path, os.X_OK)), None)


def data_folder(env: Mapping[str, str]) -> Path:
    return _resolve_folder(env, "COUNCIL_DATA", "XDG_DATA_HOME", "user_data_path")


def cache_folder(env: Mapping[str, str]) -> Path:
    return _resolve_folder(env, "COUNCIL_CACHE", "XDG_CACHE_HOME", "user_cache_path")


def config_folder(env: Mapping[str, str]) -> Path:
    return _resolve_folder(env, "", "XDG_CONFIG_HOME", "user_config_path")


def _resolve_folder(
    env: Mapping[str, str],
    variable: str,
    xdg_variable: str,
    kind: Literal["user_data_path", "user_cache_path", "user_config_path"],
) -> Path:
    if variable and env.get(variable):
        return Path(env[variable]).expanduser()
    if env.get(xdg_variable):
        return Path(env[xdg_variable]) / "council"
    import platformdirs  # only needed if the variables are not set

    path: Path = getattr(platformdirs, kind)("council", appauthor=False)
    return path
