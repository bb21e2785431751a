"""Stages and word limits of rounds, unanimity, and changes of stance."""

from __future__ import annotations

import pytest

from council.protocols.advisors.rules import cites_evidence, is_long, stage, stance_changes, word_limits
from council.protocols.common.stances import Stance, is_unanimous

NAMES = ("pragmatist", "visionary", "skeptic")
Said = tuple[str, str, str]  # stance, choice, confidence


def held(*said: Said) -> list[Stance]:
    return [Stance(name, stance, choice, sure) for name, (stance, choice, sure) in zip(NAMES, said, strict=False)]


def one(stance: str = "for", choice: str = "move it", evidence: str = "") -> dict[str, Stance]:
    return {"skeptic": Stance("skeptic", stance, choice, "HIGH", evidence)}


@pytest.mark.behaviour("001-round-templates", "004-word-counts", "10-advisors-one-round-opens")
@pytest.mark.parametrize(
    ("rounds", "stages"),
    [
        (1, ["opening"]),
        (2, ["opening", "final"]),
        (3, ["opening", "rebuttal", "final"]),
        (5, ["opening", "rebuttal", "rebuttal", "rebuttal", "final"]),
    ],
)
def test_stages_of_rounds(rounds: int, stages: list[str]) -> None:
    words = {"opening": (200, 400), "rebuttal": (200, 300), "final": (150, 250)}
    assert [stage(n, rounds) for n in range(1, rounds + 1)] == stages
    assert [word_limits(n, rounds) for n in range(1, rounds + 1)] == [words[name] for name in stages]


@pytest.mark.behaviour("001-words-fall")
@pytest.mark.parametrize("rounds", [2, 3, 4, 5])
def test_no_round_may_be_longer_than_the_one_before_it_and_the_last_is_the_shortest(rounds: int) -> None:
    most = [word_limits(n, rounds)[1] for n in range(1, rounds + 1)]
    assert most == sorted(most, reverse=True)
    assert most[-1] < most[0]


@pytest.mark.behaviour("10-advisors-over-budget")
@pytest.mark.parametrize(("words", "long"), [(400, False), (401, False), (800, False), (801, True)])
def test_a_statement_is_too_long_over_twice_its_limit(words: int, long: bool) -> None:
    assert is_long("word " * words, 400) is long


@pytest.mark.behaviour("10-early-stop-unanimity")
@pytest.mark.parametrize(
    ("said", "agreed"),
    [
        ([("for", "move it", "HIGH")] * 3, True),
        ([("against", "stay", "HIGH")] * 2, True),
        ([("conditional", "move after the audit", "HIGH")] * 3, True),
        ([("for", "Move the archive", "HIGH"), ("for", "move archive", "HIGH")], True),  # articles are ignored
        ([("for", "move it", "HIGH"), ("for", "move it now", "HIGH")], False),  # more words may be another action
        ([("for", "Redis, not Postgres", "HIGH"), ("for", "Postgres, not Redis", "HIGH")], False),
        ([("for", "buy", "HIGH"), ("for", "buy vendor A", "HIGH")], False),
        ([("for", "", "HIGH"), ("for", "", "HIGH")], True),  # no choices, one stance
        ([], False),
        ([("for", "move it", "HIGH")], False),  # one seat is not unanimous
        ([("for", "move it", "HIGH"), ("for", "move it", "MEDIUM")], False),
        ([("for", "move it", "HIGH"), ("for", "move it", "LOW")], False),
        ([("for", "move it", "HIGH"), ("against", "move it", "HIGH")], False),
        ([("for", "move it", "HIGH"), ("conditional", "move it", "HIGH")], False),
        ([("undecided", "wait", "HIGH")] * 3, False),  # undecided
        ([("for", "move it", "HIGH"), ("for", "", "HIGH")], False),
        ([("for", "use Postgres now", "HIGH"), ("for", "use MySQL now", "HIGH")], False),
        ([("for", "adopt vendor A now", "HIGH"), ("for", "adopt vendor B now", "HIGH")], False),
        ([("for", "move it", "HIGH"), ("for", "do not move it", "HIGH")], False),
        ([("for", "move it", "HIGH"), ("for", "don't move it", "HIGH")], False),
        ([("for", "move it", "HIGH"), ("for", "move it only if audited", "HIGH")], False),
        ([("for", "move it", "HIGH"), ("for", "move it after the audit", "HIGH")], False),
        ([("for", "move it", "HIGH"), ("for", "move half of it", "HIGH")], False),
        ([("for", "move it", "HIGH"), ("for", "move it in 2030", "HIGH")], False),
        ([("for", "use Postgres", "HIGH"), ("for", "use Postgres and MySQL", "HIGH")], False),
        ([("for", "move 10 percent", "HIGH"), ("for", "move 100 percent", "HIGH")], False),
        ([("for", "use", "HIGH"), ("for", "use Postgres", "HIGH"), ("for", "use MySQL", "HIGH")], False),
        ([("for", "move it", "HIGH"), ("for", "move it", "HIGH"), ("against", "stay", "HIGH")], False),
    ],
)  # fmt: skip
def test_unanimity_is_one_stance_one_choice_and_high_confidence(said: list[Said], agreed: bool) -> None:
    assert is_unanimous(held(*said)) is agreed
    assert is_unanimous(held(*reversed(said))) is agreed


