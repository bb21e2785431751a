"""Excerpts of a search: one line around the words."""

from __future__ import annotations

import pytest

from council.runs.excerpts import EXCERPT_CHARS, make_excerpt

FILLER = "Nothing to see here. " * 40
HUGE = "a word " * 150_000


@pytest.mark.behaviour("00-runs-search-excerpt")
@pytest.mark.parametrize(
    ("texts", "words", "excerpt"),
    [
        (["Redis or Postgres?"], ["redis"], "Redis or Postgres?"),
        (["one\n\n  two\tthree"], ["TWO"], "one two three"),
        (["\x1b[1mbold\x1b[0m and \x07loud\u202e"], ["loud"], "bold and loud"),
        (["Is 100% (really) enough?"], ["100%", "(really)"], "Is 100% (really) enough?"),
        (["only redis", "redis and postgres"], ["redis", "postgres"], "redis and postgres"),
        (["the first redis", "the second redis"], ["redis"], "the first redis"),
        (["Der Bär läuft"], ["BÄR"], "Der Bär läuft"),
        (["nothing here"], ["redis"], ""),
        ([], ["redis"], ""),
    ],
)
def test_an_excerpt_has_the_words_of_the_text_with_the_most_of_them(
    texts: list[str], words: list[str], excerpt: str
) -> None:
    assert make_excerpt(texts, words) == excerpt


@pytest.mark.behaviour("00-runs-search-excerpt")
def test_an_excerpt_of_a_long_text_is_cut_between_words_where_the_most_words_are() -> None:
    text = f"{FILLER}redis alone. {FILLER}redis beside postgres. {FILLER}"
    excerpt = make_excerpt([text], ["postgres", "redis"])
    assert "redis beside postgres." in excerpt
    assert excerpt.startswith("…") and excerpt.endswith("…") and len(excerpt) <= EXCERPT_CHARS + 2
    assert set(excerpt.strip("…").split()) <= set(text.split())


@pytest.mark.behaviour("00-runs-search-excerpt")
def test_an_excerpt_of_a_text_of_a_megabyte_with_many_matches_is_short() -> None:
    assert len(make_excerpt([HUGE, FILLER], ["a", "word", "absent"])) <= EXCERPT_CHARS + 2
