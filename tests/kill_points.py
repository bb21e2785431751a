"""Points at which a process kills itself with SIGKILL. The product has no part in it.

`install("commit:3", folders)` listens to Python's audit events or to the trace of the database connections. The kinds
of points are:

- `event:N`: while the transaction with the Nth event row of this process is open
- `commit:N`, `committed:N`: before the Nth commit of this process, and after it, before the caller knows
- `file:N`, `filed:N`: before the Nth change of a file in the folders (create, link, rename, remove …), and after it

With the number 0 the process is not killed; it prints how many points it has passed.

`tests/fork_server.py` installs the point of the variable KILL_AT in a process that it forks.
"""

from __future__ import annotations

import atexit
import os
import signal
import sqlite3
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

KINDS = ("event", "commit", "committed", "file", "filed")
FILE_CHANGES = ("os.link", "os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.truncate")
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT


def install(point: str, folders: Sequence[str]) -> None:
    """Kill this process at a point such as `commit:3`."""
    kind, _, number = point.partition(":")
    assert kind in KINDS, point
    left = int(number)
    if left == 0:  # count them
        atexit.register(lambda: print(-left, file=sys.stderr))

    def reach() -> None:
        """Count one point of the kind; kill at the last one, or as soon as the present call has returned."""
        nonlocal left
        left -= 1
        if left == 0:
            if kind in ("committed", "filed"):
                sys.setprofile(kill_after_return)
            else:
                kill()

    def on_statement(sql: str) -> None:
        if (kind == "event" and sql.startswith("INSERT INTO events")) or (
            kind in ("commit", "committed") and sql == "COMMIT"
        ):
            reach()

    def on_audit(name: str, values: tuple[Any, ...]) -> None:
        if is_change(name, values, folders):
            reach()

    if os.environ.get("COUNCIL_DATABASE") and kind not in ("file", "filed"):
        trace_postgres(on_statement)

    def connect(*arguments: Any, **named: Any) -> sqlite3.Connection:
        db: sqlite3.Connection = open_database(*arguments, **named)
        db.set_trace_callback(on_statement)
        return db

    if kind in ("file", "filed"):
        sys.addaudithook(on_audit)
    else:
        open_database: Any = sqlite3.connect
        sqlite3.connect = connect  # type: ignore[assignment]


def is_change(name: str, values: tuple[Any, ...], folders: Sequence[str]) -> bool:
    """Return whether an audit event announces the change of a file in the folders."""
    if name != "open" and name not in FILE_CHANGES:
        return False
    file = values[0]
    if name == "open" and (isinstance(file, int) or not values[2] & WRITING):  # a file that is open, or that is read
        return False
    path = str(Path(f"/proc/self/fd/{file}").readlink()) if isinstance(file, int) else os.fsdecode(file)
    return path.startswith(tuple(folders))


def kill_after_return(frame: Any, event: str, value: Any) -> None:
    if frame.f_code.co_filename != __file__:
        kill()


def trace_postgres(on_statement: Callable[[str], None]) -> None:
    """Call a function before each statement of this process on PostgreSQL."""
    import psycopg

    execute = psycopg.Connection.execute

    def traced(self: Any, query: Any, *arguments: Any, **named: Any) -> Any:
        on_statement(str(query))
        return execute(self, query, *arguments, **named)

    psycopg.Connection.execute = traced  # type: ignore[method-assign]


def kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
