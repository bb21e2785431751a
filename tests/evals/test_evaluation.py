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
    right: bool,
    seats: Mapping[str, bool] | None = None,
    trust: str = "LOW",
    tokens: int = 100,
    text: str = "1",
    share: float | None = None,
    usd: float | None = 0.5,
) -> Result:
    mark: Mark = "right" if right else "wrong" if text == "1" else "ambiguous" if text else "unreadable"
    used = (tokens, 4, usd, 2.0)
    return Result("r1", text, right, trust, share, seats or {}, *used, members=("sim:m1",), chair="sim:c", mark=mark)


def arm_of(*results: Result, arm: Arm = COUNCIL) -> ArmResults:
    return ArmResults(arm, {str(n): one for n, one in enumerate(results)})


def make_table(
    council: Sequence[Result],
    equal: Sequence[Result] = (),
    unfinished: int = 0,
    *,
    single: Sequence[Result] = (),
    equal_by: str = "tokens",
) -> EvalTable:
    arms = parse_arms("single,refine" if single else "refine")
    items = tuple(Item(str(n), "q", "1") for n in range(len(council)))
    rows_of_arms = (single, council, equal) if single else (council, equal)
    found = [arm_of(*rows, arm=arm) for arm, rows in zip(arms, rows_of_arms, strict=True)]
    return EvalTable(Evaluation(items, tuple(arms), equal=equal_by), found, unfinished)


def answers(right: int, count: int, usd: float | None = 0.5, tokens: int = 100) -> list[Result]:
    """The first ones are right."""
    return [answer(n < right, usd=usd, tokens=tokens) for n in range(count)]


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
    near = make_table([answer(True)] * 2, [answer(True, tokens=104)] * 2).notes()
    far = make_table([answer(True)] * 2, [answer(True, tokens=106)] * 2).notes()
    assert not any("not equal" in line for line in near)
    assert far[0] == "refine: its self-consistency arm used +6% tokens, so the two are not equal."


def test_without_an_arm_of_equal_use_nothing_is_concluded() -> None:
    lines = make_table([answer(True)], unfinished=1).notes()
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


@pytest.mark.behaviour("evidence-conclusion")
@pytest.mark.parametrize(
    ("council", "equal", "single", "advice"),
    [
        (
            answers(90, 100),
            answers(60, 100),
            [],
            "Use refine for questions like these: it is right more often than one model asked several times (self-consistency).",
        ),
        (
            answers(90, 100, usd=0.5),
            answers(60, 100, usd=0.2),
            [],
            "Use refine for questions like these if that is worth its price. Per 100 questions, 30.0 more are right than with one model asked several times (self-consistency), for $30.00 more.",
        ),
        (
            answers(90, 100),
            answers(60, 100),
            answers(89, 100),
            "Do not choose refine yet: it is right more often than one model asked several times (self-consistency), but it is "
            "not shown to be right more often than one answer of one model (single).",
        ),
        (
            answers(60, 100, usd=0.5),
            answers(90, 100, usd=0.2),
            [],
            "Do not use refine for questions like these: it is right less often than one model asked several times "
            "(self-consistency) and costs more.",
        ),
        (
            answers(60, 100, usd=0.2),
            answers(90, 100, usd=0.5),
            [],
            "Use refine only if its price decides. Per 100 questions, 30.0 fewer are right, for $30.00 less.",
        ),
        (
            answers(70, 100, usd=0.2),
            answers(67, 100, usd=0.5),
            [],
            "Do not choose refine for its accuracy: it is not shown to be right more often than one model asked several "
            "times (self-consistency). The cheapest is refine.",
        ),
        (
            answers(70, 100, usd=0.2),
            answers(67, 100, usd=0.5),
            answers(60, 100, usd=0.1),
            "Do not choose refine for its accuracy: it is not shown to be right more often than one model asked several "
            "times (self-consistency). The cheapest is one answer of one model (single).",
        ),
        (answers(20, 20), answers(2, 20), [], "Decide nothing yet. 20 questions: too few. Ask at least 30."),
    ],
)
def test_a_conclusion_says_what_to_do(
    council: list[Result], equal: list[Result], single: list[Result], advice: str
) -> None:
    (found,) = make_table(council, equal, single=single).conclusions()
    assert found.what_to_do == advice


