"""Recorded streams parse the same as with the vendor's SDK."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from council.errors import Fault
from council.types import Answer, Usage
from tests.fake_provider import FakeProvider, Reply
from tests.fakes.members import ASK, WIRES, seated
from tests.members.conformance.vendors import RECORDINGS, TYPED, call_sdk, recorded

if TYPE_CHECKING:
    from tests.members.conformance.sdks import Heard

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.behaviour("issue-5-conformance"),
    pytest.mark.filterwarnings("ignore:Inheritance class AiohttpClientSession:DeprecationWarning"),
]
every_wire = pytest.mark.parametrize("wire", WIRES)
FINISHES = {"stop": "stop", "end_turn": "stop", "STOP": "stop", "length": "length", "max_tokens": "length", "MAX_TOKENS": "length",
            "completed": "stop", "max_output_tokens": "length", "content_filter": "refused", "refusal": "refused", "SAFETY": "refused", "PROHIBITED_CONTENT": "refused"}  # fmt: skip


async def both(provider: FakeProvider, wire: str, raw: bytes) -> tuple[Answer | Fault, Heard]:
    provider.always("m1", Reply(raw=raw))
    member = seated(provider, wire)
    try:
        ours: Answer | Fault = await member.send(member.prepare(ASK), lambda piece: None)
    except Fault as fault:
        ours = fault
    await member.close()
    return ours, await call_sdk(wire, provider, ASK, None)


@every_wire
@pytest.mark.parametrize("name", [name for name in RECORDINGS if name != "error"])
async def test_a_recorded_answer_parses_the_same_as_the_sdk(provider: FakeProvider, wire: str, name: str) -> None:
    ours, theirs = await both(provider, wire, recorded(wire, name))
    assert isinstance(ours, Answer)
    assert not theirs.error
    refused = theirs.refusal or FINISHES[str(theirs.finish)] == "refused"
    assert ours.finish == ("refused" if refused else FINISHES[str(theirs.finish)])
    assert ours.text == (theirs.refusal or theirs.text)
    assert (ours.id, ours.model) == (theirs.id, "m1")
    assert ours.usage == theirs.usage
    assert ours.usage.cached == (0 if (wire, name) == ("google", "refusal") else 8)


@every_wire
def test_every_recording_is_listed(wire: str) -> None:
    from tests.members.conformance.recordings import STORIES

    assert tuple(STORIES[wire]) == RECORDINGS


@every_wire
async def test_recordings_have_the_expected_texts(provider: FakeProvider, wire: str) -> None:
    """Check the texts themselves, because two empty results would be equal too."""
    texts = {"plain": "Tabs, of course.", "streamed": "Tabs, of course. Ünï — 🙂", "structured": TYPED, "reasoning": "Tabs.",
             "refusal": "I cannot say.", "length": "Tabs, of cou", "news": "Tabs."}  # fmt: skip
    for name, text in texts.items():
        ours, _ = await both(provider, wire, recorded(wire, name))
        assert isinstance(ours, Answer)
        assert ours.text == text
    assert json.loads(TYPED)["yes"] is True
    assert isinstance(ours, Answer)
    assert ours.usage == Usage(20, 9, 8, True, 0 if wire == "google" else 4)


@every_wire
async def test_an_error_after_200_is_an_error_to_both(provider: FakeProvider, wire: str) -> None:
    ours, theirs = await both(provider, wire, recorded(wire, "error"))
    assert isinstance(ours, Fault)
    assert (ours.kind, ours.said) == ("cut", "Tabs")
    assert theirs.error
    assert theirs.error in ours.detail


@every_wire
async def test_a_stream_without_terminator_is_never_an_answer_here(provider: FakeProvider, wire: str) -> None:
    whole = recorded(wire, "streamed")
    half = whole[: whole.index(b"course")]
    ours, _ = await both(provider, wire, half[: half.rindex(b"data:")])
    assert isinstance(ours, Fault)
    assert ours.kind == "cut"
