"""Degradation of a run: rows for the report and sentences above the answer."""

from __future__ import annotations

from collections import defaultdict

from council.minutes import Minutes, Missed
from council.render.clean import one_line
from council.render.receipts import HOLE, receipts
from council.render.states import in_words, told
from council.render.stoodin import StoodIn, stood_in
from council.types import Json

FEW = 0.8  # show a banner if fewer than this share of the asked seats answered
REPEATED = "out since it "  # reason of an absence that only repeats an earlier one
NO_MATERIAL = "no material was shown to the judges: they judged the question alone, so the verdict is at best WARN"

STOPPED = {
    "interrupted": "interrupted before the last step; `council resume {run}` continues from here",
    "cancelled": "cancelled before the last step; `council resume {run}` continues from here",
    "budget": "stopped by the budget; raise it and run `council resume {run}` to continue",
    "chair": "no chair was available; below is a digest of the statements, without a ruling",
    "quorum": "too few seats answered{where} to continue; `council resume {run}` asks the absent ones again",
}


def degraded(minutes: Minutes) -> list[Json]:
    """Return one row per missing seat or part; `seat` is null if a row concerns no single seat."""
    rows = [_row(one.phase, "fallback", one.why, one.seat) for one in stood_in(minutes)]
    rows += [_row(missed.phase, missed.state, missed.reason, missed.seat) for missed in absences(minutes)]
    rows += [_row(one.phase, one.state, one.reason, one.seat) for one in receipts(minutes)]
    if minutes.stopped and not _is_told(minutes):
        rows.append(_row(_last_phase(minutes), minutes.stopped, minutes.reason))
    if why := minutes.verdict.get("incomplete"):
        rows.append(_row(_last_phase(minutes), "incomplete", why))
    rows += [_row(None, HOLE, hole) for hole in holes(minutes)]
    return rows + [_row(None, "notice", notice) for notice in notices(minutes)]


def _row(phase: str | None, state: str, reason: str, seat: str | None = None) -> Json:
    return {"seat": seat, "phase": phase, "state": state, "reason": reason}


def _last_phase(minutes: Minutes) -> str | None:
    return minutes.rounds[-1].name if minutes.rounds else None


def _is_told(minutes: Minutes) -> bool:
    """Return whether the run stopped because of its chair and the absence of the chair is already a row."""
    return minutes.stopped == "chair" and any(_is_chair(minutes, missed.seat) for missed in absences(minutes))


def absences(minutes: Minutes) -> list[Missed]:
    """Return each absence once: only the first for a seat that is out for the whole run."""
    return [missed for missed in minutes.absences if not missed.reason.startswith(REPEATED)]


def degraded_lines(minutes: Minutes) -> list[str]:
    """Return the sentences above the answer, the most important first."""
    return [
        *_marker(minutes),
        *(_in_place(one) for one in stood_in(minutes)),
        *_absences(minutes),
        *(one_line(one.line, 400) for one in receipts(minutes) if one.line),
        *_single_draft(minutes),
        *_banner(minutes),
        *_not_shown(minutes),
        *(one_line(notice) for notice in notices(minutes)),
    ]


def notices(minutes: Minutes) -> list[str]:
    """Return the notices of the plan and of the verdict, and the seats that share a member they did not request."""
    empty = [NO_MATERIAL] if (minutes.verdict.get("details") or {}).get("empty") else []
    return [*minutes.plan.get("notices", []), *_shared(minutes), *empty, *minutes.verdict.get("caveats", [])]


def holes(minutes: Minutes) -> list[str]:
    """Return the files that the judges should have seen but did not, with the reason: `src/big.py: over 256 KB`."""
    packet = minutes.plan.get("packet") or {}
    if minutes.plan.get("task") != "validate":
        return []
    reasons = {item["path"]: item["why"] for item in packet.get("skipped") or []}
    return [f"{path}: {reasons[path]}" if reasons.get(path) else path for path in packet.get("holes") or []]


def _not_shown(minutes: Minutes) -> list[str]:
    missing = [*holes(minutes), *(one.reason for one in receipts(minutes) if one.state == HOLE)]
    more = f" and {len(missing) - 5} more" if len(missing) > 5 else ""
    shown = one_line("; ".join(missing[:5]), 600)
    return [f"Not shown to the judges: {shown}{more}. The verdict can be no better than WARN."] if missing else []


def _shared(minutes: Minutes) -> list[str]:
    sharing = defaultdict(list)
    for seat in minutes.planned:
        if seat.served_by:
            sharing[seat.served_by].append(seat)
    return [
        f"{_listed([seat.name for seat in seats])} were all served by {member}, so their agreement means less."
        for member, seats in sharing.items()
        if len({seat.model for seat in seats}) > 1
    ]


def _in_place(one: StoodIn) -> str:
    failed = one_line(in_words(one.state)) if one.state else "did not answer"
    return one_line(f"{one.seat} requested {one.requested}: {failed}; {one.served_by} answered instead.", 400)


def _marker(minutes: Minutes) -> list[str]:
    if minutes.status == "complete":
        return []
    if minutes.status == "failed":
        return [f"FAILED: {_failure(minutes)}; `council resume {minutes.run}` asks again."]
    return [f"INCOMPLETE: {_incompleteness(minutes)}."]


