"""Judges of a run for its reports: names, verdicts, findings, and the verdict as text."""

from __future__ import annotations

import re

from council.engine.degraded import count_asked_seats, format_missing_lines
from council.engine.layout import describe_state, final_state, find_wording, format_count, list_holders
from council.engine.minutes import Minutes, PhaseMinutes, SeatMinutes, StatementMinutes
from council.engine.records import Disagreement, FindingRow, FindingWords
from council.protocols.judges.details import ChangedFinding, OpinionRow, read_details
from council.protocols.judges.finding_blocks import format_findings, is_shared, sort_for_reader
from council.text_cleanup import clean, cut_words, first_sentence, shorten_sentences, single_line
from council.types import Json
from council.wording import Wording

JUDGE_TASKS = ("validate", "brainstorm", "research")
FIRST_ROUND_PHASES, SECOND_ROUND_PHASE = ("r1", "judge"), "r2"


def report_kind(minutes: Minutes) -> str:
    """Return the report kind of a judges run: its task or `quick`; empty for an unknown task."""
    plan = minutes.plan
    alone = plan["protocol"] == "quick" or (plan.get("options") or {}).get("quick")
    if alone and plan.get("task") not in ("ask", "brainstorm", "research"):
        return "quick"
    return plan["task"] if plan.get("task") in JUDGE_TASKS else ""


def format_subject(minutes: Minutes) -> str:
    return single_line(minutes.plan.get("target") or minutes.plan.get("question") or "", 100)


def first_round(minutes: Minutes) -> PhaseMinutes | None:
    return next((minutes.phases[name] for name in FIRST_ROUND_PHASES if name in minutes.phases), None)


def second_round(minutes: Minutes) -> PhaseMinutes | None:
    return minutes.phases.get(SECOND_ROUND_PHASE)


def last_statement(minutes: Minutes, name: str) -> StatementMinutes | None:
    """Return the last statement of a judge to the council."""
    rounds = [second_round(minutes), first_round(minutes)]
    return next((phase.said[name] for phase in rounds if phase and name in phase.said), None)


def last_replies(minutes: Minutes) -> dict[str, Json]:
    """Return the last reply of each judge, in seating order."""
    said = {seat.name: last_statement(minutes, seat.name) for seat in minutes.planned_seats}
    return {name: one.reply for name, one in said.items() if one and one.reply}


def list_families(minutes: Minutes) -> list[str]:
    return list(dict.fromkeys(seat.vendor for seat in minutes.planned_seats))


def format_judge(minutes: Minutes, name: str) -> str:
    """Format a judge: `**Red** (attacker)` if it has a persona, else its name."""
    seat = minutes.seats.get(name) or SeatMinutes(name)
    if not (seat.role and seat.perspective):
        return f"**{single_line(name)}**"
    family = f", {seat.vendor}" if len(list_families(minutes)) > 1 else ""
    return f"**{single_line(seat.role)}** ({single_line(seat.perspective)}{single_line(family)})"


def column_name(seat: SeatMinutes) -> str:
    """Return the table column of a seat, shared by families: its perspective, or its judge number."""
    number = re.search(r"judge-\d+$", seat.name)
    return seat.perspective or (number[0].replace("-", " ").capitalize() if number else seat.name)


def build_verdict_table(minutes: Minutes, wording: Wording) -> list[list[str]]:
    """Return a header and one row per family: the verdict of each judge and of the family."""
    columns = list(dict.fromkeys(column_name(seat) for seat in minutes.planned_seats))
    verdicts = read_details(minutes).get("families") or {}
    rows = []
    for family in list_families(minutes):
        seats = [seat for seat in minutes.planned_seats if seat.vendor == family]
        cells = [
            " / ".join(format_seat_verdict(minutes, seat) for seat in seats if column_name(seat) == name) or "–"
            for name in columns
        ]
        rows.append([family, *cells, verdicts.get(family) or wording.heading("none")])
    return [[wording.heading("family"), *columns, wording.heading("family_verdict")], *rows]


