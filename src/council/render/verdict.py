"""A verdict for standard output: the verdict, the findings, the disputes and the next step."""

from __future__ import annotations

from council.minutes import Minutes
from council.render import bench
from council.render.clean import clean, one_line
from council.render.degraded import asked, degraded_lines
from council.render.places import where
from council.render.states import at_rest
from council.render.terminal import count
from council.types import Json

KINDS = 13  # width of the first column: "significant" and two spaces
PLACES = 44  # maximum width of the location column; longer locations shift their line


def verdict_text(minutes: Minutes) -> str:
    """Render the verdict."""
    return "\n\n".join("\n".join(part) for part in _parts(minutes) if part) + "\n"


def _parts(minutes: Minutes) -> list[list[str]]:
    above = [f"! {line}" for line in [*degraded_lines(minutes), *_remarks(minutes)]]
    if minutes.status == "failed":
        return [above]
    found = [*_findings(minutes), *_disputes(minutes), *_shifts(minutes)]
    return [[_head(minutes), *above], found, _next(minutes)]


def _remarks(minutes: Minutes) -> list[str]:
    converged = "The judges disagreed in R1 and agree in R2: check for anchoring."
    remarks = [line.replace("**", "") for line in bench.remarks(minutes)]
    return [*remarks, *([converged] if bench.details(minutes).get("converged") else [])]


def _head(minutes: Minutes) -> str:
    """Format the first line: `WARN  2 of 2 judges · confidence MEDIUM`, `DISAGREE  anthropic PASS · openai FAIL   3 of 4 seats`."""
    verdict = minutes.verdict.get("verdict") if minutes.status == "complete" else None
    confidence = minutes.verdict.get("confidence")
    heard = f"{minutes.heard} of {asked(minutes)}"
    if len(bench.families(minutes)) > 1 and verdict:
        return f"{verdict}  {_families(minutes)}   {heard} seats" + (
            f" · confidence {confidence}" if confidence else ""
        )
    sure = f" · confidence {confidence}" if confidence else ""
    return f"{verdict or 'INCOMPLETE'}  {heard} {'judge' if asked(minutes) == 1 else 'judges'}{sure}"


def _families(minutes: Minutes) -> str:
    ruled = bench.details(minutes).get("families") or {}
    return " · ".join(f"{family} {ruled.get(family) or _lost(minutes, family)}" for family in bench.families(minutes))


def _lost(minutes: Minutes, family: str) -> str:
    return ", ".join(
        dict.fromkeys(at_rest(seat.state, minutes.stopped) for seat in minutes.planned if seat.vendor == family)
    )


def _findings(minutes: Minutes) -> list[str]:
    rows = bench.findings(minutes)
    width = min(PLACES, max((len(_place(row)) for row in rows), default=0))
    return [_finding(row, width) for row in rows]


def _finding(row: Json, width: int) -> str:
    found_by = f"{len(row['found_by'])} of {row['of']}"
    parts = [one_line(row["description"], 400), f"{found_by}{' (disputed)' if row['disputed'] else ''}"]
    place = f"{_place(row):<{width}}  " if width else ""
    parts.append(f"fix: {one_line(row['fix'], 400)}")
    return f"{one_line(row['severity']):<{KINDS}}{place}{'  '.join(parts)}"


def _place(row: Json) -> str:
    return one_line(where(row).partition(";")[0] if row["location"] else "", 120)


def _disputes(minutes: Minutes) -> list[str]:
    rows = minutes.verdict.get("disagreements") or []
    return [f"{'disputed':<{KINDS}}{one_line(row['issue'])}: {' / '.join(_sides(minutes, row))}" for row in rows]


def _sides(minutes: Minutes, row: Json) -> list[str]:
    """Format the positions by judge; for a DISAGREE one per family, with the reasons of its judges."""
    if not _is_split(minutes):
        return [one_line(f"{one['seat']} {one['verdict']}: {one['why']}", 300) for one in row["positions"]]
    ruled = bench.details(minutes).get("families") or {}
    held = {
        family: [one["why"] for one in row["positions"] if (one["family"], one["verdict"]) == (family, verdict)]
        for family, verdict in ruled.items()
    }
    return [
        one_line(f"{family} {ruled[family]}: {'; '.join(dict.fromkeys(whys))}", 500) for family, whys in held.items()
    ]


def _shifts(minutes: Minutes) -> list[str]:
    changed = [shift for shift in minutes.verdict.get("shifts") or [] if shift["changed"]]
    return [
        f"{'shifted':<{KINDS}}{one_line(one['seat'])} {one['from']} → {one['to']}: {one_line(one['reason'] or 'no reason given', 300)}"
        for one in changed
    ]


def _next(minutes: Minutes) -> list[str]:
    if minutes.status != "complete":
        written = count(len(bench.replies(minutes)), "opinion")
        return [f"{'next step':<{KINDS}}council resume {minutes.run} ({written} so far)"]
    answer = one_line(clean(minutes.verdict.get("answer") or ""), 2_000)
    yours = "the families disagree, and the decision is yours; the most severe finding: " if _is_split(minutes) else ""
    return [f"{'next step':<{KINDS}}{yours}{answer}"] if answer else []


def _is_split(minutes: Minutes) -> bool:
    return minutes.verdict.get("verdict") == "DISAGREE"
