"""Summaries of runs: they follow every change of a run, and lists read them by index."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Container, Iterator
from itertools import chain
from pathlib import Path

import pytest

from council.store import summaries
from council.store.interface import StoreAddress
from council.store.migrations import read_statements
from council.store.run_store import RunStore
from council.store.shared import open_store
from council.store.sqlite import MIGRATIONS, SqliteStore
from council.store.sqlite_repair import repair_file

pytestmark = [pytest.mark.anyio, pytest.mark.behaviour("15-lists-by-index")]
NOT_IN_OLDER_STORES = ("n", "indexed", "owner", "project", "title", "stops", "saved")  # added empty
LONG = "Which of the many ways? " * 500
BEFORE_SUMMARIES = 5  # the last version of SQLite without them
CREATED = [
    statement.replace("VIRTUAL ", "").split()
    for statement in chain.from_iterable(map(read_statements, MIGRATIONS[BEFORE_SUMMARIES:]))
    if statement.startswith("CREATE")
]
DROP_SUMMARIES = "".join(f"DROP {kind} IF EXISTS {name};" for _, kind, name, *_ in reversed(CREATED))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    store = SqliteStore(tmp_path)
    yield store
    store.close()


def setup(question: str) -> str:
    return json.dumps({"protocol": "triad", "owner": "ann@laptop", "question": {"task": "ask", "text": question}})


async def write_runs(store: RunStore) -> None:
    report = json.dumps(
        {
            "verdict": "PASS",
            "confidence": "HIGH",
            "trust": {"level": "LOW"},
            "seconds": 2.5,
            "cost": {"usd": 0.25, "estimated": True},
        }
    )
    for n, kind in enumerate(("run", "queue", "run", "run")):
        await store.write(f"r{n}", [(kind, ("a run", f"folder {n % 2}", 10.0 - n, "random", setup("Short?")))])
    await store.write("r0", [("close", ("complete", report))])
    await store.write("r1", [("close", ("incomplete", report)), ("detach", (setup(LONG),))])
    await store.write("r2", [("close", ("failed", report)), ("reopen", ())])
    await store.write("r3", [("close", ("failed", "damaged")), ("cancel", ()), ("rename", ("The Cellar",))])


def read_summaries(db: sqlite3.Connection, *, without: Container[str] = ("n", "indexed")) -> list[dict[str, object]]:
    """Return the stored rows in order, without these columns."""
    rows = db.execute("SELECT * FROM summaries ORDER BY n")
    names = [name for name, *_ in rows.description]
    return [{name: value for name, value in zip(names, row, strict=True) if name not in without} for row in rows]


async def test_a_summary_follows_every_change_of_its_run(store: SqliteStore) -> None:
    await write_runs(store)
    rows = {row["run"]: row for row in await store.list_runs()}
    assert list(rows) == ["r2", "r1", "r3", "r0"]  # unfinished first, then newest
    assert rows["r0"] == {
        "run": "r0", "name": "a run", "folder": "folder 0", "created": 10.0, "status": "complete", "detached": False, "protocol": "triad",
        "task": "ask", "question": "Short?", "verdict": "PASS", "outcome": None, "confidence": "HIGH", "trust": "LOW", "seconds": 2.5, "cost": 0.25,
        "owner": "ann@laptop", "project": None, "title": None, "estimated": True, "evaluation": False, "decision_outcome": None,
    }  # fmt: skip
    assert (rows["r1"]["status"], rows["r1"]["detached"], rows["r1"]["question"]) == ("queued", True, LONG)
    assert (rows["r2"]["status"], rows["r2"]["verdict"]) == ("running", None)
    assert (rows["r3"]["status"], rows["r3"]["verdict"]) == ("failed", None)  # its report cannot be parsed
    assert not [row for row in read_summaries(store._db) if LONG in str(row)]  # a long question is stored once
    assert [await store.find_newest(f"folder {n}") for n in (0, 1)] == ["r2", "r3"]
    await store.delete_run("r2")
    assert [row["run"] for row in await store.list_runs({"folder": "folder 0"})] == ["r0"]
    assert await store.count_runs({}) == 3


async def test_an_older_store_gets_its_summaries_when_it_is_opened(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path)
    await write_runs(store)
    before = read_summaries(store._db)
    store.close()
    with sqlite3.connect(tmp_path / "council.db") as db:
        db.executescript(
            f"{DROP_SUMMARIES} ALTER TABLE runs DROP COLUMN title; PRAGMA user_version = {BEFORE_SUMMARIES};"
        )
    store = SqliteStore(tmp_path)
    after = read_summaries(store._db, without=NOT_IN_OLDER_STORES)
    assert after == [{name: row[name] for name in row if name not in NOT_IN_OLDER_STORES} for row in before]
    store.close()


@pytest.mark.behaviour("40-repair")
async def test_a_repaired_store_has_the_same_summaries(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path)
    await write_runs(store)
    before = read_summaries(store._db)
    store.close()
    with store.path.open("r+b") as file:
        file.write(bytes(16))  # where SQLite writes its name
    assert "copied to a new database" in repair_file(store.path)[0]
    store = SqliteStore(tmp_path)
    assert read_summaries(store._db) == before
    store.close()


@pytest.mark.parametrize(
    "filters", [{}, {"folder": "here"}, {"unfinished": 1}, {"owner": "token:ann"}, {"evaluation": 0}]
)
async def test_a_page_of_runs_is_read_in_the_order_of_an_index(store: SqliteStore, filters: dict[str, object]) -> None:
    where, values = summaries.make_conditions(filters)
    query = f"EXPLAIN QUERY PLAN {summaries.SELECT_SUMMARIES} WHERE {where} {summaries.ORDER} LIMIT 20"
    plan = [row[3] for row in store._db.execute(query, values)]
    assert "USING INDEX" in plan[0]
    assert not [step for step in plan if "TEMP B-TREE" in step]


async def test_runs_of_evaluations_are_counted_in_their_index(store: SqliteStore) -> None:
    where, values = summaries.make_conditions({"only_evaluations": 1})
    plan = store._db.execute(f"EXPLAIN QUERY PLAN SELECT count(*) FROM summaries WHERE {where}", values).fetchall()
    assert "summaries_of_evaluations" in plan[0][3]


async def test_a_run_of_an_evaluation_is_marked_on_both_stores(store_address: StoreAddress) -> None:
    store = open_store(store_address)
    label = {"batch": "b", "row": "q", "hash": "h", "run": "r9"}
    for run, batch in {"r8": label, "r9": label | {"evaluation": True}}.items():
        text = json.dumps(json.loads(setup("Short?")) | {"batch": batch})
        await store.write(run, [("run", ("a run", "folder 0", 10.0, "random", text))])
    await store.write("r9", [("close", ("complete", "{}"))])
    assert {row["run"]: row["evaluation"] for row in await store.list_runs()} == {"r8": False, "r9": True}
    assert [row["run"] for row in await store.list_runs({"evaluation": 0})] == ["r8"]
    assert [row["run"] for row in await store.list_runs({"evaluation": 1})] == ["r9"]
    assert await store.count_runs({"only_evaluations": 1}) == 1
    store.close()


async def test_pages_and_filters_are_the_same_on_both_stores(store_address: StoreAddress) -> None:
    store = open_store(store_address)
    await write_runs(store)
    first = await store.list_runs({}, None, 3)
    assert [row["run"] for row in first] == ["r2", "r1", "r3"]  # unfinished first, then newest
    assert [row["run"] for row in await store.list_runs({}, first[-1]["run"], 3)] == ["r0"]
    found = {
        name: [row["run"] for row in await store.list_runs({name: value})]
        for name, value in {
            "task": "ask", "protocol": "judges", "status": '["failed", "complete"]', "verdict": "PASS", "folder": "folder 1",
            "prefix": "r1", "unfinished": 0, "ended_before": 10.0, "q": "MANY WAYS", "owner": "ann@laptop", "project": "x",
            "from": 9.0, "to": 9.0,
        }.items()
    }  # fmt: skip
    assert found == {
        "task": ["r2", "r1", "r3", "r0"], "protocol": [], "status": ["r3", "r0"], "verdict": ["r1", "r0"], "folder": ["r1", "r3"],
        "prefix": ["r1"], "unfinished": ["r3", "r0"], "ended_before": ["r3"], "q": ["r1"], "owner": ["r2", "r1", "r3", "r0"],
        "project": [], "from": ["r1", "r0"], "to": ["r2", "r3"],
    }  # fmt: skip
    assert [row["run"] for row in await store.list_runs({"q": "the cellar"})] == ["r3"]
    assert [(row["title"], row["estimated"], row["trust"]) for row in await store.list_runs()] == [
        (None, False, None), (None, True, "LOW"), ("The Cellar", False, None), (None, True, "LOW"),
    ]  # fmt: skip
    await store.write("r3", [("rename", (None,))])
    assert {row["title"] for row in await store.list_runs()} == {None}
    rows = {
        row["run"]: (row["question"], row["verdict"], row["cost"], row["detached"]) for row in await store.list_runs()
    }
    assert rows["r1"] == (LONG, "PASS", 0.25, True)
    assert (rows["r2"], rows["r3"], rows["r0"]) == (
        ("Short?", None, None, False),
        ("Short?", None, None, False),
        ("Short?", "PASS", 0.25, False),
    )
    assert (await store.match_runs("r"), await store.list_detached()) == (["r0", "r1", "r2", "r3"], ["r1"])
    assert [await store.find_newest(f"folder {n}") for n in (0, 1)] == ["r2", "r3"]
    store.close()


@pytest.mark.behaviour("money-spend-protocols")
async def test_stops_and_what_they_saved_are_summed_with_the_run_on_both_stores(store_address: StoreAddress) -> None:
    store = open_store(store_address)
    stops = [{"saved": 0.25, "calls": 2}, {"saved": 0.5, "calls": 1}]
    reports = {
        "r0": json.dumps({"cost": {"usd": 0.25}, "stops": stops}),
        "r1": json.dumps({"cost": {"usd": None}, "stops": [{"saved": None, "calls": 2}]}),  # without prices
        "r2": json.dumps({"cost": {"usd": 0.5}}),  # of an earlier version, or without a stop
        "r3": "damaged",
        "r4": json.dumps({"cost": {"usd": 0.5}, "stops": "damaged"}),
        "r5": json.dumps({"cost": {"usd": 0.25}, "stops": stops}),
    }
    for run, report in reports.items():
        await store.write(run, [("run", ("a run", "folder", 1.0, "random", setup("Short?")))])
        await store.write(run, [("reserve", ("draft/alpha", 1, "sim:m1", 1.0, "2026-11-15", "{}", 5))])
        await store.write(run, [("close", ("complete", report))])
    await store.write("r5", [("reopen", ())])  # resumed: its report is gone
    rows = {row["run"]: row for row in await store.list_spending("")}
    assert {run: (row["stops"] or 0, row["saved"]) for run, row in rows.items()} == {
        "r0": (2, 0.75), "r1": (1, None), "r2": (0, None), "r3": (0, None), "r4": (0, None), "r5": (0, None),
    }  # fmt: skip
    assert (rows["r0"]["protocol"], rows["r0"]["status"], rows["r0"]["cost"]) == ("triad", "complete", 0.25)
    assert rows["r5"]["status"] == "running"
    store.close()
