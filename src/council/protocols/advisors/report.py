"""Report of the advisors protocol: seats are labelled with their round."""

from __future__ import annotations

from council.engine.minutes import Minutes, StatementMinutes
from council.protocols import ReportView
from council.protocols.common.sections import load_sections
from council.text_cleanup import clean

BREAK = "\n\n## "
WRONG_TITLE = "What Would Show That the Verdict Was Wrong"
DECISION_SECTIONS = ("decision", "next_steps", "wrong_if")
EARLIER_NAMES = {"Perspectives": "perspectives", "Tensions": "tensions", "How Positions Moved": "moves"}


class AdvisorsView(ReportView):
    def answer_sections(self, minutes: Minutes) -> list[tuple[str, str, str]]:
        """Return the verdict and the next steps before the perspectives and tensions."""
        stored = load_sections(minutes.verdict)
        if stored is None:
            return self._find_earlier_sections(str(minutes.verdict.get("answer") or ""))
        return [*sorted(stored, key=lambda section: section.name not in DECISION_SECTIONS)]

    def _find_earlier_sections(self, text: str) -> list[tuple[str, str, str]]:
        """Return the sections of a run of an earlier version by the headings that code wrote around them."""
        before, _, after = text.partition(f"{BREAK}Verdict\n\n")
        decision, found, rest = after.rpartition(f"{BREAK}Next Steps\n\n")
        if not found or not before.startswith("## Perspectives\n\n"):
            return []
        steps, _, wrong = rest.partition(f"{BREAK}{WRONG_TITLE}\n\n")
        later = [
            ("decision", "Verdict", decision),
            ("next_steps", "Next Steps", steps),
            ("wrong_if", WRONG_TITLE, wrong),
        ]
        earlier = [part.partition("\n\n") for part in before.removeprefix("## ").split(BREAK)]
        named = [(EARLIER_NAMES.get(title, "other"), title, part) for title, _, part in earlier]
        return [section for section in [*later, *named] if section[2].strip()]

    def repeats_answer(self, minutes: Minutes, said: StatementMinutes) -> bool:
        """The answer is the referee's statement with the roles of the advisors."""
        return minutes.status == "complete" and minutes.chair is not None and said.seat == minutes.chair.name

    def speaker_label(self, minutes: Minutes, phase: str, seat: str) -> str:
        """Return `council-r2-skeptic`; without the round for the referee or a single round."""
        several = (minutes.plan.get("options") or {}).get("rounds", 1) > 1
        presides = minutes.chair is not None and seat == minutes.chair.name
        return f"council-{phase}-{clean(seat)}" if several and not presides else f"council-{clean(seat)}"
