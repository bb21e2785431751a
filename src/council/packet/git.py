"""Safe git calls: no repository can make git run a program, read outside the work tree or write a file.

A repository's configuration is as untrusted as its contents, so every setting that names a program is overridden.
"""

from __future__ import annotations

import contextlib
import os
import re
import selectors
import signal
import subprocess
import tempfile
import threading
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import IO, NamedTuple

from council.errors import UsageError
from council.packet.secret_filter import redact_text

GIT_TIMEOUT_S = 30.0
MAX_OUTPUT_BYTES = 16_000_000  # bytes of output
STREAM_BLOCK_BYTES = 65_536
PINNED_CONFIG = {  # what no option of the calls decides
    "core.fsmonitor": "false",
    "core.hooksPath": os.devnull,
    "core.sshCommand": "false",
    "core.askPass": "false",
    "core.quotePath": "true",
    "core.attributesFile": os.devnull,
    "core.bare": "false",
    "core.alternateRefsCommand": "false",
    "core.untrackedCache": "false",
    "core.gitProxy": "false",
    "credential.helper": "",
    "diff.orderFile": os.devnull,
    "diff.autoRefreshIndex": "true",
    "protocol.allow": "never",
    "log.showSignature": "false",
    "gc.auto": "0",
}
DIFF_FLAGS = (
    "--no-ext-diff",
    "--no-textconv",
    "--no-color",
    "--ignore-submodules=dirty",
    "--submodule=short",
    "--find-renames",
    "--src-prefix=a/",
    "--dst-prefix=b/",
    "--relative",
    "--diff-algorithm=histogram",
)


class GitFailed(UsageError):
    """Git failed or could not be started."""


class OutputTooLarge(UsageError):
    """The output of git exceeds the limit."""


class GitTimedOut(UsageError):
    """Git took too long."""


MAX_COMMITS = 50
SUBMODULE_MODE = "160000"
FILE_MODES = ("100644", "100755")
NOTHING_FOUND = 1  # exit code of git grep
MAX_SEARCH_BYTES = 4_000_000
SEARCH_FLAGS = (
    "--no-color",
    "--no-textconv",
    "--no-column",
    "--no-full-name",
    "--no-recurse-submodules",
    "--no-heading",
    "--no-break",
    "--line-number",
    "--null",
    "--only-matching",
    "--word-regexp",
    "--extended-regexp",
    "-I",
)
SEARCH_ROW = re.compile(rb"([^\0]+)\0(\d+)\0([^\0\n]*)\n")


class Match(NamedTuple):
    """One match of a search, with the words that matched."""

    path: str
    line: int
    text: str


class Change(NamedTuple):
    """One changed file: old path, new path, and its git blob if it has one. The blob of a submodule is its commit."""

    status: str
    old_path: str
    path: str
    mode: str
    oid: str
    old_mode: str = ""
    old_oid: str = ""

    @property
    def is_deleted(self) -> bool:
        return self.status == "D"

    @property
    def is_submodule(self) -> bool:
        return SUBMODULE_MODE in (self.mode, self.old_mode)


