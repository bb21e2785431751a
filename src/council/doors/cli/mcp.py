"""`council mcp`: serve the council to coding agents and other clients."""

from __future__ import annotations

from typing import Any

import click

from council.doors.cli.words import BUILT


def mcp_command() -> click.Command:
    flags: list[click.Parameter] = [
        click.Option(["--http"], is_flag=True, help="Over HTTP on this machine, with a token, in place of standard input and output."),
        click.Option(["--port"], type=click.IntRange(0, 65535), default=0, metavar="N", help="The port of --http; 0: any that is free."),
        click.Option(["--folder"], default=None, metavar="DIR", help="Where clients stay that declare no roots; the folder it is started in."),
        click.Option(["--max-cost"], type=float, default=None, metavar="DOLLARS", help="What one run may cost; no caller can raise it."),
        click.Option(["--allow-unpriced"], is_flag=True, help="Seat members whose price nobody knows, although there is a budget."),
        click.Option(["--config"], default=None, metavar="FILE", help="Use this file in place of the project's council.toml."),
    ]  # fmt: skip

    def mcp(**given: Any) -> int:
        from council.doors.mcp import serve  # only who serves loads the SDK

        return serve(**given)

    return click.Command("mcp", callback=mcp, params=flags, help=BUILT["mcp"])
