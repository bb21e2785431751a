"""Random operations on the ledger by two stores of one database, compared with a model in memory after every step."""

from __future__ import annotations

import asyncio
import json
import random
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from council import events as ev
from council.engine.ledger import ForkSource, Ledger
from council.errors import RunOwned, StoreError, UnknownRun
from council.money import Price, Rates
from council.runs.audit import audit_record
from council.store.interface import Hold, Record, SpendingRow, StoreAddress
from council.store.run_store import RunStore
from council.store.shared import open_store
from council.types import Outcome, Usage
from council.version import RULES, __version__
from tests.databases import Server

T = TypeVar("T")
PHASES, SEATS = ("draft", "merge"), ("alpha", "beta", "gamma")
KEYS = [f"{phase}/{seat}" for phase in PHASES for seat in SEATS]
DAY = "2026-11-15"
TOKEN = 1_000_000  # billionths of a dollar
RESERVED_TOKENS, RUN_CAP, DAY_CAP = 10, 60 * TOKEN, 200 * TOKEN
PRICE = Price(Rates(Decimal(0), Decimal(0), Decimal(0), Decimal(1000)))
BIG_TEXT = random.Random(1).randbytes(150_000).hex()  # does not become small by compression


@dataclass
class ModelStep:
    attempts: list[str] = field(default_factory=list)  # "": no result yet
    result: str = ""


@dataclass
class ModelRun:
    """What the store must have of a run."""

    steps: dict[str, ModelStep] = field(default_factory=dict)
    phases: set[str] = field(default_factory=set)
    spent: dict[tuple[str, int], int] = field(default_factory=dict)
    status: str = "running"
    is_cancelled: bool = False
    is_fork: bool = False

    def is_open_key(self, key: str) -> bool:
        return key.partition("/")[0] not in self.phases and not (key in self.steps and self.steps[key].result)


