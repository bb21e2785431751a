"""Output formats of a run, for `--format` and `council report`."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING

from council.errors import UsageError

if TYPE_CHECKING:
    from council.events import Entry
    from council.minutes import Minutes

FORMATS = ("md", "json", "sarif", "junit", "github", "html")


def rendered(minutes: Minutes, form: str, entries: Sequence[Entry] = ()) -> str:
    """Render a run in a format. HTML needs the events, all others need only the minutes."""
    from council.render.markdown import document
    from council.render.report import dump, report

    if form == "md":
        return document(minutes)
    if form == "json":
        return dump(report(minutes)).decode()
    if form == "html":
        from council.render.html import html

        return html(minutes, entries)
    return str(import_module(f"council.render.{form}").render(report(minutes)))


def one_format(form: str | None, json: bool, jsonl: bool) -> str:
    """Return the output format of a finished run ("" is the answer). Raise UsageError if two flags conflict."""
    if form and (jsonl or (json and form != "json")):
        other = "--jsonl" if jsonl else "--json"
        raise UsageError(f'--format "{form}" and {other} conflict, nothing was spent: give one of them')
    return "json" if json else form or ""
