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
    describe_absence,
    describe_state,
    fence_code,
    final_state,
    find_wording,
    format_cost,
    format_decision_outcome,
    format_fork,
    format_phase_in,
    format_savings,
    format_table_rows,
    format_trust_fact,
    render_layout,
    render_layout_parts,
    unblind,
)
from council.engine.minutes import Minutes, PhaseMinutes, SeatMinutes, StatementMinutes
from council.engine.records import ReportObject
from council.engine.strongest import format_strongest
from council.protocols import Protocol, ReportView, find_protocol
from council.render.positions import build_position_table
from council.render.report import FinishedRun, answer_text, build_report
from council.render.tail import format_tail
from council.text_cleanup import clean, quote_tail_lines
from council.types import FORMAT_PHASE, Json
from council.wording import Wording

MISSING_MARK = "! "  # starts a line about a missing part


class TextPart(NamedTuple):
    """A part of the text for standard output: Markdown, or plain lines in columns."""

    text: str
    is_markdown: bool = True


def list_answer_parts(minutes: Minutes, *, with_tail: bool = True, with_missing: bool = True) -> list[TextPart]:
    """Return the parts of the text for standard output: the missing parts, the answer or the verdict, and the tail."""
    if minutes.is_empty_run:
        return [TextPart(f"{clean(answer_text(minutes)).strip()}\n")]
    view = _protocol_of(minutes).load_report_view()
    tail = TextPart(f"{render_tail(minutes)}\n" if with_tail and minutes.status != "failed" else "")
    if verdict := view.verdict_text(minutes):
        lines = verdict.splitlines(keepends=True)
        shown = "".join(line for line in lines if with_missing or not line.startswith(MISSING_MARK))
        return [part for part in (TextPart(shown, is_markdown=False), tail) if part.text.strip()]
    missing = format_missing_lines(minutes) if with_missing else []
    above = TextPart("".join(f"{MISSING_MARK}{line}\n" for line in missing), is_markdown=False)
    text = quote_tail_lines(clean(view.full_answer(minutes) or answer_text(minutes)).strip())
    return [part for part in (above, TextPart(f"{text}\n"), tail) if part.text.strip()]


def render_tail(minutes: Minutes) -> str:
    """Render the tail as Markdown: a rule, then one line each."""
    return _format_tail(_find_report(minutes))


def _format_tail(report: ReportObject) -> str:
    return clean(format_tail(report["tail"]))


def _find_report(minutes: Minutes) -> ReportObject:
    """Return the report of a run that this process has closed, else build it."""
    return minutes.report or build_report(minutes)


def render_answer(minutes: Minutes) -> str:
    """Render the text for standard output."""
    return "\n".join(part.text for part in list_answer_parts(minutes))


def _protocol_of(minutes: Minutes) -> Protocol:
    return find_protocol(minutes.plan.get("protocol") or "")


def render_verbose(minutes: Minutes, show: str = "") -> str:
    """Render the deliberation in the layout of its protocol; `show="transcript"` adds prompts, retries and absences."""
    if minutes.is_empty_run:
        return render_answer(minutes)
    report = _find_report(minutes)
    context = _build_context(minutes, report) | {"degraded": format_missing_lines(minutes)}
    text = render_layout("layout", context, _protocol_of(minutes).folder)
    if minutes.status != "failed":
        text = f"{text.rstrip()}\n\n{_format_tail(report)}\n"
    return text + ("\n" + render_layout("transcript", context) if show == "transcript" else "")


def render_document(minutes: Minutes, report: ReportObject | None = None) -> str:
    return "".join(render_document_parts(minutes, report))


def render_document_parts(minutes: Minutes, report: ReportObject | None = None) -> Iterable[str]:
    """Render the report file: question, facts, missing parts, answer and statements, or the protocol's own."""
    protocol = _protocol_of(minutes)
    report = report or _find_report(minutes)
    own = protocol.load_report_view().document(minutes, report)
    return [own] if own else render_layout_parts("document", _build_context(minutes, report), protocol.folder)


def render_run(run: FinishedRun) -> Iterable[str]:
    return render_document_parts(run.minutes)


def _build_context(minutes: Minutes, report: ReportObject) -> Json:
    view, planned = _protocol_of(minutes).load_report_view(), minutes.planned_seats
    wording = find_wording(minutes)
    facts = _list_facts(minutes, report, wording)
    helpers = list(minutes.seats.values())[len(planned) :]
    seats = [*planned, *([minutes.chair] if minutes.chair else []), *helpers]
    has_topics = minutes.verdict.get("claims") or minutes.verdict.get("disagreements")
    return {
        "minutes": minutes,
        "plan": minutes.plan,
        "seats": planned,
        "helpers": helpers,
        "degraded": format_degraded_lines(minutes),
        "statement": partial(_format_statement, minutes, wording),
        "speaker": partial(view.speaker_label, minutes),
        "repeats_answer": partial(view.repeats_answer, minutes),
        "outcome": minutes.verdict.get("outcome"),
        "confidence": report["confidence"],
        "final": _format_answer(minutes, view, wording),
        "tail": report["tail"],
        "notes": report.get("notes") or {},
        "check": minutes.verdict.get("check"),
        "positions": build_position_table(minutes, wording) if has_topics else [],
        "rounds": _list_rounds(minutes),
        "facts": facts,
        "fact_rows": format_table_rows(facts),
        "seat_rows": format_table_rows(
            (
                seat.name,
                seat.role,
                seat.model,
                seat.served_by or wording.heading("none"),
                _describe_seat_state(minutes, seat),
            )
            for seat in seats
        ),
        "statements": partial(_list_statements, minutes, view, wording),
        **wording.layout_variables(),
        **view.layout_variables(minutes),
    }


