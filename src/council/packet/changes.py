"""Selection of git changes: since a commit, between two commits, in the index or in the work tree."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from council.errors import UsageError
from council.packet import git
from council.packet.files import format_path, is_private, match_glob
from council.packet.git import Change, Repo
from council.types import Skipped

RECENT_COMMITS = 3
MAX_RECENT_FILES = 20
NO_CHANGES = "no changes to review"
NON_FILE_MODES = ("120000", git.SUBMODULE_MODE)  # git modes of links and submodules


class WantedFile(NamedTuple):
    """A selected file; `oid` is its git blob if the content does not come from the work tree."""

    path: str
    named: bool = False
    oid: str = ""
    old_path: str = ""  # name before a rename; its contents are still secret if this name was
    added: bool = False  # a new file: it is sent once, and the diff only lists it


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
    refusal: str = ""  # why a review of this selection cannot start
    remarks: tuple[str, ...] = ()
    commits: tuple[str, ...] = ()  # id, subject and body of each commit

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


def _select_differences(
    repo: Repo, *sides: str, limit: int | None = None, untracked: bool = False, commits: Sequence[str] = ()
) -> Selection:
    """Return the files that differ, as they are on the later side, with their diff."""
    # Git lists unmerged paths twice; the other entry has the content.
    differing = [change for change in repo.list_changes(*sides) if change.status != "U" and not is_private(change.path)]
    new = [path for path in repo.list_untracked() if not is_private(path)] if untracked else []
    changes, shown = differing[:limit], new[: None if limit is None else max(0, limit - len(differing))]
    beyond = [
        Skipped(format_path(path), f"recent is limited to {limit} files", True)
        for path in (*(change.path for change in differing[len(changes) :]), *new[len(shown) :])
    ]
    files = [
        WantedFile(
            change.path, oid=change.oid.strip("0") and change.oid, old_path=change.old_path, added=change.status == "A"
        )
        for change in changes
        if not change.is_deleted and change.mode not in NON_FILE_MODES
    ]
    submodules = [
        f"{format_path(change.path)} is a submodule: only its commit is shown"
        for change in changes
        if change.is_submodule
    ]
    return Selection(
        "",
        (*files, *(WantedFile(path, added=True) for path in shown)),
        tuple(changes),
        sides,
        repo,
        skipped=tuple(beyond),
        note="" if differing or new else NO_CHANGES,
        commits=tuple(commits),
        remarks=(*submodules, *_count_outside(repo, sides, untracked)),
    )


def _count_outside(repo: Repo, sides: Sequence[str], untracked: bool) -> list[str]:
    """Return a remark on the changed files outside the folder: they are out of scope."""
    if repo.root == repo.top:
        return []
    here, whole = f"{repo.root.relative_to(repo.top).as_posix()}/", repo.from_top()
    paths = [*(change.path for change in whole.list_changes(*sides)), *(whole.list_untracked() if untracked else [])]
    outside = {path for path in paths if not path.startswith(here) and not is_private(path)}
    if not outside:
        return []
    what = "1 changed file" if len(outside) == 1 else f"{len(outside):,} changed files"
    return [f"{what} outside this folder: not part of the review"]


def select_recent(repo: Repo) -> Selection:
    commits = repo.list_commits(RECENT_COMMITS + 1)
    if len(commits) > RECENT_COMMITS:
        start = commits[RECENT_COMMITS]
    else:
        # A shallow clone has unknown history before its oldest commit, so compare with that commit.
        # Otherwise, or if there is only one commit, compare with the empty tree.
        start = commits[-1] if len(commits) > 1 and repo.is_shallow() else repo.empty_tree()
    messages = repo.list_messages(f"{start}..HEAD" if start in commits else "HEAD") if commits else []
    return _select_differences(repo, start, limit=MAX_RECENT_FILES, untracked=True, commits=messages)


def select_staged(repo: Repo) -> Selection:
    return _select_differences(repo, "--cached", *(() if repo.list_commits(1) else (repo.empty_tree(),)))


def select_range(repo: Repo, span: re.Match[str]) -> Selection:
    start, end = (repo.resolve_commit(span[side] or "HEAD") for side in ("start", "end"))
    if span["dots"] == "...":
        start = repo.merge_base(start, end) or start
    return _select_differences(repo, start, end, commits=repo.list_messages(f"{start}..{end}"))


def select_since(repo: Repo, base: str) -> Selection:
    """Return the work tree's changes since its merge base with `base`."""
    commit = repo.resolve_commit(base)
    start = repo.merge_base(commit, "HEAD") or commit
    return _select_differences(repo, start, untracked=True, commits=repo.list_messages(f"{start}..HEAD"))


def select_work_tree(root: Path) -> Selection:
    repo = git.find_repo(root)
    if repo is None:
        return Selection(note=NO_CHANGES)
    return _select_differences(repo, "HEAD" if repo.list_commits(1) else repo.empty_tree(), untracked=True)


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
        place == "." or path == place or path.startswith(f"{place.rstrip('/')}/") or _matches_glob(place, path)
        for place in places
    )


def _matches_glob(pattern: str, path: str) -> bool:
    try:
        return bool(match_glob(pattern, [path]))
    except re.error:
        return False
