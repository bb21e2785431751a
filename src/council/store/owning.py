"""Who works on a run: a lock on a file of its own, which kill -9 gives back at once."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

LOOKS = 5  # a lock is tried so often: whoever only looks whether it is taken holds it for a moment
LOOK = 0.01  # seconds between two of them


@contextmanager
def owning(path: Path) -> Iterator[bool]:
    """Whether the lock could be had; if so, it is held inside."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        yield _locks(handle, LOOKS)
    finally:
        os.close(handle)


def is_owned(path: Path) -> bool:
    """Whether somebody holds the lock now."""
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
