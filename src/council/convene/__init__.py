"""Composition root for runs: plan, run, resume, fork, cancel, audit. Only this package connects members, store and protocols."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from council import events as ev
from council import filing, protocols
from council.audit import audit
from council.calling.budget import Caps, today
from council.convene.continuing import earlier, going_on
from council.convene.equipment import Equipment
from council.convene.forking import forked, inheritance
from council.convene.records import OPEN, Records
from council.convene.secretary import file_report, give_up, report_path, tell_verdicts
from council.convene.washing import clear_of_secrets, washed
from council.council import Council
from council.endings import Ending, Stop, cancelled, deliberate, interrupted, until
from council.errors import CouncilError, EngineError, RunOwned, UsageError
from council.events import Entry
from council.intent import ChosenBy, Intent, read_intent
from council.ledger import Inheritance, Ledger, Listener, NullStore
from council.members.base import Member
from council.members.registry import Members
from council.minutes import Minutes
from council.money import Price
from council.packet import changed, work_tree
from council.panel import Where
from council.panel.rosters import described
from council.planning import Material, Plan, context_for, make_plan, packet_from, question_from, roster_from
from council.prompting import Prompts
from council.record import Record
from council.render.report import dump, report
from council.rules.lending import lent_keys
from council.rules.spending import summed
from council.settings import Settings
from council.settings_keyring import with_kept
from council.store.sqlite import SqliteStore
from council.types import Json, Outcome, Roster, Step, sound

ALPHABET = "23456789abcdefghjkmnpqrstuvwxyz"  # no characters that look alike
VERBS = ("validate", "brainstorm", "research")
WORK_TREE = "the changes in the work tree"
KEPT_FLAGS = (
    "timeout",
    "max_cost",
    "allow_unpriced",
    "grace",
    "no_resend",
    "profile",
)  # stored with a run, so that a resumed run uses them again
HEARTBEAT = 0.5  # seconds between checks for a cancel request


class Convener(Records):
    """Start, resume and inspect the runs of one folder."""

    def __init__(
        self, folder: Path | None = None, env: Mapping[str, str] | None = None, *,
        flags: Mapping[str, Any] | None = None, config: Path | None = None, members: Iterable[Member] = (),
        store: SqliteStore | None = None,
    ) -> None:  # fmt: skip
        super().__init__((folder or Path.cwd()).resolve(), with_kept(os.environ if env is None else env), store)
        self._flags, self._config, self._own = dict(flags or {}), config, tuple(members)
        self._sit_in(self.folder)

    def _sit_in(self, folder: Path) -> None:
        """Load the settings and members of a folder: the current one, or the folder of a stored run."""
        self.folder = folder
        self.equipment = Equipment(folder, self.env, self._flags, self._config, self._own)

    @property
    def settings(self) -> Settings:
        return self.equipment.settings

    @property
    def members(self) -> Members:
        return self.equipment.members

    def open(self) -> SqliteStore:
        """Open the store and check that the report folder is writable, before any request is sent."""
        store = self.store
        filing.open_folder(self.folder, self.settings.report_dir)
        return store

    async def close(self) -> None:
        await self.members.close()
        await super().close()

    # Money

    def price(self, name: str) -> Price | None:
        """Return a member's price, or None if it is unknown."""
        return self.equipment.price(name)

    def window(self, name: str) -> int | None:
        """Return a member's context window in tokens, or None if it is unknown."""
        return self.equipment.window(name)

    @property
    def caps(self) -> Caps:
        return self.equipment.caps

    async def spending(self, since: str) -> Json:
        """Return the cost of all runs since a day, as the object `council.spend/1`."""
        return summed(await self.store.spending(since), since, today(time.time()), self.caps.day)

    def _as_before(self, setup: Json) -> None:
        """Restore the flags stored with a run; flags given now take precedence."""
        for flag in (*KEPT_FLAGS, "effort"):
            if self._flags.get(flag) is None:
                self._flags[flag] = setup.get(flag)
        if self._config is None and setup.get("config"):
            self._config = Path(setup["config"])

    def _take_over(self, record: Record) -> None:
        """Switch to the folder and the flags of a stored run."""
        if not Path(record.folder).is_dir():
            raise UsageError(
                f'the folder "{record.folder}" of run {record.run} no longer exists: restore it to continue the run'
            )
        self._as_before(record.setup)
        self._sit_in(Path(record.folder))

    # Before anything is spent

    async def plan(
        self,
        words: Sequence[str],
        flags: Mapping[str, Any] | None = None,
        *,
        protocol: str | None = None,
        verbose: bool = False,
        material: Material | None = None,
        strict: bool = False,
        after: str | None = None,
    ) -> Plan:
        """Return the plan for a question; `after` is an earlier run to continue from."""
        words = [sound(word) for word in words]
        if not [word for word in words if word not in VERBS]:
            words, material = self._inferred(words, material or Material())
        known = protocols.known()
        options = dict(flags or {})
        own = protocol in known and protocols.find(str(protocol)).options is not None  # its option names are its own
        given = {} if own else options
        intent = read_intent(words, given, protocol=protocol, verbose=verbose, folder=self.folder, known=known)
        material = material or Material()
        if _is_bare(words, intent) and material == Material():
            _, material = self._inferred([intent.task], material)
            intent = replace(intent, question=WORK_TREE)
        if material.selection:
            intent = replace(intent, why="nothing was named, and the work tree has changes", target=WORK_TREE)
        if material.targets:
            intent = replace(intent, target=" ".join(map(sound, material.targets)))
        intent = replace(intent, options=options)
        if after:
            record = await self.store.load(await self.named(after))
            intent, material = going_on(intent, record, known), replace(material, earlier=earlier(record))
            after = record.run
        where = Where(self.settings, self.env, self.folder, strict)
        plan = await make_plan(intent, where, self.members, material, price=self.price)
        return replace(plan, warnings=(*lent_keys(self.settings, self.env), *plan.warnings), continues=after or "")

    def _inferred(self, words: list[str], material: Material) -> tuple[list[str], Material]:
        """Use the changes in the work tree as the material, or raise UsageError if there are none."""
        if material.base is not None or material.stdin is not None:
            return [*(words or ["validate"]), "what changed"], material
        if not changed(self.folder):
            raise UsageError(
                'no question was given and the work tree has no changes: run council "your question", or see council --help'
            )
        selection = replace(work_tree(self.folder), target=WORK_TREE)
        return [*(words or ["validate"]), WORK_TREE], replace(material, selection=selection)

    # A run

    async def run(self, plan: Plan, listen: Listener, *, stop: Stop | None = None) -> Minutes:
        """Run a plan and return its minutes. `stop` interrupts the run and leaves it resumable."""
        plan.ready()
        self.equipment.refuse_unpriced(plan.roster)
        store = self.open()
        await self._make_ready(plan.roster, listen)
        return await self._begin(store, self._record(plan), plan.as_json(), listen, stop)

    async def enqueue(self, plan: Plan) -> str:
        """Store the run as queued, for the worker to start."""
        plan.ready()
        self.equipment.refuse_unpriced(plan.roster)
        return await self._enqueued(self._record(plan), plan.as_json())

    async def _enqueued(self, record: Record, plan: Json) -> str:
        ledger = Ledger(self.open(), record, wash=washed)
        convened = ev.Convened(record.run, record.name, plan, record.folder)
        await ledger.tell_safely(convened, ("queue", _run_row(record)))
        return record.run

    async def requeue(self, run: str) -> str:
        """Queue an unfinished run for the worker. The flags given now are stored with it."""
        run = await self.named(run)
        with self.store.own(run):
            record = await self.store.load(run)
            if record.status != "complete":
                said = {flag: self._flags[flag] for flag in KEPT_FLAGS if self._flags.get(flag) is not None}
                await self.store.write(run, [("detach", (json.dumps(record.setup | said, ensure_ascii=False),))])
        return run

    async def lacking(self, run: str) -> list[str]:
        """Return the API key variables that a run needs and that are not set."""
        record = await self.store.load(await self.named(run))
        self._take_over(record)
        return self.equipment.lacking(roster_from(record.setup))

    async def fork(
        self, run: str, listen: Listener, *, phase: str | None = None, seats: Mapping[str, str] | None = None,
        before: Callable[[Json], None] = lambda plan: None, stop: Stop | None = None,
    ) -> Minutes:  # fmt: skip
        """Start a new run that reuses the answers of `run` before `phase`, and later answers whose request is unchanged.

        `before` gets the plan before any request is sent.
        """
        record, plan = await self._forked(run, phase, seats or {})
        store, roster = self.open(), roster_from(record.setup)
        before(plan)
        await self._make_ready(roster, listen)
        return await self._begin(store, record, plan, listen, stop)

    async def enqueue_fork(self, run: str, *, phase: str | None = None, seats: Mapping[str, str] | None = None) -> str:
        """Queue a fork for the worker."""
        record, plan = await self._forked(run, phase, seats or {})
        return await self._enqueued(record, plan)

    async def _forked(self, run: str, phase: str | None, seats: Mapping[str, str]) -> tuple[Record, Json]:
        parent = await self.store.load(await self.named(run))
        self._take_over(parent)
        setup, plan = forked(parent, phase, seats, self.equipment)
        setup |= {"version": _version()} | {flag: self._flags.get(flag) for flag in KEPT_FLAGS}
        self.equipment.refuse_unpriced(roster_from(setup))
        return Record(_new_run(), parent.name, parent.folder, time.time(), parent.seed, setup), plan

    def _record(self, plan: Plan) -> Record:
        now = time.time()
        name = f"council-{time.strftime('%Y%m%d', time.localtime(now))}-{filing.slug(plan.question.target or plan.question.text)}"
        config = str(self._config.resolve()) if self._config else None
        kept = {"version": _version(), "day": _day(now), "config": config} | {
            flag: self._flags.get(flag) for flag in KEPT_FLAGS
        }
        return Record(_new_run(), name, str(self.folder), now, secrets.token_hex(16), plan.setup() | kept)

    async def _begin(
        self, store: SqliteStore, record: Record, plan: Json, listen: Listener, stop: Stop | None
    ) -> Minutes:
        with store.own(record.run):
            ledger = Ledger(store, record, listen, wash=washed, parent=await self._parent(record))
            convened = ev.Convened(record.run, record.name, plan, record.folder)
            await ledger.tell_safely(convened, ("run", _run_row(record)))
            return await self._work(ledger, stop)

    async def resume(
        self,
        run: str | None,
        listen: Listener,
        *,
        catch_up: Callable[[list[Entry]], None] = lambda entries: None,
        stop: Stop | None = None,
        resend: bool = True,
    ) -> Minutes:
        """Continue an interrupted run without repeating answered steps. `catch_up` gets the stored entries."""
        run = await self.named(run) if run else await self.newest_unfinished()
        with self.store.own(run):
            record = await self.store.load(run)
            if record.status == "complete":
                return self._again(record)
            self._flags["no_resend"] = not resend or None
            self._take_over(record)
            self.equipment.refuse_unpriced(roster_from(record.setup))
            filing.open_folder(Path(record.folder), self.settings.report_dir)
            await self._make_ready(roster_from(record.setup), listen)
            catch_up(list(record.entries))
            ledger = Ledger(self.store, record, listen, wash=washed, parent=await self._parent(record))
            if len(record.entries) == 1:  # queued, never started
                await self.store.write(run, [("reopen", ())])
            else:
                await ledger.tell_safely(ev.Resumed(run, self.caps.run), ("reopen", ()))
            return await self._work(ledger, stop)

    async def _parent(self, record: Record) -> Inheritance | None:
        """Return the answers that a fork may reuse from its parent run, or None if the run is not a fork."""
        fork = record.setup.get("fork")
        return inheritance(await self.store.load(fork["run"]), fork["from"]) if fork else None

    def _again(self, record: Record) -> Minutes:
        """Return the minutes of a finished run. Rewrite its report if it was deleted or never written."""
        minutes = Minutes.fold(record.entries)
        minutes.calls = {"made": 0, "replayed": len(record.results), "in_doubt": 0}
        path = Path(record.folder) / minutes.report_path
        if minutes.report_path and path.parent.is_dir() and filing.unwritten(path, record.run):
            file_report(record, Minutes.fold(record.entries))
        return minutes

    async def cancel(self, run: str) -> bool:
        """Request the cancellation of a run. Return False if it had already ended."""
        run = await self.named(run)
        if (await self.store.standing(run))[0] not in OPEN:
            return False
        await self.store.write(run, [("cancel", ())])
        with suppress(RunOwned), self.store.own(run):  # no process owns it, so close it here
            record = await self.store.load(run)
            if record.status in OPEN:
                await self._close_cancelled(record)
        return True

    async def _close_cancelled(self, record: Record) -> None:
        try:
            self._take_over(record)
            ledger = Ledger(self.store, record, wash=washed)
            await self._close(ledger, cancelled(self._council(ledger)))
        except UsageError as error:  # its folder or its settings no longer exist, but it must still end
            await give_up(self.store, record, f"cancelled; {error}", "cancelled")

    async def _work(self, ledger: Ledger, stop: Stop | None) -> Minutes:
        council = self._council(ledger)
        protocol = protocols.find(ledger.record.setup["protocol"])
        work = asyncio.ensure_future(deliberate(council, protocol, ledger.record.setup["options"]))
        recalled = asyncio.ensure_future(self._recalled(ledger.run))
        try:
            ending = await until(work, stop or Stop(), recalled)
        except asyncio.CancelledError:
            await self._close(ledger, interrupted(council))
            raise
        return await self._close(ledger, ending or (interrupted if recalled.cancelled() else cancelled)(council))

    async def _recalled(self, run: str) -> None:
        """Return when a cancel request has been stored for the run."""
        while True:
            if await self.store.is_cancelled(run):
                return
            await asyncio.sleep(HEARTBEAT)

    def _council(self, ledger: Ledger) -> Council:
        setup = ledger.record.setup
        question, roster = question_from(setup), roster_from(setup)
        folder = protocols.find(setup["protocol"]).prompts
        day = setup.get("day") or _day(ledger.record.created)
        return Council(
            roster, question, ledger=ledger, prompts=Prompts(ledger.record.seed, [folder] if folder else []),
            carry_out=self.equipment.caller(ledger, roster, self.store), grace=self._flags.get("grace"), effort=setup.get("effort"),
            context=context_for(question, roster, packet_from(setup), day),
            effects=self.equipment.effects(setup, Path(ledger.record.folder)), limits=self.equipment.limits(),
        )  # fmt: skip

    async def _make_ready(self, roster: Roster, listen: Listener) -> None:
        """Download and start whatever the members need, before the run is stored."""

        def progress(what: str, done: int, total: int) -> None:
            listen(Entry(0, time.time(), ev.Fetching(what, done, total)))

        for name in roster.everybody:
            await self.members(name).ready(progress)

    async def _close(self, ledger: Ledger, ending: Ending) -> Minutes:
        record, folder = ledger.record, self.settings.report_dir
        path = report_path(record, folder)
        tell_verdicts(ledger, folder)
        closed = ev.Closed(
            ending.status, asdict(ending.verdict), dict(ledger.calls), ending.stopped, path, ending.reason
        )
        await ledger.close(closed, lambda entries: dump(report(Minutes.fold(entries))).decode())
        minutes = Minutes.fold(record.entries)
        file_report(record, minutes)
        return minutes

    # Audit

    async def audit(self, run: str) -> list[str]:
        """Return the problems found in a run's record; an empty list if there are none."""
        record = await self.store.load(await self.named(run))
        ours = record.setup.get("version") == _version()  # other versions format reports differently
        kept = record.report
        problems = audit(record, lambda entries: dump(report(Minutes.fold(entries))).decode() if ours else kept)
        if ours and record.status == "complete":
            problems += await self._verdict_again(record)
        return problems

    async def _verdict_again(self, record: Record) -> list[str]:
        """Run the protocol again on the ledger alone and report a verdict that differs from the stored one."""
        kept = json.dumps(Minutes.fold(record.entries).verdict)
        ledger = Ledger(NullStore(), replace(record, entries=list(record.entries)), strict=False)
        try:
            council = self._council(ledger)
            council.carry_out = _refuse
            ending = await deliberate(council, protocols.find(record.setup["protocol"]), record.setup["options"])
        except CouncilError as error:
            return [f"the verdict cannot be recomputed: {error}"]
        again = json.dumps(clear_of_secrets(asdict(ending.verdict)))
        return [] if again == kept else ["the verdict recomputed from the statements differs from the stored one"]

    def rosters(self, name: str | None = None) -> list[Json]:
        """Describe all named rosters, or only `name`, each with its source."""
        return described(Where(self.settings, self.env, self.folder), name)


def _new_run() -> str:
    return "r" + "".join(secrets.choice(ALPHABET) for _ in range(5))


def _run_row(record: Record) -> tuple[object, ...]:
    return record.name, record.folder, record.created, record.seed, json.dumps(record.setup, ensure_ascii=False)


def _day(at: float) -> str:
    """Return the UTC date of a run. Resuming does not change it."""
    return time.strftime("%Y-%m-%d", time.gmtime(at))


@cache
def _version() -> str:
    try:
        return version("council")
    except PackageNotFoundError:  # run from source, not installed
        return "unknown"


def _is_bare(words: Sequence[str], intent: Intent) -> bool:
    """Return whether the words are a single verb without a target: `council review`."""
    return len(" ".join(words).split()) == 1 and intent.target is None and intent.chosen_by == ChosenBy.VERB


async def _refuse(step: Step) -> Outcome:
    raise EngineError(f'the run is complete, but its ledger has no result for the step "{step.ask.key}"')
