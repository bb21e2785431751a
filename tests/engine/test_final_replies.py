"""Replies of a chair or a judge as models write them: the answer that a reader gets, what is counted, and what is lost.

tests/data/final_replies.toml has the rows. Those with `by` were written by another author, who did not know the parser.
"""

from __future__ import annotations

import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from council.answer_filter import AnswerFilter, clean_answer
from council.engine.notes import parse_notes, seat_names
from council.engine.reply import Reply, parse_reply, read_partial
from council.errors import Fault
from council.notes_filter import NotesFilter, split_notes
from council.protocols.adversarial.replies import Ruling
from council.protocols.advisors.replies import Refereed
from council.protocols.collaborative import SEATS
from council.protocols.common.issues import NONE, apply_rulings
from council.protocols.judges.replies import Opinion
from council.protocols.ranking.replies import Ballot
from tests.paths import DATA

ROWS: list[dict[str, Any]] = tomllib.loads((DATA / "final_replies.toml").read_text(encoding="utf-8"))["row"]
OWN = [row for row in ROWS if "by" not in row]
OTHERS = [row for row in ROWS if "by" in row]
FREE_TEXTS = [row for row in OWN if row["kind"] in ("notes", "plain")]
TYPED = [row for row in OWN if row["kind"] not in ("notes", "plain")]
ALL_FREE_TEXTS = [row for row in ROWS if row["kind"] in ("notes", "plain")]
ISSUES = ["issue-1", "issue-2", "issue-3"]
ADVISORS = ["pragmatist", "visionary", "skeptic"]
TYPES: dict[str, tuple[type[Reply], dict[str, list[str]]]] = {
    "ruling": (Ruling, {"issue": ISSUES, "same_as": [NONE, *ISSUES]}),
    "referee": (Refereed, {"advisor": ADVISORS, "shared_by": ADVISORS}),
    "ballot": (Ballot, {"label": ["A", "B", "C"]}),
    "judge": (Opinion, {}),
}
TITLES = {name.capitalize(): name for name in ADVISORS}


def name_of(row: dict[str, Any]) -> str:
    return f"{row['kind']}: {row['form']}"


def value_at(value: Any, path: str) -> Any:
    for part in path.split("."):
        if part == "#":
            return len(value)
        value = value[int(part)] if part.isdigit() else value[part] if isinstance(value, dict) else getattr(value, part)
    return "" if value is None else value


def text_of(row: dict[str, Any]) -> str:
    return str(row["text"]).lstrip("\n")


# Free texts


@pytest.mark.behaviour("10-notes-by-content", "10-final-answer-clean")
@pytest.mark.parametrize("row", FREE_TEXTS, ids=name_of)
def test_a_reader_gets_the_answer_alone(row: dict[str, Any]) -> None:
    assert clean_answer(text_of(row)) == row["answer"]


@pytest.mark.behaviour("10-notes-by-content")
@pytest.mark.parametrize("row", FREE_TEXTS, ids=name_of)
def test_notes_are_counted_by_their_content(row: dict[str, Any]) -> None:
    notes = parse_notes(text_of(row), seat_names(SEATS))
    assert (notes is not None) == ("notes" in row)
    expected = row.get("notes", {})
    assert {path: value_at(notes, path) for path in expected} == expected


@pytest.mark.behaviour("10-notes-by-content")
@pytest.mark.parametrize("row", ALL_FREE_TEXTS, ids=name_of)
def test_what_is_counted_is_never_printed(row: dict[str, Any]) -> None:
    shown = clean_answer(text_of(row))
    assert not any(block.strip() and block.strip() in shown for block in split_notes(text_of(row))[1])
    assert parse_notes(shown, seat_names(SEATS)) is None


def stream(pieces: list[str]) -> str:
    answer = AnswerFilter()
    return "".join([*map(answer.feed, pieces), answer.flush()])


def list_notes(pieces: list[str]) -> tuple[str, list[str]]:
    notes = NotesFilter()
    return "".join([*map(notes.feed, pieces), notes.flush()]), notes.blocks


