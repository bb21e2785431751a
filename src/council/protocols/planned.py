"""The shape of protocols that are not built yet: who would sit, in which phases, for how many calls.

A protocol that is built gives its own shape and leaves this room.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pydantic import BaseModel

from council.errors import EngineError
from council.types import Json, Seat

CHAIR = Seat("chair", role="Chair")


@dataclass(frozen=True, slots=True)
class Shape:
    """A council before anyone is seated. `calls` is the least and the most that a run makes."""

    seats: tuple[Seat, ...]
    chair: Seat | None
    phases: tuple[Json, ...]
    calls: tuple[int, int]
    agents: int
    warnings: tuple[str, ...] = ()


def shape_of(protocol: str, task: str, options: BaseModel) -> Shape:
    """What a run of this protocol would look like; raises UsageError where the options cannot be met."""
    if protocol not in SHAPES:
        raise EngineError(f'no shape is planned for the protocol "{protocol}": a built protocol gives its own')
    return SHAPES[protocol](task, options)


def _phase(name: str, calls: int, parallel: bool = False) -> Json:
    return {"name": name, "calls": calls, "parallel": parallel}


def _shape(
    seats: tuple[Seat, ...],
    chair: Seat | None,
    phases: list[Json],
    calls: tuple[int, int] | None = None,
    agents: int | None = None,
    warnings: tuple[str, ...] = (),
) -> Shape:
    total = sum(phase["calls"] for phase in phases)
    return Shape(seats, chair, tuple(phases), calls or (total, total), agents or len(seats), warnings)


SHAPES: dict[str, Callable[[str, BaseModel], Shape]] = {}
