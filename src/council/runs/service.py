"""Composition root for runs: plan, run, resume, fork, cancel, audit. It connects members, store and protocols."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from council import events as ev
from council import protocols
from council.calling.budget import Caps, SpendingPlan, explain_refusal, local_date, top_phase
from council.calling.concurrency import RUN_LIMIT
from council.engine.council import Council
from council.engine.ledger import Ledger, Listener, NullStore
from council.engine.minutes import Minutes
from council.engine.plan_object import Conversation, PlanObject
from council.engine.prompting import Prompts
from council.engine.response_format import ResponseFormat
from council.errors import (
    BudgetSpent,
    ConfigError,
    CouncilError,
    EngineError,
    LeaseLost,
    RunOwned,
    StoreError,
    UsageError,
    word_for,
)
from council.events import Entry
from council.flags import AUTO_PROTOCOL
from council.members.base import Member
from council.members.registry import MemberRegistry
from council.members.wires.http import keep_connections
from council.money import Price, nanos_to_usd
from council.packet.secret_filter import redact_value
from council.planning.cap_fit import Cap, CostModel, Shortfall, fit_calls
from council.planning.exclusion import inherit_exclusion
from council.planning.intent import ChosenBy, Intent, prefer_protocol
from council.planning.plan import (
    Material,
    Plan,
    find_alternatives,
    hint_one_model,
    make_plan,
    plan_within_cap,
    read_request,
    rehearse_paths,
)
from council.planning.rehearsal import RehearsalInput, looking_council, template_context
from council.planning.setup import RunFlags, RunSetup
from council.protocols.common.rosters import DescribedRoster, describe_rosters
from council.protocols.options import parse_options
from council.protocols.seats import PanelContext
from council.render.report import encode_report
from council.runs import outcome, report_files
from council.runs.advice import plan_by_advice
from council.runs.audit import RULES_CHANGED, audit_record, describe_version, is_ours, require_first_event
from council.runs.continuation import (
    continue_protocol,
    list_wrong_runs,
    load_conversation,
    read_turns,
    select_turns,
)
from council.runs.fork import make_inheritance, plan_fork
from council.runs.history import RunRecords
from council.runs.run_context import PERSISTED_FLAGS, RunContext
from council.runs.spending import SpendingObject, summarize_spending
from council.search import can_search
from council.settings import Settings
from council.settings.key_storage import add_stored_keys
from council.store.interface import OPEN_STATUSES, Record, RequestKey, Row, RunStatus
from council.store.run_store import RunStore
from council.types import Outcome, Roster, Step, estimate_tokens

if TYPE_CHECKING:
    from council.runs.waves import Waves

CANCEL_POLL_S = 0.5  # seconds between checks for a cancel request
MAX_REQUEUE_ATTEMPTS, REQUEUE_INTERVAL_S = 30, 0.1  # attempts and seconds between them


class Convener(RunRecords):
    """Start, resume and inspect the runs of one folder."""

    waits_for_release = True  # resume waits while another process ends the run

    def __init__(
        self,
        folder: Path | None = None,
        env: Mapping[str, str] | None = None,
        *,
        flags: Mapping[str, Any] | None = None,
        config: Path | None = None,
        members: Iterable[Member] = (),
        store: RunStore | None = None,
        keeps_open: bool = False,
        waves: Waves | None = None,
    ) -> None:
        env = add_stored_keys(os.environ if env is None else env)
        super().__init__((folder or Path.cwd()).resolve(), env, store, keeps_open=keeps_open)
        self._flags, self._config, self._extra_members = dict(flags or {}), config, tuple(members)
        self._waves = waves
        self._has_ended_run = False
        self._load_folder(self.folder)

    def _load_folder(self, folder: Path) -> None:
        """Load the settings and members of a folder: the current one, or the folder of a stored run."""
        self.folder = folder
        self.run_context = RunContext(folder, self.env, self._flags, self._config, self._extra_members, self._waves)
        self.env = self.run_context.env
        self.store_settings = self.run_context.settings.store

    @property
    def settings(self) -> Settings:
        return self.run_context.settings

    @property
    def members(self) -> MemberRegistry:
        return self.run_context.members

    async def open_store(self, protocol: str, task: str) -> RunStore:
        """Check that the store is sound and the protocol's report folder writable, before any request is sent."""
        await self.store.require_sound()
        report_files.open_report_folder(self.folder, self._report_dir(protocol, task))
        return self.store

    def _report_dir(self, protocol: str, task: str) -> str:
        named = protocols.find_protocol(protocol)
        return report_files.choose_report_dir(named, task, self.settings.report_dir, self.store.folder)

    async def close(self) -> None:
        """Release members and store. After a run, remove the runs that `[store] keep_days` no longer keeps."""
        if self._has_ended_run:
            with suppress(CouncilError):  # the answer was given; the next run tries again
                await self.remove_expired_runs(self.settings)
        await self.members.close()
        await super().close()

    # Money

    def price(self, name: str) -> Price | None:
        return self.run_context.price(name)

    def context_window(self, name: str) -> int | None:
        return self.run_context.context_window(name)

    @property
    def caps(self) -> Caps:
        return self.run_context.caps

    async def spending(self, since: str, user: str | None = None, user_cap: float | None = None) -> SpendingObject:
        """Return the cost of all runs since a day, or of those of a user, as the object `council.spend/1`."""
        rows, cap = await self.store.list_spending(since, user), self.caps.day if user is None else user_cap
        return summarize_spending(rows, since, local_date(time.time()), cap)

    async def _find_cap(self) -> Cap | None:
        """Return the cap that leaves the least money for a new run; None without a cap."""
        caps, today = self.caps, local_date(time.time())
        found = [] if caps.run is None else [Cap(caps.run, may_shorten=not self._flags.get("is_row"))]
        if caps.day is not None:
            spent = nanos_to_usd(await self.store.sum_day(today))
            found.append(Cap(caps.day, "day", spent, may_shorten=False))
        if caps.user_day is not None:
            spent = nanos_to_usd(await self.store.sum_day(today, caps.user))
            found.append(Cap(caps.user_day, "user", spent, may_shorten=False))
        lowest = min(found, key=lambda cap: cap.left, default=None)
        if lowest and found[0].may_shorten:  # the run is fitted to a cap of its own, so it may be fitted to a lower one
            return replace(lowest, may_shorten=True)
        return lowest

    async def _hold_budget(self, ledger: Ledger) -> str:
        """Hold the money for the rest of the run. Return why a cap does not cover it; "" if it does."""
        refused = await self.run_context.make_budget(ledger.record, self.store).hold_run()
        return explain_refusal(refused, ledger.run, is_new=ledger.record.is_new) if refused else ""

    def _restore_flags(self, setup: RunSetup) -> None:
        """Restore the flags stored with a run; flags given now take precedence."""
        stored = {**setup.flags, "effort": setup.effort}
        for flag in (*PERSISTED_FLAGS, "effort", "trusted"):
            if self._flags.get(flag) is None:
                self._flags[flag] = stored.get(flag)
        if self._config is None and setup.config:
            self._config = Path(setup.config)

    def _restore_run_context(self, record: Record) -> None:
        """Switch to the folder and the flags of a stored run."""
        if not Path(record.folder).is_dir():
            raise UsageError(
                f'the folder "{record.folder}" of run {record.run} no longer exists: restore it to continue the run'
            )
        self._restore_flags(RunSetup.of(record))
        self._load_folder(Path(record.folder))

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
        preview: bool = False,
        will_run: bool = False,
        folder: Path | None = None,
        response_format: ResponseFormat | None = None,
    ) -> Plan:
        """Return the plan for a question; `after` is an earlier run, `folder` that of the material, if it is not the
        run's. A preview leaves settings out that need trust.
        """
        folder, material = folder or self.folder, material or Material()
        if not preview:
            self._require_trust()
        known, options = protocols.protocol_names(protocol), dict(flags or {})
        own = protocol in known and protocol not in protocols.SHIPPED_PROTOCOLS  # its option names are its own
        intent, material = read_request(
            words,
            {} if own else options,
            material,
            protocol=protocol,
            verbose=verbose,
            folder=material.folder or folder,
            known=known,
            can_search=lambda: can_search(self.settings, self.env, folder),
        )
        intent = replace(intent, options=await self.add_weights(options) if "weights" in options else options)
        if protocol is None and after is None:
            intent, protocol = self._apply_default_protocol(intent, known)
        conversation: Conversation | None = None
        earlier_wrong: tuple[str, ...] = ()
        settings = self.settings
        if after:
            record = await self.store.load(await self.resolve_run(after))
            earlier = await load_conversation(self.store, record.run)
            settings = inherit_exclusion(settings, earlier[0].plan.get("exclude_family") or ())
            context = select_turns(read_turns(earlier))
            intent, after, conversation = continue_protocol(intent, record, known), record.run, context.as_json()
            left_out = (*material.left_out, *context.skipped)
            material = replace(material, earlier=(*material.earlier, *context.files), left_out=left_out)
            earlier_wrong = tuple(list_wrong_runs(record.run, earlier[0].outcomes))
        if self.settings.model_lists and any(map(self.env.get, self.run_context.vendor_keys)):
            await self.run_context.refresh_models()
        where = PanelContext(settings, self.env, folder, strict)
        on_seated = self.members.connect_ahead if will_run else None
        cap = await self._find_cap()
        make = partial(
            make_plan,
            member=self.members,
            material=material,
            price=self.price,
            window=self.context_window,
            on_seated=on_seated,
            cap=cap,
            response_format=response_format,
        )
        make_within_cap = partial(plan_within_cap, where=where, make=make)
        plan = await (
            plan_by_advice(intent, make_within_cap, self.env) if protocol == AUTO_PROTOCOL else make_within_cap(intent)
        )
        if plan.shortfall:
            found = await find_alternatives(intent, plan, partial(make, on_seated=None), where)
            shortfall = replace(plan.shortfall, alternatives=found)
            plan = replace(plan, shortfall=shortfall, warnings=(word_for(shortfall.message, "cli"), *plan.warnings))
        advice = [] if after else hint_one_model(intent, plan)
        warnings = (*self.run_context.file_warnings, *plan.warnings, *advice)
        hints = (*self.run_context.hints, *plan.hints)
        return replace(
            plan,
            warnings=warnings,
            hints=hints,
            continues=after or "",
            conversation=conversation,
            earlier_wrong=earlier_wrong,
        )

    def _apply_default_protocol(self, intent: Intent, known: Sequence[str]) -> tuple[Intent, str | None]:
        """Return the intent with the protocol of the settings, if the words chose none; `auto` is returned by its name.

        Flags choose only if the protocol of the settings does not have them."""
        name = self.settings.protocol
        is_flag = intent.chosen_by is ChosenBy.FLAG
        if name is None or intent.chosen_by not in (ChosenBy.DEFAULT, ChosenBy.FLAG):
            return intent, None
        if name == AUTO_PROTOCOL:
            return intent, None if is_flag else AUTO_PROTOCOL
        origin = self.settings.origins["protocol"]
        is_known = name in known
        if is_flag and (not is_known or intent.task not in protocols.get_protocol(name).tasks):
            return intent, None
        if not is_known:
            raise ConfigError(f'{origin}: protocol = "{name}" is not known: use {", ".join(known)} or {AUTO_PROTOCOL}')
        if intent.task not in protocols.get_protocol(name).tasks:
            raise ConfigError(f'{origin}: protocol = "{name}" answers no plain question: use another protocol')
        return prefer_protocol(intent, name, f"the key protocol of {Path(origin.name).name}"), None

    async def conversation(self, run: str) -> list[Minutes]:
        """Return the runs of the conversation that ends with this run, newest first."""
        return await load_conversation(self.store, await self.resolve_run(run))

    def check_plan(self, plan: Plan) -> None:
        """Raise if the plan cannot be run. A dry run and a run make the same checks."""
        self._require_trust()
        self.check_seats(plan)

    def check_seats(self, plan: Plan) -> None:
        """Raise if the plan cannot be run with its members, prices and cap."""
        plan.check_runnable()
        self.run_context.require_prices(plan.roster)
        self.run_context.check_installed({seat.member for seat in plan.roster.all_seats})

    def _require_trust(self) -> None:
        if self.settings.untrusted:
            self.settings.require_trust()

    # A run

    async def run(self, plan: Plan, on_event: Listener, *, stop: outcome.StopEvent | None = None) -> Minutes:
        """Run a plan and return its minutes. `stop` interrupts the run and leaves it resumable."""
        self.check_plan(plan)
        if self._keeps_open:
            keep_connections()
        async with RUN_LIMIT.acquire():
            store = await self.open_store(plan.protocol.name, plan.question.task)
            await self._prepare_members(plan.roster, on_event)
            return await self._begin(store, await self._make_record(plan), plan.as_json(), on_event, stop)

    async def enqueue(self, plan: Plan, key: RequestKey | None = None) -> str:
        """Store the run as queued, for the worker to start, together with the key of its request."""
        self.check_plan(plan)
        return await self._enqueue_record(await self._make_record(plan), plan.as_json(), key)

    async def _enqueue_record(self, record: Record, plan: PlanObject, key: RequestKey | None = None) -> str:
        if self.store.is_shared or self._flags.get("priority") is not None:
            from council.runs.queues import choose_queue

            setup = await choose_queue(self.store, RunSetup.of(record), self._flags.get("priority"))
            record.setup = setup.as_json()
        setup = RunSetup.of(record)
        store = await self.open_store(setup.protocol, setup.question.task)
        ledger = Ledger(store, record, redact=report_files.redact_event)
        convened = ev.Convened(record.run, record.name, dict(plan), record.folder)
        user_rows: list[Row] = [("user_run", (user,))] if (user := setup.flags.get("user")) else []
        key_rows = [key.as_row()] if key else []
        await ledger.emit_durably(convened, ("queue", _format_run_row(record)), *user_rows, *key_rows)
        return record.run

    async def requeue(self, run: str) -> str:
        """Queue an unfinished run for the worker. The flags given now are stored with it."""
        run = await self.resolve_run(run)
        async with self.store.lock_run(run):
            record = await self.store.load(run)
            if record.status != RunStatus.COMPLETE:
                given = {flag: value for flag, value in self._persisted_flags().items() if value is not None}
                await self.store.write(run, [("detach", (json.dumps(record.setup | given, ensure_ascii=False),))])
        return run

    async def requeue_after_close(self, run: str) -> str:
        """Queue an unfinished run, also if the process that has just closed it still writes its report."""
        for _ in range(MAX_REQUEUE_ATTEMPTS):
            try:
                return await self.requeue(run)
            except RunOwned:
                if (await self.run_state(run)).is_open:
                    raise
                await asyncio.sleep(REQUEUE_INTERVAL_S)
        return await self.requeue(run)

    async def find_missing_keys(self, run: str) -> list[str]:
        """Return the API key variables that a run needs and that are not set. Raise if its settings need trust."""
        record = await self.store.load(await self.resolve_run(run))
        self._restore_run_context(record)
        self._require_trust()
        return self.run_context.find_missing_keys(RunSetup.of(record).roster)

    async def fork(
        self,
        run: str,
        on_event: Listener,
        *,
        phase: str | None = None,
        seats: Mapping[str, str] | None = None,
        stop: outcome.StopEvent | None = None,
    ) -> Minutes:
        """Start a new run that reuses the answers of `run` before `phase`, and later ones to unchanged requests."""
        record, plan = await self._prepare_fork(run, phase, seats or {})
        setup = RunSetup.of(record)
        store = await self.open_store(setup.protocol, setup.question.task)
        async with RUN_LIMIT.acquire():
            await self._prepare_members(setup.roster, on_event)
            return await self._begin(store, record, plan, on_event, stop)

    async def plan_fork(
        self, run: str, *, phase: str | None = None, seats: Mapping[str, str] | None = None
    ) -> PlanObject:
        """Return the plan of a fork. Nothing is stored or sent."""
        return (await self._prepare_fork(run, phase, seats or {}))[1]

    async def enqueue_fork(self, run: str, phase: str | None, seats: Mapping[str, str], key: RequestKey | None) -> str:
        """Queue a fork for the worker."""
        record, plan = await self._prepare_fork(run, phase, seats)
        return await self._enqueue_record(record, plan, key)

    async def _prepare_fork(self, run: str, phase: str | None, seats: Mapping[str, str]) -> tuple[Record, PlanObject]:
        parent = await self.store.load(await self.resolve_run(run))
        user = {name: self._flags.get(name) for name in ("user", "user_cap")}
        self._restore_run_context(parent)
        self._flags |= user  # a fork belongs to the user who makes it
        self._require_trust()
        setup, plan = plan_fork(parent, phase, seats, self.run_context)
        plan.pop("earlier_wrong", None)
        if wrong := list_wrong_runs(parent.run, await self.store.load_outcomes(parent.run)):
            plan["earlier_wrong"] = wrong
        setup = replace(self.run_context.mark_maker(setup), flags=self._persisted_flags())
        self.run_context.require_prices(setup.roster)
        if cap := await self._find_cap():
            setup = replace(setup, spending=await self._fit_fork(setup, cap))
        run = await self.store.new_run_id()
        record = Record(run, parent.name, parent.folder, time.time(), parent.seed, setup.as_json(), is_new=True)
        return record, plan

    async def _fit_fork(self, setup: RunSetup, cap: Cap) -> SpendingPlan:
        """Return output limits with which the requests of a fork fit its cap, by the length of the parent's prompts."""
        protocol, question, roster = protocols.get_protocol(setup.protocol), setup.question, setup.roster
        words = setup.spending.limits.words
        options = parse_options(protocol.name, question.task, setup.options, protocol.load_options())
        timeouts, look = self.settings.phase_timeouts(), setup.look is not None
        given = RehearsalInput(
            protocol,
            roster,
            question,
            dict(options),
            setup.packet,
            timeouts,
            look,
            setup.check,
            words,
            setup.load_response_format(),
        )
        rehearsal = await rehearse_paths(given, self.settings.effort, self.members)
        earlier = setup.fork["earlier"] if setup.fork else ()
        later = [call for call in rehearsal.longest if top_phase(call.key) not in earlier]
        fit = fit_calls(CostModel(roster, estimate_tokens(question.text), self.price, self.members), later, words, cap)
        if isinstance(fit, Shortfall):
            fit.raise_error()
        return fit

    async def _make_record(self, plan: Plan) -> Record:
        now, batch = time.time(), plan.batch
        run = (batch and batch["run"]) or await self.store.new_run_id()
        seed = (batch and batch.get("seed")) or secrets.token_hex(16)
        name = f"council-{time.strftime('%Y%m%d', time.localtime(now))}-{report_files.slugify(plan.question.target or plan.question.text)}"
        config = str(self._config.resolve()) if self._config else None
        setup = self.run_context.mark_maker(plan.setup())
        setup = replace(setup, day=_utc_date(now), config=config, flags=self._persisted_flags())
        return Record(run, name, str(self.folder), now, seed, setup.as_json(), is_new=True)

    def _persisted_flags(self) -> RunFlags:
        """Return the flags that are stored with a run, and the hashes that only this run trusts, by --trust."""
        given = self.settings.trusted if self._flags.get("trust") else None
        hashes = [given.digest] if given else self._flags.get("trusted")
        given_flags = {flag: self._flags.get(flag) for flag in PERSISTED_FLAGS}
        return cast("RunFlags", {**given_flags, "trusted": hashes})

    async def _begin(
        self, store: RunStore, record: Record, plan: PlanObject, on_event: Listener, stop: outcome.StopEvent | None
    ) -> Minutes:
        async with store.lock_run(record.run, is_new=record.is_new):
            ledger = await self._make_ledger(record, on_event)
            if refusal := await self._hold_budget(ledger):
                raise BudgetSpent(refusal)
            convened = ev.Convened(record.run, record.name, dict(plan), record.folder)
            ledger.emit(convened, ("run", _format_run_row(record)), may_wait=True)
            outcome.note_other_version(ledger)
            async with outcome.name_resume(store, ledger.run):
                return await self._deliberate(ledger, stop)

    async def resume(
        self,
        run: str | None,
        on_event: Listener,
        *,
        on_past_entries: Callable[[list[Entry]], None] = lambda entries: None,
        stop: outcome.StopEvent | None = None,
        resend: bool = True,
        only_open: bool = False,
    ) -> Minutes:
        """Continue an interrupted run without repeating answered steps. `only_open`: not one that was cancelled."""
        run = await self.resolve_run(run) if run else await self.newest_unfinished_run()
        if self.waits_for_release:
            await outcome.wait_for_release(self.store, run)
        async with RUN_LIMIT.acquire(), self.store.lock_run(run), outcome.name_resume(self.store, run):
            record = await self.store.load(run)
            require_first_event(record)
            if record.status == RunStatus.COMPLETE:
                return await self._reopen_finished(record)
            if only_open and record.status not in OPEN_STATUSES:
                return Minutes.fold(record.entries)
            self._flags["no_resend"] = not resend or None
            self._restore_run_context(record)
            self._require_trust()
            setup = RunSetup.of(record)
            self.run_context.require_prices(setup.roster)
            await self.open_store(setup.protocol, setup.question.task)
            await self._prepare_members(setup.roster, on_event)
            on_past_entries(list(record.entries))
            ledger = await self._make_ledger(record, on_event)
            refusal = await self._hold_budget(ledger)
            if len(record.entries) == 1:  # queued, never started
                await self.store.write(run, [("reopen", ())])
            else:
                await ledger.emit_durably(ev.Resumed(run, self.caps.run), ("discard_streams", ()), ("reopen", ()))
            outcome.note_other_version(ledger)
            return await self._deliberate(ledger, stop, refusal)

    async def _make_ledger(self, record: Record, on_event: Listener) -> Ledger:
        """Return the ledger of a run; that of a fork has the answers that it may reuse from its parent run."""
        setup = RunSetup.of(record)
        return Ledger(
            self.store,
            record,
            on_event,
            strict=is_ours(record),
            redact=report_files.redact_event,
            source=make_inheritance(await self.store.load(setup.fork["run"]), setup.fork) if setup.fork else None,
            changed_seats=setup.changed_seats,
        )

    async def _reopen_finished(self, record: Record) -> Minutes:
        """Return the minutes of a finished run. Rewrite its report if it was deleted or never written."""
        minutes = await self.fold(record.entries)
        report_files.write_missing_files(record, minutes)
        minutes.calls = minutes.calls | {"replayed": len(record.results)}
        return minutes

    async def cancel(self, run: str) -> bool:
        """Request the cancellation of a run. Return False if it had already ended."""
        run = await self.resolve_run(run)
        if not (await self.store.run_state(run)).is_open:
            return False
        await self.store.write(run, [("cancel", ())])
        await outcome.end_suspended_owner(self.store, run)
        with suppress(RunOwned):
            async with self.store.lock_run(run):  # no process owns it, so close it here
                record = await self.store.load(run)
                if record.status in OPEN_STATUSES:
                    await self._close_cancelled(record)
        return True

    async def _close_cancelled(self, record: Record) -> None:
        try:
            self._restore_run_context(record)
            ledger = Ledger(self.store, record, redact=report_files.redact_event)
            await self._close_run(ledger, outcome.end_stopped(self._make_council(ledger), "cancelled"))
        except UsageError as error:  # its folder or its settings no longer exist, but it must still end
            reason = f"cancelled; {error.message_for('cli')}"
            await report_files.close_failed_run(self.store, record, reason, "cancelled")

    async def _deliberate(self, ledger: Ledger, stop: outcome.StopEvent | None, refusal: str = "") -> Minutes:
        """Run the protocol to its end. With a `refusal` of the budget, stored answers are replayed, nothing is sent."""
        council = self._make_council(ledger)
        if refusal:
            council.carry_out = partial(_skip_step, refusal)
        setup = RunSetup.of(ledger.record)
        protocol = protocols.get_protocol(setup.protocol)
        work = asyncio.ensure_future(_run_protocol(council, protocol, setup))
        recalled = asyncio.ensure_future(self._wait_for_cancel(ledger.record))
        try:
            ending = await outcome.wait_for_ending(work, stop, recalled)
        except asyncio.CancelledError:
            await self._close_run(ledger, outcome.end_stopped(council, "interrupted"))
            raise
        stopped: Literal["cancelled", "interrupted"] = "cancelled" if outcome.has_returned(recalled) else "interrupted"
        return await self._close_run(ledger, ending or outcome.end_stopped(council, stopped))

    async def _wait_for_cancel(self, record: Record) -> None:
        """Return when a cancel request has been stored for the run. A run that was only now stored has none."""
        if record.is_new:
            await asyncio.sleep(CANCEL_POLL_S)
        while True:
            await asyncio.sleep(CANCEL_POLL_S)
            with suppress(StoreError):  # a busy store does not stop a run; the next write reports the problem
                if await self.store.is_cancelled(record.run):
                    return

    def _make_council(self, ledger: Ledger) -> Council:
        setup = RunSetup.of(ledger.record)
        question, roster = setup.question, setup.roster
        protocol = protocols.get_protocol(setup.protocol)
        words = setup.spending.limits.words
        prompts = Prompts(ledger.record.seed, protocol.prompt_folders, protocol.name, word_share=words)
        day = setup.day or _utc_date(ledger.record.created)
        return (looking_council() if setup.look else Council)(
            roster,
            question,
            ledger=ledger,
            prompts=prompts,
            carry_out=self.run_context.make_caller(ledger, roster, self.store),
            grace=self._flags.get("grace"),
            effort=setup.effort,
            context=template_context(question, roster, setup.packet, day),
            effects=self.run_context.make_effects(setup, Path(ledger.record.folder)),
            timeouts=self.settings.phase_timeouts(),
            keeps_conversations=protocol.keeps_conversations,
        )

    async def _prepare_members(self, roster: Roster, on_event: Listener) -> None:
        """Download and start whatever the members need, before the run is stored."""

        def progress(what: str, done: int, total: int) -> None:
            on_event(Entry(0, time.time(), ev.Fetching(what, done, total)))

        for name in roster.member_names:
            await self.members.make_ready(name, progress)

    async def _close_run(self, ledger: Ledger, ending: outcome.Ending) -> Minutes:
        record = ledger.record
        minutes, seen = Minutes.fold(record.entries), len(record.entries)
        if self.store.is_shared:  # raises LeaseLost before a file is made for a run that another process has taken over
            await self.store.write(record.run, [])
        path = self._choose_report_path(ledger, minutes, ending)
        verdict, drafts = ev.dump_deeply(ending.verdict), list[str]()
        closed = ev.Closed(ending.status, verdict, dict(ledger.calls), ending.stopped, path, ending.reason)

        def make_report(entries: Sequence[Entry]) -> str:
            for entry in entries[seen:]:
                minutes.on_event(entry)
            text = encode_report(minutes)
            minutes.report = report = json.loads(text)
            drafts.extend(report_files.draft_report_files(record, minutes, report))  # a full disk stops here
            return text

        try:
            await ledger.close(closed, make_report)
        except LeaseLost:
            report_files.discard_drafts(record, drafts, await self.store.list_report_paths(record.run))
            raise
        report_files.publish_drafts(record, drafts)
        self._has_ended_run = True
        return minutes

    def _choose_report_path(self, ledger: Ledger, minutes: Minutes, ending: outcome.Ending) -> str:
        """Return the path of the report, "" if the run gets none, and emit the votes with the paths of their files."""
        record, earlier = ledger.record, report_files.last_report_path(ledger.record.entries)
        if ending.status == "failed" and not earlier:  # an earlier report must not stay outdated
            return ""
        setup = RunSetup.of(record)
        configured = self._report_dir(setup.protocol, setup.question.task)
        report_dir = str(Path(earlier).parent) if earlier else configured
        folder = report_files.create_report_folder(Path(record.folder), report_dir)
        path = earlier or report_files.choose_report_path(record, folder)
        report_files.emit_votes(ledger, minutes, folder)
        return path

    # Audit

    async def audit(self, run: str) -> list[str]:
        return (await self.audit_with_remark(run))[0]

    async def audit_with_remark(self, run: str) -> tuple[list[str], str]:
        """Return the problems found in a run's record, and a remark if the rules have changed since it was made."""
        record = await self.store.load(await self.resolve_run(run))
        if not is_ours(record):  # other versions format reports differently
            problems = audit_record(record, lambda entries: record.report)
            return problems, f"made by {describe_version(record)}: {RULES_CHANGED}"
        problems = audit_record(record, lambda entries: encode_report(Minutes.fold(entries)))
        if record.status == RunStatus.COMPLETE:
            problems += await self._recompute_verdict(record)
        return problems, ""

    async def _recompute_verdict(self, record: Record) -> list[str]:
        """Run the protocol again on the ledger alone and report a verdict that differs from the stored one."""
        kept = Minutes.fold(record.entries).verdict
        setup = RunSetup.of(record)
        copy = replace(record, entries=list(record.entries))
        ledger = Ledger(NullStore(), copy, strict=False, changed_seats=setup.changed_seats)
        try:
            council = self._make_council(ledger)
            council.carry_out = _refuse_step
            protocol = protocols.get_protocol(setup.protocol)
            ending = await _run_protocol(council, protocol, setup)
        except CouncilError as error:
            return [f"the verdict cannot be recomputed: {error}"]
        if json.dumps(redact_value(ev.dump_deeply(ending.verdict))) == json.dumps(kept):
            return []
        return ["the verdict recomputed from the statements differs from the stored one"]

    def rosters(self, name: str | None = None) -> list[DescribedRoster]:
        """Describe all named rosters, or only `name`, each with its source."""
        return describe_rosters(PanelContext(self.settings, self.env, self.folder), name)


async def _run_protocol(council: Council, protocol: protocols.Protocol, setup: RunSetup) -> outcome.Ending:
    response_format = setup.load_response_format()
    return await outcome.run_protocol(
        council, protocol, setup.options, check=setup.check, response_format=response_format
    )


def _format_run_row(record: Record) -> tuple[object, ...]:
    return record.name, record.folder, record.created, record.seed, json.dumps(record.setup, ensure_ascii=False)


def _utc_date(at: float) -> str:
    """Return the UTC date of a run. Resuming does not change it."""
    return time.strftime("%Y-%m-%d", time.gmtime(at))


async def _skip_step(reason: str, step: Step) -> Outcome:
    return Outcome("skipped(budget)", reason=reason)


async def _refuse_step(step: Step) -> Outcome:
    raise EngineError(f'the run is complete, but its ledger has no result for the step "{step.ask.key}"')
