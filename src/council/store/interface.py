"""Stored data of a run, and the interface of a store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from council.events import Entry
from council.types import Json, Outcome

Row = tuple[str, tuple[object, ...]]  # statement name, values after the run id


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
    status: str = "running"
    report: str = ""
    entries: list[Entry] = field(default_factory=list)
    steps: dict[str, str] = field(default_factory=dict)
    results: dict[str, Outcome] = field(default_factory=dict)
    attempts: dict[str, list[Attempt]] = field(default_factory=dict)
    phases: dict[str, Json] = field(default_factory=dict)
    spending: dict[tuple[str, int], SpendingRow] = field(default_factory=dict)  # by key and attempt number


class Store(Protocol):
    """Destination of rows: `post` queues them, `write` returns once they are on disk."""

    def post(self, run: str, rows: Sequence[Row]) -> None: ...

    async def write(self, run: str, rows: Sequence[Row]) -> None: ...
