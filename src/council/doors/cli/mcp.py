"""`council mcp`: serve Council to coding agents and other MCP clients."""

from __future__ import annotations

from typing import Any

import click

from council.doors.cli.words import COMMAND_HELP


def mcp_command() -> click.Command:
    flags: list[click.Parameter] = [
        click.Option(["--http"], is_flag=True, help="Serve over local HTTP with a token instead of standard input and output."),
        click.Option(["--port"], type=click.IntRange(0, 65535), default=0, metavar="N", help="Port for --http; 0 picks a free one."),
        click.Option(["--folder"], default=None, metavar="DIR", help="Folder for clients that declare no roots. Default: the current folder."),
        click.Option(["--max-cost"], type=float, default=None, metavar="DOLLARS", help="Cost limit per run; callers cannot raise it."),
        click.Option(["--allow-unpriced"], is_flag=True, help="Allow members without a known price, even with a budget."),
        click.Option(["--config"], default=None, metavar="FILE", help="Use this file instead of the project's council.toml."),
    ]  # fmt: skip

    def mcp(**params: Any) -> int:
        from council.doors.mcp import serve  # the SDK import is slow

        return serve(**params)

    return click.Command("mcp", callback=mcp, params=flags, help=COMMAND_HELP["mcp"])
