"""Report of the refine protocol: the ballots, the errors of the attack and the errors of the check."""

from __future__ import annotations

from council.engine.layout import find_wording
from council.engine.minutes import Minutes
from council.protocols import ReportView
from council.protocols.ranking.report import build_ranking
from council.types import Json

RULING_WORDS = {True: "right", False: "dismissed", None: "open"}


def _has_seat_ballots(details: Json) -> bool:
    """Return whether seats ranked the versions; the chair decides between two."""
    return any(row["ballots"] for row in details.get("table") or [])


class RefineView(ReportView):
    def report_fields(self, minutes: Minutes) -> Json:
        """Return the ballots and the errors in the drafts; empty if no version was chosen."""
        details = minutes.verdict.get("details") or {}
        if "ballots" not in details:
            return {}
        ranking = {key: details[key] for key in ("table", "winner", "differ", "agreement", "ballots")}
        return {"ranking": ranking, "attacks": details["attacks"]}

    def layout_variables(self, minutes: Minutes) -> Json:
        wording = find_wording(minutes)
        details = minutes.verdict.get("details") or {}
        return {
            "ranking": build_ranking(minutes, wording, "choose") if _has_seat_ballots(details) else {},
            "attacks": [{**row, "status": RULING_WORDS[row["landed"]]} for row in details.get("attacks") or []],
        }
