"""Shared value types."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from council.types import (
    INVALID_COUNT,
    Absence,
    FinalState,
    Outcome,
    PacketFile,
    Round,
    Seat,
    Statement,
    Usage,
    map_strings,
    parse_token_count,
    repair_surrogates,
)

ALPHA, BETA, GAMMA = Seat("alpha"), Seat("beta"), Seat("gamma")


def statement_of(seat: Seat, text: str = "") -> Statement[None]:
    return Statement(seat, f"draft/{seat.name}", text, None, Outcome("ok", text))


DRAFTS: Round[None] = Round([statement_of(ALPHA, "a"), statement_of(BETA, "b"), statement_of(GAMMA, "c")])


def test_a_round_is_a_mapping_in_seating_order() -> None:
    assert list(DRAFTS) == ["alpha", "beta", "gamma"]
    assert (len(DRAFTS), DRAFTS["beta"].text, "delta" in DRAFTS) == (3, "b", False)
    assert DRAFTS.seats == (ALPHA, BETA, GAMMA)


def test_own_returns_the_seats_statement_and_others_the_rest() -> None:
    assert DRAFTS.own(BETA).text == "b"
    assert [statement.text for statement in DRAFTS.others(BETA)] == ["a", "c"]


def test_others_of_an_absent_seat_are_all_statements() -> None:
    assert len(DRAFTS.others(Seat("chair"))) == 3


@pytest.mark.behaviour("000-leader-sits-out")
def test_seats_but_omits_one_seat_and_keeps_the_order() -> None:
    assert DRAFTS.seats_but("beta") == (ALPHA, GAMMA)
    assert DRAFTS.seats_but("delta") == DRAFTS.seats


@pytest.mark.behaviour("10-absent-improver-keeps-draft")
def test_absent_seats_keep_their_draft_when_a_round_is_revised() -> None:
    gone = Absence(BETA, "timed_out", "no answer")
    later: Round[None] = Round([statement_of(GAMMA, "c2"), statement_of(ALPHA, "a2")], [gone])
    revised = DRAFTS.revised(later)
    assert [(name, revised[name].text) for name in revised] == [("alpha", "a2"), ("beta", "b"), ("gamma", "c2")]
    assert revised.absent == {"beta": gone}
    assert [statement.text for statement in DRAFTS.values()] == ["a", "b", "c"]


def test_an_empty_round_is_false() -> None:
    assert not Round()
    assert Round().absent == {}


def test_an_outcome_round_trips_through_json() -> None:
    outcome = Outcome("ok_repaired", "text", "why", "m", Usage(1, 2, 3), 2, 0.5)
    assert Outcome.from_json(outcome.as_json()) == outcome


@pytest.mark.parametrize(
    ("state", "ok"), [("ok", True), ("ok_repaired", True), ("truncated", False), ("in_doubt", False)]
)
def test_only_the_ok_states_count(state: FinalState, ok: bool) -> None:
    assert Outcome(state).ok is ok


def test_usage_adds_up() -> None:
    assert Usage(1, 2, 3) + Usage(10, 20, 30) == Usage(11, 22, 33)


@pytest.mark.parametrize(
    ("text", "repaired"), [("plain é 🙂", "plain é 🙂"), ("\ud83d\ude42", "🙂"), ("a\ud83db", "a\ufffdb"), ("", "")]
)
def test_surrogates_are_joined_or_replaced(text: str, repaired: str) -> None:
    assert repair_surrogates(text) == repaired


@given(st.text(st.characters(exclude_categories=())))
def test_repaired_text_can_always_be_encoded(text: str) -> None:
    assert repair_surrogates(text).encode() is not None
    assert repair_surrogates(repair_surrogates(text)) == repair_surrogates(text)


def test_the_vendor_of_a_statement_is_that_of_the_member_that_answered() -> None:
    seat = Seat("alpha", member="openai:x", vendor="openai", fallback_vendors=(("openrouter:y", "anthropic"),))
    served = ("", "openai:x", "openrouter:y", "google:z")
    assert [seat.vendor_of(member) for member in served] == ["openai", "openai", "anthropic", "google"]


def test_only_whole_numbers_below_a_billion_are_token_counts() -> None:
    assert [parse_token_count(value) for value in (0, 7, 10**9 - 1)] == [0, 7, 10**9 - 1]
    invalid = (-1, 10**9, True, 1.0, "7", None)
    assert {parse_token_count(value) for value in invalid} == {INVALID_COUNT}


def test_usage_with_an_invalid_count_is_unknown_and_keeps_the_others() -> None:
    assert Usage(1, 2, 3).validated() == Usage(1, 2, 3)
    assert Usage(1, INVALID_COUNT, 3).validated() == Usage(1, 0, 3, known=False)


def test_lines_that_go_back_begin_a_new_block_without_a_gap() -> None:
    file = PacketFile("a.py", "two\nthree\none\n", ranges=((2, 3), (1, 1)), lines=3)
    assert file.list_blocks() == [(1, 1), [(2, "two"), (3, "three")], [(1, "one")], (2, 3)]


def test_a_whole_file_is_one_block_and_an_empty_one_none() -> None:
    assert PacketFile("a.py", "one\ntwo\n").list_blocks() == [[(1, "one"), (2, "two")]]
    assert PacketFile("a.py", "").list_blocks() == []


def test_the_cuts_of_an_earlier_version_tell_material_from_statements() -> None:
    stored = Outcome("ok", "text", cut=("big.py", "the words of Alpha")).as_json()
    assert stored.pop("cut_material") == []
    assert Outcome.from_json(stored).cut_material == ("big.py",)


def test_every_string_of_a_json_value_is_changed_also_the_keys() -> None:
    value = {"a": ["b", ("c", 1)], 2: None}
    assert map_strings(value, str.upper) == {"A": ["B", ["C", 1]], "2": None}
