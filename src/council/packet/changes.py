"""Selection of git changes: since a commit, between two commits, in the index or in the work tree."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from council.errors import UsageError
from council.packet import git
from council.packet.git import Change, Repo
from council.packet.names import is_lock, is_private, shown
from council.packet.trees import globbed
from council.types import Skipped

RECENT_COMMITS = 3
RECENT_FILES = 20
NO_CHANGES = "no changes to review"
OUTSIDE = "outside the folder council was started in"
OUTSIDE_TOLD = 20  # files listed by name; the rest are counted
NO_FILE = ("120000", "160000")  # git modes of links and submodules


class Wanted(NamedTuple):
    """A selected file; `oid` is its git blob if the content does not come from the work tree."""

    path: str
    named: bool = False
    oid: str = ""
    old: str = ""  # name before a rename; its contents are still secret if this name was


@dataclass(frozen=True, slots=True)
class Selection:
    """Selected material, before the gate checks it."""

    target: str = ""
    files: tuple[Wanted, ...] = ()
    changes: tuple[Change, ...] = ()
    sides: tuple[str, ...] = ()  # the two sides of the diff, as git arguments
    repo: Repo | None = None
    stdin: str | None = None
    matched: tuple[str, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    note: str = ""

    @property
    def empty(self) -> bool:
        return not (self.files or self.changes or self.skipped or self.stdin is not None)


def repo_of(root: Path, what: str) -> Repo:
    repo = git.find(root)
    if repo is None:
        raise UsageError(
            f'"{what}" needs a git repository, but this folder is not in one: name files or a folder instead'
        )
    return repo


def _differing(repo: Repo, *sides: str, most: int | None = None) -> Selection:
    """Return the files that differ, as they are on the later side, with their diff."""
    # Git lists unmerged paths twice; the other entry has the content.
    found = [change for change in repo.changes(*sides) if change.status != "U" and not is_private(change.path)]
    changes = found[:most]
    beyond = [
        Skipped(shown(change.path), f"recent is limited to {most} files", True) for change in found[len(changes) :]
    ]
    files = [Wanted(change.path, oid=_oid(change), old=change.old) for change in changes if _has_content(change)]
    outside = _outside(repo, [change.path for change in _elsewhere(repo, sides) if change.mode not in NO_FILE])
    note = "" if found or outside else NO_CHANGES
    return Selection("", tuple(files), tuple(changes), sides, repo, skipped=(*beyond, *outside), note=note)


def _elsewhere(repo: Repo, sides: Sequence[str]) -> list[Change]:
    """Return the changes in the whole repository, if only a folder of it can be shown."""
    return repo.whole().changes(*sides) if repo.root != repo.top else []


def _outside(repo: Repo, paths: Sequence[str]) -> list[Skipped]:
    """Return a Skipped row for each changed file outside the folder."""
    here = f"{repo.root.relative_to(repo.top).as_posix()}/"
    beside = dict.fromkeys(path for path in paths if not path.startswith(here) and not is_private(path))
    told = [shown(os.path.relpath(repo.top / path, repo.root)) for path in beside if not is_lock(path)]
    more = len(told) - OUTSIDE_TOLD
    rest = [Skipped(f"{more:,} more files", OUTSIDE, True)] if more > 0 else []
    return [*(Skipped(path, OUTSIDE, True) for path in told[:OUTSIDE_TOLD]), *rest]


def _oid(change: Change) -> str:
    return "" if set(change.oid) == {"0"} else change.oid


def _has_content(change: Change) -> bool:
    return not change.gone and change.mode not in NO_FILE


def recent(repo: Repo) -> Selection:
    commits = repo.line(RECENT_COMMITS + 1)
    if len(commits) > RECENT_COMMITS:
        start = commits[RECENT_COMMITS]
    else:
        # A shallow clone has unknown history before its oldest commit, so compare with that commit.
        # Otherwise, or if there is only one commit, compare with the empty tree.
        start = commits[-1] if len(commits) > 1 and repo.shallow() else repo.nothing()
    return _differing(repo, start, most=RECENT_FILES)


def staged(repo: Repo) -> Selection:
    return _differing(repo, "--cached", *(() if repo.line(1) else (repo.nothing(),)))


def between(repo: Repo, span: re.Match[str]) -> Selection:
    one, other = (repo.commit(span[side] or "HEAD") for side in ("one", "other"))
    if span["dots"] == "...":
        one = repo.merge_base(one, other) or one
    return _differing(repo, one, other)


def since(repo: Repo, base: str) -> Selection:
    """Return the work tree's changes since its merge base with `base`."""
    commit = repo.commit(base)
    return _with_new_files(_differing(repo, repo.merge_base(commit, "HEAD") or commit))


def work_tree(root: Path) -> Selection:
    repo = git.find(root)
    if repo is None:
        return Selection(note=NO_CHANGES)
    return _with_new_files(_differing(repo, *(("HEAD",) if repo.line(1) else (repo.nothing(),))))


def _with_new_files(selection: Selection) -> Selection:
    assert selection.repo
    repo = selection.repo
    new = [Wanted(path) for path in repo.untracked() if not is_private(path)]
    beside = _outside(repo, repo.whole().untracked()) if repo.root != repo.top else []
    note = "" if new or beside else selection.note
    return replace(selection, files=(*selection.files, *new), skipped=(*selection.skipped, *beside), note=note)


def within(selection: Selection, paths: Sequence[str]) -> Selection:
    """Return the changes below the named paths, or all of them if no paths are named."""
    if not paths:
        return selection
    files = tuple(wanted for wanted in selection.files if _below(wanted.path, paths))
    changes = tuple(change for change in selection.changes if _below(change.path, paths))
    note = selection.note if files or changes else NO_CHANGES
    return replace(selection, files=files, changes=changes, skipped=(), note=note)


def _below(path: str, places: Sequence[str]) -> bool:
    return any(
        place == "." or path == place or path.startswith(f"{place.rstrip('/')}/") or globbed(place, [path])
        for place in places
    )
