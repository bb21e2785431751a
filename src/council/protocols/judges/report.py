"""Reports of the judges: the report file of each task, the file of each analysis, and the text for standard output."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Literal, TypedDict, cast

from council.engine.degraded import count_asked_seats, format_degraded_lines
from council.engine.layout import (
    CELL_BREAK,
    close_code_fence,
    find_wording,
    format_cell,
    format_code,
    format_cost,
    format_count,
    format_decision_outcome,
    format_fork,
    format_packet_line,
    format_ruling,
    format_savings,
    format_text,
    format_trust_fact,
    render_layout,
)
from council.engine.minutes import Minutes, PhaseMinutes, StatementMinutes
from council.engine.records import Disagreement, FindingRow, ReportObject, SeatPosition, Shift
from council.engine.strongest import format_strongest
from council.protocols import ReportView
from council.protocols.judges import summary
from council.protocols.judges.details import OptionRow, ReviewDetails, ReviewFields, SingleFamilyFinding, read_details
from council.protocols.judges.finding_blocks import is_shared, render_markdown_block, select_shown, sort_for_reader
from council.protocols.judges.replies import Consolidation, Theme
from council.text_cleanup import clean, clean_json, first_sentence, quote_tail_lines, single_line
from council.types import Json
from council.wording import Wording

FOLDER = Path(__file__).parent
COLUMN_GAP = re.compile(" {2,}")  # between the columns of a verdict
HeaderFacts = dict[str, str | None]  # name of a heading → what the report says under it
MAX_FACT_CHARS, MAX_ANALYSIS_FACT_CHARS = 600, 200
MODE_FLAGS = ("deep", "mixed", "debate", "quick")


def build_header(minutes: Minutes, report: ReportObject) -> list[str]:
    """Return one line per fact, `**Name:** value`, without empty facts."""
    wording = find_wording(minutes)
    list_facts = _quick_facts if summary.report_kind(minutes) == "quick" else _full_facts
    return _format_facts(list_facts(minutes, report, wording), wording, MAX_FACT_CHARS)


def _format_facts(facts: HeaderFacts, wording: Wording, limit: int) -> list[str]:
    return [
        f"**{wording.heading(name)}{wording.colon.rstrip()}** {single_line(fact, limit)}"
        for name, fact in facts.items()
        if fact
    ]


def _format_trust(minutes: Minutes, report: ReportObject, wording: Wording) -> str:
    return "" if minutes.is_empty_run else format_trust_fact(report["trust"], wording)


def _quick_facts(minutes: Minutes, report: ReportObject, wording: Wording) -> HeaderFacts:
    return {
        "date": f"{datetime.fromtimestamp(minutes.started, UTC):%Y-%m-%d}",
        "mode": "quick (single-agent)",
        "target": summary.format_subject(minutes),
        "trust": _format_trust(minutes, report, wording),
        "turned_out": format_decision_outcome(report.get("decision_outcome"), wording),
        **_common_facts(minutes),
    }


def _full_facts(minutes: Minutes, report: ReportObject, wording: Wording) -> HeaderFacts:
    options, details = minutes.plan.get("options") or {}, read_details(minutes)
    debate = options.get("debate")
    return {
        "target": summary.format_subject(minutes),
        "mode": ", ".join([str(minutes.plan.get("task")), *(f"--{name}" for name in MODE_FLAGS if options.get(name))]),
        "rounds": _format_rounds(minutes, wording) if debate else "",
        "fidelity": _format_fidelity(details, wording) if debate else "",
        "judges": _format_judge_counts(minutes, wording),
        "preset": options.get("preset"),
        "technique": options.get("technique"),
        "profile": options.get("profile"),
        "trust": _format_trust(minutes, report, wording),
        "turned_out": format_decision_outcome(report.get("decision_outcome"), wording),
        "strongest_seat": format_strongest(report, with_name=False),
        "rule": wording.heading("rule_corroborated") if options.get("rule") == "corroborated" else "",
        "grouping": _format_grouping(details, wording),
        "effective_votes": _format_effective_votes(minutes, details, wording),
        **_common_facts(minutes),
    }


def _format_fidelity(details: ReviewDetails, wording: Wording) -> str:
    kind = details.get("fidelity") or ""
    return wording.heading(f"fidelity_{kind}") if kind in ("full", "degraded") else kind


def _format_grouping(details: ReviewDetails, wording: Wording) -> str:
    """Format who grouped the findings; empty if there was nothing to group, and for runs of older versions."""
    grouping = details.get("grouping")
    state = grouping.get("clerk") if grouping else ""
    return wording.heading(f"grouped_{state}") if state in ("answered", "off", "absent", "unavailable") else ""


def _common_facts(minutes: Minutes) -> HeaderFacts:
    notices, packet = minutes.plan.get("notices") or [], minutes.plan.get("packet")
    warnings = [single_line(line) for line in minutes.plan.get("warnings") or [] if line not in notices]
    return {
        "fork": format_fork(minutes),
        "packet": format_packet_line(packet) if packet else "",
        "note": "; ".join(warnings),
    }


def _format_rounds(minutes: Minutes, wording: Wording) -> str:
    if summary.second_round(minutes):
        return wording.heading("two_rounds")
    skipped = next((note.why for note in minutes.notes if summary.SECOND_ROUND_PHASE in note.skipped), "")
    return wording.heading("no_debate", why=skipped or wording.heading("not_that_far"))


def _format_judge_counts(minutes: Minutes, wording: Wording) -> str:
    heard = wording.heading("judges_answered", count=minutes.answered_count, total=count_asked_seats(minutes))
    sent = sum(len(minutes.helpers(seat.name)) for seat in minutes.planned_seats)
    more = [wording.heading("explorers_sent", number=sent, count=sent)] if sent else []
    return wording.comma.join([heard, *more])


def _format_effective_votes(minutes: Minutes, details: ReviewDetails, wording: Wording) -> str:
    """Return how many votes of judges of one vendor count; empty if each judge has a vendor of its own."""
    if not details.get("n_eff") or details["n_eff"] >= minutes.answered_count or minutes.answered_count < 2:
        return ""
    return wording.heading("votes_count_as", votes=minutes.answered_count, effective=f"{details['n_eff']:g}")


def build_footer(minutes: Minutes, value: ReportObject) -> list[str]:
    """Return the lines with duration, responses, cost and the next command; `value` is the report object."""
    wording = find_wording(minutes)
    is_complete = value["status"] == "complete"
    seconds = f"{minutes.seconds:.0f}" if minutes.seconds >= 10 else f"{minutes.seconds:.1f}"
    ended = wording.heading("completed_in" if is_complete else "stopped_after", seconds=seconds)
    command = "watch" if minutes.active else "runs replay" if is_complete else "resume"
    calls, tokens = value["calls"]["made"], value["tokens"]
    cost = format_cost(value["cost"], wording)
    saved = format_savings(value.get("stops") or [], wording)
    sent, received = wording.format_number(tokens["in"]), wording.format_number(tokens["out"])
    parts = [
        f"{cost[:1].upper()}{cost[1:]}",
        *([f"{wording.heading('saved_by_stops')}{wording.colon}{saved}"] if saved else []),
        wording.heading("calls_counted", number=calls, count=calls),
        wording.heading("tokens_counted", sent=sent, received=received),
        f"`council {command} {minutes.run}`",
    ]
    counts = summary.format_response_counts(minutes, wording)
    return [counts if minutes.active else f"{ended} {counts}", " · ".join(parts)]


def render_analysis(minutes: Minutes, said: StatementMinutes) -> str:
    """Render what a judge said in one round. The JSON comes first so that programs can read it."""
    wording, seat, helpers = find_wording(minutes), minutes.seat(said.seat), minutes.helpers(said.seat)
    served_as_requested = said.served_by == seat.model or minutes.is_from_fork(said)
    facts: HeaderFacts = {
        "target": minutes.plan.get("target") or minutes.plan.get("question"),
        "judge": said.seat,
        "perspective": f"{seat.perspective} ({seat.role})" if seat.perspective else "",
        "round_of": said.phase,
        "member": said.served_by if served_as_requested else f"{said.served_by} in place of {seat.model}",
        "state": said.state,
        "explorers": format_count(len(helpers), "explorer") if helpers else "",
        "run": minutes.run,
    }
    context = {
        "reply": _format_json(said.reply or {}),
        "seat": seat,
        "said": said,
        "ruling": format_ruling(said.reply),
        "facts": _format_facts(facts, wording, MAX_ANALYSIS_FACT_CHARS),
    }
    return render_layout("analysis", context, FOLDER)


def _format_json(reply: Json) -> str:
    return json.dumps(clean_json(reply), ensure_ascii=False, indent=2)


class JudgesVariables(TypedDict):
    """Variables of the layout."""

    asked_seats: Callable[[PhaseMinutes], list[str]]
    explorer_reports: Callable[[str, str], list[tuple[str, str]]]


class JudgesView(ReportView):
    def layout_variables(self, minutes: Minutes) -> JudgesVariables:
        return {
            "asked_seats": partial(_sort_asked_seats, minutes),
            "explorer_reports": partial(_explorer_reports, minutes),
        }

    def report_fields(self, minutes: Minutes) -> ReviewFields:
        """Return each judge's opinion, the findings that the second round changed, the verdict of each rule, and the
        grouping.
        """
        if summary.report_kind(minutes) not in ("validate", "quick"):
            return {}
        details, names = read_details(minutes), ("withdrawn", "settled", "by_rule", "uncorroborated", "grouping")
        stored = {name: value for name in names if (value := details.get(name))}
        return cast("ReviewFields", {"opinions": summary.list_opinions(minutes), **stored})

    def full_answer(self, minutes: Minutes) -> str:
        """Return the consolidation of the chair for a brainstorm or research run."""
        phase = minutes.phases.get("consolidate")
        said = phase.said.get("chair") if phase and minutes.status == "complete" else None
        if said is None:
            return ""
        is_research = summary.report_kind(minutes) == "research"
        return _render_research(said) if is_research else said.said

    def verdict_text(self, minutes: Minutes) -> str:
        return summary.render_verdict(minutes) if summary.report_kind(minutes) in ("validate", "quick") else ""

    def verdict_markdown(self, minutes: Minutes) -> str:
        return render_verdict_markdown(minutes) if self.verdict_text(minutes) else ""

    def document(self, minutes: Minutes, report: ReportObject) -> str:
        return render_judges_report(minutes, report) if summary.report_kind(minutes) else ""

    def file_kind(self, task: str, protocol: str, options: Json) -> str:
        single = options.get("quick") or protocol == "quick"
        return "quick" if single else super().file_kind(task, protocol, options)

    def analysis_name(self, minutes: Minutes, said: StatementMinutes) -> str:
        if minutes.plan.get("task") != "validate" or "verdict" not in (said.reply or {}):
            return ""
        return f"{said.seat}-r2" if said.phase == summary.SECOND_ROUND_PHASE else said.seat

    def analysis(self, minutes: Minutes, said: StatementMinutes) -> str:
        return render_analysis(minutes, said)


def _render_research(said: StatementMinutes) -> str:
    """Return the chair's text without trade-offs, which belong to a brainstorm and which some models write anyway."""
    reply = said.reply or {}
    if not reply.get("trade_offs"):
        return said.said
    themes = [Theme(**theme) for theme in reply.get("themes") or []]
    return Consolidation.model_construct(**reply | {"trade_offs": [], "themes": themes}).prose()


