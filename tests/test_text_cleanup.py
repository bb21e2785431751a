"""Cleaning removes terminal sequences and control characters, and nothing else."""

from __future__ import annotations

import json
import re
import time
import tomllib
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from council.text_cleanup import (
    clean,
    clean_json,
    is_tail_line,
    may_be_unclean,
    may_become_tail_line,
    neutralize_commands,
    quote_tail_lines,
    single_line,
    strip_confidence_section,
)
from tests.paths import DATA

HOSTILE_TEXT = st.text(st.one_of(st.characters(), st.sampled_from("\x1b[]P^_\\\x07\x9b\x9c\x9d0;m\r\n\t")))


@pytest.mark.behaviour("40-terminal-sequences")
@given(HOSTILE_TEXT)
def test_no_control_character_survives_but_newline_and_tab(text: str) -> None:
    assert {char for char in clean(text) if unicodedata.category(char) == "Cc"} <= {"\n", "\t"}


@given(HOSTILE_TEXT)
def test_json_text_that_needs_cleaning_is_recognised(text: str) -> None:
    is_clean = clean_json({"a": [text]}) == {"a": [text]}
    assert is_clean or may_be_unclean(json.dumps({"a": [text]}, ensure_ascii=False))


@given(st.text(st.characters(exclude_categories=["C", "Zl", "Zp"], exclude_characters="\\]")))
def test_json_text_of_printable_characters_needs_no_cleaning(text: str) -> None:
    assert not may_be_unclean(json.dumps({"a": [text]}, ensure_ascii=False))


@given(HOSTILE_TEXT)
def test_cleaning_twice_changes_nothing_more(text: str) -> None:
    assert clean(clean(text)) == clean(text)


@given(st.text(st.characters(exclude_categories=["C", "Zl", "Zp"])))
def test_printable_text_is_unchanged(text: str) -> None:
    assert clean(text) == text


@given(st.text(st.characters()))
def test_cleaned_text_can_always_be_written_as_utf_8(text: str) -> None:
    assert clean(text).encode().decode() == clean(text)


@pytest.mark.behaviour("40-terminal-sequences")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x9b31mred", "red"),
        ("\x1b]0;a title\x07text", "text"),
        ("\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x9d0;a title\x9ctext", "text"),
        ("\x1bPpayload\x1b\\text", "text"),
        ("\x1b(Btext\x1bc", "text"),
        ("over\rwrite", "over\nwrite"),
        ("a\r\nb", "a\nb"),
        ("bell\x07 null\x00 back\x08", "bell null back"),
        ("abc\u202edcba", "abcdcba"),
        ("family 👩‍👩‍👧 – ok", "family 👩‍👩‍👧 – ok"),
        ("half \ud83d", "half \ufffd"),
        ("boom ]0;pwned", "boom "),
        ("boom \x1b]0;pwned", "boom "),
        ("a[0]0;b", "a[0]0;b"),
    ],
)
def test_sequences_are_removed_with_their_payload(text: str, expected: str) -> None:
    assert clean(text) == expected


def test_unclosed_title_does_not_remove_the_text_after_it() -> None:
    assert "the rest" in clean("\x1b]0;title and the rest")


