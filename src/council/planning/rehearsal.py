"""Rehearsal: run a protocol with fake answers, to count its calls and check its prompts before it is paid."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypedDict

from council import events as ev
from council.calling.concurrency import MIN_WARM_TOKENS
from council.engine.council import Council
from council.engine.ledger import Ledger, NullStore
from council.engine.plan_object import PlanPhase, PlanWarmStart
from council.engine.prompting import Prompts
from council.engine.reply_form import LONGEST_PATH
from council.engine.response_format import ResponseFormat
from council.errors import CouncilError, EngineError
from council.events import Entry
from council.members.scripted import example_value
from council.planning.domains import focus_line
from council.planning.estimate import RehearsedCall, build_call, list_phases, strip_seat_names
from council.protocols import Protocol, run_flow
from council.store.interface import Record
from council.types import (
    CarryOut,
    Json,
    LookupQuery,
    LookupRow,
    Outcome,
    Packet,
    Question,
    Roster,
    SearchQuery,
    SearchRow,
    Step,
    Verdict,
)

EMPTY_PACKET = Packet()
MAX_STEPS = 2000  # phases, requests and look-ups of one rehearsal
MAX_REHEARSAL_S = 30.0  # for a protocol that waits for something else


class Rehearsal(NamedTuple):
    """Phases, the fewest and the most calls, and the calls of three paths through a protocol."""

    phases: tuple[PlanPhase, ...]
    calls: tuple[int, int]
    shorter: Sequence[RehearsedCall]  # of agreeing and of disagreeing seats, the path with fewer calls
    longer: Sequence[RehearsedCall]
    longest: Sequence[RehearsedCall]  # with every optional step


_REHEARSALS: dict[tuple[object, ...] | None, Rehearsal] = {}
MAX_CACHED_REHEARSALS = 256


@dataclass(frozen=True, slots=True)
class RehearsalInput:
    """What is rehearsed: a protocol, and everything that it can read."""

    protocol: Protocol
    roster: Roster
    question: Question
    options: Json = field(default_factory=dict)
    packet: Packet = EMPTY_PACKET
    timeouts: Mapping[str, float] = field(default_factory=dict)  # of kinds of phases
    look: bool = False
    check: bool = False
    word_share: float = 1.0
    response_format: ResponseFormat | None = None

    def cache_key(self) -> tuple[object, ...]:
        """Return everything that the protocol can read: the question's text only if the flow depends on it."""
        question, packet, text = self.question, self.packet, self.question.text
        if not self.protocol.reads_question:
            text = ""
            if packet.target == question.text:
                packet = replace(packet, target="")
        asked = (text, question.task, question.target, question.domain)
        clocks = tuple((kind, seconds, type(seconds)) for kind, seconds in sorted(self.timeouts.items()))
        options = json.dumps(self.options, sort_keys=True, default=repr)
        written = self.response_format.digest if self.response_format else ""
        return self.protocol, self.roster, asked, packet, options, clocks, self.check, self.word_share, written


class PromptContext(TypedDict):
    """The variables of every prompt besides the question and the seat."""

    focus: dict[str, str]  # seat → what it looks at in this domain
    packet: Packet
    today: str  # YYYY-MM-DD


def template_context(
    question: Question, roster: Roster, packet: Packet = EMPTY_PACKET, today: str = "2026-01-01"
) -> PromptContext:
    """Return the variables of every prompt besides the question and the seat."""
    focus = {seat.name: focus_line(question.domain, seat.name) for seat in roster.seats}
    return {"focus": focus, "packet": packet, "today": today}