@dataclass(frozen=True, slots=True)
class Repo:
    """A work tree and a folder in it; paths are relative to that folder. A bare repository has no work tree."""

    root: Path
    top: Path
    overrides: Mapping[str, str] = field(default_factory=dict)
    is_bare: bool = False

    def run(self, *args: str, stdin: bytes = b"", max_bytes: int | None = None, is_search: bool = False) -> bytes:
        """Return the output of git.

        A search may find nothing, and only the first `max_bytes` of its output are read.
        """
        argv, env = self._build_call(args)
        return _run_git(argv, self.root, env, stdin, max_bytes or MAX_OUTPUT_BYTES, is_search=is_search)

    def stream(self, *args: str) -> Generator[bytes, None, None]:
        """Yield the parts of git's output between NUL bytes as they arrive. Close the iterator to end git early."""
        argv, env = self._build_call(args)
        return _stream_git(argv, self.root, env)

    def _build_call(self, args: Sequence[str]) -> tuple[list[str], dict[str, str]]:
        places = [f"--git-dir={self.root}"] if self.is_bare else []
        argv = ["git", "--no-pager", "--no-optional-locks", "--literal-pathspecs", *places, f"--work-tree={self.top}"]
        return [*argv, *args], _build_environment({**PINNED_CONFIG, **self.overrides})

    def resolve_commit(self, ref: str) -> str:
        """Return the id of a commit, or raise UsageError. A ref that looks like an option is rejected."""
        if re.match(r"-|$", ref) or re.search(r"[\s\0]", ref):
            raise UsageError(f'"{redact_text(ref)[:80]}" is not a revision: name a branch, a tag or a commit')
        try:
            commit = self.run("rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}")
        except GitFailed as error:
            raise UsageError(f'unknown revision "{redact_text(ref)[:80]}": name a branch, a tag or a commit') from error
        return commit.decode("ascii", "replace").strip()

    def list_commits(self, limit: int) -> list[str]:
        """Return the newest commits along the first parent, or [] if there are none."""
        try:
            listed = self.run("rev-list", "--first-parent", f"--max-count={limit}", "HEAD", "--")
        except GitFailed:
            return []
        return listed.decode("ascii", "replace").split()

    def list_messages(self, *revisions: str) -> list[str]:
        """Return the id, the subject and the body of each commit that changed the folder, newest first."""
        args = ("--no-decorate", "--no-notes", "-z", "--format=%h %s%n%b", f"--max-count={MAX_COMMITS}")
        try:
            listed = self.run("log", *args, *revisions, "--", ".")
        except GitFailed:
            return []
        return [text.strip() for text in listed.decode("utf-8", "replace").split("\0") if text.strip()]

    def merge_base(self, first: str, second: str) -> str | None:
        try:
            return self.run("merge-base", first, second).decode("ascii", "replace").split()[0]
        except (GitFailed, IndexError):
            return None

    def is_shallow(self) -> bool:
        return self.run("rev-parse", "--is-shallow-repository").strip() == b"true"

    def empty_tree(self) -> str:
        """Return the id of the empty tree in this repository's hash format."""
        return self.run("hash-object", "-t", "tree", "--stdin").decode("ascii", "replace").strip()

    def list_changes(self, *sides: str) -> list[Change]:
        """Return the changes between two sides: ids of commits or trees, `--cached`, or nothing for the work tree."""
        return list(_parse_changes(self.run("diff", "--raw", "-z", "--no-abbrev", *DIFF_FLAGS, *sides, "--")))

    def diff(self, sides: Sequence[str], changes: Sequence[Change]) -> list[str]:
        """Return the diff of each change, in order."""
        if not changes:
            return []
        sections = split_patch(self._run_patch(sides, changes))
        return sections if len(sections) == len(changes) else [self._run_patch(sides, [change]) for change in changes]

    def _run_patch(self, sides: Sequence[str], changes: Sequence[Change]) -> str:
        """Return the diff of these changes, or "" if it is too large."""
        paths = dict.fromkeys(path for change in changes for path in (change.old_path, change.path))
        args = ("diff", "--patch", "--unified=3", "--inter-hunk-context=0", *DIFF_FLAGS, *sides, "--", *paths)
        try:
            return self.run(*args).decode("utf-8", "surrogateescape")  # files may have different encodings
        except OutputTooLarge:
            return ""

    def list_files(self, folder: str = "") -> list[str]:
        """Return tracked files and untracked files that are not ignored."""
        args = ("ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", folder or ".")
        return sorted(set(_split_names(self.run(*args))))

    def from_top(self) -> Repo:
        """Return the same repository with paths relative to its top."""
        return Repo(self.top, self.top, self.overrides, self.is_bare)

    def list_untracked(self) -> list[str]:
        return sorted(_split_names(self.run("ls-files", "-z", "--others", "--exclude-standard", "--", ".")))

    def search(self, pattern: str, sides: Sequence[str]) -> list[Match]:
        """Return where a pattern matches whole words in the files of the later side of a diff."""
        side = later_side(sides)
        where = ("--cached",) if side == INDEX else ("--untracked",) if side == WORK_TREE else ()
        what = (side,) if side not in (INDEX, WORK_TREE) else ()
        args = ("grep", *SEARCH_FLAGS, *where, "-e", pattern, *what, "--", ".")
        found = SEARCH_ROW.findall(self.run(*args, is_search=True, max_bytes=MAX_SEARCH_BYTES))
        start = len(os.fsencode(side)) + 1 if what else 0  # a path of a commit follows its id and a colon
        return [
            Match(os.fsdecode(path[start:]), int(line), text.decode("ascii", "replace")) for path, line, text in found
        ]

    def find_blobs(self, sides: Sequence[str], paths: Sequence[str]) -> dict[str, str]:
        """Return the blob of each regular file of the index or of the later commit."""
        side = later_side(sides)
        if side == INDEX:
            listed = self.run("ls-files", "--stage", "-z", "--", *paths)
        else:
            listed = self.run("ls-tree", "-z", side, "--", *paths)
        rows = [(head.split(), name) for head, _, name in (row.partition(b"\t") for row in listed.split(b"\0")) if name]
        at = 1 if side == INDEX else 2  # the index has no type, a tree has: mode, type, id
        return {os.fsdecode(name): head[at].decode() for head, name in rows if head[0].decode() in FILE_MODES}

    def read_blobs(self, oids: Sequence[str], max_bytes: int) -> dict[str, bytes]:
        """Return contents by id; a blob over `max_bytes` becomes a filler of one byte more."""
        sizes = self.run("cat-file", "--batch-check=%(objectname) %(objecttype) %(objectsize)", stdin=_join_lines(oids))
        rows = [row.split() for row in sizes.decode("ascii", "replace").splitlines()]
        small = [row[0] for row in rows if len(row) == 3 and row[1] == "blob" and int(row[2]) <= max_bytes]
        large = {row[0]: b"?" * (max_bytes + 1) for row in rows if len(row) == 3 and int(row[2]) > max_bytes}
        return {**large, **self._read_contents(small, max_bytes)}

    def _read_contents(self, oids: Sequence[str], max_bytes: int) -> dict[str, bytes]:
        stdin = _join_lines(oids)
        output = self.run("cat-file", "--batch", stdin=stdin, max_bytes=len(oids) * (max_bytes + 200)) if oids else b""
        contents, at = {}, 0
        while at < len(output):
            end = output.index(b"\n", at)
            oid, _, size = output[at:end].decode("ascii", "replace").split()
            contents[oid] = output[end + 1 : end + 1 + int(size)]
            at = end + 2 + int(size)
        return contents


