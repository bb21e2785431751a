"""What every run store does, in SQLite and in PostgreSQL: rows written once, one owner, complete records."""

from __future__ import annotations

import asyncio
import json
import secrets
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from council import events as ev
from council.errors import RunOwned, StoreError, UnknownRun
from council.store.interface import DecisionOutcome, Row, StoreAddress
from council.store.run_store import Job, RunStore
from council.store.shared import open_store
from council.types import FinalState, Outcome, OutcomeLabel, RunOutcomes, Usage, encode_json

pytestmark = pytest.mark.anyio
RUN = "r2345"
RUN_ROW: Row = ("run", ("a run", "here", 1.0, "random", "{}"))
TWICE = "UNIQUE constraint failed|duplicate key value"


@pytest.fixture
def store(store_address: StoreAddress) -> Iterator[RunStore]:
    store = open_store(store_address)
    assert isinstance(store, RunStore)
    store.post(RUN, [RUN_ROW])
    yield store
    store.close()


def event(seq: int, tag: str = "note", body: str = '{"what":"a","why":"b"}') -> Row:
    return ("event", (seq, 1.0, tag, body))


# Rows are written once


@pytest.mark.behaviour("40-append-once")
@pytest.mark.parametrize(
    "row",
    [
        event(1), ("step", ("k", "print")), ("result", ("k", "{}")), ("intent", ("k", 1, "m", b"x", 1.0)),
        ("settled", ("k", 1, "{}", 1.0)), ("phase", ("draft", "{}")), RUN_ROW,
    ],
    ids=lambda row: row[0],
)  # fmt: skip
@pytest.mark.refused_rows
async def test_the_database_itself_refuses_a_second_row_under_one_key(store: RunStore, row: Row) -> None:
    if row != RUN_ROW:
        await store.write(RUN, [row])
    with pytest.raises(StoreError, match=TWICE):
        await store.write(RUN, [row])


@pytest.mark.behaviour("50-attachments-resume")
async def test_the_content_of_an_attachment_is_restored_in_the_setup_and_in_every_request(store: RunStore) -> None:
    data = secrets.token_hex(50_000)
    setup = {"question": {"text": "Why?"}, "packet": {"attachments": [{"path": "attached/a.png", "data": data}]}}
    bodies = [encode_json({"image": data}), encode_json({"url": f"data:image/png;base64,{data}"})]
    rows: list[Row] = [("intent", ("k", n, "m", body, 1.0)) for n, body in enumerate(bodies, 1)]
    await store.write("r3456", [("run", ("a run", "here", 1.0, "random", json.dumps(setup))), *rows])
    await store.write("r3456", [("detach", (json.dumps(setup),))])
    record, exported = await store.load("r3456"), list[str]()
    assert record.setup == setup and [attempt.body for attempt in record.attempts["k"]] == bodies
    await store.export_run("r3456", exported.append)
    assert json.loads("".join(exported))["setup"] == setup
    query = "SELECT sum(length(body)) FROM texts WHERE run = ?"
    assert (await store._read(lambda db: db.execute(query, ("r3456",)).fetchone()))[0] < len(data)


@pytest.mark.behaviour("15-queued-runs-leave-memory")
async def test_a_process_keeps_nothing_of_the_runs_that_it_queues_for_others(store: RunStore) -> None:
    queued = ("queue", ("a run", "here", 1.0, "random", "{}"))
    await asyncio.gather(*(store.write(f"r{n}", [queued, event(1)]) for n in range(20)))
    assert store._texts == {}
    async with store.lock_run(RUN):
        await store.write(RUN, [("intent", ("k", 1, "m", b'{"a":1}', 1.0))])
        assert list(store._texts) == [RUN]
    assert store._texts == {}


@pytest.mark.refused_rows
async def test_rows_of_one_write_are_stored_all_or_none(store: RunStore) -> None:
    await store.write(RUN, [event(1)])
    with pytest.raises(StoreError):
        await store.write(RUN, [event(2), event(1)])
    assert [entry.seq for entry in (await store.load(RUN)).entries] == [1]


