"""Every required behaviour has a test, and every id in a test is in behaviours.toml."""

from __future__ import annotations

import ast
import tomllib
from collections import Counter
from collections.abc import Iterator
from functools import cache
from itertools import chain
from pathlib import Path

import pytest

from tests.paths import TESTS


@cache
def rows() -> list[dict[str, str]]:
    found: list[dict[str, str]] = tomllib.loads((TESTS / "behaviours.toml").read_text(encoding="utf-8"))["row"]
    return found


def marks(path: Path) -> Iterator[tuple[str, int]]:
    """Yield the ids of every `pytest.mark.behaviour(…)` in a file, with line numbers."""
    text = path.read_text(encoding="utf-8")
    for node in chain.from_iterable(map(ast.walk, _outer_parts(ast.parse(text)) if "behaviour" in text else ())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "behaviour":
            assert node.args, f"{path.name}:{node.lineno}: a behaviour mark without an id"
            for argument in node.args:
                written = isinstance(argument, ast.Constant) and isinstance(argument.value, str)
                assert written, f"{path.name}:{node.lineno}: write the id as a string literal"
                yield str(ast.literal_eval(argument)), node.lineno


def _outer_parts(node: ast.Module | ast.ClassDef) -> Iterator[ast.AST]:
    """Yield all parts of a file except the bodies of functions, which have no marks."""
    for one in node.body:
        if isinstance(one, ast.ClassDef):
            yield from (*one.decorator_list, *_outer_parts(one))
        elif isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from (*one.decorator_list, *one.args.defaults)
        else:
            yield one


@cache
def marked_ids() -> dict[str, list[str]]:
    """Return the places of each id."""
    found: dict[str, list[str]] = {}
    for path in sorted(TESTS.rglob("test_*.py")):
        for id_, line in marks(path):
            found.setdefault(id_, []).append(f"{path.relative_to(TESTS)}:{line}")
    return found


def test_every_row_has_a_test() -> None:
    assert [row["id"] for row in rows() if row["id"] not in marked_ids()] == []


def test_every_test_has_known_ids() -> None:
    known = {row["id"] for row in rows()}
    assert {id_: places for id_, places in marked_ids().items() if id_ not in known} == {}


def test_a_row_has_a_unique_id_a_source_and_a_behaviour() -> None:
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
def test_marks_are_found_on_tests_modules_and_parameters(tmp_path: Path, text: str, ids: list[str]) -> None:
    (tmp_path / "test_it.py").write_text(text)
    assert [id_ for id_, _ in marks(tmp_path / "test_it.py")] == ids


@pytest.mark.parametrize("text", ["pytest.mark.behaviour(ID)", "pytest.mark.behaviour()"])
def test_an_id_that_is_not_a_literal_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "test_it.py").write_text(text)
    with pytest.raises(AssertionError):
        list(marks(tmp_path / "test_it.py"))
