"""`council serve`: the page and the HTTP API on this machine."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click

from council.doors.cli.commands import CONFIG_OPTION
from council.doors.cli.words import COMMAND_HELP
from council.errors import UsageError

REQUIRED_PACKAGES = ("fastapi", "uvicorn")
SERVE_OPTIONS = (
    click.Option(["--open", "open_page"], is_flag=True, help="Open the page in the browser."),
    click.Option(["--port"], type=click.IntRange(0, 65535), metavar="N", help="Port to listen on; 0 picks a free one."),
    click.Option(
        ["--root"], multiple=True, metavar="FOLDER", help="Another folder whose files may be used; repeatable."
    ),
    click.Option(["--max-cost"], type=click.FloatRange(min=0), metavar="DOLLARS", help="Cost limit per run."),
    click.Option(
        ["--unsafe-host"],
        metavar="ADDRESS",
        help="Listen on this address. Anyone who can reach it needs only the token.",
    ),
    CONFIG_OPTION,
)


def serve_command() -> click.Command:
    return click.Command("serve", callback=_run_server, params=list(SERVE_OPTIONS), help=COMMAND_HELP["serve"])


def _run_server(
    open_page: bool,
    port: int | None,
    root: tuple[str, ...],
    max_cost: float | None,
    unsafe_host: str | None,
    **params: Any,
) -> int:
    if missing := next((name for name in REQUIRED_PACKAGES if find_spec(name) is None), None):
        raise UsageError(f"council serve needs the package {missing}: run `pip install 'council[web]'`")
    from council.doors.bounds import Owner
    from council.doors.web.hall import AppState, name_roots
    from council.doors.web.serving import parse_address, serve

    where = parse_address(unsafe_host, port)
    config = Path(params["config"]).absolute() if params.get("config") else None
    roots = name_roots([Path.cwd(), *map(Path, root)])
    hall = AppState(roots, Owner(Path.cwd().resolve(), dict(os.environ), config, max_cost))
    return serve(hall, where, open_page=open_page, print_url=click.echo)
