"""Byte limits of responses and the validation of usage, on every wire over a real socket."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from council.members.wires.http import ByteLimits
from council.types import Answer, Usage
from tests.fake_provider import FakeProvider, Reply
from tests.fakes.dialects import DIALECTS
from tests.fakes.floods import compressed, endless_comments, endless_events, endless_json, endless_line, gzip_bomb
from tests.fakes.members import WIRES, asked, fault, seated

pytestmark = pytest.mark.anyio
every_wire = pytest.mark.parametrize("wire", WIRES)
LIMITS = ByteLimits(body=200_000, stream=400_000, line=50_000)
FLOODS: dict[str, tuple[Callable[[], Reply], str]] = {
    "endless JSON": (endless_json, "the response is larger than 195"),
    "endless events": (endless_events, "the response is larger than 390"),
    "endless comments": (endless_comments, "the response is larger than 390"),
    "endless line": (endless_line, "a line of the response is larger than 48"),
    "gzip bomb": (gzip_bomb, "the response is larger than 195"),
}


@pytest.mark.behaviour("14-byte-limits")
@every_wire
@pytest.mark.parametrize(("flood", "problem"), FLOODS.values(), ids=list(FLOODS))
async def test_a_response_over_its_limit_is_a_flood(
    provider: FakeProvider, wire: str, flood: Callable[[], Reply], problem: str
) -> None:
    provider.script("m1", endless_events(wire) if flood is endless_events else flood())
    caught = await fault(seated(provider, wire, limits=LIMITS))
    assert (caught.kind, caught.detail[: len(problem)], caught.said) == ("flood", problem, "")


@pytest.mark.behaviour("14-byte-limits")
@every_wire
@pytest.mark.parametrize("streamed", [True, False])
async def test_a_body_of_very_many_objects_is_not_parsed(provider: FakeProvider, wire: str, streamed: bool) -> None:
    body = b'{"choices": [%s{}]}' % (b"{}," * 100_000)
    provider.script("m1", Reply(stream=streamed, raw=b"data: %s\n\n" % body if streamed else body))
    caught = await fault(seated(provider, wire))
    assert (caught.kind, caught.detail) == ("flood", "the response has more than 100000 objects and lists")


@pytest.mark.behaviour("14-byte-limits")
async def test_a_declared_length_over_the_limit_is_refused_before_it_is_read(provider: FakeProvider) -> None:
    provider.script("m1", Reply(stream=False, headers={"Content-Length": str(10**12)}, raw=b"{", stall=1))
    assert (await fault(seated(provider, "openai"))).detail == "the response is larger than 8 MB"


@pytest.mark.behaviour("14-byte-limits")
@pytest.mark.parametrize(
    "headers", [{"X-Long": "a" * 20_000}, {f"X-{n}": "a" for n in range(500)}], ids=["a long header", "many headers"]
)
async def test_headers_over_their_limit_are_a_flood(provider: FakeProvider, headers: dict[str, str]) -> None:
    provider.script("m1", Reply(headers=headers))
    caught = await fault(seated(provider, "openai"))
    assert (caught.kind, caught.detail) == ("flood", "the headers of the response are too long")


@pytest.mark.behaviour("14-byte-limits")
async def test_compression_is_not_requested(provider: FakeProvider) -> None:
    await asked(seated(provider, "openai"))
    assert provider.log[0].headers["Accept-Encoding"] == "identity"


async def answer_to(provider: FakeProvider, wire: str, reply: Reply) -> Answer:
    provider.script("m1", reply)
    return (await asked(seated(provider, wire)))[0]


@every_wire
@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
async def test_a_compressed_answer_is_read(provider: FakeProvider, wire: str, encoding: str) -> None:
    plain = await answer_to(provider, wire, Reply("Tabs. " * 30_000, piece=100_000))
    seen = provider.log[0]
    body = b"".join(DIALECTS[wire].stream(seen, Reply(piece=100_000), "Tabs. " * 30_000))
    packed = await answer_to(provider, wire, compressed(body, encoding))
    assert (packed.text, packed.finish) == (plain.text, plain.finish)


async def test_an_unknown_compression_is_an_endpoint_fault(provider: FakeProvider) -> None:
    provider.script("m1", Reply(headers={"Content-Encoding": "br"}))
    caught = await fault(seated(provider, "openai"))
    assert (caught.kind, '"br"' in caught.detail) == ("endpoint", True)


async def test_a_damaged_compressed_body_is_a_cut(provider: FakeProvider) -> None:
    provider.script("m1", Reply(headers={"Content-Encoding": "gzip"}))
    assert (await fault(seated(provider, "openai"))).kind == "cut"


async def test_the_list_of_models_is_limited(provider: FakeProvider) -> None:
    provider.models = tuple(f"model-{n}" for n in range(5000))
    member = seated(provider, "openai", limits=LIMITS)
    with pytest.raises(Exception, match="the response is larger than"):
        await member.probe()
    await member.close()


async def test_a_flood_after_the_terminator_does_not_spoil_the_answer(provider: FakeProvider) -> None:
    body = b"".join(DIALECTS["openai"].stream((await seen(provider)), Reply(), "Tabs."))
    provider.script("m1", Reply(raw=body, flood=b": more\n\n" * 2000))
    answer, _ = await asked(seated(provider, "openai", limits=LIMITS))
    assert answer.text == "Tabs."


async def seen(provider: FakeProvider) -> Any:
    await asked(seated(provider, "openai"))
    return provider.log[0]


@pytest.mark.parametrize("tag", ["", "<thi"])
async def test_an_answer_of_white_space_is_not_buffered_without_end(provider: FakeProvider, tag: str) -> None:
    provider.script("m1", Reply(" " * 20_000 + tag, piece=500))
    _, heard = await asked(seated(provider, "openai"))
    assert sum(map(len, heard)) == 20_000 + len(tag)
    assert len([piece for piece in heard if piece]) > 20


# Usage

INVALID: list[Any] = [10**9, 10**19, -5, float("nan"), int("9" * 400), "12", 3.0, True, {"count": 3}, [3]]


@pytest.mark.behaviour("14-usage-validated")
@every_wire
@pytest.mark.parametrize("value", INVALID, ids=[str(value)[:12] for value in INVALID])
async def test_an_invalid_count_makes_the_usage_unknown(provider: FakeProvider, wire: str, value: Any) -> None:
    valid = {"prompt_tokens": 7, "completion_tokens": 5}
    names = ["prompt_tokens", "completion_tokens"] + (["total_tokens"] if wire != "anthropic" else [])
    reports = [[valid | {name: value}] for name in names]
    for usage in (*reports, [valid, valid | {"completion_tokens": value}]):
        answer = await answer_to(provider, wire, Reply("Tabs.", usage=usage))
        assert (answer.text, answer.usage.known) == ("Tabs.", False)
        assert answer.usage.input in (0, 7) and answer.usage.output in (0, 5)


@pytest.mark.behaviour("14-usage-validated")
@pytest.mark.parametrize("value", ["many", 3, [1], True])
async def test_usage_that_is_no_object_is_unknown(provider: FakeProvider, value: Any) -> None:
    raw = b'data: {"choices": [{"delta": {"content": "Tabs."}, "finish_reason": "stop"}], "usage": %s}\n\ndata: [DONE]\n\n'
    answer = await answer_to(provider, "openai", Reply(raw=raw % json.dumps(value).encode()))
    assert (answer.text, answer.usage) == ("Tabs.", Usage(known=False))


@pytest.mark.behaviour("14-usage-validated")
async def test_a_number_that_python_refuses_to_convert_is_unknown(provider: FakeProvider) -> None:
    end = b'{"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": %s}}\n\ndata: [DONE]\n\n' % (b"9" * 5000)
    start = b'data: {"choices": [{"delta": {"content": "Tabs."}, "finish_reason": "stop"}]}\n\ndata: '
    answer = await answer_to(provider, "openai", Reply(raw=start + end))
    assert (answer.text, answer.usage) == ("Tabs.", Usage(7, 0, known=False))


async def test_names_of_counts_and_models_are_limited(provider: FakeProvider) -> None:
    usage = [{f"count_{n}": n for n in range(10_000)}, {"prompt_tokens": 7, "completion_tokens": 5}]
    answer = await answer_to(provider, "openai", Reply(usage=usage))
    assert not answer.usage.known