class LedgerMachine(RuleBasedStateMachine):
    """Two stores of one database. Each run has at most one owner."""

    figures: ClassVar[Counter[str]] = Counter()
    server: ClassVar[Server | None] = None  # PostgreSQL instead of SQLite

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.folder = Path(tempfile.mkdtemp(prefix="ledger-"))
        self.databases = ExitStack()
        url = self.databases.enter_context(self.server.database()) if self.server else ""
        self.stores = [self.open_store(url), self.open_store(url)]
        self.started = 0
        self.runs: dict[str, ModelRun] = {}
        self.removed: Counter[str] = Counter()  # spending of removed runs, by day
        self.owned: dict[str, tuple[Ledger, AsyncExitStack]] = {}
        self.figures["machines"] += 1

    def teardown(self) -> None:
        try:
            assert self.wait(self.stores[0].check_integrity()) == []
        finally:
            for _, lock in self.owned.values():
                self.wait(lock.aclose())
            for store in self.stores:
                store.close()
            self.databases.close()
            self.loop.close()
            shutil.rmtree(self.folder)

    def open_store(self, url: str) -> RunStore:
        store = open_store(StoreAddress(self.folder, url))
        assert isinstance(store, RunStore)
        return store

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(work)

    # Choices

    def pick(self, data: st.DataObject, names: list[str]) -> str:
        return str(data.draw(st.sampled_from(sorted(names))))

    def free_runs(self) -> list[str]:
        return [run for run in self.runs if run not in self.owned]

    def closed_runs(self) -> list[str]:
        return [run for run in self.free_runs() if self.runs[run].status != "running"]

    def steps_with(self, is_wanted: Callable[[ModelStep], bool]) -> list[str]:
        """Return `run key` of the steps of owned runs that are open and wanted."""
        return [
            f"{run} {key}"
            for run in self.owned
            for key, step in self.runs[run].steps.items()
            if self.runs[run].is_open_key(key) and is_wanted(step)
        ]

    def unsent(self) -> list[str]:
        return self.steps_with(lambda step: not step.attempts or step.attempts[-1] not in ("", "answer"))

    def in_flight(self) -> list[str]:
        return self.steps_with(lambda step: step.attempts[-1:] == [""])

    def answered(self) -> list[str]:
        return self.steps_with(lambda step: step.attempts[-1:] == ["answer"])

    def get(self, chosen: str) -> tuple[str, str, Ledger, ModelStep]:
        run, _, key = chosen.partition(" ")
        return run, key, self.owned[run][0], self.runs[run].steps[key]

    # Runs

    @precondition(lambda self: len(self.runs) < 5)
    @rule(which=st.integers(0, 1))
    def start(self, which: int) -> None:
        self._start(which, {})

    def _start(self, which: int, setup: dict[str, Any], source: ForkSource | None = None) -> str:
        store = self.stores[which]
        self.started += 1
        run = f"r{self.started:08}"  # not random, so that a sequence can be repeated
        setup = {"version": __version__, "rules": RULES, **setup}
        record = Record(run, "a run", "here", 1.0, "random", setup, is_new=True)
        lock = AsyncExitStack()
        self.wait(lock.enter_async_context(store.lock_run(run)))
        ledger = Ledger(store, record, source=source)
        row = ("run", (record.name, record.folder, record.created, record.seed, json.dumps(setup)))
        self.wait(ledger.emit_durably(ev.Convened(run, record.name, {"cap": RUN_CAP / 1e9}, record.folder), row))
        self.runs[run], self.owned[run] = ModelRun(is_fork=bool(setup.get("fork"))), (ledger, lock)
        return run

    @precondition(lambda self: self.owned)
    @rule(data=st.data())
    def crash(self, data: st.DataObject) -> None:
        """Release the lock, as the kernel does, without another row."""
        self._drop(self.pick(data, list(self.owned)))

    def _drop(self, run: str) -> None:
        self.wait(self.owned.pop(run)[1].aclose())

    @precondition(lambda self: self.free_runs())
    @rule(data=st.data(), which=st.integers(0, 1))
    def resume(self, data: st.DataObject, which: int) -> None:
        run, store = self.pick(data, self.free_runs()), self.stores[which]
        if self.runs[run].status == "complete":
            return
        lock = AsyncExitStack()
        self.wait(lock.enter_async_context(store.lock_run(run)))
        ledger = Ledger(store, self.wait(store.load(run)))
        self.wait(ledger.emit_durably(ev.Resumed(run, RUN_CAP / 1e9), ("reopen", ())))
        self.owned[run], self.runs[run].status = (ledger, lock), "running"
        for step in self.runs[run].steps.values():  # a request in flight stays in doubt, and may be sent again
            step.attempts = [attempt or "doubt" for attempt in step.attempts]

    @precondition(lambda self: self.owned)
    @rule(data=st.data(), which=st.integers(0, 1))
    def resume_a_run_that_has_an_owner(self, data: st.DataObject, which: int) -> None:
        with pytest.raises(RunOwned):
            self.wait(
                AsyncExitStack().enter_async_context(self.stores[which].lock_run(self.pick(data, list(self.owned))))
            )

    @precondition(lambda self: self.runs)
    @rule(data=st.data(), which=st.integers(0, 1))
    def cancel(self, data: st.DataObject, which: int) -> None:
        run = self.pick(data, list(self.runs))
        self.wait(self.stores[which].write(run, [("cancel", ())]))
        self.runs[run].is_cancelled |= self.runs[run].status == "running"

    @precondition(lambda self: self.owned)
    @rule(data=st.data(), status=st.sampled_from(["complete", "incomplete", "failed"]))
    def close(self, data: st.DataObject, status: str) -> None:
        run = self.pick(data, list(self.owned))
        ledger = self.owned[run][0]
        closed = ev.Closed(status, {"answer": ""}, dict(ledger.calls), "", "", "")
        self.wait(ledger.close(closed, lambda entries: f"{len(entries)} events"))
        self.runs[run].status, self.runs[run].is_cancelled = status, False
        self._drop(run)

    @precondition(lambda self: self.closed_runs() and len(self.runs) < 5)
    @rule(data=st.data(), which=st.integers(0, 1))
    def fork(self, data: st.DataObject, which: int) -> None:
        parent = self.pick(data, self.closed_runs())
        record = self.wait(self.stores[which].load(parent))
        source = ForkSource(record, frozenset(self.runs[parent].phases))
        run = self._start(which, {"fork": {"run": parent}}, source)
        ledger, step = self.owned[run][0], self.runs[run].steps
        for key in self.runs[parent].steps:
            if found := ledger.find_inherited(key, f"print of {key}"):
                self._begin(ledger, key)
                ledger.accept_result(key, found, _state(key, found))
                step[key] = ModelStep(result=found.text)

    @precondition(lambda self: self.closed_runs())
    @rule(data=st.data(), which=st.integers(0, 1))
    def remove(self, data: st.DataObject, which: int) -> None:
        run, store = self.pick(data, self.closed_runs()), self.stores[which]

        async def delete() -> None:
            async with store.lock_run(run):
                await store.delete_run(run)

        self.wait(delete())
        self.removed[DAY] += sum(self.runs.pop(run).spent.values())
        with pytest.raises(UnknownRun):
            self.wait(store.load(run))

    # Steps

    @precondition(lambda self: self.owned)
    @rule(data=st.data(), key=st.sampled_from(KEYS))
    def ask(self, data: st.DataObject, key: str) -> None:
        run = self.pick(data, list(self.owned))
        if self.runs[run].is_open_key(key):
            self._begin(self.owned[run][0], key)
            self.runs[run].steps.setdefault(key, ModelStep())

    def _begin(self, ledger: Ledger, key: str) -> None:
        phase, _, seat = key.partition("/")

        async def begin() -> None:
            ledger.begin_step(key, f"print of {key}", ev.Asked(key, phase, seat, "sim:m"))

        self.wait(begin())

    @precondition(lambda self: self.unsent())
    @rule(data=st.data())
    def send(self, data: st.DataObject) -> None:
        """Reserve money for a request and store it, or be refused by the cap."""
        run, key, ledger, step = self.get(self.pick(data, self.unsent()))
        n, amount = len(step.attempts) + 1, RESERVED_TOKENS * TOKEN
        hold = Hold(key, n, "sim:m", 1.0, DAY, json.dumps(PRICE.as_json()), amount, RUN_CAP, DAY_CAP)
        store = ledger.store
        assert isinstance(store, RunStore)
        refused = self.wait(store.reserve(run, hold))
        spent, of_day = sum(self.runs[run].spent.values()), self.spent_of_day()
        assert (refused is not None) == (spent + amount > RUN_CAP or of_day + amount > DAY_CAP)
        if refused is None:
            ledger.record.spending[key, n] = SpendingRow("sim:m", PRICE.as_json(), amount)
            self.wait(
                ledger.record_attempt(ev.Attempted(key, key.rpartition("/")[2], n, "sim:m", "", amount / 1e9), b"{}")
            )
            step.attempts.append("")
            self.runs[run].spent[key, n] = amount

    def spent_of_day(self) -> int:
        return self.removed[DAY] + sum(amount for run in self.runs.values() for amount in run.spent.values())

    @precondition(lambda self: self.in_flight())
    @rule(data=st.data(), tokens=st.integers(0, RESERVED_TOKENS), is_answer=st.booleans())
    def settle(self, data: st.DataObject, tokens: int, is_answer: bool) -> None:
        """Store the result of a request and its bill: an answer, or a fault that is retried."""
        run, key, ledger, step = self.get(self.pick(data, self.in_flight()))
        usage = Usage(output=tokens).as_json()
        result = {"text": "Yes.", "finish": "stop", "usage": usage, "model": "m"} if is_answer else {"fault": "server"}
        bill = ev.Billed(key, key.rpartition("/")[2], len(step.attempts), "sim:m", tokens / 1000)

        async def record() -> None:
            ledger.record_result(key, ledger.attempts(key)[-1], result, bill)

        self.wait(record())
        step.attempts[-1] = "answer" if is_answer else "fault"
        self.runs[run].spent[key, len(step.attempts)] = tokens * TOKEN

    @precondition(lambda self: self.answered())
    @rule(data=st.data(), text=st.text(min_size=1, max_size=20), is_full=st.booleans())
    def accept(self, data: st.DataObject, text: str, is_full: bool) -> None:
        """Store the accepted answer. On a full disk nothing of it is stored, and the run stops."""
        run, key, ledger, step = self.get(self.pick(data, self.answered()))
        store = ledger.store
        assert isinstance(store, RunStore)
        is_full = is_full and self.server is None
        text = text + BIG_TEXT if is_full else text
        outcome = Outcome("ok", text, served_by="sim:m", attempts=len(step.attempts))
        if is_full:
            (pages,) = store._db.execute("PRAGMA page_count").fetchone()
            store._db.execute(f"PRAGMA max_page_count = {pages}")

        async def store_answer() -> None:
            ledger.accept_result(key, outcome, _state(key, outcome))
            if is_full:
                await ledger.emit_durably(ev.Noted("one more", "row"))

        try:
            self.wait(store_answer())
            step.result = text
        except StoreError as error:
            assert is_full and "free some space" in str(error)
            with pytest.raises(StoreError):  # nothing after it is stored either
                self.wait(ledger.emit_durably(ev.Noted("one more", "row")))
            self._drop(run)
        finally:
            if is_full:
                store._db.execute(f"PRAGMA max_page_count = {1 << 30}")

    @precondition(lambda self: self.owned)
    @rule(data=st.data(), phase=st.sampled_from(PHASES))
    def end_phase(self, data: st.DataObject, phase: str) -> None:
        run = self.pick(data, list(self.owned))
        self.owned[run][0].end_phase(phase, {})
        self.runs[run].phases.add(phase)

    # What must hold

    @invariant()
    def both_stores_have_what_the_model_has(self) -> None:
        self.figures["steps"] += 1
        for n, (run, model) in enumerate(self.runs.items()):
            store = self.stores[n % 2]
            for owner in self.stores:
                self.wait(owner.list_detached())  # its queued rows are stored
            record = self.wait(store.load(run))
            assert audit_record(record, lambda entries, kept=record.report: kept) == []
            assert {key: outcome.text for key, outcome in record.results.items()} == {
                key: step.result for key, step in model.steps.items() if step.result
            }
            assert {key: len(attempts) for key, attempts in record.attempts.items()} == {
                key: len(step.attempts) for key, step in model.steps.items() if step.attempts
            }
            assert (set(record.steps), set(record.phases)) == (set(model.steps), model.phases)
            reader = next(one for one in self.stores if run not in one._owned_runs)  # the owner reads it at intervals
            assert (record.status, self.wait(reader.is_cancelled(run))) == (model.status, model.is_cancelled)
            assert {key: row.amount for key, row in record.spending.items()} == model.spent
        rows = self.wait(self.stores[0].list_spending(DAY))
        total = sum(row["reserved"] if row["charged"] is None else row["charged"] for row in rows)
        assert total == self.spent_of_day() <= DAY_CAP


