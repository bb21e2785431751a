"""Report of the advisors protocol: seats are labelled with their round."""

from __future__ import annotations

from council.engine.minutes import Minutes, StatementMinutes
from council.protocols import ReportView
from council.text_cleanup import clean


class AdvisorsView(ReportView):
    def repeats_answer(self, minutes: Minutes, said: StatementMinutes) -> bool:
        """The answer is the referee's statement with the roles of the advisors."""
        return minutes.status == "complete" and minutes.chair is not None and said.seat == minutes.chair.name

    def speaker_label(self, minutes: Minutes, phase: str, seat: str) -> str:
        """Return `council-r2-skeptic`; without the round for the referee or a single round."""
        several = (minutes.plan.get("options") or {}).get("rounds", 1) > 1
        presides = minutes.chair is not None and seat == minutes.chair.name
        return f"council-{phase}-{clean(seat)}" if several and not presides else f"council-{clean(seat)}"
