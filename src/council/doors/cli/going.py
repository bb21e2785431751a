"""The commands resume, watch, cancel and fork."""

from __future__ import annotations

from typing import Any

import click

from council.doors.cli.commands import make_command, make_runner
from council.doors.cli.given import parse_seats

OPTIONAL_RUN = click.Argument(["run"], required=False)
REQUIRED_RUN = click.Argument(["run"])


def _view_options() -> list[click.Option]:
    """Return the options for output and progress."""
    return [
        click.Option(["--jsonl"], is_flag=True, help="Print events as JSON lines."),
        click.Option(["--verbose"], is_flag=True, help="Print every statement in full."),
        click.Option(["--quiet"], is_flag=True, help="Print no progress on standard error."),
        click.Option(["--no-color"], is_flag=True, help="Print no colour."),
        click.Option(["--ascii"], is_flag=True, help="Use ASCII characters in the live table."),
        click.Option(["--output", "-o"], default=None, metavar="FILE", help="Write the answer to this file."),
        click.Option(["--no-input"], is_flag=True, help="Ask no questions, even at a terminal."),
    ]


def _limit_options() -> list[click.Option]:
    """Return the options that limit time and cost."""
    return [
        click.Option(["--timeout"], type=float, metavar="SECONDS", help="Time limit per seat and phase."),
        click.Option(["--max-cost"], type=float, metavar="DOLLARS", help="New cost limit of the whole run."),
        click.Option(["--allow-unpriced"], is_flag=True, help="Continue with members that have no known price."),
    ]


def resume_command() -> click.Command:
    flags = [
        click.Option(
            ["--no-resend"], is_flag=True, help="Do not repeat requests that were in flight when the run stopped."
        ),
        click.Option(["--detach"], is_flag=True, help="Continue in the background and return at once."),
    ]

    def resume(run: str | None, no_resend: bool, detach: bool, **params: Any) -> int:
        if not detach:
            return int(make_runner(params).resume(run, resend=not no_resend))
        from council.doors.cli.detached import requeue

        return requeue(make_runner(params | {"no_resend": no_resend}), run)

    return make_command("resume", resume, OPTIONAL_RUN, *flags, *_limit_options(), *_view_options())


def watch_command() -> click.Command:
    levels = click.Choice(["fail", "warn", "critical", "significant", "never"])
    level = click.Option(
        ["--fail-on"], type=levels, default=None, help="Exit 10 if the review result is this or worse."
    )

    def watch_(run: str | None, **params: Any) -> int:
        from council.doors.cli.detached import watch

        return watch(make_runner(params), run)

    return make_command("watch", watch_, OPTIONAL_RUN, level, *_view_options())


def cancel_command() -> click.Command:
    def cancel_(run: str, **params: Any) -> int:
        from council.doors.cli.detached import cancel

        return cancel(make_runner(params), run)

    return make_command("cancel", cancel_, REQUIRED_RUN)


def fork_command() -> click.Command:
    flags = [
        click.Option(["--from", "phase"], default=None, metavar="PHASE", help="Reuse all statements before this phase. Default: the first phase."),
        click.Option(["--seat"], multiple=True, metavar="NAME=MEMBER", help="Use another member from that phase on; repeatable."),
    ]  # fmt: skip

    def fork_(run: str, phase: str | None, seat: tuple[str, ...], **params: Any) -> int:
        return int(make_runner(params).fork(run, phase, parse_seats(seat)))

    return make_command("fork", fork_, REQUIRED_RUN, *flags, *_limit_options(), *_view_options())
