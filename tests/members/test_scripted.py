"""The scripted member."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from council.engine.reply import build_schema, parse_reply
from council.errors import ConfigError, Fault
from council.members.scripted import Scripted, example_value
from council.protocols.adversarial.replies import Attack, Ruling, Triage
from council.types import Answer, JsonSchema, Usage
from tests.run_session import make_ask

pytestmark = pytest.mark.anyio


async def send(member: Scripted, key: str = "draft/alpha", **ask: Any) -> Answer:
    return await member.send(member.prepare(make_ask(key, **ask)), lambda piece: None)


async def test_scripted_step_gets_its_text_and_other_steps_a_default() -> None:
    member = Scripted(script={"draft/alpha": {"text": "Tabs."}})
    assert (await send(member)).text == "Tabs."
    assert (await send(member, "draft/beta")).text.startswith("draft/beta says")


async def test_scripted_answer_streams_and_counts_words() -> None:
    member, pieces = Scripted(script={"draft/alpha": {"text": "Tabs are better."}}), list[str]()
    answer = await member.send(member.prepare(make_ask()), pieces.append)
    assert (pieces, answer.usage, answer.model) == (["Tabs ", "are ", "better. "], Usage(3, 3), "scripted:")


async def test_all_requests_are_recorded_including_failed_ones(tmp_path: Path) -> None:
    script = {"record": str(tmp_path / "calls.jsonl"), "draft/alpha": {"fail": "server"}}
    member = Scripted(script=script)
    with pytest.raises(Fault):
        await send(member)
    await send(member, "draft/beta")
    lines = [json.loads(line) for line in (tmp_path / "calls.jsonl").read_text().splitlines()]
    assert [line["key"] for line in lines] == [call["key"] for call in member.calls] == ["draft/alpha", "draft/beta"]


@pytest.mark.parametrize("times", [1, 2])
async def test_scripted_failure_repeats_the_configured_number_of_times(times: int) -> None:
    member = Scripted(script={"draft/alpha": {"fail": "net", "times": times, "text": "Tabs."}})
    for _ in range(times):
        with pytest.raises(Fault) as caught:
            await send(member)
        assert caught.value.kind == "net"
    assert (await send(member)).text == "Tabs."


async def test_scripted_stall_never_answers() -> None:
    member = Scripted(script={"draft/alpha": {"stall": True}})
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await send(member)
    assert len(member.calls) == 1


async def test_scripted_reply_is_sent_as_json() -> None:
    member = Scripted(script={"triage/chair": {"reply": {"leader": "beta"}}})
    assert json.loads((await send(member, "triage/chair", schema={"type": "object"})).text) == {"leader": "beta"}


@pytest.mark.parametrize("agree", [True, False])
@pytest.mark.parametrize("reply", [Triage, Attack, Ruling])
def test_default_reply_matches_every_schema(reply: Any, agree: bool) -> None:
    choices = {"leader": ["beta"]}
    made = example_value(build_schema(reply, choices), agree)
    assert parse_reply(reply, json.dumps(made), choices)


@pytest.mark.parametrize("agree", [True, False])
async def test_agree_sets_booleans(agree: bool) -> None:
    member = Scripted(script={"triage/chair": {"agree": agree}})
    said = await send(member, "triage/chair", schema=build_schema(Triage, {"leader": ["beta"]}))
    assert Triage.model_validate_json(said.text).same_conclusion is agree


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"const": 4}, 4), ({"enum": ["b", "a"]}, "b"), ({"anyOf": [{"type": "null"}, {"type": "string"}]}, "…"),
        ({"type": "integer"}, 1), ({"type": "number", "minimum": 2}, 2), ({"type": "string"}, "…"),
        ({"type": "array", "items": {"type": "boolean"}}, [True]),
    ],
)  # fmt: skip
def test_example_value_for_each_schema_type(schema: JsonSchema, value: Any) -> None:
    assert example_value(schema, True) == value


async def test_script_is_read_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "lines.toml").write_text('["draft/alpha"]\ntext = "Tabs."\n')
    member = Scripted(f"scripted:{tmp_path / 'lines.toml'}")
    assert (await send(member)).text == "Tabs."


@pytest.mark.parametrize("content", [None, "not = toml = at all"])
def test_unreadable_script_is_named_in_the_error(tmp_path: Path, content: str | None) -> None:
    if content:
        (tmp_path / "lines.toml").write_text(content)
    with pytest.raises(ConfigError, match=r'cannot read the script ".*lines.toml"'):
        Scripted(f"scripted:{tmp_path / 'lines.toml'}")


async def test_prepare_is_deterministic() -> None:
    assert Scripted().prepare(make_ask()) == Scripted().prepare(make_ask())
    assert await Scripted().probe() == "always answers"