@pytest.mark.behaviour("evidence-conclusion", "evidence-power")
def test_a_conclusion_says_how_sure_it_is_and_what_would_change_it() -> None:
    (sure,) = make_table(answers(90, 100), answers(60, 100)).conclusions()
    assert sure.how_sure.startswith(
        "Sure. refine was right on 90 of 100 questions (90 %), self-consistency on 60 of 100"
    )
    assert sure.how_sure.endswith("in fewer than 1 of 1,000 evaluations (p < .001).")
    (fair,) = make_table(answers(66, 100), answers(60, 100)).conclusions()
    assert (
        fair.how_sure.startswith("Fairly sure: a repeat")
        and "about 31 of 1,000 evaluations (p = .031)" in fair.how_sure
    )
    (unsure,) = make_table(answers(63, 100), answers(60, 100)).conclusions()
    assert unsure.how_sure.startswith("Not sure") and "in about 25 of 100 evaluations (p = .250)" in unsure.how_sure
    assert unsure.what_would_change_it == (
        "More questions. If the true difference is the one seen here (+3.0 points), about 263 questions decide it with "
        "80 % power, which means in four of five such evaluations. If it is smaller, it takes more. It takes at least 112."
    )
    (same,) = make_table(answers(60, 100), answers(60, 100)).conclusions()
    assert "No difference was seen" in same.what_would_change_it and "at least" in same.what_would_change_it


@pytest.mark.behaviour("evidence-price")
def test_equal_arms_are_shown_with_their_price_or_their_tokens() -> None:
    tables = {
        equal: make_table(answers(90, 100, 0.03), answers(60, 100, 0.015, 200), equal_by=equal)
        for equal in ("tokens", "cost")
    }
    costs = {equal: table.conclusions()[0].cost for equal, table in tables.items()}
    assert costs["tokens"] == "At equal tokens, refine cost $3.00 and self-consistency cost $1.50, 2 times as much."
    assert "refine used 10,000 tokens and self-consistency 20,000, 0.5 times as many." in costs["cost"]
    against = tables["tokens"].as_json()["arms"][0]["against"]
    assert against is not None and (against["usd_ratio"], against["tokens_ratio"]) == (2.0, 0.5)
    unknown = make_table(answers(90, 100, None), answers(60, 100, 0.015), single=answers(50, 100, None))
    (found,) = unknown.conclusions()
    assert "refine has no price and self-consistency cost $1.50" in found.cost
    assert "(single) was right on 50 of 100; no price is known." in found.cost
    assert "no price" in format_table(unknown).splitlines()[1]
    against = unknown.as_json()["arms"][1]["against"]
    assert against is not None and against["usd_ratio"] is None


@pytest.mark.behaviour("evidence-conclusion")
def test_several_councils_are_reminded_of_chance_and_each_line_stands_alone() -> None:
    arms = parse_arms("refine,triad")
    items = tuple(Item(str(n), "q", "1") for n in range(100))
    rows = (answers(90, 100), answers(80, 100), answers(60, 100), answers(60, 100))
    table = EvalTable(
        Evaluation(items, tuple(arms)), [arm_of(*one, arm=arm) for arm, one in zip(arms, rows, strict=True)]
    )
    assert any(
        "2 comparisons: if no arm were better, chance would decide one in up to 10 %" in line for line in table.notes()
    )
    lines = table.conclude()
    assert [line.partition(":")[0] for line in lines[:8]] == [
        f"{arm}, {label}"
        for arm in ("refine", "triad")
        for label in ("what to do", "how sure", "what it costs", "what would change it")
    ]
    shown = format_table(table)
    assert max(map(len, shown.partition("\nrefine against")[2].splitlines())) <= 110
    assert shown.splitlines()[-1].strip().endswith("then.")


@pytest.mark.behaviour("evidence-calibration")
def test_the_calibration_of_an_arm_is_shown_or_too_few() -> None:
    many = [answer(n % 10 < 6, share=0.9) for n in range(120)]
    table = make_table(many, many[:40])
    council, equal = (arm["calibration"] for arm in table.as_json()["arms"])
    assert council is not None and council["ece"] == pytest.approx(0.3) and (council["bins"], council["n"]) == (1, 120)
    assert equal is not None and equal["ece"] is None and equal["n"] == 40
    shown = format_table(table)
    assert "0.300 (" in shown and "too few" in shown
    assert "ECE of self-consistency=refine: with fewer than 100 answers" in shown
    assert "would show, by chance, refine 0.022 in 1 bin" in shown
    assert make_table(answers(9, 9)).as_json()["arms"][0]["calibration"] is None
