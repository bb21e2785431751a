"""The repository of a history: its commits, their diffs, and the commits that wrote lines, read with git."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from council.errors import UsageError
from council.evals.history.source_lines import MAX_SOURCE_BYTES, is_generated, is_source
from council.packet.git import DIFF_FLAGS, Change, GitFailed, Repo, find_history
from council.unified_diff import FileDiff, parse_diff

LOG_FLAGS = (
    "-z",
    "--no-decorate",
    "--no-notes",
    "--no-color",
    "--encoding=UTF-8",
    "--raw",
    "--numstat",
    "--no-abbrev",
    "--find-renames",
    "--no-ext-diff",
    "--no-textconv",
    "--ignore-submodules=all",
)
MARK = b"commit "
LOG_FORMAT = "--format=commit %H%x00%P%x00%ct%x00%cs%x00%s%x00%b%x00"
BLAME_FLAGS = ("--line-porcelain", "--no-ignore-revs-file", "--no-textconv", "-w", "-M", "-C")
MAX_FILES = 300  # changed files of a commit that are kept
MAX_DIFF_FILES = 40  # source files of a commit that are compared at once
MAX_SAME_SUBJECT = 20
MAX_IGNORED = 300  # commits of .git-blame-ignore-revs
IGNORED_COMMITS_FILE = ".git-blame-ignore-revs"
UNIT = {"y": "years", "mo": "months", "m": "months", "w": "weeks", "d": "days"}
DATE_WORD = re.compile(
    r"(?i)\d|now|today|yesterday|noon|midnight|tea|never|last|ago|(?:mon|tues|wednes|thurs|fri|satur|sun)day|"
    r"jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec"
)
NUMSTAT = re.compile(rb"(\d+|-)\t(\d+|-)\t(.*)", re.DOTALL)
ESCAPE = re.compile(rb"\\([0-7]{3}|.)", re.DOTALL)
ESCAPED = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"a": b"\a", b"b": b"\b", b"f": b"\f", b"v": b"\v"}


class ChangedFile(NamedTuple):
    """A changed file of a commit with the numbers of its lines; none are known of a binary file."""

    change: Change
    added: int
    removed: int

    @property
    def is_source(self) -> bool:
        return (
            is_source(self.change.path) and self.change.mode.startswith(("100", "000")) and not self.change.is_submodule
        )


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit with the files that it changed, at most `MAX_FILES`."""

    id: str
    parents: tuple[str, ...]
    time: int
    date: str
    subject: str
    body: str
    files: tuple[ChangedFile, ...] = ()
    file_count: int = 0

    @property
    def sources(self) -> tuple[ChangedFile, ...]:
        return tuple(file for file in self.files if file.is_source)

    @property
    def changed_lines(self) -> int:
        """Return how many lines of source code it added and removed."""
        return sum(file.added + file.removed for file in self.sources)


class Origin(NamedTuple):
    """Where a line was written: the commit, and the path and the line there."""

    commit: str
    path: str
    line: int
    is_boundary: bool  # a commit without known parents


