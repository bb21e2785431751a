"""Safe git calls: no repository can make git run a program, read outside the work tree or write a file.

A repository's configuration is as untrusted as its contents, so every setting that names a program is overridden.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import IO, NamedTuple

from council.errors import UsageError
from council.packet.secrets import scrub

SECONDS = 30.0
MOST = 16_000_000  # bytes of output
PINNED = {
    "core.fsmonitor": "false", "core.hooksPath": os.devnull, "core.pager": "cat", "core.sshCommand": "false",
    "core.askPass": "false", "core.quotePath": "true", "core.attributesFile": os.devnull, "core.bare": "false",
    "core.alternateRefsCommand": "false", "core.untrackedCache": "false", "core.gitProxy": "false",
    "credential.helper": "", "diff.external": "", "diff.noprefix": "false", "diff.mnemonicPrefix": "false",
    "diff.orderFile": os.devnull, "diff.autoRefreshIndex": "true", "diff.ignoreSubmodules": "all", "diff.relative": "false",
    "protocol.allow": "never", "submodule.recurse": "false", "log.showSignature": "false", "gc.auto": "0",
}  # fmt: skip
PLAIN = (
    "--no-ext-diff", "--no-textconv", "--no-color", "--ignore-submodules=all", "--submodule=short", "--find-renames",
    "--src-prefix=a/", "--dst-prefix=b/", "--relative", "--diff-algorithm=histogram",
)  # fmt: skip


class TooMuch(UsageError):
    """The output of git exceeds the limit."""


class Change(NamedTuple):
    """One changed file: old path, new path, and its git blob if it has one."""

    status: str
    old: str
    path: str
    mode: str
    oid: str

    @property
    def gone(self) -> bool:
        return self.status == "D"


@dataclass(frozen=True, slots=True)
class Repo:
    """A work tree and a folder in it; paths are relative to that folder."""

    root: Path
    top: Path
    overrides: Mapping[str, str] = field(default_factory=dict)

    def run(self, *args: str, given: bytes = b"", most: int | None = None) -> bytes:
        config = {**PINNED, **self.overrides}
        argv = ["git", "--no-pager", "--no-optional-locks", "--literal-pathspecs", f"--work-tree={self.top}", *args]
        return _run(argv, self.root, _environment(config), given, MOST if most is None else most)

    def commit(self, ref: str) -> str:
        """Return the id of a commit, or raise UsageError. A ref that looks like an option is rejected."""
        if re.match(r"-|$", ref) or re.search(r"[\s\0]", ref):
            raise UsageError(f'"{scrub(ref)[:80]}" is not a revision: name a branch, a tag or a commit')
        try:
            found = self.run("rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}")
        except GitFailed as error:
            raise UsageError(f'unknown revision "{scrub(ref)[:80]}": name a branch, a tag or a commit') from error
        return found.decode("ascii", "replace").strip()

    def line(self, most: int) -> list[str]:
        """Return the newest commits along the first parent, or [] if there are none."""
        try:
            listed = self.run("rev-list", "--first-parent", f"--max-count={most}", "HEAD", "--")
        except GitFailed:
            return []
        return listed.decode("ascii", "replace").split()

    def merge_base(self, one: str, other: str) -> str | None:
        try:
            return self.run("merge-base", one, other).decode("ascii", "replace").split()[0]
        except (GitFailed, IndexError):
            return None

    def shallow(self) -> bool:
        return self.run("rev-parse", "--is-shallow-repository").strip() == b"true"

    def nothing(self) -> str:
        """Return the id of the empty tree in this repository's hash format."""
        return self.run("hash-object", "-t", "tree", "--stdin").decode("ascii", "replace").strip()

    def changes(self, *sides: str) -> list[Change]:
        """Return the changes between two sides: ids of commits or trees, `--cached`, or nothing for the work tree."""
        return list(_changes(self.run("diff", "--raw", "-z", "--no-abbrev", *PLAIN, *sides, "--")))

    def diff(self, sides: Sequence[str], changes: Sequence[Change]) -> list[str]:
        """Return the diff of each change, in order."""
        if not changes:
            return []
        try:
            sections = sections_of(self._patch(sides, changes))
        except TooMuch:
            sections = []
        return sections if len(sections) == len(changes) else [self._one(sides, change) for change in changes]

    def _one(self, sides: Sequence[str], change: Change) -> str:
        try:
            return self._patch(sides, [change])
        except TooMuch:
            return ""

    def _patch(self, sides: Sequence[str], changes: Sequence[Change]) -> str:
        paths = dict.fromkeys(path for change in changes for path in (change.old, change.path))
        return self.run(
            "diff", "--patch", "--unified=3", "--inter-hunk-context=0", *PLAIN, *sides, "--", *paths
        ).decode("utf-8", "surrogateescape")  # files may have different encodings

    def listed(self, folder: str = "") -> list[str]:
        """Return tracked files and untracked files that are not ignored."""
        args = ("ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", folder or ".")
        return sorted(set(_names(self.run(*args))))

    def whole(self) -> Repo:
        """Return the same repository with paths relative to its top."""
        return Repo(self.top, self.top, self.overrides)

    def untracked(self) -> list[str]:
        return sorted(_names(self.run("ls-files", "-z", "--others", "--exclude-standard", "--", ".")))

    def blobs(self, oids: Sequence[str], largest: int) -> dict[str, bytes]:
        """Return contents by id; a blob over `max_bytes` becomes a filler of one byte more."""
        sizes = self.run("cat-file", "--batch-check=%(objectname) %(objecttype) %(objectsize)", given=_lines(oids))
        rows = [row.split() for row in sizes.decode("ascii", "replace").splitlines()]
        small = [row[0] for row in rows if len(row) == 3 and row[1] == "blob" and int(row[2]) <= largest]
        large = {row[0]: b"?" * (largest + 1) for row in rows if len(row) == 3 and int(row[2]) > largest}
        return {**large, **self._contents(small, largest)}

    def _contents(self, oids: Sequence[str], largest: int) -> dict[str, bytes]:
        given = _lines(oids)
        told = self.run("cat-file", "--batch", given=given, most=len(oids) * (largest + 200)) if oids else b""
        found, at = {}, 0
        while at < len(told):
            end = told.index(b"\n", at)
            oid, _, size = told[at:end].decode("ascii", "replace").split()
            found[oid] = told[end + 1 : end + 1 + int(size)]
            at = end + 2 + int(size)
        return found


