"""The management commands: past runs, settings, members."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click

from council.doors.cli.ask import packet_command
from council.doors.cli.commands import CONFIG, JSON, command, drive_from
from council.doors.cli.completion import completion_command
from council.doors.cli.formats import FORMATS, rendered
from council.doors.cli.given import print_json
from council.doors.cli.house import config_command, doctor_command, models_command, presets_command, rosters_command
from council.doors.cli.keys import keys_command
from council.doors.cli.mcp import mcp_command
from council.doors.cli.serve import serve_command
from council.doors.cli.skill import skill_command
from council.doors.cli.spend import spend_command
from council.doors.cli.words import BUILT, PLANNED
from council.doors.listing import row, status_of
from council.errors import UsageError
from council.types import Json

RUN = click.Argument(["run"], required=False)


def management() -> click.Group:
    group = click.Group("council", context_settings={"help_option_names": ["-h", "--help"]})
    built = (
        _runs(),
        _resume(),
        _replay(),
        _report(),
        _gate(),
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
        _worker(),
        mcp_command(),
    )
    for one in (*built, *map(_planned, PLANNED)):
        group.add_command(one)
    return group


def _worker() -> click.Command:
    def worker(**given: Any) -> int:
        from council.doors.worker import work

        return work()

    return click.Command("worker", callback=worker, help=BUILT["worker"])


# runs


def _runs() -> click.Group:
    group = click.Group(
        "runs", invoke_without_command=True, params=[JSON, CONFIG], help=BUILT["runs"], callback=_runs_default
    )
    group.add_command(command("list", list_runs, help="every run, unfinished ones first"))
    flags = [
        click.Option(["--verbose"], is_flag=True, help="Every statement in full."),
        click.Option(
            ["--show"], type=click.Choice(["transcript"]), help="transcript: with prompts, retries and absences."
        ),
    ]
    group.add_command(command("show", show_run, RUN, *flags, help="one run: who sat, what became of it, its answer"))
    group.add_command(command("fsck", check_runs, RUN, help="check the record of one run, or of all"))
    return group


@click.pass_context
def _runs_default(context: click.Context, /, **given: Any) -> int | None:
    return list_runs(**given) if context.invoked_subcommand is None else None


def list_runs(**given: Any) -> int:
    async def job(convener: Any) -> int:
        rows = await convener.runs()
        if given["json"]:
            print_json([row(run) for run in rows])
        elif not rows:
            click.echo('no runs yet: council "…" makes one')
        else:
            click.echo("\n".join(_line(run) for run in rows))
        return 0

    return int(drive_from(given).with_convener(job))


def _line(run: Json) -> str:
    from council.render.clean import one_line

    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(run["created"]))
    question = one_line(run["setup"]["question"]["text"], 60)
    elsewhere = "" if run["folder"] == str(Path.cwd()) else f"  (in {run['folder']})"
    return f"{run['id']}  {when}  {status_of(run):<10}  {run['setup']['protocol']:<13}  {question}{elsewhere}"


def show_run(run: str | None, verbose: bool, show: str | None, **given: Any) -> int:
    async def job(convener: Any) -> int:
        from council.doors.cli.drive import shown
        from council.render import terminal
        from council.render.report import report

        minutes = await convener.minutes(run or await convener.newest())
        if given["json"]:
            print_json(report(minutes))
            return 0
        rows = {row["id"]: row for row in await convener.runs()}
        status = f"run {minutes.run} · {status_of(rows[minutes.run])} · {minutes.plan['protocol']}"
        lines = [
            status,
            *terminal.before(minutes.plan),
            "",
            shown(minutes, verbose=bool(verbose or show), show=show or ""),
        ]
        click.echo("\n".join([*lines, "", *terminal.after(report(minutes))]))
        return 0

    return int(drive_from(given).with_convener(job))


def check_runs(run: str | None, **given: Any) -> int:
    async def job(convener: Any) -> int:
        names = [run] if run else [row["id"] for row in await convener.runs()]
        problems = {
            "store": [*await convener.store.check(), *(f"left behind: {name}" for name in convener.store.litter())]
        }
        problems |= {name: await convener.audit(name) for name in names}
        found = {name: lines for name, lines in problems.items() if lines}
        if given["json"]:
            print_json({"checked": names, "problems": found})
        else:
            click.echo(
                "\n".join(f"{name}: {line}" for name, lines in found.items() for line in lines)
                or f"{len(names)} {'run' if len(names) == 1 else 'runs'}, all in order"
            )
        return 1 if found else 0

    return int(drive_from(given).with_convener(job))


# resume, replay, report


def _resume() -> click.Command:
    flags = [
        click.Option(["--no-resend"], is_flag=True, help="Do not send again what was in flight when the run stopped."),
        click.Option(["--jsonl"], is_flag=True, help="Stream the events, one object a line."),
        click.Option(["--verbose"], is_flag=True, help="Print every statement in full."),
        click.Option(["--quiet"], is_flag=True, help="No progress on standard error."),
        click.Option(["--timeout"], type=float, metavar="SECONDS", help="Time a seat has in a phase."),
        click.Option(["--grace"], type=float, metavar="SECONDS", help="Leave a silent seat behind so long after the others."),
        click.Option(["--max-cost"], type=float, metavar="DOLLARS", help="What the run may cost in all, from now on."),
        click.Option(["--allow-unpriced"], is_flag=True, help="Go on although nobody knows a member's price."),
        click.Option(["--no-color"], is_flag=True, help="No colour."),
        click.Option(["--output", "-o"], default=None, metavar="FILE", help="Write the answer to this file."),
    ]

    def resume(run: str | None, no_resend: bool, **given: Any) -> int:
        return int(drive_from(given).resume(run, resend=not no_resend))

    return command("resume", resume, RUN, *flags)


def _replay() -> click.Command:
    flags = [
        click.Option(
            ["--speed"],
            type=click.FloatRange(min=0),
            default=4.0,
            show_default=True,
            help="Times as fast as it was; 0: at once.",
        ),
        click.Option(["--jsonl"], is_flag=True, help="Stream the events, one object a line."),
        click.Option(["--verbose"], is_flag=True, help="Print every statement in full."),
        click.Option(["--no-color"], is_flag=True, help="No colour."),
    ]

    def replay(run: str | None, speed: float, **given: Any) -> int:
        return int(drive_from(given).replay(run, speed))

    return command("replay", replay, RUN, *flags)


def _report() -> click.Command:
    form = click.Option(
        ["--format", "form"], type=click.Choice(FORMATS), default="md", show_default=True, help="How it is printed."
    )

    def report_(run: str | None, form: str, **given: Any) -> int:
        async def job(convener: Any) -> int:
            minutes = await convener.minutes(run or await convener.newest())
            click.echo(rendered(minutes, "json" if given["json"] else form), nl=False)
            return 0

        return int(drive_from(given).with_convener(job))

    return command("report", report_, RUN, form)


def _gate() -> click.Command:
    levels = click.Choice(["fail", "warn", "critical", "significant", "never"])
    level = click.Option(["--fail-on"], type=levels, default="fail", show_default=True, help="What does not pass.")

    def gate_(run: str | None, fail_on: str, **given: Any) -> int:
        async def job(convener: Any) -> int:
            from council.render.report import report
            from council.rules.gate import gate

            value = report(await convener.minutes(run or await convener.newest()))
            code, why = gate(value, fail_on)
            if given["json"]:
                print_json({"run": value["run"], "verdict": value["verdict"], "exit": code, "why": why})
            else:
                click.echo(why)
            return code

        return int(drive_from(given).with_convener(job))

    return command("gate", gate_, RUN, level)


def _planned(word: str) -> click.Command:
    """A word that is reserved: it never starts a run, and says that it cannot do anything yet."""

    def refuse(**given: Any) -> int:
        raise UsageError(
            f'the command "{word}" is planned, not built yet: nothing was done. To ask it as a question: council ask "{word} …"'
        )

    arguments = click.Argument(["rest"], nargs=-1, type=click.UNPROCESSED)
    settings = {"ignore_unknown_options": True, "allow_extra_args": True}
    return click.Command(
        word, callback=refuse, params=[arguments], hidden=True, context_settings=settings, add_help_option=False
    )
