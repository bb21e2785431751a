"""A run as Markdown: the answer, the verbose layouts and the report file."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from functools import partial
from html import escape
from typing import NamedTuple

from council.engine.degraded import format_degraded_lines, format_missing_lines
from council.engine.layout import (
    close_code_fence,
    fence_code,
    final_state,
    format_absence,
    format_cost,
    format_count,
    format_fork,
    format_table_rows,
    format_trust_fact,
    render_layout,
    render_layout_parts,
    unblind,
)
from council.engine.minutes import Minutes, PhaseMinutes
from council.engine.strongest import format_strongest
from council.protocols import Protocol, ReportView, find_protocol
from council.render.mermaid import render_mermaid
from council.render.positions import build_position_table
from council.render.report import FinishedRun, answer_text, build_report
from council.render.tail import format_tail
from council.text_cleanup import clean
from council.types import Json

__all__ = [
    "list_answer_parts",
    "render_answer",
    "render_document",
    "render_document_parts",
    "render_mermaid",
    "render_verbose",
]


class TextPart(NamedTuple):
    """A part of the text for standard output: Markdown, or plain lines in columns."""

    text: str
    is_markdown: bool = True


def list_answer_parts(minutes: Minutes, *, with_tail: bool = True) -> list[TextPart]:
    """Return the parts of the text for standard output: the missing parts, the answer or the verdict, and the tail."""
    if minutes.is_empty_run:
        return [TextPart(f"{clean(answer_text(minutes)).strip()}\n")]
    view = _protocol_of(minutes).load_report_view()
    tail = TextPart(f"{render_tail(minutes)}\n" if with_tail and minutes.status != "failed" else "")
    if verdict := view.verdict_text(minutes):
        return [part for part in (TextPart(verdict, is_markdown=False), tail) if part.text.strip()]
    above = TextPart("".join(f"! {line}\n" for line in format_missing_lines(minutes)), is_markdown=False)
    text = clean(view.full_answer(minutes) or answer_text(minutes)).strip()
    return [part for part in (above, TextPart(f"{text}\n"), tail) if part.text.strip()]


def render_tail(minutes: Minutes) -> str:
    """Render the tail as Markdown: a rule, then one line each."""
    return clean(format_tail(build_report(minutes)["tail"]))


def render_answer(minutes: Minutes) -> str:
    """Render the text for standard output."""
    return "\n".join(part.text for part in list_answer_parts(minutes))


def _protocol_of(minutes: Minutes) -> Protocol:
    return find_protocol(minutes.plan.get("protocol") or "")


def render_verbose(minutes: Minutes, show: str = "") -> str:
    """Render the deliberation in the layout of its protocol; `show="transcript"` adds prompts, retries and absences."""
    if minutes.is_empty_run:
        return render_answer(minutes)
    context = _build_context(minutes, build_report(minutes)) | {"degraded": format_missing_lines(minutes)}
    text = render_layout("layout", context, _protocol_of(minutes).folder)
    if minutes.status != "failed":
        text = f"{text.rstrip()}\n\n{render_tail(minutes)}\n"
    return text + ("\n" + render_layout("transcript", context) if show == "transcript" else "")


def render_document(minutes: Minutes, report: Json | None = None) -> str:
    return "".join(render_document_parts(minutes, report))


def render_document_parts(minutes: Minutes, report: Json | None = None) -> Iterable[str]:
    """Render the report file: question, facts, degradation, the answer and every statement, or what the protocol has instead."""
    protocol = _protocol_of(minutes)
    report = report or build_report(minutes)
    own = protocol.load_report_view().document(minutes, report)
    return [own] if own else render_layout_parts("document", _build_context(minutes, report), protocol.folder)


def render_run(run: FinishedRun) -> Iterable[str]:
    return render_document_parts(run.minutes)


def _build_context(minutes: Minutes, report: Json) -> Json:
    view, planned = _protocol_of(minutes).load_report_view(), minutes.planned_seats
    facts = _list_facts(minutes, report)
    helpers = list(minutes.seats.values())[len(planned) :]
    seats = [*planned, *([minutes.chair] if minutes.chair else []), *helpers]
    has_topics = minutes.verdict.get("claims") or minutes.verdict.get("disagreements")
    show_state = str if minutes.status == "running" else partial(final_state, stopped=minutes.stopped)
    return {
        "minutes": minutes,
        "plan": minutes.plan,
        "seats": planned,
        "helpers": helpers,
        "degraded": format_degraded_lines(minutes),
        "statement": partial(_format_statement, minutes),
        "speaker": partial(view.speaker_label, minutes),
        "repeats_answer": partial(view.repeats_answer, minutes),
        "outcome": minutes.verdict.get("outcome"),
        "confidence": report["confidence"],
        "final": _format_answer(minutes, view),
        "tail": report["tail"],
        "notes": report.get("notes") or {},
        "positions": build_position_table(minutes) if has_topics else [],
        "rounds": _list_rounds(minutes),
        "facts": facts,
        "fact_rows": format_table_rows(facts),
        "seat_rows": format_table_rows(
            (seat.name, seat.role, seat.model, seat.served_by or "none", show_state(seat.state)) for seat in seats
        ),
        "statements": partial(_list_statements, minutes, view),
        **view.layout_variables(minutes),
    }


def _format_answer(minutes: Minutes, view: ReportView) -> str:
    if minutes.status == "complete" and (verdict := view.verdict_text(minutes)):
        return fence_code(verdict)
    text = close_code_fence(clean(view.full_answer(minutes) or answer_text(minutes))).strip()
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


def _list_statements(minutes: Minutes, view: ReportView, phase: PhaseMinutes) -> list[tuple[str, str]]:
    """Return a summary and the text of each statement of a phase, for the report file."""
    rows = []
    for name in phase.asked:
        said = phase.said.get(name)
        state = f"{said.state}, {format_count(said.words, 'word')}, {said.seconds:.1f} s" if said else "absent"
        is_answer = said is not None and view.repeats_answer(minutes, said)
        text = "_The answer above._" if is_answer else _format_statement(minutes, phase.name, name)
        rows.append((f"{escape(view.speaker_label(minutes, phase.name, name), quote=False)}: {state}", text))
    return rows


def _describe_silence(minutes: Minutes, name: str, was_held: bool) -> str:
    earlier = [missed for missed in minutes.absences if missed.seat == name]
    if earlier:
        return f"_Absent since {earlier[-1].phase}: {format_absence(earlier[-1])}._"
    return "_Not asked._" if was_held else "_Not held._"


def _list_rounds(minutes: Minutes) -> list[PhaseMinutes]:
    """Return the phases to show; without the last phase if it is the chair's, because its statement is the answer."""
    phases = minutes.rounds
    chair = minutes.chair.name if minutes.chair else None
    if phases and minutes.status == "complete" and phases[-1].asked == [chair]:
        phases.pop()
    return phases


def _list_facts(minutes: Minutes, value: Json) -> list[tuple[str, str]]:
    """Return the rows of the table at the top of the report file."""
    calls, tokens = value["calls"], value["tokens"]
    convened = datetime.fromtimestamp(minutes.started, UTC)
    facts = [
        ("Protocol", f"{value['protocol']}: {minutes.plan.get('why') or 'as asked'}"),
        ("Fork", format_fork(minutes)),
        ("Status", value["status"]),
        ("Verdict", value["verdict"]),
        ("Outcome", value["outcome"]),
        ("Trust", format_trust_fact(value["trust"])),
        ("Strongest seat", format_strongest(value, with_name=False)),
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