@pytest.mark.behaviour("10-notes-stream", "10-final-answer-stream")
@pytest.mark.parametrize("row", ALL_FREE_TEXTS, ids=name_of)
def test_a_stream_shows_the_final_answer_wherever_it_is_split(row: dict[str, Any]) -> None:
    text, answer = text_of(row), clean_answer(text_of(row))
    step = max(1, len(text) // 200)
    for pieces in ([text], list(text), *([text[:at], text[at:]] for at in range(1, len(text), step))):
        assert stream(pieces).strip() == answer


FRAGMENTS = (
    *(
        "Certainly! ",
        "Here is ",
        "the final answer",
        ":",
        "\n",
        "\n\n",
        "Take Postgres.",
        "```",
        "```json",
        "```markdown",
    ),
    *("~~~", "{", "}", '"agreed"', ": ", '["x"]', ", ", '"contested"', "[]", '"answer": "a"', "<answer>", "</answer>"),
    *("<notes>", "</notes>", "<details>", "</details>", "<!--", "-->", "<council-notes>", "</council-notes>", "[", "]"),
    *("[council-notes]", "[/council-notes]", "> ", "council-notes", "**Council notes**", "## Notes", "---", "==="),
    *("Let me know if you need more.", "Trust", ": HIGH", "Outcome", "- ", "agreed: x", "contested: y", "\\n", "\\"),
    *("<think>", "</think>", "Sure", "They agree", "Notes for the record: ", "'", '"', "`", "x", "If you want", "\r\n"),
    *("I hope this helps!", '{"agreed": ["a"], "contested": []}', "unique", "Dear Ann,", "council_notes = ", "  "),
    *("# Final Answer", "Here is the final answer: Take it.", "word " * 60, "!", "! beta"),
)


@pytest.mark.behaviour("10-notes-stream", "10-final-answer-stream")
@given(st.lists(st.sampled_from(FRAGMENTS), max_size=14).map("".join), st.lists(st.integers(1, 9), max_size=40))
def test_any_text_gives_the_same_stream_in_any_pieces(text: str, sizes: list[int]) -> None:
    pieces, at = [], 0
    for size in sizes:
        pieces.append(text[at : at + size])
        at += size
    pieces.append(text[at:])
    assert stream(pieces) == stream([text]) == stream(list(text))
    assert list_notes(pieces) == list_notes([text]) == list_notes(list(text))


@pytest.mark.behaviour("10-notes-by-content")
@given(st.lists(st.sampled_from(FRAGMENTS), max_size=14).map("".join))
def test_no_notes_are_left_in_any_answer(text: str) -> None:
    shown, blocks = split_notes(text)
    assert len(shown) <= len(text)
    assert blocks or shown == text


# Typed replies


def read(row: dict[str, Any]) -> tuple[str, Any]:
    """Return whether a reply is used at once, after the repair turn or never, and what is read of it."""
    reply, choices = TYPES[row["kind"]]
    try:
        return "no", parse_reply(reply, text_of(row), choices, TITLES)
    except Fault:
        part = read_partial(reply, text_of(row), choices, TITLES)
        return ("repair", part.reply) if part else ("none", None)


@pytest.mark.behaviour("10-replies-salvaged")
@pytest.mark.parametrize("row", TYPED, ids=name_of)
def test_a_value_that_does_not_fit_costs_that_value(row: dict[str, Any]) -> None:
    turn, reply = read(row)
    assert turn == row["turn"]
    if reply is None:
        return
    assert {path: value_at(reply, path) for path in row["expect"]} == row["expect"]
    assert reply.unread == row.get("lost", [])
    if "answer" in row:
        assert getattr(reply, reply.answer_field) == row["answer"]


# Forms of another author


def summarize(row: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the answer that a reader gets, and what is counted of the notes or of the typed reply."""
    if row["kind"] in ("notes", "plain"):
        notes: dict[str, Any] = dict(parse_notes(text_of(row), seat_names(SEATS)) or {})
        counts: dict[str, Any] = {name: len(notes.get(name, ())) for name in ("agreed", "contested")}
        shared, closest = notes.get("recommendation_shared_by"), notes.get("closest_draft")
        return clean_answer(text_of(row)), counts | {"shared_by": shared, "closest_draft": closest}
    turn, reply = read(row)
    assert turn == row["turn"]
    if isinstance(reply, Ruling):
        rulings = apply_rulings(dict.fromkeys(ISSUES, "MAJOR"), reply.points)
        return reply.answer, {"outcome": reply.outcome, "landed": {row.id: row.landed for row in rulings.rows}}
    names = [one.advisor for one in reply.perspectives]
    counts = {name: len(getattr(reply, name)) for name in ("next_steps", "tensions")}
    return reply.decision, {"perspectives": names, "shared_by": reply.shared_by, **counts}


@pytest.mark.behaviour("10-replies-salvaged", "10-notes-by-content", "10-final-answer-clean")
@pytest.mark.parametrize("row", OTHERS, ids=name_of)
def test_a_form_of_another_author_is_read(row: dict[str, Any]) -> None:
    answer, counted = summarize(row)
    assert [passage for passage in row["contains"] if passage not in answer] == []
    assert [passage for passage in row["lacks"] if passage in answer] == []
    assert {name: counted[name] for name in row["fields"]} == row["fields"]


def test_there_are_at_least_eighty_forms() -> None:
    assert len(ROWS) >= 80 and len(OTHERS) >= 50
