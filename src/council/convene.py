"""The composition root: plan, run, resume, replay. Members, the store and the protocols meet here and nowhere else."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from council import events as ev
from council import filing, protocols
from council.audit import audit
from council.calling.budget import Budget, Caps, today
from council.calling.families import Families
from council.calling.limits import Gate, gate_of, open_gate
from council.calling.loop import Caller
from council.calling.prices import price_of
from council.calling.windows import window_of
from council.council import Council, Effect
from council.endings import Ending, Stop, deliberate, interrupted, until
from council.errors import (
    ConfigError,
    CouncilError,
    EngineError,
    UnknownRun,
    UsageError,
)
from council.events import Entry
from council.intent import Intent, read_intent
from council.ledger import Ledger, Listener, NullStore
from council.members.base import Member
from council.members.registry import Members
from council.minutes import Minutes
from council.money import FREE, Price
from council.packet import changed, look, scrub, work_tree
from council.packet.admitting import admitting
from council.panel import Where
from council.panel.rosters import described
from council.planning import Material, Plan, context_for, make_plan, packet_from, question_from, roster_from
from council.prompting import Prompts
from council.record import Record
from council.render.analysis import analysis
from council.render.markdown import document
from council.render.report import dump, report
from council.rules.lending import lent_keys
from council.rules.spending import summed
from council.search import finder, research, searched_folder
from council.settings import cache_folder, data_folder, is_reasoning, load_settings, split_member
from council.settings_keyring import with_kept
from council.store.sqlite import SqliteStore
from council.types import Json, Outcome, Roster, Step, sound

ALPHABET = "23456789abcdefghjkmnpqrstuvwxyz"  # nothing that is misread
VERBS = ("validate", "brainstorm", "research")
WORK_TREE = "the changes in the work tree"
KEPT_FLAGS = ("timeout", "max_cost", "allow_unpriced", "grace", "no_resend")  # what a resumed run goes on with
PROCESSES = 4  # of one command-line agent at once
LIMITS = {"explorer": "COUNCIL_EXPLORER_TIMEOUT", "r2": "COUNCIL_R2_TIMEOUT"}  # clocks of their own, by their variables


class Convener:
    """Everything one process needs to convene councils in one folder."""

    def __init__(
        self, folder: Path | None = None, env: Mapping[str, str] | None = None, *,
        flags: Mapping[str, Any] | None = None, config: Path | None = None, members: Iterable[Member] = (),
    ) -> None:  # fmt: skip
        self.env = with_kept(os.environ if env is None else env)
        self._flags, self._config, self._own = dict(flags or {}), config, tuple(members)
        self._sit_in((folder or Path.cwd()).resolve())
        self._store: SqliteStore | None = None

    def _sit_in(self, folder: Path) -> None:
        """Take over the settings of a folder: its own, or that of a run which was convened elsewhere."""
        self.folder = folder
        self.settings = load_settings(folder, self.env, flags=self._flags, config=self._config)
        self.members = Members(self.settings, self.env, cache_folder(self.env))
        for member in self._own:
            self.members.add(member)

    @property
    def store(self) -> SqliteStore:
        if self._store is None:
            self._store = SqliteStore(data_folder(self.env))
        return self._store

    def open(self) -> SqliteStore:
        """Find out whether a run and its report can be kept, before anything is said or spent."""
        store = self.store
        filing.open_folder(self.folder, self.settings.report_dir)
        return store

    async def close(self) -> None:
        await self.members.close()
        if self._store:
            self._store.close()
            self._store = None

    # Money

    def price(self, name: str) -> Price | None:
        """What a member charges; None if nobody knows."""
        listed = price_of(name, self.settings)
        try:
            return FREE if listed is None and self.members(name).free else listed
        except ConfigError:  # nobody can sit under that name, as will be said where somebody should
            return None

    def window(self, name: str) -> int | None:
        """How many tokens a member can be told at once; None if nobody knows."""
        return window_of(name, self.settings)

    @property
    def caps(self) -> Caps:
        return Caps(self.settings.budget.get("max_cost"), self.settings.budget.get("max_cost_per_day"))

    async def spending(self, since: str) -> Json:
        """What all runs cost from that day on, summed; the object `council.spend/1`."""
        return summed(await self.store.spending(since), since, today(time.time()), self.caps.day)

    def _refuse_unpriced(self, roster: Roster) -> None:
        """A cap cannot be kept where a price is unknown."""
        unknown = [name for name in roster.everybody if self.price(name) is None] if self.caps else []
        if unknown and not self._flags.get("allow_unpriced"):
            raise UsageError(
                f'nobody knows what "{unknown[0]}" costs, so the budget could not be kept and nothing was started: '
                f'tell its price in [prices."{unknown[0]}"], or pass --allow-unpriced'
            )

    def _as_before(self, setup: Json) -> None:
        """What was said when the run began holds, unless something else is said now."""
        for flag in (*KEPT_FLAGS, "effort"):
            if self._flags.get(flag) is None:
                self._flags[flag] = setup.get(flag)

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
    ) -> Plan:
        words = [sound(word) for word in words]
        if not [word for word in words if word not in VERBS]:
            words, material = self._inferred(words, material or Material())
        known = protocols.known()
        options = dict(flags or {})
        own = protocol in known and protocols.find(str(protocol)).options is not None  # names them as it likes
        given = {} if own else options
        intent = read_intent(words, given, protocol=protocol, verbose=verbose, folder=self.folder, known=known)
        material = material or Material()
        if _is_bare(words, intent) and material == Material():
            _, material = self._inferred([intent.task], material)
            intent = replace(intent, question=WORK_TREE)
        if material.selection:
            intent = replace(intent, why="nothing was named, and the work tree has changes", target=WORK_TREE)
        intent = replace(intent, options=options)
        where = Where(self.settings, self.env, self.folder, strict)
        plan = await make_plan(intent, where, self.members, material, price=self.price)
        return replace(plan, warnings=(*lent_keys(self.settings, self.env), *plan.warnings))

    def _inferred(self, words: list[str], material: Material) -> tuple[list[str], Material]:
        """Nothing was named: with changes in the work tree those are meant, else nothing can be."""
        if material.base is not None or material.stdin is not None:
            return [*(words or ["validate"]), "what changed"], material
        if not changed(self.folder):
            raise UsageError(
                'nothing was asked, and nothing has changed here: council "your question" convenes a council, council --help tells the rest'
            )
        selection = replace(work_tree(self.folder), target=WORK_TREE)
        return [*(words or ["validate"]), WORK_TREE], replace(material, selection=selection)

    # A run

    async def run(self, plan: Plan, listen: Listener, *, stop: Stop | None = None) -> Minutes:
        """Convene the council of a plan. Events go to `listen`; `stop` interrupts it and leaves it resumable."""
        plan.ready()
        self._refuse_unpriced(plan.roster)
        store = self.open()
        await self._make_ready(plan.roster, listen)
        now = time.time()
        run = "r" + "".join(secrets.choice(ALPHABET) for _ in range(5))
        name = f"council-{time.strftime('%Y%m%d', time.localtime(now))}-{filing.slug(plan.question.target or plan.question.text)}"
        setup = plan.setup() | {"version": _version()} | {flag: self._flags.get(flag) for flag in KEPT_FLAGS}
        record = Record(run, name, str(self.folder), now, secrets.token_hex(16), setup)
        with store.own(run):
            ledger = Ledger(store, record, listen, wash=washed)
            row = ("run", (name, record.folder, now, record.seed, json.dumps(record.setup, ensure_ascii=False)))
            await ledger.tell_safely(ev.Convened(run, name, plan.as_json(), record.folder), row)
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
        """Take a run up where it stopped: what was answered is not asked again. `catch_up` gets what happened before."""
        run = await self.named(run) if run else await self.store.newest_unfinished(str(self.folder))
        if run is None:
            raise UnknownRun("there is no unfinished run of this folder: `council runs` lists all of them")
        with self.store.own(run):
            record = await self.store.load(run)
            if record.status == "complete":
                return self._again(record)
            self._flags["no_resend"] = not resend or None
            self._as_before(record.setup)
            self._sit_in(Path(record.folder))
            self._refuse_unpriced(roster_from(record.setup))
            filing.open_folder(Path(record.folder), self.settings.report_dir)
            await self._make_ready(roster_from(record.setup), listen)
            catch_up(list(record.entries))
            ledger = Ledger(self.store, record, listen, wash=washed)
            await ledger.tell_safely(ev.Resumed(run, self.caps.run), ("reopen", ()))
            return await self._work(ledger, stop)

    def _again(self, record: Record) -> Minutes:
        """A finished run is shown again; its report is written again if it was deleted, or a crash left it out."""
        minutes = Minutes.fold(record.entries)
        minutes.calls = {"made": 0, "replayed": len(record.results), "in_doubt": 0}
        path = Path(record.folder) / minutes.report_path
        if minutes.report_path and path.parent.is_dir() and filing.unwritten(path, record.run):
            self._file(record, Minutes.fold(record.entries))
        return minutes

    async def _work(self, ledger: Ledger, stop: Stop | None) -> Minutes:
        council = self._council(ledger)
        protocol = protocols.find(ledger.record.setup["protocol"])
        work = asyncio.ensure_future(deliberate(council, protocol, ledger.record.setup["options"]))
        try:
            ending = await until(work, stop) or interrupted(council)
        except asyncio.CancelledError:
            await self._close(ledger, interrupted(council))
            raise
        return await self._close(ledger, ending)

    def _council(self, ledger: Ledger) -> Council:
        setup = ledger.record.setup
        question, roster = question_from(setup), roster_from(setup)
        folder = protocols.find(setup["protocol"]).prompts
        return Council(
            roster, question, ledger=ledger, prompts=Prompts(ledger.record.seed, [folder] if folder else []),
            carry_out=self._caller(ledger, roster), grace=self._flags.get("grace"), effort=setup.get("effort"),
            context=context_for(question, roster, packet_from(setup), _day(ledger.record.created)), effects=self._effects(setup, Path(ledger.record.folder)),
            limits={kind: float(self.settings.variables[name]) for kind, name in LIMITS.items()},
        )  # fmt: skip

    def _caller(self, ledger: Ledger, roster: Roster) -> Caller:
        families, resend = Families({seat.name: seat.vendor for seat in roster.seats}), not self._flags.get("no_resend")
        return Caller(self.members, ledger, self._deadline, resend, self._gate, families, self._purse(ledger))

    def _gate(self, member: str) -> Gate:
        kind, name = split_member(member)
        if kind == "cli":  # each call is a process of its own, and none of them is small
            return gate_of(f"cli:{name.partition(':')[0]}", PROCESSES)
        provider = self.settings.providers.get(kind)
        return gate_of(provider.base_url, provider.max_connections) if provider else open_gate(member)

    def _purse(self, ledger: Ledger) -> Budget:
        return Budget(self.store, ledger.record, lambda member: self.price(member.name), self.caps)

    def _effects(self, setup: Json, folder: Path) -> dict[str, Effect]:
        meant = setup["options"].get("search")
        searching = {"search": self._searching(meant, folder)} if isinstance(meant, str) else {}
        return {"look": self._looking(folder), **searching}

    def _searching(self, meant: str, folder: Path) -> Effect:
        async def searched(wanted: Json) -> list[Json]:
            found = finder(meant, self.settings, self.env, folder, admitting(searched_folder(meant, folder)))
            queries = [scrub(query) for query in wanted["queries"]]  # they leave the machine too
            most, freshness = self.settings.search["max_results"], wanted.get("freshness", "none")
            try:
                return await research(found, queries, most=most, freshness=freshness)
            finally:
                await found.close()

        return searched

    def _looking(self, root: Path) -> Effect:
        async def looked(wanted: Json) -> list[Json]:
            return await asyncio.to_thread(look, root, wanted, redact=True)

        return looked

    def _deadline(self, member: str) -> float:
        return self.settings.deadline(reasoning=is_reasoning(member) or self.settings.effort is not None)

    async def _make_ready(self, roster: Roster, listen: Listener) -> None:
        """Fetch and start what the members need, before the run exists and anything can be lost."""

        def progress(what: str, done: int, total: int) -> None:
            listen(Entry(0, time.time(), ev.Fetching(what, done, total)))

        for name in roster.everybody:
            await self.members(name).ready(progress)

    async def _close(self, ledger: Ledger, ending: Ending) -> Minutes:
        record = ledger.record
        path = self._report_path(record)
        self._tell_verdicts(ledger)
        closed = ev.Closed(
            ending.status, asdict(ending.verdict), dict(ledger.calls), ending.stopped, path, ending.reason
        )
        await ledger.close(closed, lambda entries: dump(report(Minutes.fold(entries))).decode())
        minutes = Minutes.fold(record.entries)
        self._file(record, minutes)
        return minutes

    def _file(self, record: Record, minutes: Minutes) -> None:
        """The report, and each judge's analysis beside it."""
        folder = Path(record.folder)
        by_key = {f"{said.phase}/{said.seat}": said for said in minutes.statements}
        for key, path in minutes.files.items():
            filing.file(folder / path, analysis(minutes, by_key[key]))
        filing.file(folder / minutes.report_path, document(minutes))

    def _tell_verdicts(self, ledger: Ledger) -> None:
        """A signal for each judge who gave a verdict: what it is, and where its analysis will stand."""
        record, minutes = ledger.record, Minutes.fold(ledger.record.entries)
        question = question_from(record.setup)
        folder = filing.open_folder(Path(record.folder), self.settings.report_dir)
        for said in minutes.statements:
            if (
                question.task != "validate"
                or "verdict" not in (said.reply or {})
                or f"{said.phase}/{said.seat}" in minutes.files
            ):
                continue
            seat = f"{said.seat}-r2" if said.phase == "r2" else said.seat
            path = filing.reserve(folder, question.target or question.text, seat, record.created, record.run)
            shown = os.path.relpath(path, record.folder)
            reply = said.reply or {}
            ledger.tell(ev.Voted(said.seat, said.phase, reply["verdict"], reply.get("confidence", ""), shown))

    def _report_path(self, record: Record) -> str:
        """The name the report had before it was resumed, else a new one; as seen from the run's folder."""
        folder = filing.open_folder(Path(record.folder), self.settings.report_dir)
        if known := _last_path(record.entries):
            return known
        question = question_from(record.setup)
        kind = record.setup["protocol"] if question.task == "ask" else question.task
        if record.setup["options"].get("quick") or record.setup["protocol"] == "quick":
            kind = "quick"
        path = filing.reserve(folder, kind, question.target or question.text, record.created, record.run)
        return os.path.relpath(path, record.folder)

    # Looking back

    async def named(self, run: str) -> str:
        """The run of that name, or the only one whose name begins so."""
        names = [row["id"] for row in await self.store.runs()]
        near = [name for name in names if name.startswith(run)]
        return near[0] if run not in names and len(near) == 1 else run

    async def entries(self, run: str) -> list[Entry]:
        return (await self.store.load(await self.named(run))).entries

    async def minutes(self, run: str) -> Minutes:
        return Minutes.fold(await self.entries(run))

    async def audit(self, run: str) -> list[str]:
        """What is wrong with a run's record; nothing, if all is well."""
        record = await self.store.load(await self.named(run))
        ours = record.setup.get("version") == _version()  # another version words its reports in another way
        kept = record.report
        problems = audit(record, lambda entries: dump(report(Minutes.fold(entries))).decode() if ours else kept)
        if ours and record.status == "complete":
            problems += await self._verdict_again(record)
        return problems

    async def _verdict_again(self, record: Record) -> list[str]:
        """The protocol run once more over the ledger alone must come to the verdict that was kept."""
        kept = json.dumps(Minutes.fold(record.entries).verdict)
        ledger = Ledger(NullStore(), replace(record, entries=list(record.entries)), strict=False)
        try:
            council = self._council(ledger)
            council.carry_out = _refuse
            ending = await deliberate(council, protocols.find(record.setup["protocol"]), record.setup["options"])
        except CouncilError as error:
            return [f"the verdict cannot be recomputed: {error}"]
        again = json.dumps(clear_of_secrets(asdict(ending.verdict)))
        return [] if again == kept else ["the verdict recomputed from the statements is not the one that was kept"]

    def rosters(self, name: str | None = None) -> list[Json]:
        """The rosters that have a name, or the one that is asked for, with where each comes from."""
        return described(Where(self.settings, self.env, self.folder), name)

    async def newest(self) -> str:
        """The newest run of this folder."""
        for run in await self.store.runs():
            if run["folder"] == str(self.folder):
                return str(run["id"])
        raise UnknownRun('there is no run of this folder yet: `council "…"` makes one')

    async def runs(self) -> list[Json]:
        """Every run, the unfinished first, then the newest."""
        rows = [
            run | {"running": run["status"] == "running" and self.store.owned(run["id"])}
            for run in await self.store.runs()
        ]
        return sorted(rows, key=lambda run: run["status"] == "complete")


