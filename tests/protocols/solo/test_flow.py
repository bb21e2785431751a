"""Solo: one member drafts, attacks and rewrites in one conversation, and the trust line says what that is worth."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from council.engine.minutes import Minutes
from council.errors import UsageError
from council.members.scripted import Scripted
from council.render.report import build_report
from council.runs.service import Convener

pytestmark = pytest.mark.anyio
ERROR = {"severity": "MAJOR", "hits": "the sea", "flaw": "It is cold.", "correction": "The hills.", "harm": "Colds."}
SCRIPT: dict[str, Any] = {
    "draft/alpha": {"text": "Go to the sea."},
    "attack/alpha": {"reply": {"errors": [ERROR]}},
    "rewrite/alpha": {"text": "Go to the hills."},
    "attack-again/alpha": {"reply": {"errors": [ERROR]}},
    "rewrite-again/alpha": {"text": "Here is the final answer:\n\nGo to the lake."},
}


async def run(script: dict[str, Any], models: list[str] | None = None) -> tuple[Minutes, Scripted]:
    member = Scripted(script=SCRIPT | script)
    convener = Convener(Path.cwd(), flags={"models": models or ["scripted:"]}, members=[member])
    try:
        plan = await convener.plan(["Where to?"], protocol="solo")
        return await convener.run(plan, lambda entry: None), member
    finally:
        await convener.close()


def kinds(minutes: Minutes) -> list[str]:
    return [fact["kind"] for fact in build_report(minutes)["trust"]["facts"]]


@pytest.mark.behaviour("10-solo-phases")
async def test_five_calls_in_one_conversation() -> None:
    minutes, member = await run({})
    assert list(minutes.phases) == ["draft", "attack", "rewrite", "attack-again", "rewrite-again"]
    assert [len(call["messages"]) for call in member.calls] == [2, 4, 6, 8, 10]
    assert minutes.verdict["answer"] == "Go to the lake."
    assert minutes.plan["calls"] == {"min": 2, "max": 5}


@pytest.mark.behaviour("10-solo-trust")
async def test_trust_is_medium_at_most_and_says_why() -> None:
    minutes, _ = await run({})
    trust = build_report(minutes)["trust"]
    assert trust["level"] == "MEDIUM"
    assert trust["because"] == ["one member wrote it and attacked it; no other has read it"]


async def test_it_ends_when_an_attack_finds_nothing() -> None:
    minutes, member = await run({"attack-again/alpha": {"reply": {"errors": []}}})
    assert (len(member.calls), minutes.verdict["answer"]) == (4, "Go to the hills.")
    assert minutes.status == "complete"


async def test_errors_that_were_found_and_not_corrected_are_told() -> None:
    minutes, _ = await run({"rewrite-again/alpha": {"fail": "server"}})
    assert (minutes.status, minutes.verdict["answer"]) == ("complete", "Go to the hills.")
    assert "error_open" in kinds(minutes)


async def test_an_attack_in_prose_leaves_the_last_version_and_is_told() -> None:
    minutes, _ = await run({"attack/alpha": {"reply": "It is perfect as it is."}})
    assert minutes.verdict["answer"] == "Go to the sea."
    assert build_report(minutes)["trust"]["level"] == "LOW"


async def test_a_second_member_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="names 2 members, but this council has 1 seat"):
        await run({}, ["scripted:", "scripted:"])
