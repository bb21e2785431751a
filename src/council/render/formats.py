"""Output formats of a run, for `--format` and `council report`. The table is `council.extensions.FORMATS`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from council.errors import is_interrupt
from council.extensions import FORMATS

COMMAND_FORMATS = frozenset({"github"})  # their lines are commands for the CI system; text by models in them is escaped

if TYPE_CHECKING:
    from council.engine.minutes import Minutes
    from council.events import Entry


def render_as(minutes: Minutes, format_name: str, entries: Sequence[Entry] = ()) -> str:
    return "".join(render_parts_as(minutes, format_name, entries))


def render_parts_as(minutes: Minutes, format_name: str, entries: Sequence[Entry] = ()) -> Iterator[str]:
    """Render a run in a format, in parts if it is large. HTML needs the events, all others need only the minutes."""
    from council.render.report import FinishedRun

    render = FORMATS.load(format_name)
    try:
        rendered = render(FinishedRun(minutes, entries))
        yield from [str(rendered)] if format_name in FORMATS.added or isinstance(rendered, str) else rendered
    except BaseException as error:
        if format_name in FORMATS.added and not is_interrupt(error):
            raise FORMATS.added[format_name].error(FORMATS.what, error) from error
        raise
