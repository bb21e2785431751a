"""Every behaviour that is demanded has a test, and every id a test carries is demanded."""

from __future__ import annotations

import ast
import tomllib
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).parent


@cache
def rows() -> list[dict[str, str]]:
    found: list[dict[str, str]] = tomllib.loads((TESTS / "behaviours.toml").read_text(encoding="utf-8"))["row"]
    return found


def marks(path: Path) -> Iterator[tuple[str, int]]:
    """The ids of every `pytest.mark.behaviour(…)` in a file: on a test, a class, a parameter or the whole module."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "behaviour":
            assert node.args, f"{path.name}:{node.lineno}: a behaviour mark without an id"
            for argument in node.args:
                written = isinstance(argument, ast.Constant) and isinstance(argument.value, str)
                assert written, f"{path.name}:{node.lineno}: write the id out, so that it can be found"
                yield str(ast.literal_eval(argument)), node.lineno


@cache
def carried() -> dict[str, list[str]]:
    """Where each id is carried."""
    found: dict[str, list[str]] = {}
    for path in sorted(TESTS.rglob("test_*.py")):
        for id_, line in marks(path):
            found.setdefault(id_, []).append(f"{path.relative_to(TESTS)}:{line}")
    return found


def test_every_row_has_a_test() -> None:
    assert [row["id"] for row in rows() if row["id"] not in carried()] == []


def test_every_test_carries_known_ids() -> None:
    known = {row["id"] for row in rows()}
    assert {id_: places for id_, places in carried().items() if id_ not in known} == {}


def test_a_row_has_an_id_of_its_own_a_source_and_a_behaviour() -> None:
    assert [id_ for id_, times in Counter(row["id"] for row in rows()).items() if times > 1] == []
    assert all(set(row) == {"id", "source", "behaviour"} and all(row.values()) for row in rows())


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ('@pytest.mark.behaviour("a", "b")\ndef test_x(): ...', ["a", "b"]),
        ('pytestmark = [pytest.mark.anyio, pytest.mark.behaviour("c")]', ["c"]),
        ('ROWS = [pytest.param(1, marks=pytest.mark.behaviour("d"))]', ["d"]),
        ("def test_y(): ...", []),
    ],
)
def test_marks_are_found_wherever_they_stand(tmp_path: Path, text: str, ids: list[str]) -> None:
    (tmp_path / "test_it.py").write_text(text)
    assert [id_ for id_, _ in marks(tmp_path / "test_it.py")] == ids


@pytest.mark.parametrize("text", ["pytest.mark.behaviour(ID)", "pytest.mark.behaviour()"])
def test_an_id_that_cannot_be_found_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "test_it.py").write_text(text)
    with pytest.raises(AssertionError):
        list(marks(tmp_path / "test_it.py"))
