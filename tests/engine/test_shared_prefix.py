"""Length of the prompt prefix that all seats share, for vendor caches."""

from __future__ import annotations

from typing import Any

import pytest

from council.engine.prompting import Prompts
from council.types import DIFF_SCOPE, Packet, PacketFile, Question, Seat

PACKET = Packet(files=(PacketFile("a.py", "x = {\n  }\n" * 20),), diff="+  }\n", target="a.py")
ALPHA = Seat("alpha", perspective="Security", focus="Who may do what?")
BETA = Seat("beta", perspective="Cost", focus="Who pays?")


def render_for(seat: Seat, packet: Packet = PACKET, task: str = "validate", before: Any = ()) -> tuple[str, int]:
    given = {"question": Question("Is it right?", task), "packet": packet, "focus": {"alpha": "", "beta": ""}}
    rendered = Prompts("key").render("collaborative/draft", seat, given, before)
    return rendered.messages[1]["content"], rendered.shared


@pytest.mark.behaviour("issue-5-cache-marks")
@pytest.mark.parametrize("task", ["ask", "validate"])
def test_seats_share_everything_up_to_the_end_of_the_packet(task: str) -> None:
    (first, shared), (second, again) = render_for(ALPHA, task=task), render_for(BETA, task=task)
    assert shared == again
    assert first[:shared] == second[:shared]
    mark = Prompts("key").fence_mark("packet")
    assert first[:shared].endswith(f"40|   }}\n{mark}>>>") and first.count(mark) == 2
    assert (DIFF_SCOPE in first[:shared]) == ("# What you are asked to do" in first[:shared]) == (task == "validate")
    assert all(lens not in first[:shared] for lens in ("Security", "Who may do what?", "alpha"))


@pytest.mark.behaviour("issue-5-cache-marks")
def test_a_continued_conversation_keeps_its_shared_prefix() -> None:
    text, shared = render_for(ALPHA)
    turns = (
        {"role": "system", "content": "…"},
        {"role": "user", "content": text},
        {"role": "assistant", "content": "a"},
    )
    assert render_for(ALPHA, before=turns) == (text, shared)


@pytest.mark.behaviour("29-cache-points")
def test_without_a_packet_seats_share_the_question() -> None:
    (first, shared), (second, again) = render_for(ALPHA, Packet()), render_for(BETA, Packet())
    assert shared == again
    assert first[:shared] == second[:shared] == "# Question\n\nIs it right?"


def test_small_members_have_no_shared_prefix() -> None:
    assert render_for(Seat("alpha", small=True))[1] == 0