WORK_TREE, INDEX = "", "--cached"


def later_side(sides: Sequence[str]) -> str:
    """Return the later side of a diff: a commit, `INDEX` or `WORK_TREE`."""
    if INDEX in sides:
        return INDEX
    return sides[1] if len(sides) > 1 else WORK_TREE


def find_repo(root: Path) -> Repo | None:
    """Return the repository that contains a folder, or None.

    Not asked of git, so that no configuration can move its work tree.
    """
    root = root.resolve()
    top = find_top(root)
    if top is None:
        return None
    bare = Repo(root, top)
    return Repo(root, top, _disable_filters(bare.run("config", "--list", "--name-only", "-z")))


def find_history(root: Path) -> Repo | None:
    """Return the repository of a folder with paths relative to its top, or None. A bare repository counts too."""
    root = root.resolve()
    is_bare = not os.path.lexists(root / ".git") and all((root / name).is_dir() for name in ("objects", "refs"))
    if is_bare and (root / "HEAD").is_file():
        bare = Repo(root, root, is_bare=True)
        return replace(bare, overrides=_disable_filters(bare.run("config", "--list", "--name-only", "-z")))
    repo = find_repo(root)
    return repo.from_top() if repo else None


def find_top(root: Path) -> Path | None:
    """Return the top folder of the repository that contains a folder, or None."""
    return next((folder for folder in (root, *root.parents) if os.path.lexists(folder / ".git")), None)


def find_prefix(root: Path) -> str:
    """Return the path of a folder in its repository, with a slash at the end; empty at the top or outside of one."""
    root = root.resolve()
    top = find_top(root)
    return f"{root.relative_to(top).as_posix()}/" if top and top != root else ""


def _disable_filters(names: bytes) -> dict[str, str]:
    """Return settings that disable the repository's filters, which would run programs."""
    filters = {
        name for name in _split_names(names) if re.match(r"(?s)filter\..*\.(clean|smudge|process|required)$", name)
    }
    return {name: "false" if name.endswith(".required") else "" for name in filters}


