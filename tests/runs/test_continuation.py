"""Which earlier turns of a conversation are in the packet, and in which form."""

from __future__ import annotations

import pytest

from council.runs.continuation import (
    FULL_CHARS,
    LAST_ANSWER_CHARS,
    SHORT_ANSWER_CHARS,
    SHORT_CHARS,
    Turn,
    first_paragraph,
    select_turns,
)


def make_turns(*sizes: int) -> list[Turn]:
    """Return turns with answers of these sizes, newest first: r1 is the oldest."""
    return [
        Turn(f"r{place}", f"Question {place}?", f"Short {place}.\n\n" + "x" * size)
        for place, size in zip(range(len(sizes), 0, -1), sizes, strict=True)
    ]


@pytest.mark.behaviour("50-continue-rule")
@pytest.mark.parametrize(
    ("sizes", "full", "short", "left_out"),
    [
        ([10], 1, 0, 0),
        ([FULL_CHARS * 2], 1, 0, 0),
        ([10, 10, 10], 3, 0, 0),
        ([FULL_CHARS * 2, 10, 10], 3, 0, 0),
        ([10, FULL_CHARS, 10], 1, 2, 0),
        ([10, FULL_CHARS // 2, FULL_CHARS // 2, 10], 2, 2, 0),
        ([10, *[FULL_CHARS] * 40], 1, 36, 4),
        ([10] * 200, 200, 0, 0),
        ([10] * 300, 211, 36, 53),
    ],
    ids=[
        "one turn", "a long last answer", "all fit", "the last turn does not count", "older turns are never longer than newer ones",
        "newest first", "too many shortened ones", "many short turns", "very many",
    ],
)  # fmt: skip
def test_turns_are_sent_in_full_then_shortened_then_left_out(
    sizes: list[int], full: int, short: int, left_out: int
) -> None:
    turns = make_turns(*sizes)
    context = select_turns(turns)
    runs = tuple(turn.run for turn in turns)
    assert (len(context.full), len(context.short), len(context.left_out)) == (full, short, left_out)
    assert (*context.full, *context.short, *context.left_out) == runs
    assert [name for name, _ in context.files] == [f"council {run}" for run in (*context.full, *context.short)]
    assert sum(len(text) for _, text in context.files[1:full]) <= FULL_CHARS
    assert sum(len(text) for _, text in context.files[full:]) <= SHORT_CHARS + 100  # the line about older turns
    assert [item.path for item in context.skipped] == [f"council {run}" for run in context.left_out]


@pytest.mark.behaviour("50-continue-rule")
def test_each_turn_says_its_place_and_the_oldest_one_how_many_are_left_out() -> None:
    texts = dict(select_turns(make_turns(10, *[FULL_CHARS] * 40)).files)
    assert texts["council r41"].startswith(
        "Turn 41 of 41 of this conversation, the latest.\n\n# Question\n\nQuestion 41?\n"
    )
    assert texts["council r41"].endswith("Short 41.\n\nxxxxxxxxxx\n")
    assert texts["council r40"] == (
        "Turn 40 of 41 of this conversation, shortened to the question and the first paragraph of the answer.\n\n"
        "# Question\n\nQuestion 40?\n\n# Answer of the council\n\nShort 40.\n"
    )
    oldest = list(texts.values())[-1]
    assert oldest.endswith("Short 5.\n\n[The 4 turns before this one are left out.]\n")
    assert sum("left out" in text for text in texts.values()) == 1


@pytest.mark.behaviour("50-continue-rule")
def test_one_turn_has_no_line_about_its_place_and_a_very_long_answer_is_cut() -> None:
    ((name, text),) = select_turns([Turn("r1", "Why?", "y" * (LAST_ANSWER_CHARS + 5), "Answer (triad)")]).files
    assert (name, text[:41]) == ("council r1", "# Question\n\nWhy?\n\n# Answer (triad)\n\nyyyyy")
    assert text.endswith("y\n\n[cut here: 5 more characters]\n")


@pytest.mark.parametrize(
    ("answer", "paragraph"),
    [
        ("One line.", "One line."),
        ("First\nparagraph.\n\nSecond.", "First\nparagraph."),
        ("## Answer\n\nUse tape.\n\nIt is cheap.", "Use tape."),
        ("## Answer\nUse tape.\n\nIt is cheap.", "Use tape."),
        ("# Only a heading", "# Only a heading"),
        ("word " * 400, ("word " * 119).strip() + " …"),
        ("z" * 900, "z" * (SHORT_ANSWER_CHARS - 2) + " …"),
    ],
)
def test_the_first_paragraph_is_not_a_heading_and_ends_at_a_word(answer: str, paragraph: str) -> None:
    assert first_paragraph(answer) == paragraph
    assert len(paragraph) <= SHORT_ANSWER_CHARS
