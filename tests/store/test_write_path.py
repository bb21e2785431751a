"""What one council writes: few transactions, each text once."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from council import Convener
from council.store import run_store
from council.store.texts import TextReader

pytestmark = pytest.mark.anyio
SEATS = dict.fromkeys(("alpha", "beta", "gamma", "chair"), "scripted:")


@pytest.fixture
async def convener(tmp_path: Path) -> AsyncIterator[Convener]:
    convener = Convener(tmp_path, flags={"seats": SEATS})
    yield convener
    await convener.close()


@pytest.mark.behaviour("15-few-commits")
async def test_a_collaborative_council_needs_six_transactions(
    convener: Convener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        run_store, "SHORT_DELAY_S", 60.0
    )  # the answers of a phase arrive together, also on a busy machine
    await convener.run(
        await convener.plan(["Tabs or spaces?"], protocol="collaborative"), lambda entry: None
    )  # opens the store
    statements: list[str] = []
    convener.store._db.set_trace_callback(statements.append)
    await convener.run(await convener.plan(["Spaces or tabs?"], protocol="collaborative"), lambda entry: None)
    assert 3 <= sum(line == "COMMIT" for line in statements) <= 6  # requests and answers of three phases


@pytest.mark.behaviour("15-texts-stored-once")
async def test_the_question_and_each_answer_are_stored_once(convener: Convener) -> None:
    question = "Which of these formats should the archive use? " + " ".join(map(str, range(300)))
    minutes = await convener.run(await convener.plan([question], protocol="collaborative"), lambda entry: None)
    db, run = convener.store._db, minutes.run
    record = await convener.store.load(run)
    assert sum(question in attempt.body.decode() for tries in record.attempts.values() for attempt in tries) == 7
    stored = [row[0] for row in db.execute("SELECT body FROM intents UNION ALL SELECT body FROM events")]
    assert not [body for body in stored if question in (body.decode() if isinstance(body, bytes) else body)]
    reader = TextReader(db, run)
    texts = [reader._text(n) for (n,) in db.execute("SELECT n FROM texts WHERE run = ?", (run,))]
    assert len(texts) == len(set(texts))
    assert sum(question in text for text in texts) == 1


@pytest.mark.behaviour("15-export-in-pieces")
async def test_an_export_is_written_in_pieces_and_equals_the_stored_run(convener: Convener) -> None:
    minutes = await convener.run(await convener.plan(["Tabs or spaces?"], protocol="collaborative"), lambda entry: None)
    pieces: list[str] = []
    await convener.export(minutes.run, pieces.append)
    whole, record = json.loads("".join(pieces)), await convener.store.load(minutes.run)
    assert "".join(pieces) == json.dumps(whole, ensure_ascii=False, indent=1) + "\n"
    assert whole["events"] == [entry.as_json() for entry in record.entries]
    assert whole["results"] == {key: outcome.as_json() for key, outcome in record.results.items()}
    assert (whole["steps"], whole["phases"], whole["spending"]) == (record.steps, record.phases, [])
    assert len(whole["attempts"]) == 7
    assert len(pieces) > len(record.entries) + len(record.results) + len(record.attempts)
