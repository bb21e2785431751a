"""Options and helpers shared by the management commands."""

from __future__ import annotations

from typing import Any

import click

from council.doors.cli.words import COMMAND_HELP

JSON_OPTION = click.Option(["--json"], is_flag=True, help="Print JSON.")
CONFIG_OPTION = click.Option(
    ["--config"], default=None, metavar="FILE", help="Use this file instead of the project's council.toml."
)


def make_command(name: str, callback: Any, *params: click.Parameter, help: str = "") -> click.Command:
    """Create a management command with the common options."""
    return click.Command(
        name, callback=callback, params=[*params, JSON_OPTION, CONFIG_OPTION], help=help or COMMAND_HELP.get(name, "")
    )


def make_runner(params: dict[str, Any]) -> Any:
    """Create a Drive. The import is local so that light commands start fast."""
    from council.doors.cli.drive import Runner

    return Runner.from_flags(params)
