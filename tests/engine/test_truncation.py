"""Truncation of messages that are too long."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from council.engine.prompting import Prompts, Quoter
from council.engine.truncation import FENCE, TRUNCATION_MARKER, FencedPacket, truncate_messages
from council.types import Cuts, Message, Packet, PacketFile, Question, Seat, Statement, estimate_tokens

PROMPTS = Prompts("s1")
LINE = "value = compute(value)  # one of many lines\n"
JUDGE = Seat("judge-1", "Judge", "security", "who gets in")


def said(words: str, name: str = "alpha") -> str:
    return Quoter(PROMPTS, f"improve/{name}")(Statement(Seat(name), f"draft/{name}", words, None))


def user(*parts: str) -> tuple[Message, ...]:
    return ({"role": "system", "content": "Be brief."}, {"role": "user", "content": "\n\n".join(parts)})


def validating(packet: Packet) -> tuple[Message, ...]:
    given = {
        "question": Question("review it", "validate"), "packet": packet, "output_schema": {"verdict": "PASS"},
        "bench": 2, "technique": None, "explored": [],
    }  # fmt: skip
    return PROMPTS.render("judges/validate", JUDGE, given).messages


def truncate(packet: Packet, share: float) -> tuple[tuple[Message, ...], Cuts]:
    """Return the request of a judge with this packet at a share of its length."""
    fenced = FencedPacket(packet, PROMPTS.fence_mark("packet"), lambda one: PROMPTS.fence_packet(one, "validate"))
    cut = truncate_messages(validating(packet), share, fenced)
    assert cut
    return cut


def length(messages: tuple[Message, ...]) -> int:
    return sum(estimate_tokens(message["content"]) for message in messages)


BIG = Packet(
    (PacketFile("first.py", LINE * 100), PacketFile("second.py", LINE * 100), PacketFile("third.py", LINE * 100)),
    diff="+ one line\n", prior_decisions=("we keep the format",), environment='{"python": "3.11"}',
)  # fmt: skip


@pytest.mark.behaviour("40-context-too-long")
def test_the_packet_is_truncated_in_order_and_rendered_again() -> None:
    smaller, names = truncate(BIG, 0.6)
    text = smaller[-1]["content"]
    assert f"100| {LINE}\n### second.py" in text and "third.py" in text.partition("## Not shown")[2]
    last = re.findall(r"^( *\d+)\| value", text, re.MULTILINE)[-1].strip()
    assert f"… lines {int(last) + 1}-100 not shown …" in text
    assert "| + one line" in text and "- we keep the format" in text
    assert names == Cuts(("second.py", "third.py"), context=("environment",))
    assert names.descriptions == ("second.py", "third.py", "environment")
    assert length(smaller) <= 0.65 * length(validating(BIG))


@pytest.mark.behaviour("40-context-too-long")
def test_a_request_that_is_still_too_long_is_cut_again_from_the_whole_packet() -> None:
    fenced = FencedPacket(BIG, PROMPTS.fence_mark("packet"), lambda one: PROMPTS.fence_packet(one, "validate"))
    once, _ = truncate(BIG, 0.6)
    twice = truncate_messages(once, 0.6, fenced)
    assert twice and length(twice[0]) <= 0.4 * length(validating(BIG))
    assert (
        twice[1].material == ("first.py", "second.py", "third.py")
        and twice[0][-1]["content"].count("## Not shown") == 1
    )


@pytest.mark.behaviour("40-context-too-long")
def test_the_question_the_lens_and_the_schema_are_never_cut() -> None:
    messages = validating(BIG)
    smaller, _ = truncate(BIG, 0.5)
    text = smaller[-1]["content"]
    assert "the security judge" in text and "Your angle: who gets in" in text and '"verdict": "PASS"' in text
    around = re.compile(r"<<<.*?>>>", re.DOTALL)
    assert around.sub("", text) == around.sub("", messages[-1]["content"])
    assert smaller[0] == messages[0]


@pytest.mark.behaviour("40-context-too-long")
def test_quotations_keep_their_beginning_and_short_ones_are_kept_whole() -> None:
    long = " ".join(f"word{n}" for n in range(2000))
    cut = truncate_messages(user("What now?", said(long, "alpha"), said("In a word: no.", "beta")), 0.5)
    assert cut
    first, second = (found["text"] for found in FENCE.finditer(cut[0][-1]["content"]))
    assert first.startswith("word0 word1 ") and first.endswith(f"\n{TRUNCATION_MARKER}")
    assert 0.4 * len(long) < len(first) < 0.6 * len(long)
    assert (second, cut[1]) == ("In a word: no.", Cuts(statements=("Alpha",)))
    assert cut[1].descriptions == ("the words of Alpha",)


@pytest.mark.behaviour("40-context-too-long")
@pytest.mark.parametrize(
    "messages",
    [user("Why? " * 4000), user("Why?", said("Because."))],
    ids=["no material", "short material"],
)
def test_without_long_material_nothing_is_cut(messages: tuple[Message, ...]) -> None:
    assert truncate_messages(messages, 0.5) is None


def test_a_very_long_question_leaves_a_tenth_of_the_material() -> None:
    words = " ".join(f"word{n}" for n in range(2000))
    cut = truncate_messages(user("Why? " * 9000, said(words)), 0.5)
    assert cut
    assert 0.05 * len(words) < len(FENCE.findall(cut[0][-1]["content"])[0][2]) < 0.15 * len(words)


def test_a_quotation_with_the_name_of_the_packet_is_cut_as_text() -> None:
    text = Quoter(PROMPTS, "r1/judge-1")("{" + "x " * 3000, "Packet")
    cut = truncate_messages(user(text), 0.5)
    assert cut and cut[1] == Cuts(statements=("Packet",))


def test_a_fence_inside_a_fence_is_a_part_of_it() -> None:
    inner = "<<<Packet 000000000000\nno\n000000000000>>> " * 200
    cut = truncate_messages(user(said(inner)), 0.5)
    assert cut and len(FENCE.findall(cut[0][-1]["content"])) == 1


def test_cuts_are_marked_in_the_prompt() -> None:
    messages = PROMPTS.append_cut_note(user("Why?"), Cuts(("big.py",), ("Alpha",)), "draft/alpha")
    text = messages[-1]["content"]
    assert text.startswith("Why?\n\nNot all of the material fits")
    assert "- big.py\n- the words of Alpha" in text and FENCE.search(text)


@given(st.lists(st.text(min_size=400, max_size=3000), min_size=1, max_size=4), st.floats(0.1, 0.5))
def test_truncated_messages_are_shorter_and_keep_their_fences(texts: list[str], share: float) -> None:
    messages = user("Why?", *(said(text, f"seat{n}") for n, text in enumerate(texts)))
    cut = truncate_messages(messages, share)
    if cut:
        assert length(cut[0]) <= length(messages) + 40 * len(texts)  # one marker each
        assert len(FENCE.findall(cut[0][-1]["content"])) == len(texts)


@pytest.mark.behaviour("40-context-too-long")
def test_every_quotation_keeps_a_hundred_tokens() -> None:
    cut = truncate_messages(user(said("word " * 180)), 0.01)
    assert cut
    kept = FENCE.search(cut[0][-1]["content"])
    assert kept and kept["text"].partition(TRUNCATION_MARKER)[0].split() == ["word"] * 59


@pytest.mark.behaviour("40-context-too-long")
def test_a_quotation_beside_the_packet_is_cut_as_text() -> None:
    fenced = FencedPacket(BIG, PROMPTS.fence_mark("packet"), lambda one: PROMPTS.fence_packet(one, "validate"))
    messages = (*validating(BIG), {"role": "user", "content": said("word " * 3000)})
    cut = truncate_messages(messages, 0.5, fenced)
    assert cut and cut[1].statements == ("Alpha",)
    assert 1000 < cut[0][-1]["content"].count("word") < 2000


@pytest.mark.behaviour("40-context-too-long")
def test_a_cut_quotation_without_a_name_is_told_as_others() -> None:
    cut = truncate_messages(user(Quoter(PROMPTS, "r1/alpha")("word " * 3000)), 0.5)
    assert cut and cut[1].descriptions == ("the words of others",)