async def rehearse_both_ways(given: RehearsalInput) -> Rehearsal:
    """Rehearse with agreeing and with disagreeing seats. Cached by everything that the protocol can read."""
    key = given.cache_key() if given.packet.empty and not given.look else None
    if key in _REHEARSALS:
        return _REHEARSALS[key]
    contested_calls: list[RehearsedCall] = []
    agreed_calls: list[RehearsedCall] = []
    contested = await rehearse(given, agree=False, calls=contested_calls)
    if any(call.ask.schema_name for call in contested_calls):
        await rehearse(given, agree=True, calls=agreed_calls)
    else:  # without typed replies the seats cannot agree or disagree
        agreed_calls = contested_calls
    shorter, longer = sorted((tuple(contested_calls), tuple(agreed_calls)), key=len)
    longest = longer
    if given.check or given.protocol.checks_answer:  # it may check a text again
        calls: list[RehearsedCall] = []
        await rehearse(given, agree=False, calls=calls, longest=True)
        longest = tuple(calls)
    phases = _mark_skippable(_summarize_phases(contested), shorter)
    rehearsal = Rehearsal(phases, (len(shorter), len(longest)), shorter, longer, longest)
    if key and len(_REHEARSALS) < MAX_CACHED_REHEARSALS:
        _REHEARSALS[key] = rehearsal
    return rehearsal


class RehearsalStopped(BaseException):
    """The rehearsal has made too many steps. A protocol that catches Exception does not catch it."""


@dataclass(slots=True)
class StepLimit:
    """Counts the phases, requests and look-ups of a rehearsal, and stops it after MAX_STEPS."""

    protocol: str
    steps: int = 0
    phase: str = ""

    def on_event(self, entry: Entry) -> None:
        if isinstance(entry.event, ev.PhaseStarted | ev.Asked | ev.LookedUp):
            self.steps += 1
            self.phase = entry.event.phase
        if self.steps >= MAX_STEPS:
            raise RehearsalStopped(self.format_error(f"{MAX_STEPS} steps"))

    def format_error(self, after: str) -> str:
        return (
            f'the protocol "{self.protocol}" did not finish in rehearsal after {after}, in the phase "{self.phase}": '
            "end its loop after a fixed number of rounds; nothing was spent"
        )


async def rehearse(
    given: RehearsalInput,
    *,
    agree: bool,
    calls: list[RehearsedCall] | None = None,
    answer: CarryOut | None = None,
    longest: bool = False,
) -> list[Entry]:
    """Run the whole protocol with fake answers that always agree or always disagree. Free, and renders every prompt.

    Append each call to `calls`. `answer` replaces the fake answers. `longest`: replies lead to every optional step.
    """
    protocol, question, options = given.protocol, given.question, given.options
    record = Record("rehearsal", "", "", 0.0, "rehearsal", {})
    limit = StepLimit(protocol.name)
    prompts = Prompts(record.seed, protocol.prompt_folders, protocol.name, word_share=given.word_share)
    answer_step = answer or make_fake_caller(agree, options | {LONGEST_PATH: True} if longest else options)

    async def carry_out(step: Step) -> Outcome:
        if calls is not None:
            calls.append(build_call(step, prompts.quoted_keys, question.text, calls))
        return await answer_step(step)

    council = (looking_council() if given.look else Council)(
        given.roster,
        question,
        ledger=Ledger(NullStore(), record, limit.on_event),
        prompts=prompts,
        carry_out=carry_out,
        context=template_context(question, given.roster, given.packet),
        effects={"look": _fake_lookup, "search": _fake_search},
        timeouts=given.timeouts,
        keeps_conversations=protocol.keeps_conversations,
    )
    response_format = given.response_format and replace(given.response_format, is_checked=False)
    try:
        async with asyncio.timeout(MAX_REHEARSAL_S):
            verdict = await run_flow(protocol, council, options, check=given.check, response_format=response_format)
        if not isinstance(verdict, Verdict):
            raise EngineError(
                f'the protocol "{protocol.name}" returned {type(verdict).__name__} instead of a Verdict; nothing was spent'
            )
    except CouncilError:
        raise
    except RehearsalStopped as stopped:
        raise EngineError(str(stopped)) from None
    except TimeoutError:
        raise EngineError(limit.format_error(f"{MAX_REHEARSAL_S:g} s")) from None
    except Exception as error:
        raise EngineError(
            f'the protocol "{protocol.name}" failed in rehearsal, nothing was spent: {type(error).__name__}: {error}'
        ) from error
    return record.entries


def looking_council() -> type[Council]:
    """Return the class of a council whose seats may read the project before they answer."""
    from council.protocols.common.lookups import LookingCouncil  # not loaded by other councils

    return LookingCouncil