def format_seat_verdict(minutes: Minutes, seat: SeatMinutes) -> str:
    """Format the verdict of a judge with its confidence, or its state if there is none."""
    reply = last_replies(minutes).get(seat.name) or {}
    if not reply.get("verdict"):
        return describe_state(final_state(seat.state, minutes.stopped))
    stale = describe_stale_verdict(minutes, seat.name)
    doubt = f", {stale}" if stale else ""
    return f"{reply['verdict']} ({reply.get('confidence') or 'no confidence given'}{doubt})"


def describe_stale_verdict(minutes: Minutes, name: str) -> str:
    """Describe the R1 verdict of a judge that did not answer in R2; empty for any other judge."""
    second, first = second_round(minutes), first_round(minutes)
    if not second or name in second.said or not first or name not in first.said:
        return ""
    missed = second.absent.get(name)
    if missed is None:
        return "R1 verdict (R2 not finished)" if name in second.asked else ""
    return f"R1 verdict (R2 {'timeout' if missed.state == 'timed_out' else describe_state(missed.state)})"


def format_response_counts(minutes: Minutes, wording: Wording) -> str:
    """Format `2/2 judges responded.`, once per round if there were two."""
    first, second, asked = first_round(minutes), second_round(minutes), count_asked_seats(minutes)
    if not second or not first:
        return wording.heading("judges_responded", count=minutes.answered_count, total=asked)
    rounds = [("R1", first, asked), ("R2", second, len({*second.asked, *second.absent}))]
    return " ".join(
        f"{name}{wording.colon}{wording.heading('judges_responded', count=len(phase.said), total=total)}"
        for name, phase, total in rounds
    )


def list_findings(minutes: Minutes) -> list[FindingRow]:
    """Return the grouped findings; for an unfinished run, the findings as each judge wrote them."""
    if minutes.verdict.get("findings") or read_details(minutes):
        return list(minutes.verdict.get("findings") or [])
    return [
        _ungrouped_finding(name, row, len(last_replies(minutes)))
        for name, reply in last_replies(minutes).items()
        for row in reply.get("findings") or []
    ]


def _ungrouped_finding(name: str, row: FindingRow, of: int) -> FindingRow:
    return {
        **row,
        "category": row.get("category", ""),
        "why": row.get("why", ""),
        "location": row.get("location", ""),
        "ref": row.get("ref", ""),
        "fix": row.get("fix") or row.get("recommendation") or "No fix specified",
        "found_by": [name],
        "of": of,
        "verified": False,
        "disputed": False,
        "unchecked": True,
    }


def list_opinions(minutes: Minutes) -> list[OpinionRow]:
    """Return verdict, key insight and recommendation of each judge, in seating order, also of an unfinished run."""
    if opinions := read_details(minutes).get("opinions"):
        return list(opinions)
    return [
        {
            "seat": name,
            "verdict": reply["verdict"],
            "confidence": reply.get("confidence") or "",
            "key_insight": reply.get("key_insight") or "",
            "recommendation": reply.get("recommendation") or "",
        }
        for name, reply in last_replies(minutes).items()
        if reply.get("verdict")
    ]


def list_remarks(minutes: Minutes) -> list[str]:
    """List the reasons to double-check the verdict."""
    fields = read_details(minutes)
    inconsistent = [
        f"{format_judge(minutes, name)} said PASS and holds a critical finding: inconsistent, so the verdict can be no better than WARN."
        for name in fields.get("inconsistent") or []
    ]
    weakened = [
        f"The FAIL of {format_judge(minutes, name)} counted as a WARN: no second family, verified location or survived challenge supports it."
        for name in fields.get("weakened") or []
    ]
    flips = [
        f"{format_judge(minutes, shift['seat'])} changed from {shift['from']} to {shift['to']} without citing evidence: possible anchoring."
        for shift in minutes.verdict.get("shifts") or []
        if shift.get("weak")
    ]
    shared_facts = [fact for fact in minutes.verdict.get("trust_facts") or [] if fact["kind"] == "shared_member"]
    shared = [
        f"One model answered for several judges by fallback ({single_line(' as '.join(filter(None, names)))}): its findings count once."
        for names in ((fact["detail"], ", ".join(fact.get("seats") or [])) for fact in shared_facts)
    ]
    return [*shared, *inconsistent, *weakened, *flips, *map(single_line, fields.get("problems") or [])]


# Text for standard output

