"""Commands about past runs: runs, replay, report, gate and spend."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import click

from council.doors.cli.params import COMMAND_HELP, DayParam, check_output_path, complete_run, print_json, run_argument
from council.doors.cli.runner import CONFIG_OPTION, JSON_OPTION, make_command, make_runner, text_options
from council.engine.minutes import Minutes
from council.errors import CouncilError, UsageError, message_for
from council.extensions import FORMATS
from council.money import format_usd
from council.render.formats import render_as
from council.render.markdown import TextPart
from council.runs.history import parse_since, run_summary
from council.runs.service import Convener
from council.store.interface import OPEN_STATUSES, RunStatus
from council.types import Json


def runs_command() -> click.Group:
    group = click.Group(
        "runs",
        invoke_without_command=True,
        params=[JSON_OPTION, CONFIG_OPTION],
        help=COMMAND_HELP["runs"],
        callback=_runs_default,
    )
    for one in (
        _list_command(),
        _show_command(),
        _search_command(),
        _export_command(),
        _remove_command(),
        _fsck_command(),
    ):
        group.add_command(one)
    return group


@click.pass_context
def _runs_default(context: click.Context, /, **params: Any) -> int | None:
    return list_runs(**params) if context.invoked_subcommand is None else None


# List and search


def _list_command() -> click.Command:
    return make_command("list", list_runs, help="List all runs, unfinished ones first.")


def list_runs(**params: Any) -> int:
    async def job(convener: Convener) -> int:
        return _print_runs(await convener.runs(), params["json"], 'no runs yet: start one with council "…"')

    return make_runner(params).with_convener(job)


def _search_command() -> click.Command:
    words = click.Argument(["words"], nargs=-1, required=True)
    return make_command(
        "search", search_runs, words, help="Search questions, statements and answers; all words must match."
    )


def search_runs(words: tuple[str, ...], **params: Any) -> int:
    async def job(convener: Convener) -> int:
        terms = " ".join(words).split()
        return _print_runs(await convener.search(terms), params["json"], f'no runs match "{" ".join(terms)}"')

    return make_runner(params).with_convener(job)


def _print_runs(rows: list[Json], as_json: bool, none: str) -> int:
    if as_json:
        print_json([run_summary(run) | {"detached": run["detached"]} for run in rows])
    else:
        click.echo("\n".join(map(_format_run, rows)) or none)
    return 0


def _format_run(run: Json) -> str:
    from council.text_cleanup import single_line

    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(run["created"]))
    question = single_line(run["setup"]["question"]["text"], 60)
    elsewhere = "" if run["folder"] == str(Path.cwd()) else f"  (in {run['folder']})"
    apart = "  (detached)" if run["detached"] and run["status"] in OPEN_STATUSES else ""
    return f"{run['id']}  {when}  {run['status']:<10}  {run['setup']['protocol']:<13}  {question}{apart}{elsewhere}"


# Show and export


def _show_command() -> click.Command:
    flags = [
        click.Option(["--verbose"], is_flag=True, help="Print every statement in full."),
        click.Option(
            ["--show"], type=click.Choice(["transcript"]), help="transcript: also print prompts, retries and absences."
        ),
    ]
    return make_command(
        "show", show_run, run_argument(), *flags, *text_options(), help="Show the seats, status and answer of a run."
    )


def show_run(run: str | None, verbose: bool, show: str | None, **params: Any) -> int:
    async def job(convener: Convener) -> int:
        from council.render.report import build_report

        minutes = await convener.minutes(run or await convener.newest_run())
        if params["json"]:
            print_json(build_report(minutes))
            return 0
        state = await convener.run_state(minutes.run)
        make_runner(params).print_parts(
            _list_run_parts(minutes, state.status, verbose=bool(verbose or show), show=show or "")
        )
        return 0

    return make_runner(params).with_convener(job)


def _list_run_parts(minutes: Minutes, status: RunStatus, **how: Any) -> list[TextPart]:
    from council.doors.cli.runner import list_parts
    from council.engine.degraded import format_notice_lines
    from council.engine.trust import format_trust
    from council.render import terminal
    from council.render.report import build_report

    is_queued = status is RunStatus.QUEUED and not minutes.phases
    answer = [TextPart("queued: no worker has started it yet", False)] if is_queued else list_parts(minutes, **how)
    report = build_report(minutes)
    after = terminal.format_summary(report, "watch" if status in OPEN_STATUSES else "")
    if not minutes.is_empty_run and status not in OPEN_STATUSES:
        after = [*(f"! {line}" for line in format_notice_lines(minutes)), format_trust(report["trust"]), *after]
    head = f"run {minutes.run} · {status} · {minutes.plan['protocol']}"
    busy = [seat for seat in minutes.all_seats if status is RunStatus.RUNNING and seat.state in ("asked", "writing")]
    waiting = [f"waiting: {terminal.format_busy_seat(seat, time.time())}" for seat in busy]
    before = "\n".join([head, *terminal.format_plan(minutes.plan), *waiting])
    return [TextPart(before, False), *answer, TextPart("\n".join(after), False)]


def _export_command() -> click.Command:
    out = click.Option(["--output", "-o"], type=click.Path(), default=None, metavar="FILE", help="Write to this file.")
    return make_command(
        "export",
        export_run,
        run_argument(),
        out,
        help="Export everything stored about a run as one JSON object; requests are base64.",
    )


def export_run(run: str | None, output: str | None, **params: Any) -> int:
    async def job(convener: Convener) -> int:
        import json

        path = check_output_path(output)
        whole = (
            json.dumps(await convener.export(run or await convener.newest_run()), ensure_ascii=False, indent=1) + "\n"
        )
        if path is None:
            click.echo(whole, nl=False)
        else:
            handle = os.open(
                path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600
            )  # private: contains the whole conversation
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(whole)
        return 0

    return make_runner(params).with_convener(job)


# Remove


def _remove_command() -> click.Command:
    runs = click.Argument(["runs"], nargs=-1, metavar="[RUN]...", shell_complete=complete_run)
    before = click.Option(
        ["--before"], type=DayParam(), default=None, metavar="DATE", help="Remove every run before this day, such as 2026-01-31."
    )  # fmt: skip
    return make_command(
        "rm", remove_runs, runs, before, help="Remove runs from the store; reports and spending are kept."
    )


def remove_runs(runs: tuple[str, ...], before: Any, **params: Any) -> int:
    if bool(runs) == bool(before):
        raise UsageError("no runs given, nothing was removed: use `council runs rm RUN…` or --before DATE")

    async def job(convener: Convener) -> int:
        old = [run["id"] for run in await convener.runs() if before and run["created"] < before.timestamp()]
        removed, kept = [], {}
        for run in runs or old:
            try:
                removed.append(await convener.remove(run))
            except CouncilError as error:
                kept[run] = message_for(error, "cli")
        if params["json"]:
            print_json({"removed": removed, "kept": kept})
        else:
            click.echo(
                "\n".join(
                    [*(f"removed {run}" for run in removed), *(f"kept {run}: {why}" for run, why in kept.items())]
                )
                or "no runs before that day"
            )
        return 2 if runs and kept else 0  # fmt: skip

    return make_runner(params).with_convener(job)


# Check


def _fsck_command() -> click.Command:
    return make_command("fsck", check_runs, run_argument(), help="Check the stored data of one run, or of all.")


def check_runs(run: str | None, **params: Any) -> int:
    async def job(convener: Convener) -> int:
        names = [run] if run else [row["id"] for row in await convener.runs()]
        problems = {
            "store": [
                *await convener.store.check_integrity(),
                *(f"leftover file: {name}" for name in convener.store.list_temp_files()),
            ]
        }
        audited = {name: await convener.audit_with_remark(name) for name in names}
        problems |= {name: lines for name, (lines, _) in audited.items()}
        remarks = {name: remark for name, (_, remark) in audited.items() if remark}
        found = {name: lines for name, lines in problems.items() if lines}
        if params["json"]:
            print_json({"checked": names, "problems": found, "remarks": remarks})
        else:
            click.echo(
                "\n".join(f"{name}: {line}" for name, lines in found.items() for line in lines)
                or f"{len(names)} {'run' if len(names) == 1 else 'runs'}, no problems"
            )
            for name, remark in remarks.items():
                click.echo(f"{name}: {remark}", err=True)
        return 1 if found else 0

    return make_runner(params).with_convener(job)


# Replay, report and gate


def replay_command() -> click.Command:
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
        *text_options(),
    ]

    def replay(run: str | None, speed: float, **params: Any) -> int:
        return make_runner(params).replay(run, speed)

    return make_command("replay", replay, run_argument(), *flags)


def report_command() -> click.Command:
    form = click.Option(
        ["--format", "form"],
        type=click.Choice(FORMATS.names),
        default="md",
        show_default=True,
        help="Output format; html is one file with every view of the page.",
    )

    def report_(run: str | None, form: str, **params: Any) -> int:
        async def job(convener: Convener) -> int:
            from council.engine.minutes import Minutes

            entries = await convener.entries(run or await convener.newest_run())
            text = render_as(Minutes.fold(entries), "json" if params["json"] else form, entries)
            if form == "md" and not params["json"]:
                make_runner(params).print_parts([TextPart(text)])
            else:
                click.echo(text, nl=False)
            return 0

        return make_runner(params).with_convener(job)

    return make_command("report", report_, run_argument(), form, *text_options())


def gate_command() -> click.Command:
    levels = click.Choice(["fail", "warn", "critical", "significant", "never"])
    level = click.Option(
        ["--fail-on"], type=levels, default="fail", show_default=True, help="Fail on this result or worse."
    )

    def gate_(run: str | None, fail_on: str, **params: Any) -> int:
        async def job(convener: Convener) -> int:
            from council.render.report import build_report
            from council.runs.ci_gate import evaluate_gate

            value = build_report(await convener.minutes(run or await convener.newest_run()))
            code, why = evaluate_gate(value, fail_on)
            if params["json"]:
                print_json({"run": value["run"], "verdict": value["verdict"], "exit": code, "why": why})
            else:
                click.echo(why)
            return code

        return make_runner(params).with_convener(job)

    return make_command("gate", gate_, run_argument(), level)


# Spending

DEFAULT_SINCE = "30d"


def spend_command() -> click.Command:
    since = click.Option(
        ["--since"],
        default=DEFAULT_SINCE,
        show_default=True,
        metavar="WHEN",
        help="First day: a date such as 2026-11-15, today, 7d or all.",
    )

    def spend(since: str, **params: Any) -> int:
        day = parse_since(since, time.time())

        async def job(convener: Convener) -> int:
            spent = await convener.spending(day)
            if params["json"]:
                print_json(spent)
            else:
                click.echo("\n".join(format_spending(spent)))
            return 0

        return make_runner(params).with_convener(job)

    return make_command("spend", spend, since)


def format_spending(spent: Json) -> list[str]:
    if not spent["total"]["calls"]:
        since = f" since {spent['since']}" if spent["since"] else ""
        return [f"no paid calls{since}", *_format_today(spent["today"])]
    return [
        *_format_table("by day", spent["days"], "day"),
        *_format_table("by member", spent["members"], "member"),
        *_format_table("by run", spent["runs"], "run"),
        _format_total(spent["total"]),
        *([f"unpriced: {', '.join(spent['unpriced'])}"] if spent["unpriced"] else []),
        *_format_today(spent["today"]),
    ]


def _format_table(title: str, groups: list[Json], by: str) -> list[str]:
    width = max(len(group[by]) for group in groups)
    return [title, *(f"  {group[by]:<{width}}  {_format_group(group)}" for group in groups)]


def _format_group(group: Json) -> str:
    """Format a line such as `  $0.29  12 calls  41,203 in, 8,120 out  council-20261115-tabs`."""
    calls = f"{group['calls']:,} {'call' if group['calls'] == 1 else 'calls'}"
    unpriced = f" ({group['unpriced']} unpriced)" if group["unpriced"] else ""
    tokens = f"{group['tokens']['in']:,} in, {group['tokens']['out']:,} out"
    return "  ".join(
        [f"{_format_usd(group):>7}", calls + unpriced, tokens, *([group["name"]] if group.get("name") else [])]
    )


def _format_usd(group: Json) -> str:
    return "unknown" if group["unpriced"] == group["calls"] else format_usd(group["usd"])


def _format_total(total: Json) -> str:
    parts = [
        *([f"{format_usd(total['estimated'])} of it estimated"] if total["estimated"] else []),
        *([f"{format_usd(total['in_doubt'])} in doubt"] if total["in_doubt"] else []),
        *([f"{total['unpriced']:,} unpriced calls"] if total["unpriced"] else []),
    ]
    return ", ".join([f"total {_format_usd(total)}", *parts])


def _format_today(today: Json) -> list[str]:
    if today["cap"] is None:
        return []
    return [f"today {format_usd(today['usd'])} of {format_usd(today['cap'])}, {format_usd(today['left'])} left"]
