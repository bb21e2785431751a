"""The judges of a run as its reports speak of them: who they are, what each ruled, what they found."""

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
    """Which report a run of judges gets: that of its task, or that of a quick check; nothing for any other protocol."""
    plan = minutes.plan
    if plan.get("protocol") not in ("judges", "quick"):
        return ""
    alone = plan["protocol"] == "quick" or (plan.get("options") or {}).get("quick")
    if alone and plan.get("task") not in ("brainstorm", "research"):
        return "quick"
    return plan["task"] if plan.get("task") in TASKS else ""


def nothing_asked(minutes: Minutes) -> bool:
    """There was nothing to judge, and nobody was bothered."""
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
    """The judge's last typed statement to the council."""
    rounds = [second_round(minutes), first_round(minutes)]
    return next((held.said[name] for held in rounds if held and name in held.said), None)


def replies(minutes: Minutes) -> dict[str, Json]:
    """Each judge's last reply, in seating order."""
    said = {seat.name: last_said(minutes, seat.name) for seat in minutes.planned}
    return {name: one.reply for name, one in said.items() if one and one.reply}


def families(minutes: Minutes) -> list[str]:
    return list(dict.fromkeys(seat.vendor for seat in minutes.planned))


def who(minutes: Minutes, name: str) -> str:
    """`**Red** (attacker)` where the judge has a persona, else its name."""
    seat = minutes.seats.get(name) or SeatMinutes(name)
    if not (seat.role and seat.perspective):
        return f"**{one_line(name)}**"
    family = f", {seat.vendor}" if len(families(minutes)) > 1 else ""
    return f"**{one_line(seat.role)}** ({one_line(seat.perspective)}{one_line(family)})"


def column(seat: SeatMinutes) -> str:
    """What seats of several families have in common: the perspective, or the judge's number."""
    number = re.search(r"judge-\d+$", seat.name)
    return seat.perspective or (number[0].replace("-", " ").capitalize() if number else seat.name)


def verdict_table(minutes: Minutes) -> list[list[str]]:
    """A head and a row for each family: what each of its judges ruled, and what that comes to."""
    columns = list(dict.fromkeys(column(seat) for seat in minutes.planned))
    own = details(minutes).get("families") or {}
    rows = []
    for family in families(minutes):
        held = [seat for seat in minutes.planned if seat.vendor == family]
        cells = [" / ".join(ruled(minutes, seat) for seat in held if column(seat) == name) or "–" for name in columns]
        rows.append([family, *cells, own.get(family) or "none"])
    return [["Family", *columns, "Family verdict"], *rows]


def ruled(minutes: Minutes, seat: SeatMinutes) -> str:
    """A judge's verdict with its confidence, or why there is none."""
    reply = replies(minutes).get(seat.name) or {}
    if not reply.get("verdict"):
        return at_rest(seat.state, minutes.stopped)
    doubt = f", {stale(minutes, seat.name)}" if stale(minutes, seat.name) else ""
    return f"{reply['verdict']} ({reply.get('confidence') or 'no confidence given'}{doubt})"


def stale(minutes: Minutes, name: str) -> str:
    """The mark of a judge that fell silent in the second round."""
    second, first = second_round(minutes), first_round(minutes)
    if not second or name in second.said or not first or name not in first.said:
        return ""
    missed = second.absent.get(name)
    if missed is None:
        return "R1 verdict (R2 not finished)" if name in second.asked else ""
    return f"R1 verdict (R2 {'timeout' if missed.state == 'timed_out' else missed.state})"


def responded(minutes: Minutes) -> str:
    """`2/2 judges responded`, for each round where there were two."""
    first, second = first_round(minutes), second_round(minutes)
    once = f"{minutes.heard}/{asked(minutes)} judges responded."
    if not second or not first:
        return once
    polled = len({*second.asked, *second.absent})
    return f"R1: {len(first.said)}/{asked(minutes)} judges responded. R2: {len(second.said)}/{polled} judges responded."


def findings(minutes: Minutes) -> list[Json]:
    """As the rules grouped them; of a run that was cut off, as each judge wrote them."""
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
    """What makes a verdict worth a second look."""
    told = details(minutes)
    inconsistent = [
        f"{who(minutes, name)} said PASS and listed a critical finding: inconsistent, both are kept as they were given."
        for name in told.get("inconsistent") or []
    ]
    weakened = [
        f"The FAIL of {who(minutes, name)} counted as a WARN: no second family, verified place or survived challenge bears it out."
        for name in told.get("weakened") or []
    ]
    stood = [
        f"{who(minutes, seat.name)}: {stale(minutes, seat.name)}."
        for seat in minutes.planned
        if stale(minutes, seat.name)
    ]
    flips = [
        f"{who(minutes, shift['seat'])} went from {shift['from']} to {shift['to']} and cites nothing for it: possible anchoring."
        for shift in minutes.verdict.get("shifts") or []
        if shift.get("weak")
    ]
    return [*inconsistent, *weakened, *stood, *flips]
