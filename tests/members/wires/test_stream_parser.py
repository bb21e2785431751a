"""Removal of a leading <think> block."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from council.errors import Fault
from council.members.wires.stream_parser import ThinkingFilter
from council.types import Answer, Usage
from tests.fake_provider import FakeProvider, Reply
from tests.members.wires.test_openai import asked


def heard(*pieces: str) -> str:
    thinking = ThinkingFilter()
    return "".join([*(thinking.feed(piece) for piece in pieces), thinking.flush()])


@pytest.mark.behaviour("wire.thoughts-are-no-answer")
@pytest.mark.parametrize(
    ("said", "answer"),
    [
        ("<think>Hmm, tabs?</think>\n\nTabs.", "Tabs."),
        ("\n<thinking>\na < b </think> b\n</thinking> Tabs.", "Tabs."),
        ("<THINK>hm</THINK>Tabs.", "Tabs."),
        ('<think>\n\n</think>\n\n{"yes": true}', '{"yes": true}'),
        ("<think>and on and on", ""),
        ("<think>hm</think>", ""),
        ("  Tabs.", "  Tabs."),
        ("<thin air", "<thin air"),
        ("<thi", "<thi"),
        ("Say <think>so</think> aloud.", "Say <think>so</think> aloud."),
        ("<think>one</think><think>two</think>", "<think>two</think>"),
        ("", ""),
        (" \n", " \n"),
    ],
)
def test_a_leading_think_block_is_removed_at_any_piece_boundary(said: str, answer: str) -> None:
    assert heard(said) == heard(*said) == answer
    for at in range(len(said)):
        assert heard(said[:at], said[at:]) == answer


@given(st.lists(st.sampled_from(["<", "think", "ing", ">", "</think>", "</thinking>", " ", "word", "\n"])))
def test_piece_sizes_do_not_change_the_result(pieces: list[str]) -> None:
    assert heard(*pieces) == heard("".join(pieces)) == heard(*"".join(pieces))


def test_a_long_think_block_is_not_buffered() -> None:
    thinking = ThinkingFilter()
    for _ in range(1000):
        assert thinking.feed("<think> and on ") == ""
    assert len(thinking.buffer) < 20


@pytest.mark.anyio
@pytest.mark.behaviour("wire.thoughts-are-no-answer")
@pytest.mark.parametrize("stream", [True, False])
async def test_thinking_is_not_part_of_the_answer(provider: FakeProvider, stream: bool) -> None:
    provider.script("m1", Reply("<think>Tabs? Spaces?</think>\n\nTabs, of course.", piece=5, stream=stream))
    answer, pieces = await asked(provider.base_url)
    assert answer.text == "".join(pieces) == "Tabs, of course."
    if stream:
        assert pieces[0] == ""  # activity without text


@pytest.mark.anyio
async def test_an_unclosed_think_block_gives_no_text(provider: FakeProvider) -> None:
    provider.script("m1", Reply("<think>Tabs? Spaces? Tabs?", finish="length"))
    answer, _ = await asked(provider.base_url)
    assert answer == Answer("", "length", Usage(4, 7), "m1", "fake-1")


# Events of several lines


def split_events(raw: bytes) -> bytes:
    """Return a stream in which each JSON event has several data lines, as the standard allows."""
    lines = []
    for line in raw.split(b"\n"):
        data = line.removeprefix(b"data: ")
        if line.startswith(b"data: {"):
            text = json.dumps(json.loads(data), indent=1).encode()
            lines += [b"data: " + part for part in text.split(b"\n")]
        else:
            lines.append(line)
    return b"\n".join(lines)


CHUNK = {"choices": [{"delta": {"content": "Ta\nbs"}, "finish_reason": None}]}
LAST = {
    "choices": [{"delta": {"content": "."}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 3, "completion_tokens": 2},
}
STREAM = b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in (CHUNK, LAST)) + b"data: [DONE]\n\n"


@pytest.mark.anyio
@pytest.mark.behaviour("wire.events-of-several-lines")
@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
async def test_an_event_may_have_several_data_lines(provider: FakeProvider, end: bytes) -> None:
    provider.always("m1", Reply(raw=split_events(STREAM).replace(b"\n", end)))
    answer, _ = await asked(provider.base_url)
    assert (answer.text, answer.usage.output) == ("Ta\nbs.", 2)


@pytest.mark.anyio
@pytest.mark.behaviour("wire.events-of-several-lines")
@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize("slices", [1, 7, 0])
async def test_a_line_of_an_event_may_be_whole_json(provider: FakeProvider, end: bytes, slices: int) -> None:
    """Printed over several lines, the last item of a list, a number, and an empty object are whole JSON."""
    odd = {"bytes": [226, 128, 148], "words": ["tabs", "spaces"], "parts": [{}, {}], "none": [None]}
    first = {"choices": [{"delta": {"content": "Tabs"}, "logprobs": odd}]}
    last = {"choices": [{"delta": {"content": "."}, "finish_reason": "stop"}], "usage": {"completion_tokens": 2}}
    lines = [f"data: {line}\n" for event in (first, last) for line in [*json.dumps(event, indent=1).splitlines(), ""]]
    body = "".join(lines).replace("data: \n", "\n").encode().replace(b"\n", end) + b"data: [DONE]" + end + end
    provider.always("m1", Reply(raw=body, slices=slices))
    answer, _ = await asked(provider.base_url)
    assert (answer.text, answer.usage.output) == ("Tabs.", 2)


@pytest.mark.anyio
@pytest.mark.behaviour("wire.events-of-several-lines")
@pytest.mark.parametrize(
    "broken", [b'data: {"choices": [\n\n', b'data: {"a":\ndata: {"choices": []}\n\n', b"data: {]}\ndata: x\n\n"]
)
async def test_an_event_that_is_never_complete_is_unreadable(provider: FakeProvider, broken: bytes) -> None:
    provider.always("m1", Reply(raw=broken + STREAM.replace(b"data: [DONE]\n\n", b"")))
    with pytest.raises(Fault, match="unreadable event"):
        await asked(provider.base_url)
