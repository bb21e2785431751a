"""Snapshots: a repository as it was at one commit, so that a review of the commit sees nothing that came later.

A snapshot is a small repository without branches, whose HEAD is the commit. It uses the objects of the original one.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from council.errors import UsageError
from council.evals.history.cases import Fix, HistoryCase
from council.packet import build
from council.packet.files import format_path
from council.packet.git import GitFailed, Repo, find_history, find_repo
from council.settings.private_files import make_named_folder, open_named_file
from council.types import Packet
from council.unified_diff import parse_diff

PARENT = "before"  # the tag of the commit before the reviewed one
TARGET = f"{PARENT}..HEAD"
SHA256_DIGITS = 64
MAX_FIX_FILES = 20


def require_store(repository: Path) -> Path:
    """Return the git folder with the objects of a repository, which may be bare. Raise UsageError if there is none."""
    repo = find_history(repository)
    if repo is None:
        raise UsageError(
            f'"{format_path(str(repository))}" is no git repository, nothing was sent: '
            "name a work tree or a bare repository, as in history:../project"
        )
    shared = os.fsdecode(repo.run("rev-parse", "--git-common-dir").removesuffix(b"\n"))
    return (repo.root / shared).resolve()


def write_snapshot(store: Path, case: HistoryCase, folder: Path, *, with_files: bool = False) -> None:
    """Write the snapshot of a case, with the files of its commit if seats may look them up."""
    place = folder / ".git"
    for inner in ("refs/tags", "objects/info"):
        make_named_folder(place / inner)
    is_sha256 = len(case.commit) == SHA256_DIGITS
    texts = {
        "HEAD": f"{case.commit}\n",
        f"refs/tags/{PARENT}": f"{case.parent}\n",
        "objects/info/alternates": f"{_quote_path(store / 'objects')}\n",
        "config": CONFIG_SHA256 if is_sha256 else CONFIG,
    }
    if (shallow := store / "shallow").is_file():
        texts["shallow"] = shallow.read_text(encoding="ascii")
    for name, text in texts.items():
        with open_named_file(place / name, encoding="utf-8") as file:
            file.write(text)
    if with_files:
        repo = require_snapshot(folder)
        repo.run("read-tree", "HEAD")
        repo.run("checkout-index", "--all", "--force", "--quiet")


# No link of a commit is made, so that no name leads out of the folder.
CONFIG = "[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tsymlinks = false\n"
CONFIG_SHA256 = CONFIG.replace("= 0", "= 1", 1) + "[extensions]\n\tobjectformat = sha256\n"


def _quote_path(path: Path) -> str:
    """Return a path as git reads it from the list of other stores."""
    text = str(path)
    if not text.startswith('"') and "\n" not in text:
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def require_snapshot(folder: Path) -> Repo:
    repo = find_repo(folder)
    assert repo and repo.top == folder.resolve()
    return repo


def build_packet(folder: Path) -> Packet:
    """Return the packet of a review of a snapshot. Secrets are masked, so that no old one stops an evaluation."""
    return build(TARGET, folder, task="validate", redact=True)


def list_changed_lines(folder: Path) -> dict[str, list[int]]:
    """Return the lines that the commit of a snapshot added or changed, by file."""
    repo = require_snapshot(folder)
    sides = (PARENT, "HEAD")
    changes = [change for change in repo.list_changes(*sides) if not change.is_deleted]
    sections = repo.diff(sides, changes)
    found = {change.path: _list_added(section) for change, section in zip(changes, sections, strict=True)}
    return {path: lines for path, lines in found.items() if lines}


def _list_added(section: str) -> list[int]:
    lines = [line for file in parse_diff(section) for hunk in file.hunks for line in hunk.list_lines()]
    return [line.number for line in lines if line.sign == "+"]


def read_change(folder: Path, *sides: str, paths: Sequence[str] = ()) -> str:
    """Return the diff between two commits, or of some of its files."""
    repo = require_snapshot(folder)
    changes = repo.list_changes(*sides)
    wanted = [change for change in changes if not paths or change.path in paths or change.old_path in paths]
    return "".join(repo.diff(sides, (wanted or changes)[:MAX_FIX_FILES]))


def read_fix(folder: Path, fix: Fix) -> str:
    """Return the diff of a later fix in the files whose lines it changed; "" if git does not have it."""
    try:
        return read_change(folder, f"{fix.commit}^", fix.commit, paths=[line.path for line in fix.lines])
    except GitFailed:
        return ""


def read_remote(store: Path, folder: Path) -> str:
    """Return the address of the remote `origin` as it is configured; "" if there is none."""
    repo = require_snapshot(folder)
    try:
        address = repo.run("config", "--file", str(store / "config"), "--get", "remote.origin.url")
    except GitFailed:
        return ""
    return address.decode("utf-8", "replace").strip()


def write_snapshots(
    store: Path, cases: Sequence[HistoryCase], folder: Path, *, with_files: bool = False
) -> Mapping[str, Path]:
    """Write the snapshots of cases and return their folders by the id of the case."""
    places = {case.id: (folder / case.id).resolve() for case in cases}
    for case in cases:
        write_snapshot(store, case, places[case.id], with_files=with_files)
    return places
