"""A command line at the wheel of one run: the view on standard error, the result on standard output, signals in between."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Protocol

import click

from council.convene import Convener
from council.doors.cli.asking import agreed
from council.doors.cli.formats import one_format, rendered
from council.doors.cli.given import Wish, patience, print_json, seats_from, writable
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
LONGEST_GAP = 5.0  # seconds of silence that a replay keeps


class View(Protocol):
    def catch_up(self, entries: Iterable[Entry]) -> None: ...
    def hear(self, entry: Entry) -> None: ...
    def tick(self, now: float) -> None: ...
    def close(self) -> None: ...


class NoView:
    """Nobody is watching."""

    def catch_up(self, entries: Iterable[Entry]) -> None:
        pass

    def hear(self, entry: Entry) -> None:
        pass

    def tick(self, now: float) -> None:
        pass

    def close(self) -> None:
        pass


class Lines(NoView):
    """--jsonl: every event as one object on standard output."""

    def hear(self, entry: Entry) -> None:
        sys.stdout.write(json.dumps(entry.as_json(), ensure_ascii=False) + "\n")
        sys.stdout.flush()


@dataclass(slots=True)
class Guarded:
    """A view whose reader may go away: then it falls silent, and the run is told, but never broken."""

    view: View
    gone: Callable[[], None]

    def catch_up(self, entries: Iterable[Entry]) -> None:
        self._show(lambda: self.view.catch_up(entries))

    def hear(self, entry: Entry) -> None:
        self._show(lambda: self.view.hear(entry))

    def tick(self, now: float) -> None:
        self._show(lambda: self.view.tick(now))

    def close(self) -> None:
        self._show(self.view.close)

    def _show(self, act: Callable[[], None]) -> None:
        try:
            act()
        except BrokenPipeError:
            self.view = NoView()
            self.gone()


@dataclass(slots=True)
class Drive:
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
    ask: bool = True  # whether somebody at the terminal may be asked
    form: str = ""  # how the finished run is printed; empty: the answer

    @classmethod
    def from_flags(cls, given: Json, profile: str | None = None) -> Drive:
        settings = {"timeout": given.get("timeout"), "seats": seats_from(given.get("seat") or ()), "profile": profile}
        settings |= {"max_cost": given.get("max_cost"), "allow_unpriced": given.get("allow_unpriced") or None}
        settings |= {"grace": patience(given.get("grace")), "no_resend": given.get("no_resend") or None}
        settings |= {"effort": given.get("effort")}
        plain = given.get("no_color") or "NO_COLOR" in os.environ or os.environ.get("TERM") == "dumb"
        return cls(
            settings, Path(given["config"]) if given.get("config") else None, bool(given.get("json")), bool(given.get("jsonl")),
            bool(given.get("verbose") or given.get("show")), given.get("show") or "", writable(given.get("output")),
            bool(given.get("quiet")), not plain, bool(given.get("ascii")), given.get("fail_on"),
            not (given.get("yes") or given.get("no_input")),
            one_format(given.get("format"), bool(given.get("json")), bool(given.get("jsonl"))),
        )  # fmt: skip

    # The jobs

    def convene(self, wish: Wish, *, dry_run: bool) -> int:
        async def job(convener: Convener) -> int:
            plan = await _planned(convener, wish)
            self.verbose |= plan.verbose
            if dry_run:
                return self._show_plan(plan)
            plan.ready()
            convener.open()
            self._say(terminal.before(plan.as_json()))
            if not agreed(plan.as_json(), convener.settings.budget, ask=self.ask):
                click.echo("council: not convened, nothing was spent", err=True)
                return INTERRUPTED
            return await self._watched(lambda view, stop: convener.run(plan, view.hear, stop=stop))

        return self.with_convener(job)

    def packet(self, wish: Wish) -> int:
        """What would leave the machine, exactly, and what would not."""

        async def job(convener: Convener) -> int:
            plan = await _planned(convener, wish)
            packet = plan.packet
            if self.json:
                print_json(sent(plan) | {"receipt": packet.as_json()})
                return 0
            click.echo(json.dumps(sent(plan), ensure_ascii=False, indent=1))
            self._say(
                [*terminal.before(plan.as_json()), *(f"left out {item.path}: {item.why}" for item in packet.skipped)]
            )
            return 0

        return self.with_convener(job)

    def resume(self, run: str | None, *, resend: bool) -> int:
        async def job(convener: Convener) -> int:
            return await self._watched(
                lambda view, stop: convener.resume(run, view.hear, catch_up=view.catch_up, stop=stop, resend=resend)
            )

        return self.with_convener(job)

    def replay(self, run: str | None, speed: float) -> int:
        """The ledger through the same view, without a call; off a terminal nobody waits."""

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

    # Watching a run

    async def _watched(self, work: Callable[[View, Stop], Awaitable[Minutes]]) -> int:
        stop = Stop()
        view = Guarded(self._view(), stop.set if self.jsonl else lambda: None)
        ticking = asyncio.ensure_future(_tick(view))
        try:
            with _signals(stop):
                minutes = await work(view, stop)
        finally:
            ticking.cancel()
            view.close()
        return self._finish(minutes)

    def _view(self) -> View:
        if self.jsonl:
            return Lines()
        if self.quiet:
            return NoView()
        if sys.stderr.isatty() and os.environ.get("TERM") != "dumb":
            from council.render.live import LiveView

            return LiveView(sys.stderr, ascii=self.ascii, color=self.color)
        from council.render.plain import PlainView

        return PlainView(sys.stderr)

    # What is said before and after

    def _show_plan(self, plan: Plan) -> int:
        if self.form == "json":
            print_json(plan.as_json())
        else:
            click.echo("\n".join(terminal.before(plan.as_json())))
        return 0

    def _finish(self, minutes: Minutes) -> int:
        whole = report(minutes)
        try:
            if not self.jsonl:
                self._put(self._result(minutes))
            self._say(terminal.after(whole if minutes.folder == str(Path.cwd()) else _from_afar(whole, minutes.folder)))
        except BrokenPipeError:
            pass  # nobody reads any more; the report is filed
        except OSError as error:
            raise CouncilError(
                f"the answer could not be written ({error.strerror}), but nothing is lost: it stands in {whole['report_path']}"
            ) from error
        return exit_of(minutes, self.fail_on)

    def _result(self, minutes: Minutes) -> str:
        if self.form:
            return rendered(minutes, self.form)
        return shown(minutes, verbose=self.verbose, show=self.show)

    def _put(self, text: str) -> None:
        if self.output:
            self.output.write_text(text if text.endswith("\n") else text + "\n", encoding="utf-8")
        else:
            click.echo(text.rstrip("\n"))

    def _say(self, lines: list[str]) -> None:
        if not (self.quiet or self.jsonl):
            click.echo("\n".join(lines), err=True)


def shown(minutes: Minutes, *, verbose: bool, show: str = "") -> str:
    return markdown.verbose(minutes, show) if verbose else markdown.answer(minutes)


def exit_of(minutes: Minutes, fail_on: str | None = None) -> int:
    status = "incomplete" if minutes.status == "running" else minutes.status
    states = [missed.state for missed in minutes.absences if missed.seat in minutes.seats]
    return exit_code(status, minutes.stopped, states) or verdict_code(report(minutes), fail_on)


def _from_afar(whole: Json, folder: str) -> Json:
    """A path that leads there from wherever this is."""
    return whole | {"report_path": str(Path(folder) / whole["report_path"]) if whole["report_path"] else None}


async def _planned(convener: Convener, wish: Wish) -> Plan:
    material = Material(**wish.material)
    return await convener.plan(
        wish.words, wish.owned, protocol=wish.protocol, verbose=wish.verbose, material=material, strict=wish.strict
    )


async def _tick(view: View) -> None:
    while True:
        await asyncio.sleep(TICK)
        view.tick(time.time())


@contextlib.contextmanager
def _signals(stop: Stop) -> Iterator[None]:
    """The first Ctrl-C stops the run and keeps what it has; the second leaves at once, and the ledger still has it."""
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
    """Show entries at their own pace, `speed` times as fast (0: at once). Pauses between processes are left out."""
    for earlier, entry in pairwise([entries[0], *replayed(entries)]):
        gap = min(max(0.0, entry.at - earlier.at), LONGEST_GAP)
        if speed and gap:
            await asyncio.sleep(gap / speed)
        view.hear(entry)
        view.tick(entry.at)
