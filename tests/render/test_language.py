"""The language of an answer."""

from __future__ import annotations

import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from council.language import LANGUAGES, MAX_CHARS, detect_language

TEXTS = tomllib.loads((Path(__file__).parents[1] / "data" / "answer_languages.toml").read_text(encoding="utf-8"))[
    "texts"
]
GERMAN = "Das Team sollte warten, weil die neue Version noch nicht fertig ist und niemand sie kennt. "
ENGLISH = "The team should wait, because the new version is not ready yet and no one knows it. "


def describe(row: dict[str, Any]) -> str:
    return f"{row['language']}-{row.get('name') or ' '.join(row['text'].split())[:30]}"


@pytest.mark.behaviour("10-tail-language")
@pytest.mark.parametrize("row", TEXTS, ids=describe)
def test_the_language_of_an_answer_is_recognised(row: dict[str, Any]) -> None:
    assert detect_language(row["text"], row.get("question", "")) == row["language"]


def test_the_table_has_ten_texts_of_each_language_and_twenty_others() -> None:
    counts = Counter("other" if "name" in row else row["language"] for row in TEXTS)
    assert all(counts[language] >= 10 for language in LANGUAGES) and counts["other"] >= 20


@pytest.mark.parametrize(
    ("answer", "question", "language"),
    [
        ("Ja.", "", "en"),
        ("Ja.", "Sollen wir nach Berlin ziehen?", "de"),
        ("Ja.", "Moeten we naar Utrecht verhuizen?", "en"),
        ("PostgreSQL.", "Quelle base de données devons-nous choisir ?", "fr"),
        ("採用", "このライブラリを採用すべきですか？", "ja"),
        ("採用", "是否应该采用这个库？", "zh"),
        ("採用", "", "zh"),
        ("東京都港区", "どこに引っ越すべきですか？", "ja"),
        ("東京都千代田区丸の内", "どこに引っ越すべきですか？", "ja"),
        ("北海道札幌市中央区北一条", "どこに引っ越すべきですか？", "zh"),
        ("東京都千代田区", "我们应该搬到哪里？", "zh"),
        ("東京都千代田区", "Where should we move to, and what is the best place for us?", "zh"),
        ("Tokyo (東京).", "Where should we move to, and what is the best place for us?", "en"),
        (GERMAN, "Should we wait? Please answer in German.", "de"),
        (ENGLISH, "Sollen wir auf die neue Version warten?", "en"),
        ("", "¿Debemos esperar a la nueva versión?", "es"),
        ("", "", "en"),
    ],
)
def test_the_question_decides_only_if_the_answer_is_too_short(answer: str, question: str, language: str) -> None:
    assert detect_language(answer, question) == language


def test_code_does_not_count_however_long_it_is() -> None:
    code = "```python\n# the value of this is not for you and me\n```\n" * 100
    assert detect_language(code + GERMAN) == "de"
    assert detect_language(f"{GERMAN}\n```\n{ENGLISH * 10}") == "de"


def test_a_long_text_is_read_only_at_its_beginning() -> None:
    assert detect_language(GERMAN * 60 + ENGLISH * 1_000) == "de"
    assert len(GERMAN * 60) > MAX_CHARS


@given(st.text(max_size=300), st.text(max_size=100))
def test_any_text_has_one_of_the_languages(answer: str, question: str) -> None:
    assert detect_language(answer, question) in LANGUAGES
