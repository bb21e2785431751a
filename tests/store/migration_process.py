"""Processes that open a store of an earlier version: `kill` ends one at each statement, `older` is one of an earlier
version.

python -m tests.store.migration_process kill DATABASE FOLDER [EVERY]
python -m tests.store.migration_process older FOLDER VERSION
"""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path

from council.errors import StoreError
from council.store import sqlite


def trace_statements(on_statement: Callable[[str], object]) -> None:
    """Call a function before each statement of the connections that this process opens."""
    connect = sqlite._connect

    def connect_with_trace(path: Path) -> sqlite3.Connection:
        db = connect(path)
        db.set_trace_callback(on_statement)
        return db

    sqlite._connect = connect_with_trace


def kill_at_each_statement(database: Path, folder: Path, every: int) -> None:
    """Migrate copies of a database, and kill each process before another statement. Print the folder of each copy."""
    n = 1
    while True:
        copy = folder / str(n)
        copy.mkdir(parents=True)
        shutil.copyfile(database, copy / "council.db")
        child = os.fork()
        if child == 0:
            kill_self_at(n)
            sqlite.SqliteStore(copy).close()
            os._exit(0)
        _, status = os.waitpid(child, 0)
        print("killed" if os.WIFSIGNALED(status) else "ended", copy, flush=True)
        if not os.WIFSIGNALED(status):
            return
        n += every


def kill_self_at(number: int) -> None:
    left = number

    def count(statement: str) -> None:
        nonlocal left
        left -= 1
        if not left:
            os.kill(os.getpid(), signal.SIGKILL)

    trace_statements(count)


def open_as_older(folder: Path, version: int) -> None:
    """Open the store as an earlier version does. Print its statements, and the error."""
    del sqlite.MIGRATIONS[version:]
    trace_statements(lambda statement: print(statement.partition("\n")[0], flush=True))
    try:
        sqlite.SqliteStore(folder).close()
    except StoreError as error:
        print(f"refused: {error}")


if __name__ == "__main__":
    mode, first, second, *more = sys.argv[1:]
    if mode == "kill":
        kill_at_each_statement(Path(first), Path(second), int(more[0]) if more else 1)
    else:
        open_as_older(Path(first), int(second))
