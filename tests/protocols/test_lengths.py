"""Lengths of texts: words as in prose, without code blocks and the marks of tables."""

from __future__ import annotations

import pytest

from council.protocols.common.lengths import count_words, find_opening, find_word_limit


@pytest.mark.behaviour("10-word-count")
@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("", 0),
        ("Go to the sea.", 4),
        ("- **Cost:** 4,000 euros – for ten", 5),
        ("| a | b |\n|---|---|\n| one | 2 |", 4),
        ("Run this:\n\n```sql\nSELECT id FROM seats;\n```\n\nThen wait.", 4),
        ("Run this:\n~~~\nls -la\n~~~\nThen wait.", 4),
        ("Run:\n```\nan unclosed block of code", 1),
        ("Use `git log` or ```git show``` here.", 7),
        ("費用 is 4", 4),
    ],
)
def test_words_are_counted_as_in_prose(text: str, count: int) -> None:
    assert count_words(text) == count


def test_the_limit_of_a_text_is_its_longest_source_rounded_up() -> None:
    assert find_word_limit(["word " * 203, "word " * 12]) == 210
    assert find_word_limit(["word " * 12]) == 150


def test_an_opening_has_no_headings_and_is_cut() -> None:
    assert find_opening("# Title\n\nGo to the sea.") == "Go to the sea."
    assert find_opening("word " * 80) == f"{'word ' * 59}word …"
