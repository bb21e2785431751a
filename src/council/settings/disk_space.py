"""Full disks: which folder has no space left. Temporary files are often on another disk than the run store."""

from __future__ import annotations

import errno
import os
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

MIN_FREE_BYTES = 1 << 20  # a disk with less is taken for full
TEMP_VARIABLES = ("TMPDIR", "TEMP", "TMP")  # Python uses the first one that it can write to
TEMP_FOLDERS = ("/var/tmp", "/tmp")  # without these variables


def is_disk_full(folder: Path) -> bool:
    """Return whether the disk of a folder has no space left. A quota that is used up is not seen."""
    try:
        return shutil.disk_usage(folder).free < MIN_FREE_BYTES
    except OSError:
        return False


def find_full_temp_folder() -> Path | None:
    """Return the folder of temporary files whose disk is full, if there is one."""
    return next((folder for folder in _list_temp_folders() if is_disk_full(folder)), None)


def _list_temp_folders() -> Iterator[Path]:
    used = tempfile.tempdir if isinstance(tempfile.tempdir, str) else ""
    named = [os.environ.get(name) or "" for name in TEMP_VARIABLES]
    chosen = [os.environ.get("SQLITE_TMPDIR") or "", *[name for name in named if name][:1], used]
    for folder in [name for name in chosen if name] or TEMP_FOLDERS:
        if os.path.isdir(folder):  # noqa: PTH112
            yield Path(folder)


def explain_full_temp_folder(folder: Path) -> str:
    return f'the folder for temporary files "{folder}" is full: free some space there, or set TMPDIR to a folder with space'


def explain_full_disk(error: BaseException) -> str:
    """Return one line for a command that a full disk has stopped, or "" for another error."""
    is_database = isinstance(error, sqlite3.OperationalError) and "full" in str(error)  # one of temporary rows
    if not is_full_error(error) and not is_database:
        return ""
    folder = None if _is_output_full() else find_full_temp_folder()
    file = getattr(error, "filename", None)  # a failed write has none
    if folder is not None and (not isinstance(file, str) or Path(file).is_relative_to(folder)):
        return explain_full_temp_folder(folder)
    if is_database or _has_no_temp_folder(error):
        fix = "free some disk space, or set TMPDIR to a folder with space"
        return f"no folder for temporary files can be written: {fix}"
    return f"cannot write the output ({getattr(error, 'strerror', error)}): free some disk space and try again"


def is_full_error(error: BaseException) -> bool:
    """Return whether an error says that a disk is full, or that no folder for temporary files can be written."""
    return getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT) or _has_no_temp_folder(error)


def _has_no_temp_folder(error: BaseException) -> bool:
    return isinstance(error, FileNotFoundError) and "temporary directory" in str(error)


def _is_output_full() -> bool:
    """Return whether standard output is a file on a full disk."""
    try:
        handle = sys.stdout.fileno()
        disk = os.fstatvfs(handle)
        return os.path.isfile(f"/dev/fd/{handle}") and disk.f_bavail * disk.f_frsize < MIN_FREE_BYTES  # noqa: PTH113
    except (OSError, ValueError, AttributeError):
        return False
