"""Results of a batch: the output file with one JSON line per ended row, its lock and its repair after a crash, and the
counts.

Beside OUT.jsonl, OUT.jsonl.batch holds the lock and the name of the batch. From the name and a row follows the id of
the row's run, so that a row that had started before a crash is found again. The file is removed when every row is
complete.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import secrets
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Literal

from typing_extensions import TypedDict

from council.engine.plan_object import CostEstimate, PlanCalls
from council.engine.records import ReportObject
from council.errors import CouncilError, UsageError
from council.planning.plan import Plan
from council.runs import outcome
from council.settings.private_files import open_private_file, open_private_handle
from council.store.interface import RunStatus


class CompleteRow(TypedDict):
    """A line of the output file whose run is complete."""

    id: str
    run: str
    status: str
    error: str | None
    hash: str
    report: ReportObject


ENDED_STATUSES = (RunStatus.COMPLETE, RunStatus.INCOMPLETE, RunStatus.FAILED)
COPY_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class EndedRow:
    """A row of the output file: `error` says why it is not complete, `usd` its cost as far as prices are known."""

    id: str
    run: str | None
    status: str
    hash: str = ""
    error: str | None = None
    report: ReportObject | None = None
    usd: float = 0.0

    def as_line(self) -> str:
        value = {name: getattr(self, name) for name in CompleteRow.__annotations__}
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


class BatchOutput:
    """The output file of one batch, locked for this process."""

    def __init__(self, path: Path, clean: Callable[[str], str] = lambda line: line) -> None:
        self.path = path.resolve()
        self._clean = clean
        self._lines: list[str] = []
        self._turn = asyncio.Lock()
        self._failure: CouncilError | None = None
        self._state_path = self.path.with_name(f"{self.path.name}.batch")
        self._is_new, self.is_known_batch = False, True
        self._check_path(path)
        self._lock = self._take_lock()
        try:
            self.batch = self._open_batch()
            self._file: IO[bytes] = self.path.open("r+b")
            self._repair_end()
        except BaseException as error:
            self._release(is_unused=True)
            if not isinstance(error, OSError):
                raise
            raise UsageError(
                f'"{path}" cannot be written ({error.strerror}), nothing was sent: choose another file with -o'
            ) from None

    def _check_path(self, path: Path) -> None:
        if (self.path.exists() and not self.path.is_file()) or not self.path.parent.is_dir():
            what = "is not a regular file" if self.path.parent.is_dir() else "is in a folder that does not exist"
            raise UsageError(f'the output file "{path}" {what}, nothing was sent: choose another one with -o')

    # The lock and the name of the batch

    def _take_lock(self) -> int:
        while True:
            try:
                handle = open_private_handle(self._state_path, os.O_RDWR | os.O_NOFOLLOW)
            except OSError as error:
                raise UsageError(
                    f'"{self._state_path}" cannot be written ({error.strerror}), nothing was sent: '
                    "choose an output file in another folder with -o"
                ) from None
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(handle)
                raise UsageError(
                    f'another batch is writing to "{self.path}", nothing was sent: '
                    "wait for it, or choose another file with -o"
                ) from None
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(handle), self._state_path.stat()):
                    return handle
            os.close(handle)  # the batch before has removed it

    def _open_batch(self) -> str:
        """Return the name of the batch. An output file that was removed begins a new batch."""
        known = os.pread(self._lock, 1 << 16, 0)
        self._is_new = not self.path.exists()
        if self._is_new:
            known = b""
            os.ftruncate(self._lock, 0)
            os.fsync(self._lock)
            os.close(open_private_handle(self.path, os.O_WRONLY))
        with suppress(ValueError, KeyError, TypeError):
            self.is_known_batch = True
            return str(json.loads(known)["batch"])
        self.is_known_batch = False  # no row has started
        name = secrets.token_hex(16)
        text = json.dumps({"schema": "council.batch_state/1", "batch": name, "output": self.path.name}) + "\n"
        os.ftruncate(self._lock, 0)
        os.pwrite(self._lock, text.encode(), 0)
        os.fsync(self._lock)
        self._sync_folder()
        return name

    def _sync_folder(self) -> None:
        with suppress(OSError):
            folder = os.open(self.path.parent, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)

    # Reading

    def _repair_end(self) -> None:
        """Remove a last line that a crash has cut, and end a whole one; another file stays as it is."""
        end = self._file.seek(0, os.SEEK_END)
        tail, start = b"", end
        while start and b"\n" not in tail:
            step = min(COPY_BYTES, start)
            start -= step
            self._file.seek(start)
            tail = self._file.read(step) + tail
        last = tail[tail.rfind(b"\n") + 1 :]
        if not last:
            return
        try:
            parse_line(last)
        except ValueError:
            if not self.is_known_batch:
                return
            self._file.truncate(end - len(last))
        else:
            self._file.seek(end)
            self._file.write(b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())

    def read(self) -> Iterator[EndedRow]:
        """Yield the rows of the file without holding more than one in memory."""
        with self.path.open("rb") as file:
            for number, line in enumerate(file, 1):
                try:
                    yield parse_line(line)
                except ValueError as error:
                    raise UsageError(
                        f'line {number} of "{self.path}" is no result of a batch ({error}), nothing was sent: '
                        "remove that line, or choose another output file with -o"
                    ) from None

    def remove_rows(self, ids: Collection[str]) -> None:
        """Write the file again without these rows, which are asked again. A crash leaves the old or the new file."""
        if not ids:
            return
        draft = self.path.with_name(f"{self.path.name}.tmp")
        with self.path.open("rb") as old, open_private_file(draft, "wb") as new:
            os.fchmod(new.fileno(), os.fstat(old.fileno()).st_mode & 0o777)
            for line in old:
                if parse_line(line).id not in ids:
                    new.write(line)
            new.flush()
            os.fsync(new.fileno())
        draft.replace(self.path)
        self._sync_folder()
        self._file.close()
        self._file = self.path.open("r+b")

    # Writing

    async def append(self, row: EndedRow) -> None:
        """Append the line of a row and return when it is on disk. Lines of the same moment share one sync."""
        self._lines.append(self._clean(row.as_line()))
        async with self._turn:
            if self._failure:
                raise self._failure
            if not self._lines:  # an earlier row has written it
                return
            lines, self._lines = self._lines, []
            data = "".join(f"{line}\n" for line in lines).encode("utf-8", "backslashreplace")
            await asyncio.to_thread(self._append, data)

    def _append(self, data: bytes) -> None:
        try:
            self._file.seek(0, os.SEEK_END)
            self._file.write(data)
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            self._failure = CouncilError(
                f'"{self.path}" cannot be written ({error.strerror}): free some disk space and run the same command again; '
                "ended rows are kept in the run store and are not asked again"
            )
            raise self._failure from error

    def close(self, *, is_complete: bool = False, has_started: bool = True) -> None:
        """Release the file. The name of the batch is only needed while a row is unfinished."""
        with suppress(OSError):
            self._file.close()
        self._release(is_unused=not has_started, is_complete=is_complete)

    def _release(self, *, is_unused: bool, is_complete: bool = False) -> None:
        is_unused = is_unused and not self.is_known_batch
        for path, is_removed in ((self.path, is_unused and self._is_new), (self._state_path, is_unused or is_complete)):
            with suppress(OSError):
                if is_removed:
                    path.unlink()
        os.close(self._lock)


def parse_line(line: bytes) -> EndedRow:
    """Return an ended row, or raise ValueError. Only the fields that a resumed batch needs are kept."""
    value: Any = json.loads(line)
    if not isinstance(value, dict):
        raise ValueError("it is not an object")
    for name, kinds in (("id", str), ("run", (str, type(None))), ("status", str)):
        if not isinstance(value.get(name), kinds) or name not in value:
            raise ValueError(f'it has no "{name}"')
    if value["status"] not in ENDED_STATUSES:
        raise ValueError(f'unknown status "{value["status"]}"')
    digest, usd = str(value.get("hash") or ""), sum_known_cost(value.get("report"))
    return EndedRow(value["id"], value["run"], value["status"], digest, value.get("error"), usd=usd)


def sum_known_cost(report: Any) -> float:
    """Return the cost of a report in dollars with what is in doubt; of members without a price nothing is known."""
    with suppress(KeyError, TypeError):
        in_doubt = float(report["cost"].get("in_doubt") or 0)
        if report["cost"]["usd"] is not None:
            return float(report["cost"]["usd"]) + in_doubt
        seats = [*report["seats"], *([report["chair"]] if report["chair"] else [])]
        return sum(float(seat["cost"] or 0) for seat in seats) + in_doubt
    return 0.0


# Counts and results


class BatchCost(TypedDict):
    usd: float  # of the rows that this process ended
    before: float  # of all rows in earlier processes
    cap: float | None
    unknown: bool  # a member without a price was asked
    in_doubt: float  # the most that requests without an answer may have cost, beside `usd`
    estimated: bool  # part of the cost is an estimate
    estimate: float | None  # of all rows of the file, from a sample


class BatchFailure(TypedDict):
    """A row that is not complete."""

    id: str
    line: int
    run: str | None
    status: str
    reason: str


class BatchObject(TypedDict):
    """What `council batch --json` prints when it ends."""

    schema: Literal["council.batch/1"]
    output: str
    rows: int
    selected: int
    already_done: int
    complete: int
    incomplete: int
    failed: int
    left: int
    stopped: str
    cost: BatchCost
    seconds: float
    failures: list[BatchFailure]


@dataclass(slots=True)
class Progress:
    """Counts of a batch while it runs."""

    rows: int  # in the file
    selected: int  # of the sample, else all
    already_done: int
    usd_before: float = 0.0  # cost of all rows in earlier processes
    usd_selected: float = 0.0  # the part of it for selected rows that had ended
    usd: float = 0.0  # cost in this process, with what is in doubt
    in_doubt: float = 0.0  # the part of `usd` that requests without an answer may have cost
    complete: int = 0
    incomplete: int = 0
    failed: int = 0
    running: int = 0
    started: float = field(default_factory=time.monotonic)
    unknown_cost: bool = False  # a member without a price was asked
    estimated_cost: bool = False  # part of the cost is an estimate, such as that of interrupted requests
    failures: list[BatchFailure] = field(default_factory=list)
    exit_codes: set[int] = field(default_factory=set)  # of the rows that are not complete

    @property
    def ended(self) -> int:
        return self.complete + self.incomplete + self.failed

    @property
    def left(self) -> int:
        return self.selected - self.already_done - self.ended

    @property
    def seconds(self) -> float:
        return max(time.monotonic() - self.started, 1e-9)

    @property
    def rate(self) -> float:
        """Return the rows per second."""
        return self.ended / self.seconds

    @property
    def seconds_left(self) -> float | None:
        return self.left / self.rate if self.ended else None


@dataclass(frozen=True, slots=True)
class Summary:
    """Result of a batch. `stopped` says why rows are left: "" | interrupted | budget | failures."""

    progress: Progress
    output: Path
    stopped: str = ""
    cap: float | None = None

    @property
    def estimate(self) -> float | None:
        """Return the cost of all rows of the file, from the cost of a sample."""
        now = self.progress
        ended = now.already_done + now.ended
        if now.rows == now.selected or not ended or now.unknown_cost:
            return None
        return round((now.usd_selected + now.usd) / ended * now.rows, 9)

    @property
    def exit_code(self) -> int:
        now = self.progress
        if self.stopped == "interrupted":
            return outcome.EXIT_INTERRUPTED
        if self.stopped == "budget":
            return outcome.EXIT_BUDGET
        if not (now.incomplete or now.failed or now.left):
            return outcome.EXIT_COMPLETE
        if now.complete or now.already_done or now.incomplete:
            return outcome.EXIT_PARTIAL
        return outcome.EXIT_NO_ACCESS if now.exit_codes == {outcome.EXIT_NO_ACCESS} else outcome.EXIT_FAILED

    def as_json(self) -> BatchObject:
        now = self.progress
        return {
            "schema": "council.batch/1",
            "output": str(self.output),
            "rows": now.rows,
            "selected": now.selected,
            "already_done": now.already_done,
            "complete": now.complete,
            "incomplete": now.incomplete,
            "failed": now.failed,
            "left": now.left,
            "stopped": self.stopped,
            "cost": {
                "usd": round(now.usd - now.in_doubt, 9),
                "in_doubt": round(now.in_doubt, 9),
                "before": round(now.usd_before, 9),
                "cap": self.cap,
                "unknown": now.unknown_cost,
                "estimated": now.estimated_cost,
                "estimate": self.estimate,
            },
            "seconds": round(now.seconds, 3),
            "failures": now.failures,
        }


class BatchGroup(TypedDict):
    """Rows with the same protocol, task and options, and the plan of one of them."""

    protocol: str
    task: str
    rows: int
    members: list[str]
    calls: PlanCalls
    cost: CostEstimate | None


class BatchPlanObject(TypedDict):
    """What `council batch --dry-run --json` prints."""

    schema: Literal["council.batch_plan/1"]
    rows: int
    selected: int
    already_done: int
    left: int
    groups: list[BatchGroup]
    cost: CostEstimate | None
    unpriced: list[str]
    cap: float | None
    spent: float


@dataclass(slots=True)
class PlannedGroup:
    """Rows with the same protocol, task and options, and the plan of one of them."""

    plan: Plan
    rows: int = 0


@dataclass(frozen=True, slots=True)
class Estimate:
    """What the pending rows are expected to cost."""

    groups: tuple[PlannedGroup, ...]
    progress: Progress
    cap: float | None

    @property
    def unpriced(self) -> list[str]:
        return sorted({name for group in self.groups for name in group.plan.unpriced})

    @property
    def cost(self) -> CostEstimate | None:
        """Return low, expected and worst of all pending rows; None if a price is unknown."""
        costs = [(group.plan.cost, group.rows) for group in self.groups if group.plan.cost is not None]
        if len(costs) < len(self.groups):
            return None

        def add_up(name: Literal["low", "expected", "worst"]) -> float:
            return round(sum(cost[name] * rows for cost, rows in costs), 9)

        return {"low": add_up("low"), "expected": add_up("expected"), "worst": add_up("worst")}

    def as_json(self) -> BatchPlanObject:
        groups: list[BatchGroup] = [
            {
                "protocol": group.plan.protocol.name,
                "task": group.plan.question.task,
                "rows": group.rows,
                "members": list(dict.fromkeys(seat.member for seat in group.plan.roster.all_seats)),
                "calls": {"min": group.plan.calls[0], "max": group.plan.calls[1]},
                "cost": group.plan.cost,
            }
            for group in self.groups
        ]
        now = self.progress
        return {
            "schema": "council.batch_plan/1",
            "rows": now.rows,
            "selected": now.selected,
            "already_done": now.already_done,
            "left": now.left,
            "groups": groups,
            "cost": self.cost,
            "unpriced": self.unpriced,
            "cap": self.cap,
            "spent": round(now.usd_before, 9),
        }
