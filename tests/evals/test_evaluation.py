"""The results of an evaluation: what its table says about the arms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from council.errors import UsageError
from council.evals.dataset import Item
from council.evals.evaluation import (
    Arm,
    ArmResults,
    EvalTable,
    Evaluation,
    Result,
    apply_grades,
    format_table,
    make_grade_id,
    parse_arms,
)
from council.final_answers.marks import Mark

COUNCIL = Arm("refine", "refine")
DAY = 1_790_000_000.0


def answer(
    right: bool,
    seats: Mapping[str, bool] | None = None,
    trust: str = "LOW",
    tokens: int = 100,
    text: str = "1",
    share: float | None = None,
    usd: float | None = 0.5,
    is_new: bool = False,
) -> Result:
    mark: Mark = "right" if right else "wrong" if text == "1" else "ambiguous" if text else "unreadable"
    used = (tokens, 4, usd, 2.0)
    served_by = {name: f"sim:{name}" for name in seats or ("m1",)}
    return Result("r1", text, right, trust, share, seats or {}, *used, "", served_by, "sim:c", mark, DAY, is_new)


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
    better = make_table(answers(90, 100), single=answers(60, 100))
    assert better.notes()[0] == "refine: there is no arm of equal tokens, so it is not recommended."
    assert better.conclusions()[0].what_to_do.startswith("Not decided: refine is right more often than one answer")
    assert make_table(answers(60, 100), single=answers(90, 100)).conclusions()[0].what_to_do.startswith("Do not use")


def test_trust_that_misleads_is_named() -> None:
    high, low = [answer(n < 2, trust="HIGH") for n in range(30)], [answer(n > 1, trust="LOW") for n in range(30)]
    lines = make_table([*high, *low], [answer(True)] * 60).conclude()
    assert "refine: trust LOW is right more often than HIGH; the trust line is misleading on this data set." in lines
    contested = [answer(True, trust="CONTESTED") for _ in range(30)]
    assert not any("misleading" in line for line in make_table([*high, *contested], [answer(True)] * 60).conclude())


def test_the_table_lists_trust_only_of_councils() -> None:
    two = [answer(True, trust="HIGH"), answer(False, trust="MEDIUM")]
    shown = format_table(make_table(two, [answer(False, trust="LOW"), answer(False, trust="MEDIUM")]))
    assert "right by trust level\n  refine: HIGH 100 % of 1, MEDIUM 0 % of 1\n\n" in shown and "LOW 0 %" not in shown
    assert "trust level" not in format_table(make_table(two[:1], two[:1]))  # one level says nothing


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
    head, first = format_table(table).partition("\narm ")[2].splitlines()[:2]
    assert head.split()[2:4] == ["%", "ambiguous"] and first.split()[6:8] == ["1", "1"]
    assert "ambiguous" not in format_table(make_table(answers(1, 2), answers(2, 2)))


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


SEVERAL = "one model asked several times (self-consistency)"
ONCE = "one answer of one model (single)"


@pytest.mark.behaviour("evidence-conclusion")
@pytest.mark.parametrize(
    ("council", "equal", "single", "advice"),
    [
        # The comparison with one answer decides.
        (
            answers(90, 100, usd=0.5),
            answers(60, 100, usd=0.2),
            answers(60, 100, usd=0.1),
            "Use refine for questions like these if one more right answer is worth $1.33. Per 100 questions, 30.0 more "
            f"are right than with {ONCE}, for $40.00 more.",
        ),
        (
            answers(90, 100),
            answers(60, 100),
            answers(60, 100),
            f"Use refine for questions like these. Per 100 questions, 30.0 more are right than with {ONCE}.",
        ),
        (
            answers(90, 100),
            answers(89, 100, usd=0.2),
            answers(60, 100),
            f"Not decided: refine is right more often than {ONCE}, but it is not shown to be right more often than "
            f"{SEVERAL}. Until then use the latter.",
        ),
        (
            answers(70, 100),
            answers(90, 100),
            answers(50, 100),
            f"Do not use refine for questions like these. Use {SEVERAL}: it is right more often.",
        ),
        (
            answers(60, 100, usd=0.5),
            answers(90, 100, usd=0.5),
            answers(90, 100, usd=0.1),
            f"Do not use refine for questions like these. Use {ONCE}: per 100 questions, 30.0 more are right, for $40.00 less.",
        ),
        (
            answers(60, 100, usd=0.1),
            answers(90, 100, usd=0.1),
            answers(90, 100, usd=0.5),
            "Use refine only if its price decides. Per 100 questions, 30.0 fewer are right, for $40.00 less.",
        ),
        (answers(63, 100), answers(40, 100), answers(60, 100, usd=0.1), f"Not decided. Until then use {ONCE}."),
        (answers(63, 100, 0.1), answers(60, 100), answers(60, 100), "Not decided. Until then use refine."),
        (
            answers(63, 100),
            answers(90, 100),
            answers(60, 100, usd=0.1),
            f"Not decided. Until then use {SEVERAL}: it is right more often than {ONCE}.",
        ),
        # Without it, that of equal use does.
        (
            answers(90, 100),
            answers(60, 100),
            [],
            f"Use refine for questions like these. Per 100 questions, 30.0 more are right than with {SEVERAL}.",
        ),
        (answers(70, 100, usd=0.2), answers(67, 100, usd=0.5), [], "Not decided. Until then use refine."),
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
        "Sure for these 100 questions and these models. refine was right on 90 of 100 (90 %), self-consistency on 60 of 100"
    )
    assert sure.how_sure.endswith("in fewer than 1 of 1,000 evaluations (p < .001).")
    (fair,) = make_table(answers(66, 100), answers(60, 100)).conclusions()
    assert fair.how_sure.startswith("Fairly sure for these 100 questions and these models: a repeat")
    assert "about 31 of 1,000 evaluations (p = .031)" in fair.how_sure
    (unsure,) = make_table(answers(63, 100), answers(60, 100)).conclusions()
    assert unsure.how_sure.startswith("The two cannot be told apart yet.")
    assert "in about 25 of 100 evaluations (p = .250)" in unsure.how_sure
    assert unsure.what_would_change_it == (
        "About 163 more questions, which cost about $163.00: if the true difference is the one seen here (+3.0 points), "
        "they give a 4 in 5 chance of a clear answer (80 % power). A smaller difference needs more."
    )
    (same,) = make_table(answers(60, 100), answers(60, 100)).conclusions()
    assert same.what_would_change_it == "More questions. No difference was seen, so it cannot be said how many."
    (gain,) = make_table(answers(90, 100), answers(87, 100), single=answers(60, 100)).conclusions()
    assert "(+3.0 points)" in gain.what_would_change_it  # against self-consistency, which is what is open


@pytest.mark.behaviour("evidence-conclusion")
def test_equal_use_explains_where_the_gain_comes_from() -> None:
    tables = [make_table(answers(90, 100), answers(equal, 100), single=answers(60, 100)) for equal in (61, 89)]
    more, open_ = (table.conclusions()[0].equal for table in tables)
    assert more == (
        f"With the same tokens, {SEVERAL} was right on 61 of 100 (61 %), 29.0 points less than refine (20.0 to 38.0, "
        "p < .001): more tokens alone do not explain its gain."
    )
    assert open_.endswith("Whether refine is better than that is not decided (+1.0 points, p > .999).")
    assert make_table(answers(90, 100), answers(61, 100)).conclusions()[0].equal == ""


@pytest.mark.behaviour("evidence-members-alone")
def test_each_member_alone_is_shown_and_a_better_one_than_single_is_named() -> None:
    council = [answer(True, {"a": n < 20, "b": n < 30, "c": n < 10}) for n in range(40)]
    table = make_table(council, answers(20, 40), single=answers(20, 40))
    (found,) = table.conclusions()
    assert found.members == (
        "First answers in refine: sim:b 75 %, sim:a 50 %, sim:c 25 %. single used sim:c, sim:m1; measure sim:b as the "
        "one model too (-m)."
    )
    seats = table.as_json()["arms"][1]["seats"]
    assert [(one["seat"], one["members"], one["accuracy"]["mean"]) for one in seats][:2] == [
        ("a", ["sim:a"], 0.5),
        ("b", ["sim:b"], 0.75),
    ]
    assert table.as_json()["arms"][0]["seats"] == []
    assert make_table(answers(20, 40), answers(20, 40)).conclusions()[0].members == ""


@pytest.mark.behaviour("evidence-new-answers")
def test_answers_of_the_chair_alone_and_of_all_seats_are_told_in_words_and_have_no_votes() -> None:
    seats = {"a": True, "b": True}
    council = [answer(n < 30, seats, share=1.0) for n in range(32)]
    council += [answer(False, seats, share=0.0, is_new=True) for _ in range(8)]
    table = make_table(council, answers(20, 40))
    (found,) = table.conclusions()
    assert found.trust == (
        "When its seats agreed (32 of 40 answers), 94 % were right. In 8 answers the chair gave what none of its seats "
        "had given; none of these was right."
    )
    arm = table.as_json()["arms"][0]
    assert (arm["new_answers"], arm["new_answers_right"]) == (8, 0)
    assert arm["unanimous"] is not None and arm["unanimous"]["n"] == 32
    assert [row["accuracy"]["n"] for row in arm["reliability"]] == [32]


@pytest.mark.behaviour("evidence-new-answers")
def test_an_answer_that_a_panel_grades_has_no_votes() -> None:
    item = Item("1", "Why is it blue?", "scattering", grader="judges")
    merged = Result("r1", "x", False, "LOW", 0.0, {"a": False}, 9, 4, 0.1, 1.0, "The light is scattered.", is_new=True)
    graded = apply_grades(item, merged, {make_grade_id(item, merged.text): True})
    assert graded is not None and (graded.right, graded.share, graded.is_new) == (True, None, False)


@pytest.mark.behaviour("evidence-report-order")
def test_the_text_comes_first_with_the_models_and_the_date_and_the_terms_last() -> None:
    lines = format_table(make_table(answers(90, 100), answers(60, 100), single=answers(60, 100))).splitlines()
    assert lines[0].endswith("100 questions, answered on 2026-09-21")
    assert lines[1].split() == ["single,", "refine,", "self-consistency", "sim:m1,", "with", "the", "chair", "sim:c"]
    at = [next(n for n, line in enumerate(lines) if line.startswith(start)) for start in PARTS]
    assert at == sorted(at)
    assert "self-consistency=refine" not in "\n".join(lines)
    assert any("self-consistency (same tokens as refine)" in line for line in lines)
    assert not any(line.endswith((" p", " <", " =")) for line in lines[: at[-2]])


PARTS = ("refine: right on 90 of 100", "notes", "arm ", "terms")


@pytest.mark.behaviour("evidence-price")
def test_equal_arms_are_shown_with_their_price_or_their_tokens() -> None:
    tables = {
        equal: make_table(answers(90, 100, 0.03), answers(60, 100, 0.015, 200), equal_by=equal)
        for equal in ("tokens", "cost")
    }
    costs = {equal: table.conclusions()[0].cost for equal, table in tables.items()}
    assert costs["tokens"] == (
        "Per 100 questions: refine $3.00, self-consistency $1.50. refine costs 2 times as much as self-consistency."
    )
    assert costs["cost"].endswith("refine used 10,000 tokens and self-consistency 20,000.")
    against = tables["tokens"].as_json()["arms"][0]["against"]
    assert against is not None and (against["usd_ratio"], against["tokens_ratio"]) == (2.0, 0.5)
    unknown = make_table(answers(90, 100, None), answers(60, 100, 0.015), single=answers(50, 100, None))
    (found,) = unknown.conclusions()
    assert found.cost == "Per 100 questions: refine no price, single no price, self-consistency $1.50."
    assert "no price" in format_table(unknown).partition("\narm ")[2]
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
    assert max(map(len, shown.partition("\narm ")[0].splitlines())) <= 110


@pytest.mark.behaviour("evidence-calibration")
def test_the_calibration_of_an_arm_is_shown_or_too_few() -> None:
    many = [answer(n % 10 < 6, share=0.9) for n in range(120)]
    table = make_table(many, many[:40])
    council, equal = (arm["calibration"] for arm in table.as_json()["arms"])
    assert council is not None and council["ece"] == pytest.approx(0.3) and (council["bins"], council["n"]) == (1, 120)
    assert equal is not None and equal["ece"] is None and equal["n"] == 40
    shown = format_table(table)
    assert "0.300 (" in shown and "too few" in shown
    assert "ECE of self-consistency (same tokens as refine): with fewer than 100" in shown
    assert "by chance, refine 0.022 in 1 bin" in " ".join(shown.split())
    assert make_table(answers(9, 9)).as_json()["arms"][0]["calibration"] is None
