"""The command `runs`: list, show, search, replay, export, remove, prune and check runs."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import click

from council.doors.cli.params import (
    AGE,
    ChoiceParam,
    ParsedParam,
    check_output_path,
    common_options,
    complete_run,
    make_flag,
    print_json,
    print_result,
    run_argument,
)
from council.doors.cli.report_commands import replay_command
from council.doors.cli.runner import (
    HIDDEN_CONFIG_OPTION,
    JSON_OPTION,
    TEXT_FLAGS,
    Runner,
    has_terminal,
    list_parts,
    make_command,
    make_group,
    with_convener,
)
from council.doors.cli.tables import format_bytes, format_folder, format_table
from council.doors.cli.terminal_input import ask_yes_no
from council.doors.cli.views import BOLD, PLAIN, write_status
from council.engine.degraded import format_notice_lines
from council.engine.layout import format_count
from council.engine.minutes import Minutes
from council.errors import StoreError, UsageError, message_for
from council.money import format_usd
from council.render import terminal
from council.render.markdown import TextPart
from council.render.report import build_report, read_report
from council.render.text_layout import cut, is_drawable, terminal_size, text_width
from council.runs.excerpts import compile_words
from council.runs.history import UNFINISHED, Removal, filter_evaluations
from council.runs.outcome import EXIT_INTERRUPTED, EXIT_USAGE
from council.runs.service import Convener
from council.runs.spending import DAY_S
from council.settings.private_files import open_private_file
from council.store.interface import OPEN_STATUSES, RunRow, RunStatus, list_fields
from council.text_cleanup import neutralize_commands, single_line
from council.types import Json

LIST_LIMIT = 20  # runs listed without --limit
MIN_QUESTION_CHARS, MAX_QUESTION_CHARS = 16, 60
WIDE_TERMINAL, MAX_WIDTH = 100, 1000  # columns
RECENT_DAYS = 180
TABLE_FIELDS = [field for field in list_fields(RunRow) if field.column.heading]


def runs_command() -> click.Group:
    commands = (
        _list_command(),
        _show_command(),
        _search_command(),
        replay_command(),
        _export_command(),
        _remove_command(),
        _prune_command(),
        _fsck_command(),
    )
    flags = [*_list_options(), JSON_OPTION, HIDDEN_CONFIG_OPTION]
    return make_group("runs", list_runs, *flags, commands=commands, on_command=_pass_flags_on)


def _pass_flags_on(context: click.Context, params: Json) -> None:
    """Let flags before a subcommand belong to the subcommand."""
    given = {name: value for name, value in params.items() if value}
    context.default_map = {str(context.invoked_subcommand): given}


# List and search


def _limit_option() -> click.Option:
    about = f"List at most N runs; 0 lists all. Default: {LIST_LIMIT}, with --json all."
    return click.Option(["--limit"], type=click.IntRange(min=0), metavar="N", help=about)


def _list_options() -> list[click.Option]:
    statuses = ChoiceParam([UNFINISHED, *(status.value for status in RunStatus)], case_sensitive=False)
    project = "List the runs of this project only: the name of a repository or folder."
    return [
        _limit_option(),
        make_flag("--here", help="List the runs of this folder only."),
        click.Option(["--status"], type=statuses, help="List the runs with this status only."),
        click.Option(["--owner"], metavar="NAME", help="List the runs of this owner only, such as ann@laptop."),
        click.Option(["--project"], metavar="NAME", help=project),
        _all_option(),
    ]


def _all_option() -> click.Option:
    return make_flag("--all", help="List the runs of evaluations too.")


def _list_command() -> click.Command:
    about = "List runs, unfinished ones first, then the newest."
    return make_command("list", list_runs, *_list_options(), help=about, uses_config=False)


@with_convener
async def list_runs(
    convener: Convener, limit: int | None, here: bool, status: str | None, all: bool, json: bool, **params: Any
) -> int:
    named = {name: params[name] for name in ("owner", "project")}
    most = _choose_limit(limit, json)
    wanted: dict[str, Any] = {"here": here, "status": status, **named}
    shown = wanted | filter_evaluations(all)
    rows = await convener.runs(**shown, limit=most)
    total = await convener.count_runs(**shown) if most and len(rows) == most else len(rows)
    hidden = 0 if all or json else await convener.count_runs(**wanted, only_evaluations=1)
    filters = [*(["of this folder"] if here else []), *([f"with status {status}"] if status else [])]
    filters += [f'with {name} "{value}"' for name, value in named.items() if value]
    no_runs = "no other runs" if hidden else 'no runs yet: start one with council "…"'
    none = f"no runs {' '.join(filters)}" if filters else no_runs
    _print_runs(rows, json, none, total=total, here=here)
    if hidden:
        _print_hidden(f"{format_count(hidden, 'run')} of evaluations not shown: use --all")
    return 0


def _print_hidden(line: str) -> None:
    write_status(line, is_dim=True)


def _choose_limit(limit: int | None, as_json: bool) -> int | None:
    """Return how many runs are listed at most; None: all."""
    if limit is None:
        return None if as_json else LIST_LIMIT
    return limit or None


def _search_command() -> click.Command:
    words = click.Argument(["words"], nargs=-1, required=True)
    about = "Search questions, statements and answers; all words must match."
    return make_command("search", search_runs, words, _limit_option(), _all_option(), help=about, uses_config=False)


@with_convener
async def search_runs(
    convener: Convener, words: tuple[str, ...], limit: int | None, all: bool, json: bool, **params: Any
) -> int:
    terms = " ".join(words).split()
    most = _choose_limit(limit, json)
    rows = await convener.search(terms, most + 1 if most else None, filter_evaluations(all))
    shown = rows[:most]
    excerpts = [await convener.excerpt(row["run"], terms) for row in shown]
    found = [row | {"excerpt": excerpt} for row, excerpt in zip(shown, excerpts, strict=True)]
    none = [f'no runs match "{" ".join(terms)}"']
    print_result(json, found, _format_found(shown, excerpts, terms) if shown else none)
    if len(rows) > len(shown) and not json:
        click.echo("more runs match: use a higher --limit, or --limit 0 for all", err=True)
    hidden = 0 if all or json else await convener.count_runs(only_evaluations=1)
    if hidden:
        _print_hidden(f"{format_count(hidden, 'run')} of evaluations not searched: use --all")
    return 0


def _format_found(rows: Sequence[RunRow], excerpts: Sequence[str], words: Sequence[str]) -> list[str]:
    """Return a table of runs with an excerpt below each; a terminal shows the words in bold."""
    width = _stdout_width()
    head, *lines = format_runs(rows, width=width)
    found = [head]
    for line, excerpt in zip(lines, excerpts, strict=True):
        found.append(line)
        shown = f"  {excerpt}" if width is None else cut(f"  {excerpt}", width)
        found += [_mark_words(shown, words)] if excerpt else []
    return found


def _mark_words(text: str, words: Sequence[str]) -> str:
    if not is_drawable(sys.stdout) or "NO_COLOR" in os.environ:
        return text
    return compile_words(words).sub(rf"{BOLD}\g<0>{PLAIN}", text)


def _print_runs(rows: Sequence[RunRow], as_json: bool, none: str, *, total: int, here: bool = False) -> int:
    if as_json:
        print_json(rows)
        return 0
    click.echo("\n".join(format_runs(rows, here=here, width=_stdout_width())) if rows else none)
    if more := total - len(rows):
        click.echo(f"{more:,} more: use --limit {total}, or --limit 0 for all", err=True)
    return 0


def _stdout_width() -> int | None:
    return terminal_size(sys.stdout)[0] if sys.stdout.isatty() else None


def format_runs(rows: Sequence[RunRow], *, here: bool = False, width: int | None = None) -> list[str]:
    """Return a table of runs. At a terminal (`width`) its lines fit, at a narrow one without some of the columns."""
    shown = [field for field in TABLE_FIELDS if not (here and field.name == "folder")]
    columns = {field.column.heading: [_format_cell(run, field.name, width) for run in rows] for field in shown}
    questions = columns.pop("QUESTION")  # the last column gets the rest of the width
    for field in sorted(shown, key=lambda field: field.column.drop_order):
        if width is not None and field.column.drop_order and width - _table_width(columns) < MIN_QUESTION_CHARS:
            del columns[field.column.heading]
    room = MAX_QUESTION_CHARS if width is None else max(MIN_QUESTION_CHARS, width - _table_width(columns))
    columns["QUESTION"] = [cut(question, room) for question in questions]
    return format_table(list(columns), zip(*columns.values(), strict=True))


def _format_cell(run: RunRow, name: str, width: int | None) -> str:
    match name:
        case "created":
            return _format_time(run["created"], width)
        case "status":
            return _format_status(run)
        case "trust":
            return ", ".join(filter(None, (run.get("trust"), run.get("decision_outcome"))))
        case "cost":
            return _format_cost(run)
        case "folder":
            return format_folder(run["folder"], width)
        case "question":
            return single_line(run["title"] or run["question"], MAX_WIDTH)
    value = run.get(name)
    return "" if value is None else str(value)


def _table_width(columns: Mapping[str, Sequence[str]]) -> int:
    """Return the width of the columns, each with the space after it."""
    return sum(max(map(text_width, [name, *cells])) + 2 for name, cells in columns.items())


def _format_time(at: float, width: int | None) -> str:
    """Return date and time; at a narrow terminal without the year, or without the time of day if it is long ago."""
    if width is None or width >= WIDE_TERMINAL:
        return time.strftime("%Y-%m-%d %H:%M", time.localtime(at))
    is_recent = time.time() - at < RECENT_DAYS * DAY_S
    return time.strftime("%m-%d %H:%M" if is_recent else "%Y-%m-%d", time.localtime(at))


def _format_status(run: RunRow) -> str:
    is_detached = run["detached"] and run["status"] in OPEN_STATUSES
    return f"{run['status']}{', detached' if is_detached else ''}"


def _format_cost(run: RunRow) -> str:
    if run["cost"] is None:
        return ""
    return f"{'about ' if run['estimated'] else ''}{format_usd(run['cost'])}"


# Show and export


def _show_command() -> click.Command:
    shown = "transcript: also print prompts, retries and absences."
    flags = [
        make_flag("-v", "--verbose", help="Print every statement in full."),
        click.Option(["--show"], type=click.Choice(["transcript"]), help=shown),
        *common_options(*TEXT_FLAGS),
    ]
    about = "Show the seats, status and answer of a run."
    return make_command("show", show_run, run_argument(), *flags, help=about, uses_config=False)


@with_convener
async def show_run(convener: Convener, run: str | None, verbose: bool, show: str | None, **params: Any) -> int:
    minutes = await convener.minutes(run or await convener.newest_run())
    if params["json"]:
        print_json(read_report(minutes))
        return 0
    state = await convener.run_state(minutes.run)
    parts = _list_run_parts(minutes, state.status, verbose=bool(verbose or show), show=show or "")
    Runner.from_flags(params).print_parts(parts)
    return 0


def _list_run_parts(minutes: Minutes, status: RunStatus, **how: Any) -> list[TextPart]:
    is_queued = status is RunStatus.QUEUED and not minutes.phases
    answer = [TextPart("queued: no worker has started it yet", False)] if is_queued else list_parts(minutes, **how)
    report = build_report(minutes)
    after = terminal.format_summary(report, "watch" if status in OPEN_STATUSES else "")
    if not minutes.is_empty_run and status not in OPEN_STATUSES:
        after = [*terminal.format_warnings(format_notice_lines(minutes)), *after]
    head = f"run {minutes.run} · {status} · {minutes.plan['protocol']}"
    busy = [seat for seat in minutes.all_seats if status is RunStatus.RUNNING and seat.state in ("asked", "writing")]
    waiting = [f"waiting: {terminal.format_busy_seat(seat, time.time())}" for seat in busy]
    before = "\n".join([head, *terminal.format_plan(minutes.plan), *waiting])
    return [TextPart(before, False), *answer, TextPart("\n".join(after), False)]


def _export_command() -> click.Command:
    out = click.Option(["--output", "-o"], type=click.Path(), metavar="FILE", help="Write to this file.")
    about = "Export everything stored about a run as one JSON object; requests are base64."
    return make_command("export", export_run, run_argument(), out, help=about, uses_config=False)


@with_convener
async def export_run(convener: Convener, run: str | None, output: str | None, **params: Any) -> int:
    path = check_output_path(output)
    chosen = await convener.resolve_run(run) if run else await convener.newest_run()
    with tempfile.TemporaryFile("w+", encoding="utf-8") as whole:  # a large run is never in memory as a whole
        await convener.export(chosen, lambda piece: whole.write(neutralize_commands(piece, "json")))
        whole.seek(0)
        if path is None:
            for piece in iter(partial(whole.read, 1 << 20), ""):
                click.echo(piece, nl=False)
        else:
            with open_private_file(path, encoding="utf-8") as file:  # it contains the whole conversation
                shutil.copyfileobj(whole, file)
    return 0


# Remove


def _removal_options() -> list[click.Option]:
    return [
        make_flag("--dry-run", help="List the runs and remove nothing."),
        make_flag("--yes", help="Do not ask for confirmation."),
    ]


def _remove_command() -> click.Command:
    day = "Remove every run before this day, such as 2026-01-31."
    params = [
        click.Argument(["runs"], nargs=-1, metavar="[RUN]...", shell_complete=complete_run),
        click.Option(["--before"], type=DAY, metavar="DATE", help=day),
        make_flag("--here", help="With --before: only the runs of this folder."),
        *_removal_options(),
    ]
    about = "Remove runs, and their reports in the data folder; other report files and spending are kept."
    return make_command("rm", remove_runs, *params, help=about, uses_config=False)


@with_convener
async def remove_runs(
    convener: Convener,
    runs: tuple[str, ...],
    before: datetime | None,
    here: bool,
    dry_run: bool,
    yes: bool,
    json: bool,
    **params: Any,
) -> int:
    if bool(runs) == bool(before) or (runs and here):
        raise UsageError(
            "nothing was removed: use either `council runs rm RUN…`, or --before DATE, with or without --here"
        )
    if before:
        found = [run for run in await convener.runs(here=here) if run["created"] < before.timestamp()]
        chosen = [run for run in found if run["status"] not in OPEN_STATUSES]
        return await _remove_chosen(convener, chosen, dry_run, yes, json, "no runs before that day")
    named = [await convener.resolve_run(run) for run in runs]
    rows = await convener.find_runs(named)
    if dry_run:
        return _print_dry_run(rows, json, "no runs to remove")
    if rows and has_terminal() and not yes and not await _confirm_removal(rows):
        return EXIT_INTERRUPTED
    done = await convener.remove_all(named)
    _print_removal(done, json, [f"removed {run}" for run in done.removed])
    return EXIT_USAGE if done.kept else 0


def _parse_day(text: str) -> datetime:
    """Return the start of a day such as 2026-01-31 in local time."""
    return datetime.strptime(text, "%Y-%m-%d")


DAY = ParsedParam("date", _parse_day, "a day: use a date such as {flag} 2026-01-31")


def _prune_command() -> click.Command:
    age = "Remove runs older than this, such as 90d or 12w. Default: [store] keep_days."
    number = "Keep the newest N runs, however old they are."
    flags = [
        click.Option(["--older-than"], type=AGE, metavar="AGE", help=age),
        click.Option(["--keep"], type=click.IntRange(min=0), metavar="N", help=number),
        make_flag("--here", help="Prune the runs of this folder only."),
        *_removal_options(),
    ]
    about = "Remove old runs that are complete or failed; unfinished runs are kept."
    return make_command("prune", prune_runs, *flags, help=about)


@with_convener
async def prune_runs(
    convener: Convener,
    older_than: timedelta | None,
    keep: int | None,
    here: bool,
    dry_run: bool,
    yes: bool,
    **params: Any,
) -> int:
    if older_than is not None or keep is not None:
        before = None if older_than is None else time.time() - older_than.total_seconds()
        chosen = await convener.select_old_runs(before, keep or 0, here=here)
    elif "keep_days" in convener.settings.store:
        chosen = await convener.select_expired_runs(convener.settings, here=here)
    else:
        raise UsageError(
            "nothing was removed: say which runs, for example --older-than 90d or --keep 50, or set [store] keep_days"
        )
    return await _remove_chosen(convener, chosen, dry_run, yes, params["json"], "no runs to remove")


async def _remove_chosen(
    convener: Convener, rows: Sequence[RunRow], dry_run: bool, yes: bool, as_json: bool, none: str
) -> int:
    """Remove runs that a rule selected. Ask at a terminal; elsewhere --yes is needed."""
    if dry_run:
        return _print_dry_run(rows, as_json, none)
    if not rows:
        _print_removal(Removal(), as_json, [none])
        return 0
    if not yes and not has_terminal():
        raise UsageError(
            f"{_count_runs(rows)} would be removed, nothing was removed: pass --yes, or --dry-run to list them"
        )
    if not yes and not await _confirm_removal(rows):
        return EXIT_INTERRUPTED
    done = await convener.remove_all([run["run"] for run in rows])
    freed = f", {format_bytes(done.freed)} freed" if done.freed else ""
    removed = [run for run in rows if run["run"] in done.removed]
    _print_removal(done, as_json, [f"removed {_count_runs(removed)}{freed}"] if removed else [])
    return 0


def _print_dry_run(rows: Sequence[RunRow], as_json: bool, none: str) -> int:
    _print_runs(rows, as_json, none, total=len(rows))
    if rows and not as_json:
        click.echo(f"{_count_runs(rows)} would be removed", err=True)
    return 0


async def _confirm_removal(rows: Sequence[RunRow]) -> bool:
    if len(rows) <= LIST_LIMIT:
        click.echo("\n".join(format_runs(rows, width=terminal_size(sys.stderr)[0])), err=True)
    if await ask_yes_no(f"Remove {_count_runs(rows)}?"):
        return True
    click.echo("council: nothing was removed", err=True)
    return False


def _count_runs(rows: Sequence[RunRow]) -> str:
    """Return for example `12 runs in 3 folders`; the folder itself if there is only one."""
    folders = {run["folder"] for run in rows}
    where = format_folder(folders.pop()) if len(folders) == 1 else f"{len(folders)} folders"
    return f"{format_count(len(rows), 'run')} in {'this folder' if where == '.' else where}"


def _print_removal(done: Removal, as_json: bool, lines: list[str]) -> None:
    kept = {run: message_for(error, "cli") for run, error in done.kept.items()}
    shown = [*lines, *(f"kept {run}: {why}" for run, why in kept.items())]
    print_result(as_json, {"removed": done.removed, "kept": kept, "freed": done.freed}, shown)


# Check


def _fsck_command() -> click.Command:
    repair = make_flag("--repair", help="First recover a damaged database, and make reports again from the ledger.")
    about = "Check the stored data of one run, or of all."
    return make_command("fsck", check_runs, run_argument(), repair, help=about, uses_config=False)


@with_convener
async def check_runs(convener: Convener, run: str | None, repair: bool, json: bool, **params: Any) -> int:
    from council.runs.repair import repair_data  # not needed by the other commands

    repaired = await repair_data(convener, run) if repair else []
    names = [run] if run else [row["run"] for row in await convener.runs()]
    leftover = [f"leftover file: {name}" for name in convener.store.list_temp_files()]
    problems = {"store": [*await convener.store.check_integrity(), *leftover]}
    audited = {name: await _audit(convener, name) for name in names}
    problems |= {name: lines for name, (lines, _) in audited.items()}
    remarks = {name: remark for name, (_, remark) in audited.items() if remark}
    found = {name: lines for name, lines in problems.items() if lines}
    if json:
        print_json({"checked": names, "problems": found, "remarks": remarks, "repaired": repaired})
        return 1 if found else 0
    for line in repaired:
        click.echo(f"repaired: {line}", err=True)
    lines = [f"{name}: {line}" for name, lines in found.items() for line in lines]
    click.echo("\n".join(lines) or f"{format_count(len(names), 'run')}, no problems")
    for name, remark in remarks.items():
        click.echo(f"{name}: {remark}", err=True)
    return 1 if found else 0


async def _audit(convener: Convener, run: str) -> tuple[list[str], str]:
    try:
        return await convener.audit_with_remark(run)
    except StoreError as error:  # a run that cannot be read does not hide the others
        return [message_for(error, "cli")], ""
