"""Adversarial protocol: triage, attack, verdict and computed confidence."""

from __future__ import annotations

import json
import re
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from council.engine.degraded import format_degraded_lines
from council.engine.minutes import Minutes
from council.events import Entry
from council.members.base import OnDelta
from council.members.scripted import Scripted
from council.protocols.adversarial.flow import verdict_words
from council.protocols.adversarial.replies import Attack, Ruling, Triage
from council.protocols.adversarial.verdict import build_verdict, number_issues
from council.protocols.common.issues import Issue, Point
from council.render.markdown import render_answer
from council.render.report import build_report
from council.runs.service import Convener
from council.types import Answer, Outcome, Round, Seat, Statement

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


def ruling(outcome: str | None = "SURVIVED", *points: tuple[str, bool | None]) -> dict[str, Any]:
    listed = [{"issue": name, "landed": landed, "why": "because"} for name, landed in points]
    return {"points": listed, "outcome": outcome, "answer": "Use gRPC.", "assessment": "Somewhat contested."}


def round_of(**attacks: dict[str, Any]) -> Round[Attack]:
    return Round(
        [Statement(Seat(name), f"attack/{name}", "", Attack(**value), Outcome("ok")) for name, value in attacks.items()]
    )


TRIAGE = Triage(**triage("delta"))
DRAFTS: Round[None] = Round(
    [Statement(Seat(name), f"draft/{name}", "", None, Outcome("ok")) for name in ("alpha", "delta", "gamma")]
)


class InTurn(Scripted):
    """Scripted member whose line may be a list of answers, given in turn; the last one is repeated."""

    async def send(self, body: bytes, on_delta: OnDelta) -> Answer:
        key = json.loads(body)["key"]
        if isinstance(lines := self.script.get(key), list):
            line = lines.pop(0) if len(lines) > 1 else lines[0]
            text = line if isinstance(line, str) else json.dumps(line)
            self._record_call(json.loads(body))
            return Answer(text)
        return await super().send(body, on_delta)


class Run:
    """One adversarial run with a scripted member."""

    def __init__(self, script: dict[str, Any]) -> None:
        lines = {
            key: {"reply": value} if isinstance(value, dict) and set(value) & {"leader", "issues", "points"} else value
            for key, value in script.items()
        }
        self.member = InTurn(script=lines)
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


@pytest.mark.behaviour("10-contested-is-attacked")
@pytest.mark.parametrize(
    ("contested", "consensus"),
    [([], True), (["None."], True), (["n/a", ""], True), (["Alpha: go online now; Gamma: keep paper"], False)],
)
def test_consensus_needs_an_empty_list_of_contested_points(contested: list[str], consensus: bool) -> None:
    assert Triage(**triage(agree=True, contested=contested)).consensus is consensus


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
@pytest.mark.behaviour("000-consensus-skips-attack")
async def test_a_draft_with_a_critical_flag_is_attacked_even_if_the_chair_overlooks_the_flag() -> None:
    flagged = "Use gRPC.\n\n## Validation Notes\n\n- CRITICAL: the payload limit is a guess."
    run = Run(SCRIPT | {"draft/gamma": {"text": flagged}, "triage/chair": triage("beta", agree=True)})
    minutes = await run.finish()
    assert list(minutes.phases) == ["draft", "triage", "attack", "verdict"]
    assert ("no consensus", "the chair found no CRITICAL flag, but the draft of gamma has one") in [
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
        for part in (QUESTION, "ALPHA'S DRAFT", "BETA'S DRAFT", "GAMMA'S DRAFT", "It is wrong.", "issue-1", "issue-2")
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
        ("SURVIVED", {"gamma-1": None}, "MEDIUM"),  # open
        ("SURVIVED", {"alpha-1": None}, "CONTESTED"),  # open and FATAL
        ("MODIFIED", {"gamma-1": True}, "MEDIUM"),
        ("OVERTURNED", {"alpha-1": True}, "CONTESTED"),
    ],
)
def test_confidence_is_computed_from_landed_issues_and_shown_under_its_heading(
    outcome: str, landed: dict[str, bool | None], level: str
) -> None:
    rulings = {"alpha-1": False, "gamma-1": False} | landed
    attacks = round_of(alpha=attack(issue("FATAL"), verdict="REJECTED"), gamma=attack(issue("MINOR"), verdict="STAND"))
    verdict = build_verdict(Ruling(**ruling(outcome, *rulings.items())), attacks, TRIAGE, DRAFTS)
    assert (verdict.outcome, verdict.confidence) == (outcome, level)
    assert (verdict.answer, verdict.assessment) == ("Use gRPC.", "Somewhat contested.")


