"""How far to trust an answer: the level of each fact, and the level of a run computed from its facts.

A protocol returns its facts with its verdict; the engine adds those of the seats. `wording` writes the sentences.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

from council.engine.agreement import count_voices
from council.engine.degraded import build_degraded_rows, count_asked_seats
from council.engine.minutes import Minutes, SeatMinutes
from council.engine.records import DegradedRow
from council.engine.strongest import find_absent_strongest
from council.settings.catalogue import LOCAL_MEMBER
from council.types import (
    CONCLUSIONS,
    FORMAT_PHASE,
    ContestedFactKind,
    LowFactKind,
    MediumFactKind,
    OutcomeFactKind,
    SupportingFactKind,
    TrustFact,
    TrustFactKind,
)

if TYPE_CHECKING:  # the module needs pydantic
    from council.engine.plan_object import PlanObject

Level = Literal["HIGH", "MEDIUM", "LOW", "CONTESTED"]
LEVELS: tuple[Level, ...] = ("HIGH", "MEDIUM", "LOW", "CONTESTED")  # from the highest to the lowest

LIMITS: dict[TrustFactKind, Level] = {  # the level of each kind of fact, the worst first
    **dict.fromkeys(get_args(ContestedFactKind), "CONTESTED"),
    **dict.fromkeys(get_args(LowFactKind), "LOW"),
    **dict.fromkeys(get_args(MediumFactKind), "MEDIUM"),
}
OUTCOMES: tuple[TrustFactKind, ...] = get_args(OutcomeFactKind)  # against the answer; they do not change the level
SUPPORTS: tuple[TrustFactKind, ...] = get_args(SupportingFactKind)  # they do not change the level
# Facts that other facts say already: beside one of these they are left out.
SAID_BY: dict[TrustFactKind, tuple[TrustFactKind, ...]] = {
    "shared_member": ("one_voice",),
    "absent": ("no_seat", "one_seat"),
    "all_agree": ("same_verdict",),
    "low_confidence": ("truncated",),  # a vote that was cut off counts with low confidence
}
DEGRADED_KINDS: dict[str, TrustFactKind] = {  # by the state of a row in `degraded`
    "fallback": "fallback",
    "cut": "cut",
    "unseen": "unseen",
    "truncated": "truncated",
    "prose": "prose",
    "unread": "partly_read",
    "dropped": "dropped",
    "coverage_hole": "coverage_hole",
}
CONFIDENCE_FACTS: dict[str, TrustFactKind] = {
    "CONTESTED": "contested",
    "LOW": "low_confidence",
    "MEDIUM": "medium_confidence",
}


@dataclass(frozen=True, slots=True)
class Trust:
    """The level of an answer, the facts that limit it and those in its favour, each in the order of the table.

    `limits` begins with decisions that turned out wrong. They became known later, so the level stays as it was.
    """

    level: Level
    limits: tuple[TrustFact, ...] = ()
    supports: tuple[TrustFact, ...] = ()


def compute_trust(minutes: Minutes, degraded: Sequence[DegradedRow] | None = None) -> Trust:
    """Return the trust in an answer: the lowest level of its facts. `degraded`: its rows, if they are known."""
    rows = build_degraded_rows(minutes) if degraded is None else degraded
    facts = [*_list_verdict_facts(minutes), *_list_seat_facts(minutes, rows)]
    level = lowest_level(facts)
    confidence = minutes.verdict.get("confidence")
    if confidence in LEVELS and LEVELS.index(confidence) > LEVELS.index(level):
        level = confidence
        facts.append(TrustFact(CONFIDENCE_FACTS[confidence]))
    facts = _drop_repeated(facts)
    kinds = list(LIMITS)
    limits = sorted((fact for fact in facts if fact.kind in LIMITS), key=lambda fact: kinds.index(fact.kind))
    supports = sorted((fact for fact in facts if fact.kind in SUPPORTS), key=lambda fact: SUPPORTS.index(fact.kind))
    return Trust(level, (*_list_wrong_outcomes(minutes), *limits), (*_list_right_outcomes(minutes), *supports))


def _drop_repeated(facts: Iterable[TrustFact]) -> list[TrustFact]:
    """Return each fact once, without those that another fact says already."""
    found = list(dict.fromkeys(facts))
    kinds = {fact.kind for fact in found}
    return [fact for fact in found if kinds.isdisjoint(SAID_BY.get(fact.kind, ()))]


def lowest_level(facts: Iterable[TrustFact]) -> Level:
    """Return the lowest level among facts, HIGH without one that limits it."""
    return max((LIMITS[fact.kind] for fact in facts if fact.kind in LIMITS), key=LEVELS.index, default="HIGH")


def limit_confidence(confidence: str | None, level: Level) -> str | None:
    """Return a confidence that is not above the trust level."""
    if confidence not in LEVELS:
        return confidence
    return max(confidence, level, key=LEVELS.index)


# How decisions turned out


def _list_wrong_outcomes(minutes: Minutes) -> Iterator[TrustFact]:
    own, fork = minutes.outcomes.own, minutes.plan.get("fork")
    if own and own["label"] == "wrong":
        yield TrustFact("turned_out_wrong", own["value"])
    wrong = find_earlier_wrong(minutes)
    parent = fork["run"] if fork else ""
    forked = [run for run in wrong if run == parent or not minutes.plan.get("continues")]
    earlier = [run for run in wrong if run not in forked]
    if earlier:
        yield TrustFact("earlier_wrong", ", ".join(earlier), count=len(earlier))
    if forked:
        yield TrustFact("forked_wrong", ", ".join(forked), count=len(forked))


def _list_right_outcomes(minutes: Minutes) -> Iterator[TrustFact]:
    own = minutes.outcomes.own
    if own and own["label"] == "right":
        yield TrustFact("turned_out_right")


def find_earlier_wrong(minutes: Minutes) -> list[str]:
    """Return the runs that this one builds on and that turned out wrong, by what is known now, else by its plan."""
    known = minutes.outcomes.earlier
    listed = dict.fromkeys([*(minutes.plan.get("earlier_wrong") or ()), *known])
    return [run for run in listed if known.get(run, "wrong") == "wrong"]


# Facts of the verdict


def _list_verdict_facts(minutes: Minutes) -> Iterator[TrustFact]:
    verdict = minutes.verdict
    for row in verdict.get("trust_facts") or []:
        if row["kind"] in LIMITS or row["kind"] in SUPPORTS:
            yield TrustFact.load(row)
    if "result" not in verdict:  # an earlier version: other fields say it
        if verdict.get("verdict") == "DISAGREE":
            yield TrustFact("disagree")
        if verdict.get("outcome") == "MODIFIED":
            yield TrustFact("modified", total=1)
    if minutes.status != "complete":
        yield TrustFact("not_complete", minutes.status)
    yield from _list_agreement_facts(minutes)


def _list_agreement_facts(minutes: Minutes) -> Iterator[TrustFact]:
    """Yield the one fact that the agreement of the first statements is."""
    verdict = minutes.verdict
    answered = [seat.name for seat in minutes.planned_seats if seat.statements]
    if len(answered) < 2 or _is_one_voice(minutes) or minutes.status != "complete":
        return  # another fact says that nothing could agree
    shared_by = verdict.get("shared_by")
    holders = tuple(name for name in shared_by or () if name in answered)
    is_shared_by_all = shared_by is None or len(holders) == len(answered)
    about = CONCLUSIONS if verdict.get("agreement_on") == CONCLUSIONS else ""
    match verdict.get("agreement") or "":
        case "full" if is_shared_by_all and _count_first_voices(minutes) == len(answered):
            yield TrustFact("all_agree", about, tuple(answered), len(answered))
        case "partial" if shared_by is None:
            yield TrustFact("partial_agreement")
        case "partial" if is_shared_by_all:
            if _count_first_voices(minutes) == len(answered):
                yield TrustFact("all_hold", about, tuple(answered), len(answered))
        case "partial":
            yield TrustFact("partial_agreement", about, holders, len(holders), len(answered))
        case "none" if shared_by is not None or "shared_by" not in verdict:
            yield TrustFact("not_shared", about)
        case "":
            yield TrustFact("not_assessed")


# Facts of the seats


def _count_first_voices(minutes: Minutes) -> int:
    """Return the number of voices in the first statements of the seats: those that can agree."""
    first = [(seat, minutes.statements_of(seat.name)[:1]) for seat in minutes.planned_seats if seat.statements]
    served = [(seat.name, seat.model, said.served_by) for seat, statements in first for said in statements]
    return len(set(count_voices(served).values()))


def _is_one_voice(minutes: Minutes) -> bool:
    """Return whether one member spoke for all seats by fallback, at first or at the end: it has the last word there."""
    answered = [seat for seat in minutes.planned_seats if seat.statements]
    last = count_voices((seat.name, seat.model, seat.served_by) for seat in answered)
    return 1 in (_count_first_voices(minutes), len(set(last.values())))


def _list_seat_facts(minutes: Minutes, degraded: Sequence[DegradedRow]) -> Iterator[TrustFact]:
    seats = minutes.needed_seats
    answered = [seat for seat in seats if seat.statements]
    absent = tuple(seat.name for seat in seats if not seat.statements)
    asked = count_asked_seats(minutes)
    yield from _list_voice_facts(minutes, answered)
    chair = [minutes.chair] if minutes.chair else []
    if LOCAL_MEMBER in [seat.served_by for seat in (*answered, *chair)]:
        yield TrustFact("embedded")
    if absent:
        strongest = find_absent_strongest(minutes)
        if strongest:
            yield TrustFact("strongest_absent", "", (strongest,), len(answered), asked)
        others = tuple(name for name in absent if name != strongest)
        if others:
            yield TrustFact("absent", "", others, len(answered), asked)
    elif len(answered) == asked > 1:
        vendors = len(list_vendors(minutes, answered))
        yield TrustFact("all_answered", count=asked, total=vendors)
    is_complete = minutes.status == "complete"  # else "the run is incomplete" says that a step has no answer
    yield from _list_degraded_facts(
        row
        for row in degraded
        if row["state"] != "notice"
        and row["phase"] != FORMAT_PHASE  # it does not change the answer
        and row["seat"] not in absent
        and (is_complete or row["state"] in DEGRADED_KINDS)
    )


def _list_voice_facts(minutes: Minutes, answered: list[SeatMinutes]) -> Iterator[TrustFact]:
    names = tuple(seat.name for seat in answered)
    if not answered:
        yield TrustFact("no_seat")
    elif len(answered) == 1:
        if count_asked_seats(minutes) > 1:
            yield TrustFact("one_seat", "", names, 1)
        elif all(row["kind"] != "self_attacked" for row in minutes.verdict.get("trust_facts") or []):
            yield TrustFact("one_asked", "", names, 1)
    elif _is_one_voice(minutes):
        yield TrustFact("one_voice", answered[0].served_by, names, len(names))
    elif len(vendors := list_vendors(minutes, answered)) == 1:
        yield TrustFact("one_vendor", vendors.pop(), names, len(names))


def list_vendors(minutes: Minutes, answered: list[SeatMinutes]) -> set[str]:
    """Return the vendors of the members that answered, in any phase."""
    known = {seat.model: seat.vendor for seat in answered} | list_fallback_vendors(minutes.plan)
    served = [said.served_by or seat.model for seat in answered for said in minutes.statements_of(seat.name)]
    return {known.get(member) or member.partition(":")[0] for member in served}


def list_fallback_vendors(plan: PlanObject) -> dict[str, str]:
    """Return the vendors of the fallbacks in a plan that are not their providers."""
    rows = [*(plan.get("seats") or ()), *filter(None, [plan.get("chair")])]
    return {member: vendor for row in rows for member, vendor in (row.get("fallback_vendors") or {}).items()}


def _list_degraded_facts(rows: Iterable[DegradedRow]) -> Iterator[TrustFact]:
    """Yield the facts of rows of `degraded`. Seats with the same trouble are one fact; an absence has its phase."""
    seats: dict[tuple[TrustFactKind, str], dict[str, None]] = {}
    for row in rows:
        if not row["seat"]:
            yield TrustFact(DEGRADED_KINDS.get(row["state"], "degraded"), row["reason"])
            continue
        kind = DEGRADED_KINDS.get(row["state"], "missed_phase")
        phase = str(row["phase"] or "") if kind == "missed_phase" else ""
        seats.setdefault((kind, phase), {})[row["seat"]] = None
    for (kind, phase), names in seats.items():
        yield TrustFact(kind, phase, tuple(names), len(names))
