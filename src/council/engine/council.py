"""The verbs of a protocol.

Every effect is a ledger step: a stored result is replayed, a missing one is computed and stored.
"""

from __future__ import annotations

import hashlib
import hmac
import itertools
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from copy import copy
from dataclasses import dataclass, field, replace
from functools import partial
from string import ascii_uppercase
from typing import Any, Self, TypeVar, overload

from council import events as ev
from council.answer_filter import clean_answer
from council.engine.gather import Grace, gather_or_cancel
from council.engine.ledger import Ledger, compute_fingerprint
from council.engine.prompting import Prompts
from council.engine.reply import Reply, build_schema, parse_reply, read_accepted, read_partial
from council.engine.reply_form import Choices
from council.engine.response_format import ResponseFormat
from council.engine.truncation import FencedPacket, truncate_messages
from council.errors import BudgetSpent, ChairAbsent, EngineError, Fault, QuorumLost, SeatAbsent
from council.notes_filter import without_notes
from council.types import (
    STATES_OUT_FOR_RUN,
    Absence,
    AbsenceRow,
    Ask,
    CarryOut,
    Cuts,
    Effects,
    FinalState,
    LookupQuery,
    LookupRow,
    Outcome,
    Packet,
    PartialReply,
    Question,
    Roster,
    Round,
    SearchQuery,
    SearchRow,
    Seat,
    SeatWatch,
    Statement,
    Step,
    Verdict,
)

T = TypeVar("T")
R = TypeVar("R", bound=Reply)
Effect = Callable[[], Awaitable[Sequence[object]]]  # does a look-up or a search, and returns its results
BUDGET_SKIPPED: FinalState = "skipped(budget)"  # ends the run; the step is asked again on resume


@dataclass(frozen=True, slots=True)
class Request:
    """Arguments of one `ask`, without the seat and the conversation."""

    prompt: str
    reply: type[Reply] | None
    choices: Choices
    timeout: float | None
    variables: dict[str, Any]
    review: Callable[[Any], str] | None = None
    final: bool | None = None
    response_format: ResponseFormat | None = None


def _make_request(
    prompt: str,
    *,
    reply: type[Reply] | None = None,
    choices: Choices | None = None,
    timeout: float | None = None,
    **variables: Any,
) -> Request:
    return Request(prompt, reply, choices or {}, timeout, variables)


@dataclass(slots=True)
class SharedState:
    """What the councils of one run share: the run's own and those of `gather`."""

    positions: dict[str, Statement[Any]] = field(default_factory=dict)  # each seat's latest statement, for the digest
    stances: dict[str, str] = field(default_factory=dict)  # the verdict in each seat's latest reply, where it has one
    out_seats: dict[str, Absence] = field(default_factory=dict)
    partial_verdict: Verdict = field(default_factory=lambda: Verdict(""))  # of the last `so_far`
    has_answer: bool = False  # the answer of the partial verdict is finished
    last_statement: Statement[Any] | None = None  # at the end of a protocol, that of the seat which wrote the answer


