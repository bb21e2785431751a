"""The shape of protocols that are not built yet: who would sit, in which phases, for how many calls.

A protocol that is built gives its own shape and leaves this room.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

from pydantic import BaseModel

from council.errors import EngineError
from council.protocols.options import GeneralOptions
from council.types import Json, Seat

CHAIR = Seat("chair", role="Chair")

GENERALS = (Seat("generalist", "Generalist"), Seat("skeptic", "Skeptic"), Seat("domain_expert", "Domain expert"))
RANKERS = (Seat("alpha", "Alpha"), Seat("beta", "Beta"), Seat("gamma", "Gamma"))


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


def _general(task: str, options: BaseModel) -> Shape:
    chosen = cast(GeneralOptions, options)
    seats = len(GENERALS)
    phases = [] if chosen.no_search else [_phase("queries", 1)]
    phases += [_phase("round-1", seats, True), _phase("clerk", 1)]
    least = sum(phase["calls"] for phase in phases) + 1
    phases += [] if chosen.no_deliberate else [_phase("round-2", seats, True)]
    phases.append(_phase("synthesis", 1))
    resent = 1  # a synthesis that fails its checks is sent back once
    most = sum(phase["calls"] for phase in phases) + resent
    return _shape(GENERALS, CHAIR, phases, calls=(least, most))


def _ranking(task: str, options: BaseModel) -> Shape:
    seats = len(RANKERS)
    return _shape(RANKERS, CHAIR, [_phase("answer", seats, True), _phase("rank", seats, True), _phase("synthesise", 1)])


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


SHAPES: dict[str, Callable[[str, BaseModel], Shape]] = {
    "general": _general,
    "ranking": _ranking,
}
