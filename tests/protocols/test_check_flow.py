"""`--check`: after the final text of a protocol, other seats look for its errors and its author corrects them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from council import events as ev
from council.engine.minutes import Minutes
from council.errors import UsageError
from council.events import Entry
from council.members.scripted import Scripted
from council.render.markdown import render_answer, render_document, render_verbose
from council.render.report import build_report
from council.runs.service import Convener

pytestmark = pytest.mark.anyio
TEXT = "Go to the sea in May. It costs 4,000 euros for ten people. Book the train early."
FIXED = TEXT.replace("4,000", "5,000")
ERROR = {
    "severity": "MAJOR",
    "hits": "It costs 4,000 euros",
    "flaw": "The train is not counted.",
    "correction": "It costs 5,000 euros.",
    "harm": "The budget is exceeded.",
}
EDITS = [{"issue": "error-1", "find": "4,000 euros", "replace": "5,000 euros"}]
RIGHT = [{"issue": "error-1", "landed": True, "why": "It is."}]
NAMES = ("alpha", "beta", "gamma", "pragmatist", "visionary", "skeptic")
SCRIPT: dict[str, Any] = {
    "synthesise/chair": {"text": TEXT},
    "merge/chair": {"text": TEXT},
    **{f"check/{name}": {"reply": {"errors": []}} for name in NAMES},
    "check/alpha": {"reply": {"errors": [ERROR]}},
    "check/pragmatist": {"reply": {"errors": [ERROR]}},
    "fix/chair": {"reply": {"rulings": RIGHT, "edits": EDITS}},
    "fix/referee": {"reply": {"rulings": RIGHT, "edits": EDITS}},
}


async def run(protocol: str, script: dict[str, Any] | None = None, **flags: Any) -> tuple[Minutes, Scripted]:
    member = Scripted(script=SCRIPT | (script or {}))
    convener = Convener(Path.cwd(), flags={"models": ["scripted:"], "check": True} | flags, members=[member])
    try:
        plan = await convener.plan(["Where to?"], protocol=protocol)
        minutes = await convener.run(plan, lambda entry: None)
        assert await convener.audit(minutes.run) == []
        return minutes, member
    finally:
        await convener.close()


def write_config(text: str) -> None:
    Path("council.toml").write_text(text)


def ruling(answer: str) -> dict[str, Any]:
    return {"reply": {"points": [], "outcome": "SURVIVED", "answer": answer, "assessment": "Solid."}}


@pytest.mark.behaviour("10-check-flag")
@pytest.mark.parametrize("protocol", ["collaborative", "triad", "ranking", "adversarial"])
async def test_the_text_is_checked_and_corrected_by_the_chair(protocol: str) -> None:
    minutes, member = await run(protocol, {"verdict/chair": ruling(TEXT)})
    assert list(minutes.phases)[-2:] == ["check", "fix"]
    assert minutes.verdict["answer"] == FIXED
    assert FIXED in render_answer(minutes)
    words = next(call["messages"][-1]["content"] for call in member.calls if call["key"] == "check/alpha")
    assert TEXT in words
    assert "draft/" not in words.split("# The text")[1]
    report = build_report(minutes)
    assert report["check"]["readers"] == ["alpha", "beta"]
    assert "checked by alpha and beta: 1 error found, 1 corrected" in report["tail"][0]
    assert "error_corrected" in [fact["kind"] for fact in report["trust"]["facts"]]
    assert "Result of the Check" in render_document(minutes)
    assert "Result of the Check" in render_verbose(minutes)


@pytest.mark.behaviour("10-check-sections")
async def test_of_an_answer_in_sections_the_decision_is_checked_and_the_rest_stays() -> None:
    referee = {
        "perspectives": [{"advisor": "skeptic", "view": "It rains."}],
        "tensions": ["When to go"],
        "verdict": TEXT,
        "next_steps": ["Book."],
        "wrong_if": "It rains.",
    }
    minutes, _ = await run("advisors", {"referee/referee": {"reply": referee}})
    answer = minutes.verdict["answer"]
    assert FIXED in answer
    assert TEXT not in answer
    assert "## Next Steps" in answer
    sections = {row["name"]: row["text"] for row in minutes.verdict["details"]["sections"]}
    assert sections["decision"] == FIXED


async def test_a_text_without_errors_is_not_written_again() -> None:
    minutes, member = await run("triad", {"check/alpha": {"reply": {"errors": []}}})
    assert minutes.verdict["answer"] == TEXT
    assert not any(call["key"].startswith("fix") for call in member.calls)
    assert "checked by alpha and beta: no error found" in build_report(minutes)["tail"][0]


async def test_errors_that_say_the_same_count_once() -> None:
    both = {"check/alpha": {"reply": {"errors": [ERROR]}}, "check/beta": {"reply": {"errors": [ERROR]}}}
    rulings = [*RIGHT, {"issue": "error-2", "same_as": "error-1", "landed": True, "why": "The same."}]
    minutes, _ = await run("triad", both | {"fix/chair": {"reply": {"rulings": rulings, "edits": EDITS}}})
    report = build_report(minutes)
    assert "1 error found, 1 corrected" in report["tail"][0]
    corrected = next(fact for fact in report["trust"]["facts"] if fact["kind"] == "error_corrected")
    assert (corrected["count"], corrected["seats"]) == (1, ["alpha", "beta"])


async def test_without_the_flag_nothing_is_checked() -> None:
    minutes, _ = await run("triad", check=None)
    assert list(minutes.phases) == ["draft", "merge"]
    assert "check" not in build_report(minutes)


@pytest.mark.behaviour("10-check-flag")
async def test_the_plan_counts_the_check() -> None:
    convener = Convener(Path.cwd(), flags={"models": ["scripted:"], "check": True}, members=[Scripted()])
    try:
        plan = await convener.plan(["Where to?"], protocol="triad")
    finally:
        await convener.close()
    assert plan.as_json()["check"] is True
    assert plan.calls == (6, 10)
    assert [phase["name"] for phase in plan.phases][-2:] == ["check", "fix"]


@pytest.mark.behaviour("10-check-flag")
@pytest.mark.parametrize("protocol", ["judges", "quick", "solo"])
async def test_a_protocol_without_a_text_for_others_refuses_the_flag(protocol: str) -> None:
    with pytest.raises(UsageError, match=f"the protocol {protocol} has no answer that other seats can check"):
        await run(protocol)


@pytest.mark.behaviour("10-check-config")
async def test_the_configuration_turns_it_on_where_it_applies() -> None:
    write_config("check = true\n")
    minutes, _ = await run("triad", check=None)
    assert "check" in minutes.phases
    other, _ = await run("solo", check=None)
    assert "check" not in other.phases


@pytest.mark.behaviour("10-check-interrupted")
async def test_an_answer_whose_check_is_interrupted_is_still_the_answer_and_the_check_can_be_resumed() -> None:
    member = Scripted(script=SCRIPT | {"check/alpha": {"stall": True}})
    convener = Convener(Path.cwd(), flags={"models": ["scripted:"], "check": True}, members=[member])
    stop = asyncio.Event()

    def on_event(entry: Entry) -> None:
        if isinstance(entry.event, ev.Stated) and entry.event.phase == "check":
            stop.set()

    try:
        plan = await convener.plan(["Where to?"], protocol="triad")
        stopped = await convener.run(plan, on_event, stop=stop)
        assert (stopped.status, stopped.verdict["answer"]) == ("incomplete", TEXT)
        member.script = SCRIPT
        resumed = await convener.resume(stopped.run, lambda entry: None)
    finally:
        await convener.close()
    assert (resumed.status, resumed.verdict["answer"]) == ("complete", FIXED)
    assert sum(call["key"] == "check/beta" for call in member.calls) == 1
