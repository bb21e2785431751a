"""Status of a run for council_wait: a few fields and one line of text."""

from __future__ import annotations

import time
from collections.abc import Sequence

from council.minutes import Minutes
from council.render.clean import one_line
from council.types import Json

OVER = ("complete", "incomplete", "failed", "stopped")


def standing(minutes: Minutes, status: str, awaited: Sequence[str] = ()) -> Json:
    return {
        "run": minutes.run, "status": status, "phase": _phase(minutes) or None, "heard": minutes.heard,
        "done": status in OVER, "line": line(minutes, status, awaited),
    }  # fmt: skip


def line(minutes: Minutes, status: str, awaited: Sequence[str] = ()) -> str:
    protocol = minutes.plan.get("protocol", "council")
    if awaited and status == "running":
        return f"waiting for a person: {', '.join(awaited)} has not answered; answer with `council watch {minutes.run}`"
    if status == "queued" or not minutes.phases:
        return _unbegun(protocol, status, minutes)
    if status == "running":
        return f"{protocol} in {_progress(minutes)}, {max(0, time.time() - minutes.started):.0f} s so far"
    if status == "complete":
        return f'complete: {_outcome(minutes)}; call council_result {{"run": "{minutes.run}"}} for the report'
    if status == "stopped":
        return f"stopped in {_progress(minutes)}: continue with `council resume {minutes.run}`"
    return f"{status} ({_why(minutes)}): council_result has the partial report; continue with `council resume {minutes.run}`"


def _unbegun(protocol: str, status: str, minutes: Minutes) -> str:
    if status in OVER:
        return f"{status} before the first phase: {_why(minutes)}"
    return f"{protocol} is queued"


def _phase(minutes: Minutes) -> str:
    return minutes.rounds[-1].name if minutes.rounds else ""


def _progress(minutes: Minutes) -> str:
    if not minutes.rounds:
        return "the first phase"
    phase = minutes.rounds[-1]
    return f"{phase.name}: {len(phase.said)} of {len(phase.asked)} answered"


def _outcome(minutes: Minutes) -> str:
    values = [minutes.verdict.get(key) for key in ("verdict", "outcome")]
    word = next((str(value) for value in values if value), "an answer")
    confidence = minutes.verdict.get("confidence")
    return f"{word}, confidence {confidence}" if confidence else word


def _why(minutes: Minutes) -> str:
    return one_line(minutes.reason or minutes.stopped or "no reason given", 300)
