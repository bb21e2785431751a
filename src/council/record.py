"""What a store keeps of a run, and what it must be able to do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from council.events import Entry
from council.types import Json, Outcome

Row = tuple[str, tuple[object, ...]]  # which table, what goes in after the run's id


@dataclass(slots=True)
class Attempt:
    """One request that left, or was about to: the bytes, and what came of them (None: nobody knows)."""

    n: int
    member: str
    body: bytes
    result: Json | None = None


@dataclass(frozen=True, slots=True)
class Hold:
    """Money to be held for one request before it leaves, in billionths of a dollar, and the caps it must fit under."""

    key: str
    n: int
    member: str
    at: float
    day: str
    price: str  # as JSON, for whoever checks the bill later
    reserved: int
    run_cap: int | None = None
    day_cap: int | None = None

    def row(self) -> tuple[object, ...]:
        return (self.key, self.n, self.member, self.at, self.day, self.price, self.reserved)


@dataclass(frozen=True, slots=True)
class Refused:
    """Why no money could be held: whose cap, how high it is, what is spent or held of it, what was wanted."""

    whose: str  # run | day
    cap: int
    spent: int
    wanted: int


@dataclass(frozen=True, slots=True)
class Spent:
    """One request's money as the store has it. Nothing reserved: nobody knows its price; nothing charged: nothing came back."""

    member: str
    price: Json | None
    reserved: int | None
    charged: int | None = None
    estimated: bool = False

    @property
    def counts(self) -> int:
        return (self.reserved if self.charged is None else self.charged) or 0


@dataclass(slots=True)
class Record:
    """All that the store holds of one run."""

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
    spending: dict[tuple[str, int], Spent] = field(default_factory=dict)  # by key and number of the attempt


class Store(Protocol):
    """Where rows go. `post` queues, `write` returns when they are safe on disk."""

    def post(self, run: str, rows: Sequence[Row]) -> None: ...

    async def write(self, run: str, rows: Sequence[Row]) -> None: ...
