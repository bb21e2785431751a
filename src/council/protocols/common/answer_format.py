"""The answer of a council as JSON for a program: one more call of the chair, after the answer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from council.engine.council import Council
from council.engine.response_format import ResponseFormat
from council.engine.trust import LIMITS
from council.errors import SeatAbsent
from council.events import dump_deeply
from council.text_cleanup import single_line
from council.types import FORMAT_PHASE, FORMAT_SEAT, Json, Seat, Verdict
from council.wording import load_wording

MAX_FINDINGS = 60
MAX_LIMIT_CHARS = 400  # of one line on what limits the answer


async def format_answer(council: Council, verdict: Verdict, response_format: ResponseFormat) -> None:
    """Have the member of the chair write the answer as JSON. The statement of the phase `format` is the JSON.

    An answer that is such JSON already is left as it is. If the member does not answer, the answer stays the result of
    the run.
    """
    findings = list(_list_findings(verdict))
    has_answer = verdict.answer.strip() or verdict.verdict or findings
    if verdict.incomplete or not has_answer or response_format.find_answer(verdict.answer) is not None:
        return
    council.so_far(verdict, is_answer=True)
    async with council.phase(FORMAT_PHASE):
        try:
            await council.ask(
                _choose_formatter(council),
                "common/format",
                response_format=response_format,
                answer=_describe_answer(verdict),
                findings=findings,
                limits=list(_list_limits(council, verdict)),
                purpose=response_format.description,
                schema=response_format.schema_text,
                is_object=response_format.kind == "json_object",
            )
        except SeatAbsent:
            return


def _choose_formatter(council: Council) -> Seat:
    """Return a seat with the member of the chair; without a chair, with that of the first seat."""
    writer = council.roster.chair or council.members[0]
    return replace(writer, name=FORMAT_SEAT, role="", perspective="", focus="", style="")


def _describe_answer(verdict: Verdict) -> str:
    ruled = {"Verdict": verdict.verdict, "Outcome": verdict.outcome, "Confidence": verdict.confidence}
    head = [f"{name}: {word}" for name, word in ruled.items() if word]
    return "\n\n".join(filter(None, ["\n".join(head), verdict.answer.strip()]))


def _list_findings(verdict: Verdict) -> Iterator[str]:
    """Yield the findings of a review as lines."""
    rows: list[Json] = [dump_deeply(row) for row in verdict.findings[:MAX_FINDINGS]]
    for row in rows:
        names = ("severity", "category", "location", "description", "why", "fix")
        parts = [f"{name}: {row[name]}" for name in names if row.get(name)]
        count = len(row.get("found_by") or ())
        support = [f"found by {count} of {row['of']} judges"] if count and row.get("of") else []
        yield "; ".join([*parts, *support, *(["disputed"] if row.get("disputed") else [])])
    if more := len(verdict.findings) - len(rows):
        yield f"{more} more findings are not listed here"


def _list_limits(council: Council, verdict: Verdict) -> Iterator[str]:
    """Yield what limits the answer: remarks on it, the facts against trust, and what the seats differ on."""
    facts = [fact for fact in verdict.trust_facts if fact.kind in LIMITS]
    reasons = load_wording("en").list_reasons(facts)
    differences = [f"The members differ on this: {one.point}" for one in verdict.differences]
    for line in (*verdict.caveats, *reasons, verdict.assessment, *differences):
        if line.strip():
            yield single_line(line, MAX_LIMIT_CHARS)
    missed = {row["seat"] for rows in council.ledger.record.phases.values() for row in rows.values()}
    absent = [seat.name for seat in council.members if seat.name in missed - council.state.positions.keys()]
    if absent:
        yield f"These members did not answer: {', '.join(absent)}"
