"""Leases: announcements within the limit of the database, and the name of a process."""

from __future__ import annotations

import asyncio
import os
from contextlib import closing
from pathlib import Path

import pytest

from council.store import leases
from council.store.interface import RUN_ID_ALPHABET, StoreAddress, format_run_id
from council.store.postgres import PostgresStore
from council.store.run_store import without_discarded


def test_announcements_have_all_runs_and_stay_within_the_limit() -> None:
    runs = [format_run_id(n) for n in range(2000)]
    payloads = leases.split_payload(runs)
    assert len(payloads) == 3
    assert max(map(len, payloads)) <= leases.MAX_PAYLOAD_CHARS < max(map(len, payloads)) + len(runs[0]) + 1
    assert sorted(",".join(payloads).split(",")) == sorted(runs)
    assert leases.split_payload([]) == []


def test_the_lease_of_this_process_is_local_and_held_while_it_is_valid() -> None:
    process = leases.this_process()
    assert process[2] == os.getpid()
    held = [leases.Lease("r1", *process, is_valid=is_valid).is_held for is_valid in (True, False)]
    other = leases.Lease("r1", "ann@far", "another host", process[2], "then", is_valid=True)
    ended = leases.Lease("r1", *process[:3], "another start", is_valid=True)
    assert (held, other.is_held, ended.is_held) == ([True, False], True, False)
    assert "of ann@far" in leases.explain_holder(other) and "of" not in leases.explain_holder(ended).partition(")")[0]


def test_the_id_of_a_run_has_all_characters_of_its_number() -> None:
    base = len(RUN_ID_ALPHABET)
    assert [format_run_id(n) for n in (0, 1, base - 1, base, base**8)] == [
        "r22222222", "r32222222", "rz2222222", "r23222222", "r22222222",
    ]  # fmt: skip


def test_streamed_text_before_its_end_is_not_stored() -> None:
    old, ended, new, other = (
        ("live", ("a", 1, "x")),
        ("discard_stream", ("a",)),
        ("live", ("a", 2, "y")),
        ("live", ("b", 1, "z")),
    )
    assert without_discarded([old, other, ended, new]) == [other, ended, new]


@pytest.mark.anyio
@pytest.mark.behaviour("15-queued-runs-leave-memory")
async def test_runs_that_nothing_follows_any_more_are_forgotten(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(PostgresStore(StoreAddress(tmp_path, database))) as store:
        followed = store._leases._followed
        await asyncio.gather(*(store.wait_for_change(f"r{n}") for n in range(leases.MAX_FOLLOWED + 1)))
        assert len(followed) == leases.MAX_FOLLOWED + 1
        monkeypatch.setattr(leases, "FOLLOW_IDLE_S", 0.0)
        await store.wait_for_change("another")
        assert [run for run, _ in store._leases._followed] == ["another"]
