"""Adversarial protocol: triage, attack, verdict and computed confidence."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import pytest

from council.engine.minutes import Minutes
from council.events import Entry
from council.members.scripted import Scripted
from council.protocols.adversarial.flow import build_verdict, number_issues
from council.protocols.adversarial.replies import Attack, Issue, Point, Ruling, Triage
from council.runs.service import Convener
from council.types import Outcome, Round, Seat, Statement

CRITERIA = ("same_conclusion", "no_critical_flag", "no_contradiction", "mostly_high")
SEATS = {"alpha": "scripted:", "beta": "scripted:", "gamma": "scripted:", "chair": "scripted:"}
QUESTION = "Which is better, REST or gRPC?"


def triage(leader: str = "beta", agree: bool | tuple[bool, ...] = False, **more: Any) -> dict[str, Any]:
    answers = agree if isinstance(agree, tuple) else (agree,) * 4
    return {
        "leader": leader,
        "reason": "It is tested.",
        "agreed": [],
        "contested": [],
        **dict(zip(CRITERIA, answers, strict=True)),
    } | more


def issue(severity: str = "MAJOR", hits: str = "the first claim") -> dict[str, str]:
    return {"severity": severity, "hits": hits, "flaw": "It is wrong.", "correction": "Say it right."}


def attack(*issues: dict[str, str], verdict: str = "MODIFIED", case: str = "") -> dict[str, Any]:
    return {"issues": list(issues), "case": case, "verdict": verdict}


def ruling(outcome: str = "SURVIVED", *points: tuple[str, bool]) -> dict[str, Any]:
    listed = [{"issue": name, "landed": landed, "why": "because"} for name, landed in points]
    return {"points": listed, "outcome": outcome, "answer": "Use gRPC.", "assessment": "Somewhat contested."}


def round_of(**attacks: dict[str, Any]) -> Round[Attack]:
    return Round(
        [Statement(Seat(name), f"attack/{name}", "", Attack(**value), Outcome("ok")) for name, value in attacks.items()]
    )


class Run:
    """One adversarial run with a scripted member."""

    def __init__(self, script: dict[str, Any]) -> None:
        lines = {
            key: {"reply": value} if set(value) & {"leader", "issues", "points"} else value
            for key, value in script.items()
        }
        self.member = Scripted(script=lines)
        self.entries: list[Entry] = []

    async def finish(self) -> Minutes:
        convener = Convener(Path.cwd(), flags={"seats": SEATS}, members=[self.member])
        plan = await convener.plan([QUESTION], protocol="adversarial")
        try:
            return await convener.run(plan, self.entries.append)
        finally:
            await convener.close()

    @property
    def asked(self) -> list[str]:
        return [call["key"] for call in self.member.calls]

    def words_for(self, key: str) -> str:
        return next(call["messages"][-1]["content"] for call in self.member.calls if call["key"] == key)


SCRIPT = {
    "draft/alpha": {"text": "ALPHA'S DRAFT"}, "draft/beta": {"text": "BETA'S DRAFT"}, "draft/gamma": {"text": "GAMMA'S DRAFT"},
    "triage/chair": triage("beta", contested=["the payload size"], agreed=["both are typed"]),
    "attack/alpha": attack(issue("MAJOR")), "attack/gamma": attack(issue("MINOR"), verdict="STAND"),
    "verdict/chair": ruling("MODIFIED", ("alpha-1", True), ("gamma-1", False)),
}  # fmt: skip


# Triage


@pytest.mark.behaviour("10-triage-four-criteria")
@pytest.mark.parametrize("answers", list(product([True, False], repeat=4)), ids=str)
def test_consensus_needs_all_four_criteria(answers: tuple[bool, ...]) -> None:
    assert Triage(**triage(agree=answers)).consensus is all(answers)


@pytest.mark.anyio
@pytest.mark.behaviour("000-phases-adversarial", "000-triage-leader", "000-leader-sits-out", "000-attack-parallel")
async def test_draft_triage_attack_verdict_and_the_leader_sits_out() -> None:
    run = Run(SCRIPT)
    minutes = await run.finish()
    assert list(minutes.phases) == ["draft", "triage", "attack", "verdict"]
    assert sorted(run.asked[:3]) == ["draft/alpha", "draft/beta", "draft/gamma"]
    assert run.asked[3] == "triage/chair"
    assert sorted(run.asked[4:6]) == ["attack/alpha", "attack/gamma"]
    assert run.asked[6:] == ["verdict/chair"]
    assert (minutes.notes[0].what, minutes.notes[0].why) == ("leading position: beta", "It is tested.")


@pytest.mark.anyio
@pytest.mark.behaviour("000-consensus-skips-attack", "10-consensus-skip-survived-high")
async def test_consensus_goes_straight_to_the_verdict_survived_and_high() -> None:
    run = Run(SCRIPT | {"triage/chair": triage("alpha", agree=True), "verdict/chair": ruling("MODIFIED")})
    minutes = await run.finish()
    assert list(minutes.phases) == ["draft", "triage", "verdict"]
    assert len(run.asked) == 5
    assert (minutes.verdict["outcome"], minutes.verdict["confidence"]) == ("SURVIVED", "HIGH")
    assert ("attack skipped", "Consensus detected — no adversarial round needed") in [
        (n.what, n.why) for n in minutes.notes
    ]


@pytest.mark.anyio
@pytest.mark.behaviour("10-chair-names-absent-seat")
async def test_triage_can_only_choose_a_seat_with_a_draft() -> None:
    script = SCRIPT | {"draft/beta": {"fail": "server"}, "triage/chair": triage("alpha"), "attack/gamma": attack()}
    script |= {"verdict/chair": ruling("SURVIVED")}
    run = Run(script)
    minutes = await run.finish()
    (call,) = [call for call in run.member.calls if call["key"] == "triage/chair"]
    assert call["schema"]["properties"]["leader"]["enum"] == ["alpha", "gamma"]
    assert "attack/beta" not in run.asked
    assert minutes.status == "complete"


# Prompts


@pytest.mark.anyio
@pytest.mark.behaviour("10-independent-first-statements")
async def test_drafts_do_not_see_each_other() -> None:
    run = Run(SCRIPT)
    await run.finish()
    for seat in ("alpha", "beta", "gamma"):
        assert "DRAFT" not in run.words_for(f"draft/{seat}").replace("DRAFTS", "")
        assert QUESTION in run.words_for(f"draft/{seat}")


@pytest.mark.anyio
@pytest.mark.behaviour("000-attacker-sees-own-and-leader")
async def test_an_attacker_gets_the_question_its_own_draft_and_the_leaders() -> None:
    run = Run(SCRIPT)
    await run.finish()
    words = run.words_for("attack/alpha")
    assert [part in words for part in (QUESTION, "ALPHA'S DRAFT", "BETA'S DRAFT", "GAMMA'S DRAFT")] == [
        True,
        True,
        True,
        False,
    ]


@pytest.mark.anyio
@pytest.mark.behaviour("10-partial-consensus")
async def test_contested_points_are_attacked_first_and_agreed_ones_still_tested() -> None:
    run = Run(SCRIPT)
    await run.finish()
    words = run.words_for("attack/gamma")
    assert words.index("the payload size") < words.index("both are typed")


@pytest.mark.anyio
@pytest.mark.behaviour("000-verdict-sees-everything")
async def test_the_verdict_gets_the_leader_the_attacks_and_all_originals() -> None:
    run = Run(SCRIPT)
    await run.finish()
    words = run.words_for("verdict/chair")
    assert all(
        part in words
        for part in (QUESTION, "ALPHA'S DRAFT", "BETA'S DRAFT", "GAMMA'S DRAFT", "It is wrong.", "alpha-1", "gamma-1")
    )


# The ruling


@pytest.mark.behaviour("000-verdict-points")
def test_every_issue_has_a_name_the_chair_can_cite() -> None:
    issues = number_issues(round_of(alpha=attack(issue("FATAL"), issue("MINOR")), gamma=attack(issue())))
    assert {name: found.severity for name, found in issues.items()} == {
        "alpha-1": "FATAL",
        "alpha-2": "MINOR",
        "gamma-1": "MAJOR",
    }
    assert all(isinstance(found, Issue) for found in issues.values())


@pytest.mark.behaviour("000-computed-confidence", "000-confidence-assessment")
@pytest.mark.parametrize(
    ("outcome", "landed", "level"),
    [
        ("SURVIVED", {}, "HIGH"),
        ("SURVIVED", {"gamma-1": True}, "HIGH"),  # a MINOR one
        ("SURVIVED", {"alpha-1": True}, "CONTESTED"),  # FATAL, and alpha rejects the whole
        ("MODIFIED", {"gamma-1": True}, "MEDIUM"),
        ("OVERTURNED", {"alpha-1": True}, "CONTESTED"),
    ],
)
def test_confidence_is_computed_from_landed_issues_and_shown_under_its_heading(
    outcome: str, landed: dict[str, bool], level: str
) -> None:
    attacks = round_of(alpha=attack(issue("FATAL"), verdict="REJECTED"), gamma=attack(issue("MINOR"), verdict="STAND"))
    verdict = build_verdict(Ruling(**ruling(outcome, *landed.items())), attacks)
    assert (verdict.outcome, verdict.confidence) == (outcome, level)
    assert verdict.answer == f"Use gRPC.\n\n## Confidence Assessment\n\n**{level}.** Somewhat contested."


def test_an_issue_that_was_not_raised_has_no_effect() -> None:
    attacks = round_of(alpha=attack(issue("FATAL"), verdict="REJECTED"))
    invented = Ruling(
        points=[Point(issue="delta-1", landed=True, why="x")], outcome="SURVIVED", answer="a", assessment="b"
    )
    assert build_verdict(invented, attacks).confidence == "HIGH"


@pytest.mark.anyio
@pytest.mark.behaviour("10-overturned-needs-a-landed-issue")
async def test_overturned_must_cite_an_issue_that_was_raised() -> None:
    run = Run(SCRIPT | {"verdict/chair": ruling("OVERTURNED", ("delta-1", True))})
    minutes = await run.finish()
    assert (minutes.status, minutes.stopped) == ("incomplete", "chair")
    assert run.asked.count("verdict/chair") == 3  # two repair turns: the chair has no fallback
    assert minutes.absences[0].state == "failed(schema)"


@pytest.mark.anyio
@pytest.mark.behaviour("10-overturned-needs-a-landed-issue")
async def test_an_attack_without_issues_cannot_overturn() -> None:
    nothing = {"attack/alpha": attack(verdict="STAND"), "attack/gamma": attack(verdict="STAND")}
    run = Run(SCRIPT | nothing | {"verdict/chair": ruling("OVERTURNED", ("alpha-1", True))})
    minutes = await run.finish()
    assert minutes.verdict["outcome"] != "OVERTURNED"
    assert run.asked.count("verdict/chair") == 3


@pytest.mark.behaviour("10-dissent-kept")
@pytest.mark.parametrize(("outcome", "kept"), [("SURVIVED", ["alpha"]), ("MODIFIED", ["alpha"]), ("OVERTURNED", [])])
def test_an_attacker_that_was_overruled_is_listed_as_dissent(outcome: str, kept: list[str]) -> None:
    attacks = round_of(alpha=attack(issue("FATAL"), verdict="REJECTED"), gamma=attack(verdict="STAND"))
    verdict = build_verdict(Ruling(**ruling(outcome, ("alpha-1", True))), attacks)
    assert [row["seat"] for row in verdict.dissent] == kept
    assert all(row["position"] == "REJECTED" and "It is wrong." in row["text"] for row in verdict.dissent)


# Too few drafts


@pytest.mark.anyio
@pytest.mark.behaviour("10-two-drafts")
async def test_two_drafts_have_one_attacker() -> None:
    run = Run(SCRIPT | {"draft/gamma": {"fail": "server"}, "verdict/chair": ruling("MODIFIED", ("alpha-1", True))})
    minutes = await run.finish()
    assert [key for key in run.asked if key.startswith("attack")] == ["attack/alpha"]
    assert (minutes.status, minutes.verdict["outcome"]) == ("complete", "MODIFIED")


@pytest.mark.anyio
@pytest.mark.behaviour("10-one-draft-adversarial")
async def test_one_draft_has_no_outcome_and_the_report_says_it_was_not_tested() -> None:
    failing = {f"draft/{seat}": {"fail": "server"} for seat in ("alpha", "gamma")}
    run = Run(SCRIPT | failing | {"verdict/chair": ruling("SURVIVED")})
    minutes = await run.finish()
    assert [key for key in run.asked if "chair" in key] == ["verdict/chair"]
    assert (minutes.status, minutes.verdict["outcome"], minutes.verdict["confidence"]) == ("incomplete", None, None)
    assert "was not tested" in minutes.reason