def _day(at: float) -> str:
    """The day of a run, which stays its day however often it is resumed."""
    return time.strftime("%Y-%m-%d", time.gmtime(at))


@cache
def _version() -> str:
    try:
        return version("council")
    except PackageNotFoundError:  # run from its sources, not installed
        return "unknown"


def _is_bare(words: Sequence[str], intent: Intent) -> bool:
    """One word that only says what to do, and nothing to do it to: `council review`."""
    return len(" ".join(words).split()) == 1 and intent.target is None and intent.why.startswith("the verb")


FOREIGN = (ev.Stated, ev.WasAbsent, ev.Faulted, ev.Noted, ev.LookedUp, ev.Closed)  # events that hold what others wrote


def clear_of_secrets(value: Any) -> Any:
    if isinstance(value, str):
        return scrub(value)
    if isinstance(value, dict):
        return {name: clear_of_secrets(item) for name, item in value.items()}
    return [clear_of_secrets(item) for item in value] if isinstance(value, (list, tuple)) else value


def washed(event: ev.Event) -> ev.Event:
    """Views and reports are made of events, so a secret that a member wrote down ends here. Prompts passed the gate before."""
    if not isinstance(event, FOREIGN):
        return event
    return ev.from_payload(event.type, clear_of_secrets(ev.payload(event)))


async def _refuse(step: Step) -> Outcome:
    raise EngineError(f'the run is complete, but the ledger holds no result for the step "{step.ask.key}"')


def _last_path(entries: Sequence[Entry]) -> str:
    paths = [entry.event.report_path for entry in entries if isinstance(entry.event, ev.Closed)]
    return paths[-1] if paths else ""
