"""From what is meant to a plan. A built protocol is rehearsed with stand-ins, so that its plan cannot lie and no prompt can fail later."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace

from council import events as ev
from council import protocols
from council.council import Council
from council.errors import CouncilError, EngineError
from council.events import Entry
from council.intent import Intent, focus_line
from council.ledger import Ledger, NullStore
from council.members.base import Member
from council.members.scripted import instance
from council.prompting import Prompts
from council.protocols import Protocol
from council.protocols.options import parse_options
from council.protocols.planned import shape_of
from council.record import Record
from council.rules.seating import Place, seat_council
from council.settings import Settings
from council.types import CarryOut, Json, Outcome, Packet, Question, Roster, Seat, Step


@dataclass(frozen=True, slots=True)
class Plan:
    """What will be done, by whom, and why; nothing has been spent."""

    protocol: Protocol
    why: str
    question: Question
    options: Json
    roster: Roster
    phases: tuple[Json, ...]
    calls: tuple[int, int]
    agents: int
    verbose: bool = False
    packet: Packet = field(default_factory=Packet)
    warnings: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()  # what the report has to say above the answer

    def as_json(self) -> Json:
        """The object `council.plan/1`."""
        return {
            "schema": "council.plan/1", "task": self.question.task, "protocol": self.protocol.name, "why": self.why,
            "question": self.question.text, "target": self.question.target, "options": self.options,
            "seats": [_seat_json(seat) for seat in self.roster.seats],
            "chair": _seat_json(self.roster.chair) if self.roster.chair else None,
            "phases": list(self.phases), "calls": {"min": self.calls[0], "max": self.calls[1]}, "agents": self.agents,
            "packet": self.packet.as_json(), "cost": None, "warnings": [*self.notices, *self.warnings], "notices": list(self.notices),
        }  # fmt: skip

    def setup(self) -> Json:
        """What another process needs to take the run up again."""
        return {
            "protocol": self.protocol.name, "question": asdict(self.question), "options": self.options,
            "roster": asdict(self.roster), "verbose": self.verbose,
        }  # fmt: skip


def _seat_json(seat: Seat) -> Json:
    return {
        "name": seat.name, "role": seat.role or None, "perspective": seat.perspective or None, "model": seat.member,
        "vendor": seat.vendor, "fallbacks": list(seat.fallbacks),
    }  # fmt: skip


def question_from(setup: Json) -> Question:
    return Question(**setup["question"])


def roster_from(setup: Json) -> Roster:
    chair = setup["roster"]["chair"]
    return Roster(tuple(_seat_from(seat) for seat in setup["roster"]["seats"]), _seat_from(chair) if chair else None)


def _seat_from(value: Json) -> Seat:
    return Seat(**{**value, "fallbacks": tuple(value["fallbacks"])})


def context_for(question: Question, roster: Roster) -> Json:
    """What every prompt may speak of besides the question and the seat."""
    return {"focus": {seat.name: focus_line(question.domain, seat.name) for seat in roster.seats}}


async def make_plan(
    intent: Intent, settings: Settings, env: Mapping[str, str], member: Callable[[str], Member]
) -> Plan:
    protocol = protocols.find(intent.protocol)
    question = Question(intent.question, intent.task, intent.target, intent.domain)
    if not protocol.built:
        return _preview(intent, protocol, question, settings, env)
    options = parse_options(protocol.name, intent.task, intent.options, protocol.options).model_dump(mode="json")
    roster, notices, advice = _seated(protocol, protocol.seats, protocol.chair, settings, env)
    roster = Roster(tuple(_sized(seat, member) for seat in roster.seats), roster.chair and _sized(roster.chair, member))
    contested = await rehearse(protocol, roster, question, options, agree=False)
    agreed = await rehearse(protocol, roster, question, options, agree=True)
    phases = _phases(contested)
    calls = sorted((_calls(agreed), _calls(contested)))
    return Plan(
        protocol, intent.why, question, options, roster, phases, (calls[0], calls[1]), len(roster.seats),
        intent.verbose, warnings=advice, notices=notices,
    )  # fmt: skip


def _preview(
    intent: Intent, protocol: Protocol, question: Question, settings: Settings, env: Mapping[str, str]
) -> Plan:
    """The plan of a protocol that is not built yet: for looking at, not for running."""
    options = parse_options(intent.protocol, intent.task, intent.options)
    shape = shape_of(protocol.name, intent.task, options)
    roster, notices, advice = _seated(protocol, shape.seats, shape.chair, settings, env)
    return Plan(
        protocol, intent.why, question, options.model_dump(mode="json"), roster, shape.phases, shape.calls, shape.agents,
        intent.verbose, warnings=(*shape.warnings, *advice), notices=notices,
    )  # fmt: skip


def _seated(
    protocol: Protocol, seats: Sequence[Seat], chair: Seat | None, settings: Settings, env: Mapping[str, str]
) -> tuple[Roster, tuple[str, ...], tuple[str, ...]]:
    seating = seat_council([seat.name for seat in seats], settings, env, spread=protocol.spread)
    taken = tuple(_taken(seat, place) for seat, place in zip(seats, seating.seats, strict=True))
    return Roster(taken, _taken(chair, seating.chair) if chair else None), seating.notices, seating.advice


def _taken(seat: Seat, place: Place) -> Seat:
    return replace(seat, member=place.member, vendor=place.vendor, fallbacks=place.fallbacks)


def _sized(seat: Seat, member: Callable[[str], Member]) -> Seat:
    return replace(seat, small=member(seat.member).small)


async def rehearse(
    protocol: Protocol, roster: Roster, question: Question, options: Json, *, agree: bool
) -> list[Entry]:
    """Run the whole protocol with stand-ins that answer yes (or no) to everything. Costs nothing, renders every prompt."""
    record = Record("rehearsal", "", "", 0.0, "rehearsal", {})
    prompts = Prompts(record.seed, [protocol.prompts] if protocol.prompts else [])
    council = Council(
        roster, question, ledger=Ledger(NullStore(), record), prompts=prompts,
        carry_out=stand_in(agree), context=context_for(question, roster),
    )  # fmt: skip
    try:
        await protocol.load()(council, **options)
    except CouncilError:
        raise
    except Exception as error:
        raise EngineError(
            f'the protocol "{protocol.name}" broke in rehearsal, nothing was spent: {type(error).__name__}: {error}'
        ) from error
    return record.entries


def stand_in(agree: bool) -> CarryOut:
    async def carry_out(step: Step) -> Outcome:
        await asyncio.sleep(0)  # so that those who are asked at once are seen to be
        schema = step.ask.schema
        return Outcome("ok", json.dumps(instance(schema, agree)) if schema else "…", served_by="stand-in")

    return carry_out


def _calls(entries: Sequence[Entry]) -> int:
    return sum(isinstance(entry.event, ev.Asked) for entry in entries)


def _phases(entries: Sequence[Entry]) -> tuple[Json, ...]:
    """What each phase asked, and whether at once: two were asked before one had answered."""
    phases: dict[str, Json] = {}
    waiting = 0
    for event in (entry.event for entry in entries):
        if isinstance(event, ev.Asked):
            waiting += 1
            phase = phases.setdefault(event.phase, {"name": event.phase, "calls": 0, "parallel": False})
            phase["calls"] += 1
            phase["parallel"] |= waiting > 1
        elif isinstance(event, ev.Stated):
            waiting -= 1
    return tuple(phases.values())
