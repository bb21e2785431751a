"""The changes that the mutation sweep makes, and how it sees which tests execute them."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
CHANGED = """
def pick(rows, limit=3):
    if rows and len(rows) > 2:
        rows.clear()
    for row in rows[:limit]:
        if row.kind == "open":
            continue
        return not row
    return limit + 1
"""
UNCHANGED = '''
"""A module."""
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    import other
__all__ = ["pick"]
def pick(rows: Literal["a"] = None) -> Annotated[int, 3]:
    """Pick one of 3 rows."""
    logger.warning("no rows")
    assert rows
    print(f"{1 + 1} rows")
'''


@pytest.fixture(autouse=True)
def _benchmarks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))


def test_each_kind_of_change_is_found_once_with_its_place() -> None:
    from mutation import find_mutants

    mutants = find_mutants("src/council/x.py", CHANGED.encode())
    assert {(mutant.operator, mutant.old, mutant.new) for mutant in mutants} == {
        ("default", "3", "(3 + 1)"),
        ("default", "3", "(3 - 1)"),
        ("condition", "rows and len(rows) > 2", "True"),
        ("condition", "rows and len(rows) > 2", "False"),
        ("boolean", "and", "or"),
        ("comparison", ">", ">="),
        ("constant", "2", "(2 + 1)"),
        ("constant", "2", "(2 - 1)"),
        ("statement", "rows.clear()", "pass"),
        ("slice", "limit", ""),
        ("condition", 'row.kind == "open"', "True"),
        ("condition", 'row.kind == "open"', "False"),
        ("comparison", "==", "!="),
        ("constant", '"open"', "'openXX'"),
        ("loop", "continue", "break"),
        ("return", "not row", "None"),
        ("not", "not row", "(row)"),
        ("return", "limit + 1", "None"),
        ("arithmetic", "+", "-"),
        ("constant", "1", "(1 + 1)"),
        ("constant", "1", "(1 - 1)"),
    }
    assert len({mutant.key for mutant in mutants}) == len(mutants)
    for mutant in mutants:
        changed = mutant.apply(CHANGED.encode()).decode()
        assert ast.dump(ast.parse(changed)) != ast.dump(ast.parse(CHANGED)), mutant


def test_texts_annotations_and_logs_are_not_changed() -> None:
    from mutation import find_mutants

    mutants = find_mutants("src/council/x.py", UNCHANGED.encode())
    assert [(mutant.operator, mutant.old) for mutant in mutants] == [("statement", 'print(f"{1 + 1} rows")')]


def test_the_key_of_a_change_does_not_depend_on_the_lines_above() -> None:
    from mutation import find_mutants

    before = find_mutants("src/council/x.py", CHANGED.encode())
    after = find_mutants("src/council/x.py", b"import json\n\n" + CHANGED.encode())
    assert [mutant.key for mutant in before] == [mutant.key for mutant in after]


def test_a_measured_copy_records_the_executed_blocks_of_a_killed_process(tmp_path: Path) -> None:
    import mutant_tests

    package = tmp_path / "src" / "council"
    package.mkdir(parents=True)
    package.joinpath("__init__.py").write_text("", encoding="utf-8")
    package.joinpath("x.py").write_text(CHANGED, encoding="utf-8")
    server = tmp_path / "tests" / "fork_server.py"
    server.parent.mkdir()
    server.write_text((Path(__file__).parent / "fork_server.py").read_text(encoding="utf-8"), encoding="utf-8")
    names = mutant_tests.instrument(tmp_path)
    hits = tmp_path / "hits"
    hits.write_bytes(bytes(len(names)))
    code = "import os, council.x; council.x.pick([]); os.kill(os.getpid(), 9)"
    env = {"PYTHONPATH": str(tmp_path / "src"), mutant_tests.HITS: str(hits), mutant_tests.BLOCKS: str(len(names))}
    done = subprocess.run([sys.executable, "-c", code], env=env, check=False)
    assert done.returncode == -9
    executed = [name for name, hit in zip(names, hits.read_bytes(), strict=True) if hit]
    assert executed == ["src/council/x.py:pick#1"]
    blocks = mutant_tests.block_names(ast.parse(CHANGED), "src/council/x.py")
    assert set(names) == set(blocks.values())


def test_each_equivalent_change_has_its_code_and_a_reason() -> None:
    marks = tomllib.loads((BENCHMARKS / "mutants.toml").read_text(encoding="utf-8"))
    for key, mark in marks.items():
        assert set(mark) == {"path", "code", "change", "reason"}, key
        assert all(mark.values()), key
