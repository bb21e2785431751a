"""Endings of answers written by hand: each is marked as a careful person would mark it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from council.final_answers.marks import Question, make_key, mark_reply
from council.types import Json

ENDINGS = Path(__file__).parents[1] / "data" / "endings"


def read(name: str) -> list[Json]:
    return [json.loads(line) for line in (ENDINGS / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]


def mark(row: Json) -> str:
    question = Question(row["question"], tuple(row.get("choices") or ()), row.get("list") or "")
    return mark_reply(row["reply"], make_key(str(row["answer"]), question))


@pytest.mark.behaviour("evidence-endings")
@pytest.mark.parametrize(
    ("name", "count", "floor"),
    [("own", 150, 150), ("set1", 170, 170), ("set2", 170, 165), ("set3", 180, 180), ("set4", 180, 180)],
)
def test_endings_are_marked_as_a_person_marks_them(name: str, count: int, floor: int) -> None:
    rows = read(name)
    found = [(mark(row), row) for row in rows]
    assert len(rows) == count
    assert sum(said == row["mark"] for said, row in found) >= floor
    assert not [row["id"] for said, row in found if said == "right" != row["mark"]]
