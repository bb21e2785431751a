"""Report of the panel protocol: each seat's whole answer, and what the clerk did."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict, cast

from council.engine.minutes import Minutes, StatementMinutes
from council.engine.records import SeatFields
from council.protocols import ReportView
from council.protocols.common.sections import load_sections

if TYPE_CHECKING:  # a report needs no flow
    from council.protocols.panel.flow import ComparisonRow, PanelDetails


class PanelFields(TypedDict, total=False):
    """Fields of the report."""

    comparison: ComparisonRow


class PanelVariables(TypedDict):
    """Variables of the shared layout that are empty, because the digest has what they would say."""

    notes: dict[str, str]
    positions: list[list[str]]


class PanelView(ReportView):
    def report_fields(self, minutes: Minutes) -> PanelFields:
        details = _find_details(minutes)
        return {"comparison": details["clerk"]} if details and "clerk" in details else {}

    def seat_fields(self, minutes: Minutes, seat: str) -> SeatFields:
        """Return the seat's whole answer with its conclusion and confidence; all null if it has not answered."""
        said = minutes.statements_of(seat)[-1:]
        details = _find_details(minutes)
        closing = (details.get("closings") or {}).get(seat) if details else None
        return {
            "text": said[0].said if said else None,
            "conclusion": closing["conclusion"] if closing else None,
            "confidence": closing["confidence"] if closing else None,
        }

    def answer_sections(self, minutes: Minutes) -> list[tuple[str, str, str]]:
        """Return the clerk's points first, then the answers; empty without a comparison."""
        sections = load_sections(minutes.verdict) or []
        return [*sections] if any(section.name == "decision" for section in sections) else []

    def repeats_answer(self, minutes: Minutes, said: StatementMinutes) -> bool:
        """Return whether the digest has a statement: it has every answer of a seat."""
        details = _find_details(minutes)
        is_listed = details is not None and said.seat in (details.get("closings") or {})
        return is_listed and said in minutes.statements_of(said.seat)

    def layout_variables(self, minutes: Minutes) -> PanelVariables:
        """Leave out what the digest says already."""
        return {"notes": {}, "positions": []}


def _find_details(minutes: Minutes) -> PanelDetails | None:
    """Return the details that the verdict recorded; None for a run without an answer."""
    return cast("PanelDetails | None", minutes.verdict.get("details") or None)
