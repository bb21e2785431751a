"""Loop detection."""

from __future__ import annotations

import base64
import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from council.calling.answer_check import MIN_LOOP_CHARS, TAIL_CHARS, LoopDetector, find_loop

PROSE = "The archive is read twice a year, and its files are older than a decade. Moving it costs a weekend. "
PARAGRAPH = " ".join(f"Point {n} of the case is the price, and the price is what it was." for n in range(20))
LOOPS = {
    "a word": "the ",
    "a letter": "a",
    "blank space": "\n",
    "a sentence": "I think that we should move the archive to cold storage. ",
    "a line of JSON": '{"severity": "minor", "description": "odd name"},\n',
    "a paragraph": PARAGRAPH + "\n\n",
    "dashes": "-",
    "a table row": "| a | b | c |\n",
}


def chance(start: int = 7) -> random.Random:
    return random.Random(start)


def table() -> str:
    rows = [f"| {n} | {n * n} | row {n} | yes | no |" for n in range(400)]
    return "\n".join(["| n | square | name | a | b |", "|---|---|---|---|---|", *rows])


def code() -> str:
    setters = [f"    self.field_{n} = field_{n}\n    self.count += 1\n" for n in range(150)]
    zeros = ", ".join(["0x00"] * 256)
    return "class Thing:\n    def __init__(self):\n" + "".join(setters) + f"\nTABLE = [{zeros}]\n" + "#" * 120


def poem() -> str:
    refrain = "And the tide comes in, and the tide goes out,\nand the tide comes in again.\n"
    verses = [f"Verse {n} tells of a ship that left,\nof {n} sailors, and of the rain.\n\n" for n in range(40)]
    return "".join(verse + refrain * 2 for verse in verses)


def lists() -> str:
    return "\n".join(f"- item {n}: check the valve, note the reading, sign the sheet" for n in range(500))


def data() -> str:
    noise = base64.b64encode(chance().randbytes(20_000)).decode()
    return noise + base64.b64encode(bytes(2_000)).decode() + noise[:2000]  # zeros in the middle


def rows() -> str:
    found = {"severity": "minor", "category": "style", "location": "a.py:3", "description": "odd name", "fix": "rename"}
    return json.dumps([found | {"location": f"a.py:{n}"} for n in range(200)], indent=1)


def matrix() -> str:
    return "\n".join(" ".join(str(chance(n * 100 + m).randint(0, 1)) for m in range(40)) for n in range(120))


LOOK_ALIKE = {fake.__name__: fake() for fake in (table, code, poem, lists, data, rows, matrix)}


@pytest.mark.behaviour("40-repetition-loop")
@pytest.mark.parametrize("piece", LOOPS.values(), ids=LOOPS)
@pytest.mark.parametrize("before", ["", PROSE * 30])
def test_a_text_that_repeats_to_its_end_is_a_loop(piece: str, before: str) -> None:
    text = before + piece * (TAIL_CHARS // len(piece) + 1)
    assert find_loop(text)
    assert find_loop(text + piece[: len(piece) // 2])  # also when it ends inside a piece


@pytest.mark.behaviour("40-repetition-loop")
@pytest.mark.parametrize("text", LOOK_ALIKE.values(), ids=LOOK_ALIKE)
def test_tables_code_poems_lists_and_data_are_not_loops(text: str) -> None:
    assert len(text) > MIN_LOOP_CHARS
    assert find_loop(text) == ""


@pytest.mark.behaviour("40-repetition-loop")
@pytest.mark.parametrize("piece", LOOPS.values(), ids=LOOPS)
def test_a_looping_stream_is_detected_early(piece: str) -> None:
    stream, heard = LoopDetector(), 0
    text = PROSE * 10 + piece * (100_000 // len(piece))
    for start in range(0, len(text), 5):
        heard = start
        if stream.feed(text[start : start + 5]):
            break
    assert heard < len(PROSE) * 10 + TAIL_CHARS + 2000


@given(st.text(min_size=1, max_size=40), st.lists(st.integers(1, 900), min_size=1, max_size=30))
def test_detection_does_not_depend_on_piece_sizes(piece: str, sizes: list[int]) -> None:
    text = PROSE + piece * (2 * TAIL_CHARS // len(piece))
    stream, start, found = LoopDetector(), 0, False
    while start < len(text) and not found:
        size = sizes[start % len(sizes)]
        found = bool(stream.feed(text[start : start + size]))
        start += size
    assert found


@given(st.text(max_size=3000))
def test_a_short_text_is_never_a_loop(text: str) -> None:
    assert find_loop(text) == ""


@given(st.lists(st.integers(0, 10**9), min_size=400, max_size=600))
def test_a_list_of_numbers_is_a_loop_only_if_it_repeats(numbers: list[int]) -> None:
    text = "\n".join(map(str, enumerate(numbers)))
    assert find_loop(text) == ""
