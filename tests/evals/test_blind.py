"""Blind comparisons: reading a judge's reply, joining two orders, and the summary over questions."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from council.engine.reply import parse_reply
from council.errors import Fault, QuorumLost, UsageError
from council.evals.blind import (
    BlindTable,
    Judgement,
    JudgementRow,
    Outcome,
    Pair,
    Preference,
    choose_judges,
    decide,
    extract_text,
    join_orders,
    read_score,
    require_judge,
    summarize,
)
from council.evals.evaluation import Arm, choose_base, parse_arms
from council.evals.statistics import count_for_test, count_needed_questions, read_interval
from council.settings.member_lookup import Candidate
from council.types import Absence, FinalState, Round, Seat, Statement
from council.types import Outcome as StepOutcome
from tests.render.runs import RunBuilder, plan


def judge(
    outcome: Outcome, score: float | None = None, base_score: float | None = None, *, inconsistent: bool = False
) -> Judgement:
    return {"outcome": outcome, "inconsistent": inconsistent, "score": score, "base_score": base_score}


WON, LOST, TIE = judge("text"), judge("base"), judge("tie")
UNSTABLE = judge("tie", inconsistent=True)


def say(better: str, score_a: float | None = None, score_b: float | None = None) -> Preference:
    return Preference.model_validate({"better": better, "score_a": score_a, "score_b": score_b})


# The reply


@pytest.mark.behaviour("evidence-blind-reply")
@pytest.mark.parametrize(
    ("written", "better"),
    [
        ("A", "A"),
        ("b", "B"),
        ("**Text B**", "B"),
        ("text a.", "A"),
        ("Answer A", "A"),
        ("(B)", "B"),
        ("Tie", "tie"),
        ("neither", "tie"),
        ("equal", "tie"),
        ("No difference.", "tie"),
    ],
)
def test_the_decision_of_a_judge_is_read_as_models_write_it(written: str, better: str) -> None:
    assert parse_reply(Preference, json.dumps({"better": written}), {}).better == better


@pytest.mark.behaviour("evidence-blind-reply")
@pytest.mark.parametrize(
    "text",
    [
        "Text A is clearly better.",
        '{"better": "A or B"}',
        '{"better": "A text"}',
        '{"better": "C"}',
        '{"better": ""}',
        '{"score_a": 8, "score_b": 6}',
        '{"better": "A"} or rather {"better": "B"}',
        '{"better": "A", "score_a": 4, "score_b": 7}',
        '{"better": "B", "score_a": 7.5, "score_b": 7}',
    ],
)
def test_a_reply_that_does_not_tell_is_not_guessed(text: str) -> None:
    with pytest.raises(Fault):
        parse_reply(Preference, text, {})


@pytest.mark.parametrize(
    ("written", "score"),
    [
        (7, 7.0),
        (7.4, 7.5),
        (7.2, 7.0),
        ("8/10", 8.0),
        ("7,5", 7.5),
        ("6.5 out of 10", 6.5),
        ("9 points", 9.0),
        ("10", 10.0),
        (None, None),
        ("good", "good"),
        (True, True),
    ],
)
def test_a_score_is_read_in_halves(written: object, score: object) -> None:
    assert read_score(written) == score


def test_a_score_that_cannot_be_read_is_left_out_and_the_decision_kept() -> None:
    for score in (11, -1, "good", "A"):
        read = parse_reply(Preference, json.dumps({"better": "B", "score_a": score, "score_b": 7}), {})
        assert (read.better, read.score_a, read.score_b) == ("B", None, 7.0)


def test_a_tie_may_have_different_scores() -> None:
    assert parse_reply(Preference, '{"better": "tie", "score_a": 7, "score_b": 7.5}', {}).better == "tie"


# Two orders


@pytest.mark.behaviour("evidence-blind-orders")
@pytest.mark.parametrize(
    ("forward", "swapped", "outcome", "is_inconsistent"),
    [
        ("A", "B", "text", False),
        ("B", "A", "base", False),
        ("A", "A", "tie", True),
        ("B", "B", "tie", True),
        ("tie", "tie", "tie", False),
        ("A", "tie", "tie", False),
        ("tie", "B", "tie", False),
        ("B", "tie", "tie", False),
        ("tie", "A", "tie", False),
    ],
)
def test_a_text_wins_if_it_is_preferred_in_both_orders(
    forward: str, swapped: str, outcome: str, is_inconsistent: bool
) -> None:
    found = join_orders(say(forward), say(swapped))
    assert (found["outcome"], found["inconsistent"]) == (outcome, is_inconsistent)


@pytest.mark.parametrize(
    ("forward", "swapped", "scores"),
    [
        (say("A", 8, 6), say("B", 5, 7), (7.5, 5.5)),
        (say("A", 8, None), say("B", 5, None), (8.0, 5.0)),
        (say("A"), say("B"), (None, None)),
    ],
)
def test_a_score_is_the_mean_of_both_orders(
    forward: Preference, swapped: Preference, scores: tuple[float | None, float | None]
) -> None:
    found = join_orders(forward, swapped)
    assert (found["score"], found["base_score"]) == scores


def make_round(replies: dict[str, Preference | FinalState], cut: Sequence[str] = ()) -> Round[Preference]:
    said = [
        Statement(
            Seat(name), name, "", one, StepOutcome("ok", served_by=f"sim:{name}", cut=("Text A",) * (name in cut))
        )
        for name, one in replies.items()
        if isinstance(one, Preference)
    ]
    gone = [Absence(Seat(name), one, "") for name, one in replies.items() if not isinstance(one, Preference)]
    return Round(said, gone)


@pytest.mark.behaviour("evidence-blind-reply")
def test_a_judge_without_a_whole_reply_in_both_orders_is_absent() -> None:
    forward = make_round({"one": say("A"), "two": "failed(schema)", "three": say("A"), "four": say("A")})
    swapped = make_round({"one": say("B"), "two": say("B"), "three": "timed_out", "four": say("B")}, cut=["four"])
    found = decide(forward, swapped)
    assert [(row["seat"], row["member"], row["outcome"]) for row in found.details["judgements"]] == [
        ("one", "sim:one", "text")
    ]
    assert found.details["absent"] == {"two": "failed(schema)", "three": "timed_out", "four": "cut"}


def test_a_comparison_without_a_judge_is_asked_again_unless_that_would_not_help() -> None:
    unreadable = make_round({"one": "failed(schema)", "two": "refused"})
    require_judge(unreadable)
    assert decide(unreadable, unreadable).details["judgements"] == []
    require_judge(make_round({"one": say("A"), "two": "failed(net)"}))
    with pytest.raises(QuorumLost, match=r"two: failed\(net\)"):
        require_judge(make_round({"one": "failed(schema)", "two": "failed(net)"}))


# Texts and judges


@pytest.mark.behaviour("evidence-blind-names")
@pytest.mark.parametrize(
    ("protocol", "details", "answer", "text"),
    [
        ("solo", {}, "Do it.\n\n## Confidence\n\nHIGH. All agree.", "Do it."),
        (
            "general",
            {
                "sections": [
                    {"name": "decision", "title": "Answer", "text": "Do it [1]."},
                    {"name": "disagreements", "title": "Disagreements", "text": "Alpha says no."},
                    {"name": "sources", "title": "Sources", "text": "[1] example.org"},
                    {"name": "models", "title": "Models", "text": "alpha: opus"},
                ]
            },
            "alpha: opus\n\nDo it [1].\n\n## Disagreements\n\nAlpha says no.\n\n## Sources\n\n[1] example.org",
            "Do it [1].\n\n## Sources\n\n[1] example.org",
        ),
        (
            "advisors",
            {
                "sections": [
                    {"name": "decision", "title": "Verdict", "text": "Do it."},
                    {"name": "next_steps", "title": "Next Steps", "text": "1. Start."},
                    {"name": "perspectives", "title": "Perspectives", "text": "- The Sceptic: no."},
                ]
            },
            "## Verdict\n\nDo it.\n\n## Next Steps\n\n1. Start.\n\n## Perspectives\n\n- The Sceptic: no.",
            "Do it.\n\n## Next Steps\n\n1. Start.",
        ),
    ],
)
def test_a_text_is_compared_without_the_parts_that_name_seats_models_and_trust(
    protocol: str, details: dict[str, object], answer: str, text: str
) -> None:
    minutes = RunBuilder(plan(protocol)).close(answer, details=details).minutes
    assert extract_text(minutes) == text


@pytest.mark.behaviour("evidence-blind-judges")
@pytest.mark.parametrize(
    ("candidates", "members", "judges"),
    [
        (("a:1", "a:2", "b:1", "c:1", "d:1"), (), ["a:1", "b:1", "c:1"]),
        (("a:1", "a:2", "b:1", "c:1"), ("a:1",), ["a:2", "b:1", "c:1"]),
        (("a:1", "a:2", "a:3", "b:1"), ("b:1",), ["a:1", "a:2", "a:3"]),
        (("a:1", "b:1"), ("a:1",), ["b:1"]),
        (("a:1", "b:1"), ("a:1", "b:1"), ["a:1", "b:1"]),
    ],
)
def test_judges_sit_in_no_arm_and_have_different_vendors_where_there_is_a_choice(
    candidates: Sequence[str], members: Sequence[str], judges: list[str]
) -> None:
    assert choose_judges([Candidate(one, one.partition(":")[0]) for one in candidates], members) == judges


@pytest.mark.parametrize(
    ("arms", "wanted", "base"),
    [("single,solo,refine", None, "solo"), ("single,refine", None, "single"), ("single,solo", "single", "single")],
)
def test_the_base_is_the_wanted_arm_or_solo_or_the_first_one(arms: str, wanted: str | None, base: str) -> None:
    assert choose_base(parse_arms(arms, "blind"), wanted) == base


def test_open_questions_have_no_vote() -> None:
    assert parse_arms("solo,refine", "blind") == [Arm("solo", "solo"), Arm("refine", "refine")]
    for arms, problem in (
        ("solo,self-consistency", "votes on short answers"),
        ("solo,self-consistency:samples=3", "votes on short answers"),
        ("solo", '"solo" is the only one'),
    ):
        with pytest.raises(UsageError, match=problem):
            parse_arms(arms, "blind")


# Statistics


def make_pair(*judgements: Judgement, words: int = 100, base_words: int = 100, absent: int = 0) -> Pair:
    rows: list[JudgementRow] = [
        {**one, "seat": f"j{n}", "member": f"sim:j{n}", "replies": []} for n, one in enumerate(judgements)
    ]
    return Pair("r1", words, base_words, rows, absent)


@pytest.mark.behaviour("evidence-blind-summary")
@pytest.mark.parametrize(
    ("pairs", "preference", "counts", "agreement"),
    [
        ([make_pair(WON, WON), make_pair(LOST, LOST)], 0.5, (2, 0, 2, 0), 1.0),
        ([make_pair(WON, TIE), make_pair(WON, LOST)], 0.625, (2, 1, 1, 0), 0.0),
        ([make_pair(UNSTABLE, WON, WON)], 5 / 6, (2, 1, 0, 1), 1 / 3),
        ([make_pair(UNSTABLE, TIE)], 0.5, (0, 2, 0, 1), 1.0),
        ([make_pair(WON), make_pair(LOST), make_pair(WON)], 2 / 3, (2, 0, 1, 0), None),
    ],
)
def test_the_preference_counts_ties_half_over_questions(
    pairs: list[Pair], preference: float, counts: tuple[int, int, int, int], agreement: float | None
) -> None:
    found = summarize(pairs)
    interval = read_interval(found["preference"])
    assert interval and interval.mean == pytest.approx(preference, abs=1e-6) and interval.n == len(pairs)
    assert interval.low <= interval.mean <= interval.high
    assert (found["won"], found["ties"], found["lost"], found["inconsistent"]) == counts
    assert found["comparisons"] == sum(counts[:3])
    assert found["agreement"] == (None if agreement is None else pytest.approx(agreement, abs=1e-4))


def test_absent_judges_are_counted_and_change_no_share() -> None:
    found = summarize([make_pair(WON, absent=2), make_pair(absent=3)])
    assert (found["preference"]["mean"], found["preference"]["n"]) == (1.0, 1)
    assert (found["comparisons"], found["absent"]) == (1, 5)
    empty = summarize([make_pair(absent=3)])
    assert empty["preference"]["mean"] is None and empty["needed_questions"] is None and not empty["decided"]


@pytest.mark.behaviour("evidence-blind-summary")
@pytest.mark.parametrize(
    ("lengths", "count", "preference"),
    [
        ([(100, 100)] * 5, 5, 1.0),
        ([(110, 100)] * 4, 4, None),
        ([(100, 90), (90, 100), (100, 100), (0, 0), (111, 100)], 5, 1.0),
        ([(100, 89), (89, 100), (112, 100), (200, 100)], 0, None),
    ],
)
def test_texts_of_about_equal_length_have_their_own_preference(
    lengths: list[tuple[int, int]], count: int, preference: float | None
) -> None:
    rows = [make_pair(WON, words=words, base_words=base) for words, base in lengths]
    found = summarize([*rows, make_pair(LOST, words=300)])
    shown = found["equal_length"]
    assert shown["n"] == count
    assert (shown["preference"] and shown["preference"]["mean"]) == preference
    assert found["words"] == pytest.approx((sum(words for words, _ in lengths) + 300) / (len(lengths) + 1), abs=1e-4)
    assert found["base_words"] == pytest.approx((sum(base for _, base in lengths) + 100) / (len(lengths) + 1), abs=1e-4)


def test_scores_are_means_over_questions_of_judges_that_scored_both() -> None:
    first = make_pair(judge("text", 8, 6), judge("text", 6, 4), judge("text", 9, None))
    second = make_pair(judge("base", 3, 5), absent=1)
    found = summarize([first, second, make_pair(TIE)])
    assert (found["score"], found["base_score"]) == (5.0, 5.0)


@pytest.mark.behaviour("evidence-power")
def test_the_needed_questions_of_a_preference_are_those_of_the_difference_of_both_shares() -> None:
    shares = [1.0] * 20 + [0.0] * 12 + [0.5] * 3
    found = summarize([make_pair({1.0: WON, 0.0: LOST, 0.5: TIE}[share]) for share in shares])
    need = count_needed_questions([2 * share - 1 for share in shares])
    assert (found["needed_questions"], found["least_questions"]) == need and not found["decided"]
    assert need.observed == count_for_test(20 / 35, 12 / 35)


@pytest.mark.parametrize(("won", "lost", "is_decided"), [(30, 4, True), (4, 30, True), (18, 16, False), (25, 4, False)])
def test_a_preference_is_decided_by_enough_questions_interval_and_test(won: int, lost: int, is_decided: bool) -> None:
    assert summarize([make_pair(WON)] * won + [make_pair(LOST)] * lost)["decided"] is is_decided


# Conclusions


@pytest.mark.behaviour("evidence-blind-judges", "evidence-blind-summary", "evidence-conclusion")
def test_the_conclusions_say_what_is_preferred_and_what_weakens_it() -> None:
    pairs = {
        **{f"q{n}": make_pair(WON, WON, words=150) for n in range(30)},
        **{f"p{n}": make_pair(UNSTABLE, WON, absent=1) for n in range(3)},
    }
    found = BlindTable("solo", {"refine": pairs}, {"solo": ["sim:s"], "refine": ["sim:j0", "sim:r"]}, 2)
    (decided,) = found.conclusions({"refine": 2.0, "solo": 1.0})
    assert decided.what_to_do.startswith("Prefer refine ") and decided.what_to_do.endswith("solo costs less.")
    assert "refine is preferred to solo" in decided.how_sure and "prefer refine in 98 % (" in decided.how_sure
    assert (
        "p < .001" in decided.how_sure
        and "refine cost $2.00 and solo cost $1.00: 2 times as much as solo" in decided.cost
    )
    lengths, orders, absent, missing, shared = found.notes()
    assert "refine has 145 words on average and solo 100" in lengths and "lengths: 3, too few" in lengths
    assert orders.startswith("refine: 3 of 66 comparisons changed with the order") and "count as ties" in orders
    assert absent.startswith("refine: 3 of 69 comparisons could not be read")
    assert missing.startswith("2 comparisons are missing")
    assert "sim:j0 in refine" in shared and "sim:j1" not in shared
    (few,) = BlindTable("solo", {"refine": {"q": make_pair(WON, LOST)}}, {}).conclusions({})
    assert few.what_to_do.startswith("Decide nothing yet. 1 question: too few")
    assert "cannot be told apart" in few.how_sure and "no price is known for refine and solo" in few.cost
    nothing = BlindTable("solo", {"refine": {}}, {})
    assert nothing.conclusions({}) == [] and "nothing is concluded" in nothing.notes()[0]


@pytest.mark.behaviour("evidence-conclusion", "evidence-power")
def test_an_open_preference_says_how_many_questions_decide_it() -> None:
    pairs = {f"q{n}": make_pair(WON if n % 5 < 3 else LOST) for n in range(40)}
    (found,) = BlindTable("solo", {"refine": pairs}, {}).conclusions({"refine": 1.0, "solo": 1.0})
    assert found.what_to_do.startswith("Not decided: refine is not shown to be preferred")
    assert found.what_would_change_it.startswith("About 164 more questions: if the true difference")
    assert "(80 % power)" in found.what_would_change_it