class Repository:
    """Read access to the history of a repository. What was read is kept, up to a limit."""

    def __init__(self, repo: Repo) -> None:
        self.repo = repo
        self.is_shallow = repo.is_shallow()
        self.head = repo.resolve_commit("HEAD")
        self.ignored = self._read_ignored()  # commits that blame looks through
        self.read_commit: Callable[[str], Commit] = lru_cache(500)(self._read_commit)
        self.read_diff: Callable[[str], tuple[FileDiff, ...]] = lru_cache(200)(self._read_diff)
        self.read_text: Callable[[str], str] = lru_cache(50)(self._read_text)

    def list_commits(self, *args: str) -> Generator[Commit, None, None]:
        """Yield commits that are no merges, newest first."""
        with closing(self.repo.stream("log", "--no-merges", *LOG_FLAGS, LOG_FORMAT, *args)) as rows:
            yield from _parse_log(rows)

    def _read_commit(self, commit: str) -> Commit:
        rows = self.repo.run("log", "--no-walk", *LOG_FLAGS, LOG_FORMAT, commit, "--").split(b"\0")
        return next(_parse_log(iter(rows)))

    def _read_diff(self, commit: str) -> tuple[FileDiff, ...]:
        """Return the diff of the source files of a commit with a parent. A file without hunks is left out."""
        known = self.read_commit(commit)
        changes = [file.change for file in known.sources]
        sections = self.repo.diff((known.parents[0], commit), changes)
        found = (replace(file, path=change.path) for change, text in zip(changes, sections, strict=True) for file in parse_diff(text)[:1])  # fmt: skip
        return tuple(file for file in found if file.hunks)

    def read_file_diff(self, commit: Commit, path: str) -> FileDiff | None:
        """Return the diff of one file, also of a commit whose other files are too many to read."""
        if len(commit.sources) <= MAX_DIFF_FILES:
            return next((file for file in self.read_diff(commit.id) if file.path == path), None)
        change = next((file.change for file in commit.sources if file.change.path == path), None)
        if change is None:
            return None
        sections = [
            file for text in self.repo.diff((commit.parents[0], commit.id), [change]) for file in parse_diff(text)[:1]
        ]
        return replace(sections[0], path=path) if sections else None

    def _read_text(self, oid: str) -> str:
        """Return a source file; empty if it is too large or generated."""
        content = self.repo.read_blobs([oid], MAX_SOURCE_BYTES).get(oid, b"") if oid.strip("0") else b""
        text = content.decode("utf-8", "replace")
        return "" if len(content) > MAX_SOURCE_BYTES or b"\0" in content[:8000] or is_generated(text) else text

    def blame(
        self,
        revision: str,
        path: str,
        lines: Sequence[int],
        *,
        after: str = "",
        since: int | None = None,
    ) -> dict[int, Origin]:
        """Return where lines of a file were written, whitespace and moves aside.

        The search ends at the commit `after` and at commits before the time `since`: lines that are older come from a
        boundary.
        """
        ranges = [word for first, last in _join_ranges(lines) for word in ("-L", f"{first},{last}")]
        through = [word for commit in self.ignored for word in ("--ignore-rev", commit)]
        limits = [f"--since={since}"] if since else []
        return dict(
            _parse_blame(
                self.repo.run(
                    "blame",
                    *BLAME_FLAGS,
                    *ranges,
                    *limits,
                    *through,
                    f"{after}..{revision}" if after else revision,
                    "--",
                    path,
                )
            )
        )

    def map_line(self, old: str, new: str, path: str, line: int) -> int | None:
        """Return the number of a line in another commit, or None if it is changed or removed there."""
        output = self.repo.run("diff", "--patch", "--unified=0", "--inter-hunk-context=0", *DIFF_FLAGS, old, new, "--", path)  # fmt: skip
        for file in parse_diff(output.decode("utf-8", "surrogateescape"))[:1]:
            shift = 0
            for hunk in file.hunks:
                removed = sum(row.startswith("-") for row in hunk.rows)
                added = sum(row.startswith("+") for row in hunk.rows)
                if hunk.old + (removed == 0) > line:  # a hunk that only adds starts at the line before
                    break
                if removed and line < hunk.old + removed:
                    return None
                shift += added - removed
            return line + shift
        return line  # the file is the same in both

    def find_ancestor(self, name: str, descendant: str) -> str | None:
        """Return the full id of a commit that is an ancestor of another one, or None."""
        try:
            commit = self.repo.resolve_commit(name)
            self.repo.run("merge-base", "--is-ancestor", commit, descendant)
        except UsageError:
            return None
        return commit if commit != descendant else None

    def find_subject(self, subject: str, before: str) -> str | None:
        """Return the newest ancestor of a commit with this subject, among the last commits."""
        args = (
            "-z",
            "--no-color",
            "--no-notes",
            "--encoding=UTF-8",
            "--format=%H %s",
            "--fixed-strings",
            f"--grep={subject}",
        )
        listed = self.repo.run("log", *args, f"--max-count={MAX_SAME_SUBJECT}", f"{before}^", "--")
        for row in listed.decode("utf-8", "replace").split("\0"):
            commit, _, found = row.partition(" ")
            if re.sub(r"\s*\(#\d+\)$", "", found) == re.sub(r"\s*\(#\d+\)$", "", subject):
                return commit
        return None

    def find_number(self, number: str, before: str) -> str | None:
        """Return the newest ancestor of a commit whose subject ends with the number of a pull request."""
        args = (
            "-z",
            "--no-color",
            "--no-notes",
            "--encoding=UTF-8",
            "--format=%H %s",
            "--fixed-strings",
            f"--grep=({number})",
        )
        listed = self.repo.run("log", *args, f"--max-count={MAX_SAME_SUBJECT}", f"{before}^", "--")
        rows = (row.partition(" ") for row in listed.decode("utf-8", "replace").split("\0"))
        return next((commit for commit, _, subject in rows if subject.endswith(f"({number})")), None)

    def _read_ignored(self) -> tuple[str, ...]:
        """Return the commits of .git-blame-ignore-revs that exist."""
        oid = self.repo.find_blobs((self.head, self.head), [IGNORED_COMMITS_FILE]).get(IGNORED_COMMITS_FILE)
        if oid is None:
            return ()
        text = self.repo.read_blobs([oid], MAX_SOURCE_BYTES)[oid].decode("ascii", "replace")
        named = re.findall(r"(?m)^\s*([0-9a-f]{40}(?:[0-9a-f]{24})?)\b", text)[:MAX_IGNORED]
        checked = self.repo.run("cat-file", "--batch-check=%(objectname) %(objecttype)", stdin="".join(f"{one}\n" for one in named).encode())  # fmt: skip
        rows = [row.split() for row in checked.decode("ascii", "replace").splitlines()]
        return tuple(row[0] for row in rows if row[1:] == ["commit"])


