"""What the council changed: the closest draft, points and seats behind the answer, and the cost of one model."""

from __future__ import annotations

import re
from collections.abc import Sequence

from council.engine.agreement import find_shared_by
from council.engine.minutes import Minutes, StatementMinutes
from council.engine.records import ChangedRow, ClosestDraft, OneModelCost, PositionRow, ReportObject
from council.types import CONCLUSIONS

MIN_SHARE = 0.3  # share of the answer's wording below which no draft counts as close to it
SEQUENCE_WORDS = 3
MIN_WORDS = 12  # of a text that is compared; shorter ones are alike by chance
MAX_CHARS = 200_000  # of a text that is compared


def build_changes(minutes: Minutes, report: ReportObject, positions: Sequence[PositionRow]) -> ChangedRow | None:
    """Return what the facts of a run say about the council's effect; None if the run has no answer of its own."""
    if minutes.status == "running" or not report["answer"].strip():
        return None
    if minutes.verdict.get("agreement_on") == CONCLUSIONS:
        return None
    notes = report.get("notes")
    shared = find_shared_by(minutes)
    answered = [seat.name for seat in minutes.planned_seats if seat.statements]
    return {
        "closest_draft": _find_closest_draft(minutes, report),
        "taken_from": list(notes.get("taken_from") or []) if notes else [],
        "shared_by": shared,
        "differed": [] if shared is None else [name for name in answered if name not in shared],
        "agree": _count_agreed(minutes, positions),
        "differ": sum(1 for row in positions if row["disputed_by"] and row["kind"] != "point"),
        "only_one": sum(1 for row in positions if _is_of_one_seat(row)),
        "one_model": _price_one_model(minutes, report),
    }


def _count_agreed(minutes: Minutes, positions: Sequence[PositionRow]) -> int:
    """Return the number of points that at least two seats share and that no seat disputes."""
    verdict = minutes.verdict
    notes = verdict.get("notes")
    noted = (notes and notes.get("agreed")) or (verdict.get("details") or {}).get("agreed") or []
    rows = [row for row in positions if row["kind"] in ("finding", "claim") and not row["disputed_by"]]
    agreeing: list[int] = [sum(one["position"] == "agrees" for one in row["seats"]) for row in rows]
    return len(noted) + sum(count > 1 for count in agreeing)


def _is_of_one_seat(row: PositionRow) -> bool:
    """Return whether one seat made the point, and the others that answered say nothing about it."""
    said = [one["position"] for one in row["seats"] if one["position"] != "absent"]
    return len(said) > 1 and sorted(set(said)) == ["agrees", "silent"] and said.count("agrees") == 1


# Drafts


def _list_drafts(minutes: Minutes) -> list[StatementMinutes]:
    """Return the statements of the first phase in which the seats answered, in seating order."""
    names = [seat.name for seat in minutes.planned_seats]
    for phase in minutes.rounds:
        if drafts := [phase.said[name] for name in names if name in phase.said]:
            return drafts
    return []


def _find_closest_draft(minutes: Minutes, report: ReportObject) -> ClosestDraft | None:
    """Return the draft whose wording the answer shares most, if that is at least MIN_SHARE. A review has no drafts."""
    drafts = _list_drafts(minutes)
    if minutes.verdict.get("verdict") or minutes.status != "complete" or len(drafts) < 2:
        return None
    answer = _list_sequences(report["answer"])
    common = [(len(answer & _list_sequences(said.said)), said) for said in drafts]
    count, said = max(common, key=lambda one: one[0])
    share = count / max(1, len(answer))
    if share < MIN_SHARE:
        return None
    return {"seat": said.seat, "phase": said.phase, "share": round(share, 2)}


def _list_sequences(text: str) -> frozenset[tuple[str, ...]]:
    words = re.findall(r"\w+", text[:MAX_CHARS].casefold())
    if len(words) < MIN_WORDS:
        return frozenset()
    return frozenset(zip(*(words[n:] for n in range(SEQUENCE_WORDS)), strict=False))


# Cost


def _price_one_model(minutes: Minutes, report: ReportObject) -> OneModelCost | None:
    """Return what one draft cost, cheapest to dearest; None if a price is unknown or nothing was billed."""
    keys = [said.key for said in _list_drafts(minutes)]
    council = report["cost"]["usd"]
    if not council or len(keys) < 2 or any(key not in minutes.billed for key in keys):
        return None
    costs = sorted(round(minutes.billed[key], 9) for key in keys)
    return {"low": costs[0], "high": costs[-1], "council": council} if costs[0] > 0 else None
