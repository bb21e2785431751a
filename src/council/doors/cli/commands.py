"""What all management commands have in common."""

from __future__ import annotations

from typing import Any

import click

from council.doors.cli.words import BUILT

JSON = click.Option(["--json"], is_flag=True, help="Print one object.")
CONFIG = click.Option(
    ["--config"], default=None, metavar="FILE", help="Use this file in place of the project's council.toml."
)


def command(name: str, callback: Any, *params: click.Parameter, help: str = "") -> click.Command:
    """A management command, with the flags that all of them have."""
    return click.Command(name, callback=callback, params=[*params, JSON, CONFIG], help=help or BUILT.get(name, ""))


def drive_from(given: dict[str, Any]) -> Any:
    """Only commands that need one load what a run needs."""
    from council.doors.cli.drive import Drive

    return Drive.from_flags(given)
