"""What an item of a list says: that the list is empty, or a point."""

from __future__ import annotations

import pytest

from council.answer_text import says_none

# The first 32 and 19 were written before the rule was measured: it recognised 22 and mistook none. The next 20 and 15
# came after a first correction: 13 and none.
NO_POINT = (
    "None",
    "none.",
    "N/A",
    "No contested points.",
    "No significant disagreements.",
    "There are no contradictions between the drafts.",
    "None identified.",
    "No points of contention.",
    "Nothing substantive.",
    "All drafts agree.",
    "No real tension.",
    "No material conflict between the advisors.",
    "None — all three drafts reach the same conclusion.",
    "No disagreement on the conclusion.",
    "(none)",
    "- none",
    "**None**",
    "None of note",
    "No conflicts were found.",
    "There is no dispute.",
    "No meaningful differences remain.",
    "None; the advisors agree.",
    "Keine.",
    "Keine Widersprüche.",
    "Aucun désaccord.",
    "Ninguno",
    "无",
    "なし",
    "No open points",
    "no contested conclusions",
    "There is nothing contested.",
    "No key disagreements among the drafts",
    "No notable disagreements",
    "None whatsoever",
    "None that would change the decision.",
    "no contested points remain",
    "No actual conflict",
    "Nothing contested.",
    "There were no disagreements.",
    "None at this time",
    "No contested conclusions between the drafts.",
    "The drafts agree.",
    "All three advisors agree.",
    "None. All three drafts agree.",
    "No fundamental tension between the positions",
    "none found",
    "Es gibt keine Widersprüche.",
    "Pas de désaccord.",
    "Sin desacuerdos",
    "No conflicts identified",
    "No unresolved disagreements",
    "None, the seats agree.",
)
POINTS = (
    "No license allows resale",
    "None of the drafts says who pays",
    "No backup exists: alpha says it is fine, beta says it is not",
    "Nothing prevents two bookings: who is right?",
    "No conflict with GDPR (alpha) or a conflict (gamma)",
    "No difference in cost, says beta; a factor of two, says alpha",
    "No issue tracker is needed",
    "No tension between cost and speed exists for alpha; beta disagrees",
    "No point in time is safe for the move",
    "There are no tests: alpha wants them first, beta later",
    "None or one replica",
    "No, says alpha; yes, says beta",
    "no differences in latency below 10 ms",
    "Whether none of them is safe",
    "No dispute resolution clause",
    "No conflict of interest was checked",
    "Not enough capacity",
    "Nonessential features",
    "No contradictions of the licence were tolerated by beta",
    "No agreement on the date: alpha May, beta June",
    "Nothing is said about cost by beta",
    "None of them mentions refunds",
    "No conflict for alpha, a conflict for gamma",
    "The drafts agree on price but not on date",
    "All drafts agree that a queue is needed",
    "No difference between REST and gRPC matters (beta); it matters (gamma)",
    "No points system",
    "No issue with latency",
    "The advisors agree that it is risky",
    "No conclusions can be drawn from the pilot",
    "No question of law is open, says alpha only",
    "Both say May",
    "The members say the same about cost but differ on time",
    "No single region is enough",
)


@pytest.mark.behaviour("10-none-is-no-point")
@pytest.mark.parametrize("text", NO_POINT)
def test_an_item_that_says_there_is_no_point_is_none(text: str) -> None:
    assert says_none(text)


@pytest.mark.behaviour("10-none-is-no-point")
@pytest.mark.parametrize("text", POINTS)
def test_a_point_that_begins_with_no_stays_a_point(text: str) -> None:
    assert not says_none(text)


@pytest.mark.behaviour("10-none-is-no-point")
def test_a_long_text_is_read_in_linear_time() -> None:
    assert not says_none("no " * 100_000 + "x")
