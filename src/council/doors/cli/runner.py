"""Run a council from the command line: progress on standard error, result on standard output, signal handling."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import click

from council.doors.cli.ci_log import is_ci
from council.doors.cli.notices import select_new_notices
from council.doors.cli.notification import notify
from council.doors.cli.params import (
    COMMAND_HELP,
    RunRequest,
    check_grace,
    check_output_path,
    common_options,
    make_flag,
    parse_members,
    parse_seats,
    print_json,
    print_result,
)
from council.doors.cli.terminal_input import (
    HumanPrompter,
    ask_trust,
    confirm_start,
    cost_reason,
    describe_material,
    start_reason,
)
from council.doors.cli.views import (
    JsonlView,
    NoView,
    PipeSafeView,
    TerminalKeyboard,
    View,
    erase_lines,
    handle_signals,
    is_same_file,
    join_parts,
    print_beside,
    replay_entries,
    tick_view,
    write_commands,
    write_lines,
    write_parts,
    write_status,
)
from council.engine.degraded import format_missing_lines, format_notice_lines
from council.engine.layout import neutralize_html
from council.engine.minutes import Minutes
from council.engine.plan_object import PlanAdvice, PlanObject, PricedProtocol
from council.engine.records import ReportObject
from council.errors import CouncilError, PacketRefused, TrustRequired, UsageError
from council.events import Entry
from council.flags import AUTO_PROTOCOL
from council.planning.intent import Inferred
from council.planning.plan import Material, Plan, preview_packet
from council.planning.plan_object import make_packet_receipt
from council.render import markdown, terminal
from council.render.formats import COMMAND_FORMATS, render_as
from council.render.markdown import TextPart
from council.render.report import build_report
from council.render.text_layout import fit_lines, is_drawable, needs_ascii
from council.runs.ci_gate import verdict_exit_code
from council.runs.outcome import EXIT_INTERRUPTED, StopEvent, exit_code
from council.runs.service import Convener
from council.settings import Settings
from council.settings.config_files import data_folder
from council.settings.private_files import open_named_file
from council.settings.workspace_trust import TrustSource, store_trust
from council.text_cleanup import clean, neutralize_commands
from council.types import Json

# Flags that are settings: with a value, and without one.
VALUES = ("timeout", "seat_count", "max_cost", "packet_tokens", "effort", "priority", "report_dir", "profile")
SWITCHES = ("cheap", "allow_unpriced", "no_resend", "no_warm", "hedge", "check", "notify", "trust")


@dataclass(slots=True)
class Runner:
    """Options of one command line, and the jobs that run with them."""

    flags: Json
    config: Path | None
    jsonl: bool
    verbose: bool
    show: str
    answer_only: bool  # no missing parts above the answer, no lines after it
    output: Path | None
    quiet: bool
    color: bool
    ascii: bool
    fail_on: str | None
    may_confirm: bool  # ask for cost confirmation at a terminal
    format: str  # output format of the finished run; "" is the answer
    may_prompt: bool  # ask human seats at the terminal
    raw: bool  # print Markdown as it is, also at a terminal
    yes: bool  # every confirmation is given
    finished: Minutes | None = None  # the last run, after it ended
    keeps_open: bool = False  # the store, between jobs
    has_start_lines: bool = False  # warnings or the plan were printed before the run
    shows_hints: bool = True  # commands for the next step, in the last line

    @classmethod
    def from_flags(cls, params: Json) -> Runner:
        settings = {name: params.get(name) for name in VALUES}
        settings |= {name: params.get(name) or None for name in SWITCHES}
        settings |= {
            "seats": parse_seats(params.get("seat") or ()),
            "models": parse_members(params.get("models") or (), params.get("members")),
            "exclude_family": params.get("exclude_family") or None,
            "grace": check_grace(params.get("grace")),
        }
        plain = params.get("no_color") or "NO_COLOR" in os.environ or os.environ.get("TERM") == "dumb"
        show, jsonl = params.get("show") or "", bool(params.get("jsonl"))
        runner = cls(
            settings,
            config=config_path(params),
            jsonl=jsonl,
            verbose=bool(params.get("verbose") or show),
            show=show,
            answer_only=bool(params.get("answer_only")),
            output=check_output_path(params.get("output")),
            quiet=bool(params.get("quiet")),
            color=not plain,
            ascii=bool(params.get("ascii")),
            fail_on=params.get("fail_on"),
            may_confirm=not (params.get("yes") or params.get("no_input")),
            format=_choose_format(params.get("format"), bool(params.get("json")), jsonl),
            may_prompt=not params.get("no_input"),
            raw=bool(params.get("raw")),
            yes=bool(params.get("yes")),
        )
        runner._check_answer_only()
        return runner

    def _check_answer_only(self) -> None:
        """Raise UsageError if another flag asks for more than the answer."""
        if not self.answer_only:
            return
        formats = "--jsonl" if self.jsonl else "--json" if self.format == "json" else f"--format {self.format}"
        other = "--verbose" if self.verbose else formats if self.format or self.jsonl else ""
        if other:
            what = "every statement" if self.verbose else "the whole run"
            raise UsageError(
                f"--answer-only prints the answer alone and {other} prints {what}, nothing was spent: give one of them"
            )

    # Jobs

    def convene(self, request: RunRequest, *, dry_run: bool, detach: bool = False) -> int:
        """Run a council, or print its plan for a dry run. A dry run is refused where the run would be."""

        async def job(convener: Convener) -> int:
            plan = await make_plan(convener, request, will_run=not (dry_run or detach))
            self.verbose |= plan.verbose and not self.answer_only
            self._require_review(plan.as_json())
            convener.check_plan(plan)
            if not detach:
                self._require_terminal(plan.as_json())
            if dry_run:
                return self._show_plan(plan, await find_advice(convener, request, plan))
            self.require_words(plan)
            await convener.open_store(plan.protocol.name, plan.question.task)
            if not await self._present_plan(plan.as_json(), self.start_reason(plan, convener.settings)):
                return say_not_started()
            return await self.run_with_view(convener, lambda view, stop: convener.run(plan, view.on_event, stop=stop))

        return self.with_convener(job)

    def show_packet(self, request: RunRequest) -> int:
        """Print a table of what would be sent and what is left out; with --json, exactly what would be sent."""
        from council.doors.cli.packet_table import format_packet_table  # only needed for this command
        from council.doors.cli.tables import fit_table

        async def job(convener: Convener) -> int:
            plan = await make_plan(convener, request)
            packet = plan.packet
            if self.format == "json":
                print_json({**preview_packet(plan), "receipt": make_packet_receipt(packet)})
                return 0
            table = fit_table(format_packet_table(packet), sys.stdout)
            click.echo(neutralize_commands("\n".join(table)))
            self.print_status(terminal.format_plan(plan.as_json()))
            return 0

        return self.with_convener(job)

    def accept_secrets(self, request: RunRequest, reason: str) -> int:
        """Write the secrets for which a packet is refused to the baseline of the project, and print their places."""
        from council.packet.accepted_secrets import Baseline  # only needed for this flag

        if not reason.strip():
            raise UsageError("--accept-secret needs a reason: say why these values may be sent")

        async def job(convener: Convener) -> int:
            try:
                await make_plan(convener, request)
            except PacketRefused as error:
                if error.text_places:
                    place, more = error.text_places[0], len(error.text_places) - 1
                    others = f" and {more:,} more" if more else ""
                    raise UsageError(
                        f'--accept-secret cannot accept "{clean(place)}"{others}, nothing was written: '
                        "it accepts values in files of the project only, so remove this one"
                    ) from None
                if not error.secrets:
                    raise
                baseline = Baseline(convener.folder, trust=TrustSource(convener.env))
                added = baseline.add(error.secrets, reason.strip())
                places = sorted({secret.place for secret in error.secrets})
                click.echo("\n".join(clean(place) for place in places))
                line = f"council: accepted {added} in {baseline.file}: commit it with the files"
                if base := request.material.get("base"):
                    line += f', which counts with --base once "{base}" has it'
                self.print_status([clean(line)])
                return 0
            click.echo("no secrets found: nothing to accept")
            return 0

        return self.with_convener(job)

    def resume(self, run: str | None, *, resend: bool) -> int:
        async def job(convener: Convener) -> int:
            name = run or await convener.newest_unfinished_run()
            minutes = await convener.minutes(name)
            if minutes.status != "complete":
                self._require_terminal(minutes.plan)
            return await self.run_with_view(
                convener,
                lambda view, stop: convener.resume(
                    name, view.on_event, on_past_entries=view.catch_up, stop=stop, resend=resend
                ),
            )

        return self.with_convener(job)

    def fork(self, run: str, phase: str | None, seats: Mapping[str, str]) -> int:
        """Start a new run from the statements of another. Ask if it is expensive, before anything is sent."""

        async def job(convener: Convener) -> int:
            plan = await convener.plan_fork(run, phase=phase, seats=seats)
            self._require_terminal(plan)
            if not await self._present_plan(plan, cost_reason(plan, convener.settings) if self.can_confirm else ""):
                return say_not_started()
            return await self.run_with_view(
                convener,
                lambda view, stop: convener.fork(run, view.on_event, phase=phase, seats=seats, stop=stop),
            )

        return self.with_convener(job)

    def replay(self, run: str | None, speed: float) -> int:
        """Play a past run through the live view without calls. Off a terminal, play it at once."""

        async def job(convener: Convener) -> int:
            minutes, entries = await convener.load_minutes(run or await convener.newest_run())
            view = self._guard_view(lambda: None)
            try:
                await replay_entries(entries, view, speed if sys.stderr.isatty() else 0)
            finally:
                view.close()
            self._print_result(minutes, ())
            return 0

        return self.with_convener(job)

    def with_convener(self, job: Callable[[Convener], Awaitable[int]]) -> int:
        """Run a job. Ask at a terminal if the project's settings need trust, and run the job again."""

        async def run_job() -> int:
            convener = Convener(flags=self.flags, config=self.config, keeps_open=self.keeps_open)
            convener.on_store_wait = print_beside(NoView(), self.print_status)
            try:
                code = await job(convener)
                if ignored := convener.settings.untrusted:
                    self.print_status([clean(f"council: {ignored.summary}, which were ignored: see `council trust`")])
                return code
            finally:
                await convener.close()

        while True:
            try:
                return asyncio.run(run_job())
            except TrustRequired as error:
                if not self._can_prompt() or not asyncio.run(ask_trust(error.request)):
                    raise
                store_trust(error.request, os.environ)

    # Views

    async def run_with_view(
        self, convener: Convener, work: Callable[[View, StopEvent], Awaitable[Minutes | None]]
    ) -> int:
        """Show a view while the work runs, then print the result. Print nothing if the work was interrupted (None)."""
        stop = StopEvent()
        view = self._guard_view(stop.set if self.jsonl else lambda: None)
        beside = [asyncio.ensure_future(tick_view(view))]
        convener.on_store_wait = print_beside(view, self.print_status)
        if self._can_prompt():
            beside.append(asyncio.ensure_future(HumanPrompter(convener, view).run()))
        with handle_signals(stop, view, self._exit_at_once):
            try:
                minutes = await work(view, stop)
            finally:
                for task in beside:
                    task.cancel()
                await asyncio.gather(*beside, return_exceptions=True)
                view.close()
        if minutes is None:
            return EXIT_INTERRUPTED
        self.finished = minutes
        entries = await convener.entries(minutes.run) if self.format == "html" else ()
        try:
            code = self._finish(minutes, entries)
        except KeyboardInterrupt:
            self._print_footer(build_report(minutes))
            return EXIT_INTERRUPTED
        if convener.settings.notify and not stop.is_set():
            notify(minutes, convener.env)
        return code

    def _guard_view(self, on_broken_pipe: Callable[[], None]) -> PipeSafeView:
        """Return the view of this command line, which owns the terminal until it is closed."""
        keyboard = TerminalKeyboard(sys.stderr.fileno() if self.is_live else None)
        return PipeSafeView(self._make_view(), on_broken_pipe, keyboard)

    def _exit_at_once(self, view: PipeSafeView) -> NoReturn:
        """End the process after a second Ctrl-C. The ledger has every finished step, as after a crash."""
        with contextlib.suppress(OSError):
            view.close()
            if view.run:
                self.print_status([f"resume: council resume {view.run}"])
        os._exit(EXIT_INTERRUPTED)

    def _can_prompt(self) -> bool:
        return self.may_prompt and has_terminal()

    @property
    def can_confirm(self) -> bool:
        return self.may_confirm and has_terminal()

    def start_reason(self, plan: Plan, settings: Settings) -> str:
        """Return why the user has to confirm the run; "" off a terminal, where only the cap applies."""
        return start_reason(plan, settings) if self.can_confirm else ""

    def require_words(self, plan: Plan) -> None:
        """Raise UsageError if nothing was named and the user cannot be asked about it: nothing is sent unasked."""
        if plan.inferred is Inferred.TASK and not self.yes and not self.can_confirm:
            raise UsageError(
                f"no question was given, nothing was sent: to review {describe_material(plan)} run council validate or "
                'council --yes, to ask run council "your question", or see council --help'
            )

    async def _present_plan(self, plan: PlanObject, why: str) -> bool:
        """Ask for confirmation if there is a reason (`why`), and return whether to start the run.

        The plan is printed with -v, or for the question. A live view follows, so the plan of a confirmed run is
        removed.
        """
        if not why:
            self._print_start(plan)
            return True
        lines = fit_lines("\n".join(terminal.format_plan(plan)), sys.stderr, ascii=self.ascii).split("\n")
        write_status("\n".join(lines))
        if not await confirm_start(why, lines.append):
            return False
        if self.is_live:
            erase_lines(sys.stderr, lines)
            self._print_start(plan)
        return True

    def _print_start(self, plan: PlanObject) -> None:
        lines = self.format_start(plan)
        self.print_status(lines)
        self.has_start_lines = bool(lines)

    def format_start(self, plan: PlanObject) -> list[str]:
        """Return the lines before a run: with -v the plan, without what a live view shows; else the warnings and new
        hints.
        """
        if self.verbose:
            return terminal.format_plan_facts(plan) if self.is_live else terminal.format_plan(plan)
        hints = [] if self.quiet or self.jsonl else select_new_notices(terminal.list_hints(plan), os.environ)
        return terminal.format_warnings([*terminal.list_warnings(plan), *hints])

    def _require_review(self, plan: PlanObject) -> None:
        """Raise if --fail-on is given for a run that gives no verdict: a CI job would pass without a review."""
        if self.fail_on and plan["task"] != "validate":
            raise UsageError(
                f"--fail-on {self.fail_on} needs a review, but {plan['protocol']} ({plan['why']}) gives no verdict: "
                "start with the word validate, or omit --fail-on"
            )

    def _require_terminal(self, plan: PlanObject) -> None:
        """Raise UsageError, before anything is spent, if a seat is a person who cannot be asked here."""
        if not self._can_prompt() and (names := human_seats(plan)):
            raise UsageError(
                f'seat "{names[0]}" is a person, but there is no terminal (or --no-input is set), nothing was spent: '
                "run it at a terminal, or use --detach and answer with `council watch RUN`"
            )

    @property
    def is_live(self) -> bool:
        """Return whether the terminal supports the live table."""
        return not (self.jsonl or self.quiet) and is_drawable(sys.stderr)

    def _make_view(self) -> View:
        if self.jsonl:
            return JsonlView()
        if self.quiet:
            return NoView()
        if self.is_live:
            from council.render.live import LiveView

            is_ascii = self.ascii or needs_ascii(sys.stderr)
            return LiveView(sys.stderr, ascii=is_ascii, color=self.color, stays=self.verbose)
        from council.render.plain import PlainView

        return PlainView(sys.stderr, every_event=self.verbose)

    # Output

    def _show_plan(self, plan: Plan, advice: PlanAdvice | None) -> int:
        shown = plan.as_json() | ({"advice": advice} if advice else {})
        return self.print_lines(shown, terminal.format_plan(shown))

    def _finish(self, minutes: Minutes, entries: Sequence[Entry]) -> int:
        result = minutes.report or build_report(minutes)
        try:
            self._print_result(minutes, entries)
            shown = result if minutes.folder == str(Path.cwd()) else _with_absolute_path(result, minutes.folder)
            self._print_footer(shown)
        except BrokenPipeError:
            pass  # the reader is gone; the report is on disk
        except OSError as error:
            raise CouncilError(
                f"cannot write the answer ({error.strerror}): read it with `council report {result['run']}`"
            ) from error
        return run_exit_code(minutes, result, self.fail_on)

    def _print_result(self, minutes: Minutes, entries: Sequence[Entry]) -> None:
        """Print what is missing, and the answer with its tail."""
        if self.jsonl:
            return
        self._print_missing(minutes)
        if self.format:
            self._write_output(render_as(minutes, self.format, entries), commands=self.format in COMMAND_FORMATS)
        elif self.answer_only:
            self.print_parts(markdown.list_answer_parts(minutes, with_tail=False, with_missing=False))
        else:
            self.print_parts(list_parts(minutes, verbose=self.verbose, show=self.show))

    def _print_missing(self, minutes: Minutes) -> None:
        """Print on standard error which fallbacks answered and, unless the answer is printed there too, what is
        missing.
        """
        is_above_answer = self._shows_answer and not (self.format or self.answer_only)
        missing = [] if is_above_answer or minutes.is_empty_run else format_missing_lines(minutes)
        lines = terminal.format_warnings([*missing, *format_notice_lines(minutes)])
        if missing and self.answer_only:
            write_status("\n".join(lines), ascii=self.ascii)  # also with --quiet: it is shown nowhere else
        else:
            self.print_status(lines)
        if self._shows_answer and (lines or self.has_start_lines or self.verbose or not self.is_live):
            self.print_status([""])  # between these lines and the answer

    def _print_footer(self, report: ReportObject) -> None:
        """Print cost, time, run and hints in one dim line; with -v also the report path, calls and tokens."""
        if self.quiet or self.jsonl:
            return
        space = [""] if self._shows_answer else []
        self.print_status([*space, *(terminal.format_summary(report) if self.verbose else [])])
        path = _find_project_report(report["report_path"])
        footer = terminal.format_footer(report, hints=self.shows_hints, report_path=path)
        write_status(footer, ascii=self.ascii, is_dim=self.color)

    @property
    def _shows_answer(self) -> bool:
        """Whether the answer is printed where standard error is: at the same terminal, or in the same file."""
        return not self.output and is_same_file(sys.stdout, sys.stderr)

    def print_parts(self, parts: Sequence[TextPart]) -> None:
        """Print an answer: Markdown rendered for a terminal, else as it is."""
        if self.output:
            self._write_output(neutralize_html(join_parts(parts)))
        else:
            write_parts(parts, raw=self.raw, ascii=self.ascii, color=self.color)

    def _write_output(self, text: str, *, commands: bool = False) -> None:
        """Write a text to the file of --output or to standard output.

        A CI job may print the file, so it is treated alike.
        """
        if self.output:
            text = text if text.endswith("\n") else text + "\n"
            safe = neutralize_commands(text) if is_ci() and not commands else text
            with open_named_file(self.output, encoding="utf-8") as file:
                file.write(safe)
        elif commands:
            write_commands(text)
        else:
            write_parts([TextPart(text)], raw=True)

    def print_lines(self, value: Any, lines: Iterable[str]) -> int:
        """Print a value as JSON, or the lines that show it, wrapped at a terminal. Return the exit code of success."""
        return print_result(self.format == "json", value, lines, partial(write_lines, ascii=self.ascii))

    def print_status(self, lines: list[str]) -> None:
        if not (self.quiet or self.jsonl) and lines:
            write_status("\n".join(lines), ascii=self.ascii)


