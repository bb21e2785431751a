"""JSON of a run and its minutes."""

from __future__ import annotations

from dataclasses import asdict

from council.minutes import AbsenceMinutes, Minutes, PhaseMinutes, SeatMinutes, StatementMinutes
from council.render.clean import clean_json
from council.render.degraded import format_degraded_lines
from council.render.report import build_report
from council.types import Json


def run_json(minutes: Minutes, run_state: Json) -> Json:
    """Return a run as it is now: report, degradation notices, plan, minutes and cost."""
    summary = build_report(minutes)
    return {
        "run": minutes.run, "name": minutes.name, "folder": minutes.folder, **run_state,
        "report": summary, "above": format_degraded_lines(minutes), "plan": minutes.plan, "minutes": clean_json(_minutes_json(minutes)),
        "cap": minutes.cap, "cost": summary["cost"],
    }  # fmt: skip


def _minutes_json(minutes: Minutes) -> Json:
    return {
        "started": minutes.started, "seconds": minutes.seconds, "seq": minutes.seq,
        "stopped": minutes.stopped, "reason": minutes.reason,
        "phases": [_phase_json(minutes, phase) for phase in minutes.phases.values()],
        "seats": [_seat_json(seat) for seat in minutes.all_seats],
        "notes": [{"what": note.what, "why": note.why} for note in minutes.notes],
        "labels": minutes.labels, "files": minutes.files,
        "troubles": [{"type": trouble.type, **asdict(trouble)} for trouble in minutes.troubles],
    }  # fmt: skip


def _phase_json(minutes: Minutes, phase: PhaseMinutes) -> Json:
    return {
        "name": phase.name, "started": phase.started, "ended": phase.ended, "asked": phase.asked,
        "apart": minutes.is_private_phase(phase.name), "labels": phase.labels,
        "said": [_statement_json(said) for said in phase.said.values()],
        "absent": [_absence_json(missed) for missed in phase.absent.values()],
    }  # fmt: skip


def _statement_json(statement: StatementMinutes) -> Json:
    row = asdict(statement)
    row["tokens"] = statement.usage.as_json()
    del row["usage"], row["phase"]
    return row


def _absence_json(absence: AbsenceMinutes) -> Json:
    row = asdict(absence)
    del row["phase"]
    return row


def _seat_json(seat: SeatMinutes) -> Json:
    names = ("name", "role", "perspective", "model", "vendor", "state", "phase", "since", "words", "served_by", "trouble",
             "reason", "usd", "estimated", "attempts", "seconds")  # fmt: skip
    return {name: getattr(seat, name) for name in names} | {"tokens": seat.usage.as_json()}