def _state(key: str, outcome: Outcome) -> ev.Stated:
    phase, _, seat = key.partition("/")
    return ev.Stated(key, phase, seat, "ok", outcome.text, None, "sim:m", {}, outcome.attempts, 0.1)


QUIET = list(HealthCheck)
QUICK = settings(
    max_examples=6, stateful_step_count=30, derandomize=True, deadline=None, database=None, suppress_health_check=QUIET
)
LONG = settings(max_examples=200, stateful_step_count=60, deadline=None, suppress_health_check=QUIET)


SHORT = settings(QUICK, max_examples=1)
ON_BOTH = pytest.mark.parametrize("server", ["", "postgres"], ids=["sqlite", "postgres"])


def make_machine(request: pytest.FixtureRequest, server: str) -> type[LedgerMachine]:
    return type("Machine", (LedgerMachine,), {"server": request.getfixturevalue(server) if server else None})


@ON_BOTH
@pytest.mark.behaviour("40-ledger-equals-model", "16-both-stores")
def test_the_ledger_equals_a_model_after_every_operation(request: pytest.FixtureRequest, server: str) -> None:
    machine = make_machine(request, server)
    run_state_machine_as_test(machine, settings=SHORT if server else QUICK)  # type: ignore[no-untyped-call]


@ON_BOTH
@pytest.mark.sweep
@pytest.mark.behaviour("40-ledger-equals-model", "16-both-stores")
def test_the_ledger_equals_a_model_in_many_long_sequences(
    request: pytest.FixtureRequest, sweep_figures: Callable[..., None], server: str
) -> None:
    LedgerMachine.figures.clear()
    run_state_machine_as_test(make_machine(request, server), settings=LONG)  # type: ignore[no-untyped-call]
    sweep_figures(f"ledger-model {server or 'sqlite'}", **LedgerMachine.figures, failures=0)
