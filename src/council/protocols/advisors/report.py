"""Report of the advisors protocol: seats are labelled with their round."""

from __future__ import annotations

from council.engine.minutes import Minutes, StatementMinutes
from council.protocols import ReportView
from council.protocols.common.sections import load_sections
from council.text_cleanup import clean

BREAK = "\n\n## "
WRONG_TITLE = "What Would Show That the Verdict Was Wrong"
SECTION_NAMES = {
    "Next Steps": "next_steps",
    WRONG_TITLE: "wrong_if",
    "Tensions": "tensions",
    "How Positions Moved": "moves",
    "Perspectives": "perspectives",
}


class AdvisorsView(ReportView):
    def answer_sections(self, minutes: Minutes) -> list[tuple[str, str, str]]:
        """Return the verdict first, then the other sections."""
        stored = load_sections(minutes.verdict)
        if stored is None:
            return self._find_earlier_sections(str(minutes.verdict.get("answer") or ""))
        return list(stored)

    def _find_earlier_sections(self, text: str) -> list[tuple[str, str, str]]:
        """Return the sections of a run of an earlier version by the headings that code wrote around them."""
        before, _, after = f"\n\n{text}".partition(f"{BREAK}Verdict\n\n")
        decision, found, rest = after.rpartition(f"{BREAK}Next Steps\n\n")
        if not found or not (text.startswith("## Verdict\n\n") or before.startswith(f"{BREAK}Perspectives\n\n")):
            return []
        # Earlier versions had perspectives and tensions before the verdict.
        others = f"{BREAK}Next Steps\n\n{rest}{before}"
        titled = [part.partition("\n\n") for part in others.split(BREAK)[1:]]
        sections = [("decision", "Verdict", decision)]
        sections += [(SECTION_NAMES.get(title, "other"), title, part) for title, _, part in titled]
        return [section for section in sections if section[2].strip()]

    def repeats_answer(self, minutes: Minutes, said: StatementMinutes) -> bool:
        """The answer is the referee's statement with the roles of the advisors."""
        return minutes.status == "complete" and minutes.chair is not None and said.seat == minutes.chair.name

    def speaker_label(self, minutes: Minutes, phase: str, seat: str) -> str:
        """Return `council-r2-skeptic`; without the round for the referee or a single round."""
        several = (minutes.plan.get("options") or {}).get("rounds", 1) > 1
        presides = minutes.chair is not None and seat == minutes.chair.name
        return f"council-{phase}-{clean(seat)}" if several and not presides else f"council-{clean(seat)}"