def _sort_asked_seats(minutes: Minutes, phase: PhaseMinutes) -> list[str]:
    """Return the asked seats in seating order: judges are asked at once."""
    place = {seat.name: n for n, seat in enumerate(minutes.all_seats)}
    return sorted(phase.asked, key=lambda name: place[name])


def _explorer_reports(minutes: Minutes, phase: str, name: str) -> list[tuple[str, str]]:
    """Return the reports of a judge's explorers, for its first round."""
    first = summary.first_round(minutes)
    if first is None or first.name != phase:
        return []
    last = {said.seat: said.said for said in minutes.statements}
    return [
        (seat.name, close_code_fence(clean(last.get(seat.name) or "_No report._")).strip())
        for seat in minutes.helpers(name)
    ]


def render_verdict_markdown(minutes: Minutes) -> str:
    """Render the verdict for a program that shows Markdown, without the lines above it."""
    wording = find_wording(minutes)
    shown, hidden = select_shown(sort_for_reader(summary.list_findings(minutes)))
    blocks = [block for _, block in _render_blocks(minutes, shown, wording, own_words=False)]
    if hidden:
        command = f"`council report {minutes.run}`"
        blocks.append(wording.heading("more_minor", number=hidden, count=hidden, command=command))
    closing = [
        "\n".join(f"- {COLUMN_GAP.sub(' · ', line)}" for line in section)
        for section in summary.list_closing_sections(minutes)
        if section
    ]
    return "\n\n".join([f"**{COLUMN_GAP.sub(' · ', summary.format_headline(minutes))}**", *blocks, *closing])


