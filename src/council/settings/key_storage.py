"""API keys stored in the system keyring, as an alternative to environment variables.

A keyring cannot list its entries, so the variable names, never the keys, are written to keys.json beside the user's
configuration. The keyring package is imported only if a key is stored.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from council.errors import UsageError
from council.settings.config_files import config_folder
from council.settings.schema import quote_value

SERVICE = "council"
NAMES_FILE = "keys.json"
NOT_INSTALLED = "the keyring package is not installed: run `pip install 'model-council[keys]'`, or set the key as an environment variable"


def stored_key_names(env: Mapping[str, str]) -> list[str]:
    """Return the names of the variables whose keys are stored."""
    path = f"{config_folder(env)}/{NAMES_FILE}"
    try:
        if not os.path.exists(path):  # noqa: PTH110  # checked by every call of the library
            return []
        names = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return []
    return [name for name in names if isinstance(name, str)] if isinstance(names, list) else []


def add_stored_keys(env: Mapping[str, str]) -> dict[str, str]:
    """Return the environment plus stored keys for variables that are not set. A locked keyring adds nothing."""
    missing = [name for name in stored_key_names(env) if not env.get(name, "").strip()]
    keys = {name: key for name in missing if (key := load_key(name))}
    return {**env, **keys} if keys or env is not os.environ else copy_environment()


_copied: tuple[dict[Any, Any], dict[str, str]] = {}, {}  # the variables in the form of the system, and their copy


def copy_environment() -> dict[str, str]:
    """Return the environment of the process. Callers share the copy until a variable changes."""
    global _copied
    raw = getattr(os.environ, "_data", None)
    if not isinstance(raw, dict):
        return dict(os.environ)
    if raw != _copied[0]:
        _copied = dict(raw), dict(os.environ)
    return _copied[1]


def load_key(name: str) -> str:
    """Return the stored key, or "" if the keyring is not available."""
    try:
        return _load_keyring().get_password(SERVICE, name) or ""
    except Exception:  # backends raise many types; `council doctor` reports the failure
        return ""


def store_key(name: str, key: str, env: Mapping[str, str]) -> None:
    """Store the key in the keyring and read it back to verify."""
    ring = _load_keyring()
    try:
        ring.set_password(SERVICE, name, key)
        is_stored = ring.get_password(SERVICE, name) == key
    except Exception as error:
        raise _keyring_error(error) from None
    if not is_stored:
        raise _keyring_error(None)
    _write_names(sorted({*stored_key_names(env), name}), env)


def delete_key(name: str, env: Mapping[str, str]) -> None:
    if name not in stored_key_names(env):
        raise UsageError(f"no key is stored for {quote_value(name)}: run `council keys` to list the stored keys")
    ring = _load_keyring()
    try:
        if ring.get_password(SERVICE, name) is not None:
            ring.delete_password(SERVICE, name)
    except Exception as error:
        raise _keyring_error(error) from None
    _write_names([stored for stored in stored_key_names(env) if stored != name], env)


def _load_keyring() -> Any:
    try:
        import keyring
        from keyring.backends import fail
    except ImportError:
        raise UsageError(NOT_INSTALLED) from None
    if isinstance(keyring.get_keyring(), fail.Keyring):
        raise UsageError("this system has no usable keyring: set the key as an environment variable instead")
    return keyring


def _keyring_error(error: Exception | None) -> UsageError:
    why = f" ({type(error).__name__})" if error else ""  # its message could contain the key
    return UsageError(
        f"the system keyring failed{why}, nothing was changed: unlock it, or set the key as an environment variable"
    )


def _names_file(env: Mapping[str, str]) -> Path:
    return config_folder(env) / NAMES_FILE


def _write_names(names: list[str], env: Mapping[str, str]) -> None:
    path = _names_file(env)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(names) + "\n", encoding="utf-8")
