"""Output formats of a run, for `--format` and `council report`. The table is `council.extensions.FORMATS`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from council.extensions import FORMATS

COMMAND_FORMATS = frozenset({"github"})  # their lines are commands for the CI system; text by models in them is escaped

if TYPE_CHECKING:
    from council.engine.minutes import Minutes
    from council.events import Entry


def render_as(minutes: Minutes, format_name: str, entries: Sequence[Entry] = ()) -> str:
    """Render a run in a format. HTML needs the events, all others need only the minutes."""
    from council.render.report import FinishedRun

    render = FORMATS.load(format_name)
    try:
        return str(render(FinishedRun(minutes, entries)))
    except Exception as error:
        if format_name in FORMATS.added:
            raise FORMATS.added[format_name].error(FORMATS.what, error) from error
        raise