@pytest.mark.behaviour("10-rulings-by-id")
def test_a_ruling_on_an_issue_that_was_not_raised_is_not_counted_and_stated() -> None:
    attacks = round_of(alpha=attack(issue("MINOR"), verdict="STAND"))
    points = [Point(issue="alpha-1", landed=False, why="x"), Point(issue="delta-1", landed=True, why="x")]
    verdict = build_verdict(
        Ruling(points=points, outcome="SURVIVED", answer="a", assessment="b"), attacks, TRIAGE, DRAFTS
    )
    assert verdict.confidence == "MEDIUM"
    assert verdict.caveats == ("The chair ruled on an attack that no attacker made; that ruling does not count.",)


@pytest.mark.anyio
@pytest.mark.behaviour("10-rulings-repaired")
@pytest.mark.parametrize(
    ("first", "problem"),
    [
        (ruling("SURVIVED"), "there is no ruling on alpha-1, gamma-1"),
        (ruling("SURVIVED", ("alpha-1", True), ("gamma-1", False)), "SURVIVED although alpha-1 is FATAL and landed"),
        (ruling("MODIFIED", ("alpha-1", True), ("gamma-1", False)), "MODIFIED although alpha-1 is FATAL and landed"),
        (ruling("OVERTURNED", ("alpha-1", False), ("gamma-1", True)), "OVERTURNED although no FATAL or MAJOR issue landed"),
        (ruling("OVERTURNED", ("alpha-1", True), ("alpha-1", False), ("gamma-1", True)), "alpha-1 is ruled both ways"),
        (ruling("OVERTURNED", ("delta-1", True)), "delta-1 is not a listed issue; listed are alpha-1, gamma-1"),
        (ruling(None, ("alpha-1", True), ("gamma-1", True)), "the outcome is missing"),
    ],
)  # fmt: skip
async def test_a_contradictory_ruling_gets_one_repair_turn(first: dict[str, Any], problem: str) -> None:
    mended = ruling("OVERTURNED", ("alpha-1", True), ("gamma-1", False))
    run = Run(SCRIPT | {"attack/alpha": attack(issue("FATAL"), verdict="REJECTED"), "verdict/chair": [first, mended]})
    minutes = await run.finish()
    repair = [call for call in run.member.calls if call["key"] == "verdict/chair"][1]["messages"][-1]["content"]
    labels = {name: label for label, name in minutes.phases["verdict"].labels["chair"].items()}
    assert re.sub(r"\w+-1", lambda found: labels.get(found[0], found[0]), problem) in repair
    assert run.asked.count("verdict/chair") == 2
    assert (minutes.status, minutes.verdict["outcome"], minutes.verdict["confidence"]) == (
        "complete",
        "OVERTURNED",
        "CONTESTED",
    )
    assert not minutes.verdict["caveats"]


