"""Folders and files that Council creates, and the repair of permissions.

What Council keeps for its user is private: folders 0700, files 0600, whatever the umask. What is created in a place
that the user named, such as a folder for plots, follows the umask, but other users can never write to it. All other
modules create folders and files through these functions; temporary ones by `tempfile`, which creates them for this user
only.
"""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import IO, Any

StrPath = str | os.PathLike[str]
PRIVATE_FOLDER, PRIVATE_FILE = 0o700, 0o600
NAMED_FOLDER, NAMED_FILE = 0o775, 0o664  # before the umask
OTHER_USERS = 0o077
NO_PERMISSIONS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS)
# Names in Council's folders: what it creates, and what else may be there. The user writes the files for configuration.
CREATED_NAMES = (
    "council.db*",
    "repair-*",
    "reports",
    "locks",
    "servers",
    "evals",
    "uploads",
    "worker.*",
    "chat_history",
    "keys.json",
    "trust.json",
    "model_lists.json",
    "agent_help.json",
    "notices.json",
    "*.gguf",
    "*.gguf.*",
    ".fetch-*",
)
# In a folder that the user named and that has other content too: names that only Council uses, and reports.
UNMISTAKABLE_NAMES = ("council.db", "council.db-*", "council.db.damaged*", "worker.log", "worker.log.1", "worker.lock")
DATABASE = "council.db"
REPORT_FOLDER, REPORT_NAME = "reports", "[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]-*.md"
OTHER_NAMES = ("config.toml", "presets", "rosters", "cache", "lost+found", ".DS_Store")


# Private


def make_private_folder(folder: Path) -> None:
    """Create a folder, and the missing ones above it, for this user only. One that exists stays as it is."""
    _make_folder(folder, PRIVATE_FOLDER)


def open_private_handle(path: StrPath, flags: int) -> int:
    """Open a file, which is created for this user only. One that exists keeps its permissions."""
    return _open_private(path, flags | os.O_CREAT | os.O_CLOEXEC)


def open_private_file(path: StrPath, mode: str = "w", **text: Any) -> IO[Any]:
    """Open a file like `open(path, mode)`, which is created for this user only. Modes: w, wb, a, x."""
    return open(path, mode, opener=_open_private, **text)


def make_private_file(path: Path) -> None:
    """Take the permissions of a file from other users. A file system without permissions is no error."""
    try:
        path.chmod(PRIVATE_FILE)
    except OSError as error:
        if error.errno not in NO_PERMISSIONS or path.stat().st_uid != os.getuid():
            raise


def copy_private_file(source: StrPath, target: StrPath) -> None:
    """Copy the content of a file."""
    with open(source, "rb") as old, open_private_file(target, "wb") as new:  # noqa: PTH123
        shutil.copyfileobj(old, new)


def _open_private(path: StrPath, flags: int) -> int:
    handle = os.open(path, flags, PRIVATE_FILE)
    found = os.fstat(handle)
    if found.st_size == 0 and PRIVATE_FILE & ~found.st_mode:  # it is new, and the umask takes rights from this user too
        os.fchmod(handle, PRIVATE_FILE)
    return handle


# Places that the user named


def make_named_folder(folder: Path) -> None:
    """Create a folder that the user named, and the missing ones above it, by the umask."""
    _make_folder(folder, NAMED_FOLDER)


def open_named_file(path: StrPath, mode: str = "w", **text: Any) -> IO[Any]:
    """Open a file that the user named like `open(path, mode)`. It is created by the umask."""
    return open(path, mode, opener=_named_opener, **text)


def replace_named_file(path: Path, content: bytes) -> None:
    """Write a file that the user named in one step: if that fails, the earlier one stays. It keeps its permissions."""
    draft = path.with_name(f"{path.name}.{secrets.token_hex(6)}")
    try:
        with open_named_file(draft, "xb") as file:
            with suppress(OSError):  # it is new, or the file system has no permissions
                os.fchmod(file.fileno(), stat.S_IMODE(path.stat().st_mode))
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except OSError:
        with suppress(OSError):
            draft.unlink()
        raise


def _named_opener(path: str, flags: int) -> int:
    return os.open(path, flags, NAMED_FILE)


def _make_folder(folder: Path, mode: int) -> None:
    try:
        os.mkdir(folder, mode)  # noqa: PTH102
        found = folder.stat().st_mode
        if PRIVATE_FOLDER & ~found:  # the umask takes rights from this user too
            folder.chmod(stat.S_IMODE(found) | PRIVATE_FOLDER)
    except FileNotFoundError:
        if folder.parent == folder:
            raise
        _make_folder(folder.parent, mode)
        _make_folder(folder, mode)
    except OSError:  # it exists, or the file system refuses before it looks
        if not folder.is_dir():
            raise


# Repair


@dataclass(slots=True)
class Repair:
    """What became private in one folder, and what could not."""

    folder: Path
    folders: int = 0
    files: int = 0
    failed: int = 0


