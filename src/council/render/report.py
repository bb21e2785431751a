"""The report object `council.report/1`, a pure function of the minutes."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NotRequired, TypedDict, get_args

from council.engine.degraded import build_degraded_rows, count_asked_seats, format_degraded_lines
from council.engine.layout import final_state, find_wording, format_lookup
from council.engine.minutes import Minutes, SeatMinutes
from council.engine.records import (
    ChangedRow,
    CostRow,
    FindingRow,
    HedgeRow,
    PositionRow,
    ReportObject,
    SeatLookupRow,
    SectionRow,
    StopRow,
    TrustRow,
)
from council.engine.strongest import compare_strongest
from council.engine.trust import Trust, compute_trust, limit_confidence
from council.events import Entry, Faulted
from council.money import UNBILLED_FAULTS
from council.protocols import ReportView, find_protocol
from council.render.tail import build_tail
from council.text_cleanup import clean_json, may_be_unclean, neutralize_commands, quote_tail_lines
from council.types import Json
from council.wording import load_wording

if TYPE_CHECKING:  # the module needs pydantic
    from council.engine.plan_object import CostEstimate, PlanObject

__all__ = ["answer_text", "build_report", "dump_report", "encode_report", "format_degraded_lines", "read_report"]

VerdictList = Literal[
    "consensus", "disagreements", "insights", "blind_spots", "findings", "dissent", "shifts", "sources", "claims"
]
ATTACHED_FOLDER = "attached/"  # of files that were attached and are in no repository
FREE_VENDORS = ("local", "scripted", "human")
NO_TRUST: TrustRow = {"level": None, "because": [], "in_favour": [], "facts": []}  # of a run that has not ended
IN_DOUBT_STATES = ("timed_out", "in_doubt")
VERDICT_LISTS: tuple[VerdictList, ...] = get_args(VerdictList)


def build_report(minutes: Minutes) -> ReportObject:
    """Build the report object that `--json` prints, for any status."""
    report: ReportObject = json.loads(encode_report(minutes))
    return report


def encode_report(minutes: Minutes) -> str:
    """Return the report object as compact JSON, the form in which it is stored."""
    value = _collect_fields(minutes)
    text = _encode(value)
    return _encode(clean_json(value)) if may_be_unclean(text) else text


_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def _collect_fields(minutes: Minutes) -> Json:
    plan, verdict = minutes.plan, minutes.verdict
    protocol = find_protocol(plan.get("protocol") or "")
    view = protocol.load_report_view()
    degraded = build_degraded_rows(minutes)
    trust = compute_trust(minutes, degraded)
    answer = answer_text(minutes, trust)
    ending = {} if minutes.active else verdict  # a run that is continued has the verdict of its last end
    return {
        "schema": "council.report/1",
        "run": minutes.run,
        "name": minutes.name,
        "status": _find_status(minutes),
        **{key: plan.get(key) for key in ("task", "protocol", "question", "target")},
        "verdict": ending.get("verdict"),
        "outcome": ending.get("outcome"),
        "confidence": limit_confidence(ending.get("confidence"), trust.level),
        "trust": NO_TRUST if minutes.active else _build_trust(trust),
        **({"notes": verdict["notes"]} if verdict.get("notes") else {}),
        "answer": answer,
        "tail": [] if minutes.active else build_tail(minutes, trust, find_wording(minutes)),
        "seats": [_build_seat(minutes, seat, view) for seat in minutes.planned_seats],
        "chair": _build_seat(minutes, minutes.chair, view) if minutes.chair else None,
        **{key: list(verdict.get(key) or []) for key in VERDICT_LISTS},
        "findings": place_in_repository(verdict.get("findings") or [], plan),
        "consensus": place_in_repository(verdict.get("consensus") or [], plan),
        **({"check": verdict["check"]} if verdict.get("check") else {}),
        **view.report_fields(minutes),
        **({"strongest": strongest} if (strongest := compare_strongest(minutes)) else {}),
        **({"stops": stops} if (stops := list_stops(minutes)) else {}),
        "degraded": degraded,
        "quorum": {"needed": protocol.quorum, "ok": minutes.answered_count, "asked": count_asked_seats(minutes)},
        "calls": dict(minutes.calls),
        "tokens": minutes.usage.as_json(),
        "cost": _build_cost(minutes),
        "seconds": round(minutes.seconds, 3),
        "report_path": minutes.report_path or None,
        **{key: plan[key] for key in ("fork", "continues") if plan.get(key)},
        **({"decision_outcome": minutes.outcomes.own} if minutes.outcomes.own else {}),
    }


def place_in_repository(rows: Sequence[FindingRow], plan: PlanObject) -> list[Any]:
    """Return findings with paths from the top of the repository, also of a run in a subfolder."""
    prefix = (plan.get("packet") or {}).get("prefix") or ""
    return [_add_prefix(row, prefix) if isinstance(row, dict) and prefix else row for row in rows]


def _add_prefix(row: FindingRow, prefix: str) -> FindingRow:
    path = str(row.get("path") or "")
    if not path or path.startswith(ATTACHED_FOLDER):
        return row
    placed = row.copy()
    if str(row.get("location") or "").startswith(path):
        placed["location"] = f"{prefix}{row['location']}"
    if str(row.get("ref") or "").startswith(path):
        placed["ref"] = f"{prefix}{row['ref']}"
    placed["path"] = f"{prefix}{path}"
    if words := row.get("by_judge"):
        placed["by_judge"] = [
            {**said, "location": f"{prefix}{said['location']}"}
            if str(said.get("location") or "").startswith(path)
            else said
            for said in words
        ]
    return placed


class ReaderFields(TypedDict):
    """Fields of the report that are computed only for readers."""

    positions: list[PositionRow]
    sections: list[SectionRow]
    changed: NotRequired[ChangedRow]


def read_report(minutes: Minutes) -> ReportObject:
    """Return the report with positions, sections and changes, which are computed only for readers."""
    from council.render.changes import build_changes  # not loaded by a run
    from council.render.positions import build_positions

    report, positions = build_report(minutes), build_positions(minutes)
    sections = find_protocol(minutes.plan.get("protocol") or "").load_report_view().answer_sections(minutes)
    added: ReaderFields = {
        "positions": positions,
        "sections": [{"name": name, "title": title, "text": text} for name, title, text in sections],
    }
    if changed := build_changes(minutes, report, positions):
        added["changed"] = changed
    shown: ReaderFields = clean_json(added) if may_be_unclean(_encode(added)) else added
    return {**report, **shown}


@dataclass(frozen=True, slots=True)
class FinishedRun:
    """What a format renders: the report, the minutes and, for `html`, the events."""

    minutes: Minutes
    entries: Sequence[Entry] = ()

    @property
    def report(self) -> ReportObject:
        return build_report(self.minutes)


def render_run(run: FinishedRun) -> str:
    return neutralize_commands(dump_report(read_report(run.minutes)).decode(), "json")


def dump_report(value: ReportObject) -> bytes:
    """Return the bytes of a report: one indented JSON object and a newline."""
    return (json.dumps(value, ensure_ascii=False, indent=2) + "\n").encode()


def _find_status(minutes: Minutes) -> str | None:
    """Return the status of a run that has ended, or whose process has; None while it waits or works."""
    if minutes.active:
        return None
    return "incomplete" if minutes.status == "running" else minutes.status


def _build_trust(trust: Trust) -> TrustRow:
    english = load_wording("en")
    return {
        "level": trust.level,
        "because": english.list_reasons(trust.limits),
        "in_favour": english.list_supports(trust.level, trust.supports),
        "facts": [fact.as_row() for fact in (*trust.limits, *trust.supports)],
    }


def answer_text(minutes: Minutes, trust: Trust | None = None) -> str:
    """Return the answer with its assessment; for a run that was killed before it had one, how far it got.

    A run that has not ended has none.
    """
    if minutes.active:
        return ""
    if minutes.status == "running" and minutes.answered_count:
        return _describe_progress(minutes)
    answer = quote_tail_lines(str(minutes.verdict.get("answer") or ""))
    assessment = str(minutes.verdict.get("assessment") or "").strip()
    if not answer or not assessment:
        return answer
    wording = find_wording(minutes)
    heading = wording.heading("confidence_assessment")
    level = wording.format_level((trust or compute_trust(minutes)).level)
    return f"{answer.rstrip()}\n\n## {heading}\n\n**{level}{wording.period.rstrip()}** {assessment}"


def _describe_progress(minutes: Minutes) -> str:
    wording = find_wording(minutes)
    heard = {"count": minutes.answered_count, "total": count_asked_seats(minutes)}
    if not minutes.rounds:
        return wording.heading("stopped_in_first_phase", **heard)
    return wording.heading("stopped_in_phase", phase=minutes.rounds[-1].name, **heard)


def _build_seat(minutes: Minutes, seat: SeatMinutes, view: ReportView) -> Json:
    reply = next((said.reply for said in reversed(minutes.statements_of(seat.name)) if said.reply), {})
    files = [path for key, path in minutes.files.items() if key.rpartition("/")[2] == seat.name]
    return {
        "name": seat.name,
        "label": view.last_speaker_label(minutes, seat.name),
        "role": seat.role or None,
        "perspective": seat.perspective or None,
        "model": seat.model,
        "served_by": seat.served_by or None,
        "vendor": seat.vendor,
        "state": final_state(seat.state, minutes.stopped) if minutes.status != "running" else seat.state,
        "verdict": reply.get("verdict"),
        "confidence": _confidence_label(reply.get("confidence")),
        "file": files[-1] if files else None,  # that of its last round
        "tokens": seat.usage.as_json(),
        "cost": None if _list_unpriced(minutes, [seat]) else round(seat.usd, 9),
        "attempts": seat.attempts,
        "seconds": round(seat.seconds, 3),
        **view.seat_fields(minutes, seat.name),
        **({"hedged": hedges} if (hedges := _list_hedges(minutes, seat.name)) else {}),
        **({"looked_up": looked} if minutes.lookups and (looked := _list_lookups(minutes, seat.name)) else {}),
    }


def _list_lookups(minutes: Minutes, seat: str) -> list[SeatLookupRow]:
    """Return what a seat has looked up in the project before its first answer, in order."""
    rows: list[SeatLookupRow] = []
    for lookup in minutes.lookups:
        if lookup.seat == seat:
            rows.append({"what": format_lookup(lookup.what), "found": lookup.found})
            if lookup.why:
                rows[-1]["why"] = lookup.why
    return rows


def _list_hedges(minutes: Minutes, seat: str) -> list[HedgeRow]:
    return [
        {"phase": one.key.rpartition("/")[0], "member": one.member, "by": one.by, "after": one.after}
        for one in minutes.hedges
        if one.seat == seat
    ]


def _confidence_label(confidence: Any) -> Any:
    """Convert a numeric confidence (0 to 1) to HIGH, MEDIUM or LOW."""
    if not isinstance(confidence, int | float):
        return confidence
    return "HIGH" if confidence >= 0.75 else "MEDIUM" if confidence >= 0.4 else "LOW"


def _build_cost(minutes: Minutes) -> CostRow:
    """Return the billed cost, with what requests without an answer may have cost apart; `estimated` if any part is."""
    seats = minutes.all_seats
    unpriced = _list_unpriced(minutes, seats)
    in_doubt = minutes.in_doubt_usd()
    cost: CostRow = {
        "usd": None if unpriced else round(minutes.usd, 9),
        "estimated": any(seat.estimated for seat in seats),
        "unpriced": unpriced,
    }
    if in_doubt:
        cost["in_doubt"] = in_doubt
    if minutes.cap is not None:
        cost["cap"] = minutes.cap
    if minutes.cached_saving is not None:
        cost["cached_saving"] = minutes.cached_saving
    return cost


def list_stops(minutes: Minutes) -> list[StopRow]:
    """Return the phases of the plan that were not needed: why, and what they would have cost.

    Phases that could not be held because seats are absent are no stop, nor are phases that the plan does not have. The
    calls of a phase that was held to allow the stop, and is not in the plan, are subtracted from the first stop.
    """
    planned = {phase["name"]: int(phase.get("calls", 0)) for phase in minutes.plan.get("phases") or []}
    first = {name.split("/")[0] for name in planned}
    extra = [said for said in minutes.statements if said.phase.split("/")[0] not in first]
    stops: list[StopRow] = []
    for note in minutes.notes:
        names = [] if note.by_absence else [name for name in planned if _is_skipped(minutes, name, note.skipped)]
        if names:
            calls = sum(planned[name] for name in names) - len(extra)
            saved = _estimate_saving(minutes, names, [said.key for said in extra])
            stops.append({"what": note.what, "why": note.why, "skipped": names, "calls": calls, "saved": saved})
            extra = []
    return stops


def _estimate_saving(minutes: Minutes, skipped: Sequence[str], extra: Sequence[str]) -> float | None:
    """Return what skipped phases would have cost, without what the steps in `extra` cost; None if a price is unknown.

    The plan's estimate is reduced in the ratio in which the phases that were held cost less than it expected: short
    answers would have been followed by short ones.
    """
    cost = minutes.plan.get("cost")
    expected = _estimate_phases(cost, skipped)
    if not cost or not expected:
        return expected
    billed: defaultdict[str, float] = defaultdict(float)  # by top-level phase
    for key, usd in minutes.billed.items():
        billed[key.split("/")[0]] += usd
    phases = cost["phases"]
    held = {name: usd for name, usd in phases.items() if name not in skipped and billed[name.split("/")[0]]}
    spent = sum(billed[name] for name in {name.split("/")[0] for name in held})
    ratio = min(1.0, spent / sum(held.values())) if held else 1.0
    return round(expected * ratio - sum(minutes.billed.get(key, 0.0) for key in extra), 6)


def _is_skipped(minutes: Minutes, phase: str, skipped: Sequence[str]) -> bool:
    """Return whether a phase of the plan, or the phase it belongs to, was skipped and not held later."""
    first = phase.split("/")[0]
    return (phase in skipped or first in skipped) and phase not in minutes.phases and first not in minutes.phases


def _estimate_phases(cost: CostEstimate | None, phases: Sequence[str]) -> float | None:
    """Return the expected cost of phases; None if a price is unknown, or without this estimate (0.1)."""
    if cost is None:
        return None
    if not cost.get("expected"):
        return 0.0
    known = cost.get("phases") or {}
    return round(sum(known[name] for name in phases), 6) if all(name in known for name in phases) else None


def _list_unpriced(minutes: Minutes, seats: Iterable[SeatMinutes]) -> list[str]:
    """Return the members that may have billed at an unknown price; an unknown cost is never 0."""
    used = {member for seat in seats for member in _list_billable_members(minutes, seat)} - minutes.priced
    return sorted(member for member in used if _member_vendor(minutes, member) not in FREE_VENDORS)


def _list_billable_members(minutes: Minutes, seat: SeatMinutes) -> set[str]:
    served = {said.served_by for said in minutes.new_statements_of(seat.name)}
    faulted = {
        trouble.member
        for trouble in minutes.troubles
        if isinstance(trouble, Faulted) and trouble.seat == seat.name and trouble.kind not in UNBILLED_FAULTS
    }
    in_flight = {sent.member for sent in minutes.open_attempts.values() if sent.seat == seat.name}
    interrupted = {
        attempt.event.member
        for attempt in minutes.attempts
        if attempt.is_interrupted and attempt.event.seat == seat.name
    }
    in_doubt = {seat.model} if seat.state in IN_DOUBT_STATES and seat.model else set()
    return served | faulted | in_flight | interrupted | in_doubt


def _member_vendor(minutes: Minutes, member: str) -> str:
    requested = {seat.model: seat.vendor for seat in minutes.all_seats}
    return requested.get(member) or member.partition(":")[0]
