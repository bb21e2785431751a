"""JSON of a run and its minutes."""

from __future__ import annotations

from dataclasses import asdict

from council.minutes import Minutes, Missed, PhaseMinutes, Said, SeatMinutes
from council.render.clean import clean_json
from council.render.degraded import degraded_lines
from council.render.report import report
from council.types import Json


def whole(minutes: Minutes, standing: Json) -> Json:
    """Return a run as it is now: report, degradation notices, plan, minutes and cost."""
    summary = report(minutes)
    return {
        "run": minutes.run, "name": minutes.name, "folder": minutes.folder, **standing,
        "report": summary, "above": degraded_lines(minutes), "plan": minutes.plan, "minutes": clean_json(_minutes(minutes)),
        "cap": minutes.cap, "cost": summary["cost"],
    }  # fmt: skip


def _minutes(minutes: Minutes) -> Json:
    return {
        "started": minutes.started, "seconds": minutes.seconds, "seq": minutes.seq,
        "stopped": minutes.stopped, "reason": minutes.reason,
        "phases": [_phase(minutes, phase) for phase in minutes.phases.values()],
        "seats": [_seat(seat) for seat in minutes.everyone],
        "notes": [{"what": note.what, "why": note.why} for note in minutes.notes],
        "labels": minutes.labels, "files": minutes.files,
        "troubles": [{"type": trouble.type, **asdict(trouble)} for trouble in minutes.troubles],
    }  # fmt: skip


def _phase(minutes: Minutes, phase: PhaseMinutes) -> Json:
    return {
        "name": phase.name, "started": phase.started, "ended": phase.ended, "asked": phase.asked,
        "apart": minutes.is_apart(phase.name), "labels": phase.labels,
        "said": [_said(said) for said in phase.said.values()],
        "absent": [_missed(missed) for missed in phase.absent.values()],
    }  # fmt: skip


def _said(said: Said) -> Json:
    row = asdict(said)
    row["tokens"] = said.usage.as_json()
    del row["usage"], row["phase"]
    return row


def _missed(missed: Missed) -> Json:
    row = asdict(missed)
    del row["phase"]
    return row


def _seat(seat: SeatMinutes) -> Json:
    names = ("name", "role", "perspective", "model", "vendor", "state", "phase", "since", "words", "served_by", "trouble",
             "reason", "usd", "estimated", "attempts", "seconds")  # fmt: skip
    return {name: getattr(seat, name) for name in names} | {"tokens": seat.usage.as_json()}
