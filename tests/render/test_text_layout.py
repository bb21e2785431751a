"""Rules of the layout on a terminal."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from council.render.text_layout import (
    count_rows,
    cut,
    cut_start,
    cut_words,
    find_hidden,
    fit_columns,
    last_blocks,
    share_rows,
    text_width,
    to_ascii,
    wrap,
    wrap_lines,
)


@pytest.mark.parametrize(
    ("text", "width"), [("abc", 3), ("日本", 4), ("e\u0301", 1), ("…", 1), ("a\u200db", 2)], ids=ascii
)
def test_width_counts_terminal_columns(text: str, width: int) -> None:
    assert text_width(text) == width


@pytest.mark.parametrize(
    ("text", "width", "shown"),
    [
        ("short", 5, "short"),
        ("a longer line", 9, "a longer…"),
        ("a longer line", 10, "a longer…"),
        ("日本語", 5, "日本…"),
        ("abc", 1, "…"),
        ("abc", 0, ""),
    ],
)
def test_the_end_of_a_wide_line_is_cut(text: str, width: int, shown: str) -> None:
    assert cut(text, width) == shown


@pytest.mark.parametrize(
    ("text", "width", "shown"),
    [
        ("short", 5, "short"),
        ("one two three", 9, "…three"),
        ("one two three", 10, "…two three"),
        ("one two three", 6, "…three"),
        ("one twothree", 6, "…three"),
        ("onetwothree", 6, "…three"),
    ],
)
def test_the_start_of_a_wide_line_is_cut_at_a_word(text: str, width: int, shown: str) -> None:
    assert cut_start(text, width) == shown


@pytest.mark.behaviour("50-wraps-at-words")
@pytest.mark.parametrize(
    ("text", "width", "indent", "lines"),
    [
        ("", 10, 0, [""]),
        ("one two three", 7, 0, ["one two", "three"]),
        ("one two three", 9, 2, ["one two", "  three"]),
        ("  one two", 7, 2, ["  one", "  two"]),
        ("critical  a.py:3  text here", 20, 10, ["critical  a.py:3", "          text here"]),
        ("a abcdefghij", 5, 0, ["a", "abcde", "fghij"]),
        ("abcdefgh", 5, 2, ["abcde", "  fgh"]),
        ("report /var/lib/reports/the-long-name.md", 20, 0, ["report", "/var/lib/reports/", "the-long-name.md"]),
        ("2026-11-16-what-we-chose.md", 16, 0, ["2026-11-16-what-", "we-chose.md"]),
        ("/abcdefgh", 5, 0, ["/abcd", "efgh"]),
        ("日本語 日本語", 7, 0, ["日本語", "日本語"]),
    ],
)
def test_lines_are_broken_at_spaces(text: str, width: int, indent: int, lines: list[str]) -> None:
    assert wrap(text, width, indent) == lines


@example(" aaa", 3, 0)
@given(st.text(alphabet="ab-/é日 ", max_size=80), st.integers(3, 30), st.integers(0, 8))
def test_wrapping_loses_no_word_and_fits(text: str, width: int, indent: int) -> None:
    lines = wrap(text, width, indent)
    assert "".join("".join(lines).split()) == "".join(text.split())
    assert all(text_width(line) <= width for line in lines)
    words = [word for word in text.split() if text_width(word) <= width - min(indent, width // 2)]
    shown = " ".join(lines).split()
    assert [word for word in words if word not in shown] == []


@pytest.mark.behaviour("50-wraps-at-words")
def test_later_lines_start_below_the_text_of_their_first_column() -> None:
    text = "significant  a.py:3  the check is gone\n! beta did not answer\nnext: a b c d"
    assert wrap_lines(text, 30) == [
        "significant  a.py:3  the check", "          is gone", "! beta did not answer", "next: a b c d",
    ]  # fmt: skip
    assert wrap_lines("! one two three", 9) == ["! one two", "  three"]


@pytest.mark.parametrize(
    ("natural", "longest", "room", "widths"),
    [
        ([5, 5], [5, 5], 10, [5, 5]),
        ([5, 40], [5, 8], 20, [5, 15]),
        ([30, 40], [4, 4], 20, [10, 10]),
        ([30, 40], [16, 4], 20, [16, 4]),
        ([30, 12, 40], [4, 4, 4], 36, [12, 12, 12]),
        ([30, 12, 40], [4, 4, 4], 37, [12, 12, 13]),
        ([30, 40], [16, 5], 20, None),
    ],
)
def test_table_columns_shrink_to_fit_but_not_below_their_longest_word(
    natural: list[int], longest: list[int], room: int, widths: list[int] | None
) -> None:
    assert fit_columns(natural, longest, room) == widths


@pytest.mark.parametrize(
    ("room", "wanted", "shares"),
    [(20, (1, 2, 4), [1, 2, 4]), (5, (1, 2, 4), [1, 2, 2]), (2, (1, 2, 4), [1, 1, 0]), (0, (3,), [0])],
)
def test_rows_are_shared_in_order(room: int, wanted: tuple[int, ...], shares: list[int]) -> None:
    assert share_rows(room, *wanted) == shares


@pytest.mark.parametrize(
    ("columns", "reflows", "rows"), [(80, True, 4), (40, True, 5), (39, True, 7), (20, True, 8), (20, False, 4)]
)
def test_rows_of_drawn_lines_after_a_resize(columns: int, reflows: bool, rows: int) -> None:
    assert count_rows([0, 10, 80, 40], columns, reflows=reflows) == rows


@pytest.mark.parametrize(
    ("widths", "visible", "hidden"),
    [
        ([10, 10, 10], 3, []),
        ([10, 10, 10], 9, []),
        ([11, 12, 13], 2, [11]),
        ([11, 12, 13], 0, [11, 12, 13]),
        ([10, 55, 10], 2, [10, 40]),
        ([10, 55, 10], 3, [10, 20]),
        ([10, 55, 10], 4, [10]),
        ([], 4, []),
    ],
)
def test_lines_above_the_screen(widths: list[int], visible: int, hidden: list[int]) -> None:
    assert find_hidden(widths, 20, visible, reflows=True) == hidden


@pytest.mark.parametrize(
    ("text", "limit", "kept"),
    [
        ("one\n\ntwo", 20, "one\n\ntwo"),
        ("one\n\ntwo", 5, "two"),
        ("one\n\ntwo\n\nthree", 10, "two\n\nthree"),
        ("one\n\na longer block", 5, "a longer block"),
        ("one\n\n```\na\n\nb\n```\n\nend", 10, "end"),
        ("one\n\n```\na\n\nb", 4, "```\na\n\nb"),
        ("one\n\n````\n```\n\nb", 4, "````\n```\n\nb"),
        ("one\n\n", 2, "one\n\n"),
        ("", 2, ""),
    ],
)
def test_the_last_blocks_of_a_text(text: str, limit: int, kept: str) -> None:
    assert last_blocks(text, limit) == kept


@pytest.mark.behaviour("50-ascii")
@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("plain", "plain"),
        ("Größe — “ja”…", 'Grosse - "ja"...'),
        ("a → b • c", "a -> b * c"),
        ("日", "?"),
        ("½ naïve", "1/2 naive"),
    ],
)
def test_ascii_forms(text: str, plain: str) -> None:
    assert to_ascii(text) == plain


def test_a_text_of_exactly_the_width_is_kept_and_a_mark_of_exactly_the_width_stands_alone() -> None:
    assert (cut_words("one two", 7), cut_words("one two", 6)) == ("one two", "one …")
    assert (cut_start("one two", 7, "..."), cut_start("one two", 3, "...")) == ("one two", "...")
