"""Questions to a person through the forms of an MCP client."""

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
from tests.doors.mcp.clients import (
    IDLE,
    QUESTION,
    SCRIPTED,
    call_tool,
    connect,
    roots_callback,
    wait_for_exit,
    wait_until_done,
)

pytestmark = pytest.mark.anyio
Json = dict[str, Any]
ERAS = pytest.mark.parametrize("mode", ["auto", "legacy"])
PERSON = SCRIPTED.replace('[seats.gamma]\nmodel = "scripted:"', '[seats.gamma]\nmodel = "human"')


@pytest.fixture(autouse=True)
def table(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    Path("council.toml").write_text(PERSON, encoding="utf-8")
    monkeypatch.setenv("COUNCIL_WORKER_IDLE", IDLE)
    yield
    wait_for_exit(Path(os.environ["COUNCIL_DATA"]))


class Person:
    """Person at the client: gives the replies in turn and records the questions."""

    def __init__(self, *replies: types.ElicitResult) -> None:
        self.replies, self.asked = list(replies), list[types.ElicitRequestFormParams]()

    async def __call__(self, context: Any, params: Any) -> types.ElicitResult:
        self.asked.append(params)
        return self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]


def accept(**content: Any) -> types.ElicitResult:
    return types.ElicitResult(action="accept", content=content)


DECLINES, CANCELS = (types.ElicitResult(action=action) for action in ("decline", "cancel"))


@asynccontextmanager
async def connect_in_process(mode: str, person: Any = None, roots: list[Path] | None = None) -> AsyncIterator[Client]:
    tools = CouncilTools(Owner(Path.cwd(), dict(os.environ)))
    server = make_server(tools)
    try:
        async with Client(
            server, mode=mode, elicitation_callback=person, list_roots_callback=roots_callback(roots)
        ) as client:
            yield client
    finally:
        await tools.close()


async def cancel_run(run: str) -> None:
    convener = Convener()
    try:
        await convener.cancel(run)
    finally:
        await convener.close()


@ERAS
@pytest.mark.parametrize("declared", [False, True])
@pytest.mark.behaviour("006-mcp-elicitation")
async def test_a_person_is_asked_in_each_phase_and_the_answers_are_used(mode: str, declared: bool) -> None:
    person = Person(accept(answer="Move it on a Sunday."), accept(answer="Move it on a Monday."))
    async with connect_in_process(mode, person, [Path.cwd()] if declared else None) as client:
        run = (await call_tool(client, "council_start", question=QUESTION))["run"]
        assert (await wait_until_done(client, run))["status"] == "complete"
        report = await call_tool(client, "council_result", run=run)
    assert [QUESTION in asked.message and f"run {run}" in asked.message for asked in person.asked] == [True, True]
    assert [list(asked.requested_schema["properties"]) for asked in person.asked] == [["answer"], ["answer"]]
    assert report["seats"][2] | {"state": "ok", "served_by": "human"} == report["seats"][2]
    convener = Convener()
    try:
        texts = {f"{one.phase}/{one.seat}": one.said for one in (await convener.minutes(run)).statements}
    finally:
        await convener.close()
    assert (texts["draft/gamma"], texts["improve/gamma"]) == ("Move it on a Sunday.", "Move it on a Monday.")


@pytest.mark.behaviour("006-mcp-elicitation")
async def test_a_person_is_asked_over_the_real_command() -> None:
    person = Person(accept(answer="Leave it where it is."))
    async with connect(elicitation_callback=person) as client:
        run = (await call_tool(client, "council_start", question=QUESTION, protocol="triad"))["run"]
        assert (await wait_until_done(client, run))["heard"] == 3
    assert len(person.asked) == 1


@ERAS
@pytest.mark.behaviour("006-mcp-elicitation")
async def test_declining_the_form_abstains(mode: str) -> None:
    async with connect_in_process(mode, Person(DECLINES)) as client:
        run = (await call_tool(client, "council_start", question=QUESTION, protocol="triad"))["run"]
        await wait_until_done(client, run)
        report = await call_tool(client, "council_result", run=run)
    assert report["seats"][2]["state"] == "refused"
    assert "abstained" in str(report["degraded"])