def _failure(minutes: Minutes) -> str:
    if minutes.stopped in ("interrupted", "cancelled", "budget"):
        return f"{minutes.stopped} before any seat answered".replace("budget", "stopped by the budget")
    if minutes.absences or not minutes.reason:
        return "no seat answered"
    return one_line(minutes.reason).rstrip(".")


def _incompleteness(minutes: Minutes) -> str:
    if minutes.status == "running":
        return f"the run has not ended; `council resume {minutes.run}` continues from its last step"
    if minutes.stopped in STOPPED:
        return STOPPED[minutes.stopped].format(run=minutes.run, where=_where(minutes))
    reason = minutes.verdict.get("incomplete") or minutes.reason or "the last step of the protocol was not done"
    return one_line(reason).rstrip(".")


def _where(minutes: Minutes) -> str:
    """Format the phase in which quorum was lost: ` in attack (0 of 2)`."""
    if not minutes.rounds:
        return ""
    phase = minutes.rounds[-1]
    return f" in {one_line(phase.name)} ({len(phase.said)} of {len({*phase.asked, *phase.absent})})"


def _absences(minutes: Minutes) -> list[str]:
    missing = absences(minutes)
    locked_out = _locked_out(minutes, missing)
    return [*_apart(minutes, [one for one in missing if one not in locked_out]), *_refused(minutes, locked_out)]


def _locked_out(minutes: Minutes, missing: list[Missed]) -> list[Missed]:
    """Return the auth failures of vendors with several; they are reported once per vendor."""
    refused = [one for one in missing if one.state == "failed(auth)"]
    vendors = [minutes.seat(one.seat).vendor for one in refused]
    return [one for one, vendor in zip(refused, vendors, strict=True) if vendor and vendors.count(vendor) > 1]


def _refused(minutes: Minutes, locked_out: list[Missed]) -> list[str]:
    vendors: dict[str, list[Missed]] = {}
    for missed in locked_out:
        vendors.setdefault(minutes.seat(missed.seat).vendor, []).append(missed)
    heard = f"; the answer below is from {minutes.heard} of {asked(minutes)} seats" if minutes.heard else ""
    return [
        f"{_listed([_who(minutes, one) for one in missing])} did not answer: {one_line(vendor)} refused the key or "
        f"login they share (failed(auth)): {one_line(missing[0].reason).rstrip('.')}{heard}."
        for vendor, missing in vendors.items()
    ]


def _apart(minutes: Minutes, missing: list[Missed]) -> list[str]:
    tails = [_consequence(minutes, missed) for missed in missing]
    # Seats absent for good share one count, shown with the last of them.
    counts = [tail if " seats" in tail and tail in tails[n + 1 :] else "" for n, tail in enumerate(tails)]
    return [
        f"{_who(minutes, missed)} did not answer in {_phase(minutes, missed)}: {told(missed)}{'' if shared else tail}."
        for missed, tail, shared in zip(missing, tails, counts, strict=True)
    ]


def _who(minutes: Minutes, missed: Missed) -> str:
    return "the chair" if _is_chair(minutes, missed.seat) else one_line(missed.seat)


def _is_chair(minutes: Minutes, seat: str) -> bool:
    return minutes.chair is not None and seat == minutes.chair.name


def _phase(minutes: Minutes, missed: Missed) -> str:
    """Format the phase of an absence; only the last part of a private phase."""
    return one_line(missed.phase.rpartition("/")[2] if minutes.is_apart(missed.phase) else missed.phase)


def _consequence(minutes: Minutes, missed: Missed) -> str:
    if host := minutes.host(missed.seat):
        return f"; {one_line(host)} continues without it"
    if missed.seat not in minutes.seats or not minutes.heard:
        return ""
    if minutes.seats[missed.seat].statements:
        return "; its earlier statement counts" if _spoke_before(minutes, missed) else "; it answered later"
    return f"; the answer below is from {minutes.heard} of {asked(minutes)} seats"


def _spoke_before(minutes: Minutes, missed: Missed) -> bool:
    order = list(minutes.phases)
    said = [one.phase for one in minutes.statements if one.seat == missed.seat]
    return missed.phase not in order or any(order.index(phase) < order.index(missed.phase) for phase in said)


def asked(minutes: Minutes) -> int:
    """Return the number of seats in the plan; 0 if there was nothing to ask."""
    if minutes.status == "complete" and not minutes.phases:
        return 0
    return len(minutes.plan.get("seats", []))


def _single_draft(minutes: Minutes) -> list[str]:
    draft = minutes.phases.get("draft")
    if minutes.verdict.get("incomplete"):  # the protocol already gave its reason
        return []
    if not draft or draft.ended is None or len(draft.said) != 1 or asked(minutes) < 2:
        return []
    return [f"Only {next(iter(draft.said))} drafted: nothing was compared, the answer rests on one draft."]


def _banner(minutes: Minutes) -> list[str]:
    """Return the banner if a seat failed. Seats that an interrupted run never asked do not count as failed."""
    seats, heard = asked(minutes), minutes.heard
    failed = any(missed.seat in minutes.seats and not minutes.host(missed.seat) for missed in minutes.absences)
    if not failed or not heard or heard >= FEW * seats:
        return []
    return [f"BELOW 80 %: {heard} of {seats} seats answered; weigh the answer accordingly."]


def _listed(names: list[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}"