class Council:
    """Interface of a running protocol to its seats, its ledger and its material."""

    def __init__(
        self,
        roster: Roster,
        question: Question,
        *,
        ledger: Ledger,
        prompts: Prompts,
        carry_out: CarryOut,
        context: Mapping[str, Any] | None = None,
        effects: Effects | None = None,
        timeouts: Mapping[str, float] | None = None,
        quorum: int = 1,
        grace: float | None = None,
        effort: str | None = None,
        keeps_conversations: bool = True,
    ) -> None:
        self.roster, self.question, self.quorum = roster, question, quorum
        self.keeps_conversations = keeps_conversations  # for `after=`
        self.grace = grace  # seconds to wait for a seat without output after the rest of a poll finished
        self.effort = effort  # reasoning effort of members that support it
        self.ledger, self.prompts = ledger, prompts
        self.carry_out = carry_out
        self.context = dict(context or {})
        self.effects: Effects = effects or {}
        self.timeouts = dict(timeouts or {})  # timeouts in seconds: "explorer", "r2"
        self._seat_names = {seat.name for seat in roster.seats}
        self._seat_titles = {seat.role: seat.name for seat in roster.seats if seat.role}
        self._chair_name = roster.chair.name if roster.chair else ""
        self.state = SharedState()
        self._key_path: tuple[str, ...] = ()
        self._phases: tuple[str, ...] = ()
        self._absences: dict[str, AbsenceRow] = {}

    @property
    def members(self) -> tuple[Seat, ...]:
        return self.roster.seats

    @property
    def packet(self) -> Packet:
        """Return the material sent with the question; empty if there is none."""
        packet: Packet = self.context.get("packet") or Packet()
        return packet

    @property
    def chair(self) -> Seat:
        if self.roster.chair is None:
            raise EngineError("this protocol asks its chair, but its Protocol entry has none: set chair=Seat(…)")
        return self.roster.chair

    @asynccontextmanager
    async def phase(self, name: str) -> AsyncIterator[None]:
        """Name the phase and prefix its keys. Seats absent at its end stay absent on replay."""
        path, phases, absences = self._key_path, self._phases, self._absences
        self._key_path, self._absences = (*path, name), {}
        self._phases = (*phases, "/".join(self._key_path))
        self.ledger.emit_once(ev.PhaseStarted(self._phases[-1]))
        try:
            yield
            self.ledger.end_phase(self._phases[-1], self._absences)
        except BaseException:
            absences.update(self._absences)  # the enclosing phase stores them if it still ends normally
            raise
        finally:
            self._key_path, self._phases, self._absences = path, phases, absences

    @overload
    async def ask(
        self,
        seat: Seat,
        prompt: str,
        *,
        reply: type[R],
        choices: Choices | None = None,
        after: Statement[Any] | None = None,
        timeout: float | None = None,
        review: Callable[[R], str] | None = None,
        **variables: Any,
    ) -> Statement[R]: ...
    @overload
    async def ask(
        self,
        seat: Seat,
        prompt: str,
        *,
        reply: type[R] | None = None,
        choices: Choices | None = None,
        after: Statement[Any] | None = None,
        timeout: float | None = None,
        final: bool | None = None,
        response_format: ResponseFormat | None = None,
        **variables: Any,
    ) -> Statement[R | None]: ...
    async def ask(
        self,
        seat: Seat,
        prompt: str,
        *,
        after: Statement[Any] | None = None,
        review: Callable[[Any], str] | None = None,
        final: bool | None = None,
        response_format: ResponseFormat | None = None,
        **given: Any,
    ) -> Statement[Any]:
        """Ask one seat; `after` continues that seat's conversation. Raise ChairAbsent or SeatAbsent without an answer.

        `review` returns the contradictions in a readable reply, worded for the model. They cost one repair turn; then
        the reply is used, and the protocol reports them. `final` says whether a free text is the answer of the run,
        from which wrappers and openings are removed; without it the chair's is. With `response_format` the statement
        is JSON that fits it.
        """
        made = _make_request(prompt, **given)
        request = replace(made, review=review, final=final, response_format=response_format)
        heard = await self._ask_seat(seat, request, after)
        if isinstance(heard, Statement):
            return heard
        if heard.state == BUDGET_SKIPPED:
            raise BudgetSpent(heard.reason)
        detail = f"{seat.name} did not answer in {self._current_phase}: {heard.state}: {heard.reason}"
        raise ChairAbsent(detail) if seat == self.roster.chair else SeatAbsent(detail, heard)

    @overload
    async def poll(
        self,
        seats: Sequence[Seat],
        prompt: str,
        *,
        reply: type[R],
        choices: Choices | None = None,
        after: Round[Any] | None = None,
        timeout: float | None = None,
        quorum: int | None = None,
        **variables: Any,
    ) -> Round[R]: ...
    @overload
    async def poll(
        self,
        seats: Sequence[Seat],
        prompt: str,
        *,
        reply: type[R] | None = None,
        choices: Choices | None = None,
        after: Round[Any] | None = None,
        timeout: float | None = None,
        quorum: int | None = None,
        **variables: Any,
    ) -> Round[R | None]: ...
    async def poll(
        self,
        seats: Sequence[Seat],
        prompt: str,
        *,
        after: Round[Any] | None = None,
        quorum: int | None = None,
        **given: Any,
    ) -> Round[Any]:
        """Ask all seats in parallel. A failing seat is absent while the quorum holds; otherwise raise QuorumLost."""
        past: Mapping[str, Statement[Any]] = after or {}
        request = _make_request(prompt, **given)
        watches = [SeatWatch() for _ in seats]
        asked = [
            self._ask_seat(seat, request, past.get(seat.name), watch)
            for seat, watch in zip(seats, watches, strict=True)
        ]
        enough = max(1, self.quorum if quorum is None else quorum)
        grace = None if self.grace is None else Grace(self.grace, watches, enough)
        return self._make_round(await gather_or_cancel(asked, grace), quorum)

    @overload
    async def relay(
        self,
        seats: Sequence[Seat],
        prompt: str,
        *,
        reply: type[R],
        choices: Choices | None = None,
        timeout: float | None = None,
        **variables: Any,
    ) -> Round[R]: ...
    @overload
    async def relay(
        self,
        seats: Sequence[Seat],
        prompt: str,
        *,
        reply: type[R] | None = None,
        choices: Choices | None = None,
        timeout: float | None = None,
        **variables: Any,
    ) -> Round[R | None]: ...
    async def relay(self, seats: Sequence[Seat], prompt: str, **given: Any) -> Round[Any]:
        """Ask the seats one after another; each template gets `heard`, the earlier statements."""
        heard: list[Statement[Any] | Absence] = []
        for seat in seats:
            before = [said for said in heard if isinstance(said, Statement)]
            heard.append(await self._ask_seat(seat, _make_request(prompt, **{**given, "heard": before}), None))
            if isinstance(heard[-1], Absence) and heard[-1].state == BUDGET_SKIPPED:
                break
        return self._make_round(heard)

    async def gather(
        self,
        seats: Sequence[Seat],
        act: Callable[[Council, Seat], Coroutine[Any, Any, Statement[T]]],
        *,
        quorum: int | None = None,
    ) -> Round[T]:
        """Run `act` for all seats in parallel, each with a separate Council whose keys include the seat.

        `act` returns the seat's last statement. A seat that did not answer in its `act` is absent while the quorum
        holds; otherwise raise QuorumLost.
        """
        acts = [self._run_act(self._council_for_seat(seat), seat, act) for seat in seats]
        return self._make_round(await gather_or_cancel(acts), quorum)

    async def _run_act(
        self, council: Council, seat: Seat, act: Callable[[Council, Seat], Coroutine[Any, Any, Statement[T]]]
    ) -> Statement[T] | Absence:
        try:
            said = await act(council, seat)
            if said.seat.name != seat.name:
                raise EngineError(
                    f'the act of gather returned a statement of "{said.seat.name}" for "{seat.name}": return its own'
                )
            return said
        except BudgetSpent as spent:  # raised by the round: the other seats' answers are paid for and stored
            return Absence(seat, BUDGET_SKIPPED, str(spent))
        except SeatAbsent as lost:
            absence: Absence = lost.absence
            if absence.seat.name != seat.name:
                raise
            return absence

    async def look(self, seat: Seat, wanted: LookupQuery | list[LookupQuery]) -> list[LookupRow]:
        """Return the results of read-only look-ups through the packet gate; each of a list is a separate step."""
        if not isinstance(wanted, list):
            return await self._look(seat.name, wanted)
        named = [(f"{seat.name}/{n}", query) for n, query in enumerate(wanted, 1)]
        return [row for name, query in named for row in await self._look(name, query)]

    async def _look(self, name: str, wanted: LookupQuery) -> list[LookupRow]:
        effect = self.effects.get("look")
        rows: list[LookupRow] = await self._run_effect("look", name, wanted, effect and partial(effect, wanted))
        return rows

    async def search(self, queries: Sequence[str], *, freshness: str = "none") -> list[SearchRow]:
        """Return search results with title, address and snippet; a failed query has a row with `why`."""
        wanted: SearchQuery = {"queries": list(queries), "freshness": freshness}
        effect = self.effects.get("search")
        rows: list[SearchRow] = await self._run_effect("search", "search", wanted, effect and partial(effect, wanted))
        return rows

    def note(self, what: str, why: str, skipped: Sequence[str] = (), *, by_absence: bool = False) -> None:
        """Record a decision of the protocol and its reason; `skipped` are the phases that are not held because of it.

        The report lists skipped phases as a stop with its saving, unless they are skipped `by_absence` of seats.
        """
        self.ledger.emit_once(ev.Noted(what, why, list(skipped), by_absence))

    def so_far(self, verdict: Verdict, *, is_answer: bool = False) -> None:
        """Record what is known without the remaining steps. A run that ends early reports it below the digest.

        `is_answer`: its answer is finished and only its check is missing, so that it is reported instead of the digest.
        """
        self.state.partial_verdict = verdict
        self.state.has_answer = is_answer

    async def join(
        self, seat: Seat, reply: type[R], act: Callable[[], Awaitable[tuple[Sequence[Statement[Any]], R]]]
    ) -> Statement[R]:
        """Return one statement of a seat for several, which `act` asks for: it returns them and the reply that a rule
        makes of them.

        The joined statement is a step without a request: a resumed run that has it does not call `act`. Later requests
        continue no conversation, because there are several.
        """
        key = "/".join((*self._key_path, seat.name, "join"))
        self.ledger.claim_key(key)
        stored = self.ledger.record.results.get(key)
        if stored is not None:
            said = Statement(seat, key, stored.text, reply.model_validate_json(stored.text), stored)
        else:
            statements, joined = await act()
            outcome = join_outcomes([one.outcome for one in statements], joined.model_dump_json())
            said = Statement(seat, key, outcome.text, joined, outcome)
            sources = json.dumps([[one.key, one.text] for one in statements])
            asked = Ask(key, ({"role": "join", "content": sources},))
            self.ledger.begin_step(key, compute_fingerprint(asked, seat.member))
            self.ledger.accept_result(key, outcome, self._stated_event(said))
        self._note_position(said)
        return said

    def with_context(self, **variables: Any) -> Self:
        """Return a Council of this run whose prompts get other variables. Its phases may run beside its own."""
        council = copy(self)
        council.context = {**self.context, **variables}
        return council

    def is_out(self, seat: Seat) -> bool:
        """Return whether a seat will not be asked again in this run."""
        return seat.name in self.state.out_seats

    def shuffled(self, items: Sequence[T], reader: Seat) -> list[T]:
        """Return the items in an order specific to the reader, and stable when the run is resumed."""
        key = self.prompts.hmac_key
        order = [hmac.new(key, f"{reader.name}/{n}".encode(), hashlib.sha256).digest() for n in range(len(items))]
        return [item for _, item in sorted(zip(order, items, strict=True), key=lambda pair: pair[0])]

    def assign_labels(self, items: Sequence[Statement[T]], reader: Seat) -> dict[str, Statement[T]]:
        """Return the statements under anonymous labels, shuffled for this reader. The ledger records the real seats."""
        shown = dict(zip(make_labels(len(items)), self.shuffled(items, reader), strict=True))
        self.record_labels(reader, {label: one.seat.name for label, one in shown.items()})
        return shown

    def record_labels(self, reader: Seat, labels: Mapping[str, str]) -> None:
        """Record what the labels stand for under which a reader is shown statements or issues."""
        self.ledger.emit_once(ev.Labelled(self._current_phase, reader.name, dict(labels)))

    # Steps

    @property
    def _current_phase(self) -> str:
        if not self._phases:
            raise EngineError("a step was started outside any phase: put it inside `async with council.phase(…)`")
        return self._phases[-1]

    async def _ask_seat(
        self, seat: Seat, request: Request, after: Statement[Any] | None, watch: SeatWatch | None = None
    ) -> Statement[Any] | Absence:
        key, phase = "/".join((*self._key_path, seat.name)), self._current_phase
        self.ledger.claim_key(key)
        if known := self._find_absence(key, seat):
            return known
        if past := self.ledger.source and self.ledger.source.find_absence(phase, key):
            since = ev.upgrade_fields("absence", dict(past)).get("since", "")
            return self._record_absence(
                key, Absence(seat, past["state"], past["reason"], since), Outcome(past["state"])
            )
        if gone := self.state.out_seats.get(seat.name):
            return self._record_absence(
                key, replace(gone, reason=f"out since it was {gone.state} in {gone.since}"), Outcome(gone.state)
            )
        step = self._make_step(key, seat, request, after, watch)
        print_ = compute_fingerprint(step.ask, seat.member)
        stored = self.ledger.find_result(key, print_)
        if stored is not None:
            try:
                return self._record_statement(step, seat, stored)
            except Fault as fault:  # an earlier version accepted it
                lost = Absence(seat, "failed(schema)", f"this version cannot read the stored reply: {fault.detail}")
                return self._record_absence(key, lost, stored)
        return await self._execute_step(step, seat, print_)

    def _make_step(
        self, key: str, seat: Seat, request: Request, after: Statement[Any] | None, watch: SeatWatch | None
    ) -> Step:
        reply, choices, response_format = request.reply, request.choices, request.response_format
        known = {"question": self.question, **self.context, **request.variables}
        if after and not self.keeps_conversations:
            raise EngineError("this protocol passes after=, but its Protocol entry has keeps_conversations=False")
        rendered = self.prompts.render(request.prompt, seat, known, after.conversation if after else (), key)
        for source, changes in rendered.cleaned.items():
            self.note(f"{source}: {changes}", why="it can pass for text of the council")
        schema = build_schema(reply, choices, small=seat.small) if reply else None
        if response_format:
            schema = response_format.native_schema
        material: Packet | None = known.get("packet")
        tokens = None if schema and seat.small else rendered.max_tokens  # the JSON grammar ends a small member's reply
        ask = Ask(
            key,
            rendered.messages,
            schema,
            reply.__name__ if reply else response_format.name if response_format else "",
            rendered.temperature,
            tokens,
            rendered.words,
            effort=self.effort,
            shared=rendered.shared,
            attachments=material.attachments if material else (),
        )

        def read(text: str) -> Any:
            if response_format:
                return response_format.parse(text)
            return parse_reply(reply, text, choices, self._seat_titles) if reply else None

        def read_part(text: str) -> PartialReply | None:
            return read_partial(reply, text, choices, self._seat_titles) if reply else None

        def review(text: str) -> str:
            return request.review(read(text)) if request.review else ""

        def repair(said: str, words: str) -> Ask:
            return replace(ask, messages=(*ask.messages, *self.prompts.render_repair(said, words)))

        def fence(packet: Packet) -> str:
            return self.prompts.fence_packet(packet, known["question"].task, small=seat.small)

        def shrink(ask: Ask, share: float) -> tuple[Ask, Cuts] | None:
            shown: Packet | None = known.get("packet")
            fenced = FencedPacket(shown, self.prompts.fence_mark("packet"), fence) if shown else None
            found = truncate_messages(ask.messages, share, fenced)
            return found and (replace(ask, messages=self.prompts.append_cut_note(*found, key), shared=0), found[1])

        return Step(
            ask,
            seat.name,
            (seat.member, *seat.fallbacks),
            read,
            repair,
            request.timeout,
            shrink,
            seat.name == self._chair_name,
            watch or SeatWatch(),
            reply=reply,
            review=review,
            read_partial=read_part,
            is_final=not (reply or response_format)
            and (seat.name == self._chair_name if request.final is None else request.final),
            is_json=response_format is not None,
        )

    async def _execute_step(self, step: Step, seat: Seat, print_: str) -> Statement[Any] | Absence:
        asked = ev.Asked(
            step.ask.key, self._current_phase, seat.name, seat.member, list(step.ask.messages), step.ask.schema_name
        )
        self.ledger.begin_step(step.ask.key, print_, asked)
        inherited = self.ledger.find_inherited(step.ask.key, print_) if self.ledger.source else None
        outcome = inherited or await self.carry_out(step)
        if not outcome.ok:
            return self._record_absence(step.ask.key, Absence(seat, outcome.state, outcome.reason), outcome)
        said = self._record_statement(step, seat, outcome)
        self.ledger.accept_result(step.ask.key, outcome, self._stated_event(said))
        return said

    def _stated_event(self, said: Statement[Any]) -> ev.Stated:
        outcome = said.outcome
        reply = said.reply.model_dump() if said.reply is not None else None
        return ev.Stated(
            said.key,
            self._current_phase,
            said.seat.name,
            outcome.state,
            said.text if reply is None else without_notes(said.said),
            reply,
            outcome.served_by,
            dict(outcome.usage.as_json()),
            outcome.attempts,
            outcome.seconds,
            list(outcome.cut),
            list(outcome.dropped),
            list(outcome.cut_material),
            said.reply.missing_parts if said.reply else [],
            getattr(self.ledger.live_texts.get(said.key), "started", None),
            said.reply.unread if said.reply else [],
            list(getattr(said.reply, "unanswered", ())),
        )

    def _record_statement(self, step: Step, seat: Seat, outcome: Outcome) -> Statement[Any]:
        reply = read_accepted(step, outcome.text) if step.reply else None
        if reply is not None and outcome.state == "truncated":
            reply = reply.with_low_confidence()
        if step.is_json:
            text = step.read(outcome.text)
        elif step.reply:
            text = outcome.text
        else:
            text = clean_answer(outcome.text) if step.is_final else without_notes(outcome.text)
        spoken = (*step.ask.messages, {"role": "assistant", "content": text}) if self.keeps_conversations else ()
        said: Statement[Any] = Statement(seat, step.ask.key, text, reply, outcome, spoken)
        self._note_position(said)
        return said

    def _note_position(self, said: Statement[Any]) -> None:
        self.state.last_statement = said
        if said.seat.name in self._seat_names and getattr(said.reply, "takes_a_position", True):
            self.state.positions[said.seat.name] = said
            if stance := getattr(said.reply, "verdict", None):
                self.state.stances[said.seat.name] = str(stance)

    def _find_absence(self, key: str, seat: Seat) -> Absence | None:
        for phase in dict.fromkeys((self._current_phase, *self._phases)):
            if found := self.ledger.find_absence(phase, key):
                return self._mark_out(key, Absence(seat, found["state"], found["reason"]))
        if rejected := self.ledger.find_rejection(key):
            absence = Absence(seat, rejected.state, rejected.reason, rejected.since)
            self._note_absence(key, absence)
            return self._mark_out(key, absence)
        return None

    def _note_absence(self, key: str, absence: Absence) -> None:
        """Note an absence for the row of the phase's end."""
        self._absences[key] = {
            "seat": absence.seat.name,
            "state": absence.state,
            "reason": absence.reason,
            "since": absence.since,
        }

    def _record_absence(self, key: str, absence: Absence, outcome: Outcome) -> Absence:
        """Record an absence, in the transaction of the last result of its step."""
        seat = absence.seat.name
        self._note_absence(key, absence)
        spent = dict(outcome.usage.as_json())
        self.ledger.emit(
            ev.WasAbsent(
                key, self._current_phase, seat, absence.state, absence.reason, outcome.attempts, spent, absence.since
            )
        )
        return self._mark_out(key, absence)

    def _mark_out(self, key: str, absence: Absence) -> Absence:
        if absence.state in STATES_OUT_FOR_RUN and not self.ledger.has_other_member(key, absence.seat.name):
            since = absence.since or self._current_phase
            self.state.out_seats.setdefault(absence.seat.name, replace(absence, since=since))
        return absence

    def _make_round(self, heard: Sequence[Statement[T] | Absence], quorum: int | None = None) -> Round[T]:
        round_ = Round(
            [said for said in heard if isinstance(said, Statement)],
            [gone for gone in heard if isinstance(gone, Absence)],
        )
        for gone in round_.absent.values():
            if gone.state == BUDGET_SKIPPED:
                raise BudgetSpent(gone.reason)
        if heard and len(round_) < (self.quorum if quorum is None else quorum):
            reasons = "; ".join(f"{gone.seat.name}: {gone.state}" for gone in round_.absent.values())
            raise QuorumLost(f"{len(round_)} of {len(heard)} seats answered in {self._current_phase} ({reasons})")
        return round_

    def _council_for_seat(self, seat: Seat) -> Self:
        """Return a Council for one seat of this run, with the seat in its keys."""
        council = copy(self)
        council.keeps_conversations = True  # for look-ups
        council._key_path = (*self._key_path, seat.name)
        return council

    async def _run_effect(self, kind: str, name: str, wanted: LookupQuery | SearchQuery, effect: Effect | None) -> Any:
        """Return the results of a look-up or a search, as they are stored."""
        key = "/".join((*self._key_path, name, kind) if name != kind else (*self._key_path, kind))
        self.ledger.claim_key(key)
        print_ = compute_fingerprint(Ask(key, ({"role": kind, "content": json.dumps(wanted, sort_keys=True)},)), kind)
        known = self.ledger.find_result(key, print_) or await self._execute_effect(kind, key, print_, wanted, effect)
        return json.loads(known.text)

    async def _execute_effect(
        self, kind: str, key: str, print_: str, wanted: LookupQuery | SearchQuery, effect: Effect | None
    ) -> Outcome:
        if effect is None:
            raise EngineError(
                f'this council has no "{kind}" effect: configure a packet or a search provider, or do not call "{kind}"'
            )
        what = json.dumps(wanted, ensure_ascii=False)
        self.ledger.begin_step(key, print_)
        outcome = self.ledger.find_inherited(key, print_)
        if outcome is None:
            found = await effect()
            outcome = Outcome("ok", json.dumps(found, ensure_ascii=False), served_by=kind)
        found = json.loads(outcome.text)
        seat = key.split("/")[len(self._key_path)] if kind == "look" else ""
        why = "; ".join(dict.fromkeys(row["why"] for row in found if row.get("why")))
        results = [row for row in found if "why" not in row and all(row.get(part, True) for part in ("paths", "hits"))]
        looked = ev.LookedUp(key, self._current_phase, what, len(results), seat, why)
        self.ledger.accept_result(key, outcome, looked)
        return outcome


def join_outcomes(outcomes: Sequence[Outcome], text: str) -> Outcome:
    """Return the outcome of a statement that is made of others, which are paid for: the worst state, and all cuts."""
    states = [outcome.state for outcome in outcomes]
    state: FinalState = "truncated" if "truncated" in states else "ok_repaired" if "ok_repaired" in states else "ok"
    cut, dropped, material = (
        tuple(dict.fromkeys(one for outcome in outcomes for one in getattr(outcome, name)))
        for name in ("cut", "dropped", "cut_material")
    )
    return Outcome(state, text, served_by=outcomes[0].served_by, cut=cut, dropped=dropped, cut_material=material)


def make_labels(count: int) -> list[str]:
    """Return A to Z, then AA, AB and so on."""
    sizes = itertools.count(1)
    letters = itertools.chain.from_iterable(itertools.product(ascii_uppercase, repeat=size) for size in sizes)
    return ["".join(label) for label in itertools.islice(letters, count)]
