"""File locks for runs. The kernel releases a lock when its process dies, also after kill -9."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

LOOKS = 5  # attempts: `is_owned` in another process holds the lock for a moment
LOOK = 0.01  # seconds between attempts


@contextmanager
def owning(path: Path) -> Iterator[bool]:
    """Hold the lock inside the block; yield whether it was acquired."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        yield _locks(handle, LOOKS)
    finally:
        os.close(handle)


def is_owned(path: Path) -> bool:
    """Return whether a process holds the lock."""
    try:
        handle = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        return False
    try:
        return not _locks(handle)
    finally:
        os.close(handle)


def _locks(handle: int, tries: int = 1) -> bool:
    for left in range(tries - 1, -1, -1):
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if left:
                time.sleep(LOOK)
    return False