@ERAS
@pytest.mark.behaviour("006-mcp-elicitation")
async def test_a_dismissed_form_leaves_the_question_open_and_says_how_to_answer(mode: str) -> None:
    person = Person(CANCELS)
    async with connect_in_process(mode, person) as client:
        run = (await call_tool(client, "council_start", question=QUESTION))["run"]
        while not person.asked:
            status = await call_tool(client, "council_wait", run=run, seconds=2)
        assert (status["status"], status["done"]) == ("running", False)
        assert status["line"] == f"waiting for a person: gamma has not answered; answer with `council watch {run}`"
    await cancel_run(run)


@ERAS
@pytest.mark.behaviour("006-mcp-elicitation")
async def test_a_client_without_forms_gets_instructions_for_the_person(mode: str) -> None:
    async with connect_in_process(mode) as client:
        run = (await call_tool(client, "council_start", question=QUESTION))["run"]
        while "waiting for a person" not in (await call_tool(client, "council_wait", run=run, seconds=0.2))["line"]:
            pass
        convener = Convener()
        try:
            for key in ("draft/gamma", "improve/gamma"):
                while key not in [row["key"] for row in await convener.open_asks(run)]:
                    await call_tool(client, "council_wait", run=run, seconds=0.2)
                assert await convener.answer(run, key, "On a Sunday.")
        finally:
            await convener.close()
        assert (await wait_until_done(client, run))["status"] == "complete"


@pytest.mark.behaviour("006-mcp-elicitation")
async def test_a_question_answered_elsewhere_closes_the_form() -> None:
    """The person at the client never answers; the run continues and the form is closed."""
    shown, closed = anyio.Event(), anyio.Event()

    async def silent(context: Any, params: Any) -> types.ElicitResult:
        shown.set()
        try:
            await anyio.sleep_forever()
        finally:
            closed.set()
        raise AssertionError("unreachable")

    async with connect_in_process("legacy", silent) as client:
        run = (await call_tool(client, "council_start", question=QUESTION, protocol="triad"))["run"]
        async with anyio.create_task_group() as group:
            group.start_soon(wait_until_done, client, run)
            await shown.wait()
            convener = Convener()
            try:
                assert await convener.answer(run, "draft/gamma", "From the terminal.")
            finally:
                await convener.close()
            await closed.wait()
        assert (await call_tool(client, "council_wait", run=run))["status"] == "complete"


@ERAS
@pytest.mark.behaviour("006-mcp-elicitation")
async def test_an_invalid_answer_is_asked_again_with_the_reason(mode: str, typed: None) -> None:
    person = Person(accept(key_insight="The check is gone."), accept(verdict="FAIL", key_insight="The check is gone."))
    async with connect_in_process(mode, person) as client:
        run = (await call_tool(client, "council_start", question="validate notes.md"))["run"]
        await wait_until_done(client, run)
        report = await call_tool(client, "council_result", run=run)
    first, second = person.asked[:2]
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


def test_a_form_has_a_field_for_each_scalar() -> None:
    asked = row(obj(answer=TEXT, sure=FLAG, level=LEVEL, pick=PICK, points=MANY, rows=ROWS))
    form = make_question(asked).requested_schema
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
def test_nested_fields_are_asked_for_as_text(schema: Json | None) -> None:
    asked = row(schema)
    assert list(make_question(asked).requested_schema["properties"]) == ["answer"]
    assert format_answer(asked, {"answer": "In words."}) == "In words."


@pytest.mark.parametrize("schema", [None, obj(answer=TEXT)])
def test_an_empty_form_is_an_empty_answer(schema: Json | None) -> None:
    empty: Mapping[str, Any] = {}
    assert format_answer(row(schema), empty) == ""


def test_a_long_prompt_is_cut_and_says_where_to_read_it() -> None:
    shown = make_question(row(None, "x" * 50_000)).message
    assert len(shown) < 7_000
    assert "council watch r2abcd" in shown
