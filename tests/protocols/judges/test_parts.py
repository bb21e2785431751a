"""Parts of a large diff: the joined opinion, the plan, and what a judge is told."""

from __future__ import annotations

from typing import Any

import pytest

from council import protocols
from council.planning.rehearsal import RehearsalInput, rehearse_both_ways
from council.protocols.judges.parts import describe_parts, join_opinions, list_parts
from council.protocols.judges.replies import Opinion
from council.types import Packet, Question, Roster, Seat
from tests.protocols.judges.runs import finding, opinion

DIFF = "".join(
    f"diff --git a/m{n}.py b/m{n}.py\n--- a/m{n}.py\n+++ b/m{n}.py\n@@ -0,0 +1,20 @@\n"
    + "+value = compute(value)\n" * 20
    for n in range(6)
)
PACKET = Packet(diff=DIFF, target="recent", budget=600)
JUDGES = Roster(
    tuple(Seat(f"judge-{n}", member="scripted:") for n in (1, 2)), None, (Seat("explorer", member="scripted:"),)
)


def said(verdict: str, confidence: str = "HIGH", *descriptions: str, **more: Any) -> Opinion:
    rows = [finding(one) for one in descriptions]
    return Opinion.model_validate(opinion(verdict, confidence, f"It is a {verdict}.", *rows, **more))


@pytest.mark.behaviour("20-large-diff-split")
def test_the_worst_verdict_the_lowest_confidence_and_all_findings_are_joined() -> None:
    joined = join_opinions(
        [
            said("PASS", "LOW", "a"),
            said("FAIL", "HIGH", "b", "c"),
            said("FAIL", key_insight="Later."),
            said("WARN", "MEDIUM", "d"),
        ]
    )
    assert (joined.verdict, joined.confidence, joined.key_insight) == ("FAIL", "LOW", "It is a FAIL.")
    assert [one.description for one in joined.findings] == ["a", "b", "c", "d"]
    assert (joined.parts, joined.unanswered, joined.schema_version) == (4, [], 2)
    partly = join_opinions([said("PASS")], ["part 2 of 2 (a.py)"])
    assert (partly.parts, partly.unanswered) == (2, ["part 2 of 2 (a.py)"])


@pytest.mark.anyio
@pytest.mark.behaviour("20-large-diff-split")
@pytest.mark.parametrize(
    ("options", "calls"),
    [({}, 2 * 3), ({"debate": True}, 2 * 3 + 2), ({"explorers": 1}, 2 * 3 + 2 * (1 + 4))],
    ids=["plain", "debate", "explorers"],
)
async def test_the_plan_counts_a_request_for_each_judge_and_part(options: dict[str, Any], calls: int) -> None:
    assert len(list_parts(PACKET)) == 3
    protocol = protocols.get_protocol("judges")
    chosen = protocol.load_options().model_validate(options).model_dump()
    question = Question("recent", "validate", "recent")
    given = RehearsalInput(protocol, JUDGES, question, chosen, PACKET)
    phases, (_, most), _, longer, _ = await rehearse_both_ways(given)
    assert most == len(longer) == calls == sum(phase["calls"] for phase in phases)
    first = "r1" if options.get("debate") else "judge"
    assert {"name": first, "calls": 6, "parallel": True} in phases
    second_round = [call.tokens for call in longer if call.key.startswith("r2/")]
    assert all(tokens < 3 * PACKET.budget + 2500 for tokens in second_round)


def test_the_plan_says_that_a_diff_is_judged_in_parts() -> None:
    protocol = protocols.get_protocol("judges")
    line = protocol.describe_packet(PACKET, "validate")
    assert line == describe_parts(PACKET)
    assert line.startswith("each judge is asked in 3 parts: the changes have about 1,")
    assert protocol.describe_packet(PACKET, "brainstorm") == ""
    assert protocol.describe_packet(Packet(diff=DIFF), "validate") == ""


def test_a_part_is_named_with_its_first_files() -> None:
    assert [part.name for part in list_parts(PACKET)] == [
        "part 1 of 3 (m0.py and m1.py)",
        "part 2 of 3 (m2.py and m3.py)",
        "part 3 of 3 (m4.py and m5.py)",
    ]
    many = list_parts(Packet(diff=DIFF * 2, budget=1800))
    assert many[0].name == "part 1 of 2 (m0.py, m1.py, m2.py and 3 more)"
