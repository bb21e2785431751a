"""Prose of a chair in place of its typed reply."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, ClassVar

import pytest

from council import events as ev
from council.engine.council import Council
from council.engine.reply import Reply, read_prose
from council.errors import ChairAbsent, Fault
from council.protocols.adversarial.replies import Ruling
from council.protocols.advisors.replies import Refereed, RefereedRounds
from council.protocols.general.replies import Position, SpecSynthesis, Synthesis
from council.protocols.judges.replies import Consolidation, Opinion
from council.store.sqlite import SqliteStore
from council.types import Statement
from tests.run_session import CHAIR, FunctionMember, RunSession, open_session

pytestmark = pytest.mark.anyio
PROSE = "Adopt the plan, but move the export behind a flag first. The lock on the orders table is the one risk that remains."
LONGER = f"{PROSE} Measure it on a copy before the release, and keep the old path for a week."


class Decision(Reply):
    answer_field: ClassVar[str] = "answer"

    points: list[str]
    answer: str
    assessment: str

    def prose(self) -> str:
        return self.answer


FULL = {"points": ["a"], "answer": "Adopt it.", "assessment": "Calm."}


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    store = SqliteStore(tmp_path / "store")
    yield store
    store.close()


async def rule(council: Council) -> Statement[Decision]:
    async with council.phase("verdict"):
        return await council.ask(CHAIR, "t/say", reply=Decision)


async def ask_chair(store: SqliteStore, folder: Path, *answers: Any) -> tuple[RunSession, FunctionMember]:
    left = list(answers)
    member = FunctionMember("scripted:", lambda key: left.pop(0) if len(left) > 1 else left[0])
    return await open_session(store, folder, {"scripted:": member}), member


@pytest.mark.behaviour("10-prose-of-the-chair")
async def test_prose_is_used_after_one_repair_turn_and_states_what_is_missing(
    store: SqliteStore, tmp_path: Path
) -> None:
    session, member = await ask_chair(store, tmp_path, PROSE)
    said = await rule(session.council)
    assert (said.reply.answer, said.said, len(member.calls)) == (PROSE, PROSE, 2)
    assert said.reply.missing_parts == ["points", "assessment"]
    (stated,) = session.of_type(ev.Stated)
    assert (stated.state, stated.missing) == ("ok", ["points", "assessment"])


@pytest.mark.behaviour("10-prose-of-the-chair")
async def test_the_longer_prose_is_used(store: SqliteStore, tmp_path: Path) -> None:
    session, _ = await ask_chair(
        store, tmp_path, LONGER, "I have already given the answer above; please use that text unchanged."
    )
    assert (await rule(session.council)).reply.answer == LONGER


@pytest.mark.behaviour("10-prose-of-the-chair")
async def test_prose_is_used_if_the_repair_turn_fails(store: SqliteStore, tmp_path: Path) -> None:
    session, _ = await ask_chair(store, tmp_path, PROSE, Fault("auth", "no key"))
    assert (await rule(session.council)).reply.answer == PROSE


async def test_a_repaired_reply_is_preferred_to_prose(store: SqliteStore, tmp_path: Path) -> None:
    session, _ = await ask_chair(store, tmp_path, PROSE, json.dumps(FULL))
    said = await rule(session.council)
    assert (said.outcome.state, said.reply.answer, said.reply.missing_parts) == ("ok_repaired", "Adopt it.", [])


@pytest.mark.behaviour("10-prose-of-the-chair")
async def test_prose_is_the_same_after_resume_and_costs_nothing(store: SqliteStore, tmp_path: Path) -> None:
    session, _ = await ask_chair(store, tmp_path, PROSE)
    first = await rule(session.council)
    never = FunctionMember("scripted:", lambda key: "never")
    again = await rule((await session.resume({"scripted:": never})).council)
    assert (again.reply, again.reply.missing_parts, never.calls) == (first.reply, first.reply.missing_parts, [])


@pytest.mark.behaviour("10-prose-of-the-chair")
async def test_the_readable_fields_of_a_wrong_json_reply_are_used_after_one_repair_turn(
    store: SqliteStore, tmp_path: Path
) -> None:
    session, member = await ask_chair(store, tmp_path, json.dumps({"answer": PROSE, "points": 7}))
    said = await rule(session.council)
    assert (said.reply.answer, said.reply.unread, len(member.calls)) == (PROSE, ["points", "assessment"], 2)
    (stated,) = session.of_type(ev.Stated)
    assert (stated.missing, stated.unread) == ([], ["points", "assessment"])


@pytest.mark.behaviour("10-replies-salvaged")
async def test_a_salvaged_reply_is_the_same_after_resume_and_costs_nothing(store: SqliteStore, tmp_path: Path) -> None:
    session, _ = await ask_chair(store, tmp_path, json.dumps({"final_answer": PROSE, "points": ["a", 7, "b"]}))
    first = await rule(session.council)
    assert (first.reply.points, first.reply.unread) == (["a", "7", "b"], ["assessment"])
    never = FunctionMember("scripted:", lambda key: "never")
    again = await rule((await session.resume({"scripted:": never})).council)
    assert (again.reply, again.reply.unread, never.calls) == (first.reply, first.reply.unread, [])


@pytest.mark.behaviour("10-replies-salvaged")
async def test_the_attempt_with_more_readable_fields_is_used(store: SqliteStore, tmp_path: Path) -> None:
    better, worse = {"answer": PROSE, "points": ["a"]}, {"answer": LONGER, "points": 7}
    session, member = await ask_chair(store, tmp_path, json.dumps(better), json.dumps(worse))
    said = await rule(session.council)
    assert (said.reply.answer, said.reply.points, len(member.calls)) == (PROSE, ["a"], 2)


@pytest.mark.behaviour("10-prose-of-the-chair")
@pytest.mark.parametrize(
    "text",
    ["Use tabs.", json.dumps({"points": 7, "answer": ""}), '{"points": [], "answer": "Adopt the plan, but move the export beh',
     f'Here it is: {json.dumps({"points": 3, "answer": "  ", "assessment": "x" * 90})}', "…" * 100,
     "I'm sorry, but I can't help with that. If you have another question, I am happy to help with it at any time."],
    ids=["short", "empty answer", "cut off", "empty answer in prose", "placeholder", "refusal"],
)  # fmt: skip
async def test_what_is_no_good_prose_is_not_used(store: SqliteStore, tmp_path: Path, text: str) -> None:
    session, _ = await ask_chair(store, tmp_path, text)
    with pytest.raises(ChairAbsent):
        await rule(session.council)


@pytest.mark.behaviour("10-prose-of-the-chair")
@pytest.mark.parametrize("reply", [Ruling, Refereed, RefereedRounds, Synthesis, SpecSynthesis, Consolidation])
def test_replies_of_a_chair_with_an_answer_can_be_prose(reply: type[Reply]) -> None:
    made = read_prose(reply, PROSE)
    assert made is not None
    assert made.prose() == PROSE
    assert made.missing_parts
    assert made.model_dump()


@pytest.mark.parametrize("reply", [Opinion, Position])
def test_replies_of_members_cannot_be_prose(reply: type[Reply]) -> None:
    assert read_prose(reply, PROSE) is None


def test_prose_with_an_example_in_json_is_prose() -> None:
    text = f'{PROSE}\n\n```json\n{{"retries": 3, "flag": "export_v2"}}\n```'
    made = read_prose(Decision, text)
    assert made is not None and made.answer == text
