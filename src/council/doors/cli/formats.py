"""A run in the formats that people and programs read: one list of them, for a run and for `council report`."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from council.errors import UsageError

if TYPE_CHECKING:
    from council.minutes import Minutes

FORMATS = ("md", "json", "sarif", "junit", "github")


def rendered(minutes: Minutes, form: str) -> str:
    """The whole run in one of them. Only what is asked for is loaded."""
    from council.render.markdown import document
    from council.render.report import dump, report

    if form == "md":
        return document(minutes)
    if form == "json":
        return dump(report(minutes)).decode()
    return str(import_module(f"council.render.{form}").render(report(minutes)))


def one_format(form: str | None, json: bool, jsonl: bool) -> str:
    """What is printed when a run has ended; empty: the answer. Two different wishes are refused."""
    if form and (jsonl or (json and form != "json")):
        other = "--jsonl" if jsonl else "--json"
        raise UsageError(
            f'--format "{form}" and {other} both say what goes to standard output, nothing was spent: give one of them'
        )
    return "json" if json else form or ""
