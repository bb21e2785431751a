"""File locks for runs. The kernel releases a lock when its process dies, also after kill -9."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

LOCK_ATTEMPTS = 5  # attempts: `is_owned` in another process holds the lock for a moment
LOCK_RETRY_S = 0.01  # seconds between attempts


@contextmanager
def hold_lock(path: Path) -> Iterator[bool]:
    """Hold the lock inside the block; yield whether it was acquired."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        yield _try_lock(handle, LOCK_ATTEMPTS)
    finally:
        os.close(handle)


def is_locked(path: Path) -> bool:
    """Return whether a process holds the lock."""
    try:
        handle = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        return False
    try:
        return not _try_lock(handle)
    finally:
        os.close(handle)


def _try_lock(handle: int, tries: int = 1) -> bool:
    for left in range(tries - 1, -1, -1):
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if left:
                time.sleep(LOCK_RETRY_S)
    return False