@pytest.mark.behaviour("10-shifts-recorded")
@pytest.mark.parametrize(
    ("rounds", "found"),
    [
        ([one(), one()], []),
        ([one(), one(choice="move it now")], []),  # the same thing in more words
        ([one(), one("against", "stay", "egress costs 90 dollars a TB")], [(2, "for: move it", "against: stay", False)]),
        ([one(), one("against", "stay")], [(2, "for: move it", "against: stay", True)]),
        ([one(), one("against", "stay", "The others see it so.")], [(2, "for: move it", "against: stay", True)]),
        ([one(), one(choice="move half of it only", evidence="")], [(2, "for: move it", "for: move half of it only", True)]),
        ([one(), {}, one("against", "stay", "the audit")], [(3, "for: move it", "against: stay", False)]),  # absent between
        ([{}, one(), one("undecided", "", "no data")], [(3, "for: move it", "undecided", False)]),
        ([one(), one("against", "stay", "the audit"), one()], [(2, "for: move it", "against: stay", False), (3, "against: stay", "for: move it", True)]),
    ],
)  # fmt: skip
def test_every_change_is_recorded_with_its_evidence_or_as_a_weak_flip(
    rounds: list[dict[str, Stance]], found: list[tuple[int, str, str, bool]]
) -> None:
    shifts = stance_changes(rounds)
    assert [(row["round"], row["from"], row["to"], row["weak"]) for row in shifts] == found
    assert all(row["seat"] == "skeptic" and row["changed"] is True for row in shifts)


@pytest.mark.behaviour("10-shifts-recorded")
def test_a_change_has_the_given_evidence() -> None:
    (row,) = stance_changes([one(), one("against", "stay", "egress costs 90 dollars a TB")])
    assert row["reason"] == "egress costs 90 dollars a TB"


@pytest.mark.behaviour("10-shifts-recorded")
@pytest.mark.parametrize(
    ("evidence", "named"),
    [
        ("", False),
        ("   ", False),
        ("None.", False),
        ("n/a", False),
        ("-", False),
        ("No change", False),
        ("The others see it so.", False),
        ("everyone agrees", False),
        ("Because the majority holds this", False),
        ("all the other advisors say so", False),
        ("My colleague's point that egress costs 90 dollars a TB", True),
        ("The others showed that restores take 12 hours.", True),
        ("the Skeptic's restore test", True),
        ("No backup was ever restored", True),
    ],
)
def test_agreement_of_others_is_not_evidence(evidence: str, named: bool) -> None:
    assert cites_evidence(evidence) is named