# Report file


def render_judges_report(minutes: Minutes, value: ReportObject) -> str:
    """Render the report file of a judges run; `value` is its report object."""
    kind, wording = summary.report_kind(minutes), find_wording(minutes)
    # By round and in seating order, so that timing does not change the report.
    analyses = [f"{phase.name}/{seat.name}" for phase in minutes.rounds for seat in minutes.planned_seats]
    context = {
        **wording.layout_variables(),
        "minutes": minutes,
        "subject": summary.format_subject(minutes),
        "header": build_header(minutes, value),
        "footer": build_footer(minutes, value),
        "degraded": format_degraded_lines(minutes),
        "incomplete": minutes.status != "complete",
        "tail": value["tail"],
        "nothing": minutes.is_empty_run,
        "answer": _format_recommendation(minutes, wording),
        "files": [minutes.files[key] for key in analyses if key in minutes.files],
    }
    return render_layout(kind, {**context, **CONTEXT_BUILDERS[kind](minutes, wording, value)}, FOLDER)


def _format_recommendation(minutes: Minutes, wording: Wording) -> str:
    """Return the recommendation. An unfinished run has none; its digest would repeat the sections above."""
    if minutes.active:
        return wording.heading("none_sentence")
    if minutes.status != "complete":
        return wording.heading("nothing_compared")
    answer = quote_tail_lines(clean(minutes.verdict.get("answer") or ""))
    return close_code_fence(answer).strip() or wording.heading("none_sentence")


