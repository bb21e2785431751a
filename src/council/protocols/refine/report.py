"""Report of the refine protocol: the errors of the attack."""

from __future__ import annotations

from council.engine.minutes import Minutes
from council.protocols import ReportView
from council.types import Json

RULING_WORDS = {True: "right", False: "dismissed", None: "open"}


class RefineView(ReportView):
    def report_fields(self, minutes: Minutes) -> Json:
        """Return the errors in the drafts; empty if the run ended before its text."""
        details = minutes.verdict.get("details") or {}
        return {"attacks": details["attacks"]} if "attacks" in details else {}

    def layout_variables(self, minutes: Minutes) -> Json:
        details = minutes.verdict.get("details") or {}
        return {"attacks": [{**row, "status": RULING_WORDS[row["landed"]]} for row in details.get("attacks") or []]}
