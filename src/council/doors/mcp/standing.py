"""Status of a run for council_wait: a few fields and one line of text."""

from __future__ import annotations

import time
from collections.abc import Sequence

from council.minutes import Minutes
from council.render.clean import single_line
from council.types import Json

FINAL_STATUSES = ("complete", "incomplete", "failed", "stopped")


def run_status(minutes: Minutes, status: str, awaited_seats: Sequence[str] = ()) -> Json:
    return {
        "run": minutes.run, "status": status, "phase": _current_phase(minutes) or None, "heard": minutes.answered_count,
        "done": status in FINAL_STATUSES, "line": status_line(minutes, status, awaited_seats),
    }  # fmt: skip


def status_line(minutes: Minutes, status: str, awaited_seats: Sequence[str] = ()) -> str:
    protocol = minutes.plan.get("protocol", "council")
    if awaited_seats and status == "running":
        return f"waiting for a person: {', '.join(awaited_seats)} has not answered; answer with `council watch {minutes.run}`"
    if status == "queued" or not minutes.phases:
        return _not_started_line(protocol, status, minutes)
    if status == "running":
        return f"{protocol} in {_format_progress(minutes)}, {max(0, time.time() - minutes.started):.0f} s so far"
    if status == "complete":
        return f'complete: {_format_outcome(minutes)}; call council_result {{"run": "{minutes.run}"}} for the report'
    if status == "stopped":
        return f"stopped in {_format_progress(minutes)}: continue with `council resume {minutes.run}`"
    return f"{status} ({_format_reason(minutes)}): council_result has the partial report; continue with `council resume {minutes.run}`"


def _not_started_line(protocol: str, status: str, minutes: Minutes) -> str:
    if status in FINAL_STATUSES:
        return f"{status} before the first phase: {_format_reason(minutes)}"
    return f"{protocol} is queued"


def _current_phase(minutes: Minutes) -> str:
    return minutes.rounds[-1].name if minutes.rounds else ""


def _format_progress(minutes: Minutes) -> str:
    if not minutes.rounds:
        return "the first phase"
    phase = minutes.rounds[-1]
    return f"{phase.name}: {len(phase.said)} of {len(phase.asked)} answered"


def _format_outcome(minutes: Minutes) -> str:
    values = [minutes.verdict.get(key) for key in ("verdict", "outcome")]
    word = next((str(value) for value in values if value), "an answer")
    confidence = minutes.verdict.get("confidence")
    return f"{word}, confidence {confidence}" if confidence else word


def _format_reason(minutes: Minutes) -> str:
    return single_line(minutes.reason or minutes.stopped or "no reason given", 300)
