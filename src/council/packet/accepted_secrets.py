"""The baseline of a project: values that look like secrets and that a person accepted, by their hash and path."""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import stat
import tomllib
from collections.abc import Iterable
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from council.errors import UsageError
from council.packet.git import find_prefix, find_top
from council.settings.config_files import format_toml
from council.settings.private_files import open_named_file

BASELINE_NAME = ".council-secrets.toml"
MAX_BASELINE_BYTES = 512 * 1024
MAX_ROWS = 2_000
BASELINE_LINE = re.compile(  # a comment, the head of a row, or a key with a basic string
    r"""[ \t]*(?:\[\[accepted\]\]|(?:hash|path|reason)[ \t]*=[ \t]*"(?:[^"\\]|\\.)*")?[ \t]*(?:#.*)?\r?"""
)
ROW_FIX = "each [[accepted]] needs a hash and a path, as `council packet --accept-secret` writes them"
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

    def add(self, found: Iterable[FoundSecret], reason: str) -> int:
        """Write these secrets into the baseline and return how many were added."""
        rows = {(row.path, row.hash): row for row in self.rows}
        before = len(rows)
        for secret in found:
            row = AcceptedSecret(secret.hash, self._prefix + secret.path, reason)
            rows.setdefault((row.path, row.hash), row)
        text = HEAD + "".join(map(_format_row, sorted(rows.values(), key=lambda row: (row.path, row.hash))))
        if len(rows) > before:
            _write_baseline(self.file, _encode_baseline(self.file, text, len(rows), reason))
        return len(rows) - before


def hash_value(value: str) -> str:
    return hashlib.sha256(value.encode("utf-8", "replace")).hexdigest()


def _format_row(row: AcceptedSecret) -> str:
    fields = "".join(f"{name} = {format_toml(value)}\n" for name, value in row._asdict().items())
    return f"\n[[accepted]]\n{fields}"


def _encode_baseline(file: Path, text: str, rows: int, reason: str) -> bytes:
    """Return the text in UTF-8, or raise UsageError if it could not be read again."""
    try:
        raw = text.encode("utf-8")
    except UnicodeEncodeError:
        name = reason.encode("ascii", "backslashreplace").decode()[:80]
        raise UsageError(f'"{name}" is not valid UTF-8, nothing was written: give a reason in UTF-8') from None
    if rows > MAX_ROWS or len(raw) > MAX_BASELINE_BYTES:
        limits = f"{MAX_ROWS:,} accepted secrets and {MAX_BASELINE_BYTES // 1024} KB"
        raise UsageError(f'"{file}" may have {limits}, nothing was written: remove rows, or give a shorter reason')
    return raw


def _write_baseline(file: Path, raw: bytes) -> None:
    """Replace a baseline in one step: if that fails, the earlier one stays."""
    draft = file.with_name(f"{file.name}.{secrets.token_hex(6)}")
    try:
        with open_named_file(draft, "xb") as opened:
            if file.exists():
                os.fchmod(opened.fileno(), stat.S_IMODE(file.stat().st_mode))
            opened.write(raw)
            opened.flush()
            os.fsync(opened.fileno())
        os.replace(draft, file)  # noqa: PTH105
    except OSError as error:
        with suppress(OSError):
            draft.unlink()
        raise UsageError(
            f'"{file}" cannot be written ({error.strerror}): free some space, or check the permissions of its folder'
        ) from None


def _read_rows(file: Path) -> tuple[AcceptedSecret, ...]:
    raw = _read_baseline(file)
    return _parse_rows(str(file), raw) if raw else ()


def _read_baseline(file: Path) -> bytes:
    """Return the content of a baseline, which may be a byte over the limit; empty if there is none."""
    try:
        if not stat.S_ISREG(os.lstat(file).st_mode):
            raise UsageError(f'"{file}" is no file of accepted secrets: remove it')
        with open(os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as opened:
            return opened.read(MAX_BASELINE_BYTES + 1)
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise UsageError(f'"{file}" cannot be read ({error.strerror}): check its permissions') from None


@lru_cache(maxsize=8)
def _parse_rows(name: str, raw: bytes) -> tuple[AcceptedSecret, ...]:
    """Parse a baseline. Every line is checked before, because a hostile text can take the parser's time and memory."""
    if len(raw) > MAX_BASELINE_BYTES:
        raise UsageError(f'"{name}" is over {MAX_BASELINE_BYTES // 1024} KB: remove rows of files that no longer exist')
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        raise UsageError(f'"{name}" is not valid UTF-8: save it as UTF-8') from None
    lines = text.split("\n")
    for number, line in enumerate(lines, 1):
        if not BASELINE_LINE.fullmatch(line):
            raise UsageError(f'"{name}" line {number} is no part of an accepted secret: {ROW_FIX}')
    if sum(line.lstrip().startswith("[[") for line in lines) > MAX_ROWS:
        raise UsageError(f'"{name}" has over {MAX_ROWS:,} accepted secrets: remove rows of files that no longer exist')
    try:
        rows = tomllib.loads(text).get("accepted", [])
        return tuple(AcceptedSecret(row["hash"], row["path"], row.get("reason", "")) for row in rows)
    except (ValueError, KeyError) as error:
        raise UsageError(f'"{name}" cannot be read ({type(error).__name__}: {error}): {ROW_FIX}') from None