async def _fake_lookup(wanted: LookupQuery) -> list[LookupRow]:
    files: list[LookupRow] = [
        {"look": "file", "path": one["path"], "from": 1, "to": 1, "lines": 1, "content": "…"}
        for one in wanted.get("files", [])
    ]
    names: list[LookupRow] = [
        {"look": "name", "name": name, "paths": ["…"], "more": 0} for name in wanted.get("names", [])
    ]
    patterns: list[LookupRow] = [{"look": "pattern", "pattern": one, "hits": []} for one in wanted.get("patterns", [])]
    return [*files, *names, *patterns]


async def _fake_search(wanted: SearchQuery) -> list[SearchRow]:
    queries = enumerate(wanted["queries"])
    return [{"query": query, "title": "…", "url": f"…/{n}", "snippet": "…"} for n, query in queries]


def make_fake_caller(agree: bool, options: Json) -> CarryOut:
    """Return a function that answers each step with a valid fake reply."""
    asked: Counter[str] = Counter()

    async def carry_out(step: Step) -> Outcome:
        name, schema = step.ask.schema_name, step.ask.schema
        n, asked[name] = asked[name], asked[name] + 1
        await asyncio.sleep(0)  # let parallel asks start before the first answer
        if step.is_json:
            return Outcome("ok", "{}", served_by=step.chain[0])
        reply = example_value(schema, agree) if schema else None
        if reply and step.reply:
            reply = step.reply.rehearse(reply, options, agree=agree, n=n)
        return Outcome("ok", json.dumps(reply) if schema else "…", served_by=step.chain[0])

    return carry_out


def _summarize_phases(entries: Sequence[Entry]) -> tuple[PlanPhase, ...]:
    """Count the calls of each phase; it is parallel if a call starts before the previous one is answered."""
    asked = [entry.event for entry in entries if isinstance(entry.event, ev.Asked)]
    seats = {event.seat for event in asked}
    phases: dict[str, PlanPhase] = {}
    waiting: set[str] = set()
    for event in (entry.event for entry in entries):
        if isinstance(event, ev.Asked):
            waiting.add(event.key)
            name = strip_seat_names(event.phase, seats)
            phase = phases.setdefault(name, {"name": name, "calls": 0, "parallel": False})
            phase["calls"] += 1
            phase["parallel"] = phase["parallel"] or len(waiting) > 1
        elif isinstance(event, ev.Stated):
            waiting.discard(event.key)  # a joined statement was not asked for
    return tuple(phases.values())


def _mark_skippable(phases: Iterable[PlanPhase], shorter: Sequence[RehearsedCall]) -> tuple[PlanPhase, ...]:
    """Return the phases; those that the shorter path does not have are skippable."""
    held = set(list_phases(shorter))
    return tuple(phase if phase["name"] in held else {**phase, "skippable": True} for phase in phases)


def find_phase_timeouts(calls: Sequence[RehearsedCall], timeout: Callable[[float, str], float]) -> dict[str, float]:
    """Return the longest timeout of each phase that has its own. `timeout` adapts one to the member."""
    seconds: dict[str, float] = {}
    for call, phase in zip(calls, list_phases(calls), strict=True):
        if call.timeout is not None:
            seconds[phase] = max(seconds.get(phase, 0.0), timeout(call.timeout, call.member))
    return seconds


def find_warm_starts(
    phases: Iterable[PlanPhase], calls: Iterable[RehearsedCall], cache_points: Mapping[str, object]
) -> tuple[PlanWarmStart, ...]:
    """Return the members that several seats of a phase ask with the same long prefix, if their vendor caches it."""
    long = [call for call in calls if call.shared_tokens > MIN_WARM_TOKENS and call.key in cache_points]
    asked = Counter(zip(list_phases(long), (call.member for call in long), strict=True))
    parallel = {phase["name"] for phase in phases if phase["parallel"]}
    names = dict.fromkeys(name for (phase, name), count in asked.items() if phase in parallel and count > 1)
    tokens = {call.member: call.shared_tokens for call in long}
    return tuple({"member": name, "tokens": tokens[name]} for name in names)