@pytest.mark.refused_rows
async def test_the_failing_rows_of_one_run_roll_back_only_that_run(store: RunStore) -> None:
    jobs = [store.write(RUN, [event(1)]), store.write("other", [event(1), event(1)]), store.write("r3456", [RUN_ROW])]
    first, second, third = await asyncio.gather(*jobs, return_exceptions=True)
    assert (first, type(second), third) == (None, StoreError, None)
    assert [entry.seq for entry in (await store.load(RUN)).entries] == [1]


@pytest.mark.behaviour("40-step-in-one-transaction")
@pytest.mark.refused_rows
async def test_after_a_write_that_failed_no_later_row_of_the_run_is_stored(store: RunStore) -> None:
    await store.write(RUN, [event(1)])
    with pytest.raises(StoreError):
        await store.write(RUN, [event(1)])
    with pytest.raises(StoreError):
        await store.write(RUN, [event(2)])
    assert [entry.seq for entry in (await store.load(RUN)).entries] == [1]


@pytest.mark.refused_rows
async def test_a_queued_row_that_failed_is_raised_by_the_next_write(store: RunStore) -> None:
    store.post(RUN, [event(1)])
    store.post(RUN, [event(1)])
    await store.load(RUN)  # everything before this has been tried
    with pytest.raises(StoreError, match=TWICE):
        await store.write(RUN, [event(2)])


@pytest.mark.behaviour("40-step-in-one-transaction")
@pytest.mark.refused_rows
async def test_rows_that_cannot_be_stored_take_the_others_of_their_step_with_them(store: RunStore) -> None:
    store.post(RUN, [("settled", ("k", 1, "{}", 1.0)), ("charge", ("k", 1, 10**19, 0))])
    with pytest.raises(StoreError, match=r"too large.*set COUNCIL_DATA|bigint out of range") as caught:
        await store.write(RUN, [("result", ("k", "{}"))])
    assert "free some space" not in str(caught.value)
    with pytest.raises(StoreError):  # later rows would leave a gap
        await store.write(RUN, [event(1)])
    record = await store.load(RUN)
    assert (record.results, record.entries) == ({}, [])
    await store.write("r3456", [RUN_ROW])  # other runs of the process continue
    async with store.lock_run(RUN):  # resumed
        await store.write(RUN, [event(1)])


async def test_close_waits_for_queued_rows(store_address: StoreAddress) -> None:
    store = open_store(store_address)
    store.post(RUN, [RUN_ROW, *(event(seq) for seq in range(1, 51))])
    store.close()
    store = open_store(store_address)
    assert len((await store.load(RUN)).entries) == 50
    store.close()


# One owner


HOLD = """
import asyncio, sys
from pathlib import Path
from council.store.interface import StoreAddress
from council.store.shared import open_store

async def hold():
    async with open_store(StoreAddress(Path(sys.argv[1]), sys.argv[2])).lock_run("r2345"):
        print("held", flush=True)
        sys.stdin.read()

asyncio.run(hold())
"""


@pytest.mark.behaviour("40-one-owner")
async def test_second_process_is_refused_and_a_killed_one_releases_the_lock(
    store: RunStore, store_address: StoreAddress
) -> None:
    argv = [sys.executable, "-c", HOLD, str(store_address.folder), store_address.url]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:  # noqa: ASYNC220
        assert holder.stdout is not None and holder.stdout.readline() == b"held\n"
        assert await store.is_locked(RUN)
        with pytest.raises(RunOwned, match="run r2345 is running in another process"):
            async with store.lock_run(RUN):
                pass
        async with store.lock_run("r3456"):
            pass  # another run is free
        holder.send_signal(signal.SIGKILL)
        holder.wait()
        async with store.lock_run(RUN):
            assert await store.is_locked(RUN)
    assert not await store.is_locked(RUN)


# Records


async def test_an_unknown_run_points_to_the_list(store: RunStore) -> None:
    with pytest.raises(UnknownRun, match=r'there is no run "r9": `client.runs\(\)` lists them'):
        await store.load("r9")


