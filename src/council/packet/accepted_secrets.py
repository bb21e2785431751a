"""The baseline of a project: values that look like secrets and that a person accepted, by their hash and path."""

from __future__ import annotations

import hashlib
import json
import os
import tomllib
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from council.errors import UsageError
from council.packet.git import find_prefix, find_top
from council.settings.private_files import open_named_file

BASELINE_NAME = ".council-secrets.toml"
MAX_BASELINE_BYTES = 1024 * 1024
HEAD = """\
# Values that look like secrets and are none, or may be sent: `council packet --accept-secret REASON` adds them.
# A value is accepted in this file only. `hash` is the SHA-256 of the value.
"""


class FoundSecret(NamedTuple):
    """A value that the gate refused: its file, its place and kind for people, and its hash."""

    path: str
    place: str
    hash: str


class AcceptedSecret(NamedTuple):
    """A row of the baseline. The path begins at the folder of the baseline."""

    hash: str
    path: str
    reason: str


class Baseline:
    """The accepted secrets of a project."""

    def __init__(self, root: Path) -> None:
        self.folder = find_top(root.resolve()) or root.resolve()
        self.file = self.folder / BASELINE_NAME
        self._prefix = find_prefix(root)
        self.rows = _read_rows(self.file)
        self._accepted = {(row.path, row.hash) for row in self.rows}

    def accepts(self, path: str, value: str) -> bool:
        """Return whether a value was accepted in the file with this path, which begins at the root."""
        return bool(self._accepted) and (self._prefix + path, hash_value(value)) in self._accepted

    def add(self, secrets: Iterable[FoundSecret], reason: str) -> int:
        """Write these secrets into the baseline and return how many were added."""
        rows = {(row.path, row.hash): row for row in self.rows}
        before = len(rows)
        for secret in secrets:
            row = AcceptedSecret(secret.hash, self._prefix + secret.path, reason)
            rows.setdefault((row.path, row.hash), row)
        with open_named_file(self.file, "w", encoding="utf-8") as file:
            file.write(HEAD + "".join(map(_format_row, sorted(rows.values(), key=lambda row: (row.path, row.hash)))))
        return len(rows) - before


def hash_value(value: str) -> str:
    return hashlib.sha256(value.encode("utf-8", "replace")).hexdigest()


def _format_row(row: AcceptedSecret) -> str:
    fields = "".join(f"{name} = {json.dumps(value, ensure_ascii=False)}\n" for name, value in row._asdict().items())
    return f"\n[[accepted]]\n{fields}"


def _read_rows(file: Path) -> tuple[AcceptedSecret, ...]:
    try:
        found = os.lstat(file)
    except OSError:
        return ()
    if not os.path.isfile(file) or os.path.islink(file) or found.st_size > MAX_BASELINE_BYTES:  # noqa: PTH113, PTH114
        raise UsageError(f'"{file}" is no file of accepted secrets: remove it')
    return _parse_rows(file, found.st_mtime_ns, found.st_size)


@lru_cache(maxsize=8)
def _parse_rows(file: Path, _changed: int, _size: int) -> tuple[AcceptedSecret, ...]:
    """Parse a baseline. A file that did not change is parsed once."""
    try:
        rows = tomllib.loads(file.read_text(encoding="utf-8")).get("accepted", [])
        return tuple(AcceptedSecret(str(row["hash"]), str(row["path"]), str(row.get("reason", ""))) for row in rows)
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise UsageError(
            f'"{file}" cannot be read ({type(error).__name__}: {error}): each [[accepted]] needs a hash and a path'
        ) from None