def open_repository(folder: Path) -> Repository:
    """Return the repository of a folder, which may be bare, or raise UsageError."""
    repo = find_history(folder)
    if repo is None:
        raise UsageError(f'"{folder}" is no git repository: name the folder of a clone or a bare repository')
    try:
        return Repository(repo)
    except GitFailed:
        raise
    except UsageError as error:
        raise UsageError(f'"{folder}" has no commits: name a repository with a history') from error


def read_since(repository: Repository, since: str, now: float) -> str:
    """Return a time for git's `--since`, or raise UsageError. Short forms such as "1y" and "6mo" are accepted too."""
    text = since.strip()
    short = re.fullmatch(r"(\d+)\s*(mo|[ymwd])", text)
    if short:
        text = f"{short[1]} {UNIT[short[2]]} ago"
    elif re.fullmatch(r"\d{4}-\d\d-\d\d", text):
        text = f"{text}T00:00:00Z"  # git would add the current time of the day
    age = re.search(rb"\d+", repository.repo.run("rev-parse", f"--since={text}"))
    if (
        age is None
        or not DATE_WORD.search(text)
        or (abs(int(age[0]) - now) < 5 and not re.search(r"(?i)now|second", text))
    ):
        raise UsageError(f'"{since}" is no date: write "1 year ago", "6mo" or "2025-01-31"')
    return age[0].decode()


def _parse_log(rows: Iterator[bytes]) -> Iterator[Commit]:
    """Yield the commits of `git log -z --raw --numstat`."""
    row = next(rows, None)
    while row is not None:
        if not row.startswith(MARK):
            row = next(rows, None)
            continue
        head = [row.removeprefix(MARK), *(next(rows, b"") for _ in range(5))]
        changes, counts, total = dict[str, Change](), dict[str, tuple[int, int]](), 0
        for row in rows:
            text = row.lstrip(b"\n")
            if text.startswith(b":"):
                change = _read_change(text, rows)
                total += 1
                if total <= MAX_FILES:
                    changes[change.path] = change
            elif match := NUMSTAT.match(text):
                path = match[3]
                if not path:  # a rename: old path, then new path
                    next(rows, b"")
                    path = next(rows, b"")
                if os.fsdecode(path) in changes:
                    counts[os.fsdecode(path)] = (int(match[1]), int(match[2])) if match[1] != b"-" else (0, 0)
            elif text.startswith(MARK):
                row = text
                break
        else:
            row = None
        files = tuple(ChangedFile(change, *counts.get(path, (0, 0))) for path, change in changes.items())
        commit, parents, time, date, subject, body = (part.decode("utf-8", "replace") for part in head)
        yield Commit(commit, tuple(parents.split()), int(time or 0), date, subject, body.strip(), files, total)


def _read_change(row: bytes, rows: Iterator[bytes]) -> Change:
    old_mode, mode, old_oid, oid, status = row.decode("ascii", "replace").split()
    old = path = os.fsdecode(next(rows, b""))
    if status[0] in "RC":
        path = os.fsdecode(next(rows, b""))
    return Change(status[0], old, path, mode, oid, old_mode.lstrip(":"), old_oid)


def _join_ranges(lines: Iterable[int]) -> list[tuple[int, int]]:
    """Return the ranges of neighbouring numbers."""
    ranges = list[tuple[int, int]]()
    for line in sorted(set(lines)):
        if ranges and line == ranges[-1][1] + 1:
            ranges[-1] = (ranges[-1][0], line)
        else:
            ranges.append((line, line))
    return ranges


def _parse_blame(output: bytes) -> Iterator[tuple[int, Origin]]:
    """Yield the number and the origin of each line of `git blame --line-porcelain`."""
    head, path, is_boundary = list[bytes](), "", False
    for row in output.split(b"\n"):
        if row.startswith(b"\t"):
            yield int(head[2]), Origin(head[0].decode(), path, int(head[1]), is_boundary)
            head, path, is_boundary = [], "", False
        elif not head:
            head = row.split()
        elif row.startswith(b"filename "):
            path = os.fsdecode(_unquote(row.removeprefix(b"filename ")))
        elif row == b"boundary":
            is_boundary = True


def _unquote(name: bytes) -> bytes:
    """Return a path as git quotes it: in double quotes with escapes, or as it is."""
    if len(name) < 2 or name[:1] != b'"':
        return name
    return ESCAPE.sub(lambda match: bytes([int(match[1], 8)]) if len(match[1]) == 3 else ESCAPED.get(match[1], match[1]), name[1:-1])  # fmt: skip
