"""Report of the adaptive protocol: why it stopped or went on, and what was argued."""

from __future__ import annotations

from council.engine.minutes import Minutes, StatementMinutes
from council.protocols import ReportView
from council.types import Json


class AdaptiveView(ReportView):
    def report_fields(self, minutes: Minutes) -> Json:
        details = minutes.verdict.get("details") or {}
        return {name: details[name] for name in ("stopped", "continued", "argued") if details.get(name)}

    def layout_variables(self, minutes: Minutes) -> Json:
        details = minutes.verdict.get("details") or {}
        return {"stopped": details.get("stopped"), "continued": details.get("continued") or []}

    def repeats_answer(self, minutes: Minutes, said: StatementMinutes) -> bool:
        """Return whether a statement is the answer: a sealed answer also has its conclusion."""
        own = str((said.reply or {}).get("answer") or "").strip()
        answer = str(minutes.verdict.get("answer") or "").strip()
        return super().repeats_answer(minutes, said) or (minutes.status == "complete" and bool(own) and own == answer)
