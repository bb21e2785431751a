"""Report of the refine protocol: the errors of the attack."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict, cast

from council.engine.minutes import Minutes
from council.protocols import ReportView

if TYPE_CHECKING:  # a report needs no rules
    from council.protocols.refine.rules import AttackRow

    class AttackVariables(AttackRow):
        status: str


RULING_WORDS = {True: "right", False: "dismissed", None: "open"}


class RefineFields(TypedDict, total=False):
    attacks: list[AttackRow]


class RefineVariables(TypedDict):
    attacks: list[AttackVariables]


class RefineView(ReportView):
    def report_fields(self, minutes: Minutes) -> RefineFields:
        """Return the errors in the drafts; empty if the run ended before its text."""
        stored = minutes.verdict.get("details") or {}
        return cast("RefineFields", {"attacks": stored["attacks"]} if "attacks" in stored else {})

    def layout_variables(self, minutes: Minutes) -> RefineVariables:
        attacks = self.report_fields(minutes).get("attacks", [])
        return {"attacks": [{**row, "status": RULING_WORDS[row["landed"]]} for row in attacks]}
