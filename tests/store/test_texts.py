"""Long texts of a run are stored once, and every row is restored exactly."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from itertools import chain
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from council.store.migrations import read_statements
from council.store.sqlite import MIGRATIONS
from council.store.texts import MIN_CHARS, MIN_COMPRESSED_BYTES, TextReader, TextWriter, dump_compact

RUN = "r1"
ANSWER = "Keep the queue small, because a long one hides the cause of a delay. " * 5
PACKET = "The service reads one table.\n" * 20


@pytest.fixture
def db() -> Iterator[sqlite3.Connection]:
    made = open_database()
    yield made
    made.close()


def open_database() -> sqlite3.Connection:
    made = sqlite3.connect(":memory:", isolation_level=None)
    for statement in chain.from_iterable(map(read_statements, MIGRATIONS)):
        made.execute(statement)
    return made


def count_texts(db: sqlite3.Connection) -> int:
    count: int = db.execute("SELECT count(*) FROM texts").fetchone()[0]
    return count


@pytest.mark.behaviour("15-texts-stored-once")
def test_an_answer_in_results_statements_and_later_prompts_is_stored_once(db: sqlite3.Connection) -> None:
    writer = TextWriter(db, RUN)
    prompt = f"# Drafts\n\n<<<Alpha 0123456789ab\n{ANSWER}\n0123456789ab>>>\n\nImprove it."
    request = {"model": "m", "messages": [{"role": "user", "content": prompt}]}
    rows = [{"text": ANSWER, "finish": "stop"}, {"said": ANSWER, "reply": None}, {"messages": request["messages"]}]
    stored = [writer.pack(row) for row in rows]
    body = writer.pack_request(dump_compact(request).encode())
    assert count_texts(db) == 1
    assert all(len(row) < 150 for row in stored)
    reader = TextReader(db, RUN)
    assert [reader.unpack(row) for row in stored] == rows
    assert reader.unpack_request(body) == dump_compact(request).encode()


@pytest.mark.behaviour("15-texts-stored-once")
def test_the_packet_that_all_seats_get_is_stored_once(db: sqlite3.Connection) -> None:
    prompts = [f"# Packet\n\n<<<Packet aa\n{PACKET}\naa>>>\n\nYour angle: {name}" for name in ("speed", "safety")]
    writer = TextWriter(db, RUN)
    stored = [writer.pack(prompt) for prompt in prompts]
    assert count_texts(db) == 1
    assert [TextReader(db, RUN).unpack(text) for text in stored] == prompts


def test_a_later_process_uses_the_texts_that_are_stored(db: sqlite3.Connection) -> None:
    TextWriter(db, RUN).pack({"text": ANSWER})
    TextWriter(db, RUN).pack({"text": ANSWER, "more": PACKET})
    assert count_texts(db) == 2


def test_texts_of_different_runs_are_separate(db: sqlite3.Connection) -> None:
    for run in (RUN, "r2"):
        TextWriter(db, run).pack(ANSWER)
    assert count_texts(db) == 2


@pytest.mark.parametrize(
    "body",
    [
        b"", b"\0\xff", b"\0", b"not JSON", b'{"spaced": 1}', b'{"n":1e5}', b'{"a":1,"a":2}', b"\xff\xfe", b"[NaN]",
        b'{"text":"\\ud800 lone"}', f'{{"escaped":"\\u00e9{ANSWER}"}}'.encode(),
    ],
)  # fmt: skip
def test_a_request_of_any_form_is_restored_byte_for_byte(db: sqlite3.Connection, body: bytes) -> None:
    assert TextReader(db, RUN).unpack_request(TextWriter(db, RUN).pack_request(body)) == body


@pytest.mark.parametrize(
    "value",
    [
        {"$text": [0]},
        {"reply": {"$text": ["x"], "$json": True}},
        {"$json": ANSWER},
        ["$text", {"a": "$text"}],
        ANSWER * 2,
    ],
)
def test_values_that_look_like_references_are_restored(db: sqlite3.Connection, value: Any) -> None:
    assert TextReader(db, RUN).unpack(TextWriter(db, RUN).pack(value)) == value


@pytest.mark.parametrize("size", [MIN_CHARS, MIN_COMPRESSED_BYTES - 1, MIN_COMPRESSED_BYTES, 10 * MIN_COMPRESSED_BYTES])
def test_a_long_text_is_compressed(db: sqlite3.Connection, size: int) -> None:
    stored = TextWriter(db, RUN).pack({"said": "x" * size})
    (used,) = db.execute("SELECT length(body) FROM texts").fetchone()
    assert used < size / 20 if size >= MIN_COMPRESSED_BYTES else used == size + 1
    assert TextReader(db, RUN).unpack(stored) == {"said": "x" * size}
    assert TextWriter(db, RUN).pack({"said": "x" * size}) == stored  # by another process


def test_a_missing_text_is_damage(db: sqlite3.Connection) -> None:
    stored = TextWriter(db, RUN).pack(ANSWER)
    db.execute("DELETE FROM texts")
    with pytest.raises(ValueError, match="text 0 is missing"):
        TextReader(db, RUN).unpack(stored)


LINES = st.sampled_from(
    ["<<<Alpha ab12\n", "\nab12>>>", "<<<", ">>>", "\n", "\n  },\n", "x" * MIN_CHARS, "é" * 90, '"', "$text"]
)
TEXTS = st.lists(LINES, max_size=12).map("".join)


@given(
    st.recursive(
        TEXTS | st.integers() | st.none(), lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner), max_leaves=8
    )
)
def test_any_value_is_restored(value: Any) -> None:
    database = open_database()
    body = dump_compact(value).encode()
    writer, reader = TextWriter(database, RUN), TextReader(database, RUN)
    assert reader.unpack(writer.pack(value)) == value
    assert reader.unpack_request(writer.pack_request(body)) == body
    database.close()
