"""Consistency checks of a record: each is violated once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from council import events as ev
from council.events import Entry
from council.members.scripted import Scripted
from council.runs.audit import audit_record
from council.runs.service import Convener
from council.store.interface import Attempt, Record
from council.types import Outcome

SEATS = dict.fromkeys(("alpha", "beta", "gamma", "chair"), "scripted:")
Damage = Callable[[Record], object]


async def make_record(script: dict[str, object] | None = None) -> Record:
    convener = Convener(Path.cwd(), flags={"seats": SEATS}, members=[Scripted(script=script or {})])
    try:
        minutes = await convener.run(await convener.plan(["Tabs or spaces?"], protocol="triad"), lambda entry: None)
        assert await convener.audit(minutes.run) == []
        return await convener.store.load(minutes.run)
    finally:
        await convener.close()


def problems(record: Record) -> list[str]:
    kept = record.report
    return audit_record(record, lambda entries: kept)


def remove_event(record: Record, tag: str, nth: int = 0) -> None:
    """Remove one event and renumber the rest, so that no gap is reported."""
    found = [entry for entry in record.entries if entry.event.type == tag][nth]
    left = [entry for entry in record.entries if entry is not found]
    record.entries[:] = [Entry(n, entry.at, entry.event) for n, entry in enumerate(left, 1)]


def duplicate_event(record: Record, tag: str) -> None:
    (end,) = record.entries[-1:]
    event = next(entry.event for entry in record.entries if entry.event.type == tag)
    record.entries[-1:] = [Entry(end.seq, end.at, event), Entry(end.seq + 1, end.at, end.event)]


def remove_answer(record: Record) -> None:
    record.attempts["draft/beta"][0].result = {"fault": "net", "detail": "", "said": "", "retry_after": None}


def set_status(record: Record, status: str) -> None:
    record.status = status


DAMAGES: dict[str, tuple[Damage, str]] = {
    "a gap": (lambda r: r.entries.pop(3), "the events have a gap: number 4 is missing"),
    "a result without a step": (lambda r: r.results.update(stray=Outcome("ok")), 'the result "stray" has no step'),
    "a duplicate statement": (lambda r: duplicate_event(r, "statement"), 'the result "draft/alpha" has 2 events, not 1'),
    "a result without a statement": (lambda r: remove_event(r, "statement", 3), 'the result "merge/chair" has 0 events, not 1'),
    "a result without an answer": (remove_answer, 'the result "draft/beta" has no attempt with an answer'),
    "a result without an intent": (
        lambda r: r.attempts.pop("draft/beta"), 'the result "draft/beta" has no attempt with an answer'
    ),
    "a statement without a result": (lambda r: r.results.pop("draft/beta"), 'the statement "draft/beta" has no result'),
    "attempts with a gap": (
        lambda r: r.attempts["draft/beta"].insert(0, Attempt(3, "m", b"")),
        'the attempts of "draft/beta" are not numbered from 1 without a gap',
    ),
    "asked after it was answered": (
        lambda r: r.attempts["draft/beta"].append(Attempt(2, "m", b"")),
        '"draft/beta" was asked again after its result was stored',
    ),
    "attempts of no step": (
        lambda r: r.attempts.update(stray=[Attempt(1, "m", b"")]), 'the attempts of "stray" belong to no step'
    ),
    "asked after the phase had ended": (
        lambda r: duplicate_event(r, "asked"), '"draft/alpha" was asked after its phase had ended'
    ),
    "a phase end without a row": (
        lambda r: r.phases.pop("draft"), 'the end of the phase "draft" has an event or a row, but not both'
    ),
    "a phase end without an event": (
        lambda r: remove_event(r, "phase_ended"), 'the end of the phase "draft" has an event or a row, but not both'
    ),
    "a status without an end": (
        lambda r: remove_event(r, "closed"), 'the run has the status "complete", but its last event is not "closed"'
    ),
    "another status than its end": (
        lambda r: set_status(r, "failed"), 'the run has the status "failed", but its closed event says "complete"'
    ),
}  # fmt: skip


@pytest.mark.anyio
@pytest.mark.behaviour("40-fsck-invariants")
@pytest.mark.parametrize("damage", DAMAGES)
async def test_each_damage_is_reported(damage: str) -> None:
    record = await make_record()
    assert problems(record) == []
    do, told = DAMAGES[damage]
    do(record)
    assert told in problems(record)


@pytest.mark.anyio
@pytest.mark.behaviour("40-fsck-invariants", "40-report-same-bytes")
async def test_report_that_differs_from_the_ledger_is_reported() -> None:
    record = await make_record()
    assert audit_record(record, lambda entries: "another") == [
        "the report rebuilt from the ledger differs from the stored one"
    ]


@pytest.mark.anyio
async def test_run_with_absences_retries_and_repairs_is_consistent() -> None:
    script = {"draft/beta": {"fail": "server"}, "draft/gamma": {"fail": "net", "times": 2}}
    record = await make_record(script)
    assert problems(record) == []
    assert len(record.attempts["draft/gamma"]) == 3


def insert_request(record: Record, key: str, after: str) -> None:
    """Insert another request of a step after the first event of this type."""
    attempts = record.attempts[key]
    attempts.append(replace(attempts[-1], n=len(attempts) + 1))
    place = next(n for n, entry in enumerate(record.entries) if entry.event.type == after)
    sent = Entry(0, record.entries[place].at, ev.Attempted(key, "beta", len(attempts), "scripted:"))
    entries = [*record.entries[: place + 1], sent, *record.entries[place + 1 :]]
    record.entries[:] = [Entry(n, entry.at, entry.event) for n, entry in enumerate(entries, 1)]
    record.status = "running"
    record.entries.pop()


@pytest.mark.anyio
@pytest.mark.behaviour("40-fsck-invariants", "40-rejected-answer-never-bought-again")
async def test_a_step_that_is_asked_again_after_its_answers_were_rejected_is_reported() -> None:
    asked_again = '"draft/beta" was asked again after its answers were rejected'
    rejected = await make_record({"draft/beta": {"fail": "refused"}})
    assert problems(rejected) == []
    insert_request(rejected, "draft/beta", "absence")
    assert asked_again in problems(rejected)
    failed = await make_record({"draft/beta": {"fail": "server"}})
    insert_request(failed, "draft/beta", "absence")
    assert asked_again not in problems(failed)
    older = replace(rejected, setup=rejected.setup | {"rules": 4})
    assert asked_again not in problems(older), "with older rules, a rejected answer was asked for again"


@pytest.mark.anyio
@pytest.mark.behaviour("40-rejected-answer-asked-again-after-the-end")
async def test_a_resumed_run_without_enough_answers_may_ask_again() -> None:
    record = await make_record({"draft/beta": {"fail": "refused"}})
    place = next(n for n, entry in enumerate(record.entries) if entry.event.type == "absence")
    at = record.entries[place].at
    ended = [Entry(0, at, ev.Closed("failed", {}, {}, "quorum")), Entry(0, at, ev.Resumed("r"))]
    record.entries[place + 1 : place + 1] = ended
    insert_request(record, "draft/beta", "resumed")
    assert '"draft/beta" was asked again after its answers were rejected' not in problems(record)


@pytest.mark.anyio
async def test_running_run_is_consistent() -> None:
    record = await make_record()
    record.entries.pop()
    assert problems(replace(record, status="running")) == []
    assert problems(Record("r", "", "", 0.0, "", {})) == []


@pytest.mark.anyio
async def test_an_audit_changes_nothing() -> None:
    record = await make_record()
    before = (list(record.entries), dict(record.results), dict(record.phases))
    problems(record)
    assert (record.entries, record.results, record.phases) == before
    assert isinstance(record.entries[-1].event, ev.Closed)
