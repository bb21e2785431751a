"""Report of the adaptive protocol: why it stopped or went on, and what was argued."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict, cast

from council.engine.minutes import Minutes, StatementMinutes
from council.protocols import ReportView

if TYPE_CHECKING:  # a report needs no rules
    from council.protocols.adaptive.rules import AdaptiveDetails, ArguedPoint, DecisionRow


class AdaptiveFields(TypedDict, total=False):
    """Fields of the report."""

    stopped: DecisionRow
    continued: list[DecisionRow]
    argued: list[ArguedPoint]


class AdaptiveVariables(TypedDict):
    """Variables of the layout."""

    stopped: DecisionRow | None
    continued: list[DecisionRow]


class AdaptiveView(ReportView):
    def report_fields(self, minutes: Minutes) -> AdaptiveFields:
        details = _find_details(minutes)
        fields: AdaptiveFields = {}
        if details and (stopped := details.get("stopped")):
            fields["stopped"] = stopped
        if details and (continued := details.get("continued")):
            fields["continued"] = continued
        if details and (argued := details.get("argued")):
            fields["argued"] = argued
        return fields

    def layout_variables(self, minutes: Minutes) -> AdaptiveVariables:
        details = _find_details(minutes)
        if not details:
            return {"stopped": None, "continued": []}
        return {"stopped": details.get("stopped"), "continued": details.get("continued") or []}

    def repeats_answer(self, minutes: Minutes, said: StatementMinutes) -> bool:
        """Return whether a statement is the answer: a sealed answer also has its conclusion."""
        own = str((said.reply or {}).get("answer") or "").strip()
        answer = str(minutes.verdict.get("answer") or "").strip()
        return super().repeats_answer(minutes, said) or (minutes.status == "complete" and bool(own) and own == answer)


def _find_details(minutes: Minutes) -> AdaptiveDetails | None:
    """Return the details that the verdict recorded; None if there are none."""
    return cast("AdaptiveDetails | None", minutes.verdict.get("details") or None)