# Validate


class ReviewVariables(TypedDict):
    """Variables of the layout of a review. Texts are Markdown; tables have a header first."""

    heading: str
    table: list[list[str]]
    remarks: list[str]
    shifts: list[list[str]]
    opinions: list[str]
    blind_spots: list[str]
    withdrawn: list[str]
    settled: list[str]
    exchanges: list[str]
    steel_men: list[str]
    dropped: list[str]
    converged: bool | None
    disagree: bool
    deferred: str
    shared: list[str]
    single: list[str]
    positions: list[list[str]]
    disputed: list[str]
    mixed: int | bool | None
    insights: list[tuple[str, list[str]]]
    ungrouped: bool


def _validate_context(minutes: Minutes, wording: Wording, report: ReportObject) -> ReviewVariables:
    rows, details = summary.list_findings(minutes), read_details(minutes)
    blocks = _render_blocks(minutes, rows, wording)
    judge = partial(summary.format_judge, minutes)
    steel_men = {name: notes["steel_man"] for name, notes in (details.get("notes") or {}).items()}
    return {
        "heading": _format_heading(minutes, wording),
        "table": [[format_cell(one) for one in row] for row in summary.build_verdict_table(minutes, wording)],
        "remarks": summary.list_remarks(minutes),
        "shifts": [_shift_row(one, wording) for one in minutes.verdict.get("shifts") or []],
        "opinions": list(_format_opinions(minutes, wording)),
        "blind_spots": [
            f"{judge(one['seat'])}: {format_text(one['text'])}" for one in minutes.verdict.get("blind_spots") or []
        ],
        "withdrawn": list(map(summary.format_change, details.get("withdrawn") or [])),
        "settled": list(map(summary.format_change, details.get("settled") or [])),
        "exchanges": list(_format_exchanges(minutes, wording)),
        "steel_men": [f"{judge(name)}: {format_text(text)}" for name, text in steel_men.items() if text.strip()],
        "dropped": [
            f"{judge(row['seat'])}: {format_text(row['finding'])} ({single_line(row['severity'])})"
            for row in details.get("dropped") or []
        ],
        "converged": details.get("converged"),
        "disagree": minutes.verdict.get("verdict") == "DISAGREE",
        "deferred": wording.heading("decision_is_yours"),
        "shared": [block for row, block in blocks if is_shared(row)],
        "single": [block for row, block in blocks if not is_shared(row)],
        "positions": _build_positions(minutes, wording),
        "disputed": [_format_dispute(row) for row in rows if row["disputed"]],
        "mixed": details.get("mixed") or (minutes.plan.get("options") or {}).get("mixed"),
        "insights": _group_insights(minutes),
        "ungrouped": bool(rows) and not details,
    }


