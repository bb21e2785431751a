"""The parts of a report that depend on the protocol. A protocol overrides them in its `report.py`."""

from __future__ import annotations

from council.engine.layout import format_label
from council.engine.minutes import Minutes, StatementMinutes
from council.types import Json


class ReportView:
    """Default report: the answer, then the statements of every phase."""

    def speaker_label(self, minutes: Minutes, phase: str, seat: str) -> str:
        """Return the name of a seat in a phase."""
        return format_label(seat)

    def last_speaker_label(self, minutes: Minutes, seat: str) -> str:
        """Return the name of a seat in the last phase in which it was asked, or in the first round if there is none."""
        asked = [phase.name for phase in minutes.phases.values() if seat in phase.asked]
        return self.speaker_label(minutes, asked[-1] if asked else "r1", seat)

    def report_fields(self, minutes: Minutes) -> Json:
        """Return extra fields of the report object."""
        return {}

    def layout_variables(self, minutes: Minutes) -> Json:
        """Return extra variables of the protocol's layouts."""
        return {}

    def full_answer(self, minutes: Minutes) -> str:
        """Return a text to show instead of the answer; empty to show the answer."""
        return ""

    def closing_text(self, minutes: Minutes) -> str:
        """Return a few lines to show after the answer on standard output; empty for none."""
        return ""

    def verdict_text(self, minutes: Minutes) -> str:
        """Return the whole text for standard output; empty to show the answer under its caveats."""
        return ""

    def repeats_answer(self, minutes: Minutes, said: StatementMinutes) -> bool:
        """Return whether a statement is the answer, which the report shows once."""
        return minutes.status == "complete" and said.said.strip() == str(minutes.verdict.get("answer") or "").strip()

    def document(self, minutes: Minutes, report: Json) -> str:
        """Return the whole report file; empty to use the layout `document.md`."""
        return ""

    def file_kind(self, task: str, protocol: str, options: Json) -> str:
        """Return the word for the kind of run in the name of its report file."""
        return protocol if task == "ask" else task

    def analysis_name(self, minutes: Minutes, said: StatementMinutes) -> str:
        """Return the seat's part of the file name of a statement that gets its own file; empty for any other."""
        return ""

    def analysis(self, minutes: Minutes, said: StatementMinutes) -> str:
        """Return the content of that file."""
        return said.said
