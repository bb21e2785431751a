"""Recorded answers cut at every byte, on each wire: never ok without the terminator, and no unexpected exception."""

from __future__ import annotations

import pytest

from council.errors import Fault
from council.types import Answer
from tests.fake_provider import FakeProvider, Reply
from tests.fakes.members import ASK, KINDS, WIRES, member_at, seated
from tests.fakes.raw import OPEN_ENDED, endpoint
from tests.members.conformance.vendors import recorded

pytestmark = [pytest.mark.anyio, pytest.mark.behaviour("wire.cut-anywhere-is-never-ok", "issue-5-cut-at-every-byte")]
every_wire = pytest.mark.parametrize("wire", WIRES)
TERMINATORS = {"openai": b"[DONE]", "anthropic": b'{"type": "message_stop"}', "google": b'"finishReason"'}


def terminated(wire: str, raw: bytes) -> int:
    """Return the position after the first line end, CR or LF, of the terminator's line."""
    end = raw.rindex(b"data:") if wire == "openai-responses" else raw.index(TERMINATORS[wire])
    return raw.replace(b"\r", b"\n").index(b"\n", end) + 1


def heard(wire: str, raw: bytes) -> Answer | Fault:
    """Parse these bytes as an unframed stream that ends after them."""
    hearing = KINDS[wire].parser(lambda piece: None)
    *lines, _ = raw.replace(b"\r", b"\n").split(b"\n")
    try:
        hearing.feed_lines(lines)
        hearing.is_done = hearing.is_complete(False)
        return hearing.build_answer(str)
    except Fault as fault:
        return fault


@every_wire
@pytest.mark.parametrize("story", ["streamed", "reasoning", "structured", "length"])
def test_no_cut_of_any_length_is_ok_before_the_terminator(wire: str, story: str) -> None:
    raw = recorded(wire, story)
    whole, end = heard(wire, raw), terminated(wire, raw)
    assert isinstance(whole, Answer)
    assert end > len(raw) * 0.7
    lines, cut = raw.replace(b"\r", b"\n"), heard(wire, b"")
    for at in range(end):
        if lines[at - 1 : at] == b"\n":  # an unfinished line is ignored
            cut = heard(wire, raw[:at])
        assert isinstance(cut, Fault), f"{raw[:at]!r}"
        assert cut.kind == "cut"
        assert whole.text.startswith(cut.said)
    for at in range(end, len(raw)):
        if at == end or lines[at - 1 : at] == b"\n":
            assert heard(wire, raw[:at]) == whole


def some(wire: str, raw: bytes) -> list[int]:
    """Return positions at the start, at intervals, and at every byte around the terminator."""
    end = terminated(wire, raw)
    return [0, 1, *range(5, end - 8, 157), *range(end - 8, min(end + 3, len(raw)))]


@every_wire
@pytest.mark.parametrize("rudely", [False, True])
async def test_a_chunked_stream_cut_on_the_socket_is_never_ok_before_the_terminator(
    provider: FakeProvider, wire: str, rudely: bool
) -> None:
    raw = recorded(wire, "streamed")
    member = seated(provider, wire)
    for at in some(wire, raw):
        provider.script("m1", Reply(raw=raw, reset=at) if rudely else Reply(raw=raw, cut=at))
        try:
            answer = await member.send(member.prepare(ASK), lambda piece: None)
        except Fault as fault:
            assert fault.kind == "cut", at
            assert at < terminated(wire, raw) or rudely  # a reset may discard bytes that were sent before it
        else:
            assert at >= terminated(wire, raw)
            assert answer == heard(wire, raw)
    await member.close()


@every_wire
async def test_an_unframed_stream_is_never_ok_before_the_terminator(wire: str) -> None:
    raw = recorded(wire, "streamed")
    places = some(wire, raw)
    answers: list[list[bytes | float]] = [[OPEN_ENDED, raw[:at]] for at in places]
    async with endpoint(*answers) as url:
        member = member_at(url, wire)
        for at in places:
            try:
                answer = await member.send(member.prepare(ASK), lambda piece: None)
            except Fault as fault:
                assert fault.kind == "cut"
                assert at < terminated(wire, raw)
            else:
                assert at >= terminated(wire, raw)
                assert answer == heard(wire, raw)
        await member.close()
