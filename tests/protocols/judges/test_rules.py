"""Combining verdicts."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations_with_replacement, permutations, product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from council.protocols.judges.rules import (
    CONFIDENCE_ORDER,
    ConfidenceLevel,
    Consensus,
    Vote,
    cap_verdict,
    count_effective_votes,
    decide_by_consensus,
    decide_by_corroboration,
    has_converged,
    is_weak_flip,
)
from council.types import VERDICT_ORDER, VerdictWord

WORDS: tuple[VerdictWord, ...] = ("PASS", "WARN", "FAIL")
FAMILIES = ("anthropic", "openai")


def vote(
    seat: str, verdict: VerdictWord, vendor: str = "anthropic", confidence: ConfidenceLevel = "HIGH", state: str = "ok"
) -> Vote:
    return Vote(seat, vendor, verdict, confidence, state)


def panel(*verdicts: VerdictWord, vendor: str = "anthropic") -> list[Vote]:
    return [vote(f"{vendor}-{n}", verdict, vendor) for n, verdict in enumerate(verdicts)]


VOTES = st.lists(
    st.builds(
        Vote,
        seat=st.text("abcdef", min_size=1, max_size=4),
        vendor=st.sampled_from([*FAMILIES, "google"]),
        verdict=st.sampled_from(WORDS),
        confidence=st.sampled_from(CONFIDENCE_ORDER),
    ),
    max_size=8,
    unique_by=lambda one: one.seat,
)


# The table


def expected(first: tuple[VerdictWord, ...], second: tuple[VerdictWord, ...], mixed: bool) -> str:
    """Independent implementation of the specified rule."""

    def family(verdicts: tuple[VerdictWord, ...]) -> str:
        if all(verdict == "PASS" for verdict in verdicts):
            return "PASS"
        return "FAIL" if verdicts.count("FAIL") else "WARN"

    split = first and second and {family(first), family(second)} == {"PASS", "FAIL"}
    return "DISAGREE" if mixed and split else family(first + second)


def every_panel() -> Iterator[tuple[tuple[VerdictWord, ...], tuple[VerdictWord, ...]]]:
    """Yield every panel of up to four judges in each of two families."""
    sizes = [(a, b) for a in range(5) for b in range(5) if a + b]
    for a, b in sizes:
        yield from product(combinations_with_replacement(WORDS, a), combinations_with_replacement(WORDS, b))


@pytest.mark.behaviour("20-consensus-table")
@pytest.mark.parametrize("mixed", [False, True])
def test_the_whole_table_over_up_to_four_judges_of_two_families(mixed: bool) -> None:
    rows = 0
    for first, second in every_panel():
        votes = panel(*first) + panel(*second, vendor="openai")
        assert decide_by_consensus(votes, mixed=mixed).verdict == expected(first, second, mixed), (first, second)
        rows += 1
    assert rows == 35 * 35 - 1  # multisets of 0 to 4 of three verdicts, for two families, without the empty panel


@pytest.mark.behaviour("20-consensus-table")
@pytest.mark.parametrize(
    ("verdicts", "overall"),
    [
        (("PASS", "PASS"), "PASS"),
        (("PASS", "WARN"), "WARN"),
        (("WARN", "WARN"), "WARN"),
        (("PASS", "FAIL"), "FAIL"),
        (("PASS", "WARN", "FAIL"), "FAIL"),
        (("FAIL", "FAIL"), "FAIL"),
    ],
)
def test_all_pass_any_fail_and_mixed_verdicts(verdicts: tuple[VerdictWord, ...], overall: str) -> None:
    assert decide_by_consensus(panel(*verdicts), mixed=False).verdict == overall


def test_without_votes_there_is_no_verdict() -> None:
    assert decide_by_consensus([], mixed=True) == Consensus()


@pytest.mark.behaviour("20-disagree")
def test_families_that_say_pass_and_fail_disagree_and_both_positions_are_kept() -> None:
    split = decide_by_consensus(panel("PASS", "PASS") + panel("PASS", "FAIL", vendor="openai"), mixed=True)
    assert (split.verdict, split.families) == ("DISAGREE", {"anthropic": "PASS", "openai": "FAIL"})
    assert split.holders == ("anthropic-0", "anthropic-1", "openai-1")


@pytest.mark.behaviour("20-disagree")
def test_without_mixed_two_families_never_disagree() -> None:
    assert decide_by_consensus(panel("PASS") + panel("FAIL", vendor="openai"), mixed=False).verdict == "FAIL"


@pytest.mark.behaviour("20-disagree")
def test_a_split_inside_one_family_counts_as_fail_not_disagree() -> None:
    assert decide_by_consensus(panel("PASS", "FAIL") + panel("FAIL", vendor="openai"), mixed=True).verdict == "FAIL"


@pytest.mark.behaviour("20-disagree")
def test_a_warning_family_against_a_failing_one_is_a_fail() -> None:
    assert decide_by_consensus(panel("WARN") + panel("FAIL", vendor="openai"), mixed=True).verdict == "FAIL"


# Confidence


@pytest.mark.behaviour("20-overall-confidence")
def test_the_overall_confidence_is_the_lowest_among_the_holders() -> None:
    votes = [vote("a", "FAIL", confidence="MEDIUM"), vote("b", "FAIL"), vote("c", "PASS", confidence="LOW")]
    ruled = decide_by_consensus(votes, mixed=False)
    assert (ruled.verdict, ruled.confidence, ruled.holders) == ("FAIL", "MEDIUM", ("a", "b"))


@pytest.mark.behaviour("20-overall-confidence")
def test_a_truncated_reply_counts_with_low_confidence() -> None:
    assert decide_by_consensus([vote("a", "PASS", state="truncated")], mixed=False).confidence == "LOW"


# Properties


@pytest.mark.behaviour("20-consensus-table")
@given(VOTES, st.booleans(), st.randoms())
def test_the_order_of_the_judges_does_not_matter(votes: list[Vote], mixed: bool, random: Any) -> None:
    shuffled = random.sample(votes, len(votes))
    assert decide_by_consensus(shuffled, mixed=mixed) == decide_by_consensus(votes, mixed=mixed)


@pytest.mark.behaviour("20-consensus-table")
@given(VOTES, st.booleans(), st.sampled_from([*FAMILIES, "google", "meta"]))
def test_one_more_fail_never_improves_the_verdict(votes: list[Vote], mixed: bool, vendor: str) -> None:
    before = decide_by_consensus(votes, mixed=mixed).verdict or "PASS"
    after = decide_by_consensus([*votes, vote("one more", "FAIL", vendor)], mixed=mixed).verdict or "PASS"
    assert VERDICT_ORDER.index(after) >= VERDICT_ORDER.index(before)


@pytest.mark.behaviour("20-only-ok-seats-vote")
@given(
    VOTES,
    st.booleans(),
    st.sampled_from(WORDS),
    st.sampled_from(["timed_out", "failed(server)", "refused", "degenerate", "in_doubt", "skipped(budget)"]),
)
def test_an_absent_seat_never_counts(votes: list[Vote], mixed: bool, verdict: VerdictWord, state: str) -> None:
    absent = vote("absent", verdict, "meta", state=state)
    assert decide_by_consensus([*votes, absent], mixed=mixed) == decide_by_consensus(votes, mixed=mixed)
    assert decide_by_corroboration([*votes, absent], mixed=mixed) == decide_by_corroboration(votes, mixed=mixed)
    assert count_effective_votes([*votes, absent]) == count_effective_votes(votes)


@given(VOTES, st.booleans())
def test_every_holder_voted_for_the_verdict(votes: list[Vote], mixed: bool) -> None:
    ruled = decide_by_consensus(votes, mixed=mixed)
    held = {one.verdict for one in votes if one.seat in ruled.holders}
    assert held == ({"PASS", "FAIL"} if ruled.verdict == "DISAGREE" else {ruled.verdict} - {None})


def test_all_orders_of_one_panel_give_the_same_consensus() -> None:
    votes = [vote("a", "PASS"), vote("b", "WARN", "openai", "LOW"), vote("c", "FAIL", "openai")]
    assert len({str(decide_by_consensus(order, mixed=True)) for order in permutations(votes)}) == 1


# Corroboration


@pytest.mark.behaviour("20-rule-corroborated")
def test_a_fail_without_evidence_becomes_a_warning_and_its_judge_is_named() -> None:
    ruled = decide_by_corroboration(panel("PASS", "FAIL"), mixed=False)
    assert (ruled.verdict, ruled.weakened) == ("WARN", ("anthropic-1",))


@pytest.mark.behaviour("20-rule-corroborated")
@pytest.mark.parametrize("evidence", [{"verified": ["anthropic-1"]}, {"survived": ["anthropic-1"]}])
def test_a_verified_location_or_a_survived_challenge_supports_a_fail(evidence: dict[str, list[str]]) -> None:
    ruled = decide_by_corroboration(panel("PASS", "FAIL"), mixed=False, **evidence)
    assert (ruled.verdict, ruled.weakened) == ("FAIL", ())


@pytest.mark.behaviour("20-rule-corroborated")
def test_evidence_of_a_passing_judge_does_not_support_a_fail() -> None:
    assert decide_by_corroboration(panel("PASS", "FAIL"), mixed=False, verified=["anthropic-0"]).verdict == "WARN"


@pytest.mark.behaviour("20-rule-corroborated")
def test_a_second_family_supports_a_fail_and_a_second_judge_of_the_same_family_does_not() -> None:
    assert decide_by_corroboration(panel("FAIL") + panel("FAIL", vendor="openai"), mixed=True).verdict == "FAIL"
    assert decide_by_corroboration(panel("FAIL", "FAIL"), mixed=False).verdict == "WARN"


@pytest.mark.behaviour("20-rule-corroborated")
def test_a_fail_without_evidence_is_not_a_disagreement() -> None:
    votes = panel("PASS") + panel("FAIL", vendor="openai")
    assert decide_by_corroboration(votes, mixed=True).verdict == "WARN"
    assert decide_by_corroboration(votes, mixed=True, verified=["openai-0"]).verdict == "DISAGREE"


@given(VOTES, st.booleans(), st.sets(st.text("abcdef", min_size=1, max_size=4)))
def test_corroboration_never_makes_a_verdict_worse(votes: list[Vote], mixed: bool, verified: set[str]) -> None:
    plain = decide_by_consensus(votes, mixed=mixed).verdict or "PASS"
    asked = decide_by_corroboration(votes, mixed=mixed, verified=verified).verdict or "PASS"
    assert VERDICT_ORDER.index(asked) <= VERDICT_ORDER.index(plain)


# Coverage cap


@pytest.mark.behaviour("20-coverage-cap")
@pytest.mark.parametrize(("holes", "empty"), [(["a.py"], False), ([], True), (["a.py"], True)])
def test_a_hole_or_an_empty_packet_caps_the_verdict_at_warn(holes: list[str], empty: bool) -> None:
    assert [cap_verdict(verdict, holes, empty) for verdict in VERDICT_ORDER] == ["WARN", "WARN", "DISAGREE", "FAIL"]


def test_a_complete_packet_does_not_cap_the_verdict() -> None:
    assert [cap_verdict(verdict, [], False) for verdict in (*VERDICT_ORDER, None)] == [*VERDICT_ORDER, None]


# Effective votes


@pytest.mark.behaviour("60-effective-votes")
@pytest.mark.parametrize(
    ("votes", "worth"),
    [
        ([], 0),
        (panel("PASS"), 1),
        (panel("PASS", "PASS"), 1.25),
        (panel(*["PASS"] * 9), 1.55),  # type: ignore[arg-type]
        (panel("PASS") + panel("PASS", vendor="openai"), 2),
        (panel("PASS", "PASS", "PASS") + panel("PASS", "PASS", "PASS", vendor="openai"), 2.73),
    ],
)
def test_judges_of_one_family_count_little_more_than_one(votes: list[Vote], worth: float) -> None:
    assert count_effective_votes(votes) == worth


# Debate


@pytest.mark.behaviour("20-weak-flip")
@pytest.mark.parametrize(
    "cited",
    ["", "Good point by judge-2.", "I am persuaded by the other judges and now agree.", "I missed your point, it is a strong one."],
)  # fmt: skip
def test_a_changed_verdict_that_cites_nothing_is_weak(cited: str) -> None:
    assert is_weak_flip("PASS", "FAIL", cited)


@pytest.mark.behaviour("20-weak-flip")
@pytest.mark.parametrize(
    "cited",
    [
        "The check at src/auth.py:12 comes too late.",
        "See auth.py#L40.",
        "Line 7 returns before the lock is taken.",
        "`parse()` swallows the error.",
        "I misread the condition.",
        "My first verdict was wrong about the default.",
        "That was a factual error.",
        "An empty list is an edge case I had not considered.",
        "There is no test for the rollback.",
        "I overlooked the error path.",
    ],
)
def test_a_location_the_judges_error_or_a_missed_case_is_a_reason(cited: str) -> None:
    assert not is_weak_flip("PASS", "FAIL", "", cited)


def test_an_unchanged_verdict_is_not_a_flip() -> None:
    assert not is_weak_flip("WARN", "WARN")


@pytest.mark.behaviour("20-convergence")
@pytest.mark.parametrize(
    ("r1", "r2", "answer"),
    [
        (["PASS", "FAIL"], ["FAIL", "FAIL"], True),
        (["PASS", "PASS"], ["PASS", "PASS"], False),
        (["PASS", "FAIL"], ["PASS", "FAIL"], False),
        (["PASS", "PASS"], ["WARN", "WARN"], False),
        (["PASS", "FAIL"], [], False),
    ],
)
def test_convergence_is_a_split_that_became_unanimous(r1: list[str], r2: list[str], answer: bool) -> None:
    assert has_converged(r1, r2) is answer
