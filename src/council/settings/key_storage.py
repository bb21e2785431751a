"""API keys from the system keyring or from a command, as an alternative to environment variables.

A keyring cannot list its entries, so the variable names, never the keys, are written to keys.json beside the user's
configuration. The keyring package is imported only if a key is stored.

A command of the user, `[keys] command`, prints the key of a variable. Its output is kept in the memory of this process
only.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from council.errors import ConfigError, UsageError
from council.settings.config_files import config_folder, find_command, write_private
from council.settings.schema import quote_value, split_command

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


def find_storage_problem() -> str:
    """Return why no key can be stored on this system, or ""."""
    try:
        _load_keyring()
    except UsageError as error:
        return str(error)
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


def _write_names(names: list[str], env: Mapping[str, str]) -> None:
    write_private(config_folder(env) / NAMES_FILE, json.dumps(names) + "\n")


# Command

COMMAND_TIMEOUT_S = 15.0
MAX_KEY_BYTES = 16_384
RETRY_S = 30.0  # seconds after which a key that the command did not have is asked for again
MAX_COMMANDS = 8  # at once


class KeyEnvironment(dict[str, str]):
    """Environment whose missing API keys come from a command, when they are first read. Copies do not contain them."""

    def __init__(self, env: Mapping[str, str], command: str, names: Iterable[str]) -> None:
        super().__init__(env)
        self._command, self._names = command, frozenset(name for name in names if name)

    def get(self, name: str, default: Any = None) -> Any:
        found = super().get(name, default)
        if (found and found.strip()) or not (name in self._names or name.endswith("_API_KEY")):
            return found
        unset = [one for one in self._names if not dict.get(self, one, "").strip()]
        return read_keys(self._command, [name, *unset], self)[name] or found


_printed: dict[tuple[str, str], tuple[str, float]] = {}  # by command and variable: the key, and when it was printed
_print_lock = threading.Lock()


def read_keys(command: str, names: Sequence[str], env: Mapping[str, str]) -> dict[str, str]:
    """Return what the command prints for each variable, "" without a key: once for each, several at a time."""
    import time
    from concurrent.futures import ThreadPoolExecutor

    with _print_lock:
        now = time.monotonic()
        missing = [name for name in dict.fromkeys(names) if not _is_current(_printed.get((command, name)), now)]
        if missing:
            with ThreadPoolExecutor(min(len(missing), MAX_COMMANDS)) as threads:
                values = list(threads.map(lambda name: _run_command(command, name, env), missing))
            _printed.update({(command, name): (key, now) for name, key in zip(missing, values, strict=True)})
        return {name: _printed[command, name][0] for name in names}


def _is_current(row: tuple[str, float] | None, now: float) -> bool:
    return row is not None and (bool(row[0]) or now - row[1] < RETRY_S)


def _run_command(command: str, name: str, env: Mapping[str, str]) -> str:
    """Return the key that the command prints. Its output is part of no message."""
    import subprocess

    words = split_command(command)
    program = Path(words[0]).expanduser() if "/" in words[0] else find_command(words[0], env)
    if program is None or not program.is_absolute() or not os.access(program, os.X_OK):
        raise ConfigError(
            f"the command {quote_value(words[0])} of [keys] was not found: write its path, or add its folder to PATH"
        )
    try:
        done = subprocess.run(
            [program, *words[1:], name],
            env=dict(env),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=COMMAND_TIMEOUT_S,
            cwd="/",
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise ConfigError(
            f"the command {quote_value(words[0])} of [keys] printed no key for {name} within {COMMAND_TIMEOUT_S:g} s: "
            f"run it with {name} to see why, or set {name}"
        ) from None
    except OSError as error:
        raise ConfigError(
            f"the command {quote_value(words[0])} of [keys] cannot be started ({error.strerror}): check it"
        ) from None
    key = done.stdout.strip() if done.returncode == 0 else b""  # another exit code: it has no such key
    if len(key) > MAX_KEY_BYTES or len(key.split()) > 1 or not key.isascii():
        raise ConfigError(
            f"the command {quote_value(words[0])} of [keys] printed no valid key for {name}: it has to print the key alone, as one word"
        )
    return key.decode("ascii")
