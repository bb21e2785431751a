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
from council.packet.files import format_path, is_lock_file, is_private, match_glob
from council.packet.git import Change, Repo
from council.types import Skipped

RECENT_COMMITS = 3
MAX_RECENT_FILES = 20
NO_CHANGES = "no changes to review"
OUTSIDE_ROOT = "outside the folder council was started in"
MAX_OUTSIDE_LISTED = 20  # files listed by name; the rest are counted
NON_FILE_MODES = ("120000", "160000")  # git modes of links and submodules


class WantedFile(NamedTuple):
    """A selected file; `oid` is its git blob if the content does not come from the work tree."""

    path: str
    named: bool = False
    oid: str = ""
    old_path: str = ""  # name before a rename; its contents are still secret if this name was


@dataclass(frozen=True, slots=True)
class Selection:
    """Selected material, before the gate checks it."""

    target: str = ""
    files: tuple[WantedFile, ...] = ()
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


def require_repo(root: Path, what: str) -> Repo:
    repo = git.find_repo(root)
    if repo is None:
        raise UsageError(
            f'"{what}" needs a git repository, but this folder is not in one: name files or a folder instead'
        )
    return repo


def _select_differences(repo: Repo, *sides: str, limit: int | None = None) -> Selection:
    """Return the files that differ, as they are on the later side, with their diff."""
    # Git lists unmerged paths twice; the other entry has the content.
    differing = [change for change in repo.list_changes(*sides) if change.status != "U" and not is_private(change.path)]
    changes = differing[:limit]
    beyond = [
        Skipped(format_path(change.path), f"recent is limited to {limit} files", True)
        for change in differing[len(changes) :]
    ]
    files = [
        WantedFile(change.path, oid=_blob_id(change), old_path=change.old_path)
        for change in changes
        if _has_content(change)
    ]
    outside = _skip_outside(
        repo, [change.path for change in _list_repo_changes(repo, sides) if change.mode not in NON_FILE_MODES]
    )
    note = "" if differing or outside else NO_CHANGES
    return Selection("", tuple(files), tuple(changes), sides, repo, skipped=(*beyond, *outside), note=note)


def _list_repo_changes(repo: Repo, sides: Sequence[str]) -> list[Change]:
    """Return the changes in the whole repository, if only a folder of it can be shown."""
    return repo.from_top().list_changes(*sides) if repo.root != repo.top else []


def _skip_outside(repo: Repo, paths: Sequence[str]) -> list[Skipped]:
    """Return a Skipped row for each changed file outside the folder."""
    here = f"{repo.root.relative_to(repo.top).as_posix()}/"
    outside = dict.fromkeys(path for path in paths if not path.startswith(here) and not is_private(path))
    names = [format_path(os.path.relpath(repo.top / path, repo.root)) for path in outside if not is_lock_file(path)]
    more = len(names) - MAX_OUTSIDE_LISTED
    overflow = [Skipped(f"{more:,} more files", OUTSIDE_ROOT, True)] if more > 0 else []
    return [*(Skipped(path, OUTSIDE_ROOT, True) for path in names[:MAX_OUTSIDE_LISTED]), *overflow]


def _blob_id(change: Change) -> str:
    return "" if set(change.oid) == {"0"} else change.oid


def _has_content(change: Change) -> bool:
    return not change.is_deleted and change.mode not in NON_FILE_MODES


def select_recent(repo: Repo) -> Selection:
    commits = repo.list_commits(RECENT_COMMITS + 1)
    if len(commits) > RECENT_COMMITS:
        start = commits[RECENT_COMMITS]
    else:
        # A shallow clone has unknown history before its oldest commit, so compare with that commit.
        # Otherwise, or if there is only one commit, compare with the empty tree.
        start = commits[-1] if len(commits) > 1 and repo.is_shallow() else repo.empty_tree()
    return _select_differences(repo, start, limit=MAX_RECENT_FILES)


def select_staged(repo: Repo) -> Selection:
    return _select_differences(repo, "--cached", *(() if repo.list_commits(1) else (repo.empty_tree(),)))


def select_range(repo: Repo, span: re.Match[str]) -> Selection:
    start, end = (repo.resolve_commit(span[side] or "HEAD") for side in ("start", "end"))
    if span["dots"] == "...":
        start = repo.merge_base(start, end) or start
    return _select_differences(repo, start, end)


def select_since(repo: Repo, base: str) -> Selection:
    """Return the work tree's changes since its merge base with `base`."""
    commit = repo.resolve_commit(base)
    return _add_untracked(_select_differences(repo, repo.merge_base(commit, "HEAD") or commit))


def select_work_tree(root: Path) -> Selection:
    repo = git.find_repo(root)
    if repo is None:
        return Selection(note=NO_CHANGES)
    return _add_untracked(_select_differences(repo, *(("HEAD",) if repo.list_commits(1) else (repo.empty_tree(),))))


def _add_untracked(selection: Selection) -> Selection:
    assert selection.repo
    repo = selection.repo
    new = [WantedFile(path) for path in repo.list_untracked() if not is_private(path)]
    outside = _skip_outside(repo, repo.from_top().list_untracked()) if repo.root != repo.top else []
    note = "" if new or outside else selection.note
    return replace(selection, files=(*selection.files, *new), skipped=(*selection.skipped, *outside), note=note)


def filter_paths(selection: Selection, paths: Sequence[str]) -> Selection:
    """Return the changes below the named paths, or all of them if no paths are named."""
    if not paths:
        return selection
    files = tuple(file for file in selection.files if _is_below(file.path, paths))
    changes = tuple(change for change in selection.changes if _is_below(change.path, paths))
    note = selection.note if files or changes else NO_CHANGES
    return replace(selection, files=files, changes=changes, skipped=(), note=note)


def _is_below(path: str, places: Sequence[str]) -> bool:
    return any(
        place == "." or path == place or path.startswith(f"{place.rstrip('/')}/") or match_glob(place, [path])
        for place in places
    )
