"""`council batch`: run the questions of a file, with a progress bar, and write one line per row to the output file."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Collection
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NoReturn, TextIO

import click

from council.doors.cli.ask import choose_protocol, read_protocol_options
from council.doors.cli.ci_log import is_ci
from council.doors.cli.help import FLAG_GROUPS
from council.doors.cli.params import (
    INTEGER,
    NUMBER,
    common_options,
    complete_file,
    make_option,
    parse_members,
    parse_seats,
    protocol_flags,
    read_chunks,
)
from council.doors.cli.runner import Runner, make_plain_command, say_not_started
from council.doors.cli.terminal_input import confirm_start, cost_reason
from council.doors.cli.views import NoView, PipeSafeView, TerminalKeyboard, handle_signals, tick_view, write_status
from council.engine.layout import format_count
from council.errors import UsageError
from council.money import format_usd
from council.render.screen import Symbols
from council.render.terminal import format_calls
from council.render.text_layout import cut, is_drawable, needs_ascii, terminal_size, to_ascii
from council.runs.batch import DEFAULT_CONCURRENCY, BatchSettings, QuestionBatch
from council.runs.batch_output import BatchOutput, EndedRow, Estimate, Progress, Summary
from council.runs.batch_rows import Problems, RowErrors, RowTable, detect_csv, read_rows
from council.runs.outcome import EXIT_INTERRUPTED, StopEvent
from council.runs.service import Convener
from council.runs.waves import Waves
from council.text_cleanup import clean, neutralize_commands
from council.types import Json

MAX_CONCURRENCY = 1000
HEARTBEAT_S = 30.0  # seconds between the lines of progress off a terminal
MAX_LISTED_FAILURES = 20
MAX_LISTED_GROUPS = 12
BAR_WIDTH = 24
# Flags of a question that set an option of every row.
GROUPS = ("Protocol and members", "Material", "Cost and time")
OTHER_USE = ("attach", "continued", "no_stdin", "max_cost", "yes")  # of single questions, or of the whole batch
ROW_FLAGS = (
    *(name for group in GROUPS for name in FLAG_GROUPS[group] if name not in OTHER_USE),
    "verbose",
    "report_dir",
)
SLOW_CONCURRENCY = 1_000  # rows that ask together; each waits for hours
COMMAND_FLAGS = ("config", "trust", "yes", "no_input", "dry_run", "json", "quiet", "no_color", "ascii")


def batch_command() -> click.Command:
    written = "Append one JSON line for each ended row to this file; rows in it are not asked again."
    limit = "Cost limit of the whole batch, with its earlier rows. Rows that do not fit are left for a later run."
    part = "Run only N rows, the same ones each time, and estimate the cost of all."
    slow = "Send requests through the batch interfaces of OpenAI, Anthropic and Google: half the price, within days."
    own = [
        click.Argument(["file"], required=False, metavar="FILE", shell_complete=complete_file),
        click.Option(["--output", "-o"], metavar="OUT", help=written, shell_complete=complete_file),
        click.Option(["--max-cost"], type=NUMBER, metavar="DOLLARS", help=limit),
        click.Option(["--sample"], type=INTEGER, metavar="N", help=part),
        click.Option(["--slow"], is_flag=True, help=slow),
        concurrency_option("Rows"),
    ]
    shared = common_options(*ROW_FLAGS, *COMMAND_FLAGS)
    return make_plain_command("batch", run_batch, *own, *shared, *map(make_option, protocol_flags()))


def concurrency_option(what: str) -> click.Option:
    about = f"{what} at once (default {DEFAULT_CONCURRENCY})."
    return click.Option(["--concurrency"], type=INTEGER, default=DEFAULT_CONCURRENCY, metavar="N", help=about)


def check_limits(max_cost: float | None, **numbers: int | None) -> None:
    """Raise UsageError for a flag of a batch or an evaluation that is out of range."""
    for name, value in numbers.items():
        most = MAX_CONCURRENCY if name == "concurrency" else None
        if value is not None and (value < 1 or (most is not None and value > most)):
            bounds = f"from 1 to {most}" if most else "from 1 on"
            raise UsageError(f'--{name} "{value}" is out of range, nothing was sent: use a whole number {bounds}')
    if max_cost is not None and not 0 <= max_cost < float("inf"):
        raise UsageError(f'--max-cost "{max_cost:g}" is out of range, nothing was sent: use 0 or more dollars')


def run_batch(
    file: str | None,
    output: str | None,
    max_cost: float | None,
    sample: int | None,
    slow: bool,
    concurrency: int,
    **params: Any,
) -> int:
    if file is None:
        raise UsageError("no file was given, nothing was sent: use council batch FILE.jsonl -o OUT.jsonl")
    if output is None:
        raise UsageError(f"no output file was given, nothing was sent: use council batch {file} -o OUT.jsonl")
    if output == "-":
        raise UsageError(
            'the output "-" is no file, nothing was sent: name one with -o OUT.jsonl, from which a batch can continue'
        )
    check_limits(max_cost, sample=sample, concurrency=concurrency)
    if file != "-" and Path(file).exists() and Path(output).exists() and Path(file).samefile(output):
        raise UsageError(f'"{output}" is both the input and the output, nothing was sent: choose another file with -o')
    runner = Runner.from_flags({name: params[name] for name in COMMAND_FLAGS})
    if slow and concurrency == DEFAULT_CONCURRENCY:
        concurrency = SLOW_CONCURRENCY
    settings = BatchSettings(
        read_defaults(params),
        {"trust": True} if params["trust"] else {},
        max_cost,
        concurrency,
        runner.config,
        waves=Waves(Path(output), lambda line: runner.print_status([line])) if slow else None,
    )
    with open_input(file) as stream:
        batch = BatchRunner(runner, settings, file, stream, Path(output), sample, params["dry_run"])
        return runner.with_convener(batch.run)


def read_defaults(params: Json) -> Json:
    """Return the options of all rows, by their names in Python."""
    named = {
        "protocol": choose_protocol(params["protocol"], params["mode"]),
        "models": parse_members(params["models"], params["members"]),
        "seats": parse_seats(params["seat"]) or None,
        "decisions": list(params["decision"]) or None,
        "exclude_family": list(params["exclude_family"]) or None,
    }
    plain = [name for name in ROW_FLAGS if name not in (*named, "mode", "members", "seat", "decision")]
    named |= {name: params[name] for name in plain if params[name] is not False} | read_protocol_options(params)
    return {name: value for name, value in named.items() if value is not None}


def open_input(file: str) -> AbstractContextManager[IO[bytes]]:
    """Open the rows. Standard input is copied to a temporary file, because it is read only once."""
    if file != "-":
        try:
            if not Path(file).is_file():
                reason = "is a folder" if Path(file).is_dir() else "does not exist"
                raise UsageError(f'"{file}" {reason}, nothing was sent: name a file of JSON lines or CSV')
            return Path(file).open("rb")
        except OSError as error:
            raise UsageError(
                f'"{file}" cannot be read ({error.strerror}), nothing was sent: name another file'
            ) from None
    if sys.stdin is None or sys.stdin.isatty():
        raise UsageError(
            '"-" reads standard input, but nothing is piped in: use for example council batch - -o OUT.jsonl < ROWS'
        )
    copy = tempfile.TemporaryFile()  # noqa: SIM115
    copy.writelines(read_chunks(sys.stdin.fileno(), "council: waiting for standard input; end it with Ctrl-D"))
    copy.seek(0)
    return copy


def explain_at_once(members: Collection[str]) -> str:
    names = ", ".join(sorted(members))
    if len(members) == 1:
        return f"! --slow has no effect on {names}: its provider has no batch interface, so it answers at once at its own price"
    return f"! --slow has no effect on {names}: their providers have no batch interface, so they answer at once at their own prices"


@dataclass
class BatchRunner:
    """One `council batch` command."""

    runner: Runner
    settings: BatchSettings
    name: str  # of the file with the rows
    stream: IO[bytes]
    output: Path
    sample: int | None
    dry_run: bool

    async def run(self, convener: Convener) -> int:
        table = self._read_rows()
        out = BatchOutput(self.output, lambda line: neutralize_commands(line, "json") if is_ci() else line)
        batch = QuestionBatch(table, out, convener, self.settings)
        try:
            estimate = await self._check(batch)
            if self.settings.waves and batch.at_once:
                self.runner.print_status([explain_at_once(batch.at_once)])
            if self.dry_run:
                return self._show_plan(estimate)
            if not await self._confirm(estimate, convener):
                return say_not_started()
            summary = await self._run_rows(batch)
        finally:
            await batch.close()
        self._show_summary(summary)
        return summary.exit_code

    def _read_rows(self) -> RowTable:
        self.stream.seek(0)
        is_csv = detect_csv("" if self.name == "-" else self.name, self.stream.read(4096))
        self.stream.seek(0)
        table, problems = RowTable(), Problems()
        try:
            table.fill(read_rows(self.stream, problems, is_csv=is_csv), problems)
            problems.check()
            if not table.count():
                what = "standard input" if self.name == "-" else f'"{self.name}"'
                raise UsageError(f'{what} has no rows, nothing was sent: add rows such as {{"id": 1, "question": "…"}}')
            if self.sample is not None:
                table.keep_sample(self.sample)
        except RowErrors as error:
            table.close()
            raise self._explain(error) from None
        return table

    def _explain(self, error: RowErrors) -> UsageError:
        """Return the error for bad rows. Several problems are listed first, one line for each."""
        if len(error.problems) == 1 or self.runner.format == "json":
            return UsageError(f"{self.name}: {error.template}")
        write_status("\n".join(clean(f"{self.name}: {problem}") for problem in error.problems))
        return UsageError(
            f'{error.count:,} rows of "{self.name}" cannot be used, nothing was sent: correct them and run the same command again'
        )

    async def _check(self, batch: QuestionBatch) -> Estimate:
        bar = self._make_bar(batch.progress)
        try:
            return await batch.check(bar.show_checked)
        except RowErrors as error:
            bar.close()  # before the problems are listed
            raise self._explain(error) from None
        finally:
            bar.close()

    def _show_plan(self, estimate: Estimate) -> int:
        return self.runner.print_lines(estimate.as_json(), format_estimate(estimate))

    async def _confirm(self, estimate: Estimate, convener: Convener) -> bool:
        """Print what the batch will do, and ask for confirmation if it is expensive."""
        has_rows = bool(estimate.progress.left)
        self.runner.print_status(format_estimate(estimate)[: None if has_rows else 1])
        asks = self.runner.can_confirm and has_rows
        why = cost_reason({"cost": estimate.cost, "unpriced": estimate.unpriced}, convener.settings) if asks else ""
        return not why or await confirm_start(why)

    async def _run_rows(self, batch: QuestionBatch) -> Summary:
        if batch.workers is not None:
            places = {0: "no worker is alive, so this process executes the rows", 1: "a worker executes the rows"}
            self.runner.print_status([places.get(batch.workers, f"{batch.workers} workers execute the rows")])
        stop = StopEvent()
        bar = self._make_bar(batch.progress)
        keyboard = TerminalKeyboard(sys.stderr.fileno() if bar.is_drawn else None)
        view = PipeSafeView(bar, lambda: None, keyboard)
        ticking = asyncio.ensure_future(tick_view(view))
        with handle_signals(stop, view, self._exit_at_once):
            try:
                return await batch.run(stop, bar.on_row)
            finally:
                ticking.cancel()
                await asyncio.gather(ticking, return_exceptions=True)
                view.close()

    def _exit_at_once(self, view: PipeSafeView) -> NoReturn:
        """End the process after a second Ctrl-C. The ledger has every finished step, as after a crash."""
        with suppress(OSError):
            view.close()
            self.runner.print_status(["stopped; run the same command again to continue"])
        os._exit(EXIT_INTERRUPTED)

    def _make_bar(self, progress: Progress) -> ProgressBar:
        is_ascii = self.runner.ascii or needs_ascii(sys.stderr)
        return ProgressBar(progress, None if self.runner.quiet else sys.stderr, Symbols(is_ascii))

    def _show_summary(self, summary: Summary) -> None:
        self.runner.print_lines(summary.as_json(), map(clean, format_summary(summary)))


# Text


def format_estimate(estimate: Estimate) -> list[str]:
    """Return the rows that are left and what they may cost."""
    now, cost = estimate.progress, estimate.cost
    sample = f" (a sample of {now.rows:,})" if now.selected < now.rows else ""
    done = f", {now.already_done:,} of them done" if now.already_done else ""
    lines = [f"{format_count(now.selected, 'row')}{sample}{done}"]
    groups: dict[str, int] = {}  # rows by what their line says
    for group in estimate.groups:
        plan = group.plan
        members = ", ".join(dict.fromkeys(seat.member for seat in plan.roster.all_seats))
        least, most = plan.calls
        line = f"{plan.protocol.name}, {format_calls({'min': least, 'max': most})} each, {members}"
        groups[line] = groups.get(line, 0) + group.rows
    lines += [f"  {format_count(rows, 'row')}: {line}" for line, rows in list(groups.items())[:MAX_LISTED_GROUPS]]
    if len(groups) > MAX_LISTED_GROUPS:
        lines.append(f"  and {format_count(len(groups) - MAX_LISTED_GROUPS, 'other set')} of options")
    if cost:
        low, expected, worst = (format_usd(cost[name]) for name in ("low", "expected", "worst"))
        lines.append(f"cost: {expected} expected ({low} to {worst})")
    elif estimate.unpriced:
        lines.append(f"cost: unknown, because {', '.join(estimate.unpriced)} has no price")
    if estimate.cap is not None:
        spent = f", {format_usd(now.usd_before)} of it spent" if now.usd_before else ""
        lines.append(f"limit: {format_usd(estimate.cap)}{spent}")
        if cost and cost["expected"] + now.usd_before > estimate.cap:
            lines.append("! the limit is below the expected cost: some rows may not be asked")
    return lines


def format_summary(summary: Summary) -> list[str]:
    """Return the counts, the cost, the failures and what to do about them."""
    now = summary.progress
    counts = [f"{now.complete + now.already_done:,} of {format_count(now.selected, 'row')} complete"]
    counts += [f"{count:,} {word}" for count, word in ((now.incomplete, "incomplete"), (now.failed, "failed")) if count]
    counts += [f"{now.left:,} left"] if now.left else []
    lines = [", ".join(counts), _format_cost(summary)]
    for failure in now.failures[:MAX_LISTED_FAILURES]:
        run = f" (run {failure['run']})" if failure["run"] else ""
        lines.append(f"! {failure['id']} (line {failure['line']}): {failure['status']}: {failure['reason']}{run}")
    hidden = now.incomplete + now.failed - MAX_LISTED_FAILURES
    if hidden > 0:
        lines.append(f"! and {format_count(hidden, 'row')} more, which have an error in the output file")
    if now.selected < now.rows and not now.left:
        estimate = "" if summary.estimate is None else f", about {format_usd(summary.estimate)}"
        lines.append(f"all {format_count(now.rows, 'row')}{estimate}: run the same command without --sample")
    lines += [STOP_LINES[summary.stopped]] if summary.stopped and now.left else []
    if (now.incomplete or now.failed) and not summary.stopped:
        lines.append("retry: run the same command again; rows that failed may be corrected first")
    return [*lines, f"results: {summary.output}"]


STOP_LINES = {
    "interrupted": "stopped: run the same command again to continue",
    "budget": "stopped at the cost limit: run the same command again with a higher --max-cost",
    "failures": "stopped, because every row so far has failed: check with `council doctor`, then run the same command again",
}


def _format_cost(summary: Summary) -> str:
    now = summary.progress
    unknown = ", without members that have no price" if now.unknown_cost else ""
    before = f", {format_usd(now.usd + now.usd_before)} with earlier runs" if now.usd_before else ""
    about = "about " if now.estimated_cost else ""
    doubt = f", at most {format_usd(now.in_doubt)} more in doubt" if now.in_doubt > 0 else ""
    spent = format_usd(now.usd - now.in_doubt)
    return f"cost: {about}{spent}{doubt}{before}{unknown}; {_format_seconds(now.seconds)}"


def _format_rate(rate: float) -> str:
    return f"{rate:.1f} rows/s" if rate >= 0.1 or not rate else f"{rate * 60:.1f} rows/min"


def _format_seconds(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"


class ProgressBar(NoView):
    """Progress of a batch on standard error: one line that is drawn again, or off a terminal a line from time to
    time.
    """

    def __init__(self, progress: Progress, stream: TextIO | None, symbols: Symbols) -> None:
        self.progress, self._stream, self._symbols = progress, stream, symbols
        self.is_drawn = is_drawable(stream)
        self._shown, self._last = "", time.monotonic()

    def show_checked(self, count: int) -> None:
        """Show how many rows were checked, if that takes a while."""
        if time.monotonic() - self._last >= 1.0:
            self._last = time.monotonic()
            self._draw(f"checking row {count:,}")

    def on_row(self, row: EndedRow) -> None:
        if row.error and not self.is_drawn:
            self._print(f"{row.id} {row.status}: {row.error}")

    def tick(self, now: float) -> None:
        if self.is_drawn:
            self._draw(self._format())
        elif time.monotonic() - self._last >= HEARTBEAT_S:
            self._last = time.monotonic()
            self._print(self._format())

    def show_stopping(self) -> None:
        self._print("stopping; press Ctrl-C again to exit at once")

    def suspend(self) -> AbstractContextManager[None]:
        self._erase()
        return nullcontext()

    def close(self) -> None:
        self._erase()

    def _format(self) -> str:
        now, dot = self.progress, self._symbols.dot
        done = now.already_done + now.ended
        parts = [f"{done:,}/{now.selected:,}", _format_rate(now.rate), format_usd(now.usd)]
        parts += [f"{now.failed + now.incomplete:,} not complete"] if now.failed + now.incomplete else []
        if now.seconds_left is not None and now.left:
            parts.append(f"{_format_seconds(now.seconds_left)} left")
        bar = f"{self._symbols.format_bar(done, now.selected, BAR_WIDTH)} " if self.is_drawn else ""
        return bar + dot.join(parts)

    def _print(self, line: str) -> None:
        self._erase()
        self._write(f"{self._clean(line)}\n")

    def _draw(self, line: str) -> None:
        if not (self._stream and self.is_drawn):
            return
        text = cut(self._clean(line), terminal_size(self._stream)[0] - 1, self._symbols.ellipsis)
        if text != self._shown:
            self._shown = text
            self._write(f"\r{text}\x1b[K")

    def _clean(self, line: str) -> str:
        return to_ascii(clean(line)) if self._symbols.ascii else clean(line)

    def _erase(self) -> None:
        if self._shown:
            self._shown = ""
            self._write("\r\x1b[K")

    def _write(self, text: str) -> None:
        if self._stream:
            self._stream.write(text)
            self._stream.flush()