@pytest.mark.anyio
@pytest.mark.behaviour("10-rulings-repaired", "10-open-issues-limit-confidence", "10-overturned-needs-a-landed-issue")
@pytest.mark.parametrize(
    ("reply", "level", "told"),
    [
        (ruling("SURVIVED"), "CONTESTED", "The chair did not rule on 2 attacks (the worst is fatal), so it counts as open."),
        (ruling("SURVIVED", ("alpha-1", False)), "MEDIUM", "The chair did not rule on one attack (minor), so it counts as open."),
        (ruling("SURVIVED", ("alpha-1", True), ("gamma-1", False)), "CONTESTED", "The chair's ruling contradicts itself: it keeps the leading draft although a fatal attack landed."),
        (ruling("OVERTURNED", ("alpha-1", False), ("gamma-1", True)), "CONTESTED", "The chair's ruling contradicts itself: it overturns the leading draft although no severe attack landed."),
        (ruling("SURVIVED", ("alpha-1", False), ("gamma-1", False), ("delta-1", True)), "MEDIUM", "The chair ruled on an attack that no attacker made; that ruling does not count."),
        (ruling(None, ("alpha-1", False), ("gamma-1", False)), "MEDIUM", "The chair named no outcome."),
    ],
)  # fmt: skip
async def test_a_ruling_that_stays_wrong_is_used_and_stated_above_the_answer(
    reply: dict[str, Any], level: str, told: str
) -> None:
    run = Run(SCRIPT | {"attack/alpha": attack(issue("FATAL"), verdict="REJECTED"), "verdict/chair": reply})
    minutes = await run.finish()
    assert run.asked.count("verdict/chair") == 2  # one repair turn
    assert (minutes.status, minutes.verdict["outcome"], minutes.verdict["confidence"]) == (
        "complete",
        reply["outcome"],
        level,
    )
    shown = render_answer(minutes)
    assert told in format_degraded_lines(minutes)
    assert shown.index(told) < shown.index("Use gRPC.")


@pytest.mark.anyio
@pytest.mark.behaviour("10-overturned-needs-a-landed-issue")
async def test_an_attack_without_issues_cannot_overturn_with_confidence() -> None:
    nothing = {"attack/alpha": attack(verdict="STAND"), "attack/gamma": attack(verdict="STAND")}
    run = Run(SCRIPT | nothing | {"verdict/chair": ruling("OVERTURNED", ("alpha-1", True))})
    minutes = await run.finish()
    assert (minutes.verdict["confidence"], run.asked.count("verdict/chair")) == ("CONTESTED", 2)


REAL_RULINGS: dict[str, tuple[Any, str, str, dict[str, bool | None]]] = {
    "ids in capitals": (ruling("MODIFIED", ("Alpha-1", True), ("GAMMA-1", False)), "MODIFIED", "MEDIUM", {"alpha-1": True, "gamma-1": False}),
    "ids with text": (ruling("MODIFIED", ("alpha-1: the first claim", True), ("[gamma-1]", False)), "MODIFIED", "MEDIUM", {"alpha-1": True, "gamma-1": False}),
    "one ruling on two issues": (ruling("SURVIVED", ("alpha-1 and gamma-1", False)), "SURVIVED", "HIGH", {"alpha-1": False, "gamma-1": False}),
    "an object by id": (
        ruling("survived") | {"points": {"alpha-1": {"landed": "no", "why": "it is not so"}, "gamma-1": False}},
        "SURVIVED", "HIGH", {"alpha-1": False, "gamma-1": False},
    ),
    "words for landed": (
        ruling("MODIFIED") | {"points": [{"issue": "alpha-1", "landed": "partially", "why": ""}, {"issue": "gamma-1", "landed": "Dismissed"}]},
        "MODIFIED", "MEDIUM", {"alpha-1": True, "gamma-1": False},
    ),
    "another word for the outcome": (ruling("Upheld", ("alpha-1", False), ("gamma-1", False)), "SURVIVED", "HIGH", {"alpha-1": False, "gamma-1": False}),
    "no assessment": ({k: v for k, v in ruling("SURVIVED", ("alpha-1", False), ("gamma-1", False)).items() if k != "assessment"}, "SURVIVED", "HIGH", {"alpha-1": False, "gamma-1": False}),
    "same issue without its own ruling": (
        ruling("MODIFIED") | {"points": [{"issue": "alpha-1", "landed": True, "why": "so", "same_as": None}, {"issue": "gamma-1", "landed": None, "why": "same", "same_as": "alpha-1"}]},
        "MODIFIED", "MEDIUM", {"alpha-1": True, "gamma-1": True},
    ),
}  # fmt: skip


