"""The results of an evaluation: what its table says about the arms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from council.errors import UsageError
from council.evals.dataset import Item
from council.evals.evaluation import Arm, ArmResults, EvalTable, Evaluation, Result, format_table, parse_arms
from council.final_answers.marks import Mark

COUNCIL = Arm("refine", "refine")


def answer(
    right: bool, seats: Mapping[str, bool] | None = None, trust: str = "LOW", tokens: int = 100, text: str = "1"
) -> Result:
    mark: Mark = "right" if right else "wrong" if text == "1" else "ambiguous" if text else "unreadable"
    return Result(
        "r1", text, right, trust, None, seats or {}, tokens, 4, 0.5, 2.0, members=("sim:m1",), chair="sim:c", mark=mark
    )


def arm_of(*results: Result, arm: Arm = COUNCIL) -> ArmResults:
    return ArmResults(arm, {str(n): one for n, one in enumerate(results)})


def make_table(council: Sequence[Result], equal: Sequence[Result] = (), unfinished: int = 0) -> EvalTable:
    arms = parse_arms("refine")
    items = tuple(Item(str(n), "q", "1") for n in range(len(council)))
    found = [arm_of(*rows, arm=arm) for arm, rows in zip(arms, (council, equal), strict=True)]
    return EvalTable(Evaluation(items, tuple(arms)), found, unfinished)


def test_a_council_corrects_or_spoils_the_majority_of_its_seats() -> None:
    split, both, none = {"a": True, "b": False}, {"a": True, "b": True}, {"a": False, "b": False}
    rows = [answer(True, split), answer(True, none), answer(False, both), answer(False, split), answer(True, both)]
    assert arm_of(*rows, answer(True, {"a": False})).seats_before() == (2, 1)  # one seat has no majority


@pytest.mark.parametrize(
    ("seats", "votes"),
    [
        ([], None),
        ([{"a": True}, {"b": False}], None),
        ([{"a": True}, {"a": False}], None),
        ([{"a": True, "b": True}], None),
        ([{"a": True, "b": True}, {"a": False, "b": False}], 1.0),
        ([{"a": True, "b": False}, {"a": False, "b": True}, {"a": True}], 2.0),
    ],
)
def test_effective_votes_need_questions_that_all_seats_answered(
    seats: Sequence[Mapping[str, bool]], votes: float | None
) -> None:
    found = arm_of(*(answer(True, one) for one in seats)).votes
    assert found == (None if votes is None else pytest.approx(votes))


def test_the_members_of_an_arm_are_those_of_its_seats_and_its_chair() -> None:
    assert arm_of(answer(True)).members == ["sim:c", "sim:m1"]


def test_equal_arms_that_did_not_use_the_same_are_named() -> None:
    near = make_table([answer(True)] * 2, [answer(True, tokens=104)] * 2).conclude()
    far = make_table([answer(True)] * 2, [answer(True, tokens=106)] * 2).conclude()
    assert not any("not equal" in line for line in near)
    assert far[0] == "refine: its self-consistency arm used +6% tokens, so the two are not equal."


def test_without_an_arm_of_equal_use_nothing_is_concluded() -> None:
    lines = make_table([answer(True)], unfinished=1).conclude()
    assert lines[0] == "refine: there is no arm of equal tokens, so nothing is concluded."
    assert "1 answers are missing: run the same command again to complete them." in lines


def test_trust_that_misleads_is_named() -> None:
    high, low = [answer(n < 2, trust="HIGH") for n in range(30)], [answer(n > 1, trust="LOW") for n in range(30)]
    lines = make_table([*high, *low], [answer(True)] * 60).conclude()
    assert "refine: trust LOW is right more often than HIGH; the trust line is misleading on this data set." in lines
    contested = [answer(True, trust="CONTESTED") for _ in range(30)]
    assert not any("misleading" in line for line in make_table([*high, *contested], [answer(True)] * 60).conclude())


def test_the_table_lists_trust_only_of_councils() -> None:
    shown = format_table(make_table([answer(True, trust="HIGH")], [answer(False, trust="LOW")]))
    assert "right by trust level\n  refine: HIGH 100 % of 1\n\n" in shown and "LOW 0 %" not in shown
    assert "trust level" not in format_table(make_table([], []))


def test_unreadable_answers_count_as_wrong_and_are_counted() -> None:
    lines = make_table([answer(False, text=""), answer(True)], [answer(True)] * 2).conclude()
    assert "refine: 1 of 2 answers have no readable final answer and count as wrong." in lines


@pytest.mark.behaviour("evidence-ambiguous")
def test_ambiguous_answers_are_counted_apart_from_wrong_and_unreadable_ones() -> None:
    rows = [answer(True), answer(False), answer(False, text="4 or 5"), answer(False, text="")]
    table = make_table(rows, [answer(True)] * 4)
    found = table.as_json()["arms"][0]
    assert (found["ambiguous"], found["unreadable"], found["accuracy"]["mean"]) == (1, 1, 0.25)
    lines = table.conclude()
    assert "refine: 1 of 4 answers are ambiguous (two readings fit, or two final answers) and count as wrong." in lines
    head, first = format_table(table).splitlines()[:2]
    assert head.split()[3:5] == ["%", "ambiguous"] and " 1 " in first


@pytest.mark.parametrize(
    ("arms", "problem"),
    [
        (" , ", "no arm is named"),
        ("solo,solo", '"solo" is named twice'),
        ("judges", 'unknown arm "judges"'),
        ("self-consistency:samples=0", 'samples "0" is out of range'),
        ("self-consistency:samples=201", 'samples "201" is out of range'),
        ("advisors:=3", 'has the option "=3"'),
        ("advisors:rounds=", 'has the option "rounds="'),
    ],
)
def test_arms_that_cannot_be_compared_are_refused(arms: str, problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        parse_arms(arms)


def test_each_council_gets_an_arm_of_equal_use_instead_of_plain_self_consistency() -> None:
    assert [arm.name for arm in parse_arms("single,self-consistency,solo,advisors:rounds=2:quick")] == [
        "single",
        "solo",
        "advisors:rounds=2:quick",
        "self-consistency=solo",
        "self-consistency=advisors:rounds=2:quick",
    ]
    assert parse_arms("advisors:rounds=2:quick")[0].options == {"rounds": "2", "quick": True}
    assert [arm.options for arm in parse_arms("single,self-consistency:samples=200")] == [
        {"samples": 1},
        {"samples": 200},
    ]
