"""Second-round answers as prose: each begins with its word, once."""

from __future__ import annotations

import pytest

from council.protocols.general.replies import DisputeAnswer, Reconsidered


@pytest.mark.parametrize(
    ("word", "paragraph", "shown"),
    [
        ("MAINTAIN", "MAINTAIN: the benchmark was repeated.", "MAINTAIN: the benchmark was repeated."),
        (
            "MAINTAIN",
            "**Maintain**, because the benchmark was repeated.",
            "**Maintain**, because the benchmark was repeated.",
        ),
        ("CONCEDE", "  The other side measured it.\n", "CONCEDE: The other side measured it."),
        ("CONCEDE", "", "CONCEDE: "),
    ],
)
def test_an_answer_begins_with_its_word_once(word: str, paragraph: str, shown: str) -> None:
    answer = DisputeAnswer(topic="A1", word=word, paragraph=paragraph, confidence=0.5)  # type: ignore[arg-type]
    assert Reconsidered(answers=[answer]).prose() == f"**A1** {shown}"
