"""The group of management commands, and the commands worker, replay, report and gate."""

from __future__ import annotations

from typing import Any

import click

from council.doors.cli.ask import packet_command
from council.doors.cli.completion import completion_command
from council.doors.cli.grammar import COMMAND_HELP, RESERVED_COMMANDS
from council.doors.cli.history_commands import runs_command, spend_command
from council.doors.cli.info_commands import (
    config_command,
    doctor_command,
    keys_command,
    models_command,
    presets_command,
    rosters_command,
)
from council.doors.cli.params import print_json
from council.doors.cli.run_commands import cancel_command, fork_command, resume_command, watch_command
from council.doors.cli.runner import make_command, make_runner
from council.doors.cli.service_commands import mcp_command, serve_command, skill_command
from council.errors import UsageError
from council.extensions import FORMATS
from council.render.formats import render_as

PAST_RUN = click.Argument(["run"], required=False)


def management_group() -> click.Group:
    group = click.Group("council", context_settings={"help_option_names": ["-h", "--help"]})
    built = (
        runs_command(),
        resume_command(),
        watch_command(),
        cancel_command(),
        fork_command(),
        _replay_command(),
        _report_command(),
        _gate_command(),
        packet_command(),
        presets_command(),
        rosters_command(),
        models_command(),
        doctor_command(),
        keys_command(),
        config_command(),
        spend_command(),
        skill_command(),
        completion_command(),
        serve_command(),
        _worker_command(),
        mcp_command(),
    )
    for entry in (*built, *map(_reserved_command, RESERVED_COMMANDS)):
        group.add_command(entry)
    return group


def _worker_command() -> click.Command:
    def worker(**params: Any) -> int:
        from council.runs.worker import run_worker

        return run_worker()

    return click.Command("worker", callback=worker, help=COMMAND_HELP["worker"])


# replay, report


def _replay_command() -> click.Command:
    flags = [
        click.Option(
            ["--speed"],
            type=click.FloatRange(min=0),
            default=4.0,
            show_default=True,
            help="Playback speed; 0 plays it at once.",
        ),
        click.Option(["--jsonl"], is_flag=True, help="Print events as JSON lines."),
        click.Option(["--verbose"], is_flag=True, help="Print every statement in full."),
        click.Option(["--no-color"], is_flag=True, help="Print no colour."),
    ]

    def replay(run: str | None, speed: float, **params: Any) -> int:
        return int(make_runner(params).replay(run, speed))

    return make_command("replay", replay, PAST_RUN, *flags)


def _report_command() -> click.Command:
    form = click.Option(
        ["--format", "form"],
        type=click.Choice(FORMATS.names),
        default="md",
        show_default=True,
        help="Output format; html is one file with every view of the page.",
    )

    def report_(run: str | None, form: str, **params: Any) -> int:
        async def job(convener: Any) -> int:
            from council.engine.minutes import Minutes

            entries = await convener.entries(run or await convener.newest_run())
            click.echo(render_as(Minutes.fold(entries), "json" if params["json"] else form, entries), nl=False)
            return 0

        return int(make_runner(params).with_convener(job))

    return make_command("report", report_, PAST_RUN, form)


def _gate_command() -> click.Command:
    levels = click.Choice(["fail", "warn", "critical", "significant", "never"])
    level = click.Option(
        ["--fail-on"], type=levels, default="fail", show_default=True, help="Fail on this result or worse."
    )

    def gate_(run: str | None, fail_on: str, **params: Any) -> int:
        async def job(convener: Any) -> int:
            from council.render.report import build_report
            from council.runs.ci_gate import evaluate_gate

            value = build_report(await convener.minutes(run or await convener.newest_run()))
            code, why = evaluate_gate(value, fail_on)
            if params["json"]:
                print_json({"run": value["run"], "verdict": value["verdict"], "exit": code, "why": why})
            else:
                click.echo(why)
            return code

        return int(make_runner(params).with_convener(job))

    return make_command("gate", gate_, PAST_RUN, level)


def _reserved_command(word: str) -> click.Command:
    """Create a hidden command for a reserved word. It never starts a run and reports that it is not available yet."""

    def refuse(**params: Any) -> int:
        raise UsageError(
            f'command "{word}" is planned but not available yet, nothing was done. To ask it as a question: council ask "{word} …"'
        )

    arguments = click.Argument(["rest"], nargs=-1, type=click.UNPROCESSED)
    settings = {"ignore_unknown_options": True, "allow_extra_args": True}
    return click.Command(
        word, callback=refuse, params=[arguments], hidden=True, context_settings=settings, add_help_option=False
    )