def config_path(params: Json) -> Path | None:
    return Path(params["config"]) if params.get("config") else None


def human_seats(plan: PlanObject) -> list[str]:
    """Return the seats whose member or fallback is a person."""
    seats = [*plan.get("seats", ()), *filter(None, [plan.get("chair")])]
    return [seat["name"] for seat in seats if "human" in (seat["model"], *seat["fallbacks"])]


def _choose_format(format_name: str | None, json: bool, jsonl: bool) -> str:
    """Return the output format of a finished run ("" is the answer). Raise UsageError if two flags conflict."""
    if format_name and (jsonl or (json and format_name != "json")):
        other = "--jsonl" if jsonl else "--json"
        raise UsageError(f'--format "{format_name}" and {other} conflict, nothing was spent: give one of them')
    return "json" if json else format_name or ""


def say_not_started() -> int:
    click.echo("council: not started, nothing was spent", err=True)
    return EXIT_INTERRUPTED


def has_terminal() -> bool:
    return bool(sys.stdin and sys.stdin.isatty() and sys.stderr.isatty())


def list_parts(minutes: Minutes, *, verbose: bool, show: str = "") -> list[TextPart]:
    """Return the text for standard output in parts."""
    return [TextPart(markdown.render_verbose(minutes, show))] if verbose else markdown.list_answer_parts(minutes)


