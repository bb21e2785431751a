"""Rulings on issues and computed confidence: all combinations, by enumeration, and cases as models write them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import chain, combinations, combinations_with_replacement, product
from typing import Any

import pytest

from council.engine.trust import LEVELS
from council.protocols.adversarial.replies import Attack, Ruling, Triage
from council.protocols.adversarial.report import format_counts
from council.protocols.adversarial.rules import (
    compute_confidence,
    find_first_holders,
    list_contradictions,
    list_defects,
)
from council.protocols.adversarial.verdict import build_verdict, describe_rulings, number_issues
from council.protocols.common.issues import Issue, Point, apply_rulings, match_ids
from council.types import Outcome, Round, Seat, Statement, Verdict

OUTCOMES = ("SURVIVED", "MODIFIED", "OVERTURNED")
SEVERITIES = ("FATAL", "MAJOR", "MINOR")
STANCES = ("STAND", "MODIFIED", "REJECTED")
TRIAGE = Triage(
    agreed=[], contested=["the cost"], same_conclusion=False, no_critical_flag=False, no_contradiction=False, mostly_high=False,
    reason="It is tested.", leader="alpha",
)  # fmt: skip


DRAFTS: Round[None] = Round(
    [Statement(Seat(name), f"draft/{name}", "", None, Outcome("ok")) for name in ("alpha", "beta", "gamma")]
)


def subsets(items: tuple[str, ...]) -> list[tuple[str, ...]]:
    return list(chain.from_iterable(combinations(items, n) for n in range(len(items) + 1)))


def expected(outcome: str, landed: tuple[str, ...], stances: tuple[str, ...]) -> str:
    """The rule as specified."""
    rows = (
        (outcome == "OVERTURNED", "CONTESTED"),
        ("FATAL" in landed and "REJECTED" in stances, "CONTESTED"),
        (outcome == "MODIFIED", "MEDIUM"),
        (bool({"FATAL", "MAJOR"} & set(landed)), "MEDIUM"),
        (True, "HIGH"),
    )
    return next(level for holds, level in rows if holds)


@pytest.mark.behaviour("000-computed-confidence")
@pytest.mark.parametrize("outcome", OUTCOMES)
@pytest.mark.parametrize("landed", subsets(SEVERITIES), ids="+".join)
@pytest.mark.parametrize("stances", subsets(STANCES), ids="+".join)
def test_the_first_matching_rule_decides(outcome: str, landed: tuple[str, ...], stances: tuple[str, ...]) -> None:
    assert compute_confidence(outcome, landed, stances) == expected(outcome, landed, stances)


@pytest.mark.behaviour("000-computed-confidence")
@pytest.mark.parametrize(
    ("outcome", "landed", "stances", "level"),
    [
        ("SURVIVED", [], [], "HIGH"),  # attack skipped by consensus
        ("SURVIVED", ["MINOR"], ["STAND", "REJECTED"], "HIGH"),
        ("SURVIVED", ["MAJOR"], ["STAND"], "MEDIUM"),
        ("SURVIVED", ["FATAL"], ["STAND", "MODIFIED"], "MEDIUM"),
        ("SURVIVED", ["FATAL"], ["STAND", "REJECTED"], "CONTESTED"),
        ("MODIFIED", [], [], "MEDIUM"),
        ("MODIFIED", ["FATAL"], ["REJECTED"], "CONTESTED"),
        ("OVERTURNED", ["MINOR"], ["STAND"], "CONTESTED"),
    ],
)
def test_confidence_by_example(outcome: str, landed: list[str], stances: list[str], level: str) -> None:
    assert compute_confidence(outcome, landed, stances) == level


# Enumeration over rulings, outcomes and attackers' verdicts

LANDED = (True, False, None, "missing", "both", "joined")  # rulings on one issue


def point_rows(name: str, landed: object) -> list[Point]:
    if landed == "missing":
        return []
    if landed == "both":
        return [Point(issue=name, landed=True), Point(issue=name, landed=False)]
    if landed == "joined":
        return [Point(issue=name, landed=None, same_as="beta-1")]
    return [Point(issue=name, landed=landed)]


def attack_round(severities: tuple[str, str], stances: tuple[str, str]) -> Round[Attack]:
    replies = {
        name: Attack(issues=[Issue(severity=severity, hits="it", flaw="it is wrong")], verdict=stance)
        for name, severity, stance in zip(("beta", "gamma"), severities, stances, strict=True)
    }
    return Round([Statement(Seat(name), f"attack/{name}", "", one, Outcome("ok")) for name, one in replies.items()])


@cache
def every_verdict() -> list[tuple[Verdict, tuple[object, ...]]]:
    return list(build_every_verdict())


def build_every_verdict() -> Iterator[tuple[Verdict, tuple[object, ...]]]:
    for severities in product(SEVERITIES, repeat=2):
        for stances in combinations_with_replacement(STANCES, 2):  # the order of the attackers does not matter
            attacks = attack_round(severities, stances)
            for first, second, outcome in product(LANDED, LANDED, (*OUTCOMES, None)):
                points = [*point_rows("beta-1", first), *point_rows("gamma-1", second)]
                ruling = Ruling(points=points, outcome=outcome, answer="Use gRPC.")
                yield build_verdict(ruling, attacks, TRIAGE, DRAFTS), (severities, stances, first, second, outcome)


@pytest.mark.behaviour("10-open-issues-limit-confidence")
def test_no_combination_with_an_open_or_landed_fatal_issue_is_high() -> None:
    count = 0
    for verdict, case in every_verdict():
        count += 1
        rows = verdict.details["rulings"]
        serious = [row for row in rows if row["severity"] == "FATAL" and row["landed"] is not False]
        if serious:
            assert verdict.confidence != "HIGH", case
        kinds = {fact.kind for fact in verdict.trust_facts}
        open_kinds = {"open_fatal", "contradictory_ruling"}  # the second one if it is ruled both ways
        if any(row["landed"] is None for row in serious):
            assert verdict.confidence == "CONTESTED", case
            assert kinds & open_kinds, case
        if any(row["landed"] is None for row in rows):
            assert LEVELS.index(verdict.confidence) >= LEVELS.index("MEDIUM"), case  # type: ignore[arg-type]
            assert verdict.caveats and kinds & {*open_kinds, "unruled"}, case
        if verdict.confidence == "HIGH":
            assert verdict.outcome == "SURVIVED" and all(row["landed"] is not None for row in rows), case
            assert not any(row["landed"] and row["severity"] != "MINOR" for row in rows), case
    assert count == 9 * 6 * 36 * 4


@pytest.mark.behaviour("10-open-issues-limit-confidence")
def test_a_ruling_that_contradicts_itself_is_contested_and_stated() -> None:
    for verdict, case in every_verdict():
        *_, first, second, outcome = case
        rows = [row for row in verdict.details["rulings"] if row["landed"]]
        fatal = any(row["severity"] == "FATAL" for row in rows)
        severe = any(row["severity"] != "MINOR" for row in rows)
        if "both" in (first, second) or (outcome == "SURVIVED" and fatal) or (outcome == "OVERTURNED" and not severe):
            assert verdict.confidence == "CONTESTED", case
            assert any("contradicts itself" in line for line in verdict.caveats), case


def test_no_rulings_survived_and_two_rejections_are_not_high() -> None:
    for severities in product(SEVERITIES, repeat=2):
        attacks = attack_round(severities, ("REJECTED", "REJECTED"))
        verdict = build_verdict(Ruling(points=[], outcome="SURVIVED", answer="a"), attacks, TRIAGE, DRAFTS)
        assert verdict.confidence == ("CONTESTED" if "FATAL" in severities else "MEDIUM")
        assert verdict.agreement == ""


def test_a_rejection_without_an_issue_is_not_high() -> None:
    empty = Attack(issues=[], verdict="REJECTED")
    attacks = Round([Statement(Seat("beta"), "attack/beta", "", empty, Outcome("ok"))])
    verdict = build_verdict(Ruling(points=[], outcome="SURVIVED", answer="a"), attacks, TRIAGE, DRAFTS)
    assert verdict.confidence == "MEDIUM"
    assert verdict.caveats == ("Beta rejected the leading draft but named no severe error.",)


# Rulings as models write them


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("beta-1", ["beta-1"]), ("Beta-1", ["beta-1"]), ("BETA 1", ["beta-1"]), ("beta_1", ["beta-1"]), ("Beta #1", ["beta-1"]),
        ("beta1", ["beta-1"]), ("`beta-1`", ["beta-1"]), ("[beta-1] the cost claim", ["beta-1"]), ("beta-1: MAJOR, the cost", ["beta-1"]),
        ("Issue beta-10", ["beta-10"]), ("beta-10", ["beta-10"]), ("beta-1 and gamma-2", ["beta-1", "gamma-2"]),
        ("beta-1, beta-10", ["beta-1", "beta-10"]), ("delta-1", []), ("beta", []), ("1", []), ("beta-11", []), ("", []), ("alphabeta-1x", []),
    ],
)  # fmt: skip
def test_an_issue_id_is_recognised_as_models_write_it(text: str, found: list[str]) -> None:
    assert match_ids(text, ["beta-1", "beta-10", "gamma-2"]) == found


IDS = {"beta-1": "FATAL", "beta-2": "MINOR", "gamma-1": "MAJOR"}


def landed_of(*points: Point) -> dict[str, bool | None]:
    return {row.id: row.landed for row in apply_rulings(IDS, points).rows}


@pytest.mark.behaviour("10-rulings-by-id")
def test_every_issue_has_one_ruling_and_a_missing_one_is_open() -> None:
    assert landed_of() == {"beta-1": None, "beta-2": None, "gamma-1": None}
    assert landed_of(Point(issue="Beta-1", landed=True), Point(issue="gamma-1", landed=False)) == {
        "beta-1": True,
        "beta-2": None,
        "gamma-1": False,
    }
    assert landed_of(Point(issue="beta-1", landed=True), Point(issue="beta-1", landed=True))["beta-1"] is True
    assert landed_of(Point(issue="beta-1", landed=True), Point(issue="beta-1", landed=False))["beta-1"] is None


@pytest.mark.behaviour("10-same-issue-counts-once")
def test_issues_that_are_the_same_count_once_with_the_highest_severity() -> None:
    rulings = apply_rulings(
        IDS, [Point(issue="beta-1", landed=True), Point(issue="beta-2", landed=False), Point(issue="gamma-1", landed=True, same_as="beta-1")]
    )  # fmt: skip
    assert [(row.id, row.severity) for row in rulings.landed] == [("beta-1", "FATAL")]
    rows = [{"landed": row.landed, "same_as": row.same_as} for row in rulings.rows]
    assert format_counts(rows) == "2 issues: 1 landed, 1 dismissed"


@pytest.mark.behaviour("10-same-issue-counts-once")
@pytest.mark.parametrize(
    ("first", "second", "same_as", "landed"),
    [
        (True, None, "beta-1", True), (False, None, "beta-1", False), (None, None, "beta-1", None), (False, True, "beta-1", True),
        (True, False, "beta-1", True), (False, None, "none", False), (False, None, "delta-9", False), (False, None, "gamma-1", False),
    ],
)  # fmt: skip
def test_a_joined_issue_has_the_ruling_of_its_group(first: bool | None, second: bool | None, same_as: str, landed: bool | None) -> None:  # fmt: skip
    found = landed_of(Point(issue="beta-1", landed=first), Point(issue="gamma-1", landed=second, same_as=same_as))
    assert found["beta-1"] is landed
    assert found["gamma-1"] is (landed if same_as == "beta-1" else None)


def test_issues_that_name_each_other_are_one() -> None:
    points = [
        Point(issue="beta-1", landed=True, same_as="gamma-1"),
        Point(issue="gamma-1", landed=True, same_as="beta-1"),
    ]
    assert len(apply_rulings(IDS, points).landed) == 1


@pytest.mark.behaviour("10-rulings-repaired")
@pytest.mark.parametrize(
    ("outcome", "points", "words"),
    [
        ("MODIFIED", [("beta-1", False), ("beta-2", True), ("gamma-1", True)], []),
        ("MODIFIED", [("beta-1", True), ("beta-2", False), ("gamma-1", True)], ["MODIFIED although beta-1 is FATAL and landed"]),
        ("OVERTURNED", [("beta-1", True), ("beta-2", False), ("gamma-1", True)], []),
        ("OVERTURNED", [("beta-1", True)], ["there is no ruling on beta-2, gamma-1"]),
        ("SURVIVED", [("beta-1", True), ("beta-2", False), ("gamma-1", False)], ["SURVIVED although beta-1 is FATAL and landed"]),
        ("OVERTURNED", [("beta-1", False), ("beta-2", True), ("gamma-1", False)], ["OVERTURNED although no FATAL or MAJOR issue landed"]),
        ("OVERTURNED", [("beta-1", False), ("beta-2", False), ("gamma-1", True)], []),
        ("MODIFIED", [("beta-1", True), ("beta-1", False), ("beta-2", True), ("gamma-1", True)], ["beta-1 is ruled both ways"]),
        ("SURVIVED", [("beta-1", False), ("beta-2", False), ("gamma-1", False), ("delta-1", True)], ["delta-1 is not a listed issue; listed are beta-1, beta-2, gamma-1"]),
        (None, [("beta-1", False), ("beta-2", False), ("gamma-1", False)], ["the outcome is missing"]),
    ],
)  # fmt: skip
def test_what_earns_a_ruling_its_repair_turn(
    outcome: str | None, points: list[tuple[str, bool]], words: list[str]
) -> None:
    rulings = apply_rulings(IDS, [Point(issue=name, landed=landed) for name, landed in points])
    found = list_defects(outcome, rulings)
    assert len(found) == len(words) and all(part in line for part, line in zip(words, found, strict=True)), found


def test_an_unknown_id_and_a_missing_ruling_are_no_contradiction() -> None:
    rulings = apply_rulings(IDS, [Point(issue="delta-1", landed=True)])
    assert list_contradictions("SURVIVED", rulings) == []


def test_a_flood_of_unknown_ids_is_named_in_short() -> None:
    points = [Point(issue=f"nothing-{n} {'x' * 100}", landed=True, same_as="beta-1") for n in range(20_000)]
    rulings = apply_rulings(IDS, points)
    (missing, unknown) = list_defects("SURVIVED", rulings)
    assert len(missing) < 200 and len(unknown) < 400 and "and 19995 more" in unknown
    assert all(row.landed is None for row in rulings.rows)


def test_an_id_with_control_characters_or_another_script_is_unknown() -> None:
    rulings = apply_rulings(
        IDS, [Point(issue="\x00", landed=True), Point(issue="бета-1", landed=True), Point(issue="β-1", landed=True)]
    )
    assert all(row.landed is None for row in rulings.rows) and len(rulings.unknown) == 3


# Attacks


@pytest.mark.behaviour("10-six-issues")
def test_the_most_severe_six_issues_count_and_keep_their_numbers() -> None:
    severities = ["MINOR", "MAJOR", "MINOR", "MINOR", "FATAL", "MINOR", "MAJOR", "MINOR"]
    attack = Attack(issues=[Issue(severity=one, hits=f"claim {n}", flaw="x") for n, one in enumerate(severities, 1)], verdict="REJECTED")  # fmt: skip
    attacks = Round([Statement(Seat("beta"), "attack/beta", "", attack, Outcome("ok"))])
    assert list(number_issues(attacks)) == ["beta-1", "beta-2", "beta-3", "beta-4", "beta-5", "beta-7"]
    assert "8. **MINOR** claim 8" in attack.prose()
    points = [Point(issue=name, landed=False) for name in number_issues(attacks)]
    verdict = build_verdict(Ruling(points=points, outcome="SURVIVED", answer="a"), attacks, TRIAGE, DRAFTS)
    assert verdict.caveats == ("Beta raised 8 issues; only the 6 most severe were ruled on.",)


@pytest.mark.behaviour("10-agreement-of-first-statements")
@pytest.mark.parametrize(
    ("triage", "outcome", "severities", "agreement", "holders", "joined"),
    [
        # all drafts reach one conclusion, and the attackers find nothing severe
        ({"same_conclusion": True}, "SURVIVED", ("MINOR", "MINOR"), "full", ("alpha", "beta", "gamma"), ()),
        ({"same_as_leader": ["beta", "gamma"]}, "SURVIVED", ("MINOR", "MINOR"), "full", ("alpha", "beta", "gamma"), ()),
        # gamma came to it only after reading the leading draft
        ({"same_as_leader": ["beta"]}, "SURVIVED", ("MINOR", "MINOR"), "partial", ("alpha", "beta"), ("gamma",)),
        # a contested point that an attacker does not let stand
        ({"same_conclusion": True}, "SURVIVED", ("MAJOR", "MINOR"), "partial", ("alpha", "beta", "gamma"), ()),
        ({"same_as_leader": ["alpha"]}, "SURVIVED", ("MINOR", "MINOR"), "none", ("alpha",), ("beta", "gamma")),
        # who held it first is not known, so nobody is known to have joined
        ({}, "SURVIVED", ("MINOR", "MINOR"), "", None, ()),
        ({"same_conclusion": True}, "OVERTURNED", ("MAJOR", "MINOR"), "", None, ()),
    ],
)  # fmt: skip
def test_agreement_is_that_of_the_drafts(
    triage: dict[str, Any],
    outcome: str,
    severities: tuple[str, str],
    agreement: str,
    holders: tuple[str, ...] | None,
    joined: tuple[str, ...],
) -> None:
    attacks = attack_round(severities, ("STAND", "STAND"))
    points = [Point(issue=name, landed=outcome == "OVERTURNED") for name in number_issues(attacks)]
    verdict = build_verdict(
        Ruling(points=points, outcome=outcome, answer="a"), attacks, TRIAGE.model_copy(update=triage), DRAFTS
    )
    assert (verdict.agreement, verdict.shared_by, verdict.joined) == (agreement, holders, joined)


@pytest.mark.behaviour("10-agreement-of-first-statements")
@pytest.mark.parametrize(
    ("same_as_leader", "replaced_by", "holders"),
    [
        (["alpha", "beta"], "gamma", ("gamma",)),  # the other two hold what was overturned
        (["alpha"], "gamma", None),  # beta may hold the same as gamma
        (["alpha", "beta"], "", None),
    ],
)
def test_after_an_overturned_draft_the_holders_are_known_only_if_all_others_held_it(
    same_as_leader: list[str], replaced_by: str, holders: tuple[str, ...] | None
) -> None:
    triage = TRIAGE.model_copy(update={"same_as_leader": same_as_leader, "same_conclusion": False})
    assert find_first_holders(triage, ("alpha", "beta", "gamma"), "OVERTURNED", replaced_by) == holders


@pytest.mark.behaviour("10-reader-table")
@pytest.mark.parametrize(
    ("severities", "landed", "outcome", "kinds"),
    [
        (("FATAL", "FATAL"), (True, False), "OVERTURNED", {"fatal_landed": ("beta",)}),
        (("FATAL", "FATAL"), (True, True), "OVERTURNED", {"fatal_landed": ("beta", "gamma")}),
        (("FATAL", "FATAL"), (False, False), "SURVIVED", {"all_rejected": ("beta", "gamma")}),
        (("FATAL", "FATAL"), (None, False), "SURVIVED", {"open_fatal": ()}),  # one was not dismissed
        (("FATAL", "MINOR"), (None, None), "SURVIVED", {"open_fatal": (), "unruled": ()}),
        (("MAJOR", "MINOR"), (None, False), "SURVIVED", {"unruled": ()}),
    ],
)
def test_only_the_attackers_that_are_meant_are_named(
    severities: tuple[str, str],
    landed: tuple[bool | None, bool | None],
    outcome: str,
    kinds: dict[str, tuple[str, ...]],
) -> None:
    attacks = attack_round(severities, ("STAND", "STAND"))
    points = [Point(issue=name, landed=one) for name, one in zip(number_issues(attacks), landed, strict=True)]
    verdict = build_verdict(Ruling(points=points, outcome=outcome, answer="a"), attacks, TRIAGE, DRAFTS)
    told = {fact.kind: fact.seats for fact in verdict.trust_facts}
    about = ("fatal_landed", "all_rejected", "open_fatal", "unruled")
    assert {kind: seats for kind, seats in told.items() if kind in about} == kinds


@pytest.mark.behaviour("10-reader-table")
def test_an_issue_that_is_ruled_both_ways_is_not_called_unruled() -> None:
    attacks = attack_round(("FATAL", "MINOR"), ("STAND", "STAND"))
    points = [Point(issue="beta-1", landed=landed) for landed in (True, False)] + [Point(issue="gamma-1", landed=False)]
    verdict = build_verdict(Ruling(points=points, outcome="SURVIVED", answer="a"), attacks, TRIAGE, DRAFTS)
    kinds = {fact.kind for fact in verdict.trust_facts}
    assert "contradictory_ruling" in kinds and kinds.isdisjoint({"open_fatal", "unruled"})
    assert not any("did not rule" in line for line in verdict.caveats)


def test_the_report_names_what_each_ruling_is_about() -> None:
    attacks = attack_round(("FATAL", "MINOR"), ("REJECTED", "STAND"))
    issues = number_issues(attacks)
    severities = {name: issue.severity for name, issue in issues.items()}
    rows = describe_rulings(apply_rulings(severities, [Point(issue="beta-1", landed=True, why="shown")]), issues)
    assert rows[0] == {"id": "beta-1", "severity": "FATAL", "landed": True, "why": "shown", "same_as": None, "hits": "it", "flaw": "it is wrong", "correction": ""}  # fmt: skip
    assert rows[1]["landed"] is None


# Rulings in words


@pytest.mark.behaviour("10-replies-never-guessed")
@pytest.mark.parametrize(
    ("said", "landed", "why"),
    [
        ("landed — it is right", True, "it is right"),
        ("landed: no. Throughput was never the question.", False, "Throughput was never the question"),
        ("not landed, the draft covers it", False, "the draft covers it"),
        ("dismissed (out of scope)", False, "out of scope"),
        ("partially — the cost", True, "the cost"),
        ("no — it landed only in part", None, "it landed only in part"),
        ("landed, but only in part", None, "but only in part"),
        ("no, except for the date", None, "except for the date"),
    ],
)
def test_a_remark_beside_a_ruling_is_its_reason_unless_it_takes_the_ruling_back(
    said: str, landed: bool | None, why: str
) -> None:
    point = Point.model_validate({"issue": "issue-1", "landed": said})
    assert (point.landed, point.why) == (landed, why)


@pytest.mark.behaviour("10-replies-never-guessed")
@pytest.mark.parametrize(("landed", "outcome"), [(True, "MODIFIED"), (False, "SURVIVED")])
def test_survived_with_minor_changes_is_read_by_the_rulings_beside_it(landed: bool, outcome: str) -> None:
    point = {"issue": "issue-1", "landed": landed}
    said = {"points": [point], "outcome": "Survived with minor changes", "answer": "Go.", "assessment": ""}
    assert Ruling.model_validate(said).outcome == outcome
