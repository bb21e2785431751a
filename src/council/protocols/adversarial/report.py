"""Report of the adversarial protocol: the leading draft, and why there was no attack."""

from __future__ import annotations

from council.engine.minutes import Minutes
from council.protocols.report_view import ReportView
from council.text_cleanup import single_line
from council.types import Json

CONSENSUS_TEXT = "Consensus detected — no adversarial round needed"


class AdversarialView(ReportView):
    def layout_variables(self, minutes: Minutes) -> Json:
        triage = _triage_reply(minutes)
        return {
            "leader": triage.get("leader"),
            "reason": triage.get("reason") or "none given",
            "skipped": _describe_skipped_attack(minutes),
        }


def _triage_reply(minutes: Minutes) -> Json:
    phase = minutes.phases.get("triage")
    said = phase.said.get("chair") if phase else None
    return (said.reply if said else None) or {}


def _describe_skipped_attack(minutes: Minutes) -> str:
    """Return why there was no attack phase; empty if there was one."""
    if "attack" in minutes.phases:
        return ""
    note = next((note for note in minutes.notes if "attack" in note.skipped), None)
    drafts = minutes.phases["draft"].said if "draft" in minutes.phases else {}
    if note and len(drafts) > 1:
        return CONSENSUS_TEXT
    return f"_No attack was held: {single_line(note.why if note else 'the run did not get that far')}._"
