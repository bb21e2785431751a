"""Stored data of a run, and the interface of a store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from council.events import Entry
from council.types import Json, Outcome

Row = tuple[str, tuple[object, ...]]  # statement name, values after the run id


class RunStatus(StrEnum):
    """Status of a run. STOPPED is never stored: the run has started and not ended, and no process executes it."""

    QUEUED = "queued"
    RUNNING = "running"
    COMPLETE = "complete"
    INCOMPLETE = "incomplete"
    FAILED = "failed"
    STOPPED = "stopped"


OPEN_STATUSES = (RunStatus.QUEUED, RunStatus.RUNNING)  # stored statuses of runs that have not ended
FINISHED_STATUSES = (RunStatus.COMPLETE, RunStatus.FAILED)  # nothing is left to continue; lists sort the others first


@dataclass(frozen=True, slots=True)
class RunState:
    """State of a run now: its stored status, and whether a process executes it."""

    run: str
    stored: RunStatus
    is_detached: bool  # the worker executes it
    is_owned: bool  # a process executes it now

    @property
    def status(self) -> RunStatus:
        """Return the status to show. Without a process, a detached run waits for the worker, and any other is stopped."""
        if self.stored is not RunStatus.RUNNING or self.is_owned:
            return self.stored
        return RunStatus.QUEUED if self.is_detached else RunStatus.STOPPED

    @property
    def is_open(self) -> bool:
        """Return whether the run has not ended; it may be stopped."""
        return self.stored in OPEN_STATUSES

    @property
    def is_active(self) -> bool:
        """Return whether the run is queued or running."""
        return self.status in OPEN_STATUSES

    @property
    def is_running(self) -> bool:
        return self.status is RunStatus.RUNNING

    @property
    def needs_worker(self) -> bool:
        """Return whether the run waits for a worker."""
        return self.is_detached and self.is_open and not self.is_owned


@dataclass(slots=True)
class Attempt:
    """One request that was sent or about to be sent, and its result (None if unknown)."""

    n: int
    member: str
    body: bytes
    result: Json | None = None


@dataclass(frozen=True, slots=True)
class Hold:
    """Money to reserve for one request before it is sent, in billionths of a dollar, and the caps that apply."""

    key: str
    n: int
    member: str
    at: float
    day: str
    price: str  # as JSON, for later audits
    reserved: int
    run_cap: int | None = None
    day_cap: int | None = None

    def as_row(self) -> tuple[object, ...]:
        return (self.key, self.n, self.member, self.at, self.day, self.price, self.reserved)


@dataclass(frozen=True, slots=True)
class BudgetRefusal:
    """Why a reservation failed: which cap, its amount, the amount spent or reserved, the amount requested."""

    scope: str  # run | day
    cap: int
    spent: int
    requested: int


@dataclass(frozen=True, slots=True)
class SpendingRow:
    """Stored spending of one request. `reserved` is None if the price is unknown, `charged` until there is an answer."""

    member: str
    price: Json | None
    reserved: int | None
    charged: int | None = None
    estimated: bool = False

    @property
    def amount(self) -> int:
        return (self.reserved if self.charged is None else self.charged) or 0


@dataclass(slots=True)
class Record:
    """All stored data of one run."""

    run: str
    name: str
    folder: str
    created: float
    seed: str
    setup: Json
    status: str = RunStatus.RUNNING
    report: str = ""
    entries: list[Entry] = field(default_factory=list)
    steps: dict[str, str] = field(default_factory=dict)
    results: dict[str, Outcome] = field(default_factory=dict)
    attempts: dict[str, list[Attempt]] = field(default_factory=dict)
    phases: dict[str, Json] = field(default_factory=dict)
    spending: dict[tuple[str, int], SpendingRow] = field(default_factory=dict)  # by key and attempt number
    is_new: bool = False  # this process has made the run


class Store(Protocol):
    """Destination of rows: `post` queues them, `write` returns once they are on disk.

    Rows of one run that are posted or written in one turn of the event loop are one transaction: the rows of a step's result
    are stored together or not at all, and the requests of a phase share one. Rows are stored in their order. After a failure,
    later rows of the run are refused.
    """

    def post(self, run: str, rows: Sequence[Row], *, may_wait: bool = False) -> None: ...

    async def write(self, run: str, rows: Sequence[Row]) -> None: ...
