"""The chair's notes: reading them, and removing them from answers and streams."""

from __future__ import annotations

import json
import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from council.engine.notes import parse_notes, response_names, seat_names
from council.notes_filter import (
    NotesFilter,
    ends_in_notes,
    find_answer,
    load_notes,
    read_block,
    split_notes,
    without_notes,
)
from council.protocols.collaborative import SEATS
from council.types import Seat
from tests.paths import DATA

NOTES = tomllib.loads((DATA / "trust" / "notes.toml").read_text(encoding="utf-8"))["case"]


@pytest.mark.behaviour("10-notes-tolerant")
@pytest.mark.parametrize("case", NOTES, ids=lambda case: case["name"])
def test_notes_are_read_and_stripped(case: dict[str, Any]) -> None:
    text = case["text"].lstrip("\n")
    assert without_notes(text) == case["answer"].lstrip("\n")
    notes = parse_notes(text, seat_names(SEATS))
    assert (notes is not None) == case.get("readable", True)
    if notes is None:
        return
    shared = None if case["shared"] == "none" else case["shared"]
    assert notes["recommendation_shared_by"] == shared
    assert notes["agreed"] == case.get("agreed", [])
    assert [one["point"] for one in notes["contested"]] == case.get("contested", [])
    assert [side["seat"] for one in notes["contested"] for side in one["sides"]] == case.get("sides", [])
    assert [one["seat"] for one in notes["unique"]] == case.get("unique", [])
    assert notes["closest_draft"] == case.get("closest")


def test_anonymous_labels_become_seats() -> None:
    text = '```council-notes\n{"agreed": ["Response A is right"], "recommendation_shared_by": ["Response B", "A"]}\n```'
    labels = {"A": "gamma", "B": "alpha"}
    notes = parse_notes(text, response_names(labels), {"A": "Gamma", "B": "Alpha"})
    assert notes is not None
    assert notes["agreed"] == ["Gamma is right"]
    assert notes["recommendation_shared_by"] == ["alpha", "gamma"]


def test_notes_with_hostile_text_are_one_clean_line() -> None:
    notes = parse_notes('```council-notes\n{"agreed": ["a\\u001b[31m\\n\\nb\\u0000"]}\n```', {})
    assert notes is not None and notes["agreed"] == ["a b"]
    deep = "[" * 100_000
    assert parse_notes(f'```council-notes\n{{"agreed": {deep}}}\n```', {}) is None


@pytest.mark.parametrize(
    ("text", "notes"),
    [
        ('> {"agreed": ["a"],\n>\n> "contested": []}\n', {"agreed": ["a"], "contested": []}),  # a quotation
        ('[{"agreed": ["a"], "contested": []}]', {"agreed": ["a"], "contested": []}),
        ('{"x": 1, "council_notes": {"agreed": ["a"]}}', {"agreed": ["a"]}),
        ('{"x": {"agreed": ["a"], "contested": []}, "y": {"z": 1}}', {"agreed": ["a"], "contested": []}),
        ("agreed:\n  - a\ncontested:\n  - point: b\n", {"agreed": ["a"], "contested": [{"point": "b"}]}),  # YAML
        ("agreed:\n- a\n- none\n\ncontested: [b", {"agreed": ["a"], "contested": ["[b"]}),
        ("**Agreed**\n- a\n", {"agreed": ["a"]}),
        ("<agreed>\n- a\n\n- none\n</agreed>", {"agreed": ["a"]}),
        ("a line\nand another", None),
    ],
)
def test_a_block_is_read_in_the_notation_that_it_has(text: str, notes: dict[str, Any] | None) -> None:
    assert load_notes(text) == notes


@pytest.mark.parametrize(
    ("text", "reading"),
    [
        ('{"agreed": ["a"], "joined": ["B"]}', (False, "", None)),  # `joined` is a usual word in data
        ('{"answer": "A.", "agreed": ["x"], "contested": []}', (True, "A.", '{"agreed": ["x"], "contested": []}')),
        ('{"answer": "A.", "notes": {"agreed": ["x"], "unique": []}}', (True, "A.", '{"agreed": ["x"], "unique": []}')),
        ('{"answer": "A.\\n```council-notes\\n{}\\n```"}', (True, "A.", "\n{}\n")),
        ('{"answer": "A. All agreed."}', (False, "", None)),
        ('{"answer": "A.", "agreed": ["x], "contested": }', (True, "A.", None)),  # an object that cannot be read
        ("agreed: a\ncontested: b", (True, "", None)),
        ("agreed: a\nAgreed: b", (False, "", None)),
    ],
)
def test_two_keys_make_a_block_notes_and_its_answer_is_kept(text: str, reading: tuple[bool, str, str | None]) -> None:
    assert read_block(text) == reading