@pytest.mark.anyio
@pytest.mark.parametrize("name", REAL_RULINGS)
async def test_a_ruling_as_models_write_it_needs_no_repair(name: str) -> None:
    reply, outcome, level, landed = REAL_RULINGS[name]
    run = Run(SCRIPT | {"verdict/chair": [reply]})
    minutes = await run.finish()
    assert run.asked.count("verdict/chair") == 1
    assert (minutes.verdict["outcome"], minutes.verdict["confidence"]) == (outcome, level)
    assert {row["id"]: row["landed"] for row in minutes.verdict["details"]["rulings"]} == landed


PROSE = "Use gRPC inside the cluster and REST at the edge. Measure the payload first, and keep the old endpoint for a month."


@pytest.mark.anyio
@pytest.mark.behaviour("10-prose-of-the-chair", "10-open-issues-limit-confidence")
@pytest.mark.parametrize(("severity", "level"), [("FATAL", "CONTESTED"), ("MINOR", "MEDIUM")])
async def test_a_ruling_in_prose_is_used_and_leaves_every_issue_open(severity: str, level: str) -> None:
    run = Run(SCRIPT | {"attack/alpha": attack(issue(severity)), "verdict/chair": [PROSE]})
    minutes = await run.finish()
    assert minutes.verdict["answer"].startswith(PROSE)
    assert (minutes.status, minutes.verdict["outcome"], minutes.verdict["confidence"]) == ("complete", None, level)
    assert [row["landed"] for row in minutes.verdict["details"]["rulings"]] == [None, None]
    assert "The chair named no outcome." in format_degraded_lines(minutes)


@pytest.mark.anyio
async def test_a_ruling_inside_prose_with_titles_for_names_needs_no_repair() -> None:
    leader = triage("Beta (Fact-Checker & Validator)")
    said = ruling("MODIFIED", ("alpha-1", True), ("gamma-1", False))
    wrapped = [f"Here is my ruling:\n\n```json\n{json.dumps({'ruling': said}, indent=2)}\n```\nI hope this helps."]
    run = Run(SCRIPT | {"triage/chair": [leader], "verdict/chair": wrapped})
    minutes = await run.finish()
    assert [run.asked.count(key) for key in ("triage/chair", "verdict/chair")] == [1, 1]
    assert (minutes.verdict["details"]["leader"], minutes.verdict["confidence"]) == ("beta", "MEDIUM")


@pytest.mark.anyio
@pytest.mark.behaviour("10-contested-is-attacked")
async def test_drafts_with_a_contested_point_are_attacked_although_all_criteria_hold() -> None:
    agreed = triage("beta", agree=True, contested=["the payload size"])
    minutes = await Run(SCRIPT | {"triage/chair": agreed}).finish()
    assert list(minutes.phases) == ["draft", "triage", "attack", "verdict"]
    assert build_report(minutes)["trust"]["level"] != "HIGH"


@pytest.mark.anyio
@pytest.mark.parametrize("words", ["unclear", "maybe", None, 3])
async def test_an_unclear_ruling_is_open_and_never_a_yes_or_no(words: Any) -> None:
    points = [{"issue": "alpha-1", "landed": words, "why": "?"}, {"issue": "gamma-1", "landed": False, "why": "no"}]
    run = Run(SCRIPT | {"verdict/chair": ruling("SURVIVED") | {"points": points}})
    minutes = await run.finish()
    assert [row["landed"] for row in minutes.verdict["details"]["rulings"]] == [None, False]
    assert minutes.verdict["confidence"] == "MEDIUM"


