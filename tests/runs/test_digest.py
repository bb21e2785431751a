"""Digest of a run without a chair."""

from __future__ import annotations

import pytest

from council.runs.outcome import EXCERPT_WORDS, build_digest
from council.types import Outcome, Seat, Statement
from council.wording import load_wording

ENGLISH = load_wording("en")


def said(name: str, text: str, role: str = "") -> Statement[None]:
    return Statement(Seat(name, role), f"draft/{name}", text, None, Outcome("ok", text))


def test_the_digest_says_that_there_was_no_chair_and_no_weighing() -> None:
    text = build_digest("chair", {"alpha": said("alpha", "Tabs.", "Deep Explorer")}, [], ENGLISH)
    assert text.startswith("## No chair: digest of statements\n")
    assert "These statements have not been weighed against each other." in text
    assert text.endswith("### Alpha (Deep Explorer)\n\nTabs.")


def test_every_position_has_a_heading_without_empty_brackets() -> None:
    text = build_digest("quorum", {"alpha": said("alpha", "Tabs."), "beta": said("beta", "Spaces.")}, [], ENGLISH)
    assert "### Alpha\n\nTabs.\n\n### Beta\n\nSpaces." in text
    assert "Tally" not in text


def test_a_long_statement_is_truncated_at_a_word_and_marked() -> None:
    words = [f"w{n}" for n in range(EXCERPT_WORDS + 1)]
    text = build_digest("chair", {"alpha": said("alpha", " ".join(words))}, [], ENGLISH)
    assert text.endswith(f"{words[EXCERPT_WORDS - 1]} …")
    exact = build_digest("chair", {"alpha": said("alpha", " ".join(words[:-1]))}, [], ENGLISH)
    assert exact.endswith(words[EXCERPT_WORDS - 1])


@pytest.mark.parametrize(
    ("tally", "dissent"),
    [
        ([("alpha", "PASS"), ("beta", "PASS"), ("gamma", "FAIL")], ["- Gamma: FAIL"]),
        ([("alpha", "PASS"), ("beta", "FAIL")], []),  # a tie has no majority
        ([("alpha", "PASS"), ("beta", "PASS")], []),
        ([("a", "P"), ("b", "P"), ("c", "P"), ("d", "F"), ("e", "W")], ["- D: F", "- E: W"]),
    ],
)
def test_the_tally_lists_all_seats_and_dissent_lists_the_minority(
    tally: list[tuple[str, str]], dissent: list[str]
) -> None:
    text = build_digest("chair", {}, tally, ENGLISH)
    assert all(f"- {seat.capitalize()}: {stance}" in text for seat, stance in tally)
    assert text.partition("### Dissent\n\n")[2].splitlines() == dissent


def test_a_role_equal_to_the_name_is_shown_once() -> None:
    text = build_digest("chair", {name: said(name, "Yes.", role) for name, role in [("skeptic", "Skeptic"), ("domain_expert", "Domain expert"), ("cfo", "Head of Finance")]}, [], ENGLISH)  # fmt: skip
    assert [line for line in text.splitlines() if line.startswith("### ")] == [
        "### Skeptic",
        "### Domain expert",
        "### Cfo (Head of Finance)",
    ]


@pytest.mark.parametrize("second", ["PASS", "FAIL"])
def test_without_a_minority_there_is_no_heading_for_dissent(second: str) -> None:
    statements = {name: said(name, "Tabs.") for name in ("alpha", "beta")}
    text = build_digest("chair", statements, [("alpha", "PASS"), ("beta", second)], ENGLISH)
    assert ENGLISH.heading("tally") in text and ENGLISH.heading("dissent") not in text
