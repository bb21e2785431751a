"""The baseline of a project: values that look like secrets and that a person accepted, by their hash and path."""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum, auto
from functools import cached_property, lru_cache
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from council.errors import UsageError
from council.packet.git import find_prefix, find_repo, find_top
from council.packet.secret_filter import redact_text
from council.settings.config_files import format_toml
from council.settings.private_files import replace_named_file
from council.settings.workspace_trust import TrustSource, is_trusted, load_trusted_parts, store_trust

BASELINE_NAME = ".council-secrets.toml"
MAX_BASELINE_BYTES = 512 * 1024
MAX_ROWS = 2_000
MAX_SHOWN_REASON = 200  # characters
BASELINE_LINE = re.compile(  # a comment, the head of a row, or a key with a basic string
    r"""[ \t]*(?:\[\[accepted\]\]|(?:hash|path|reason)[ \t]*=[ \t]*"(?:[^"\\]|\\.)*+")?[ \t]*(?:#.*)?\r?"""
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

    @property
    def digest(self) -> str:
        return _hash_json([self.path, self.hash])


@dataclass(frozen=True)
class AcceptedList:
    """Accepted secrets of a project, which need the user's trust: a repository could accept guessed values."""

    file: Path
    rows: tuple[AcceptedSecret, ...]

    @property
    def project(self) -> Path:
        return self.file.parent

    @property
    def name(self) -> str:
        return self.file.name

    @property
    def digest(self) -> str:
        """The hash of what is accepted, which is the same in every clone. Reasons and comments change nothing."""
        return _hash_json({"accepted": sorted({(row.path, row.hash) for row in self.rows})})

    def list_parts(self) -> list[str]:
        return sorted({row.digest for row in self.rows})

    def find_trusted(self, trust: TrustSource) -> frozenset[AcceptedSecret]:
        """Return the rows that the user trusts: all, if the file as a whole is trusted."""
        if not self.rows or is_trusted(self, trust.env, trust.flags):
            return frozenset(self.rows)
        return self.find_stored(trust)

    def find_stored(self, trust: TrustSource) -> frozenset[AcceptedSecret]:
        """Return the rows that the user has accepted or trusted on this machine."""
        parts = load_trusted_parts(self, trust.env)
        return frozenset(row for row in self.rows if row.digest in parts)

    def describe(self, trusted: Iterable[AcceptedSecret]) -> list[str]:
        """Return a line for each file: how many of its values are accepted, why, and how many are not trusted yet."""
        lines, known = [], frozenset(trusted)
        for path, group in groupby(sorted(self.rows, key=lambda row: row.path), key=lambda row: row.path):
            rows = list(group)
            reasons = ", ".join(dict.fromkeys(f'"{row.reason[:MAX_SHOWN_REASON]}"' for row in rows if row.reason))
            new = sum(row not in known for row in rows) if known else 0
            added = f",{f' {new:,} of them' if new < len(rows) else ''} not trusted yet" if new else ""
            lines.append(f"{count_secrets(len(rows))} in {path}{added}{f' ({reasons})' if reasons else ''}")
        return lines

    def store(self, trust: TrustSource) -> None:
        store_trust(self, trust.env, self.list_parts())


class Verdict(Enum):
    """What a baseline says about a value."""

    ACCEPTED = auto()
    UNTRUSTED = auto()  # it is accepted, but the user has not trusted that
    UNKNOWN = auto()


class Baseline:
    """The accepted secrets of a project, read when they are first needed.

    `base` is a revision: its file counts instead of that of the work tree, so that a change cannot accept its own
    secrets. Without `trust`, no secret is accepted.
    """

    def __init__(self, root: Path, *, trust: TrustSource | None = None, base: str | None = None) -> None:
        self.root, self.trust, self.base = root, trust, base

    @cached_property
    def file(self) -> Path:
        root = self.root.resolve()
        return (find_top(root) or root) / BASELINE_NAME

    @cached_property
    def listed(self) -> AcceptedList:
        raw = _read_baseline(self.file) if self.base is None else _read_revision(self.root, self.base)
        name = str(self.file) if self.base is None else f"{redact_text(self.base)[:80]}:{BASELINE_NAME}"
        return AcceptedList(self.file, _parse_rows(name, raw) if raw else ())

    @cached_property
    def _verdicts(self) -> dict[tuple[str, str], Verdict]:
        trusted = self.listed.find_trusted(self.trust) if self.trust else frozenset()
        verdicts = {(row.path, row.hash): Verdict.UNTRUSTED for row in self.listed.rows}
        return verdicts | {(row.path, row.hash): Verdict.ACCEPTED for row in trusted}

    @cached_property
    def _prefix(self) -> str:
        return find_prefix(self.root)

    def judge(self, path: str, value: str) -> Verdict:
        """Return what is said about a value in the file with this path, which begins at the root."""
        return self._verdicts.get((self._prefix + path, hash_value(value)), Verdict.UNKNOWN)

    def describe_untrusted(self) -> str:
        """Return how the user trusts the rows, for one line after what is not accepted."""
        if self.base is None:
            return (
                f"{BASELINE_NAME} accepts it, but you have not trusted that file: `council trust` shows and trusts it"
            )
        name = redact_text(self.base)[:80]
        return f'{BASELINE_NAME} of "{name}" accepts it, but you have not trusted it: check "{name}" out and run `council trust`'

    def add(self, found: Iterable[FoundSecret], reason: str) -> int:
        """Write these secrets into the baseline of the work tree, trust them, and return how many are new.

        Rows that the user has not trusted stay as they are.
        """
        trust = self.trust or TrustSource(os.environ)
        listed = Baseline(self.root).listed
        rows = {(row.path, row.hash): row for row in listed.rows}
        stored = {(row.path, row.hash) for row in listed.find_stored(trust)}
        accepted = {
            (self._prefix + one.path, one.hash): AcceptedSecret(one.hash, self._prefix + one.path, reason)
            for one in found
        }
        if accepted.keys() - rows.keys():
            rows = {**accepted, **rows}
            text = HEAD + "".join(_format_row(rows[key]) for key in sorted(rows))
            _write_baseline(self.file, _encode_baseline(self.file, text, len(rows), reason))
        if new := accepted.keys() - stored:
            AcceptedList(self.file, tuple(rows[key] for key in sorted(stored | new))).store(trust)
        return len(new)


def count_secrets(number: int) -> str:
    return "1 accepted secret" if number == 1 else f"{number:,} accepted secrets"


def hash_value(value: str) -> str:
    return hashlib.sha256(value.encode("utf-8", "replace")).hexdigest()


def _hash_json(value: Any) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()


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
    try:
        replace_named_file(file, raw)
    except OSError as error:
        raise UsageError(
            f'"{file}" cannot be written ({error.strerror}): free some space, or check the permissions of its folder'
        ) from None


def _read_baseline(file: Path) -> bytes:
    """Return the content of a baseline, which may be a byte over the limit; empty if there is none."""
    try:
        if not stat.S_ISREG(os.lstat(file).st_mode):
            raise UsageError(f'"{file}" is no file of accepted secrets: remove it')
        with os.fdopen(os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as opened:
            return opened.read(MAX_BASELINE_BYTES + 1)
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise UsageError(f'"{file}" cannot be read ({error.strerror}): check its permissions') from None


def _read_revision(root: Path, base: str) -> bytes:
    """Return the content of the baseline in a revision, which may be a byte over the limit; empty if there is none."""
    repo = find_repo(root)
    if repo is None:
        return b""
    top, commit = repo.from_top(), repo.resolve_commit(base)
    oid = top.find_blobs((commit, commit), [BASELINE_NAME]).get(BASELINE_NAME)
    return top.read_blobs([oid], MAX_BASELINE_BYTES)[oid] if oid else b""


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
