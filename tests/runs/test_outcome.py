"""Endings of runs that are cut short."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from council.engine.council import Council
from council.errors import BudgetSpent, StoreError
from council.members.scripted import Scripted
from council.protocols import Protocol
from council.runs.outcome import end_stopped, name_resume, run_protocol
from council.store.sqlite import SqliteStore
from council.types import Verdict
from tests.run_session import open_session

pytestmark = pytest.mark.anyio


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    store = SqliteStore(tmp_path / "store")
    yield store
    store.close()


async def tallied(council: Council) -> Verdict:
    """Poll, record the tally, then ask the chair."""
    async with council.phase("draft"):
        await council.poll(council.members, "t/say")
    council.so_far(Verdict("Two of three agree.", dissent=("gamma",)))
    async with council.phase("decide"):
        return Verdict((await council.ask(council.chair, "t/say")).text)


async def spends_all(council: Council) -> Verdict:
    await tallied(council)
    raise BudgetSpent("the budget is used up")


async def test_without_the_chair_the_ending_is_the_digest_and_the_partial_verdict(
    store: SqliteStore, tmp_path: Path
) -> None:
    session = await open_session(store, tmp_path, Scripted(script={"decide/chair": {"fail": "auth"}}))
    ending = await run_protocol(session.council, Protocol("tallied", tallied), {})
    assert (ending.status, ending.stopped) == ("incomplete", "chair")
    assert ending.verdict.answer.startswith("## No chair: digest of statements")
    assert ending.verdict.answer.endswith("Two of three agree.")
    assert ending.verdict.dissent == ("gamma",)


async def test_a_run_cut_short_later_also_reports_the_partial_verdict(store: SqliteStore, tmp_path: Path) -> None:
    session = await open_session(store, tmp_path)
    by_budget = await run_protocol(session.council, Protocol("spends", spends_all), {})
    endings = [by_budget, *(end_stopped(session.council, why) for why in ("interrupted", "cancelled"))]
    assert [ending.stopped for ending in endings] == ["budget", "interrupted", "cancelled"]
    assert all(ending.verdict.answer.endswith("Two of three agree.") for ending in endings)
    assert all(ending.verdict.dissent == ("gamma",) for ending in endings)


async def test_an_error_of_the_store_names_the_command_once(store: SqliteStore, tmp_path: Path) -> None:
    run = (await open_session(store, tmp_path)).record.run
    with pytest.raises(StoreError) as failed:
        async with name_resume(store, run), name_resume(store, run):
            raise StoreError("the disk is full")
    kept = f"the stored answers of run {run} are kept: continue it with `council resume {run}`"
    assert str(failed.value) == f"the disk is full; {kept}"


async def test_a_complete_run_ignores_the_partial_verdict(store: SqliteStore, tmp_path: Path) -> None:
    session = await open_session(store, tmp_path, Scripted(script={"decide/chair": {"text": "Tabs."}}))
    ending = await run_protocol(session.council, Protocol("tallied", tallied), {})
    assert (ending.status, ending.verdict) == ("complete", Verdict("Tabs."))
