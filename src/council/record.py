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


class Store(Protocol):
    """Where rows go. `post` queues, `write` returns when they are safe on disk."""

    def post(self, run: str, rows: Sequence[Row]) -> None: ...

    async def write(self, run: str, rows: Sequence[Row]) -> None: ...
