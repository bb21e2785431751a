"""What is missing from a run, as rows for the report and as the sentences that stand above an answer."""

from __future__ import annotations

from collections import defaultdict

from council.minutes import Minutes, Missed
from council.render.clean import one_line
from council.types import Json

FEW = 0.8  # below this share of the asked seats the answer carries a banner

STOPPED = {
    "interrupted": "interrupted before the last step; `council resume {run}` goes on from here",
    "budget": "stopped by the budget; `council resume {run}` goes on once there is money for it",
    "chair": "no chair could be had; what stands below is a digest of the statements, ruled on by nobody",
    "quorum": "too few seats answered to go on; `council resume {run}` asks the absent ones again",
}


def degraded(minutes: Minutes) -> list[Json]:
    """Who and what is missing, one row each; rows that concern no single seat have none."""
    rows = [_row(missed.phase, missed.state, missed.reason, missed.seat) for missed in minutes.absences]
    if minutes.stopped:
        rows.append(_row(_last_phase(minutes), minutes.stopped, minutes.reason))
    if why := minutes.verdict.get("incomplete"):
        rows.append(_row(_last_phase(minutes), "incomplete", why))
    return rows + [_row(None, "notice", notice) for notice in notices(minutes)]


def _row(phase: str | None, state: str, reason: str, seat: str | None = None) -> Json:
    return {"seat": seat, "phase": phase, "state": state, "reason": reason}


def _last_phase(minutes: Minutes) -> str | None:
    return next(reversed(minutes.phases), None)


def degraded_lines(minutes: Minutes) -> list[str]:
    """The sentences above the answer, the weightiest first; none for a run with nothing to confess."""
    return [
        *_marker(minutes),
        *_absences(minutes),
        *_single_draft(minutes),
        *_banner(minutes),
        *(one_line(notice) for notice in notices(minutes)),
    ]


def why(missed: Missed) -> str:
    """State and reason in one breath: `failed(server): 500 Internal Server Error`."""
    reason = one_line(missed.reason).rstrip(".")
    return f"{missed.state}: {reason}" if reason else missed.state


def notices(minutes: Minutes) -> list[str]:
    """What the plan already knew, and seats that ended up on one member though they asked for different ones."""
    return [*minutes.plan.get("notices", []), *_shared(minutes)]


def _shared(minutes: Minutes) -> list[str]:
    sharing = defaultdict(list)
    for seat in minutes.seats.values():
        if seat.served_by:
            sharing[seat.served_by].append(seat)
    return [
        f"{_listed([seat.name for seat in seats])} were all served by {member}: they are lenses on one model."
        for member, seats in sharing.items()
        if len({seat.model for seat in seats}) > 1
    ]


def _marker(minutes: Minutes) -> list[str]:
    if minutes.status == "complete":
        return []
    if minutes.status == "failed":
        return [f"FAILED: {_failure(minutes)}; `council resume {minutes.run}` asks again."]
    return [f"INCOMPLETE: {_incompleteness(minutes)}."]


def _failure(minutes: Minutes) -> str:
    if minutes.stopped in ("interrupted", "budget"):
        return f"{minutes.stopped} before any seat answered".replace("budget", "stopped by the budget")
    if minutes.absences or not minutes.reason:
        return "no seat answered"
    return one_line(minutes.reason).rstrip(".")


def _incompleteness(minutes: Minutes) -> str:
    if minutes.status == "running":
        return f"the run has not ended; `council resume {minutes.run}` goes on from its last step"
    if minutes.stopped in STOPPED:
        return STOPPED[minutes.stopped].format(run=minutes.run)
    said = minutes.verdict.get("incomplete") or minutes.reason or "the last step of the protocol was not done"
    return one_line(said).rstrip(".")


def _absences(minutes: Minutes) -> list[str]:
    lines = [f"{_who(minutes, missed)} did not answer in {missed.phase}: {why(missed)}" for missed in minutes.absences]
    tails = [_consequence(minutes, missed) for missed in minutes.absences]
    # Several seats absent for good share one count, which stands on the last of them.
    keep = {tail: index for index, tail in enumerate(tails)}
    return [
        f"{line}{tail if keep[tail] == i else ''}." for i, (line, tail) in enumerate(zip(lines, tails, strict=True))
    ]


def _who(minutes: Minutes, missed: Missed) -> str:
    return "the chair" if minutes.chair and missed.seat == minutes.chair.name else missed.seat


def _consequence(minutes: Minutes, missed: Missed) -> str:
    if missed.seat not in minutes.seats or not minutes.heard:
        return ""
    if minutes.seats[missed.seat].statements:
        return "; what it said before stands"
    return f"; the answer below is from {minutes.heard} of {asked(minutes)} seats"


def asked(minutes: Minutes) -> int:
    return len(minutes.plan.get("seats", []))


def _single_draft(minutes: Minutes) -> list[str]:
    draft = minutes.phases.get("draft")
    if minutes.verdict.get("incomplete"):  # the protocol has said it in its own words
        return []
    if not draft or draft.ended is None or len(draft.said) != 1 or asked(minutes) < 2:
        return []
    return [f"Only {next(iter(draft.said))} drafted: nothing was compared, the answer rests on one draft."]


def _banner(minutes: Minutes) -> list[str]:
    seats, heard = asked(minutes), minutes.heard
    if not heard or heard >= FEW * seats:
        return []
    return [f"BELOW 80 %: {heard} of {seats} seats answered; weigh the answer accordingly."]


def _listed(names: list[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}"
