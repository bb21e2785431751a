"""The files of the languages: every row in every language, with the same values."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from string import Formatter
from typing import Any

import pytest

import council
from council.engine.layout import format_cost, format_round_name
from council.engine.records import CostRow
from council.engine.trust import LIMITS, OUTCOMES, SUPPORTS
from council.language import LANGUAGES
from council.text_cleanup import quote_tail_lines
from council.types import TrustFact
from council.wording import Sections, Wording, fill_missing, load_wording, read_table

ENGLISH = read_table("en")
OTHERS = [language for language in LANGUAGES if language != "en"]
EAST_ASIAN = ("zh", "ja")
# Values that a language may use instead: Chinese and Japanese count characters, not words.
OTHER_VALUES = {("phrases", "words"): {"count", "chars"}}
FACTS = [TrustFact(kind, "draft", seats, count, 3) for kind in (*OUTCOMES, *LIMITS, *SUPPORTS) for seats, count in [
    (("alpha",), 1), (("alpha", "beta"), 2),
]]  # fmt: skip


def texts(row: Any) -> list[str]:
    return list(row.values()) if isinstance(row, dict) else [row]


def values(row: Any) -> set[str]:
    return {name for text in texts(row) for _, name, _, _ in Formatter().parse(text) if name}


def rows(language: str) -> Iterator[tuple[str, str, Any]]:
    for section, table in read_table(language).items():
        for key, row in table.items():
            yield section, key, row


@pytest.mark.behaviour("10-tail-language")
@pytest.mark.parametrize("language", OTHERS)
def test_a_language_has_every_row_of_english_and_no_other(language: str) -> None:
    own = read_table(language)
    assert {section: set(table) for section, table in own.items()} == {
        section: set(table) for section, table in ENGLISH.items()
    }


@pytest.mark.behaviour("10-tail-language")
@pytest.mark.parametrize("language", OTHERS)
def test_a_row_has_the_values_of_the_english_row(language: str) -> None:
    for section, key, row in rows(language):
        wanted = values(ENGLISH[section][key])
        allowed = OTHER_VALUES.get((section, key), set())
        assert values(row) == wanted or values(row) <= allowed, (section, key)
        assert isinstance(row, str) or set(row) == {"one", "many"}, (section, key)
        assert all(texts(row)), (section, key)


@pytest.mark.parametrize("language", EAST_ASIAN)
def test_chinese_and_japanese_have_full_width_punctuation(language: str) -> None:
    for section, key, row in rows(language):
        if (section, key) == ("punctuation", "thousands"):
            continue
        for text in texts(row):
            bare = re.sub(r"\{\w+\}|\*\*|->", "", text)
            assert not re.search(r"[:;,()]| — |\. |\.$", bare), (section, key, text)


def test_french_has_a_fixed_space_before_high_punctuation() -> None:
    for section, key, row in rows("fr"):
        for text in texts(row):
            assert not re.search(r"(?:[^\u00a0]|^)[:;?!»](?!\w)|«[^\u00a0]", text.removesuffix("://")), (section, key)


@pytest.mark.parametrize("language", LANGUAGES)
def test_words_of_verdicts_stay_and_levels_differ(language: str) -> None:
    own = read_table(language)
    assert "PASS" in own["outcomes"]["capped"] and "{word}" in own["outcomes"]["votes"]
    assert len(set(own["levels"].values())) == len(own["levels"])
    labels = [own["tail"][label] for label in ("outcome", "differ", "agree", "trust")]
    assert len(set(labels)) == len(labels)


def test_a_key_is_a_heading_or_a_phrase() -> None:
    assert not set(ENGLISH["headings"]) & set(ENGLISH["phrases"])


def test_every_heading_that_a_layout_names_exists() -> None:
    folder = Path(council.__file__).parent
    layouts = [*folder.glob("engine/layouts/*.md"), *folder.glob("protocols/*/layout*/*.md"), *folder.glob("protocols/*/layout.md")]  # fmt: skip
    named = {key for path in layouts for key in re.findall(r"\bt\(\"(\w+)\"", path.read_text(encoding="utf-8"))}
    assert len(named) > 50
    assert named <= {*ENGLISH["headings"], *ENGLISH["phrases"]}


@pytest.mark.behaviour("10-tail-language")
@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("fact", FACTS, ids=lambda fact: f"{fact.kind}-{fact.count}")
def test_every_fact_has_a_sentence_with_its_seats(language: str, fact: TrustFact) -> None:
    wording = load_wording(language)
    text = wording.format_support(fact) if fact.kind in SUPPORTS else wording.format_reason(fact)
    english = load_wording("en")
    plain = english.format_support(fact) if fact.kind in SUPPORTS else english.format_reason(fact)
    assert text and not re.search(r"[{}]", text)
    assert all((seat in text) == (seat in plain) for seat in fact.seats)
    assert language == "en" or text != plain or fact.kind == "degraded"


def test_a_row_that_a_file_lacks_is_english() -> None:
    own: Sections = {"headings": {"answer": "Antwort"}}
    wording = Wording("de", fill_missing(own, ENGLISH))
    assert wording.heading("answer") == "Antwort"
    assert wording.heading("statements") == "Statements"
    assert wording.heading("words", number=2, count="2", chars="9") == "2 words"


def test_an_unknown_language_is_english() -> None:
    assert load_wording("nl").language == "en"


@pytest.mark.parametrize(
    ("language", "joined"),
    [("en", "a, b and c"), ("de", "a, b und c"), ("es", "a, b y c"), ("zh", "a、b、c"), ("ja", "a、b、c")],
)
def test_names_are_joined(language: str, joined: str) -> None:
    wording = load_wording(language)
    assert wording.join(["a", "b", "c"]) == joined
    assert (wording.join([]), wording.join(["a"])) == ("", "a")


@pytest.mark.parametrize(
    ("language", "phase", "name"),
    [
        ("en", "r2", "Round 2"),
        ("en", "draft", "Draft"),
        ("en", "look_at/own_phase", "Look at · Own phase"),
        ("de", "r2", "Runde 2"),
        ("de", "draft", "Entwurf"),
        ("fr", "improve/r1", "Amélioration · Tour 1"),
        ("zh", "r2", "第2轮"),
        ("ja", "own_phase", "Own phase"),
    ],
)
def test_a_phase_is_named_in_the_language(language: str, phase: str, name: str) -> None:
    assert format_round_name(phase, load_wording(language)) == name


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("en", "cost $0.50 (of $1.00, partly estimated)"),
        ("de", "Kosten $0.50 (von $1.00, teilweise geschätzt)"),
        ("ja", "費用$0.50（上限$1.00、一部は推定）"),
    ],
)
def test_a_cost_is_named_in_the_language(language: str, text: str) -> None:
    cost: CostRow = {"usd": 0.5, "cap": 1.0, "estimated": True, "unpriced": []}
    assert format_cost(cost, load_wording(language)) == text


@pytest.mark.behaviour("10-reader-table")
@pytest.mark.parametrize("language", LANGUAGES)
def test_a_line_of_a_model_that_begins_like_our_trust_line_is_quoted(language: str) -> None:
    wording = load_wording(language)
    for label in (wording.say("tail", "trust"), f"**{wording.say('tail', 'trust')}**"):
        line = f"{label}{wording.colon}{wording.format_level('HIGH')}"
        assert quote_tail_lines(f"Yes.\n\n{line}") == f"Yes.\n\n> {line}"