def run_exit_code(minutes: Minutes, report: ReportObject, fail_on: str | None = None) -> int:
    status = "incomplete" if minutes.status == "running" else minutes.status
    states = [missed.state for missed in minutes.absences if missed.seat in minutes.seats]
    failed = exit_code(status, minutes.stopped, states)
    return failed or (0 if report["verdict"] is None else verdict_exit_code(report, fail_on))


def _find_project_report(path: str | None) -> str:
    """Return the path of a report in the project; "" if it is in the data folder, or if there is none."""
    is_stored = path is None or Path(path).resolve().is_relative_to(data_folder(os.environ).resolve())
    return "" if is_stored else str(path)


def _with_absolute_path(result: ReportObject, folder: str) -> ReportObject:
    """Return the report with an absolute path, for runs of another folder."""
    path = result["report_path"]
    return {**result, "report_path": str(Path(folder) / path) if path else None}


async def make_plan(convener: Convener, request: RunRequest, *, will_run: bool = False) -> Plan:
    material = Material(**request.material)
    return await convener.plan(
        request.words,
        request.options,
        protocol=request.protocol,
        verbose=request.verbose,
        material=material,
        strict=request.strict,
        after=await convener.find_continued_run(request.continue_from),
        will_run=will_run,
    )


async def find_advice(convener: Convener, request: RunRequest, plan: Plan) -> PlanAdvice | None:
    """Return the protocol that is worth its price for a question, if it is not that of the plan. No model is asked."""
    if plan.question.task != "ask" or plan.continues:
        return None
    try:
        advised = await make_plan(convener, replace(request, protocol=AUTO_PROTOCOL))
    except CouncilError:  # a flag of this request does not fit the advice
        return None
    is_same = (advised.protocol.name, advised.given) == (plan.protocol.name, plan.given)
    return None if is_same else price_advice(advised)


