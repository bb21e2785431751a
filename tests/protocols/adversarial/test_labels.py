"""What the chair of the adversarial protocol sees: no names, an order of its own, and labels that are mapped back."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from council.engine.minutes import Minutes
from council.engine.reply import parse_reply
from council.protocols.adversarial.flow import find_attacks_by_author
from council.protocols.adversarial.labels import ChairLabels
from council.protocols.adversarial.replies import Attack, Ruling
from council.protocols.common.issues import Issue
from council.types import Outcome, Round, Seat, Statement, TrustFact
from tests.protocols.adversarial.test_flow import SCRIPT, Run, attack, issue, ruling

LABELS = ChairLabels({"A": "gamma", "B": "alpha"}, {"issue-1": "gamma-2", "issue-2": "alpha-1", "issue-3": "gamma-1"})
MANY = {
    "attack/alpha": attack(*(issue("MAJOR", f"alpha hit {n}") for n in range(1, 5)), case="ALPHA'S CASE")
    | {"concedes": ["ALPHA CONCEDES"]},
    "attack/gamma": attack(*(issue("MINOR", f"gamma hit {n}") for n in range(1, 5)), verdict="STAND"),
}


def labels_of(minutes: Minutes) -> dict[str, str]:
    return minutes.phases["verdict"].labels["chair"]


# What the chair sees


@pytest.mark.anyio
@pytest.mark.behaviour("10-chair-blind")
async def test_the_chair_sees_issues_cases_and_drafts_without_names() -> None:
    run = Run(SCRIPT | MANY | {"verdict/chair": ruling("SURVIVED")})
    minutes = await run.finish()
    words = run.words_for("verdict/chair")
    own = re.sub(r"(ALPHA|BETA|GAMMA)('S DRAFT|'S CASE| CONCEDES)|(alpha|gamma) hit", "", words)
    assert not re.search(r"\b(alpha|beta|gamma)\b", own, re.IGNORECASE)
    assert all(
        part in words for part in ("<<<Leading draft ", "Draft A:", "Draft B:", "ALPHA'S CASE", "ALPHA CONCEDES")
    )
    mine = next(label for label, seat in labels_of(minutes).items() if seat == "alpha")
    assert f"The author of draft {mine} concedes to the leading draft" in words


@pytest.mark.anyio
@pytest.mark.behaviour("10-chair-blind")
async def test_issues_are_shuffled_and_the_ledger_has_what_the_labels_stand_for() -> None:
    orders = set()
    for _ in range(4):
        run = Run(SCRIPT | MANY | {"verdict/chair": ruling("SURVIVED")})
        labels = labels_of(await run.finish())
        shown = [
            labels[found] for found in re.findall(r"^<<<(issue-\d+) ", run.words_for("verdict/chair"), re.MULTILINE)
        ]
        assert sorted(shown) == sorted(f"{seat}-{n}" for seat in ("alpha", "gamma") for n in range(1, 5))
        assert {labels["A"], labels["B"]} == {"alpha", "gamma"}
        orders.add(tuple(shown))
    assert len(orders) > 1  # one of 40,320 orders is drawn by the seed of the run


@pytest.mark.anyio
@pytest.mark.behaviour("10-chair-blind")
async def test_rulings_on_labels_are_reported_under_the_ids_of_the_attackers() -> None:
    run = Run(SCRIPT | {"verdict/chair": [ruling("MODIFIED", ("issue-1", True), ("Issue 2", False))]})
    minutes = await run.finish()
    labels = labels_of(minutes)
    rows = {row["id"]: row["landed"] for row in minutes.verdict["details"]["rulings"]}
    assert rows == {labels["issue-1"]: True, labels["issue-2"]: False}
    assert run.asked.count("verdict/chair") == 1


@pytest.mark.anyio
@pytest.mark.behaviour("10-chair-blind")
async def test_the_schema_offers_only_labels() -> None:
    run = Run(SCRIPT)
    await run.finish()
    (call,) = [call for call in run.member.calls if call["key"] == "verdict/chair"]
    fields = call["schema"]["properties"]
    assert fields["points"]["items"]["properties"]["issue"]["enum"] == ["issue-1", "issue-2"]
    assert fields["replaced_by"]["enum"] == ["none", "A", "B"]


# Labels back to names


@pytest.mark.behaviour("10-chair-blind")
@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("issue-1", "gamma-2"),
        ("Issue #2: the first claim", "alpha-1"),
        ("issue-1 and issue-3", "gamma-2, gamma-1"),
        ("alpha-1", "alpha-1"),  # a script, or an earlier version
        ("none", "none"),
        ("issue-9", "issue-9"),
    ],
)
def test_an_issue_is_named_by_its_id_again(given: str, found: str) -> None:
    reply = Ruling(**ruling("MODIFIED", (given, True)) | {"changes": [{"issue": given, "change": "It is right now."}]})
    restored = LABELS.restore_names(reply)
    assert (restored.points[0].issue, restored.changes[0].issue) == (found, found)


@pytest.mark.behaviour("10-chair-blind")
@pytest.mark.parametrize(
    ("outcome", "given", "seat"),
    [
        ("OVERTURNED", "A", "gamma"),
        ("OVERTURNED", "Draft B", "alpha"),
        ("OVERTURNED", "none", ""),
        ("OVERTURNED", "C", ""),
        ("OVERTURNED", None, ""),
        ("MODIFIED", "A", ""),
    ],
)
def test_an_overturned_draft_is_replaced_by_a_seats_draft(outcome: str, given: str | None, seat: str) -> None:
    assert LABELS.restore_names(Ruling(**ruling(outcome) | {"replaced_by": given})).replaced_by == seat


@pytest.mark.behaviour("10-chair-blind")
def test_reasons_name_issues_and_drafts_as_the_report_does() -> None:
    point = {"issue": "issue-1", "landed": True, "same_as": "issue-3", "why": "Draft A shows it; see issue 2."}
    reply = Ruling(**ruling("MODIFIED") | {"points": [point], "assessment": "Draft B differs. Draft a plan."})
    restored = LABELS.restore_names(reply)
    assert restored.points[0].why == "gamma's draft shows it; see alpha-1."
    assert restored.points[0].same_as == "gamma-1"
    assert restored.assessment == "alpha's draft differs. Draft a plan."
    assert restored.answer == reply.answer


# Attacks


@pytest.mark.behaviour("10-stance-from-issues")
@pytest.mark.parametrize(
    ("severities", "word", "stance"),
    [
        ([], "REJECTED", "STAND"),
        (["MINOR"], "MODIFIED", "STAND"),
        (["MINOR", "MAJOR"], "STAND", "MODIFIED"),
        (["MAJOR", "FATAL"], "STAND", "REJECTED"),
        (["MINOR"] * 7 + ["FATAL"], "STAND", "REJECTED"),
    ],
)
def test_the_stance_of_an_attacker_follows_from_its_issues(severities: list[Any], word: str, stance: str) -> None:
    said = Attack(issues=[Issue(severity=one, flaw="x") for one in severities], verdict=word)
    assert said.stance == stance
    assert f"Verdict: {stance}" in said.prose()
    assert (f"(the attacker wrote {word})" in said.prose()) is (word != stance)


@pytest.mark.anyio
@pytest.mark.behaviour("10-stance-from-issues")
async def test_the_chair_gets_the_stances_that_follow_from_the_issues() -> None:
    run = Run(SCRIPT | {"attack/alpha": attack(issue("FATAL"), verdict="STAND")})
    await run.finish()
    assert "The attackers judge the leading draft as a whole: REJECTED, STAND." in run.words_for("verdict/chair")


@pytest.mark.behaviour("10-attack-concedes")
@pytest.mark.parametrize(("given", "points"), [(None, []), ("the price", ["the price"]), (["a", "b"], ["a", "b"])])
def test_an_attacker_may_concede_points(given: Any, points: list[str]) -> None:
    said = parse_reply(Attack, json.dumps({"issues": [], "verdict": "STAND", "concedes": given}), {})
    assert said.concedes == points
    assert all(f"Concedes: {point}" in said.prose() for point in points)


# Fallbacks


@pytest.mark.behaviour("10-author-attacks")
@pytest.mark.parametrize(
    ("leader", "attacker", "author"),
    [
        (("m1", "m1"), ("m2", "m2"), ""),
        (("m1", "m1"), ("m2", "m1"), "m1"),  # the attacker fell back
        (("m1", "m2"), ("m2", "m2"), "m2"),  # the author did
        (("m1", "m1"), ("m1", "m1"), ""),  # planned so: no fallback
    ],
)
def test_an_attack_by_the_author_because_of_a_fallback_is_a_fact(
    leader: tuple[str, str], attacker: tuple[str, str], author: str
) -> None:
    draft: Statement[None] = Statement(
        Seat("alpha", member=leader[0]), "draft/alpha", "", None, Outcome("ok", served_by=leader[1])
    )
    said = Attack(**attack(issue()))
    seat = Seat("beta", member=attacker[0])
    attacks = Round([Statement(seat, "attack/beta", "", said, Outcome("ok", served_by=attacker[1]))])
    found = find_attacks_by_author(draft, attacks)
    assert found == ([TrustFact("own_attack", author, ("beta",), 1)] if author else [])