def test_an_answer_may_be_a_list_of_paragraphs() -> None:
    assert find_answer({"x": 1, "answer": ["a", "b"]}) == "a\n\nb"
    assert find_answer({"answer": " ", "text": "c"}) == "c"
    assert find_answer({"answer": ["a", 1]}) == ""


@pytest.mark.behaviour("10-notes-stream")
@pytest.mark.parametrize(
    ("pieces", "shown"),
    [
        (["The", " answer"], ["", "The answer"]),  # it may become "the notes"
        (["We", " say"], ["We", " say"]),
        (["```python\n", "print(1)", "\n"], ["", "```python\nprint(1)", "\n"]),
        (["```\ncouncil-notes\n", "free text", "\n```\n"], ["", "", ""]),
        (['{"a": "' + "x" * 2_100, "y"], ['{"a": "' + "x" * 2_100, "y"]),
        (["<details>\n" + "x" * 2_100, "y"], ["<details>\n" + "x" * 2_100, "y"]),
        (['{"answer": "' + "x" * 2_100, "y"], ["", ""]),
        (['{"agreed": "' + "x" * 2_100, "y"], ["", ""]),
    ],
)
def test_text_that_cannot_become_notes_is_shown_while_it_arrives(pieces: list[str], shown: list[str]) -> None:
    notes = NotesFilter()
    assert [notes.feed(piece) for piece in pieces] == shown


def stream(pieces: list[str]) -> tuple[str, list[str]]:
    notes = NotesFilter()
    return "".join([*map(notes.feed, pieces), notes.flush()]), notes.blocks


@pytest.mark.behaviour("10-notes-stream")
@pytest.mark.parametrize("case", NOTES, ids=lambda case: case["name"])
def test_a_stream_shows_the_same_wherever_it_is_split(case: dict[str, Any]) -> None:
    text = case["text"].lstrip("\n")
    whole, blocks = stream([text])
    assert blocks == split_notes(text)[1]
    assert whole.rstrip().removesuffix("---").rstrip() == without_notes(text).rstrip()
    for at in range(len(text) + 1):
        assert stream([text[:at], text[at:]]) == (whole, blocks)
    assert stream(list(text)) == (whole, blocks)


FRAGMENTS = ("`", "```", "~~~", "council-notes", "council", "-notes", "json ", "\n", " ", "{}", "x", "A line.\n", "\r")
PIECES = st.lists(st.sampled_from(FRAGMENTS), max_size=30)


@pytest.mark.behaviour("10-notes-stream")
@given(PIECES)
def test_any_chunking_gives_the_same_text_and_never_shows_a_block(pieces: list[str]) -> None:
    text = "".join(pieces)
    shown, blocks = stream(pieces)
    assert (shown, blocks) == stream([text])
    assert stream([shown])[1] == [] or blocks


def test_a_long_block_is_read_in_linear_time() -> None:
    pieces = ["x\n```council-notes\n", *(["y" * 20] * 100_000)]
    shown, blocks = stream(pieces)
    assert (shown, len(blocks[0])) == ("x\n", 2_000_001)
    assert ends_in_notes("x\n```council-notes\n{") and not ends_in_notes("x\n```council-notes\n{}\n```")


def test_a_list_of_notes_has_at_most_twenty_items_of_four_hundred_characters() -> None:
    block = json.dumps({"agreed": ["x" * 500] * 25})
    notes = parse_notes(f"Use tabs.\n\n```council-notes\n{block}\n```", {})
    assert notes and [len(item) for item in notes["agreed"]] == [400] * 20


def test_a_seat_without_a_title_is_known_by_its_name_alone() -> None:
    assert seat_names([Seat("Alpha"), Seat("beta", "The Judge")]) == {
        "alpha": "Alpha",
        "beta": "beta",
        "the judge": "beta",
    }
