"""How a run stands, for whoever waits for it: a few fields, and one sentence that a person would say."""

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
        return f"it waits for a person: {', '.join(awaited)} has not answered; `council watch {minutes.run}` takes the answer"
    if status == "queued" or not minutes.phases:
        return _unbegun(protocol, status, minutes)
    if status == "running":
        return f"{protocol} in {_progress(minutes)}, {max(0, time.time() - minutes.started):.0f} s so far"
    if status == "complete":
        return f'complete: {_outcome(minutes)}; council_result {{"run": "{minutes.run}"}} has the report'
    if status == "stopped":
        return (
            f"nobody works on it any more, it came to {_progress(minutes)}: `council resume {minutes.run}` takes it up"
        )
    return f"{status} ({_why(minutes)}): council_result has what there is; `council resume {minutes.run}` goes on"


def _unbegun(protocol: str, status: str, minutes: Minutes) -> str:
    if status in OVER:
        return f"{status} before anybody was asked: {_why(minutes)}"
    return f"{protocol} is queued: nobody has been asked yet"


def _phase(minutes: Minutes) -> str:
    return minutes.rounds[-1].name if minutes.rounds else ""


def _progress(minutes: Minutes) -> str:
    if not minutes.rounds:
        return "its beginning"
    now = minutes.rounds[-1]
    return f"{now.name}: {len(now.said)} of {len(now.asked)} have answered"


def _outcome(minutes: Minutes) -> str:
    found = [minutes.verdict.get(key) for key in ("verdict", "outcome")]
    word = next((str(value) for value in found if value), "an answer")
    confidence = minutes.verdict.get("confidence")
    return f"{word}, confidence {confidence}" if confidence else word


def _why(minutes: Minutes) -> str:
    return one_line(minutes.reason or minutes.stopped or "no reason was told", 300)
