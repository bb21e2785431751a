"""Judges of a run for its reports: names, verdicts and findings."""

from __future__ import annotations

import re

from council.minutes import Minutes, PhaseMinutes, Said, SeatMinutes
from council.render.clean import one_line
from council.render.degraded import asked
from council.render.states import at_rest
from council.types import Json

TASKS = ("validate", "brainstorm", "research")
FIRST, SECOND = ("r1", "judge"), "r2"


def kind(minutes: Minutes) -> str:
    """Return the report kind of a judges run: its task or `quick`; empty for other protocols."""
    plan = minutes.plan
    if plan.get("protocol") not in ("judges", "quick"):
        return ""
    alone = plan["protocol"] == "quick" or (plan.get("options") or {}).get("quick")
    if alone and plan.get("task") not in ("brainstorm", "research"):
        return "quick"
    return plan["task"] if plan.get("task") in TASKS else ""


def nothing_asked(minutes: Minutes) -> bool:
    """Return whether there was nothing to judge, so that no seat was asked."""
    return bool(kind(minutes)) and minutes.status == "complete" and not minutes.phases


def details(minutes: Minutes) -> Json:
    return minutes.verdict.get("details") or {}


def subject(minutes: Minutes) -> str:
    return one_line(minutes.plan.get("target") or minutes.plan.get("question") or "", 100)


def first_round(minutes: Minutes) -> PhaseMinutes | None:
    return next((minutes.phases[name] for name in FIRST if name in minutes.phases), None)


def second_round(minutes: Minutes) -> PhaseMinutes | None:
    return minutes.phases.get(SECOND)


def last_said(minutes: Minutes, name: str) -> Said | None:
    """Return the last statement of a judge to the council."""
    rounds = [second_round(minutes), first_round(minutes)]
    return next((phase.said[name] for phase in rounds if phase and name in phase.said), None)


def replies(minutes: Minutes) -> dict[str, Json]:
    """Return the last reply of each judge, in seating order."""
    said = {seat.name: last_said(minutes, seat.name) for seat in minutes.planned}
    return {name: one.reply for name, one in said.items() if one and one.reply}


def families(minutes: Minutes) -> list[str]:
    return list(dict.fromkeys(seat.vendor for seat in minutes.planned))


def who(minutes: Minutes, name: str) -> str:
    """Format a judge: `**Red** (attacker)` if it has a persona, else its name."""
    seat = minutes.seats.get(name) or SeatMinutes(name)
    if not (seat.role and seat.perspective):
        return f"**{one_line(name)}**"
    family = f", {seat.vendor}" if len(families(minutes)) > 1 else ""
    return f"**{one_line(seat.role)}** ({one_line(seat.perspective)}{one_line(family)})"


def column(seat: SeatMinutes) -> str:
    """Return the table column of a seat, shared by families: its perspective, or its judge number."""
    number = re.search(r"judge-\d+$", seat.name)
    return seat.perspective or (number[0].replace("-", " ").capitalize() if number else seat.name)


def verdict_table(minutes: Minutes) -> list[list[str]]:
    """Return a header and one row per family: the verdict of each judge and of the family."""
    columns = list(dict.fromkeys(column(seat) for seat in minutes.planned))
    verdicts = details(minutes).get("families") or {}
    rows = []
    for family in families(minutes):
        seats = [seat for seat in minutes.planned if seat.vendor == family]
        cells = [" / ".join(ruled(minutes, seat) for seat in seats if column(seat) == name) or "–" for name in columns]
        rows.append([family, *cells, verdicts.get(family) or "none"])
    return [["Family", *columns, "Family verdict"], *rows]


def ruled(minutes: Minutes, seat: SeatMinutes) -> str:
    """Format the verdict of a judge with its confidence, or its state if there is none."""
    reply = replies(minutes).get(seat.name) or {}
    if not reply.get("verdict"):
        return at_rest(seat.state, minutes.stopped)
    doubt = f", {stale(minutes, seat.name)}" if stale(minutes, seat.name) else ""
    return f"{reply['verdict']} ({reply.get('confidence') or 'no confidence given'}{doubt})"


def stale(minutes: Minutes, name: str) -> str:
    """Describe the R1 verdict of a judge that did not answer in R2; empty for any other judge."""
    second, first = second_round(minutes), first_round(minutes)
    if not second or name in second.said or not first or name not in first.said:
        return ""
    missed = second.absent.get(name)
    if missed is None:
        return "R1 verdict (R2 not finished)" if name in second.asked else ""
    return f"R1 verdict (R2 {'timeout' if missed.state == 'timed_out' else missed.state})"


def responded(minutes: Minutes) -> str:
    """Format `2/2 judges responded.`, once per round if there were two."""
    first, second = first_round(minutes), second_round(minutes)
    once = f"{minutes.heard}/{asked(minutes)} judges responded."
    if not second or not first:
        return once
    polled = len({*second.asked, *second.absent})
    return f"R1: {len(first.said)}/{asked(minutes)} judges responded. R2: {len(second.said)}/{polled} judges responded."


def findings(minutes: Minutes) -> list[Json]:
    """Return the grouped findings; for an unfinished run, the findings as each judge wrote them."""
    if minutes.verdict.get("findings") or details(minutes):
        return list(minutes.verdict.get("findings") or [])
    return [
        _raw(name, row, len(replies(minutes)))
        for name, reply in replies(minutes).items()
        for row in reply.get("findings") or []
        if isinstance(row, dict)
    ]


def _raw(name: str, row: Json, of: int) -> Json:
    fix = row.get("fix") or row.get("recommendation") or "No fix specified"
    unchecked: Json = {"found_by": [name], "of": of, "verified": False, "disputed": False, "unchecked": True}
    return {"category": "", "why": "", "location": "", "ref": ""} | row | {"fix": fix} | unchecked


def remarks(minutes: Minutes) -> list[str]:
    """List the reasons to double-check the verdict."""
    fields = details(minutes)
    inconsistent = [
        f"{who(minutes, name)} said PASS and listed a critical finding: inconsistent, both are kept."
        for name in fields.get("inconsistent") or []
    ]
    weakened = [
        f"The FAIL of {who(minutes, name)} counted as a WARN: no second family, verified location or survived challenge supports it."
        for name in fields.get("weakened") or []
    ]
    unrevised = [
        f"{who(minutes, seat.name)}: {stale(minutes, seat.name)}."
        for seat in minutes.planned
        if stale(minutes, seat.name)
    ]
    flips = [
        f"{who(minutes, shift['seat'])} changed from {shift['from']} to {shift['to']} without citing evidence: possible anchoring."
        for shift in minutes.verdict.get("shifts") or []
        if shift.get("weak")
    ]
    return [*inconsistent, *weakened, *unrevised, *flips]
