"""Output formats of a run, for `--format` and `council report`."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING

from council.errors import UsageError

if TYPE_CHECKING:
    from council.engine.minutes import Minutes
    from council.events import Entry


FORMATS = ("md", "json", "sarif", "junit", "github", "html")


def render_as(minutes: Minutes, format_name: str, entries: Sequence[Entry] = ()) -> str:
    """Render a run in a format. HTML needs the events, all others need only the minutes."""
    from council.render.markdown import render_document
    from council.render.report import build_report, dump_report

    if format_name == "md":
        return render_document(minutes)
    if format_name == "json":
        return dump_report(build_report(minutes)).decode()
    if format_name == "html":
        from council.render.html import render_html

        return render_html(minutes, entries)
    return str(import_module(f"council.render.{format_name}").render(build_report(minutes)))


def choose_format(format_name: str | None, json: bool, jsonl: bool) -> str:
    """Return the output format of a finished run ("" is the answer). Raise UsageError if two flags conflict."""
    if format_name and (jsonl or (json and format_name != "json")):
        other = "--jsonl" if jsonl else "--json"
        raise UsageError(f'--format "{format_name}" and {other} conflict, nothing was spent: give one of them')
    return "json" if json else format_name or ""
