"""Report of the collaborative protocol: the drafts that a seat read before it improved its own."""

from __future__ import annotations

from functools import partial

from council.engine.layout import format_label
from council.engine.minutes import Minutes
from council.protocols.report_view import ReportView
from council.types import Json


class CollaborativeView(ReportView):
    def layout_variables(self, minutes: Minutes) -> Json:
        return {"other_seats": partial(_format_other_seats, minutes)}


def _format_other_seats(minutes: Minutes, name: str) -> str:
    drafts = minutes.phases["draft"].said if "draft" in minutes.phases else {}
    return " & ".join(
        format_label(seat.name) for seat in minutes.planned_seats if seat.name in drafts and seat.name != name
    )