def _format_heading(minutes: Minutes, wording: Wording) -> str:
    if minutes.active:
        return wording.heading("none")
    if minutes.status != "complete":
        return wording.heading("incomplete")
    return minutes.verdict.get("verdict") or single_line(minutes.verdict.get("answer") or wording.heading("none"))


def _format_opinions(minutes: Minutes, wording: Wording) -> Iterable[str]:
    label = f"{wording.heading('recommendation')}{wording.colon}"
    for one in summary.list_opinions(minutes):
        advice = f" {label}{_end_sentence(format_text(one['recommendation']))}" if one["recommendation"] else ""
        insight = _end_sentence(format_text(one["key_insight"])) if one["key_insight"] else ""
        yield f"{summary.format_judge(minutes, one['seat'])}{wording.colon}{insight}{advice}"


def _render_blocks(
    minutes: Minutes, rows: list[FindingRow], wording: Wording, *, own_words: bool = True
) -> list[tuple[FindingRow, str]]:
    """Render each finding as a block, with what each judge of a group said, so that joining loses nothing."""
    places = {str(row.get("id")): str(row["location"] or "") for row in rows}
    seats = [seat for seat in minutes.planned_seats if seat.role and seat.perspective]
    personas = {seat.name: summary.format_judge(minutes, seat.name).replace("**", "") for seat in seats}
    rendered = []
    for row in rows:
        parts = [render_markdown_block(row, places, wording, personas)]
        parts += _format_own_words(row, wording) if own_words else []
        rendered.append((row, "\n\n".join(parts)))
    return rendered


def _format_own_words(row: FindingRow, wording: Wording) -> Iterable[str]:
    said = row.get("by_judge") or []
    if len(said) > 1:
        yield f"{wording.heading('own_words')}{wording.colon.rstrip()}"
        yield "\n".join(f"- {format_text(summary.format_judge_words(one), summary.MAX_WORDS_CHARS)}" for one in said)


