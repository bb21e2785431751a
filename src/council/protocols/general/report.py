"""Report of the general protocol: the answer in parts, the decision first."""

from __future__ import annotations

from council.engine.minutes import Minutes
from council.protocols import ReportView
from council.protocols.common.sections import load_sections

CODE_SECTIONS = (  # sections that code appends to the chair's answer, the last first
    ("changes", "Proposed Spec Changes"),
    ("sources", "Sources"),
    ("disagreements", "Where Experts Disagree"),
)
MODELS_TITLE = "Participating models"


class GeneralView(ReportView):
    def answer_sections(self, minutes: Minutes) -> list[tuple[str, str, str]]:
        """Return the chair's answer, then the disagreements and the other sections that code added."""
        stored = load_sections(minutes.verdict)
        return self._find_earlier_sections(minutes) if stored is None else [*stored]

    def _find_earlier_sections(self, minutes: Minutes) -> list[tuple[str, str, str]]:
        """Return the sections of a run of an earlier version by the headings that code wrote."""
        models, found, text = str(minutes.verdict.get("answer") or "").partition("\n\n")
        if not found or not models.startswith(f"{MODELS_TITLE}: "):
            return []
        has_spec = bool((minutes.plan.get("options") or {}).get("spec_review"))
        sections = []
        for name, title in CODE_SECTIONS:
            before, added, after = text.rpartition(f"\n\n## {title}\n\n")
            # The chair may use the same heading as code.
            if added and (has_spec if name == "changes" else minutes.verdict.get(name)):
                text = before
                sections.append((name, title, after))
        return [("decision", "Answer", text), *reversed(sections), ("models", MODELS_TITLE, models)]