def _describe_seat_state(minutes: Minutes, seat: SeatMinutes) -> str:
    return describe_state(seat.state if minutes.status == "running" else final_state(seat.state, minutes.stopped))


def _format_answer(minutes: Minutes, view: ReportView, wording: Wording) -> str:
    if minutes.status == "complete" and (verdict := view.verdict_text(minutes)):
        return fence_code(verdict)
    text = close_code_fence(quote_tail_lines(clean(view.full_answer(minutes) or answer_text(minutes)))).strip()
    return text or f"_{wording.heading('no_answer')}_"


def _format_statement(minutes: Minutes, wording: Wording, phase: str, name: str) -> str:
    """Return the statement of a seat in a phase, or why there is none."""
    record = minutes.phases.get(phase)
    if record and name in record.said:
        text = unblind(record.said[name].said, record.labels.get(name, {}))
        return close_code_fence(quote_tail_lines(clean(text))).strip()
    if record and name in record.absent:
        return f"_{wording.heading('absent_because', reason=describe_absence(record.absent[name]))}_"
    if record and name in record.asked:
        return f"_{wording.heading('stopped_before_answer')}_"
    return f"_{_describe_silence(minutes, wording, name, bool(record))}_"


def _list_statements(
    minutes: Minutes, view: ReportView, wording: Wording, phase: PhaseMinutes
) -> list[tuple[str, str]]:
    """Return a summary and the text of each statement of a phase, for the report file."""
    rows = []
    for name in phase.asked:
        said = phase.said.get(name)
        state = _summarize_statement(said, wording) if said else wording.heading("absent")
        is_answer = said is not None and view.repeats_answer(minutes, said)
        above = f"_{wording.heading('answer_above')}_"
        text = above if is_answer else _format_statement(minutes, wording, phase.name, name)
        speaker = escape(view.speaker_label(minutes, phase.name, name), quote=False)
        rows.append((f"{speaker}{wording.colon}{state}", text))
    return rows


def _summarize_statement(said: StatementMinutes, wording: Wording) -> str:
    counts = {"count": wording.format_number(said.words), "chars": wording.format_number(len(said.said))}
    words = wording.heading("words", number=said.words, **counts)
    return wording.comma.join([said.state, words, f"{said.seconds:.1f} s"])


def _describe_silence(minutes: Minutes, wording: Wording, name: str, was_held: bool) -> str:
    earlier = [missed for missed in minutes.absences if missed.seat == name]
    if earlier:
        phase = format_phase_in(earlier[-1].phase)
        return wording.heading("absent_since", phase=phase, reason=describe_absence(earlier[-1]))
    return wording.heading("not_asked") if was_held else wording.heading("not_held")


def _list_rounds(minutes: Minutes) -> list[PhaseMinutes]:
    """Return the phases to show; without the last phase if it is the chair's, because its statement is the answer."""
    phases = minutes.rounds
    written = [phases.pop()] if phases and phases[-1].name == FORMAT_PHASE else []
    chair = minutes.chair.name if minutes.chair else None
    if phases and minutes.status == "complete" and phases[-1].asked == [chair]:
        phases.pop()
    return [*phases, *written]


def _list_facts(minutes: Minutes, value: ReportObject, wording: Wording) -> list[tuple[str, str]]:
    """Return the rows of the table at the top of the report file."""
    t, quorum = wording.heading, value["quorum"]
    convened = datetime.fromtimestamp(minutes.started, UTC)
    calls, tokens, number = value["calls"], value["tokens"], wording.format_number
    made, replayed, in_doubt = number(calls["made"]), number(calls["replayed"]), number(calls["in_doubt"])
    sent, cached, received = number(tokens["in"]), number(tokens["cached"]), number(tokens["out"])
    facts = [
        ("protocol", f"{value['protocol']}{wording.colon}{minutes.plan.get('why') or t('as_asked')}"),
        ("fork", format_fork(minutes)),
        ("status", t(f"status_{value['status']}") if value["status"] else ""),
        ("verdict", value["verdict"]),
        ("outcome", value["outcome"]),
        ("trust", format_trust_fact(value["trust"], wording)),
        ("turned_out", format_decision_outcome(value.get("decision_outcome"), wording)),
        ("strongest_seat", format_strongest(value, with_name=False)),
        ("target", value["target"]),
        ("seats_heard", t("count_of", count=quorum["ok"], total=quorum["asked"])),
        ("calls", t("calls_made", made=made, replayed=replayed, in_doubt=in_doubt)),
        ("tokens", t("tokens_used", sent=sent, cached=cached, received=received)),
        ("cost", format_cost(value["cost"], wording)),
        ("saved_by_stops", format_savings(value.get("stops") or [], wording)),
        ("seconds", f"{value['seconds']:.1f}"),
        ("convened", f"{convened:%Y-%m-%d %H:%M} UTC"),
        ("run", minutes.run),
    ]
    return [(t(name), str(fact)) for name, fact in facts if fact]
