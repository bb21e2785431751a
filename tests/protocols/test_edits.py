"""Edits as models write them: copied with other quotes, dashes, line breaks or marks, too short, or not at all."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from council.protocols.common.check import Edit, EditedText, apply_edits, find_places


def edited_text(text: str, *edits: tuple[str, str]) -> EditedText:
    return apply_edits(text, [Edit(issue="error-1", find=find, replace=replace) for find, replace in edits])


TEXT = """## Plan

**Upgrade** on Sunday at 02:00 – the switch takes 12 minutes.

1. Take a backup of both servers.
2. Don't start the "new" server before step 1.

| step | minutes |
|---|---|
| switch | 12 |
"""


@pytest.mark.behaviour("10-check-edits")
@pytest.mark.parametrize(
    ("find", "replace", "line"),
    [
        (
            "the switch takes 12 minutes",
            "the switch takes 8 minutes",
            "**Upgrade** on Sunday at 02:00 – the switch takes 8 minutes.",
        ),
        ("Upgrade on Sunday", "Upgrade on Monday", "Upgrade on Monday at 02:00 – the switch takes 12 minutes."),
        ("at 02:00 - the switch takes 12 minutes.", "at 02:00.", "**Upgrade** on Sunday at 02:00."),
        ("Don’t start the “new” server", "Start the new server", "2. Start the new server before step 1."),
        ("| switch | 12 |", "| switch | 8 |", "| switch | 8 |"),
        ("| switch  |  12 |", "| switch | 8 |", "| switch | 8 |"),
        ("servers.\n2. Don't", "servers. Test it.\n2. Don't", "1. Take a backup of both servers. Test it."),
        ("1. Take a backup of both servers.", "", '2. Don\'t start the "new" server before step 1.'),
    ],
)
def test_an_edit_finds_its_words_in_spite_of_other_marks(find: str, replace: str, line: str) -> None:
    edited = edited_text(TEXT, (find, replace))
    assert edited.problems == {}
    assert line in edited.text.splitlines()


@pytest.mark.behaviour("10-check-edits")
@pytest.mark.parametrize(
    ("find", "problem"),
    [
        ("12", 'the words "12" occur 2 times'),
        ("the switch takes 13 minutes", 'the words "the switch takes 13 minutes" are not in the text'),
        ("", 'the words "" are not in the text'),
        ("…", 'the words "…" are not in the text'),
        ("backup of all servers", 'the words "backup of all servers" are not in the text'),
    ],
)
def test_an_edit_whose_place_is_not_clear_changes_nothing(find: str, problem: str) -> None:
    edited = edited_text(TEXT, (find, "8"))
    assert edited.text == TEXT
    assert edited.problems == {0: problem}


def test_edits_are_made_in_order_and_a_bad_one_does_not_stop_the_others() -> None:
    edited = edited_text("one two three", ("one", "1"), ("zero", "0"), ("two three", "2 3"))
    assert edited.text == "1 2 3"
    assert list(edited.problems) == [1]


@given(st.text(max_size=60), st.text(max_size=60), st.text(min_size=1, max_size=20))
def test_words_that_occur_once_are_replaced_and_the_rest_stays(before: str, after: str, find: str) -> None:
    text = f"{before}{find}{after}"
    places = find_places(text, find)
    edited = edited_text(text, (find, "\0new\0"))
    if len(places) == 1:
        start, end = places[0]
        assert edited.text == f"{text[:start]}\0new\0{text[end:]}"
    else:
        assert edited.text == text