def _format_dispute(row: FindingRow) -> str:
    """Format a disputed finding with the reason of each judge that opposes it."""
    said = [f"{side['seat']}: {side['why']}" for side in row.get("disputes") or []]
    place = f"{format_code(row['location'])}: " if row["location"] else ""
    return " — ".join([f"{place}{first_sentence(row['description'])}", *map(format_text, said)])


def _end_sentence(sentence: str) -> str:
    return sentence if sentence.endswith((".", "!", "?", "…", "。", "！", "？")) else f"{sentence}."


def _build_positions(minutes: Minutes, wording: Wording) -> list[list[str]]:
    """Return a table of the disagreements: one column per family if there are several, else per judge."""
    rows, heads = minutes.verdict.get("disagreements") or [], summary.list_families(minutes)
    is_mixed = len(heads) > 1
    key: Literal["family", "seat"] = "family" if is_mixed else "seat"
    heads = heads if is_mixed else [seat.name for seat in minutes.planned_seats]

    def format_position(one: SeatPosition) -> str:
        seat = f" ({one['seat']})" if is_mixed else ""
        return f"{one['verdict']}: {one['why']}{seat}"

    def format_positions(row: Disagreement, head: str) -> str:
        return _join_cells(map(format_position, (one for one in row["positions"] if one[key] == head)))

    header = [wording.heading("issue"), *map(format_cell, heads)]
    table = [[format_cell(row["issue"]), *(format_positions(row, head) for head in heads)] for row in rows]
    return [header, *table] if rows else []


def _join_cells(texts: Iterable[str]) -> str:
    return CELL_BREAK.join(format_cell(text, 600) for text in texts) or "–"


def _group_insights(minutes: Minutes) -> list[tuple[str, list[str]]]:
    rows: list[SingleFamilyFinding] = minutes.verdict.get("insights") or []
    return [
        (
            single_line(family),
            [
                f"({single_line(row['severity'])}) {first_sentence(row['finding'])}"
                for row in rows
                if row["family"] == family
            ],
        )
        for family in summary.list_families(minutes)
    ]


# Debate


def _shift_row(shift: Shift, wording: Wording) -> list[str]:
    weak = f" **{wording.heading('weak_flip')}**" if shift["weak"] else ""
    changed = wording.heading("yes" if shift["changed"] else "no")
    reason = format_cell(shift["reason"] or wording.heading("none_given"), 600)
    return [format_cell(shift["seat"]), shift["from"], shift["to"], changed, f"{reason}{weak}"]


def _format_exchanges(minutes: Minutes, wording: Wording) -> Iterable[str]:
    for name, notes in (read_details(minutes).get("notes") or {}).items():
        judge = summary.format_judge(minutes, name)
        for one in notes["challenges"]:
            head = wording.heading("challenges", judge=judge, other=summary.format_judge(minutes, one["target_judge"]))
            yield f"{head}{wording.colon}{_end_sentence(format_text(one['claim']))} {format_text(one['response'])}"
        for granted in notes["acknowledgments"]:
            other = summary.format_judge(minutes, granted["source_judge"])
            head = wording.heading("grants", judge=judge, other=other)
            point, impact = format_text(granted["point"]), format_text(granted["impact"])
            yield f"{head}{wording.colon}{_end_sentence(point)} {impact}"


# Quick


class QuickVariables(TypedDict):
    """Variables of the layout of a review by one judge."""

    heading: str
    remarks: list[str]
    reply: str  # as JSON
    analysis: str


def _quick_context(minutes: Minutes, wording: Wording, report: ReportObject) -> QuickVariables:
    said = next((one for seat in minutes.planned_seats if (one := summary.last_statement(minutes, seat.name))), None)
    reply = dict(said.reply) if said and said.reply else {}
    text = said.said if said else wording.heading("judge_did_not_answer")
    if report["confidence"] and reply.get("confidence"):  # one judge is never HIGH: the reader is told one level
        text = text.replace(f"(confidence {reply['confidence']})", f"(confidence {report['confidence']})", 1)
        reply["confidence"] = report["confidence"]
    return {
        "heading": _format_heading(minutes, wording),
        "remarks": summary.list_remarks(minutes),
        "reply": _format_json(reply) if reply else "",
        "analysis": close_code_fence(quote_tail_lines(clean(text))).strip(),
    }


