"""The check of a finished text: readers, corrections that change nothing, and the facts for trust."""

from __future__ import annotations

import pytest

from council.engine.trust import lowest_level
from council.protocols.common.check import (
    Correction,
    Critique,
    FoundError,
    choose_readers,
    list_check_facts,
    review_correction,
)
from council.types import CheckedError, CheckFacts, Seat


@pytest.mark.behaviour("10-check-readers")
@pytest.mark.parametrize(
    ("vendors", "author", "readers"),
    [
        ("abc", "a", ["b", "c"]),
        ("aab", "a", ["c", "b"]),
        ("aaa", "a", ["b", "c"]),
        ("abbc", "a", ["b", "d"]),
        ("ab", "a", ["b"]),
        ("a", "a", []),
    ],
)
def test_readers_are_of_other_vendors_than_the_author_and_of_different_ones(
    vendors: str, author: str, readers: list[str]
) -> None:
    seats = [Seat(name, vendor=vendor) for name, vendor in zip("abcd", vendors, strict=False)]
    chosen = choose_readers(seats, next(seat for seat in seats if seat.name == author))
    assert [seat.name for seat in chosen] == readers


def test_a_chair_outside_the_seats_is_checked_by_two_seats_of_other_vendors() -> None:
    seats = [Seat("a", vendor="x"), Seat("b", vendor="y"), Seat("c", vendor="z")]
    assert [seat.name for seat in choose_readers(seats, Seat("chair", vendor="x"))] == ["b", "c"]


@pytest.mark.parametrize(("words", "shown"), [(120, "word " * 119 + "word"), (121, "word " * 120 + "…")])
def test_a_field_of_an_error_that_is_a_new_answer_is_cut(words: int, shown: str) -> None:
    said = dict.fromkeys(("hits", "flaw", "correction", "harm"), "word " * (words - 1) + "word")
    (error,) = Critique(errors=[FoundError(severity="FATAL", **said)]).counted_errors.values()
    assert (error.hits, error.flaw, error.correction, error.harm) == (shown,) * 4


def row(severity: str, state: str, check: int = 1) -> CheckedError:
    return CheckedError("beta-1", severity, "", "Wrong.", "", "", None, "", state, None, check)  # type: ignore[arg-type]


@pytest.mark.behaviour("10-check-trust")
@pytest.mark.parametrize(
    ("rows", "checks", "kinds", "level"),
    [
        ([], 1, ["checked"], "HIGH"),
        ([row("MINOR", "corrected")], 1, ["checked"], "HIGH"),
        ([row("MINOR", "dismissed")], 1, ["checked"], "HIGH"),
        ([row("MAJOR", "corrected")], 1, ["error_corrected"], "MEDIUM"),
        ([row("MAJOR", "dismissed")], 1, ["error_dismissed"], "MEDIUM"),
        ([row("MAJOR", "open")], 1, ["error_open"], "MEDIUM"),
        ([row("FATAL", "dismissed")], 1, ["error_dismissed_fatal"], "LOW"),
        ([row("FATAL", "open")], 1, ["error_open_fatal"], "CONTESTED"),
        ([row("FATAL", "corrected")], 2, ["checked"], "HIGH"),
        ([row("FATAL", "corrected"), row("MAJOR", "corrected", 2)], 2, ["error_corrected"], "MEDIUM"),
        ([row("FATAL", "corrected"), row("FATAL", "dismissed", 2)], 2, ["error_dismissed_fatal"], "LOW"),
    ],
)
def test_what_became_of_the_errors_limits_trust(
    rows: list[CheckedError], checks: int, kinds: list[str], level: str
) -> None:
    facts = list_check_facts(CheckFacts(("beta", "gamma"), "alpha", tuple(rows), checks, ("beta", "gamma")))
    assert [fact.kind for fact in facts] == kinds
    assert lowest_level(facts) == level


def test_a_text_without_readers_was_not_checked() -> None:
    assert [fact.kind for fact in list_check_facts(CheckFacts((), "alpha"))] == ["not_checked"]


@pytest.mark.behaviour("10-check-length")
@pytest.mark.parametrize(
    ("word_limit", "landed", "replacement", "is_sent_back"),
    [
        (5, True, "It takes six full days now.", True),
        ("5 words", True, "It takes six full days now.", True),
        (6, True, "It takes six full days now.", False),
        (0, True, "It takes six full days now.", False),
        ("none", True, "It takes six full days now.", False),
        (None, True, "It takes six full days now.", False),
        (3, False, "", False),  # nothing is right, so nothing may change
    ],
)
def test_a_corrected_text_above_the_limit_of_the_question_is_sent_back(
    word_limit: object, landed: bool, replacement: str, is_sent_back: bool
) -> None:
    errors = {"beta-1": FoundError(severity="MAJOR", flaw="It takes six days.")}
    edits = [{"issue": "error-1", "find": "It takes five days.", "replace": replacement}] if landed else []
    correction = Correction.model_validate(
        {
            "rulings": [{"issue": "error-1", "landed": landed, "why": "Counted."}],
            "edits": edits,
            "word_limit": word_limit,
        }
    )
    problem = review_correction(correction, errors, "It takes five days.")
    assert ("words, and the question allows" in problem) is is_sent_back
