"""Batches: run many questions in one process, with one cost limit, and continue after a crash without repeating a row.

A row is one run, with an id that follows from the batch and the row. Ended rows are in the output file, started ones in
the run store. `batch_execution.run_here` executes one row; a function with the same signature may queue it instead.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from council import events as ev
from council import protocols
from council.calling.budget import local_date
from council.engine.minutes import Minutes
from council.engine.plan_object import CostEstimate
from council.errors import (
    BudgetSpent,
    CapTooLow,
    CouncilError,
    StoreError,
    TrustRequired,
    UnknownRun,
    UsageError,
    message_for,
)
from council.flags import flag_table, negatable_options
from council.members.base import Member
from council.members.human import HUMAN
from council.money import nanos_to_usd, usd_to_nanos
from council.planning.plan import Material, Plan, read_request
from council.planning.setup import BatchLabel, RunSetup
from council.render.report import build_report
from council.runs import batch_execution as execution
from council.runs.batch_output import BatchFailure, BatchOutput, EndedRow, Estimate, PlannedGroup, Progress, Summary
from council.runs.batch_rows import DONE, LEFT_OUT, MATERIAL_OPTIONS, Problems, Row, RowTable
from council.runs.outcome import EXIT_FAILED, StopEvent, exit_code
from council.runs.run_context import PERSISTED_FLAGS
from council.runs.service import Convener
from council.search import can_search
from council.settings import SettingFlags
from council.settings.schema import quote_value
from council.store.interface import RunStatus
from council.text_cleanup import single_line
from council.types import Json

if TYPE_CHECKING:
    from council.runs.waves import Waves

DEFAULT_CONCURRENCY = 16  # rows at once; the limits of providers hold back their requests
MAX_LISTED_FAILURES = 1000  # that are kept in memory; the output file has all of them
MIN_FAILED_START = 10  # if so many rows fail at the beginning, and no other ends, the batch stops
CHECKED_CHARS = 200  # of a question whose protocol is given
LOOKUP_ROWS = 400  # runs that one query looks for
NO_LIMIT_USD = 1e6
LIMIT_GROWTH = 4  # how much more of the batch's limit a row gets that needs more than its estimate
# Options that are settings of a run.
SETTING_OPTIONS = tuple(name for name in SettingFlags.__annotations__ if name not in ("trust", "is_row"))


@dataclass(frozen=True, slots=True)
class BatchSettings:
    """Settings of a batch. `defaults` are options of all rows; those of a row take precedence."""

    defaults: Json = field(default_factory=dict)
    flags: SettingFlags = field(default_factory=lambda: SettingFlags())  # of every run, such as `trust`
    max_cost: float | None = None
    concurrency: int = DEFAULT_CONCURRENCY
    config: Path | None = None
    env: Mapping[str, str] | None = None
    members: tuple[Member, ...] = ()  # custom member objects
    seed: str = ""  # decides the order of labels in every run; empty: random
    waves: Waves | None = None  # send requests through the batch interfaces of vendors
    is_evaluation: bool = False  # lists of runs leave out its runs
    # By row id: the folder of its files, if that is not the folder of the run. Then each row is planned by itself.
    folders: Mapping[str, Path] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StoredRun:
    """A stored run of a row that is to be continued, its cost so far and its estimate."""

    run: str
    usd: float = 0.0  # with what is in doubt
    in_doubt: float = 0.0
    cost: CostEstimate | None = None
    has_limit: bool = False  # a cost limit is stored with it
    need: int = 0  # billionths of a dollar that its requests may cost at most; 0 if unknown


class QuestionBatch:
    """A batch of rows with an output file: `check` it, `run` it, and `close` it."""

    def __init__(self, table: RowTable, output: BatchOutput, records: Convener, settings: BatchSettings) -> None:
        self.table, self.output, self.settings = table, output, settings
        self._records = records
        self._run_row: execution.RunRow = execution.run_here
        self.workers: int | None = None  # that execute the rows; 0: this process, although the store is shared
        self.at_once: set[str] = set()  # members that no batch interface is used for
        self._conveners = execution.ConvenerPool(self._make_convener)
        self._stored: dict[str, StoredRun] = {}  # by row id: runs that have started
        self._retried: dict[str, str | None] = {}  # rows of the output file that are not complete → their runs
        self._counted: set[str] = set()  # rows of the output file that are not run again
        self._generations: dict[str, int] = {}  # by row id, if the first id of its run is used
        self._pool: execution.CostPool | None = None
        self._halted = ""
        self._has_started = False
        self.progress = Progress(0, 0, 0)

    def _make_convener(self, flags: SettingFlags) -> Convener:
        return Convener(
            self._records.folder,
            self.settings.env,
            flags=flags | self.settings.flags,
            config=self.settings.config,
            members=self.settings.members,
            store=self._records.store,
            keeps_open=True,
            waves=self.settings.waves,
        )

    @property
    def _may_use_workers(self) -> bool:
        return not self.settings.members and self.settings.waves is None

    # Before anything is sent

    async def check(self, on_checked: Callable[[int], None] = lambda count: None) -> Estimate:
        """Find the rows that are left, check each of them, and return what they may cost. Nothing is stored or sent."""
        problems, table = Problems(), self.table
        rows = table.count()
        self.progress = now = Progress(rows, rows - table.count(LEFT_OUT), 0)
        self._mark_ended(problems)
        problems.check()
        now.already_done = table.count(DONE)
        groups = await self._check_rows(problems, on_checked)
        problems.check()
        await self._find_stored_runs()
        if self._records.store.is_shared and self._run_row is execution.run_here and self._may_use_workers:
            self.workers = await execution.count_workers(self._records.store)
        return Estimate(tuple(groups), now, self.settings.max_cost)

    def _mark_ended(self, problems: Problems) -> None:
        """Mark the rows that the output file has. Rows that are not complete are run again."""
        for ended in self.output.read():
            row = self.table.find(ended.id)
            is_selected = row is not None and self.table.get_state(ended.id) != LEFT_OUT
            has_changed = row is not None and bool(ended.hash) and ended.hash != row.hash
            if is_selected and ended.status != RunStatus.COMPLETE:
                self._retried[ended.id] = None if has_changed else ended.run
                self.progress.usd_before += ended.usd if has_changed else 0.0
                continue
            if row and has_changed:
                problems.add(
                    row.line,
                    f"the row {quote_value(row.id)} has a result in {quote_value(self.output.path.name)}, but "
                    "its question or options have changed since: give it a new id, or remove its line from that file",
                )
            self.progress.usd_before += ended.usd
            self._counted.add(ended.id)
            if is_selected:
                self.progress.usd_selected += ended.usd
                self.table.mark(ended.id, DONE)

    async def _check_rows(self, problems: Problems, on_checked: Callable[[int], None]) -> list[PlannedGroup]:
        """Check every pending row, and plan one row of each protocol, task and set of options."""
        groups: dict[str, PlannedGroup] = {}
        for count, n in enumerate(self.table.order_pending(), 1):
            row = self.table.get(n)
            on_checked(count)
            if count % LOOKUP_ROWS == 0:
                await asyncio.sleep(0)
            try:
                await self._check_row(row, groups)
            except (StoreError, TrustRequired):
                raise
            except CouncilError as error:
                problems.add(row.place, message_for(error, "http"))
        return list(groups.values())

    async def _check_row(self, row: Row, groups: dict[str, PlannedGroup]) -> None:
        options = self._merge(row)
        flags = self._add_limit(select_settings(options), self.settings.max_cost)
        async with self._conveners.use(flags) as convener:
            convener.settings.require_trust()
            protocol, known = options.get("protocol"), protocols.protocol_names()
            own = protocol in known and protocol not in protocols.SHIPPED_PROTOCOLS  # its option names are its own
            text = row.question[:CHECKED_CHARS] if protocol else row.question  # a prefix or a verb is at its beginning
            intent, _ = read_request(
                [text],
                {} if own else select_protocol_options(options),
                self._make_material(row, options),
                protocol=protocol,
                verbose=False,
                folder=self.settings.folders.get(row.id, convener.folder),
                known=known,
                can_search=lambda: can_search(convener.settings, convener.env, convener.folder),
            )
            fixed = {name: value for name, value in options.items() if name not in MATERIAL_OPTIONS}
            place = str(self.settings.folders.get(row.id, ""))
            key = json.dumps([intent.protocol, intent.task, fixed, place], sort_keys=True)
            if key not in groups:
                plan = await self._plan(convener, row)
                convener.check_plan(plan)
                groups[key] = PlannedGroup(plan)
                self.at_once |= {name for name in plan.roster.member_names if not convener.run_context.is_slow(name)}
            groups[key].rows += 1

    async def _find_stored_runs(self) -> None:
        """Find the runs of rows that have started and not ended, to continue them first and to count their cost."""
        if not (self.output.is_known_batch or self._retried):
            return
        numbers = self.table.list_unfinished()
        for start in range(0, len(numbers), LOOKUP_ROWS):
            rows = [self.table.get(n) for n in numbers[start : start + LOOKUP_ROWS]]
            waiting = [row for row in rows if row.id not in self._counted]
            generation = 0
            while waiting:
                runs = {self._name_run(row, generation): row for row in waiting}
                used = await self._records.store.find_used_ids(list(runs))
                waiting = [runs[run] for run in used if not await self._adopt(run, runs[run])]
                generation += 1
                self._generations.update({row.id: generation for row in waiting})

    def _name_run(self, row: Row, generation: int) -> str:
        """Return the id that a run of this row has: the one in the output file, or one that follows from the row."""
        listed = None if generation else self._retried.get(row.id)
        return listed or execution.make_run_id(self.output.batch, row, generation)

    async def _adopt(self, run: str, row: Row) -> bool:
        """Remember a stored run if it belongs to this row, and return whether it does. A removed one does not."""
        try:
            record = await self._records.store.load(run)
        except UnknownRun:
            return False
        setup = RunSetup.of(record)
        label = setup.batch
        is_listed = run == self._retried.get(row.id)
        if label is None or label["row"] != row.id or not (is_listed or label["batch"] == self.output.batch):
            return False
        usd = nanos_to_usd(sum(spent.amount for spent in record.spending.values()))
        convened = record.entries[0].event if record.entries else None
        plan = convened.plan if isinstance(convened, ev.Convened) else {}
        self.progress.usd_before += usd
        if self.table.get_state(row.id) != LEFT_OUT:
            has_limit = setup.flags.get("max_cost") is not None
            in_doubt = nanos_to_usd(sum(spent.amount for spent in record.spending.values() if spent.is_in_doubt))
            self._stored[row.id] = StoredRun(run, usd, in_doubt, plan.get("cost"), has_limit, setup.spending.total)
            self.table.mark_started(row.id)
        return True

    # Options

    def _merge(self, row: Row) -> Json:
        return self.settings.defaults | row.options

    def _add_limit(self, flags: SettingFlags, limit: float | None) -> SettingFlags:
        """Return the settings of a row with the limit of the batch, if its own cap is not lower."""
        own = flags.get("max_cost", self._records.caps.run)
        if limit is None or (own is not None and own <= limit):
            return flags
        return {**flags, "max_cost": limit, "is_row": True}

    def _make_material(self, row: Row, options: Mapping[str, Any]) -> Material:
        kept = {name: options[name] for name in ("spec", "base", "redact", "skip_secrets", "look") if options.get(name)}
        return Material(
            **kept,
            decisions=tuple(options.get("decisions") or ()),
            stdin=options.get("material"),
            match=not options.get("no_match"),
            folder=self.settings.folders.get(row.id),
        )

    def _make_label(self, row: Row) -> BatchLabel:
        run = execution.make_run_id(self.output.batch, row, self._generations.get(row.id, 0))
        label: BatchLabel = {"batch": self.output.batch, "row": row.id, "hash": row.hash, "run": run}
        if self.settings.seed:
            seed = f"{self.settings.seed}\n{row.id}".encode("utf-8", "surrogatepass")
            label["seed"] = hashlib.sha256(seed).hexdigest()[:32]
        if self.settings.is_evaluation:
            label["evaluation"] = True
        return label

    async def _plan(self, convener: Convener, row: Row, *, will_run: bool = False) -> Plan:
        options = self._merge(row)
        plan = await convener.plan(
            [row.question],
            select_protocol_options(options),
            protocol=options.get("protocol"),
            verbose=bool(options.get("verbose")),
            material=self._make_material(row, options),
            strict=bool(options.get("strict")),
            after=options.get("continues"),
            will_run=will_run,
        )
        for seat in plan.roster.all_seats:
            if HUMAN in (seat.member, *seat.fallbacks):
                raise UsageError(f'seat "{seat.name}" is a person, who cannot be asked in a batch: name a model for it')
        return plan

    # Running

    async def run(self, stop: StopEvent, on_row: Callable[[EndedRow], None] = lambda row: None) -> Summary:
        """Run the rows that are left. `stop` interrupts the running ones and starts no other."""
        self._has_started = True
        if self.workers:
            self._run_row = execution.run_by_workers
        self.output.remove_rows(self._retried)
        now, cap = self.progress, self.settings.max_cost
        if (limit := await self._find_limit(cap)) is not None:
            self._pool = execution.CostPool(limit, _to_nanos(now.usd_before))
        order, now.started = iter(self.table.order_pending()), time.monotonic()
        count = min(self.settings.concurrency, now.left)
        workers = [asyncio.ensure_future(self._work(order, stop, on_row)) for _ in range(count)]
        stopping = asyncio.ensure_future(self._close_pool(stop))
        try:
            await _wait_for_all(workers, stop)
        finally:
            stopping.cancel()
            with suppress(asyncio.CancelledError):
                await stopping
        stopped = "interrupted" if stop.is_set() and now.left else self._halted
        return Summary(now, self.output.path, stopped, cap)

    async def _find_limit(self, cap: float | None) -> int | None:
        """Return the limit of the batch with its earlier rows: its own, or what is left of the day if that is less."""
        limits = [] if cap is None else [_to_nanos(cap)]
        if (day := self._records.caps.day) is not None:
            spent = await self._records.store.sum_day(local_date(time.time()))
            limits.append(_to_nanos(self.progress.usd_before) + max(0, _to_nanos(day) - spent))
        return min(limits, default=None)

    async def _close_pool(self, stop: StopEvent) -> None:
        await stop.wait()
        if self._pool:
            await self._pool.close()

    async def _work(self, order: Iterator[int], stop: StopEvent, on_row: Callable[[EndedRow], None]) -> None:
        for n in order:
            if stop.is_set() or self._halted:
                return
            row = self.table.get(n)
            self.progress.running += 1
            try:
                ended = await self._end_row(row, stop)
            finally:
                self.progress.running -= 1
            if ended:
                await self.output.append(ended)
                self._count(row, ended)
                on_row(ended)

    def _count(self, row: Row, ended: EndedRow) -> None:
        now = self.progress
        match ended.status:
            case RunStatus.COMPLETE:
                now.complete += 1
            case RunStatus.INCOMPLETE:
                now.incomplete += 1
            case _:
                now.failed += 1
        if ended.status != RunStatus.COMPLETE and len(now.failures) < MAX_LISTED_FAILURES:
            why = ended.error or ""
            now.failures.append(BatchFailure(id=row.id, line=row.line, run=ended.run, status=ended.status, reason=why))
        if not self._halted and now.failed == now.ended >= max(MIN_FAILED_START, self.settings.concurrency):
            self._halted = "failures"  # every row so far: a wrong key, or no network

    async def _end_row(self, row: Row, stop: StopEvent) -> EndedRow | None:
        """Run a row. Return its result, or None if it was stopped and is to be continued later."""
        before = self._stored.get(row.id, StoredRun(""))
        try:
            minutes, is_ended = await self._ask(row, stop)
        except StoreError:
            raise
        except Exception as error:  # one row must not end the others
            self.progress.exit_codes.add(error.exit_code if isinstance(error, CouncilError) else EXIT_FAILED)
            run = self._stored.get(row.id, StoredRun("")).run or None
            return EndedRow(row.id, run, RunStatus.FAILED, row.hash, single_line(_explain(error)))
        finally:
            self._stored.pop(row.id, None)
        if minutes is None:
            return None
        report, usd = minutes.report or build_report(minutes), _known_cost(minutes)
        self.progress.usd += usd - before.usd
        self.progress.in_doubt += minutes.in_doubt_usd() - before.in_doubt
        self.progress.unknown_cost |= report["cost"]["usd"] is None
        self.progress.estimated_cost |= report["cost"]["estimated"]
        if not is_ended:
            return None
        reason = None
        if minutes.status != RunStatus.COMPLETE:
            states = [missed.state for missed in minutes.absences if missed.seat in minutes.seats]
            self.progress.exit_codes.add(exit_code(minutes.status, minutes.stopped, states))
            reason = single_line(minutes.reason or minutes.status)
        return EndedRow(row.id, minutes.run, str(report["status"]), row.hash, reason, report, usd)

    async def _ask(self, row: Row, stop: StopEvent) -> tuple[Minutes | None, bool]:
        """Continue the run of a row, or start it. Return its minutes, and False if it is to be continued later."""
        options = self._merge(row)
        flags = select_settings(options)
        if stored := self._stored.get(row.id):
            kept = select_settings(options, (*PERSISTED_FLAGS, "effort"))
            task = execution.RowRun(stored.run, resend=not options.get("no_resend"))
            own_cap = kept.get("max_cost", self._records.caps.run)
            if stored.has_limit and self._pool is None:  # an earlier process of the batch had a limit
                kept["max_cost"] = NO_LIMIT_USD if own_cap is None else own_cap
            minutes, is_ended = await self._run_within_limit(task, kept, stop, stored, own_cap)
            if minutes and minutes.report is None:  # it had ended before: the report as it is stored
                minutes = await self._records.minutes(stored.run)
            return minutes, is_ended
        limit = nanos_to_usd(self._pool.cap) if self._pool else None
        async with self._conveners.use(self._add_limit(flags, limit)) as convener:
            plan = await self._plan(convener, row, will_run=True)
            convener.check_plan(plan)
            own_cap = flags.get("max_cost", self._records.caps.run)
        plan = replace(plan, batch=(label := self._make_label(row)))
        self._stored[row.id] = stored = StoredRun(label["run"], cost=plan.cost, need=plan.spending.total)
        task = execution.RowRun(stored.run, plan, row=row)
        minutes, is_ended = await self._run_within_limit(task, flags, stop, stored, own_cap)
        if minutes is None:  # it was not started
            del self._stored[row.id]
        return minutes, is_ended

    async def _run_within_limit(
        self, task: execution.RowRun, flags: SettingFlags, stop: StopEvent, stored: StoredRun, own_cap: float | None
    ) -> tuple[Minutes | None, bool]:
        """Run a row within the limit of the batch. A row that needs more than its part gets more, if there is more."""
        pool, spent = self._pool, _to_nanos(stored.usd)
        if pool is None:
            minutes = await self._execute(task, flags, stop)
            return minutes, self._has_ended(minutes, own_cap)
        share = pool.cap // (4 * self.settings.concurrency)
        wanted = execution.round_up(stored.need) or _guess_limit(stored.cost, share)
        own = None if own_cap is None else _to_nanos(own_cap)
        while True:
            most = wanted if own is None else min(wanted, max(0, own - spent))
            limit = await pool.take(most, spent)
            if limit is None:
                self._halted = self._halted or "budget"
                return None, False
            is_all, after = limit < spent + most or limit == own, spent
            try:
                part: SettingFlags = {**flags, "max_cost": nanos_to_usd(limit)}
                if limit != own:
                    part["is_row"] = True
                minutes = await self._execute(task, part, stop)
                after = _to_nanos(_known_cost(minutes))
            except (CapTooLow, BudgetSpent):  # the rest of the limit does not cover the row, which could not finish
                self._halted = self._halted or "budget"
                return None, False
            except BaseException:
                after = limit
                raise
            finally:
                await pool.give_back(limit, after)
            if minutes.stopped != "budget" or is_all:
                return minutes, self._has_ended(minutes, own_cap if limit == own else None)
            task, wanted, spent = execution.RowRun(task.run, resend=task.resend), wanted * LIMIT_GROWTH, after

    def _has_ended(self, minutes: Minutes, own_cap: float | None) -> bool:
        """Return whether a row has ended. It is to be continued if the batch was stopped, or has used up its limit."""
        if minutes.stopped == "budget" and own_cap is None:  # of the batch or of the day, which stops all rows
            self._halted = self._halted or "budget"
            return False
        return minutes.stopped != "interrupted"

    async def _execute(self, task: execution.RowRun, flags: SettingFlags, stop: StopEvent) -> Minutes:
        if task.plan is not None:
            async with self._conveners.use(flags) as convener:
                plan = await self._fit_plan(convener, task, flags.get("max_cost", task.plan.cap))
                return await self._run_row(convener, replace(task, plan=plan), stop)
        convener = self._make_convener(flags)  # continuing a run changes its convener
        try:
            return await self._run_row(convener, task, stop)
        finally:
            await convener.close()

    async def _fit_plan(self, convener: Convener, task: execution.RowRun, cap: float | None) -> Plan:
        """Return the plan of a row within its limit. Raise CapTooLow if the row could not finish."""
        assert task.plan
        if cap is None or task.row is None or task.plan.spending.total <= _to_nanos(cap):
            return replace(task.plan, cap=cap)
        plan = await self._plan(convener, task.row)
        convener.check_plan(plan)
        return replace(plan, batch=task.plan.batch)

    async def close(self) -> None:
        """Release the conveners, the rows and the output file."""
        if self.settings.waves:
            await self.settings.waves.close()
        await self._conveners.close()
        now = self.progress
        is_complete = self._has_started and not (now.left or now.incomplete or now.failed)
        self.output.close(is_complete=is_complete, has_started=self._has_started)
        self.table.close()


async def _wait_for_all(workers: Sequence[asyncio.Future[None]], stop: StopEvent) -> None:
    """Wait for all workers. An error of one stops the others, which leave their rows resumable."""
    if not workers:
        return
    await asyncio.wait(workers, return_when=asyncio.FIRST_EXCEPTION)
    if not all(worker.done() for worker in workers):
        stop.set()
        await asyncio.wait(workers)
    errors = [error for worker in workers if (error := worker.exception())]
    if errors:
        raise errors[0]


def _explain(error: Exception) -> str:
    if isinstance(error, CouncilError):
        return message_for(error, "http")
    return f"internal error ({type(error).__name__}: {error})"


def _to_nanos(usd: float) -> int:
    return usd_to_nanos(Decimal(str(usd)), up=True)


def _guess_limit(cost: CostEstimate | None, default: int) -> int:
    """Return a limit for a row of an earlier version that is rarely too low: requests reserve their worst case."""
    return execution.round_up(_to_nanos(max(cost["expected"] * 1.5, cost["worst"] / 4))) if cost else default


def _known_cost(minutes: Minutes) -> float:
    """Return the cost of a run with that of open requests; members without a price are not included."""
    return round(minutes.usd + minutes.in_doubt_usd(), 9)


def select_settings(options: Mapping[str, Any], names: Collection[str] = SETTING_OPTIONS) -> SettingFlags:
    """Return the options that are settings of a run, or those of them with one of the names."""
    chosen = [name for name in SETTING_OPTIONS if name in names and options.get(name) not in (None, False)]
    return cast("SettingFlags", {name: options[name] for name in chosen})


def select_protocol_options(options: Mapping[str, Any]) -> Json:
    """Return the options of protocols. False is the same as not given for an option that is off by default."""
    names = [row["name"] for row in flag_table().rows if options.get(row["name"]) is not None]
    on = {name: options[name] for name in names if options[name] is not False or name in negatable_options()}
    return on | dict(options.get("options") or {})