# Brainstorm and research


class BrainstormVariables(TypedDict):
    """Variables of the layout of a brainstorm."""

    names: list[str]
    options: list[list[str]]  # a row per option, a column per judge
    trades: list[str]


def _brainstorm_context(minutes: Minutes, wording: Wording, report: ReportObject) -> BrainstormVariables:
    judges = {name: reply.get("options") or [] for name, reply in summary.last_replies(minutes).items()}
    return {
        "names": list(map(format_cell, judges)),
        "options": _option_rows(judges),
        "trades": list(_format_trade_offs(minutes, judges, wording)),
    }


def _option_rows(judges: Mapping[str, Sequence[OptionRow]]) -> list[list[str]]:
    """Return one row per option name and one column per judge."""
    names: dict[str, str] = {}
    rated: dict[tuple[str, str], str] = {}
    for judge, options in judges.items():
        for option in options:
            key = " ".join(option["name"].lower().split())
            names.setdefault(key, option["name"])
            rated[key, judge] = option["assessment"]
    return [
        [format_cell(name), *(format_cell(rated.get((key, judge), "–"), 600) for judge in judges)]
        for key, name in names.items()
    ]


def _format_trade_offs(minutes: Minutes, judges: Mapping[str, Sequence[OptionRow]], wording: Wording) -> Iterable[str]:
    """Format the trade-offs of the chair, or the pros and cons of each judge if there was no chair."""
    merged = read_details(minutes).get("consolidation")
    if merged:
        for one in merged["trade_offs"]:
            buys, costs = _end_sentence(format_text(one["buys"])), format_text(one["costs"])
            yield wording.heading("option_trades", option=format_text(one["option"]), buys=buys, costs=costs)
        return
    for judge, options in judges.items():
        for option in options:
            pros, cons = (
                wording.semicolon.join(map(format_text, points)) or wording.heading("none_given")
                for points in (option["pros"], option["cons"])
            )
            named = f"**{format_text(option['name'])}** ({single_line(judge)})"
            yield wording.heading("option_pros_and_cons", option=named, pros=_end_sentence(pros), cons=cons)


class ResearchVariables(TypedDict):
    """Variables of the layout of a research."""

    facets: list[list[str]]
    themes: list[tuple[str, list[str]]]
    open_questions: list[str]


def _research_context(minutes: Minutes, wording: Wording, report: ReportObject) -> ResearchVariables:
    judges = summary.last_replies(minutes)
    merged = read_details(minutes).get("consolidation")
    listed = (merged.get("themes") or []) if merged else []
    themes = [(format_text(one["name"]), list(map(format_text, one["findings"]))) for one in listed]
    alone = [
        (wording.heading("findings_of", judge=single_line(name)), list(map(format_text, one.get("findings") or [])))
        for name, one in judges.items()
    ]
    merged_questions = merged.get("open_questions") if merged else None
    open_ = merged_questions or [one for reply in judges.values() for one in reply.get("open_questions") or []]
    return {
        "facets": [
            [format_cell(one["name"]), format_cell(name), _join_cells(one["findings"])]
            for name, reply in judges.items()
            for one in reply.get("facets") or []
        ],
        "themes": themes or [row for row in alone if row[1]],
        "open_questions": list(map(format_text, open_)),
    }


CONTEXT_BUILDERS: dict[str, Callable[[Minutes, Wording, ReportObject], Mapping[str, object]]] = {
    "validate": _validate_context,
    "quick": _quick_context,
    "brainstorm": _brainstorm_context,
    "research": _research_context,
}
