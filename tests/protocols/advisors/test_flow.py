"""Advisors with scripted members: plan, notes and diagram."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from council.engine.degraded import build_degraded_rows
from council.engine.minutes import Minutes
from council.members.scripted import Scripted
from council.planning.plan import Plan
from council.render.markdown import render_document, render_verbose
from council.render.mermaid import render_mermaid
from council.runs.service import Convener
from council.wording import load_wording

pytestmark = pytest.mark.anyio
ADVISORS = ("pragmatist", "visionary", "skeptic")
SEATS = dict.fromkeys((*ADVISORS, "referee"), "scripted:")


def stance_reply(
    stance: str = "for", confidence: str = "HIGH", choice: str = "move", evidence: str = ""
) -> dict[str, Any]:
    words = {"statement": "I say.", "stance": stance, "choice": choice, "confidence": confidence, "evidence": evidence}
    return {"reply": words}


async def run_advisors(script: dict[str, Any] | None = None, **flags: Any) -> tuple[Plan, Minutes, Scripted]:
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
async def test_each_advisor_speaks_once_a_round_in_seating_order_and_the_referee_last(
    flags: dict[str, Any], keys: list[str]
) -> None:
    plan, minutes, member = await run_advisors(**flags)
    assert [call["key"] for call in member.calls] == [*keys, "referee/referee"]
    assert (minutes.status, plan.calls) == ("complete", (len(keys) + 1, len(keys) + 1))


@pytest.mark.behaviour("10-early-stop-ends")
async def test_a_plan_with_early_stop_has_minimum_and_maximum_calls() -> None:
    plan, minutes, _ = await run_advisors(
        {f"r1/{name}": stance_reply() for name in ADVISORS}, flow="debate", early_stop=True
    )
    assert (plan.calls, minutes.calls["made"]) == ((4, 10), 4)
    assert [phase["name"] for phase in plan.phases] == ["r1", "r2", "r3", "referee"]


@pytest.mark.behaviour("10-early-stop-ends")
async def test_the_diagram_shows_skipped_rounds_and_why() -> None:
    _, minutes, _ = await run_advisors(
        {f"r1/{name}": stance_reply() for name in ADVISORS}, flow="debate", early_stop=True
    )
    drawn = render_mermaid(minutes)
    assert 'p_r2["r2, not held: the debate ended early' in drawn and 'p_r3["r3, not held: the debate' in drawn
    assert "p_r1 --> p_referee" in drawn


@pytest.mark.behaviour("10-early-stop-ends")
async def test_two_agreeing_advisors_end_the_debate_if_the_third_is_out_for_the_run() -> None:
    script: dict[str, Any] = {
        "r1/pragmatist": stance_reply(),
        "r1/visionary": stance_reply(),
        "r1/skeptic": {"fail": "auth"},
    }
    _, minutes, member = await run_advisors(script, rounds=2, early_stop=True)
    assert [note.what for note in minutes.notes] == ["r2 skipped"]
    assert "both agree" in minutes.notes[0].why and "2 calls saved" in minutes.notes[0].why
    assert [row.seat for row in minutes.absences] == ["skeptic"]
    (asked,) = [call for call in member.calls if call["key"] == "referee/referee"]
    assert asked["schema"]["properties"]["perspectives"]["items"]["properties"]["advisor"]["enum"] == [*ADVISORS[:2]]


@pytest.mark.behaviour("10-early-stop-goes-on")
async def test_two_agreeing_advisors_wait_for_a_third_that_is_asked_again() -> None:
    script: dict[str, Any] = {f"r{n}/{name}": stance_reply() for n in (1, 2, 3) for name in ADVISORS}
    script["r1/skeptic"] = {"fail": "server"}
    _, minutes, _ = await run_advisors(script, flow="debate", early_stop=True)
    assert [note.what for note in minutes.notes] == ["r3 skipped"]
    assert "all 3 agree" in minutes.notes[0].why


@pytest.mark.behaviour("10-early-stop-typed")
async def test_the_stance_is_part_of_the_reply_and_of_its_text() -> None:
    script = {"r1/skeptic": stance_reply("against", choice="stay\nput")}
    _, minutes, member = await run_advisors(script, rounds=2, early_stop=True)
    assert len(member.calls) == 7
    assert "I say.\n\n**Stance:** against. **Choice:** stay put" in render_verbose(minutes)


@pytest.mark.behaviour("10-advisors-referee-sections")
async def test_a_tension_of_the_referee_is_a_disagreement_in_the_report() -> None:
    ruling = {"perspectives": [], "tensions": ["speed or safety"], "decision": "Move.", "next_steps": []}
    _, minutes, _ = await run_advisors({"referee/referee": {"reply": ruling}})
    assert minutes.verdict["disagreements"] == [{"issue": "speed or safety"}]
    assert "## Next Steps\n\nNone." in minutes.verdict["answer"]
    assert "## Verdict\n\nMove." in render_document(minutes)


async def test_no_prompt_names_a_member() -> None:
    _, _, member = await run_advisors(flow="debate")
    words = "".join(call["messages"][-1]["content"] for call in member.calls)
    assert "scripted" not in words


# Agreement and the report

RULING: dict[str, Any] = {
    "perspectives": [{"advisor": name, "view": f"VIEW OF {name}"} for name in ADVISORS],
    "tensions": [],
    "decision": "Move in May.",
    "next_steps": ["Rent a van."],
}


@pytest.mark.behaviour("10-advisors-agreement")
@pytest.mark.parametrize(
    ("more", "agreement"),
    [
        ({"shared_by": list(ADVISORS)}, "full"),
        ({"shared_by": ["Pragmatist", "the Skeptic", "visionary"]}, "full"),
        ({"shared_by": list(ADVISORS), "tensions": ["rent or buy"]}, "partial"),
        ({"shared_by": ["pragmatist", "skeptic"]}, "partial"),
        ({"shared_by": ["skeptic"]}, "none"),
        ({"shared_by": []}, "none"),
        ({}, ""),
        ({"shared_by": ["skeptic", "the accountant"]}, "none"),
    ],
)
async def test_agreement_is_what_the_referee_says_who_shares_the_verdict(more: dict[str, Any], agreement: str) -> None:
    _, minutes, member = await run_advisors({"referee/referee": {"reply": RULING | more}})
    assert (minutes.verdict["agreement"], len(member.calls)) == (agreement, 4)
    facts = [row["detail"] for row in minutes.verdict["trust_facts"]]
    assert facts == more.get("tensions", [])


@pytest.mark.behaviour("10-trust-in-turn")
@pytest.mark.parametrize(
    ("flags", "answered", "is_in_turn"),
    [
        ({"flow": "sequential"}, 3, True),
        ({"flow": "sequential", "rounds": 2}, 3, True),
        ({"flow": "sequential"}, 2, True),
        ({"flow": "sequential"}, 1, False),
        ({"flow": "parallel"}, 3, False),
        ({"flow": "debate"}, 3, False),
    ],
)
async def test_advisors_who_spoke_in_turn_limit_trust(flags: dict[str, Any], answered: int, is_in_turn: bool) -> None:
    script: dict[str, Any] = {f"r1/{name}": {"fail": "auth"} for name in ADVISORS[answered:]}
    script["referee/referee"] = {"reply": RULING | {"shared_by": list(ADVISORS)}}
    _, minutes, _ = await run_advisors(script, **flags)
    facts = [row["kind"] for row in minutes.verdict["trust_facts"]]
    assert facts == (["in_turn"] if is_in_turn else [])


@pytest.mark.behaviour("10-advisors-report-once")
async def test_the_report_has_the_final_text_once() -> None:
    ruling = RULING | {"shared_by": [], "wrong_if": "Rents fall."}
    _, minutes, _ = await run_advisors({"referee/referee": {"reply": ruling}})
    text = render_document(minutes)
    assert (text.count("Move in May."), text.count("_The answer above._")) == (1, 1)
    assert "## What Would Show That the Verdict Was Wrong\n\nRents fall." in minutes.verdict["answer"]


async def test_the_referee_writes_the_positions_before_it_decides() -> None:
    _, _, member = await run_advisors(rounds=2)
    fields = list(member.calls[-1]["schema"]["properties"])
    assert fields == [
        "perspectives",
        "tensions",
        "sides",
        "positions",
        "decision",
        "shared_by",
        "next_steps",
        "wrong_if",
        "joined",
    ]


async def test_the_final_of_two_rounds_does_not_ask_about_objections() -> None:
    _, _, member = await run_advisors(rounds=2)
    assert "objections" not in member.calls[4]["messages"][-1]["content"]
    _, _, member = await run_advisors(rounds=3)
    assert "objections" in member.calls[7]["messages"][-1]["content"]


# Replies that do not fit


@pytest.mark.behaviour("10-replies-salvaged")
async def test_lost_decoration_costs_no_repair_turn_and_is_named() -> None:
    rows = [{"advisor": f"council-{name}", "view": f"VIEW OF {name}"} for name in (*ADVISORS, "referee")]
    ruling = RULING | {"perspectives": rows}
    _, minutes, member = await run_advisors({"referee/referee": {"reply": ruling}})
    assert len(member.calls) == 4
    assert "- **Visionary:** VIEW OF visionary" in minutes.verdict["answer"]
    (row,) = [row for row in build_degraded_rows(minutes) if row["state"] == "unread"]
    assert row["reason"] == "the referee's reply: perspectives 4, advisor could not be read"


@pytest.mark.behaviour("10-replies-salvaged")
async def test_a_section_that_cannot_be_read_is_not_called_empty() -> None:
    ruling = RULING | {"tensions": 7, "next_steps": {"a": {"b": {}}}, "shared_by": list(ADVISORS)}
    _, minutes, member = await run_advisors({"referee/referee": {"reply": ruling}})
    assert len(member.calls) == 5  # one repair turn
    assert (minutes.verdict["agreement"], minutes.status) == ("", "complete")
    answer = minutes.verdict["answer"]
    assert (
        answer.count(load_wording("en").heading("unread")) == 2
        and "Move in May." in answer
        and "VIEW OF skeptic" in answer
    )
