"""The strongest seat, by the price of equal work: whether it answered, whether the council changed its answer, and what
that answer cost.

A price says little about two members of nearly equal price, and nothing about a member without one. Then no seat is
called the strongest.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from council.engine.agreement import find_shared_by
from council.engine.minutes import Minutes, StatementMinutes
from council.engine.records import ReportObject, StrongestRow
from council.money import format_usd
from council.types import CONCLUSIONS

if TYPE_CHECKING:
    from council.final_answers.comparison import Comparison

MIN_LEAD = 0.1  # share of its price by which the strongest member costs more than any other
UNKNOWN_CHANGES = {
    "not_recorded": "not assessed whether the council changed its recommendation",
    "disagree": "the council gave no single verdict",
}


def find_strongest(members: Mapping[str, str], prices: Mapping[str, float]) -> str | None:
    """Return the seat whose member clearly has the highest price of all; None if a price is unknown or two are close.

    `members` are those of the seats, `prices` those of equal work, in dollars.
    """
    if len(members) < 2 or not prices.keys() >= set(members.values()):
        return None
    second, first = sorted(members, key=lambda seat: prices[members[seat]])[-2:]
    is_clear = prices[members[second]] < prices[members[first]] * (1 - MIN_LEAD)
    return first if is_clear else None


def find_absent_strongest(minutes: Minutes) -> str | None:
    """Return the strongest seat of the plan if it did not answer."""
    seats = minutes.planned_seats
    strongest = find_strongest({seat.name: seat.model for seat in seats}, minutes.plan.get("prices") or {})
    needed = minutes.needed_seats
    return next((seat.name for seat in needed if seat.name == strongest and not seat.statements), None)


def compare_strongest(minutes: Minutes) -> StrongestRow | None:
    """Return whether the council changed the answer of its strongest seat, and what that answer used.

    None without two answers, if the prices do not tell which seat is the strongest, and if that seat did not answer.
    """
    names = [seat["name"] for seat in minutes.plan.get("seats") or ()]
    rounds = ({name: phase.said[name] for name in names if name in phase.said} for phase in minutes.phases.values())
    drafts: dict[str, StatementMinutes] = next(filter(None, rounds), {})
    verdict = minutes.verdict
    if len(drafts) < 2 or minutes.status != "complete" or not verdict.get("answer"):
        return None
    if verdict.get("agreement_on") == CONCLUSIONS:  # the council wrote no answer of its own
        return None
    members = {seat.name: seat.model for seat in minutes.planned_seats}
    served = {name: said.served_by for name, said in drafts.items()}
    strongest = find_strongest(members | served, minutes.plan.get("prices") or {})
    if strongest not in drafts:
        return None
    said = drafts[strongest]
    kept, unknown = _is_kept(minutes, said)
    return {
        "seat": strongest,
        "member": said.served_by,
        "by": "price",
        "changed": None if kept is None else not kept,
        "unknown": unknown,
        "usd": minutes.billed.get(said.key),
        "tokens": said.tokens.input + said.tokens.output,
    }


def _is_kept(minutes: Minutes, said: StatementMinutes) -> tuple[bool | None, str]:
    """Return whether the answer keeps the recommendation of a draft, and if that is not known, why."""
    verdict, details = minutes.verdict, minutes.verdict.get("details") or {}
    if combined := verdict.get("verdict"):
        own = (said.reply or {}).get("verdict")
        if combined == "DISAGREE":
            return None, "disagree"
        return (own == combined, "") if own else (None, "not_recorded")
    if details.get("leader") == said.seat and verdict.get("outcome"):
        return verdict["outcome"] != "OVERTURNED", ""
    compared = _compare_final_answers(minutes, said)
    if compared != "unclear":
        return compared == "same", ""
    shared = find_shared_by(minutes)
    if details.get("referee") and len(minutes.statements_of(said.seat)) > 1:
        return None, "not_recorded"  # the referee says what the seat recommended at the end, not at first
    return (None, "not_recorded") if shared is None else (said.seat in shared, "")


def _compare_final_answers(minutes: Minutes, said: StatementMinutes) -> Comparison:
    """Compare the final answer of a draft with that of the council, if both state one."""
    # Not loaded for judges and rulings.
    from council.final_answers.comparison import compare_conclusions
    from council.final_answers.finder import find_last_answer

    texts = (said.said, str(minutes.verdict.get("answer") or ""))
    stated = [find_last_answer(text) for text in texts]
    if not all(stated):
        return "unclear"
    return compare_conclusions(stated[0], stated[1], str(minutes.plan.get("question") or ""))


def format_strongest(report: ReportObject, *, with_name: bool = True) -> str:
    """Return the line about the strongest seat, also without its name at the start; empty if the report has none."""
    found = report.get("strongest")
    if not found or not found["seat"]:
        return ""
    start = "strongest seat " if with_name else ""
    change = f"the council {'changed' if found['changed'] else 'kept'} its recommendation"
    what = UNKNOWN_CHANGES.get(found["unknown"], change)
    return f"{start}{found['seat']} ({found['member']}, the highest price): {what}; {_format_use(found, report)}"


def _format_use(found: StrongestRow, report: ReportObject) -> str:
    usd = report["cost"]["usd"]
    if found["usd"] and usd:
        return f"its answer cost {format_usd(found['usd'])}, the council {format_usd(usd)}"
    tokens = report["tokens"]
    return f"its answer used {found['tokens']:,} tokens, the council {tokens['in'] + tokens['out']:,}"