KIND_WIDTH = 13  # width of the first column
MAX_OPINION_CHARS = 400  # of a judge's key insight and of its recommendation, which end after a sentence
MAX_REASON_CHARS = 600
MAX_WORDS_CHARS = 4_000  # of a judge's own words in the report
MAX_LISTED_FINDINGS = 5  # that several judges hold, at the end
MAX_DEFECT_CHARS = 120


def render_verdict(minutes: Minutes) -> str:
    """Render the verdict for standard output."""
    above = [f"! {line}" for line in (*format_missing_lines(minutes), *_format_remarks(minutes))]
    if minutes.status == "failed":
        return "\n".join(above) + "\n"
    command = f"council report {minutes.run}"
    findings = format_findings(list_findings(minutes), find_wording(minutes), command)
    sections = [[format_headline(minutes), *above], findings, *list_closing_sections(minutes)]
    return "\n\n".join("\n".join(part) for part in sections if part) + "\n"


def list_closing_sections(minutes: Minutes) -> list[list[str]]:
    """Return the lines below the findings, in columns: changes, opinions, and what to do."""
    changes = [*_format_disputes(minutes), *_format_shifts(minutes), *_format_withdrawn(minutes)]
    return [changes, _format_opinions(minutes), [*_format_overview(minutes), *_format_next_step(minutes)]]


def _format_remarks(minutes: Minutes) -> list[str]:
    converged = "The judges disagreed in R1 and agree in R2: check for anchoring."
    remarks = [line.replace("**", "") for line in list_remarks(minutes)]
    return [*remarks, *([converged] if read_details(minutes).get("converged") else [])]


def format_headline(minutes: Minutes) -> str:
    """Format the first line: `WARN  2 of 2 judges`, `DISAGREE  anthropic PASS · openai FAIL   3 of 4 seats`."""
    verdict = minutes.verdict.get("verdict") if minutes.status == "complete" else None
    heard = f"{minutes.answered_count} of {count_asked_seats(minutes)}"
    if len(list_families(minutes)) > 1 and verdict:
        return f"{verdict}  {_format_families(minutes)}   {heard} seats"
    return f"{verdict or minutes.active.upper() or 'INCOMPLETE'}  {heard} {'judge' if count_asked_seats(minutes) == 1 else 'judges'}"


def _format_families(minutes: Minutes) -> str:
    ruled = read_details(minutes).get("families") or {}
    return " · ".join(
        f"{family} {ruled.get(family) or _format_family_states(minutes, family)}{_format_stand_ins(minutes, family)}"
        for family in list_families(minutes)
    )


def _format_stand_ins(minutes: Minutes, family: str) -> str:
    """Format the members that answered for judges of a family by fallback: ` (va:a by fallback)`."""
    seats = [seat for seat in minutes.planned_seats if seat.vendor == family and seat.statements]
    names = dict.fromkeys(single_line(seat.served_by) for seat in seats if seat.served_by not in ("", seat.model))
    return f" ({', '.join(names)} by fallback)" if names else ""


def _format_family_states(minutes: Minutes, family: str) -> str:
    states = [seat.state for seat in minutes.planned_seats if seat.vendor == family]
    return ", ".join(dict.fromkeys(describe_state(final_state(state, minutes.stopped)) for state in states))


def _format_opinions(minutes: Minutes) -> list[str]:
    """Format one line per judge: verdict, key insight and recommendation."""
    lines = []
    for one in list_opinions(minutes):
        stale = describe_stale_verdict(minutes, one["seat"])
        insight = _shorten_line(one["key_insight"], MAX_OPINION_CHARS)
        advice = f"→ {_shorten_line(one['recommendation'], MAX_OPINION_CHARS)}" if one["recommendation"] else ""
        told = "  ".join(filter(None, [insight, advice]))
        head = f"{one['verdict']} ({stale})" if stale else str(one["verdict"])
        lines.append(f"{single_line(one['seat']):<{KIND_WIDTH - 1}} {head}: {told}".rstrip(": "))
    return lines


def _shorten_line(text: str, limit: int) -> str:
    """Return a text in one line that ends after a sentence if it is too long."""
    return shorten_sentences(single_line(text, 20 * limit), limit)


