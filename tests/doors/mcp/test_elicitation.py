"""A person who sits in a council is asked by the client of the MCP server, where the client can do that."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp import Client

from council.doors.limits import Owner
from council.doors.mcp.elicitation import format_answer, make_question
from council.doors.mcp.server import make_server
from council.doors.mcp.tools_impl import CouncilTools
from council.runs.people import form_fields
from council.runs.service import Convener
from tests.acceptance.helpers import wait_until
from tests.doors.mcp.clients import IDLE, QUESTION, SCRIPTED, called, connected, finished, naming, processes

pytestmark = pytest.mark.anyio
Json = dict[str, Any]
ERAS = pytest.mark.parametrize("mode", ["auto", "legacy"])
PERSON = SCRIPTED.replace('[seats.gamma]\nmodel = "scripted:"', '[seats.gamma]\nmodel = "human"')


@pytest.fixture(autouse=True)
def workspace(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    Path("council.toml").write_text(PERSON, encoding="utf-8")
    monkeypatch.setenv("COUNCIL_WORKER_IDLE", IDLE)
    yield
    data = Path(os.environ["COUNCIL_DATA"])
    wait_until(lambda: not processes(data), "the worker goes when nothing is left to do")


class Visitor:
    """The person at the client: says one thing after another, and remembers what was asked."""

    def __init__(self, *replies: types.ElicitResult) -> None:
        self.replies, self.asked = list(replies), list[types.ElicitRequestFormParams]()

    async def __call__(self, context: Any, params: Any) -> types.ElicitResult:
        self.asked.append(params)
        return self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]


def saying(**content: Any) -> types.ElicitResult:
    return types.ElicitResult(action="accept", content=content)


DECLINES, CANCELS = (types.ElicitResult(action=action) for action in ("decline", "cancel"))


@asynccontextmanager
async def door(mode: str, visitor: Any = None, roots: list[Path] | None = None) -> AsyncIterator[Client]:
    desk = CouncilTools(Owner(Path.cwd(), dict(os.environ)))
    server = make_server(desk)
    try:
        async with Client(server, mode=mode, elicitation_callback=visitor, list_roots_callback=naming(roots)) as client:
            yield client
    finally:
        await desk.close()


async def cancelled(run: str) -> None:
    convener = Convener()
    try:
        await convener.cancel(run)
    finally:
        await convener.close()


@ERAS
@pytest.mark.parametrize("declared", [False, True])
@pytest.mark.behaviour("006-mcp-elicitation")
async def test_a_person_is_asked_in_each_phase_and_their_words_count(mode: str, declared: bool) -> None:
    visitor = Visitor(saying(answer="Move it on a Sunday."), saying(answer="Move it on a Monday."))
    async with door(mode, visitor, [Path.cwd()] if declared else None) as client:
        run = (await called(client, "council_start", question=QUESTION))["run"]
        assert (await finished(client, run))["status"] == "complete"
        report = await called(client, "council_result", run=run)
    assert [QUESTION in asked.message and f"run {run}" in asked.message for asked in visitor.asked] == [True, True]
    assert [list(asked.requested_schema["properties"]) for asked in visitor.asked] == [["answer"], ["answer"]]
    assert report["seats"][2] | {"state": "ok", "served_by": "human"} == report["seats"][2]
    convener = Convener()
    try:
        said = {f"{one.phase}/{one.seat}": one.said for one in (await convener.minutes(run)).statements}
    finally:
        await convener.close()
    assert (said["draft/gamma"], said["improve/gamma"]) == ("Move it on a Sunday.", "Move it on a Monday.")


@pytest.mark.behaviour("006-mcp-elicitation")
async def test_a_person_is_asked_over_the_real_command() -> None:
    visitor = Visitor(saying(answer="Leave it where it is."))
    async with connected(elicitation_callback=visitor) as client:
        run = (await called(client, "council_start", question=QUESTION, protocol="triad"))["run"]
        assert (await finished(client, run))["heard"] == 3
    assert len(visitor.asked) == 1


@ERAS
@pytest.mark.behaviour("006-mcp-elicitation")
async def test_whoever_declines_abstains(mode: str) -> None:
    async with door(mode, Visitor(DECLINES)) as client:
        run = (await called(client, "council_start", question=QUESTION, protocol="triad"))["run"]
        await finished(client, run)
        report = await called(client, "council_result", run=run)
    assert report["seats"][2]["state"] == "refused"
    assert "abstained" in str(report["degraded"])


@ERAS
@pytest.mark.behaviour("006-mcp-elicitation")
async def test_a_form_that_is_closed_leaves_the_question_open_and_the_line_says_how_to_answer(mode: str) -> None:
    visitor = Visitor(CANCELS)
    async with door(mode, visitor) as client:
        run = (await called(client, "council_start", question=QUESTION))["run"]
        while not visitor.asked:
            told = await called(client, "council_wait", run=run, seconds=2)
        assert (told["status"], told["done"]) == ("running", False)
        assert told["line"] == f"waiting for a person: gamma has not answered; answer with `council watch {run}`"
    await cancelled(run)


@ERAS
@pytest.mark.behaviour("006-mcp-elicitation")
async def test_a_client_without_forms_is_told_how_a_person_answers(mode: str) -> None:
    async with door(mode) as client:
        run = (await called(client, "council_start", question=QUESTION))["run"]
        while "waiting for a person" not in (await called(client, "council_wait", run=run, seconds=0.2))["line"]:
            pass
        convener = Convener()
        try:
            for key in ("draft/gamma", "improve/gamma"):
                while key not in [row["key"] for row in await convener.open_asks(run)]:
                    await called(client, "council_wait", run=run, seconds=0.2)
                assert await convener.answer(run, key, "On a Sunday.")
        finally:
            await convener.close()
        assert (await finished(client, run))["status"] == "complete"


@pytest.mark.behaviour("006-mcp-elicitation")
async def test_a_question_that_is_answered_elsewhere_is_taken_back() -> None:
    """The person at the client never answers; the run goes on all the same, and their form is closed."""
    shown, closed = anyio.Event(), anyio.Event()

    async def silent(context: Any, params: Any) -> types.ElicitResult:
        shown.set()
        try:
            await anyio.sleep_forever()
        finally:
            closed.set()
        raise AssertionError("nobody gets here")

    async with door("legacy", silent) as client:
        run = (await called(client, "council_start", question=QUESTION, protocol="triad"))["run"]
        async with anyio.create_task_group() as group:
            group.start_soon(finished, client, run)
            await shown.wait()
            convener = Convener()
            try:
                assert await convener.answer(run, "draft/gamma", "From the terminal.")
            finally:
                await convener.close()
            await closed.wait()
        assert (await called(client, "council_wait", run=run))["status"] == "complete"


@ERAS
@pytest.mark.behaviour("006-mcp-elicitation")
async def test_an_answer_that_does_not_fit_is_asked_for_again_with_the_reason(mode: str, typed: None) -> None:
    visitor = Visitor(
        saying(key_insight="The check is gone."), saying(verdict="FAIL", key_insight="The check is gone.")
    )
    async with door(mode, visitor) as client:
        run = (await called(client, "council_start", question="validate notes.md"))["run"]
        await finished(client, run)
        report = await called(client, "council_result", run=run)
    first, second = visitor.asked[:2]
    assert first.requested_schema["properties"]["verdict"]["enum"] == ["PASS", "WARN", "FAIL"]
    assert "verdict" in first.requested_schema["required"]
    assert "the answer was not accepted" not in first.message
    assert "the answer was not accepted, these fields are missing: verdict" in second.message
    assert report["seats"][0]["verdict"] == "FAIL"


@pytest.fixture
def typed() -> None:
    Path("notes.md").write_text("Cold storage is cheap.\n", encoding="utf-8")
    Path("council.toml").write_text(SCRIPTED + '[seats.judge-1]\nmodel = "human"\n', encoding="utf-8")


# Forms


def row(schema: Json | None, prompt: str = "What do you think?") -> Json:
    return {"run": "r2abcd", "key": "r1/gamma", "seat": "gamma", "prompt": prompt, "schema": schema, "fields": form_fields(schema)}  # fmt: skip


def obj(**properties: Json) -> Json:
    return {"type": "object", "properties": properties, "required": list(properties)}


TEXT, FLAG = {"type": "string"}, {"type": "boolean"}
LEVEL: Json = {"type": "integer", "minimum": 1, "maximum": 5}
PICK: Json = {"enum": [1, 2]}
MANY: Json = {"type": "array", "items": TEXT}
ROWS: Json = {"type": "array", "items": obj(text=TEXT)}


def test_a_form_has_a_field_for_each_thing_that_can_be_said_plainly() -> None:
    asked = row(obj(answer=TEXT, sure=FLAG, level=LEVEL, pick=PICK, points=MANY, rows=ROWS))
    form = make_question(asked).schema
    assert {name: shown["type"] for name, shown in form["properties"].items()} == {
        "answer": "string", "sure": "boolean", "level": "integer", "pick": "string", "points": "string",
    }  # fmt: skip
    assert (form["properties"]["pick"]["enum"], form["properties"]["level"]["maximum"]) == (["1", "2"], 5)
    assert form["required"] == ["answer", "sure", "level", "pick"]
    given = {"answer": "Yes.", "sure": True, "level": 3, "pick": "2", "points": "one; two\nthree", "else": 1}
    assert format_answer(asked, given) == (
        '{"answer": "Yes.", "sure": true, "level": 3, "pick": 2, "points": ["one", "two", "three"]}'
    )


@pytest.mark.parametrize("schema", [None, obj(answer=TEXT, rows=ROWS | {"minItems": 1}), obj(group=obj(text=TEXT))])
def test_what_no_form_can_hold_is_asked_for_in_words(schema: Json | None) -> None:
    asked = row(schema)
    assert list(make_question(asked).schema["properties"]) == ["answer"]
    assert format_answer(asked, {"answer": "In words."}) == "In words."


@pytest.mark.parametrize("schema", [None, obj(answer=TEXT)])
def test_an_empty_form_says_nothing(schema: Json | None) -> None:
    empty: Mapping[str, Any] = {}
    assert format_answer(row(schema), empty) == ""


def test_a_long_prompt_is_cut_and_says_where_all_of_it_is() -> None:
    shown = make_question(row(None, "x" * 50_000)).message
    assert len(shown) < 7_000
    assert "council watch r2abcd" in shown