def describe_changes(repairs: Sequence[Repair]) -> str:
    """Return one line for what was made private, or ""."""
    changed = [repair for repair in repairs if repair.folders or repair.files]
    counts = [(sum(one.folders for one in changed), "folder"), (sum(one.files for one in changed), "file")]
    what = " and ".join(f"{number} {noun}{'' if number == 1 else 's'}" for number, noun in counts if number)
    verb = "is" if sum(number for number, _ in counts) == 1 else "are"
    return f"other users could read what is in {_name_folders(changed)}: {what} {verb} private now" if changed else ""


def describe_failures(repairs: Sequence[Repair]) -> str:
    """Return one line for what could not be made private, or ""."""
    failed = [repair for repair in repairs if repair.failed]
    refused = "cannot be made private, because the system refuses it: other users may read it"
    return f"{_name_folders(failed)} {refused}" if failed else ""


def _name_folders(repairs: Sequence[Repair]) -> str:
    return " and ".join(f'"{repair.folder}"' for repair in repairs)


def repair_folder(folder: Path, *, is_named: bool) -> Repair:
    """Make one of Council's folders private, with what Council created in it.

    Only what belongs to this user changes, and no link is followed. If a folder that the user named contains other
    things, it keeps its own permissions, and only what has a name that only Council uses changes. A private folder
    inside is not searched, because other users cannot open it.
    """
    repair = Repair(folder)
    with suppress(OSError), _open_folder(folder) as handle:
        found = os.fstat(handle)
        if found.st_uid == os.getuid():
            _repair_content(handle, repair, is_named=is_named)
        if not found.st_mode & OTHER_USERS:  # other users could open nothing in it, so nothing is reported
            repair = Repair(folder)
    return repair


@contextmanager
def _open_folder(name: StrPath, parent: int | None = None) -> Iterator[int]:
    """Open a folder, but not through a link."""
    handle = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    try:
        yield handle
    finally:
        os.close(handle)


def _repair_content(handle: int, repair: Repair, *, is_named: bool) -> None:
    names = os.listdir(handle)
    mode = os.fstat(handle).st_mode
    has_database = DATABASE in names
    is_ours = not is_named or (
        has_database
        and not mode & stat.S_ISVTX  # a folder for all users, such as /tmp
        and len(list(_matching(names, (*CREATED_NAMES, *OTHER_NAMES)))) == len(names)
    )
    for name in _matching(names, CREATED_NAMES if is_ours else UNMISTAKABLE_NAMES):
        _repair_entry(name, handle, repair)
    if not is_ours and has_database and REPORT_FOLDER in names and _has_only_reports(handle):
        _repair_entry(REPORT_FOLDER, handle, repair)
    if is_ours and mode & OTHER_USERS:
        with suppress(OSError):
            os.fchmod(handle, stat.S_IMODE(mode) & ~OTHER_USERS)
        _count_result(os.fstat(handle), repair)


def _has_only_reports(parent: int) -> bool:
    """Return whether a folder `reports` has at least one file, and only files with the names of reports."""
    names: list[str] = []
    with suppress(OSError), _open_folder(REPORT_FOLDER, parent) as handle:
        names = os.listdir(handle)  # noqa: PTH208
    return bool(names) and len(list(_matching(names, [REPORT_NAME]))) == len(names)


def _repair_entry(name: str, parent: int, repair: Repair) -> None:
    """Make a file, or a folder with all that is in it, private: the folder last, so that a crash leaves nothing out."""
    with suppress(FileNotFoundError):  # another process has removed it
        found = os.stat(name, dir_fd=parent, follow_symlinks=False)
        is_only_name = stat.S_ISREG(found.st_mode) and found.st_nlink == 1  # else it has a name elsewhere too
        is_plain = is_only_name or stat.S_ISDIR(found.st_mode)
        if not is_plain or found.st_uid != os.getuid() or not found.st_mode & OTHER_USERS:
            return
        if stat.S_ISDIR(found.st_mode):
            with suppress(PermissionError), _open_folder(name, parent) as handle:
                for inner in os.listdir(handle):  # noqa: PTH208
                    _repair_entry(inner, handle, repair)
        with suppress(OSError):
            _change_mode(name, parent, stat.S_IMODE(found.st_mode) & ~OTHER_USERS)
        _count_result(os.stat(name, dir_fd=parent, follow_symlinks=False), repair)


def _change_mode(name: str, parent: int, mode: int) -> None:
    """Change the permissions without following a link or opening a file: closing it releases SQLite's locks."""
    if not hasattr(os, "O_PATH"):
        os.chmod(name, mode, dir_fd=parent, follow_symlinks=False)
        return
    handle = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)  # Linux has no chmod without links
    try:
        os.chmod(f"/proc/self/fd/{handle}", mode)  # noqa: PTH101
    finally:
        os.close(handle)


def _count_result(found: os.stat_result, repair: Repair) -> None:
    if found.st_mode & OTHER_USERS:
        repair.failed += 1
    elif stat.S_ISDIR(found.st_mode):
        repair.folders += 1
    else:
        repair.files += 1


def _matching(names: Sequence[str], patterns: Sequence[str]) -> Iterator[str]:
    return (name for name in names if any(fnmatchcase(name, pattern) for pattern in patterns))
