"""The trust line: how far to trust an answer, computed by one table from the facts of a run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

from council.engine.degraded import build_degraded_rows, count_asked_seats
from council.engine.minutes import Minutes
from council.types import Json

Level = Literal["HIGH", "MEDIUM", "LOW", "CONTESTED"]
LEVELS: tuple[Level, ...] = ("HIGH", "MEDIUM", "LOW", "CONTESTED")  # from the highest to the lowest

# One row per fact: its level, and the reason as printed. `{detail}` is text of the fact.
TABLE: dict[str, tuple[Level, str]] = {
    "disagree": ("CONTESTED", "the vendor families disagree"),
    "contested": ("CONTESTED", "the answer is contested"),
    "open_fatal": ("CONTESTED", "a fatal issue is open"),
    "open_dispute": ("CONTESTED", "members still disagree"),
    "one_seat": ("LOW", "fewer than two seats answered"),
    "not_complete": ("LOW", "the run is not complete"),
    "embedded": ("LOW", "the embedded model answered"),
    "no_material": ("LOW", "no material was reviewed"),
    "not_shared": ("LOW", "no two seats share the recommendation"),
    "one_vote": ("LOW", "one model answered for all seats, which counts as one vote"),
    "absent": ("MEDIUM", "absent"),
    "one_vendor": ("MEDIUM", "all seats are of one vendor"),
    "partial_agreement": ("MEDIUM", "the seats agree in part"),
    "not_assessed": ("MEDIUM", "agreement was not assessed"),
    "modified": ("MEDIUM", "the answer was changed after criticism"),
    "landed": ("MEDIUM", "severe criticism was valid"),
    "unruled": ("MEDIUM", "an issue was not ruled on"),
    "contested_points": ("MEDIUM", "points are contested"),
    "no_evidence": ("MEDIUM", "no evidence was verified"),
    "shared_member": ("MEDIUM", "one model answered for several seats"),
    "inconsistent": ("MEDIUM", "a judge said PASS and holds a critical finding"),
    "degraded": ("MEDIUM", "parts are missing or were replaced"),
    "confidence": ("MEDIUM", "the confidence of the verdict is {detail}"),
}


class Fact(NamedTuple):
    """A matched row of the table."""

    kind: str
    detail: str = ""


def compute_trust(minutes: Minutes) -> Json:
    """Return the trust field of the report. The lowest matched level wins; `because` lists every matched row."""
    facts = list(dict.fromkeys(list_facts(minutes)))
    levels = [TABLE[fact.kind][0] for fact in facts]
    confidence = minutes.verdict.get("confidence")
    if confidence in LEVELS:
        levels.append(confidence)
    return {"level": lowest_level(levels), "because": [format_fact(fact) for fact in facts]}


def lowest_level(levels: list[Level]) -> Level:
    return max(levels, key=LEVELS.index, default="HIGH")


def format_fact(fact: Fact) -> str:
    text = TABLE[fact.kind][1]
    if "{detail}" in text:
        return text.format(detail=fact.detail)
    return f"{text}: {fact.detail}" if fact.detail else text


def list_facts(minutes: Minutes) -> Iterator[Fact]:
    """Return the facts of a run that limit trust, the most severe level first."""
    verdict = minutes.verdict
    found = [
        *_verdict_facts(verdict),
        *_seat_facts(minutes),
        *(Fact(row["kind"], row["detail"]) for row in verdict.get("trust_facts") or []),
    ]
    yield from sorted(found, key=lambda fact: -LEVELS.index(TABLE[fact.kind][0]))


def _verdict_facts(verdict: Json) -> Iterator[Fact]:
    confidence, agreement = verdict.get("confidence"), verdict.get("agreement")
    if verdict.get("verdict") == "DISAGREE":
        yield Fact("disagree")
    if confidence == "CONTESTED":
        yield Fact("contested")
    elif confidence in ("MEDIUM", "LOW"):
        yield Fact("confidence", confidence)
    if verdict.get("outcome") == "MODIFIED":
        yield Fact("modified")
    if agreement == "none":
        yield Fact("not_shared")
    elif agreement != "full":
        yield Fact("partial_agreement" if agreement == "partial" else "not_assessed")


def _seat_facts(minutes: Minutes) -> Iterator[Fact]:
    answered = [seat for seat in minutes.planned_seats if seat.statements]
    absent = [seat.name for seat in minutes.planned_seats if not seat.statements]
    if minutes.status != "complete":
        yield Fact("not_complete")
    if len(answered) < 2:
        yield Fact("one_seat")
    elif len({seat.vendor for seat in answered}) == 1:
        yield Fact("one_vendor", answered[0].vendor)
    if any((seat.served_by or seat.model).startswith("local:") for seat in answered):
        yield Fact("embedded")
    if absent:
        yield Fact("absent", f"{', '.join(absent)} ({len(answered)} of {count_asked_seats(minutes)} seats answered)")
    if any(row["state"] != "notice" for row in build_degraded_rows(minutes)):
        yield Fact("degraded")
