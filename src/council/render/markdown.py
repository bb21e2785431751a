"""A run as Markdown: the answer, the verbose layouts and the report file."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from council.engine.degraded import format_degraded_lines
from council.engine.layout import (
    close_code_fence,
    fence_code,
    format_absence,
    format_cost,
    format_fork,
    format_label,
    render_layout,
    speaker_label,
    unblind,
)
from council.engine.minutes import Minutes, PhaseMinutes
from council.errors import UsageError
from council.protocols import get_protocol
from council.protocols.judges import report, summary
from council.protocols.judges.summary import render_verdict
from council.protocols.ranking.report import build_ranking
from council.render.mermaid import render_mermaid
from council.render.report import answer_text, build_report
from council.text_cleanup import clean, single_line
from council.types import Json

__all__ = ["render_answer", "render_document", "render_mermaid", "render_verbose"]

CONSENSUS_TEXT = "Consensus detected — no adversarial round needed"


def render_answer(minutes: Minutes) -> str:
    """Render the text for standard output: the degradation lines, then the answer or the verdict."""
    if summary.is_empty_run(minutes):
        return f"{clean(answer_text(minutes)).strip()}\n"
    if summary.report_kind(minutes) in ("validate", "quick"):
        return render_verdict(minutes)
    above = "".join(f"! {line}\n" for line in format_degraded_lines(minutes))
    text = clean(_consolidation_text(minutes) or answer_text(minutes)).strip()
    return "\n".join(part for part in (above, text and f"{text}\n") if part)


def _consolidation_text(minutes: Minutes) -> str:
    """Return the full consolidation of the chair for a brainstorm or research run; empty for others."""
    phase = minutes.phases.get("consolidate")
    said = phase.said.get("chair") if phase and summary.report_kind(minutes) and minutes.status == "complete" else None
    return said.said if said else ""


def render_verbose(minutes: Minutes, show: str = "") -> str:
    """Render the deliberation in the layout of its protocol; `show="transcript"` adds prompts, retries and absences."""
    if summary.is_empty_run(minutes):
        return render_answer(minutes)
    text = render_layout("layout", _build_context(minutes), _protocol_folder(minutes))
    return text + ("\n" + render_layout("transcript", _build_context(minutes)) if show == "transcript" else "")


def _protocol_folder(minutes: Minutes) -> Path | None:
    try:
        return get_protocol(minutes.plan.get("protocol", "")).folder
    except UsageError:
        return None


def render_document(minutes: Minutes) -> str:
    """Render the report file: question, facts, degradation, the answer and every statement; judges have their own layouts."""
    return (
        report.render_judges_report(minutes)
        if summary.report_kind(minutes)
        else render_layout("document", _build_context(minutes), _protocol_folder(minutes))
    )


def _build_context(minutes: Minutes) -> Json:
    triage = _triage_reply(minutes)
    return {
        "minutes": minutes,
        "plan": minutes.plan,
        "seats": minutes.planned_seats,
        "helpers": list(minutes.seats.values())[len(minutes.planned_seats) :],
        "degraded": format_degraded_lines(minutes),
        "statement": partial(_format_statement, minutes),
        "speaker": partial(speaker_label, minutes),
        "other_seats": partial(_format_other_seats, minutes),
        "asked_seats": partial(_sort_asked_seats, minutes),
        "explorer_reports": partial(_explorer_reports, minutes),
        "leader": triage.get("leader"),
        "reason": triage.get("reason") or "none given",
        "skipped": _describe_skipped_attack(minutes),
        "outcome": minutes.verdict.get("outcome"),
        "confidence": minutes.verdict.get("confidence"),
        "final": _format_answer(minutes),
        "rounds": _list_rounds(minutes),
        "ranking": build_ranking(minutes),
        "facts": _list_facts(minutes),
    }


def _triage_reply(minutes: Minutes) -> Json:
    phase = minutes.phases.get("triage")
    said = phase.said.get("chair") if phase else None
    return (said.reply if said else None) or {}


def _describe_skipped_attack(minutes: Minutes) -> str:
    """Return why there was no attack phase; empty if there was one."""
    if "attack" in minutes.phases:
        return ""
    note = next((note for note in minutes.notes if note.what == "attack skipped"), None)
    drafts = minutes.phases["draft"].said if "draft" in minutes.phases else {}
    if note and len(drafts) > 1:
        return CONSENSUS_TEXT
    return f"_No attack was held: {single_line(note.why if note else 'the run did not get that far')}._"


def _format_answer(minutes: Minutes) -> str:
    if summary.report_kind(minutes) in ("validate", "quick") and minutes.status == "complete":
        return fence_code(render_verdict(minutes))
    text = close_code_fence(clean(_consolidation_text(minutes) or answer_text(minutes))).strip()
    return text or "_There is no answer._"


def _format_statement(minutes: Minutes, phase: str, name: str) -> str:
    """Return the statement of a seat in a phase, or why there is none."""
    record = minutes.phases.get(phase)
    if record and name in record.said:
        return close_code_fence(clean(unblind(record.said[name].said, record.labels.get(name, {})))).strip()
    if record and name in record.absent:
        return f"_Absent: {format_absence(record.absent[name])}._"
    if record and name in record.asked:
        return "_No answer: the run stopped first._"
    return _describe_silence(minutes, name, bool(record))


def _describe_silence(minutes: Minutes, name: str, was_held: bool) -> str:
    earlier = [missed for missed in minutes.absences if missed.seat == name]
    if earlier:
        return f"_Absent since {earlier[-1].phase}: {format_absence(earlier[-1])}._"
    return "_Not asked._" if was_held else "_Not held._"


def _format_other_seats(minutes: Minutes, name: str) -> str:
    """Format the seats whose drafts this seat read before it improved its own."""
    drafts = minutes.phases["draft"].said if "draft" in minutes.phases else {}
    return " & ".join(
        format_label(seat.name) for seat in minutes.planned_seats if seat.name in drafts and seat.name != name
    )


def _sort_asked_seats(minutes: Minutes, phase: PhaseMinutes) -> list[str]:
    """Return the asked seats in speaking order; judges, who are asked at once, in seating order."""
    place = {seat.name: n for n, seat in enumerate(minutes.all_seats)}
    return sorted(phase.asked, key=lambda name: place[name]) if summary.report_kind(minutes) else phase.asked


def _explorer_reports(minutes: Minutes, phase: str, name: str) -> list[tuple[str, str]]:
    """Return the reports of a judge's explorers, for its first round."""
    first = summary.first_round(minutes)
    if not summary.report_kind(minutes) or first is None or first.name != phase:
        return []
    last = {said.seat: said.said for said in minutes.statements}
    return [
        (seat.name, close_code_fence(clean(last.get(seat.name) or "_No report._")).strip())
        for seat in minutes.helpers(name)
    ]


