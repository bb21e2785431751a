"""Report of the panel protocol: each seat's whole answer, and what the clerk did."""

from __future__ import annotations

from council.engine.minutes import Minutes, StatementMinutes
from council.protocols import ReportView
from council.protocols.common.sections import load_sections
from council.types import Json


class PanelView(ReportView):
    def report_fields(self, minutes: Minutes) -> Json:
        details = minutes.verdict.get("details") or {}
        return {"comparison": details["clerk"]} if "clerk" in details else {}

    def seat_fields(self, minutes: Minutes, seat: str) -> Json:
        """Return the seat's whole answer with its conclusion and confidence; all null if it has not answered."""
        said = minutes.statements_of(seat)[-1:]
        closings = (minutes.verdict.get("details") or {}).get("closings") or {}
        text = said[0].said if said else None
        return {"text": text, "conclusion": None, "confidence": None, **closings.get(seat, {})}

    def answer_sections(self, minutes: Minutes) -> list[tuple[str, str, str]]:
        """Return the clerk's points first, then the answers; empty without a comparison."""
        sections = load_sections(minutes.verdict) or []
        return [*sections] if any(section.name == "decision" for section in sections) else []

    def repeats_answer(self, minutes: Minutes, said: StatementMinutes) -> bool:
        """Return whether the digest has a statement: it has every answer of a seat."""
        details = minutes.verdict.get("details") or {}
        return said.seat in (details.get("closings") or {}) and said in minutes.statements_of(said.seat)

    def layout_variables(self, minutes: Minutes) -> Json:
        """Leave out what the digest says already."""
        return {"notes": {}, "positions": []}