def _build_environment(config: Mapping[str, str]) -> dict[str, str]:
    """Return the environment for git with our GIT_* variables alone. It has the settings: a name may contain a `=`."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    ours = {
        "LC_ALL": "C",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_ALLOW_PROTOCOL": "none",
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_CONFIG_COUNT": str(len(config)),
    }
    for n, (name, value) in enumerate(config.items()):
        ours |= {f"GIT_CONFIG_KEY_{n}": name, f"GIT_CONFIG_VALUE_{n}": value}
    return inherited | ours


def _run_git(
    argv: Sequence[str], folder: Path, env: Mapping[str, str], stdin: bytes, max_bytes: int, *, is_search: bool
) -> bytes:
    with tempfile.TemporaryFile() as stdin_file, tempfile.TemporaryFile() as stderr_file:
        stdin_file.write(stdin)
        stdin_file.seek(0)
        process = _start_git(argv, folder, env, stdin_file, stderr_file)
        out, late = _read_output(process, max_bytes)
        if late:
            raise GitTimedOut(f"git took longer than {GIT_TIMEOUT_S:.0f} s: name a smaller target")
        if is_search and (len(out) > max_bytes or process.returncode == NOTHING_FOUND):
            return out[:max_bytes]
        if len(out) > max_bytes:
            raise OutputTooLarge(f"git output is over {max_bytes // 1_000_000} MB: name a smaller target")
        if process.returncode:
            raise GitFailed(f"git failed: {_read_first_line(stderr_file)}")
        return out


def _stream_git(argv: Sequence[str], folder: Path, env: Mapping[str, str]) -> Generator[bytes, None, None]:
    with tempfile.TemporaryFile() as stderr_file:
        process = _start_git(argv, folder, env, subprocess.DEVNULL, stderr_file)
        try:
            assert process.stdout
            with process.stdout as stream:
                yield from _split_stream(stream)
            if process.wait():
                raise GitFailed(f"git failed: {_read_first_line(stderr_file)}")
        finally:
            if process.poll() is None:
                _kill(process)
                process.wait()


def _split_stream(stream: IO[bytes]) -> Iterator[bytes]:
    """Yield the parts of a stream between NUL bytes. Only the time that git needs for the next bytes is limited."""
    rest = b""
    with selectors.DefaultSelector() as selector:
        selector.register(stream, selectors.EVENT_READ)
        while True:
            if not selector.select(GIT_TIMEOUT_S):
                raise GitTimedOut(f"git took longer than {GIT_TIMEOUT_S:.0f} s: name a smaller target")
            block = os.read(stream.fileno(), STREAM_BLOCK_BYTES)
            if not block:
                break
            *parts, rest = (rest + block).split(b"\0")
            if len(rest) > MAX_OUTPUT_BYTES:
                raise OutputTooLarge(f"git output is over {MAX_OUTPUT_BYTES // 1_000_000} MB: name a smaller target")
            yield from parts
    if rest:
        yield rest


def _start_git(
    argv: Sequence[str], folder: Path, env: Mapping[str, str], stdin: IO[bytes] | int, stderr: IO[bytes]
) -> subprocess.Popen[bytes]:
    try:
        # A new process group, so that children of git are killed with it.
        return subprocess.Popen(
            argv, cwd=folder, env=env, stdin=stdin, stdout=subprocess.PIPE, stderr=stderr, start_new_session=True
        )
    except (OSError, ValueError) as error:
        why = (error.strerror or "unknown") if isinstance(error, OSError) else "invalid argument"
        raise GitFailed(f"git cannot be started ({why}): install it, or name fewer files") from error


def _read_output(process: subprocess.Popen[bytes], max_bytes: int) -> tuple[bytes, bool]:
    late = threading.Event()

    def stop() -> None:
        late.set()
        _kill(process)

    clock = threading.Timer(GIT_TIMEOUT_S, stop)
    clock.start()
    try:
        assert process.stdout
        with process.stdout as stream:
            out = stream.read(max_bytes + 1)
        if len(out) > max_bytes:
            _kill(process)
        process.wait()
    finally:
        clock.cancel()
        if process.poll() is None:
            _kill(process)
    return out, late.is_set()


def _kill(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)


def _read_first_line(stderr: IO[bytes]) -> str:
    stderr.seek(0)
    lines = stderr.read(4000).decode("utf-8", "replace").splitlines() or ["no reason given"]
    return re.sub(r"[\x00-\x1f\x7f-\x9f]", " ", redact_text(lines[0]))[:200]


def _join_lines(oids: Sequence[str]) -> bytes:
    return "".join(f"{oid}\n" for oid in oids).encode()


def _split_names(output: bytes) -> list[str]:
    return [os.fsdecode(name) for name in output.split(b"\0") if name]


def _parse_changes(raw: bytes) -> Iterator[Change]:
    parts = iter(raw.split(b"\0"))
    for head in parts:
        if not head:
            continue
        old_mode, mode, old_oid, oid, status = head.decode("ascii", "replace").split()
        old = path = os.fsdecode(next(parts))
        if status[0] in "RC":
            path = os.fsdecode(next(parts))
        yield Change(status[0], old, path, mode, oid, old_mode.lstrip(":"), old_oid)


def split_patch(patch: str) -> list[str]:
    """Split a patch at each "diff --git" line. Lines inside a file start with a marker, so they cannot match."""
    starts = [match.start() for match in re.finditer(r"^diff --git ", patch, re.MULTILINE)]
    return [patch[start:end] for start, end in pairwise([*starts, len(patch)])]
