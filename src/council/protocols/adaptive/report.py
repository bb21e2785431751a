"""Report of the adaptive protocol: why it stopped or went on, and what was argued."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict, cast

from council.engine.minutes import Minutes, StatementMinutes
from council.protocols import ReportView

if TYPE_CHECKING:  # a report needs no rules
    from council.protocols.adaptive.rules import ArguedPoint, DecisionRow, Decisions


class AdaptiveFields(TypedDict, total=False):
    stopped: DecisionRow
    continued: list[DecisionRow]
    argued: list[ArguedPoint]


class AdaptiveView(ReportView):
    def report_fields(self, minutes: Minutes) -> AdaptiveFields:
        """Return the decisions and arguments that the verdict recorded."""
        details = minutes.verdict.get("details") or {}
        fields = {name: details[name] for name in AdaptiveFields.__annotations__ if details.get(name)}
        return cast("AdaptiveFields", fields)

    def layout_variables(self, minutes: Minutes) -> Decisions:
        fields = self.report_fields(minutes)
        return {"stopped": fields.get("stopped"), "continued": fields.get("continued", [])}

    def repeats_answer(self, minutes: Minutes, said: StatementMinutes) -> bool:
        """Return whether a statement is the answer: a sealed answer also has its conclusion."""
        own = str((said.reply or {}).get("answer") or "").strip()
        answer = str(minutes.verdict.get("answer") or "").strip()
        return super().repeats_answer(minutes, said) or (minutes.status == "complete" and bool(own) and own == answer)
