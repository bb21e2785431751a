"""The strongest seat: whether the council changed its answer, and what that answer cost."""

from __future__ import annotations

from collections.abc import Mapping

from council.engine.agreement import find_shared_by
from council.engine.minutes import Minutes, StatementMinutes
from council.money import format_usd
from council.types import Json

UNKNOWN_CHANGES = {
    "no_prices": "not assessed, because the prices do not tell which member is the strongest",
    "not_recorded": "not assessed whether the council changed its recommendation",
    "disagree": "the council gave no single verdict",
}


def compare_strongest(minutes: Minutes) -> Json | None:
    """Return whether the council changed the answer of its strongest seat, and what that answer used; None without two answers.

    The member with the highest price counts as the strongest. If all seats have one member, it is the first seat.
    """
    names = [seat["name"] for seat in minutes.plan.get("seats") or ()]
    rounds = ([phase.said[name] for name in names if name in phase.said] for phase in minutes.phases.values())
    drafts: list[StatementMinutes] = next(filter(None, rounds), [])
    if len(drafts) < 2 or minutes.status != "complete" or not minutes.verdict.get("answer"):
        return None
    said, by = _find_strongest(drafts, minutes.priced)
    if said is None:
        return {
            "seat": None,
            "member": None,
            "by": None,
            "changed": None,
            "unknown": "no_prices",
            "usd": None,
            "tokens": None,
        }
    kept, unknown = _is_kept(minutes, said)
    return {
        "seat": said.seat, "member": said.served_by, "by": by, "changed": None if kept is None else not kept, "unknown": unknown,
        "usd": minutes.billed.get(said.key), "tokens": said.usage.input + said.usage.output,
    }  # fmt: skip


def _find_strongest(drafts: list[StatementMinutes], prices: Mapping[str, float]) -> tuple[StatementMinutes | None, str]:
    """Return the first draft of the member with the highest price, and by what it was chosen; None if no single one has it."""
    members = dict.fromkeys(said.served_by for said in drafts)
    if len(members) == 1:
        return drafts[0], "one_member"
    known = sorted((prices[name] for name in members if name in prices), reverse=True)
    if len(known) < len(members) or known[0] == known[1]:
        return None, ""
    return next(said for said in drafts if prices[said.served_by] == known[0]), "price"


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
    shared = find_shared_by(minutes)
    if details.get("referee") and len(minutes.statements_of(said.seat)) > 1:
        return None, "not_recorded"  # the referee says what the seat recommended at the end, not at first
    return (None, "not_recorded") if shared is None else (said.seat in shared, "")


def format_strongest(report: Json, *, with_name: bool = True) -> str:
    """Return the line about the strongest seat, also without its name at the start; empty if the report has none."""
    found = report.get("strongest")
    if not found:
        return ""
    unknown = UNKNOWN_CHANGES.get(found["unknown"], "")
    start = "strongest seat " if with_name else ""
    if not found["seat"]:
        return f"{start}{unknown}"
    why = "the highest price" if found["by"] == "price" else "the member of all seats"
    what = unknown or f"the council {'changed' if found['changed'] else 'kept'} its recommendation"
    return f"{start}{found['seat']} ({found['member']}, {why}): {what}; {_format_use(found, report)}"


def _format_use(found: Json, report: Json) -> str:
    usd = report["cost"]["usd"]
    if found["usd"] and usd:
        return f"its answer cost {format_usd(found['usd'])}, the council {format_usd(usd)}"
    tokens = report["tokens"]
    return f"its answer used {found['tokens']:,} tokens, the council {tokens['in'] + tokens['out']:,}"


def find_absent_strongest(minutes: Minutes) -> str | None:
    return None
