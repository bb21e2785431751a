"""The ledger: results stored once, found by key, with an event for each write."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from council import events as ev
from council.engine.ledger import MAX_STREAM_CHARS, Ledger, compute_fingerprint
from council.errors import DuplicateKey, LedgerMismatch
from council.store.interface import Record
from council.store.sqlite import SqliteStore
from council.types import AbsenceRow, Message, Outcome
from tests.run_session import make_ask

pytestmark = pytest.mark.anyio
RUN = "r2345"
ASKED = ev.Asked("draft/alpha", "draft", "alpha", "scripted:")
ATTEMPTED = ev.Attempted("draft/alpha", "alpha", 1, "scripted:")
STATED = ev.Stated("draft/alpha", "draft", "alpha", "ok", "Tabs.", None, "scripted:", {}, 1, 0.1)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    store = SqliteStore(tmp_path / "store")
    store.post(RUN, [("run", ("a run", "here", 1.0, "random", "{}"))])
    yield store
    store.close()


@pytest.fixture
def heard() -> list[ev.Entry]:
    return []


@pytest.fixture
def ledger(store: SqliteStore, heard: list[ev.Entry]) -> Ledger:
    return Ledger(store, Record(RUN, "a run", "here", 1.0, "random", {}), heard.append)


async def reload_ledger(store: SqliteStore) -> Ledger:
    return Ledger(store, await store.load(RUN))


def live(store: SqliteStore) -> list[tuple[Any, ...]]:
    db = sqlite3.connect(store.path)
    try:
        return db.execute("SELECT key, group_concat(text, '') FROM live_parts GROUP BY key").fetchall()
    finally:
        db.close()


# Fingerprints


@pytest.mark.parametrize(
    "change",
    [
        {"messages": ({"role": "user", "content": "Spaces?"},)}, {"schema": {"type": "object"}}, {"temperature": 0.2},
        {"max_tokens": 600},
    ],
    ids=lambda change: next(iter(change)),
)  # fmt: skip
def test_any_change_of_the_request_changes_its_fingerprint(change: dict[str, Any]) -> None:
    assert compute_fingerprint(replace(make_ask(), **change), "m") != compute_fingerprint(make_ask(), "m")


def test_fingerprint_depends_on_the_member_and_not_on_the_key() -> None:
    assert compute_fingerprint(make_ask(), "m") != compute_fingerprint(make_ask(), "n")
    assert compute_fingerprint(make_ask("a"), "m") == compute_fingerprint(make_ask("b"), "m")


# Steps


@pytest.mark.behaviour("40-ledger-mismatch")
async def test_a_known_step_is_found_by_its_fingerprint_and_refused_under_another(
    store: SqliteStore, ledger: Ledger
) -> None:
    ledger.begin_step("draft/alpha", "print", ASKED)
    ledger.accept_result("draft/alpha", Outcome("ok", "Tabs."), STATED)
    reloaded = await reload_ledger(store)
    assert reloaded.find_result("draft/alpha", "print") == Outcome("ok", "Tabs.")
    assert reloaded.calls["replayed"] == 1
    with pytest.raises(LedgerMismatch, match="fork"):
        reloaded.find_result("draft/alpha", "another print")


async def test_step_without_a_result_is_not_found_and_can_begin_again(store: SqliteStore, ledger: Ledger) -> None:
    ledger.begin_step("draft/alpha", "print", ASKED)
    reloaded = await reload_ledger(store)
    assert reloaded.find_result("draft/alpha", "print") is None
    with pytest.raises(LedgerMismatch):
        reloaded.find_result("draft/alpha", "another print")
    reloaded.begin_step("draft/alpha", "print", ASKED)
    reloaded.accept_result("draft/alpha", Outcome("ok", "Tabs."), STATED)
    assert [entry.seq for entry in (await store.load(RUN)).entries] == [1, 2, 3]


@pytest.mark.behaviour("40-duplicate-key")
def test_a_key_is_claimed_once_in_a_process(ledger: Ledger) -> None:
    ledger.claim_key("draft/alpha")
    with pytest.raises(DuplicateKey, match='the key "draft/alpha"'):
        ledger.claim_key("draft/alpha")


async def test_non_strict_ledger_finds_results_by_key_alone(store: SqliteStore, ledger: Ledger) -> None:
    ledger.begin_step("draft/alpha", "print", ASKED)
    ledger.accept_result("draft/alpha", Outcome("ok", "Tabs."), STATED)
    lenient = Ledger(store, await store.load(RUN), strict=False)
    assert lenient.find_result("draft/alpha", "other words") == Outcome("ok", "Tabs.")


# Phases


@pytest.mark.behaviour("40-absence-replays")
async def test_an_absence_is_known_once_its_phase_has_ended(store: SqliteStore, ledger: Ledger) -> None:
    gone: AbsenceRow = {"seat": "beta", "state": "refused", "reason": "no"}
    assert ledger.find_absence("draft", "draft/beta") is None
    ledger.end_phase("draft", {"draft/beta": gone})
    reloaded = await reload_ledger(store)
    assert reloaded.find_absence("draft", "draft/beta") == gone
    assert reloaded.find_absence("draft", "draft/alpha") is None


async def test_a_phase_ends_once(store: SqliteStore, ledger: Ledger, heard: list[ev.Entry]) -> None:
    ledger.end_phase("draft", {})
    ledger.end_phase("draft", {})
    reloaded = await reload_ledger(store)
    reloaded.end_phase("draft", {})
    assert [entry.event for entry in (await store.load(RUN)).entries] == [ev.PhaseEnded("draft", [])]
    assert len(heard) == 1


# Attempts


@pytest.mark.behaviour("40-resume-byte-identical")
async def test_attempt_is_on_disk_with_its_bytes_before_it_is_sent(store: SqliteStore, ledger: Ledger) -> None:
    attempt = await ledger.record_attempt(ATTEMPTED, b'{"exact": "bytes"}')
    db = sqlite3.connect(store.path)  # another reader, as after a crash
    assert db.execute("SELECT key, n, member, body FROM intents").fetchall() == [
        ("draft/alpha", 1, "scripted:", b'{"exact": "bytes"}')
    ]
    db.close()
    assert (attempt.n, attempt.result, ledger.calls["made"]) == (1, None, 1)


@pytest.mark.behaviour("40-unsent-is-not-counted")
async def test_a_request_that_was_cancelled_before_it_was_sent_is_not_counted(
    store: SqliteStore, ledger: Ledger
) -> None:
    ledger.begin_step(ASKED.key, "print", ASKED)
    sending = asyncio.ensure_future(ledger.record_attempt(ATTEMPTED, b"{}"))
    await asyncio.sleep(0)  # it waits for the store
    sending.cancel()
    await asyncio.wait({sending})
    assert sending.cancelled()
    assert ledger.calls["made"] == 0
    assert (await reload_ledger(store)).calls == {"made": 0, "replayed": 0, "in_doubt": 0}
    assert (await ledger.record_attempt(ATTEMPTED, b"{}")).n == 1


@pytest.mark.behaviour("15-prompts-leave-memory")
async def test_an_answered_request_and_its_prompt_are_only_in_the_store(store: SqliteStore, ledger: Ledger) -> None:
    prompt: list[Message] = [{"role": "user", "content": "Tabs or spaces?"}]
    ledger.begin_step(ASKED.key, "print", replace(ASKED, messages=prompt))
    attempt = await ledger.record_attempt(ATTEMPTED, b"the request")
    ledger.record_result(ASKED.key, attempt, {"text": "Tabs.", "finish": "stop", "usage": {}, "model": ""})
    assert attempt.body == b"" and ledger.record.entries[0].event == ASKED
    stored = await store.load(RUN)
    assert stored.entries[0].event == replace(ASKED, messages=prompt)
    assert stored.attempts[ASKED.key][0].body == b"the request"


async def test_the_attempts_of_all_processes_are_counted_after_a_resume(store: SqliteStore, ledger: Ledger) -> None:
    first = await ledger.record_attempt(ATTEMPTED, b"1")
    ledger.record_result("draft/alpha", first, {"fault": "net", "detail": "", "said": "", "retry_after": None})
    await ledger.record_attempt(replace(ATTEMPTED, n=2), b"2")
    reloaded = await reload_ledger(store)
    assert [attempt.result is None for attempt in reloaded.attempts("draft/alpha")] == [False, True]
    await reloaded.record_attempt(replace(ATTEMPTED, n=3), b"2")
    assert reloaded.calls == {"made": 3, "replayed": 0, "in_doubt": 2}  # the second by the first process


# Closing


async def test_closing_event_status_and_report_are_written_together(store: SqliteStore, ledger: Ledger) -> None:
    closed = ev.Closed("complete", {"answer": "Tabs."}, dict(ledger.calls))
    await ledger.close(closed, lambda entries: f"{len(entries)} events")
    record = await store.load(RUN)
    assert (record.status, record.report, record.entries[-1].event) == ("complete", "1 events", closed)


# Streaming


@pytest.mark.behaviour("40-live-table")
async def test_a_stream_is_shown_piece_by_piece_and_written_ten_times_a_second(
    store: SqliteStore, ledger: Ledger, heard: list[ev.Entry]
) -> None:
    seen: list[str] = []
    store._db.set_trace_callback(seen.append)
    started = time.monotonic()
    for n in range(2000):
        ledger.stream_delta("draft/alpha", "alpha", f"{n} ")
    took = time.monotonic() - started
    await store.list_runs()
    writes = sum("INTO live" in line for line in seen)
    assert 1 <= writes <= 1 + took / 0.1
    assert len(heard) == 2000
    assert heard[-1] == ev.Entry(0, heard[-1].at, ev.Delta("draft/alpha", "alpha", "1999 "))
    assert (await store.load(RUN)).entries == []


@pytest.mark.behaviour("40-live-table")
async def test_a_long_stream_is_written_less_often_and_each_part_once(
    store: SqliteStore, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, writes = 1000.0, []
    monkeypatch.setattr("council.engine.ledger.time.monotonic", lambda: clock)
    store._db.set_trace_callback(lambda line: writes.append(len(line)) if "INTO live" in line else None)
    for _ in range(600):  # a minute, 1 KB at a time
        clock += 0.1
        ledger.stream_delta("draft/alpha", "alpha", "x" * 1024)
    await store.list_runs()
    assert 100 < len(writes) < 200
    ((key, text),) = live(store)
    assert (key, set(text)) == ("draft/alpha", {"x"}) and len(text) > 590_000
    assert sum(writes) < len(text) + 200 * len(writes)


@pytest.mark.behaviour("40-live-table")
async def test_the_streamed_text_of_a_statement_is_bounded(store: SqliteStore, ledger: Ledger) -> None:
    ledger.stream_delta("draft/alpha", "alpha", "x" * (MAX_STREAM_CHARS + 5))
    for _ in range(100):
        ledger.stream_delta("draft/alpha", "alpha", "y" * 1024)
    await store.list_runs()
    assert live(store) == [("draft/alpha", "x" * MAX_STREAM_CHARS)]
    assert sum(map(len, ledger.live_texts["draft/alpha"].pieces)) == 0


@pytest.mark.behaviour("40-clock-jump")
async def test_events_are_in_order_if_the_clock_is_set(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    started = time.time()
    for jump in (-3600.0, 86400.0):
        monkeypatch.setattr(time, "time", lambda jump=jump: started + jump)
        ledger.emit(ev.Noted("the clock was set", str(jump)))
        resumed = Ledger(ledger.store, ledger.record)
        resumed.emit(ev.Resumed(ledger.run, None))
        ledger = resumed
    times = [entry.at for entry in ledger.record.entries]
    assert times == sorted(times) and times[-2] - times[0] < 3600.0


@pytest.mark.behaviour("40-live-table")
async def test_streamed_text_is_cleared_when_the_statement_is_complete(store: SqliteStore, ledger: Ledger) -> None:
    ledger.stream_delta("draft/alpha", "alpha", "Ta")
    ledger.stream_delta("draft/beta", "beta", "Spa")
    await store.list_runs()
    assert live(store) == [("draft/alpha", "Ta"), ("draft/beta", "Spa")]
    ledger.begin_step("draft/alpha", "print", ASKED)
    ledger.accept_result("draft/alpha", Outcome("ok", "Tabs."), STATED)
    ledger.discard_stream("draft/beta")
    await store.list_runs()
    assert live(store) == []


async def test_stream_restarts_after_a_failed_attempt(store: SqliteStore, ledger: Ledger) -> None:
    ledger.stream_delta("draft/alpha", "alpha", "half an ans")
    ledger.discard_stream("draft/alpha")
    ledger.stream_delta("draft/alpha", "alpha", "whole")
    await store.list_runs()
    assert live(store) == [("draft/alpha", "whole")]