def format_judge_words(one: FindingWords) -> str:
    """Format what one judge of a group said: id, severity, place and words."""
    if one.get("supports"):
        return single_line(f"{one['seat']} supports it in the second round")
    was = f", first {one['first_severity']}" if one.get("first_severity") else ""
    place = f", {one['location']}" if one["location"] else ""
    note = f" ({one['location_note']})" if one["location_note"] else ""
    return _shorten_line(f"{one['id']} ({one['severity']}{was}{place}{note}): {one['description']}", MAX_WORDS_CHARS)


def _format_withdrawn(minutes: Minutes) -> list[str]:
    rows = read_details(minutes).get("withdrawn") or []
    return [f"{'withdrawn':<{KIND_WIDTH}}{format_change(row)}" for row in rows]


def format_change(row: ChangedFinding) -> str:
    """Format a withdrawn or newly rated finding with the judge's reason."""
    was = f", first {row['first_severity']}" if row.get("first_severity") else ""
    found, why = (_shorten_line(text, MAX_REASON_CHARS) for text in (row["finding"], row["why"]))
    return f"{single_line(row['id'])} ({single_line(row['severity'])}{single_line(was)}) {found} Reason: {why}"


def _format_overview(minutes: Minutes) -> list[str]:
    """Format one line per finding that several judges hold, if the list is too long for one look.

    `critical src/auth.py:2 (3 of 3): tokens never expire`; a long sentence is cut, its block has all of it.
    """
    rows = sort_for_reader(list_findings(minutes))
    shared = [row for row in rows if is_shared(row)]
    if not shared or len(rows) <= MAX_LISTED_FINDINGS:
        return []
    lines = []
    for row in shared:
        place = single_line(row["location"] or row["category"], 120)
        defect = single_line(row.get("defect") or first_sentence(row["description"]), 10 * MAX_DEFECT_CHARS)
        head = f"{single_line(row['severity'])} {place} ({len(list_holders(row))} of {row['of']})"
        lines.append(f"{head}: {cut_words(defect, MAX_DEFECT_CHARS)}")
    if (more := len(lines) - MAX_LISTED_FINDINGS) > 0:
        lines[MAX_LISTED_FINDINGS:] = [f"and {more} more"]
    return [f"{'shared':<{KIND_WIDTH}}{line}" for line in lines]


def _format_disputes(minutes: Minutes) -> list[str]:
    """Format the positions of families that disagree; those of judges are in their own lines."""
    rows = (minutes.verdict.get("disagreements") or []) if _is_disagreement(minutes) else []
    positions = [(row, " / ".join(_format_positions(minutes, row))) for row in rows]
    return [f"{'disputed':<{KIND_WIDTH}}{single_line(row['issue'])}: {held}" for row, held in positions]


def _format_positions(minutes: Minutes, row: Disagreement) -> list[str]:
    """Format one position per family, with the reasons of its judges."""
    lines = []
    for held in (read_details(minutes).get("families") or {}).items():
        whys = dict.fromkeys(one["why"] for one in row["positions"] if (one["family"], one["verdict"]) == held)
        lines.append(_shorten_line(f"{' '.join(held)}: {'; '.join(whys)}", MAX_REASON_CHARS))
    return lines


def _format_shifts(minutes: Minutes) -> list[str]:
    return [
        f"{'shifted':<{KIND_WIDTH}}{single_line(one['seat'])} {one['from']} → {one['to']}: {_shorten_line(one['reason'] or 'no reason given', MAX_REASON_CHARS)}"
        for one in minutes.verdict.get("shifts") or []
        if one["changed"]
    ]


def _format_next_step(minutes: Minutes) -> list[str]:
    if minutes.status != "complete":
        written = format_count(len(last_replies(minutes)), "opinion")
        command = "watch" if minutes.active else "resume"
        return [f"{'next step':<{KIND_WIDTH}}council {command} {minutes.run} ({written} so far)"]
    answer = _shorten_line(clean(minutes.verdict.get("answer") or ""), MAX_REASON_CHARS)
    yours = "the families disagree, and the decision is yours; the most severe finding: "
    answer = f"{yours}{answer}" if answer and _is_disagreement(minutes) else answer
    return [f"{'next step':<{KIND_WIDTH}}{answer}"] if answer else []


def _is_disagreement(minutes: Minutes) -> bool:
    return minutes.verdict.get("verdict") == "DISAGREE"
