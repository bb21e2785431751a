"""Keys kept in the system's keyring, for whoever keeps none in the environment. The package is loaded only where one is.

A keyring cannot be asked what it holds, so the names of the variables, never the keys, stand in a small file beside the
user's configuration.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from council.errors import UsageError
from council.settings_files import config_folder
from council.settings_keys import quoted

SERVICE = "council"
NOT_INSTALLED = (
    "the system's keyring is reached by the package keyring, which is not installed: run `pip install 'council[keys]'`, "
    "or put the key into the environment"
)


def kept(env: Mapping[str, str]) -> list[str]:
    """The names of the variables whose keys are kept."""
    try:
        names = json.loads(_names_file(env).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return []
    return [name for name in names if isinstance(name, str)] if isinstance(names, list) else []


def with_kept(env: Mapping[str, str]) -> dict[str, str]:
    """The environment, and what is kept for variables that are not set there. A keyring that stays shut adds nothing."""
    missing = [name for name in kept(env) if not env.get(name, "").strip()]
    return {**env, **{name: key for name in missing if (key := recalled(name))}}


def recalled(name: str) -> str:
    """The key, or nothing if it cannot be had now."""
    try:
        return _keyring().get_password(SERVICE, name) or ""
    except Exception:  # a keyring may fail in ways of its own; the doctor says that it does
        return ""


def keep(name: str, key: str, env: Mapping[str, str]) -> None:
    """Put the key into the keyring, and make sure that it is there."""
    ring = _keyring()
    try:
        ring.set_password(SERVICE, name, key)
        there = ring.get_password(SERVICE, name) == key
    except Exception as error:
        raise _shut(error) from None
    if not there:
        raise _shut(None)
    _write_names(sorted({*kept(env), name}), env)


def forget(name: str, env: Mapping[str, str]) -> None:
    if name not in kept(env):
        raise UsageError(
            f"no key is kept for {quoted(name)}, so nothing was removed; `council keys` lists those that are"
        )
    ring = _keyring()
    try:
        if ring.get_password(SERVICE, name) is not None:
            ring.delete_password(SERVICE, name)
    except Exception as error:
        raise _shut(error) from None
    _write_names([one for one in kept(env) if one != name], env)


def _keyring() -> Any:
    try:
        import keyring
        from keyring.backends import fail
    except ImportError:
        raise UsageError(NOT_INSTALLED) from None
    if isinstance(keyring.get_keyring(), fail.Keyring):
        raise UsageError(
            "this system has no keyring that could hold a key, so none was kept: put the key into the environment instead"
        )
    return keyring


def _shut(error: Exception | None) -> UsageError:
    why = f" ({type(error).__name__})" if error else ""  # its words could hold the key
    return UsageError(
        f"the system's keyring did not do it{why}, so nothing was changed: unlock it, or put the key into the environment"
    )


def _names_file(env: Mapping[str, str]) -> Path:
    return config_folder(env) / "keys.json"


def _write_names(names: list[str], env: Mapping[str, str]) -> None:
    path = _names_file(env)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(names) + "\n", encoding="utf-8")