def price_advice(plan: Plan) -> PlanAdvice:
    return {**price_protocol(plan), "why": plan.why}


def price_protocol(plan: Plan) -> PricedProtocol:
    return {
        "protocol": plan.protocol.name,
        "rounds": int(plan.options.get("rounds") or 1),
        "options": plan.given,
        "calls": plan.calls[1],
        "cost": None if plan.cost is None else plan.cost["expected"],
    }


# Management commands

JSON_OPTION = make_flag("--json", help="Print JSON.")
CONFIG_OPTION, HIDDEN_CONFIG_OPTION = common_options("config")[0], common_options("config")[0]
HIDDEN_CONFIG_OPTION.hidden = True
TEXT_FLAGS = ("raw", "no_color", "ascii")  # for text on a terminal


def with_convener(job: Callable[..., Awaitable[int]]) -> Callable[..., int]:
    """Return the callback of a command: it runs the job with a convener and the flags of the command by name."""

    def callback(**params: Any) -> int:
        runner = Runner.from_flags({name: params.get(name) for name in ("config", "ascii")})
        return runner.with_convener(lambda convener: job(convener, **params))

    return callback


def make_command(
    name: str, callback: Any, *params: click.Parameter, help: str = "", uses_config: bool = True
) -> click.Command:
    """Create a management command with the common options. Help lists --config only where it has an effect."""
    config = CONFIG_OPTION if uses_config else HIDDEN_CONFIG_OPTION
    return make_plain_command(name, callback, *params, JSON_OPTION, config, help=help)


def make_plain_command(name: str, callback: Any, *params: click.Parameter, help: str = "") -> click.Command:
    return click.Command(name, callback=callback, params=[*params], help=help or COMMAND_HELP.get(name, ""))


def make_group(
    name: str,
    default: Callable[..., int],
    *params: click.Parameter,
    commands: Sequence[click.Command],
    on_command: Callable[[click.Context, Json], None] = lambda context, params: None,
) -> click.Group:
    """Create a group of commands. `default` runs without a command; `on_command` gets the flags before a command."""

    @click.pass_context
    def callback(context: click.Context, /, **params: Any) -> int | None:
        if context.invoked_subcommand is None:
            return default(**params)
        on_command(context, params)
        return None

    return click.Group(
        name, commands, invoke_without_command=True, params=[*params], callback=callback, help=COMMAND_HELP[name]
    )
