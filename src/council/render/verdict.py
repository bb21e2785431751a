"""A verdict for standard output: the verdict, the findings, the disputes and the next step."""

from __future__ import annotations

from council.minutes import Minutes
from council.render import bench
from council.render.clean import clean, single_line
from council.render.degraded import count_asked_seats, format_degraded_lines
from council.render.places import format_location
from council.render.states import final_state
from council.render.terminal import format_count
from council.types import Json

KIND_WIDTH = 13  # width of the first column: "significant" and two spaces
MAX_LOCATION_WIDTH = 44  # maximum width of the location column; longer locations shift their line


def render_verdict(minutes: Minutes) -> str:
    """Render the verdict."""
    return "\n\n".join("\n".join(part) for part in _build_sections(minutes) if part) + "\n"


def _build_sections(minutes: Minutes) -> list[list[str]]:
    above = [f"! {line}" for line in [*format_degraded_lines(minutes), *_format_remarks(minutes)]]
    if minutes.status == "failed":
        return [above]
    found = [*_format_findings(minutes), *_format_disputes(minutes), *_format_shifts(minutes)]
    return [[_format_headline(minutes), *above], found, _format_next_step(minutes)]


def _format_remarks(minutes: Minutes) -> list[str]:
    converged = "The judges disagreed in R1 and agree in R2: check for anchoring."
    remarks = [line.replace("**", "") for line in bench.list_remarks(minutes)]
    return [*remarks, *([converged] if bench.verdict_details(minutes).get("converged") else [])]


def _format_headline(minutes: Minutes) -> str:
    """Format the first line: `WARN  2 of 2 judges · confidence MEDIUM`, `DISAGREE  anthropic PASS · openai FAIL   3 of 4 seats`."""
    verdict = minutes.verdict.get("verdict") if minutes.status == "complete" else None
    confidence = minutes.verdict.get("confidence")
    heard = f"{minutes.answered_count} of {count_asked_seats(minutes)}"
    if len(bench.list_families(minutes)) > 1 and verdict:
        return f"{verdict}  {_format_families(minutes)}   {heard} seats" + (
            f" · confidence {confidence}" if confidence else ""
        )
    sure = f" · confidence {confidence}" if confidence else ""
    return f"{verdict or 'INCOMPLETE'}  {heard} {'judge' if count_asked_seats(minutes) == 1 else 'judges'}{sure}"


def _format_families(minutes: Minutes) -> str:
    ruled = bench.verdict_details(minutes).get("families") or {}
    return " · ".join(
        f"{family} {ruled.get(family) or _format_family_states(minutes, family)}"
        for family in bench.list_families(minutes)
    )


def _format_family_states(minutes: Minutes, family: str) -> str:
    return ", ".join(
        dict.fromkeys(
            final_state(seat.state, minutes.stopped) for seat in minutes.planned_seats if seat.vendor == family
        )
    )


def _format_findings(minutes: Minutes) -> list[str]:
    rows = bench.list_findings(minutes)
    width = min(MAX_LOCATION_WIDTH, max((len(_format_location(row)) for row in rows), default=0))
    return [_format_finding(row, width) for row in rows]


def _format_finding(row: Json, width: int) -> str:
    found_by = f"{len(row['found_by'])} of {row['of']}"
    parts = [single_line(row["description"], 400), f"{found_by}{' (disputed)' if row['disputed'] else ''}"]
    place = f"{_format_location(row):<{width}}  " if width else ""
    parts.append(f"fix: {single_line(row['fix'], 400)}")
    return f"{single_line(row['severity']):<{KIND_WIDTH}}{place}{'  '.join(parts)}"


def _format_location(row: Json) -> str:
    return single_line(format_location(row).partition(";")[0] if row["location"] else "", 120)


def _format_disputes(minutes: Minutes) -> list[str]:
    rows = minutes.verdict.get("disagreements") or []
    return [
        f"{'disputed':<{KIND_WIDTH}}{single_line(row['issue'])}: {' / '.join(_format_positions(minutes, row))}"
        for row in rows
    ]


def _format_positions(minutes: Minutes, row: Json) -> list[str]:
    """Format the positions by judge; for a DISAGREE one per family, with the reasons of its judges."""
    if not _is_disagreement(minutes):
        return [single_line(f"{one['seat']} {one['verdict']}: {one['why']}", 300) for one in row["positions"]]
    ruled = bench.verdict_details(minutes).get("families") or {}
    held = {
        family: [one["why"] for one in row["positions"] if (one["family"], one["verdict"]) == (family, verdict)]
        for family, verdict in ruled.items()
    }
    return [
        single_line(f"{family} {ruled[family]}: {'; '.join(dict.fromkeys(whys))}", 500) for family, whys in held.items()
    ]


def _format_shifts(minutes: Minutes) -> list[str]:
    changed = [shift for shift in minutes.verdict.get("shifts") or [] if shift["changed"]]
    return [
        f"{'shifted':<{KIND_WIDTH}}{single_line(one['seat'])} {one['from']} → {one['to']}: {single_line(one['reason'] or 'no reason given', 300)}"
        for one in changed
    ]


def _format_next_step(minutes: Minutes) -> list[str]:
    if minutes.status != "complete":
        written = format_count(len(bench.last_replies(minutes)), "opinion")
        return [f"{'next step':<{KIND_WIDTH}}council resume {minutes.run} ({written} so far)"]
    answer = single_line(clean(minutes.verdict.get("answer") or ""), 2_000)
    yours = (
        "the families disagree, and the decision is yours; the most severe finding: "
        if _is_disagreement(minutes)
        else ""
    )
    return [f"{'next step':<{KIND_WIDTH}}{yours}{answer}"] if answer else []


def _is_disagreement(minutes: Minutes) -> bool:
    return minutes.verdict.get("verdict") == "DISAGREE"
