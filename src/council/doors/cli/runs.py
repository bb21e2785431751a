"""`council runs`: list, show, search, export, remove and check runs."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import click

from council.doors.cli.commands import CONFIG, JSON, command, drive_from
from council.doors.cli.given import print_json, writable
from council.doors.cli.words import BUILT
from council.doors.listing import row, status_of
from council.errors import CouncilError, UsageError
from council.types import Json

RUN = click.Argument(["run"], required=False)
UNDER_WAY = ("queued", "running")


def runs_command() -> click.Group:
    group = click.Group(
        "runs", invoke_without_command=True, params=[JSON, CONFIG], help=BUILT["runs"], callback=_runs_default
    )
    for one in (_list(), _show(), _search(), _export(), _rm(), _fsck()):
        group.add_command(one)
    return group


@click.pass_context
def _runs_default(context: click.Context, /, **params: Any) -> int | None:
    return list_runs(**params) if context.invoked_subcommand is None else None


# List and search


def _list() -> click.Command:
    return command("list", list_runs, help="List all runs, unfinished ones first.")


def list_runs(**params: Any) -> int:
    async def job(convener: Any) -> int:
        return _listed(await convener.runs(), params["json"], 'no runs yet: start one with council "…"')

    return int(drive_from(params).with_convener(job))


def _search() -> click.Command:
    words = click.Argument(["words"], nargs=-1, required=True)
    return command("search", search_runs, words, help="Search questions, statements and answers; all words must match.")


def search_runs(words: tuple[str, ...], **params: Any) -> int:
    async def job(convener: Any) -> int:
        terms = " ".join(words).split()
        return _listed(await convener.search(terms), params["json"], f'no runs match "{" ".join(terms)}"')

    return int(drive_from(params).with_convener(job))


def _listed(rows: list[Json], as_json: bool, none: str) -> int:
    if as_json:
        print_json([row(run) | {"detached": run["detached"]} for run in rows])
    else:
        click.echo("\n".join(map(_line, rows)) or none)
    return 0


def _line(run: Json) -> str:
    from council.render.clean import one_line

    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(run["created"]))
    question = one_line(run["setup"]["question"]["text"], 60)
    elsewhere = "" if run["folder"] == str(Path.cwd()) else f"  (in {run['folder']})"
    apart = "  (detached)" if run["detached"] and status_of(run) in UNDER_WAY else ""
    return f"{run['id']}  {when}  {status_of(run):<10}  {run['setup']['protocol']:<13}  {question}{apart}{elsewhere}"


# Show and export


def _show() -> click.Command:
    flags = [
        click.Option(["--verbose"], is_flag=True, help="Print every statement in full."),
        click.Option(
            ["--show"], type=click.Choice(["transcript"]), help="transcript: also print prompts, retries and absences."
        ),
    ]
    return command("show", show_run, RUN, *flags, help="Show the seats, status and answer of a run.")


def show_run(run: str | None, verbose: bool, show: str | None, **params: Any) -> int:
    async def job(convener: Any) -> int:
        from council.render.report import report

        minutes = await convener.minutes(run or await convener.newest())
        if params["json"]:
            print_json(report(minutes))
            return 0
        rows = {row["id"]: row for row in await convener.runs()}
        click.echo(
            "\n".join(_shown(minutes, status_of(rows[minutes.run]), verbose=bool(verbose or show), show=show or ""))
        )
        return 0

    return int(drive_from(params).with_convener(job))


def _shown(minutes: Any, status: str, **how: Any) -> list[str]:
    from council.doors.cli.drive import shown
    from council.render import terminal
    from council.render.report import report

    text = (
        "queued: no worker has started it yet" if status == "queued" and not minutes.phases else shown(minutes, **how)
    )
    after = terminal.after(report(minutes))
    if status in UNDER_WAY:
        after[-1] = f"watch: council watch {minutes.run}"
    head = f"run {minutes.run} · {status} · {minutes.plan['protocol']}"
    return [head, *terminal.before(minutes.plan), "", text, "", *after]


def _export() -> click.Command:
    out = click.Option(["--output", "-o"], default=None, metavar="FILE", help="Write to this file.")
    return command(
        "export",
        export_run,
        RUN,
        out,
        help="Export everything stored about a run as one JSON object; requests are base64.",
    )


def export_run(run: str | None, output: str | None, **params: Any) -> int:
    async def job(convener: Any) -> int:
        import json

        path = writable(output)
        whole = json.dumps(await convener.exported(run or await convener.newest()), ensure_ascii=False, indent=1) + "\n"
        if path is None:
            click.echo(whole, nl=False)
        else:
            handle = os.open(
                path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600
            )  # private: contains the whole conversation
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(whole)
        return 0

    return int(drive_from(params).with_convener(job))


# Remove


def _rm() -> click.Command:
    runs = click.Argument(["runs"], nargs=-1, metavar="[RUN]...")
    before = click.Option(
        ["--before"], type=click.DateTime(["%Y-%m-%d"]), default=None, metavar="DATE", help="Remove every run before this day, such as 2026-01-31."
    )  # fmt: skip
    return command("rm", remove_runs, runs, before, help="Remove runs from the store; reports and spending are kept.")


def remove_runs(runs: tuple[str, ...], before: Any, **params: Any) -> int:
    if bool(runs) == bool(before):
        raise UsageError("no runs given, nothing was removed: use `council runs rm RUN…` or --before DATE")

    async def job(convener: Any) -> int:
        old = [run["id"] for run in await convener.runs() if before and run["created"] < before.timestamp()]
        removed, kept = [], {}
        for run in runs or old:
            try:
                removed.append(await convener.remove(run))
            except CouncilError as error:
                kept[run] = str(error)
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

    return int(drive_from(params).with_convener(job))


# Check


def _fsck() -> click.Command:
    return command("fsck", check_runs, RUN, help="Check the stored data of one run, or of all.")


def check_runs(run: str | None, **params: Any) -> int:
    async def job(convener: Any) -> int:
        names = [run] if run else [row["id"] for row in await convener.runs()]
        problems = {
            "store": [*await convener.store.check(), *(f"leftover file: {name}" for name in convener.store.litter())]
        }
        problems |= {name: await convener.audit(name) for name in names}
        found = {name: lines for name, lines in problems.items() if lines}
        if params["json"]:
            print_json({"checked": names, "problems": found})
        else:
            click.echo(
                "\n".join(f"{name}: {line}" for name, lines in found.items() for line in lines)
                or f"{len(names)} {'run' if len(names) == 1 else 'runs'}, no problems"
            )
        return 1 if found else 0

    return int(drive_from(params).with_convener(job))
