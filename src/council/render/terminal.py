"""Lines printed before and after a run, and formatting helpers shared by both progress views."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal, NamedTuple

from council.engine.degraded import join_names
from council.engine.layout import (
    format_cost,
    format_count,
    format_decision_outcome,
    format_packet_line,
    format_phase_in,
    format_savings,
    format_size,
)
from council.engine.minutes import SeatMinutes
from council.engine.records import CostRow, ReportObject
from council.engine.strongest import format_strongest
from council.money import format_saving, format_usd
from council.text_cleanup import clean_json, single_line

if TYPE_CHECKING:  # the module needs pydantic
    from council.engine.plan_object import AttachmentReceipt, PacketReceipt, PlanAdvice, PlanCalls, PlanObject, PlanSeat

COMPACT_MIN_SEATS = 5  # from this many seats on, seats with the same member share a line


def format_plan(plan: PlanObject) -> list[str]:
    """Return the lines printed before anything is spent."""
    plan = clean_json(plan)
    return [
        f"protocol {plan['protocol']}: {plan.get('why') or 'as asked'}",
        *_format_seats(plan),
        *_format_lines(plan),
        *_format_continued(plan),
        *_format_timeouts(plan),
        *_packet_lines(plan.get("packet") or {}),
        *_format_timing(plan),
        *_format_look(plan),
        *_format_trusted(plan),
        *_format_price(plan),
        format_calls(plan.get("calls") or {}),
        *_format_skippable(plan),
        *_format_advice(plan.get("advice")),
        *format_warnings([*plan.get("warnings", []), *plan.get("notices", [])]),
    ]


def _format_advice(advice: PlanAdvice | None) -> list[str]:
    """Return the protocol that is worth its price, with its reason; nothing if the plan has it."""
    if not advice:
        return []
    return [
        f"advice: protocol {advice['protocol']}: {advice['why']}",
        f"        {format_advised_price(advice['calls'], advice['cost'])}; choose it with --protocol auto",
    ]


def format_advised_price(calls: int, cost: float | None) -> str:
    most = f"at most {format_count(calls, 'call')}"
    return most if cost is None else f"{most}, {format_usd(cost)} expected"


def format_plan_facts(plan: PlanObject) -> list[str]:
    """Return the lines printed before a live view, which shows the protocol, its reason and the seats itself."""
    plan = clean_json(plan)
    facts = [
        format_calls(plan.get("calls") or {}),
        *_format_price(plan),
        *_packet_lines(plan.get("packet") or {}),
        *_format_timeouts(plan),
    ]
    return [
        " · ".join(facts),
        *_format_continued(plan),
        *_format_timing(plan),
        *_format_look(plan),
        *_format_trusted(plan),
        *format_warnings([*plan.get("warnings", []), *plan.get("notices", [])]),
    ]


def format_plan_notes(plan: PlanObject) -> list[str]:
    """Return all that a plan says about models and vendors."""
    plan = clean_json(plan)
    return [*_format_lines(plan), *format_warnings([*plan.get("warnings", []), *plan.get("notices", [])])]


def list_warnings(plan: PlanObject) -> list[str]:
    """Return the warnings that are printed before every run: what the user can act on, or has to know."""
    later = {*plan.get("hints", []), *plan.get("remarks", [])}
    return [line for line in plan.get("warnings", []) if line not in later]


def list_hints(plan: PlanObject) -> list[str]:
    """Return the notices that are printed once a day."""
    return list(plan.get("hints", []))


def format_warnings(lines: Iterable[str]) -> list[str]:
    return [f"! {single_line(line, 600)}" for line in dict.fromkeys(lines)]


def format_footer(report: ReportObject, *, hints: bool = True, report_path: str = "") -> str:
    """Return the last line: `$0.13 · 34 s · rk3v7q · council open · council -c "…"`.

    `hints` are commands for the next step. The path of a report in the project is shown in their place.
    """
    calls, usd = report["calls"]["in_doubt"], report["cost"].get("in_doubt")
    amount = [f"at most {format_usd(usd)} in doubt"] if usd else []
    doubt = amount or ([f"{format_count(calls, 'call')} in doubt"] if calls else [])
    facts = [_format_amount(report["cost"]), *doubt, format_seconds(report["seconds"]), report["run"]]
    return " · ".join([*facts, *(_list_next_steps(report, report_path) if hints else [])])


def _format_amount(cost: CostRow) -> str:
    if cost["usd"] is None:
        return "cost unknown"
    if not cost["usd"]:
        return "no cost"
    return f"{'about ' if cost['estimated'] else ''}{format_usd(cost['usd'])}"


def _list_next_steps(report: ReportObject, report_path: str) -> list[str]:
    if report["status"] is None:
        return [f"watch: council watch {report['run']}"]
    if report["status"] != "complete":
        return [f"resume: council resume {report['run']}"]
    return [f"report {single_line(report_path, 400)}"] if report_path else ["council open", 'council -c "…"']


def format_seconds(seconds: float) -> str:
    """Format `0.4 s`, `34 s` or `2 min 5 s`."""
    if seconds < 1:
        return f"{max(0.0, seconds):.1f} s"
    whole = round(seconds)
    return f"{whole} s" if whole < 120 else f"{whole // 60} min {whole % 60} s"


def format_summary(report: ReportObject, verb: str = "") -> list[str]:
    """Return the lines after a run: report path, calls and cost, next command (`verb`, or by the status)."""
    tokens, calls = report["tokens"], report["calls"]
    replayed = f", {calls['replayed']} replayed" if calls["replayed"] else ""
    doubt = f", {calls['in_doubt']} in doubt" if calls["in_doubt"] else ""
    spent = f"{'at least ' if tokens.get('unknown') else ''}{tokens['in']:,} tokens in, {tokens['out']:,} out"
    savings = format_savings(report.get("stops") or [])
    saved = f" · saved by stops: {savings}" if savings else ""
    verb = verb or ("replay" if report["status"] == "complete" else "resume")
    command = "runs replay" if verb == "replay" else verb
    return [
        *([f"report {report['report_path']}"] if report["report_path"] else []),
        f"{format_count(calls['made'], 'call')}{replayed}{doubt} · {spent} · {format_cost(report['cost'])}{format_saving(report['cost'].get('cached_saving'))}{saved} · {report['seconds']:.1f} s",
        *([single_line(line, 400)] if (line := format_strongest(report)) else []),
        *([f"turned out {outcome}"] if (outcome := format_decision_outcome(report.get("decision_outcome"))) else []),
        f"{verb}: council {command} {report['run']}",
    ]


def format_clock(seconds: float) -> str:
    """Format seconds as `0:41`."""
    return f"{int(max(0.0, seconds)) // 60}:{int(max(0.0, seconds)) % 60:02d}"


def format_busy_seat(seat: SeatMinutes, now: float) -> str:
    """Format a seat whose answer is not complete: `alpha in draft for 70 s of 300 s, no output yet`."""
    place = f"{seat.name} in {format_phase_in(seat.phase.rpartition('/')[2])}"
    spent = f"{place} for {max(0.0, now - seat.since):.0f} s"
    if seat.words:
        return f"{spent}, {format_count(seat.words, 'word')}"
    if seat.limit is None:
        return spent
    return f"{place} for {max(0.0, now - seat.attempted):.0f} s of {seat.limit:.0f} s, no output yet"


def format_megabytes(done: int, total: int) -> str:
    return f"{done / 1e6:.0f} of {total / 1e6:.0f} MB"


# Trouble of seats


class Trouble(NamedTuple):
    """Why a seat is absent or is asked again; seats with the same text and cause share a line."""

    seat: str
    what: str
    cause: str
    style: str
    wait: float | None = None  # seconds until the next attempt


def group_troubles(troubles: Iterable[Trouble]) -> list[tuple[list[str], str, str]]:
    """Return the seats, the text and the style of each cause. The wait is that of the seat which tries again first."""
    groups: dict[tuple[str, str, str, bool], list[Trouble]] = {}
    for one in troubles:
        groups.setdefault((one.what, one.cause, one.style, one.wait is None), []).append(one)
    return [
        ([one.seat for one in group], _format_trouble(group[0], min((one.wait or 0.0) for one in group)), style)
        for (_, _, style, _), group in groups.items()
    ]


def _format_trouble(trouble: Trouble, wait: float) -> str:
    if trouble.wait is None:
        return f"{trouble.what}{trouble.cause}"
    return f"next try {f'in {wait:.0f} s' if wait >= 0.5 else 'now'} after {trouble.cause}"


# Parts of the plan


def _format_lines(plan: PlanObject) -> list[str]:
    """Return what the lines of the documented line-up mean today."""
    rows = [row for row in plan.get("lines", []) if row["documented"]]
    names = [f"{row['line']} (documented as {row['documented']}) is {row['model']}" for row in rows]
    dates = {(row["date"], row["source"]) for row in rows}
    known = " and ".join(f"{'listed' if source == 'list' else 'known'} on {date}" for date, source in sorted(dates))
    return [f"models {known}: {', '.join(names)}"] if names else []


def _format_trusted(plan: PlanObject) -> list[str]:
    """Return what the settings of the project that needed trust send, read and write where."""
    return [f"trusted: {' '.join(line.split())}" for line in plan.get("trusted", [])]


def _format_look(plan: PlanObject) -> list[str]:
    """Return who may read the project before the first answers, and how often."""
    if not (look := plan.get("look")):
        return []
    limit = f"each at most {look['hops']} times, {look['lookups']} files, names or patterns in all"
    return [f"look: {', '.join(look['seats'])} may read files of this folder before answering, {limit}"]


def _format_timing(plan: PlanObject) -> list[str]:
    """Return how the requests of a phase are timed, if not all at once and one for each seat."""
    hedge = "hedge: if a member is slower than usual, the fallback of its seat is asked too"
    return [hedge] * bool(plan.get("hedge")) + [
        f"warm start: one seat on {row['member']} begins, the others follow at its first output, because about "
        f"{row['tokens']:,} tokens are cached for them"
        for row in plan.get("warm_start", [])
    ]


def _format_seats(plan: PlanObject) -> list[str]:
    seats, chair = plan["seats"], plan.get("chair")
    others = [*([chair] if chair else []), *plan.get("helpers", [])]
    if len(seats) >= COMPACT_MIN_SEATS:
        return [*_group_seats(seats), *(f"  {seat['name']}: {_format_members(seat)}" for seat in others)]
    width = max((len(seat["name"]) for seat in [*seats, *others]), default=0)
    return [_format_seat(seat, width) for seat in [*seats, *others]]


def _format_continued(plan: PlanObject) -> list[str]:
    """Format which run is continued, and how many earlier turns of a longer conversation are sent in which form."""
    if not plan.get("continues"):
        return _format_earlier_wrong(plan)
    conversation = plan.get("conversation")
    forms: tuple[Literal["full", "short", "left_out"], ...] = ("full", "short", "left_out")
    turns = {form: len(conversation.get(form, ())) if conversation else 0 for form in forms}
    if sum(turns.values()) < 2:
        return [
            f"continues {plan['continues']}: its question and answer are in the packet",
            *_format_earlier_wrong(plan),
        ]
    short = f" and {turns['short']} shortened" if turns["short"] else ""
    left_out = f", {turns['left_out']} left out" if turns["left_out"] else ""
    full = format_count(turns["full"], "turn")
    return [
        f"continues {plan['continues']}: {full} in full{short} in the packet{left_out}",
        *_format_earlier_wrong(plan),
    ]


def _format_earlier_wrong(plan: PlanObject) -> list[str]:
    """Format which of the runs that this one builds on turned out wrong."""
    wrong = plan.get("earlier_wrong")
    if not wrong:
        return []
    turns = plan.get("conversation")
    is_told = turns is not None and {*wrong} <= {*turns["full"], *turns["short"]}
    told = "; the members are told" if is_told else ""
    return [f"turned out wrong: {', '.join(wrong)}{told}"]


def _format_timeouts(plan: PlanObject) -> list[str]:
    """Format `timeout 120 s per member and phase, beta 300 s, r2 90 s; at most 360 s per seat with its fallbacks`."""
    seats = [seat for seat in [*plan["seats"], plan.get("chair")] if seat and seat.get("timeout")]
    if not seats:
        return []
    usual = Counter(seat["timeout"] for seat in seats).most_common(1)[0][0]
    others = [f"{seat['name']} {seat['timeout']:g} s" for seat in seats if seat["timeout"] != usual]
    phases = [f"{phase['name']} {phase['timeout']:g} s" for phase in plan["phases"] if phase.get("timeout")]
    total = max(seat["total_timeout"] for seat in seats)
    most = f"; at most {total:g} s per seat with its fallbacks" if any(seat["fallbacks"] for seat in seats) else ""
    return [f"timeout {', '.join([f'{usual:g} s per member and phase', *others, *phases])}{most}"]


def _format_seat(seat: PlanSeat, width: int) -> str:
    role = f"  ({seat['role']})" if seat.get("role") else ""
    return f"  {seat['name']:<{width}}  {_format_members(seat)}{role}"


def _group_seats(seats: list[PlanSeat]) -> list[str]:
    members: dict[str, list[str]] = {}
    for seat in seats:
        members.setdefault(_format_members(seat), []).append(seat["name"])
    return [f"  {', '.join(names)}: {member}" for member, names in members.items()]


def _format_members(seat: PlanSeat) -> str:
    return ", then ".join([seat["model"], *(seat.get("fallbacks") or [])])


def format_calls(calls: PlanCalls) -> str:
    low, high = calls.get("min", 0), calls.get("max", 0)
    return format_count(high, "call") if low == high else f"{low} to {high} calls"


def _format_skippable(plan: PlanObject) -> list[str]:
    """Format `improve may not be needed: then 4 calls, low $0.20`; no line if every phase is held."""
    names = [phase["name"] for phase in plan["phases"] if phase.get("skippable")]
    if not names:
        return []
    cost = plan.get("cost")
    low = cost.get("low") if cost else None
    price = f", low {format_usd(low)}" if low else ""
    return [f"{join_names(names)} may not be needed: then {format_count(plan['calls']['min'], 'call')}{price}"]


def _packet_lines(packet: PacketReceipt) -> list[str]:
    line = format_packet_line(packet)
    attached = [_format_attachment(one) for one in packet.get("attachments") or []]
    return [*([f"packet {line}"] if line else []), *([f"attached {', '.join(attached)}"] if attached else [])]


def _format_attachment(one: AttachmentReceipt) -> str:
    """Format `chart.png (image/png, 300 × 200, 12 KB)`."""
    pixels = f"{one['width']} × {one['height']}, " if one.get("width") else ""
    return f"{one['path'].removeprefix('attached/')} ({one['media_type']}, {pixels}{format_size(one['bytes'])})"


def _format_price(plan: PlanObject) -> list[str]:
    """Format `cost low $0.14 · expected $0.31 · worst $0.52 · cap $0.60`; no line if the run is free."""
    cost, cap, unpriced = plan.get("cost"), plan.get("cap"), plan.get("unpriced") or []
    amounts: dict[str, float] = {}
    if cost and cost.get("worst"):
        amounts = {"low": cost["low"], "expected": cost["expected"], "worst": cost["worst"]}
    if cap is not None:
        amounts["cap"] = cap
    known = [f"{name} {format_usd(amount)}" for name, amount in amounts.items()]
    unknown = [f"unknown ({', '.join(unpriced)} unpriced)"] if unpriced else []
    return [f"cost {' · '.join([*unknown, *known])}"] if unknown or known else []