@pytest.mark.anyio
async def test_an_attack_as_models_write_it_needs_no_repair() -> None:
    reply = {"issues": [{"severity": "Critical", "hits": None, "flaw": "It loses data."}, {"severity": "low", "hits": "a", "flaw": "b", "correction": "c"}], "case": None, "verdict": "Reject"}  # fmt: skip
    run = Run(SCRIPT | {"attack/alpha": [reply]})
    run.member.script["verdict/chair"] = {"reply": ruling("OVERTURNED", ("alpha-1", True), ("alpha-2", False), ("gamma-1", False))}  # fmt: skip
    minutes = await run.finish()
    assert run.asked.count("attack/alpha") == run.asked.count("verdict/chair") == 1
    assert [row["severity"] for row in minutes.verdict["details"]["rulings"]] == ["FATAL", "MINOR", "MINOR"]
    assert minutes.verdict["confidence"] == "CONTESTED"


@pytest.mark.behaviour("10-dissent-kept")
@pytest.mark.parametrize(("outcome", "kept"), [("SURVIVED", ["alpha"]), ("MODIFIED", ["alpha"]), ("OVERTURNED", [])])
def test_an_attacker_that_was_overruled_is_listed_as_dissent(outcome: str, kept: list[str]) -> None:
    attacks = round_of(alpha=attack(issue("FATAL"), verdict="REJECTED"), gamma=attack(verdict="STAND"))
    verdict = build_verdict(Ruling(**ruling(outcome, ("alpha-1", True))), attacks, TRIAGE, DRAFTS)
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


# Failures


@pytest.mark.anyio
@pytest.mark.behaviour("10-triage-fails")
async def test_if_no_chair_triages_the_draft_with_the_fewest_critical_flags_leads() -> None:
    drafts = {"draft/alpha": {"text": "CRITICAL: it may lose data."}, "draft/beta": {"text": "No CRITICAL problem."}}
    run = Run(SCRIPT | drafts | {"triage/chair": {"fail": "server"}})
    minutes = await run.finish()
    assert [note.what for note in minutes.notes] == ["leading position: beta"]
    assert sorted(key for key in run.asked if key.startswith("attack")) == ["attack/alpha", "attack/gamma"]
    assert (minutes.status, minutes.verdict["outcome"]) == ("complete", "MODIFIED")
    assert any(line.startswith("Beta leads by rule") for line in format_degraded_lines(minutes))


@pytest.mark.anyio
@pytest.mark.behaviour("10-triage-fails")
async def test_a_chair_that_is_out_for_the_run_is_not_waited_for() -> None:
    run = Run(SCRIPT | {"triage/chair": {"fail": "auth"}})
    minutes = await run.finish()
    assert not [key for key in run.asked if key.startswith(("attack", "verdict"))]
    assert (minutes.status, minutes.stopped) == ("incomplete", "chair")


@pytest.mark.anyio
@pytest.mark.behaviour("10-no-attacker")
async def test_without_an_attacker_the_answer_is_given_untested() -> None:
    failing = {f"attack/{seat}": {"fail": "server"} for seat in ("alpha", "gamma")}
    run = Run(SCRIPT | failing | {"verdict/chair": ruling("SURVIVED")})
    minutes = await run.finish()
    assert (minutes.status, minutes.verdict["outcome"], minutes.verdict["confidence"]) == ("incomplete", None, None)
    assert minutes.reason == "no attacker answered, so the answer below was not tested"
    assert minutes.verdict["answer"] == "Use gRPC."
    assert "No seat could test the leading draft." in run.words_for("verdict/chair")


@pytest.mark.anyio
@pytest.mark.behaviour("10-no-attacker")
async def test_one_attacker_of_two_counts_and_the_absence_is_stated() -> None:
    run = Run(SCRIPT | {"attack/gamma": {"fail": "server"}, "verdict/chair": ruling("MODIFIED", ("alpha-1", True))})
    minutes = await run.finish()
    assert (minutes.status, minutes.verdict["outcome"]) == ("complete", "MODIFIED")
    assert any("gamma did not answer in attack" in line for line in format_degraded_lines(minutes))
    assert build_report(minutes)["trust"]["level"] == "MEDIUM"


@pytest.mark.behaviour("13-other-sizes")
def test_a_verdict_on_more_issues_may_be_longer() -> None:
    assert [verdict_words(issues) for issues in (0, 12, 13, 42)] == [1500, 1500, 1530, 2400]