def _list_rounds(minutes: Minutes) -> list[PhaseMinutes]:
    """Return the phases to show; without the last phase if it is the chair's, because its statement is the answer."""
    phases = minutes.rounds
    chair = minutes.chair.name if minutes.chair else None
    if phases and minutes.status == "complete" and phases[-1].asked == [chair]:
        phases.pop()
    return phases


def _list_facts(minutes: Minutes) -> list[tuple[str, str]]:
    """Return the rows of the table at the top of the report file."""
    value = build_report(minutes)
    calls, tokens = value["calls"], value["tokens"]
    convened = datetime.fromtimestamp(minutes.started, UTC)
    facts = [
        ("Protocol", f"{value['protocol']}: {minutes.plan.get('why') or 'as asked'}"),
        ("Fork", format_fork(minutes)),
        ("Status", value["status"]),
        ("Verdict", value["verdict"]),
        ("Outcome", value["outcome"]),
        ("Confidence", value["confidence"]),
        ("Target", value["target"]),
        ("Seats heard", f"{value['quorum']['ok']} of {value['quorum']['asked']}"),
        ("Calls", f"{calls['made']} made, {calls['replayed']} replayed, {calls['in_doubt']} in doubt"),
        ("Tokens", f"{tokens['in']:,} in ({tokens['cached']:,} cached), {tokens['out']:,} out"),
        ("Cost", format_cost(value["cost"])),
        ("Seconds", f"{value['seconds']:.1f}"),
        ("Convened", f"{convened:%Y-%m-%d %H:%M} UTC"),
        ("Run", minutes.run),
    ]
    return [(name, str(fact)) for name, fact in facts if fact]
