"""The arm that votes on short answers."""

from __future__ import annotations

import pytest

from council.evals.sampling import VoteOptions, decide
from council.types import Outcome, Round, Seat, Statement


def poll(*texts: str) -> list[Round[None]]:
    """Return a round for each text of one seat."""
    outcome = Outcome("ok", served_by="sim:one")
    return [Round([Statement(Seat("alpha"), f"s{n}/alpha", text, None, outcome)], []) for n, text in enumerate(texts)]


@pytest.mark.behaviour("evidence-votes-abstain")
def test_an_ambiguous_answer_abstains_and_equal_ones_are_one_vote() -> None:
    said = poll("Answer: 1,200", "So it is 1.2k.", "Answer: 7 or 8", "I cannot say.", "Answer: 900")
    found = decide(VoteOptions(grader="numeric"), said, "How many?")
    assert (found.details["answer"], found.details["share"], found.details["tied"]) == ("1200", 0.666667, False)
    assert [(row["answer"], row["ambiguous"]) for row in found.details["votes"]] == [
        ("1200", False),
        ("1200", False),
        ("", True),
        ("", False),
        ("900", False),
    ]


def test_the_order_of_a_list_does_not_split_the_vote_if_it_is_a_set() -> None:
    said = poll("Answer: red, blue", "Answer: blue and red", "Answer: red, green")
    assert decide(VoteOptions(items="set"), said, "Which colours?").details["answer"] == "blue, red"
    assert decide(VoteOptions(items="ordered"), said, "Which colours?").details["tied"]
