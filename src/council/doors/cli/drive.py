"""Run a council from the command line: progress on standard error, result on standard output, signal handling."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import click

from council.convene import Convener
from council.doors.cli.asking import agreed
from council.doors.cli.formats import one_format, rendered
from council.doors.cli.given import Wish, patience, print_json, seats_from, writable
from council.doors.cli.people import Interview, refuse_absent
from council.doors.cli.views import Guarded, Lines, NoView, View
from council.endings import Stop
from council.errors import CouncilError
from council.events import Entry
from council.minutes import Minutes
from council.planning import Material, Plan, sent
from council.render import markdown, terminal
from council.render.replay import replayed
from council.render.report import report
from council.rules.exits import INTERRUPTED, exit_code
from council.rules.gate import verdict_code
from council.types import Json

TICK = 0.1
LONGEST_GAP = 5.0  # longest pause in a replay


@dataclass(slots=True)
class Drive:
    """Options of one command line, and the jobs that run with them."""

    flags: Json
    config: Path | None = None
    json: bool = False
    jsonl: bool = False
    verbose: bool = False
    show: str = ""
    output: Path | None = None
    quiet: bool = False
    color: bool = True
    ascii: bool = False
    fail_on: str | None = None
    ask: bool = True  # ask for cost confirmation at a terminal
    form: str = ""  # output format of the finished run; "" is the answer
    typed: bool = True  # ask human seats at the terminal

    @classmethod
    def from_flags(cls, params: Json, profile: str | None = None) -> Drive:
        settings = {"timeout": params.get("timeout"), "seats": seats_from(params.get("seat") or ()), "profile": profile}
        settings |= {"max_cost": params.get("max_cost"), "allow_unpriced": params.get("allow_unpriced") or None}
        settings |= {"grace": patience(params.get("grace")), "no_resend": params.get("no_resend") or None}
        settings |= {"effort": params.get("effort")}
        plain = params.get("no_color") or "NO_COLOR" in os.environ or os.environ.get("TERM") == "dumb"
        return cls(
            settings, Path(params["config"]) if params.get("config") else None, bool(params.get("json")), bool(params.get("jsonl")),
            bool(params.get("verbose") or params.get("show")), params.get("show") or "", writable(params.get("output")),
            bool(params.get("quiet")), not plain, bool(params.get("ascii")), params.get("fail_on"),
            not (params.get("yes") or params.get("no_input")),
            one_format(params.get("format"), bool(params.get("json")), bool(params.get("jsonl"))), not params.get("no_input"),
        )  # fmt: skip

    # Jobs

    def convene(self, wish: Wish, *, dry_run: bool) -> int:
        async def job(convener: Convener) -> int:
            plan = await planned(convener, wish)
            self.verbose |= plan.verbose
            if dry_run:
                return self._show_plan(plan)
            plan.ready()
            self._refuse_absent(plan.as_json())
            convener.open()
            self.say(terminal.before(plan.as_json()))
            if not agreed(plan.as_json(), convener.settings.budget, ask=self.ask):
                click.echo("council: not started, nothing was spent", err=True)
                return INTERRUPTED
            return await self.watched(convener, lambda view, stop: convener.run(plan, view.hear, stop=stop))

        return self.with_convener(job)

    def packet(self, wish: Wish) -> int:
        """Print exactly what would be sent, and list the skipped files."""

        async def job(convener: Convener) -> int:
            plan = await planned(convener, wish)
            packet = plan.packet
            if self.json:
                print_json(sent(plan) | {"receipt": packet.as_json()})
                return 0
            click.echo(json.dumps(sent(plan), ensure_ascii=False, indent=1))
            self.say(
                [*terminal.before(plan.as_json()), *(f"left out {item.path}: {item.why}" for item in packet.skipped)]
            )
            return 0

        return self.with_convener(job)

    def resume(self, run: str | None, *, resend: bool) -> int:
        async def job(convener: Convener) -> int:
            name = run or await convener.newest_unfinished()
            minutes = await convener.minutes(name)
            if minutes.status != "complete":
                self._refuse_absent(minutes.plan)
            return await self.watched(
                convener,
                lambda view, stop: convener.resume(name, view.hear, catch_up=view.catch_up, stop=stop, resend=resend),
            )

        return self.with_convener(job)

    def fork(self, run: str, phase: str | None, seats: Mapping[str, str]) -> int:
        """Start a new run from the statements of another. Print the plan before anything is sent."""

        def before(plan: Json) -> None:
            self._refuse_absent(plan)
            self.say(terminal.before(plan))

        async def job(convener: Convener) -> int:
            return await self.watched(
                convener,
                lambda view, stop: convener.fork(run, view.hear, phase=phase, seats=seats, before=before, stop=stop),
            )

        return self.with_convener(job)

    def replay(self, run: str | None, speed: float) -> int:
        """Play a past run through the live view without calls. Off a terminal, play it at once."""

        async def job(convener: Convener) -> int:
            entries = await convener.entries(run or await convener.newest())
            view = self._view()
            await play(entries, view, speed if sys.stderr.isatty() else 0)
            view.close()
            minutes = Minutes.fold(entries)
            if not self.jsonl:
                self._put(self._result(minutes))
            return 0

        return self.with_convener(job)

    def with_convener(self, job: Callable[[Convener], Awaitable[int]]) -> int:
        async def whole() -> int:
            convener = Convener(flags=self.flags, config=self.config)
            try:
                return await job(convener)
            finally:
                await convener.close()

        return asyncio.run(whole())

    # Views

    async def watched(self, convener: Convener, work: Callable[[View, Stop], Awaitable[Minutes | None]]) -> int:
        """Show a view while the work runs, then print the result. Print nothing if the work was interrupted (None)."""
        stop = Stop()
        view = Guarded(self._view(), stop.set if self.jsonl else lambda: None)
        beside = [asyncio.ensure_future(_tick(view))]
        if self._may_ask():
            beside.append(asyncio.ensure_future(Interview(convener, view).conduct()))
        try:
            with _signals(stop):
                minutes = await work(view, stop)
        finally:
            for task in beside:
                task.cancel()
            await asyncio.gather(*beside, return_exceptions=True)
            view.close()
        if minutes is None:
            return INTERRUPTED
        return self._finish(minutes, await convener.entries(minutes.run) if self.form == "html" else ())

    def _may_ask(self) -> bool:
        return self.typed and bool(sys.stdin and sys.stdin.isatty() and sys.stderr.isatty())

    def _refuse_absent(self, plan: Json) -> None:
        if not self._may_ask():
            refuse_absent(plan)

    @property
    def is_live(self) -> bool:
        """Return whether the terminal supports the live table."""
        return not (self.jsonl or self.quiet) and sys.stderr.isatty() and os.environ.get("TERM") != "dumb"

    def _view(self) -> View:
        if self.jsonl:
            return Lines()
        if self.quiet:
            return NoView()
        if self.is_live:
            from council.render.live import LiveView

            return LiveView(sys.stderr, ascii=self.ascii, color=self.color)
        from council.render.plain import PlainView

        return PlainView(sys.stderr)

    # Output

    def _show_plan(self, plan: Plan) -> int:
        if self.form == "json":
            print_json(plan.as_json())
        else:
            click.echo("\n".join(terminal.before(plan.as_json())))
        return 0

    def _finish(self, minutes: Minutes, entries: Sequence[Entry]) -> int:
        result = report(minutes)
        try:
            if not self.jsonl:
                self._put(self._result(minutes, entries))
            self.say(
                terminal.after(result if minutes.folder == str(Path.cwd()) else _from_afar(result, minutes.folder))
            )
        except BrokenPipeError:
            pass  # the reader is gone; the report is on disk
        except OSError as error:
            raise CouncilError(
                f"cannot write the answer ({error.strerror}): read it in {result['report_path']}"
            ) from error
        return exit_of(minutes, self.fail_on)

    def _result(self, minutes: Minutes, entries: Sequence[Entry] = ()) -> str:
        if self.form:
            return rendered(minutes, self.form, entries)
        return shown(minutes, verbose=self.verbose, show=self.show)

    def _put(self, text: str) -> None:
        if self.output:
            self.output.write_text(text if text.endswith("\n") else text + "\n", encoding="utf-8")
        else:
            click.echo(text.rstrip("\n"))

    def say(self, lines: list[str]) -> None:
        if not (self.quiet or self.jsonl):
            click.echo("\n".join(lines), err=True)


def shown(minutes: Minutes, *, verbose: bool, show: str = "") -> str:
    return markdown.verbose(minutes, show) if verbose else markdown.answer(minutes)


def exit_of(minutes: Minutes, fail_on: str | None = None) -> int:
    status = "incomplete" if minutes.status == "running" else minutes.status
    states = [missed.state for missed in minutes.absences if missed.seat in minutes.seats]
    return exit_code(status, minutes.stopped, states) or verdict_code(report(minutes), fail_on)


def _from_afar(result: Json, folder: str) -> Json:
    """Return the report with an absolute path, for runs of another folder."""
    return result | {"report_path": str(Path(folder) / result["report_path"]) if result["report_path"] else None}


async def planned(convener: Convener, wish: Wish) -> Plan:
    material = Material(**wish.material)
    return await convener.plan(
        wish.words, wish.owned, protocol=wish.protocol, verbose=wish.verbose, material=material, strict=wish.strict,
        after=wish.continued,
    )  # fmt: skip


async def _tick(view: View) -> None:
    while True:
        await asyncio.sleep(TICK)
        view.tick(time.time())


@contextlib.contextmanager
def _signals(stop: Stop) -> Iterator[None]:
    """Stop the run on the first Ctrl-C and exit on the second. The ledger is kept in both cases."""
    loop = asyncio.get_running_loop()

    def halt(number: int) -> None:
        if stop.is_set():
            os._exit(130)
        stop.set()

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    for number in numbers:
        loop.add_signal_handler(number, halt, number)
    try:
        yield
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)


async def play(entries: list[Entry], view: View, speed: float) -> None:
    """Show entries at `speed` times their original pace (0: at once). Pauses between processes are skipped."""
    for earlier, entry in pairwise([entries[0], *replayed(entries)]):
        gap = min(max(0.0, entry.at - earlier.at), LONGEST_GAP)
        if speed and gap:
            await asyncio.sleep(gap / speed)
        view.hear(entry)
        view.tick(entry.at)