class GitFailed(UsageError):
    """Git failed or could not be started."""


def find(root: Path) -> Repo | None:
    """Return the repository that contains a folder, or None. Not asked of git, so that no configuration can move its work tree."""
    root = root.resolve()
    top = next((folder for folder in (root, *root.parents) if os.path.lexists(folder / ".git")), None)
    if top is None:
        return None
    bare = Repo(root, top)
    return Repo(root, top, _without_filters(bare.run("config", "--list", "--name-only", "-z")))


def _without_filters(names: bytes) -> dict[str, str]:
    """Return settings that disable the repository's filters, which would run programs."""
    found = {name for name in _names(names) if re.match(r"(?s)filter\..*\.(clean|smudge|process|required)$", name)}
    return {name: "false" if name.endswith(".required") else "" for name in found}


def _environment(config: Mapping[str, str]) -> dict[str, str]:
    """Return the environment for git, with only our own GIT_* variables.

    Configuration goes by environment because a setting's name may contain an equals sign."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    ours = {
        "LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0", "GIT_NO_LAZY_FETCH": "1", "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_ALLOW_PROTOCOL": "none", "GIT_ATTR_NOSYSTEM": "1", "GIT_CONFIG_COUNT": str(len(config)),
    }  # fmt: skip
    for n, (name, value) in enumerate(config.items()):
        ours |= {f"GIT_CONFIG_KEY_{n}": name, f"GIT_CONFIG_VALUE_{n}": value}
    return kept | ours


def _run(argv: Sequence[str], folder: Path, env: Mapping[str, str], given: bytes, most: int) -> bytes:
    with tempfile.TemporaryFile() as fed, tempfile.TemporaryFile() as told:
        fed.write(given)
        fed.seek(0)
        try:
            # A new process group, so that children of git are killed with it.
            process = subprocess.Popen(
                argv, cwd=folder, env=env, stdin=fed, stdout=subprocess.PIPE, stderr=told, start_new_session=True
            )
        except (OSError, ValueError) as error:
            raise GitFailed(f"git cannot be started ({_reason(error)}): install it, or name fewer files") from error
        out, late = _heard(process, most)
        if late:
            raise UsageError(f"git took longer than {SECONDS:.0f} s: name a smaller target")
        if len(out) > most:
            raise TooMuch(f"git output is over {most // 1_000_000} MB: name a smaller target")
        if process.returncode:
            raise GitFailed(f"git failed: {_first_line(told)}")
        return out


def _heard(process: subprocess.Popen[bytes], most: int) -> tuple[bytes, bool]:
    late = threading.Event()

    def stop() -> None:
        late.set()
        _end(process)

    clock = threading.Timer(SECONDS, stop)
    clock.start()
    try:
        assert process.stdout
        with process.stdout as stream:
            out = stream.read(most + 1)
        if len(out) > most:
            _end(process)
        process.wait()
    finally:
        clock.cancel()
        if process.poll() is None:
            _end(process)
    return out, late.is_set()


def _end(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)


def _reason(error: Exception) -> str:
    return (error.strerror or "unknown") if isinstance(error, OSError) else "invalid argument"


def _first_line(told: IO[bytes]) -> str:
    told.seek(0)
    lines = told.read(4000).decode("utf-8", "replace").splitlines() or ["no reason given"]
    return re.sub(r"[\x00-\x1f\x7f-\x9f]", " ", scrub(lines[0]))[:200]


def _lines(oids: Sequence[str]) -> bytes:
    return "".join(f"{oid}\n" for oid in oids).encode()


def _names(told: bytes) -> list[str]:
    return [os.fsdecode(name) for name in told.split(b"\0") if name]


def _changes(raw: bytes) -> Iterator[Change]:
    parts = iter(raw.split(b"\0"))
    for head in parts:
        if not head:
            continue
        _, mode, _, oid, status = head.decode("ascii", "replace").split()
        old = path = os.fsdecode(next(parts))
        if status[0] in "RC":
            path = os.fsdecode(next(parts))
        yield Change(status[0], old, path, mode, oid)


def sections_of(patch: str) -> list[str]:
    """Split a patch at each "diff --git" line. Lines inside a file start with a marker, so they cannot match."""
    starts = [found.start() for found in re.finditer(r"^diff --git ", patch, re.MULTILINE)]
    return [patch[start:end] for start, end in pairwise([*starts, len(patch)])]