@pytest.mark.parametrize("piece", ["\x1b]", "\x9d", "\x1b[", "\x9b0", "\x1bP", "\x1b"])
def test_a_megabyte_of_introducers_is_cleaned_within_a_second(piece: str) -> None:
    start = time.process_time()
    clean(piece * (1_000_000 // len(piece)))
    assert time.process_time() - start < 1


def test_one_line_is_one_line_and_shortened() -> None:
    assert single_line("a\n  b\tc") == "a b c"
    assert single_line("word " * 100, 20) == "word word word word…"


def test_values_are_cleaned_at_any_depth() -> None:
    assert clean_json({"a": ["\x1b[1mx", ("y\x00", 3, None)]}) == {"a": ["x", ["y", 3, None]]}


# Commands of CI systems


@pytest.mark.behaviour("40-ci-commands")
@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("::stop-commands::x", ": :stop-commands::x"), ("::error file=a,line=1::x", ": :error file=a,line=1::x"), ("a\n  ::add-mask::x", "a\n  : :add-mask::x"),
        ("\t::x", "\t: :x"), ("\u00a0::x", "\u00a0: :x"), ("\ufeff::x", "\ufeff: :x"), (":::x", ": ::x"), ("a\r::x", "a\r: :x"), ("a\u2028::x", "a\u2028: :x"),
        ("##[error]x", "## [error]x"), ("a ##[group]x", "a ## [group]x"), ("##vso[task.x a=b]c", "## vso[task.x a=b]c"), ("##teamcity[x]", "## teamcity[x]"),
        ("##task_2[x]", "## task_2[x]"), ("###[x]", "### [x]"), (f"##{'x' * 99}[", f"## {'x' * 99}["),
        ("section_start:17:a", "section_start :17:a"), ("section_end:17:a", "section_end :17:a"), ("travis_fold:start:a", "travis_fold :start:a"),
        # Ordinary text
        ("std::vector<int>", "std::vector<int>"), ("a ::b", "a ::b"), ("## Heading [1]", "## Heading [1]"), ("section_starts", "section_starts"),
        ("# [x]", "# [x]"), ("- ::x", "- ::x"), ("", ""),
    ],
)  # fmt: skip
def test_commands_of_ci_systems_are_neutralized(text: str, shown: str) -> None:
    assert neutralize_commands(text) == shown
    assert neutralize_commands(shown) == shown
    assert json.loads(neutralize_commands(json.dumps([text], ensure_ascii=False), "json")) == [text]


@given(
    st.lists(
        st.sampled_from([":", "::", "#", "##", "[", "vso[", "error", " ", "\n", "\r", "section_start", "x", "\ufeff"]),
        max_size=30,
    )
)
def test_no_text_has_a_command_after_it_was_neutralized(pieces: list[str]) -> None:
    shown = neutralize_commands("".join(pieces))
    assert not [
        line
        for line in re.split(r"[\n\r]", shown)
        if re.match(r"[\s\ufeff]*::", line) or re.search(r"##\w*\[|section_start:", line)
    ]


# Lines of a model that look like ours

LINES = tomllib.loads((DATA / "model_lines.toml").read_text(encoding="utf-8"))


@pytest.mark.behaviour("10-tail-quoted")
@pytest.mark.parametrize("line", LINES["tail"]["quoted"])
def test_a_line_like_one_of_the_tail_is_quoted(line: str) -> None:
    assert quote_tail_lines(f"Take it.\n\n{line}\nGo.") == f"Take it.\n\n> {line}\nGo."
    assert quote_tail_lines(f"```\n{line}\n```") == f"```\n{line}\n```"
    assert quote_tail_lines(quote_tail_lines(line)) == quote_tail_lines(line)
    colon = next((n for n, char in enumerate(line) if char in ":：=—|H"), len(line))
    assert all(may_become_tail_line(line[:at]) or is_tail_line(line[:at]) for at in range(colon))


@pytest.mark.behaviour("10-tail-quoted")
@pytest.mark.parametrize("line", LINES["tail"]["kept"])
def test_another_line_stays_as_it_is(line: str) -> None:
    assert quote_tail_lines(f"Take it.\n\n{line}\nGo.") == f"Take it.\n\n{line}\nGo."


@pytest.mark.behaviour("10-confidence-section-removed")
@pytest.mark.parametrize("row", LINES["confidence"], ids=lambda row: row["text"][:50])
def test_a_confidence_section_of_the_chair_is_removed(row: dict[str, str]) -> None:
    assert strip_confidence_section(row["text"]) == row.get("left", row["text"])
