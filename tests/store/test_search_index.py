"""Full-text index: it finds what a look into every text finds, follows every change of a run, and is not needed to
store one.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from council.store import texts as stored_texts
from council.store.interface import Row, StoreAddress
from council.store.run_store import RunStore
from council.store.shared import open_store
from council.store.sqlite import SqliteStore
from tests.databases import Server

pytestmark = [pytest.mark.anyio, pytest.mark.behaviour("15-search-by-index")]
PARTS = [
    "archive",
    "Straße",
    "İstanbul",
    "a_b",
    "C++",
    "100%",
    "データ",
    "é",
    "e\u0301",
    "x" * 70,
    "42",
    "src/app.py",
    "Ω",
    "-",
]
TEXT = st.lists(st.sampled_from(PARTS), max_size=4).flatmap(
    lambda parts: st.sampled_from([" ".join(parts), "".join(parts), ", ".join(parts).upper()])
)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    store = SqliteStore(tmp_path)
    yield store
    store.close()


def make_rows(question: str, said: str, answer: str = "") -> list[Row]:
    setup = json.dumps({"protocol": "triad", "question": {"task": "ask", "text": question}})
    return [
        ("run", ("a run", "here", 1.0, "random", setup)),
        ("event", (1, 1.0, "statement", {"said": said})),
        ("event", (2, 1.0, "closed", {"verdict": {"answer": answer}})),
    ]


CLOSE: Row = ("close", ("complete", ""))


def is_indexed(store: RunStore) -> list[int]:
    return [indexed for (indexed,) in store._db.execute("SELECT indexed FROM summaries ORDER BY n")]


TEXTS = st.lists(st.tuples(TEXT, TEXT), min_size=1, max_size=4)
WORDS = st.lists(
    st.sampled_from([*PARTS, "rch", "ss", "i", "x" * 40, "x" * 71, "p.p", "_", "タ", "++", "ARCHIVE"]),
    min_size=1,
    max_size=2,
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(texts=TEXTS, words=WORDS)
def test_the_index_finds_what_is_in_the_texts(texts: list[tuple[str, str]], words: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = SqliteStore(Path(folder))
        check_search(store, texts, words)
        store.close()


@pytest.mark.sweep
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(texts=TEXTS, words=WORDS)
def test_the_index_of_postgres_finds_what_is_in_the_texts(
    postgres: Server, texts: list[tuple[str, str]], words: list[str]
) -> None:
    with tempfile.TemporaryDirectory() as folder, postgres.database() as url:
        store = open_store(StoreAddress(Path(folder), url))
        assert isinstance(store, RunStore)
        check_search(store, texts, words)
        store.close()


def check_search(store: RunStore, texts: list[tuple[str, str]], words: list[str]) -> None:
    db = store._db
    db.execute("BEGIN")
    for n, (question, said) in enumerate(texts):
        for table, values in [*make_rows(question, said), CLOSE]:
            store._insert_rows(f"r{n}", [(table, values)])(db)
    db.execute("COMMIT")
    found = stored_texts.search_runs(db, words, None)
    expected = [
        f"r{n}"
        for n, pair in enumerate(texts)
        if all(any(word.casefold() in text.casefold() for text in pair) for word in words)
    ]
    assert sorted(found) == expected
    assert set(is_indexed(store)) == {1}


async def test_a_run_is_found_before_its_end_and_after_it_was_resumed(store: SqliteStore) -> None:
    await store.write("r0", make_rows("Where?", "First draft."))
    assert (await store.search_runs(["draft"]), is_indexed(store)) == (["r0"], [0])
    await store.write("r0", [CLOSE])
    assert (await store.search_runs(["draft"]), is_indexed(store)) == (["r0"], [1])
    await store.write("r0", [("reopen", ()), ("event", (3, 1.0, "statement", {"said": "Second thoughts."}))])
    assert (await store.search_runs(["thought", "irst"]), is_indexed(store)) == (["r0"], [0])
    await store.write("r0", [CLOSE])
    assert (await store.search_runs(["thought", "irst"]), is_indexed(store)) == (["r0"], [1])


async def test_a_deleted_run_leaves_no_word_in_the_index(store: SqliteStore) -> None:
    for run, word in (("r0", "common"), ("r1", "common secretword")):
        await store.write(run, [*make_rows("Where?", word), CLOSE])
    await store.delete_run("r1")
    assert await store.search_runs(["common"]) == ["r0"]
    assert await store.search_runs(["secretword"]) == []
    assert store._db.execute("SELECT word FROM search_words").fetchall() == [("common",), ("where",)]
    store._db.execute("INSERT INTO search_index (search_index) VALUES ('optimize')")
    assert not [row for row in store._db.execute("SELECT block FROM search_index_data") if b"secret" in row[0]]


async def test_a_run_is_stored_and_found_without_an_index(store: SqliteStore) -> None:
    find_statement = "SELECT sql FROM sqlite_master WHERE name = 'search_index'"
    statement = store._db.execute(find_statement).fetchall()
    store._db.execute("DROP TABLE search_index")
    await store.write("r0", [*make_rows("Where?", "In the archive."), CLOSE])
    assert (await store.run_state("r0")).status == "complete"
    assert (await store.search_runs(["ARCH", "where"]), is_indexed(store)) == (["r0"], [0])
    assert await store.index_older_runs(9) == 0
    await store.rebuild_search()
    assert store._db.execute(find_statement).fetchall() == statement  # as the migration made it
    assert (await store.search_runs(["ARCH", "where"]), is_indexed(store)) == (["r0"], [1])


async def test_runs_of_an_older_version_are_indexed_in_steps(store: SqliteStore) -> None:
    for n in range(3):
        await store.write(f"r{n}", [*make_rows("Where?", f"word{n}"), CLOSE])
    store._db.execute("DELETE FROM search_words")
    store._db.execute("INSERT INTO search_index (search_index) VALUES ('delete-all')")
    store._db.execute("UPDATE summaries SET indexed = 0")
    assert await store.index_older_runs(2) == 2
    assert is_indexed(store) == [0, 1, 1]  # the newest first
    assert [await store.search_runs([f"word{n}"]) for n in range(3)] == [["r0"], ["r1"], ["r2"]]
    assert [await store.index_older_runs(2) for _ in range(2)] == [1, 0]


async def test_a_frequent_word_is_looked_up_in_the_newest_runs(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored_texts, "MAX_WORDS", 2)
    for n in range(5):
        await store.write(f"r{n}", [*make_rows("Where?", f"word{n} {'odd' if n % 2 else 'even'}"), CLOSE])
    assert await store.search_runs(["word"], 2) == ["r4", "r3"]
    assert await store.search_runs(["word", "odd"]) == ["r3", "r1"]
