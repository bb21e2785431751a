"""Advisors over scripted members: the plan, what is noted, what the drawing says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from council.convene import Convener
from council.members.scripted import Scripted
from council.minutes import Minutes
from council.planning import Plan
from council.render.markdown import document, mermaid, verbose

pytestmark = pytest.mark.anyio
ADVISORS = ("pragmatist", "visionary", "skeptic")
SEATS = dict.fromkeys((*ADVISORS, "referee"), "scripted:")


def stand(stance: str = "for", confidence: str = "HIGH", choice: str = "move", evidence: str = "") -> dict[str, Any]:
    words = {"statement": "I say.", "stance": stance, "choice": choice, "confidence": confidence, "evidence": evidence}
    return {"reply": words}


async def sat(script: dict[str, Any] | None = None, **flags: Any) -> tuple[Plan, Minutes, Scripted]:
    member = Scripted(script=script or {})
    convener = Convener(Path.cwd(), flags={"seats": SEATS}, members=[member])
    try:
        plan = await convener.plan(["Should we move?"], flags, protocol="advisors")
        return plan, await convener.run(plan, lambda entry: None), member
    finally:
        await convener.close()


@pytest.mark.behaviour("10-advisors-shape", "001-three-advisors")
@pytest.mark.parametrize(
    ("flags", "keys"),
    [
        ({}, [f"r1/{name}" for name in ADVISORS]),
        ({"flow": "sequential", "rounds": 2}, [f"r{n}/{name}" for n in (1, 2) for name in ADVISORS]),
        ({"flow": "debate"}, [f"r{n}/{name}" for n in (1, 2, 3) for name in ADVISORS]),
    ],
)
async def test_everybody_speaks_once_a_round_in_seating_order_and_the_referee_last(
    flags: dict[str, Any], keys: list[str]
) -> None:
    plan, minutes, member = await sat(**flags)
    assert [call["key"] for call in member.calls] == [*keys, "referee/referee"]
    assert (minutes.status, plan.calls) == ("complete", (len(keys) + 1, len(keys) + 1))


@pytest.mark.behaviour("10-early-stop-ends")
async def test_a_plan_that_may_stop_early_says_how_few_and_how_many_calls_it_takes() -> None:
    plan, minutes, _ = await sat({f"r1/{name}": stand() for name in ADVISORS}, flow="debate", early_stop=True)
    assert (plan.calls, minutes.calls["made"]) == ((4, 10), 4)
    assert [phase["name"] for phase in plan.phases] == ["r1", "r2", "r3", "referee"]


@pytest.mark.behaviour("10-early-stop-ends")
async def test_the_drawing_shows_the_rounds_that_were_not_held_and_why() -> None:
    _, minutes, _ = await sat({f"r1/{name}": stand() for name in ADVISORS}, flow="debate", early_stop=True)
    drawn = mermaid(minutes)
    assert 'p_r2["r2, not held: the debate ended early' in drawn and 'p_r3["r3, not held: the debate' in drawn
    assert "p_r1 --> p_referee" in drawn


@pytest.mark.behaviour("10-early-stop-ends")
async def test_two_who_agree_end_the_debate_when_the_third_is_gone_for_good() -> None:
    script: dict[str, Any] = {"r1/pragmatist": stand(), "r1/visionary": stand(), "r1/skeptic": {"fail": "auth"}}
    _, minutes, member = await sat(script, rounds=2, early_stop=True)
    assert [note.what for note in minutes.notes] == ["r2 skipped"]
    assert "both hold one stand" in minutes.notes[0].why and "2 calls saved" in minutes.notes[0].why
    assert [row.seat for row in minutes.absences] == ["skeptic"]
    (asked,) = [call for call in member.calls if call["key"] == "referee/referee"]
    assert asked["schema"]["properties"]["perspectives"]["items"]["properties"]["advisor"]["enum"] == [*ADVISORS[:2]]


@pytest.mark.behaviour("10-early-stop-goes-on")
async def test_two_who_agree_wait_for_a_third_who_may_still_be_heard() -> None:
    script: dict[str, Any] = {f"r{n}/{name}": stand() for n in (1, 2, 3) for name in ADVISORS}
    script["r1/skeptic"] = {"fail": "server"}
    _, minutes, _ = await sat(script, flow="debate", early_stop=True)
    assert [note.what for note in minutes.notes] == ["r3 skipped"]
    assert "all 3 hold one stand" in minutes.notes[0].why


@pytest.mark.behaviour("10-early-stop-typed")
async def test_a_stand_is_part_of_the_advisors_own_reply_and_read_by_people() -> None:
    script = {"r1/skeptic": stand("against", choice="stay\nput")}
    _, minutes, member = await sat(script, rounds=2, early_stop=True)
    assert len(member.calls) == 7
    assert "I say.\n\n**Stand:** against. **Choice:** stay put" in verbose(minutes)


@pytest.mark.behaviour("10-advisors-referee-sections")
async def test_what_the_referee_calls_a_tension_is_a_disagreement_of_the_report() -> None:
    ruling = {"perspectives": [], "tensions": ["speed or safety"], "decision": "Move.", "next_steps": []}
    _, minutes, _ = await sat({"referee/referee": {"reply": ruling}})
    assert minutes.verdict["disagreements"] == [{"issue": "speed or safety"}]
    assert "## Next Steps\n\nNone." in minutes.verdict["answer"]
    assert "## Verdict\n\nMove." in document(minutes)


async def test_no_prompt_names_a_member() -> None:
    _, _, member = await sat(flow="debate")
    words = "".join(call["messages"][-1]["content"] for call in member.calls)
    assert "scripted" not in words
