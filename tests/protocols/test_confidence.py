"""A confidence in a reply, as a word or as a number."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from council.protocols.common.replies import ConfidenceField, Probability

WORD: TypeAdapter[str] = TypeAdapter(ConfidenceField)
NUMBER: TypeAdapter[float] = TypeAdapter(Probability)


@pytest.mark.parametrize(
    ("said", "share"),
    [(0, 0.0), (0.8, 0.8), (1, 1.0), ("1", 1.0), (11, 0.11), (100, 1.0), ("2 %", 0.02), ("100%", 1.0), ("2/10", 0.2), ("10/10", 1.0)],
)  # fmt: skip
def test_a_number_of_a_clear_scale_is_a_share(said: Any, share: float) -> None:
    assert NUMBER.validate_python(said) == pytest.approx(share)


@pytest.mark.parametrize("said", [-0.1, 1.01, 1.5, 2, "1.5", "2", 7, 10, 101, "101 %", "11/10", True, False])
def test_a_number_that_may_be_of_10_or_of_100_is_no_confidence(said: Any) -> None:
    for field in (NUMBER, WORD):
        with pytest.raises(ValidationError):
            field.validate_python(said)


@pytest.mark.parametrize(
    ("said", "level"),
    [(0.8, "HIGH"), (0.79, "MEDIUM"), (0.5, "MEDIUM"), (0.49, "LOW"), (0, "LOW"), (80, "HIGH"), ("1/1", "HIGH"), ("HIGH (90%)", "HIGH")],
)  # fmt: skip
def test_a_share_has_the_word_of_its_level(said: Any, level: str) -> None:
    assert WORD.validate_python(said) == level


@pytest.mark.parametrize("said", [1, "1", "HIGH (20%)", "LOW (0.8)"])
def test_a_word_or_a_one_that_can_mean_another_level_is_no_confidence(said: Any) -> None:
    with pytest.raises(ValidationError):
        WORD.validate_python(said)