PLAIN = (
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
)
JSON = st.dictionaries(
    st.text(),
    st.recursive(PLAIN, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=5),
    max_size=4,
)
BY_TYPE: dict[Any, Any] = {
    FinalState: st.sampled_from(get_args(FinalState)),
    str: st.text(), int: st.integers(0, 2**53), float: st.floats(allow_nan=False, allow_infinity=False),
    bool: st.booleans(), float | None: st.none() | st.floats(0, 1e6), dict[str, str]: st.dictionaries(st.text(), st.text()), dict[str, Any]: JSON, dict[str, Any] | None: st.none() | JSON,
    list[str]: st.lists(st.text()), list[dict[str, str]]: st.lists(st.dictionaries(st.text(), st.text())),
}  # fmt: skip
EVENTS = [kind for kind in get_args(ev.Event) if kind not in ev.TRANSIENT_EVENTS]


def any_event(kind: type[Any]) -> st.SearchStrategy[Any]:
    hints = {name: hint for name, hint in get_type_hints(kind).items() if name != "type"}
    return st.builds(kind, **{name: _any_value(hint) for name, hint in hints.items()})


def _any_value(hint: Any) -> st.SearchStrategy[Any]:
    found: st.SearchStrategy[Any] = st.sampled_from(get_args(hint)) if get_origin(hint) is Literal else BY_TYPE[hint]
    return found


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def shared(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    with ExitStack() as databases:
        url = ""
        if request.param == "postgres":
            url = databases.enter_context(request.getfixturevalue("postgres").database())
        store = open_store(StoreAddress(tmp_path_factory.mktemp("shared"), url))
        yield store, iter(range(10**6))
        store.close()


@given(told=st.lists(st.one_of([any_event(kind) for kind in EVENTS]), min_size=1, max_size=8))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_event_round_trips(shared: Any, told: list[Any]) -> None:
    from council.engine.ledger import Ledger
    from council.store.interface import Record

    store, numbers = shared
    run = f"r{next(numbers)}"

    async def round_trip() -> list[Any]:
        heard: list[Any] = []
        ledger = Ledger(store, Record(run, "", "", 1.0, "", {}), heard.append)
        await store.write(run, [RUN_ROW])
        for event in told:
            ledger.emit(event)
        entries = (await store.load(run)).entries
        assert entries == heard
        return [entry.event for entry in entries]

    assert asyncio.run(round_trip()) == told


async def test_steps_results_attempts_and_phases_round_trip(store: RunStore) -> None:
    outcome = Outcome("ok_repaired", "text", "", "m", Usage(1, 2, 3), 2, 0.5)
    rows: list[Row] = [
        ("step", ("k", "print")), ("result", ("k", json.dumps(outcome.as_json()))),
        ("intent", ("k", 1, "m", b"\x00\xff", 1.0)), ("settled", ("k", 1, '{"fault":"net"}', 2.0)),
        ("intent", ("k", 2, "m", b"two", 3.0)), ("phase", ("draft", '{"draft/beta":{"seat":"beta"}}')),
        ("close", ("complete", "report")),
    ]  # fmt: skip
    await store.write(RUN, rows)
    record = await store.load(RUN)
    assert (record.steps, record.results) == ({"k": "print"}, {"k": outcome})
    assert [(a.n, a.body, a.result) for a in record.attempts["k"]] == [
        (1, b"\x00\xff", {"fault": "net"}),
        (2, b"two", None),
    ]
    assert record.phases == {"draft": {"draft/beta": {"seat": "beta"}}}
    assert (record.status, record.report, record.seed) == ("complete", "report", "random")


@pytest.mark.behaviour("00-resume-newest")
async def test_the_newest_unfinished_run_of_a_folder_is_found(store: RunStore) -> None:
    for n, folder in enumerate(("here", "there", "here")):
        await store.write(f"r{n}", [("run", ("a run", folder, 10.0 + n, "random", "{}"))])
    await store.write("r2", [("close", ("complete", ""))])
    assert await store.find_newest_unfinished("here") == "r0"
    assert await store.find_newest_unfinished("nowhere") is None
    assert await store.find_newest("here") == "r2"
    assert [run["run"] for run in await store.list_runs()] == ["r1", "r0", RUN, "r2"]  # unfinished first


async def test_a_run_id_that_is_taken_is_not_used(store: RunStore, monkeypatch: pytest.MonkeyPatch) -> None:
    await store.write("r22222222", [RUN_ROW])
    numbers = iter((0, sum(31**place for place in range(8))))  # the first character everywhere, then the second one
    monkeypatch.setattr(secrets, "randbits", lambda count: next(numbers))
    assert await store.new_run_id() == "r33333333"


@pytest.mark.parametrize("turns", range(6))
async def test_a_read_that_waits_for_own_rows_can_be_cancelled_at_any_moment(store: RunStore, turns: int) -> None:
    blocked, stored = threading.Event(), threading.Event()
    store._reader.put(Job("", lambda db: blocked.wait(60), lambda result, error: None))
    written = threading.Event()
    store._writer.put(Job("", lambda db: written.wait(60), lambda result, error: None))
    reading = asyncio.ensure_future(store.list_runs())
    await asyncio.sleep(0)  # it waits for the writer
    store._writer.put(Job("", lambda db: None, lambda result, error: stored.set()))
    written.set()
    assert stored.wait(60)  # the result is on the way, but the event loop has not seen it
    for _ in range(turns):
        await asyncio.sleep(0)
    reading.cancel()
    done, _ = await asyncio.wait({reading}, timeout=60)
    blocked.set()
    assert done and reading.cancelled()


# Queries


async def test_the_ids_of_removed_runs_with_spending_stay_used(store: RunStore) -> None:
    spent = ("k", 1, "m", 1.0, "2026-11-16", "", None)
    await store.write("r3456", [RUN_ROW, ("reserve", spent)])
    await store.write("r4567", [RUN_ROW])
    for run in ("r3456", "r4567"):
        async with store.lock_run(run):
            await store.delete_run(run)
    assert sorted(await store.find_used_ids([RUN, "r3456", "r4567", "r9999"])) == [RUN, "r3456"]


async def test_only_answers_of_the_member_count_for_its_speed(store: RunStore) -> None:
    rows: list[Row] = [("intent", ("k", n, "fast" if n < 3 else "slow", b"x", 10.0)) for n in (1, 2, 3)]
    ends: list[Row] = [
        ("settled", ("k", n, body, 10.0 + n)) for n, body in ((1, "{}"), (2, '{"fault":"net"}'), (3, "{}"))
    ]
    await store.write(RUN, [*rows, *ends])
    assert [await store.answer_seconds(member) for member in ("fast", "slow", "other")] == [[1.0], [3.0], []]


async def test_ended_detached_runs_are_the_newest_complete_ones(store: RunStore) -> None:
    queued: Row = ("queue", RUN_ROW[1])
    for n in range(3):
        await store.write(f"r{n}", [queued, ("close", ("complete", ""))])
    await store.write("r3", [queued, ("close", ("failed", ""))])
    await store.write(RUN, [("close", ("complete", ""))])
    assert await store.list_ended_detached(2) == ["r2", "r1"]


async def test_outcomes_are_listed_by_time_and_a_later_one_replaces_that_of_its_run(store: RunStore) -> None:
    for at, run, label in ((3.0, "r3", "right"), (1.0, "r1", "wrong"), (2.0, "r3", "wrong")):
        await store.save_outcome(run, {"at": at, "label": label, "value": "", "note": "", "seats": []})
    listed = [(row["run"], row["label"]) for row in await store.list_outcomes()]
    assert listed == [("r1", "wrong"), ("r3", "wrong")]
    assert [row["run"] for row in await store.list_outcomes("r1")] == ["r1"] and await store.list_outcomes(RUN) == []
    assert [(row["at"], row["label"]) for row in await store.list_earlier_outcomes("r3")] == [(3.0, "right")]


def make_outcome(label: OutcomeLabel, at: float = 1.0) -> DecisionOutcome:
    return {"at": at, "label": label, "value": "43", "note": "counted", "seats": []}


def plan_event(**plan: object) -> Row:
    return "event", (1, 1.0, "convened", json.dumps({"run": "", "name": "", "plan": plan, "folder": ""}))


@pytest.mark.behaviour("evidence-outcome-stored")
async def test_the_outcome_of_a_run_is_in_lists_and_is_loaded_with_those_it_builds_on(store: RunStore) -> None:
    await store.write("r2", [RUN_ROW, plan_event(continues=RUN)])
    await store.write("r3", [RUN_ROW, plan_event(continues="r2", fork={"run": "r9999", "from": "draft"})])
    await store.write("r4", [RUN_ROW, plan_event(fork={"run": "r3", "from": "draft"}, continues="r2")])
    assert await store.load_outcomes("r4") == RunOutcomes()
    await store.save_outcome(RUN, make_outcome("wrong"))
    await store.save_outcome("r2", make_outcome("right"))
    assert {row["run"]: row["decision_outcome"] for row in await store.list_runs()} == {RUN: "wrong", "r2": "right", "r3": None, "r4": None}  # fmt: skip
    assert await store.load_outcomes("r4") == RunOutcomes(None, {"r2": "right", RUN: "wrong"})
    own = (await store.load_outcomes(RUN)).own
    assert own == {"at": 1.0, "label": "wrong", "value": "43", "note": "counted"}


@pytest.mark.behaviour("evidence-outcome-stored")
async def test_a_removed_run_takes_its_outcomes_along_but_for_the_record_of_its_seats(store: RunStore) -> None:
    await store.save_outcome(RUN, make_outcome("right", 1.0))
    await store.save_outcome(RUN, make_outcome("wrong", 2.0))
    await store.skip_outcome(RUN)
    exported: list[str] = []
    await store.export_run(RUN, exported.append)
    assert [row["label"] for row in json.loads("".join(exported))["outcomes"]] == ["right", "wrong"]
    async with store.lock_run(RUN):
        await store.delete_run(RUN)
    assert await store.list_earlier_outcomes(RUN) == []
    assert [(row["label"], row["value"], row["note"]) for row in await store.list_outcomes()] == [("wrong", "", "")]


@pytest.mark.behaviour("evidence-outcome-ask")
async def test_decisions_without_an_outcome_are_the_complete_ones_oldest_first_and_skipped_ones_last(
    store: RunStore,
) -> None:
    report = json.dumps({"answer": "Scale up.", "trust": {"level": "HIGH"}})
    for name in ("r2", "r3", "r4", "r5"):
        await store.write(name, [RUN_ROW, ("close", ("complete" if name != "r4" else "incomplete", report))])
    of_evaluation = json.dumps({"batch": {"evaluation": True}})
    await store.write("r6", [("run", ("e", "/f", 1.0, "s", of_evaluation)), ("close", ("complete", report))])
    await store.save_outcome("r5", make_outcome("right"))
    await store.skip_outcome("r2")
    found = await store.list_open_decisions()
    assert [(row["run"], row["answer"], row["trust"], row["skipped"] is None) for row in found] == [
        ("r3", "Scale up.", "HIGH", True),
        ("r2", "Scale up.", "HIGH", False),
    ]
    assert [row["run"] for row in await store.list_open_decisions(limit=1)] == ["r3"]
    assert await store.list_open_decisions({"to": 0.0}) == []


async def test_an_answer_counts_once_and_only_for_its_prompt(store: RunStore) -> None:
    await store.write(RUN, [("ask", ("k", "alpha", "Why?", "null", 1.0))])
    assert await store.get_answer(RUN, "k", "Why?") is None
    assert [await store.save_answer(RUN, "k", text) for text in ("first", "second")] == [True, False]
    assert [await store.get_answer(RUN, "k", prompt) for prompt in ("Why?", "How?")] == ["first", None]
    assert await store.list_open_asks() == []


async def test_a_cancelled_run_is_known_to_every_process_until_it_is_closed(store: RunStore) -> None:
    assert not await store.is_cancelled(RUN)
    await store.write(RUN, [("cancel", ())])
    assert await store.is_cancelled(RUN)
    await store.write(RUN, [("close", ("incomplete", "")), ("reopen", ())])
    assert not await store.is_cancelled(RUN)
