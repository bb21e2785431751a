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
    comparison: ComparisonRow


class PanelVariables(TypedDict):
    """Variables of the shared layout that are empty, because the digest has what they would say."""

    notes: dict[str, str]
    positions: list[list[str]]


class PanelView(ReportView):
    def report_fields(self, minutes: Minutes) -> PanelFields:
        details = _find_details(minutes)
        return {"comparison": details["clerk"]} if "clerk" in details else {}

    def seat_fields(self, minutes: Minutes, seat: str) -> SeatFields:
        """Return the seat's whole answer with its conclusion and confidence; all null if it has not answered."""
        said = minutes.statements_of(seat)[-1:]
        closing = _find_details(minutes).get("closings", {}).get(seat) or {"conclusion": None, "confidence": None}
        return {"text": said[0].said if said else None, **closing}

    def answer_sections(self, minutes: Minutes) -> list[tuple[str, str, str]]:
        """Return the clerk's points first, then the answers; empty without a comparison."""
        sections = load_sections(minutes.verdict) or []
        return [*sections] if any(section.name == "decision" for section in sections) else []

    def repeats_answer(self, minutes: Minutes, said: StatementMinutes) -> bool:
        """Return whether the digest has a statement: it has every answer of a seat."""
        is_listed = said.seat in _find_details(minutes).get("closings", {})
        return is_listed and said in minutes.statements_of(said.seat)

    def layout_variables(self, minutes: Minutes) -> PanelVariables:
        """Leave out what the digest says already."""
        return {"notes": {}, "positions": []}


def _find_details(minutes: Minutes) -> PanelDetails:
    """Return the details that the verdict recorded; a run without an answer has none."""
    return cast("PanelDetails", minutes.verdict.get("details") or {})
