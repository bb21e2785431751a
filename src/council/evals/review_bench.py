"""Review bench: small programs with one planted bug each, clean controls, and the measures of what reviewers find.

A bug is a mutant of a program that the program's own checks reject, so it is a real defect with a known line. A review
is measured by the findings at that line, by how many judges support a finding, and by the grouping rule of judges.
"""

from __future__ import annotations

import ast
import json
import random
import sys
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any, Literal, TypedDict

from council.engine.records import ReportObject
from council.evals.review_measures import (
    NEAR_LINES,
    Reviewed,
    SupportObject,
    count_judges,
    count_split,
    count_support,
    format_share,
    measure_support,
    read_judges,
)
from council.evals.statistics import bootstrap_mean
from council.runs.batch_rows import InputRow
from council.runs.eval_object import IntervalObject
from council.settings.private_files import make_named_folder, open_named_file
from council.types import Json

BENCH = "bench:review"
PROGRAMS_FILE = Path(__file__).with_name("programs.toml")
FILE_NAME = "program.py"
MAX_STEPS = 20_000  # lines that the checks of a program may run; a mutant may loop forever
BUGS_PER_PROGRAM = 2


# Mutants


SWAPS: dict[type[ast.AST], Any] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.And: ast.Or,
    ast.Or: ast.And,
}


def _mutate_boundary(node: ast.Compare) -> None:
    node.ops = [SWAPS.get(type(op), type(op))() for op in node.ops]


def _mutate_operator(node: ast.BinOp | ast.BoolOp) -> None:
    node.op = SWAPS.get(type(node.op), type(node.op))()


def _mutate_constant(node: ast.Constant) -> None:
    if type(node.value) is int:
        node.value += 1


def _mutate_condition(node: ast.If) -> None:
    node.test = node.test.operand if isinstance(node.test, ast.UnaryOp) else ast.UnaryOp(ast.Not(), node.test)


# Kind of node that each operator changes, and the change.
OPERATORS: dict[str, tuple[type[ast.AST], Callable[[Any], None]]] = {
    "boundary": (ast.Compare, _mutate_boundary),
    "sign": (ast.BinOp, _mutate_operator),
    "logic": (ast.BoolOp, _mutate_operator),
    "constant": (ast.Constant, _mutate_constant),
    "condition": (ast.If, _mutate_condition),
}


@dataclass(frozen=True, slots=True)
class Case:
    """A program to review. `line` is that of its bug, 0 for a clean control."""

    id: str
    source: str
    operator: str = ""
    line: int = 0

    @property
    def bug_text(self) -> str:
        return self.source.splitlines()[self.line - 1].strip() if self.line else ""

    def is_hit(self, line: int | None, quote: str = "") -> bool:
        """Return whether a finding at this line, or with this quote, reports the bug."""
        if not self.line:
            return False
        if quote.strip() and self.bug_text in (part.strip() for part in quote.splitlines()):
            return True
        return line is not None and abs(line - self.line) <= NEAR_LINES


@cache
def load_programs() -> dict[str, tuple[str, str]]:
    """Return the source and the checks of each program."""
    tables = tomllib.loads(PROGRAMS_FILE.read_text(encoding="utf-8"))
    return {name: (ast.unparse(ast.parse(row["source"])) + "\n", row["checks"]) for name, row in tables.items()}


def list_mutants(source: str) -> Iterator[tuple[str, int, str]]:
    """Yield each mutant of a program as its operator, the line that it changes, and its source."""
    before = source.splitlines()
    for n, node in enumerate(ast.walk(ast.parse(source))):
        for name, (kind, mutate) in OPERATORS.items():
            if isinstance(node, kind):
                tree = ast.parse(source)
                mutate(list(ast.walk(tree))[n])
                after = ast.unparse(tree).splitlines()
                changed = [at for at, (old, new) in enumerate(zip(before, after, strict=True), 1) if old != new]
                if len(changed) == 1:
                    yield name, changed[0], "\n".join(after) + "\n"


def is_killed(source: str, checks: str) -> bool:
    """Return whether the checks of a program reject this version of it. A version that runs too long is rejected."""
    steps = 0

    def count(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal steps
        steps += 1
        if steps > MAX_STEPS:
            raise TimeoutError
        return count

    names: dict[str, object] = {}
    earlier = sys.gettrace()
    try:
        exec(compile(source, FILE_NAME, "exec"), names)
        sys.settrace(count)
        exec(compile(checks, "checks.py", "exec"), names)
    except Exception:
        return True
    finally:
        sys.settrace(earlier)
    return False


def make_cases(seed: int = 0, limit: int | None = None) -> list[Case]:
    """Return for each program some versions with one bug, and the clean one as a control, in an order that mixes
    them.
    """
    rng = random.Random(f"bench {seed}")
    cases: list[Case] = []
    for name, (source, checks) in load_programs().items():
        mutants = [mutant for mutant in list_mutants(source) if is_killed(mutant[2], checks)]
        rng.shuffle(mutants)
        chosen: dict[str, tuple[str, int, str]] = {}
        for mutant in mutants:  # one of each kind first
            chosen.setdefault(mutant[0], mutant)
        for n, (operator, line, text) in enumerate(list(chosen.values())[:BUGS_PER_PROGRAM], 1):
            cases.append(Case(f"{name}-{n}", text, operator, line))
        cases.append(Case(f"{name}-clean", source))
    rng.shuffle(cases)
    return cases[:limit]


def write_repositories(cases: Sequence[Case], folder: Path) -> None:
    """Write each program to its own folder, and the bugs to `bugs.json`, for other reviewers."""
    for case in cases:
        place = folder / case.id
        make_named_folder(place)
        with open_named_file(place / FILE_NAME, encoding="utf-8") as file:
            file.write(case.source)
    bugs = {case.id: {"line": case.line, "operator": case.operator} for case in cases if case.line}
    with open_named_file(folder / "bugs.json", encoding="utf-8") as file:
        file.write(json.dumps(bugs, indent=2) + "\n")


def make_bench_row(case: Case, options: Json) -> InputRow:
    """Return the row of a batch in which judges review a program."""
    question = (
        "Find the defects of this Python program: where it does not do what its docstrings say. Report no style issues."
    )
    return {
        "id": case.id,
        "question": question,
        "options": options | {"protocol": "judges", "no_match": True, "material": case.source},
    }


# Measures


def read_review(case: Case, report: ReportObject) -> Reviewed:
    rows = [
        (count_support(one), case.is_hit(one.get("line"), one.get("quote", "") if one["verified"] else ""))
        for one in report["findings"]
    ]
    return Reviewed(bool(case.line), tuple(rows), read_judges(report))


class GroupingMeasure(TypedDict):
    """How well the findings that report one bug are joined."""

    precision: IntervalObject
    recall: IntervalObject


class BenchObject(TypedDict):
    """The object `council.review-bench/1`."""

    schema: Literal["council.review-bench/1"]
    programs: int
    bugs: int
    controls: int
    judges: int
    by_support: list[SupportObject]
    controls_with_findings: IntervalObject
    split_bugs: int
    grouping: GroupingMeasure | None


def summarize_bench(reviews: Sequence[Reviewed], grouping: GroupingMeasure | None = None) -> BenchObject:
    """Return the result of a bench as the object `council.review-bench/1`."""
    clean = [one for one in reviews if not one.has_bug]
    return {
        "schema": "council.review-bench/1",
        "programs": len(reviews),
        "bugs": len(reviews) - len(clean),
        "controls": len(clean),
        "judges": count_judges(reviews),
        "by_support": measure_support(reviews),
        "controls_with_findings": bootstrap_mean([bool(one.findings) for one in clean]).as_json(),
        "split_bugs": count_split(reviews),
        "grouping": grouping,
    }


def format_bench(result: BenchObject) -> str:
    lines = [f"{'found by':<10}{'recall':>18}{'precision':>18}{'F1':>7}"]
    for row in result["by_support"]:
        f1 = "" if row["f1"] is None else f"{row['f1']:.2f}"
        lines.append(
            f"{row['support']} or more".ljust(10)
            + f"{format_share(row['recall']):>18}{format_share(row['precision']):>18}{f1:>7}"
        )
    lines += [
        "",
        f"- {result['bugs']} programs with one bug, {result['controls']} without; 95 % intervals in brackets.",
        f"- programs without a bug that got findings: {format_share(result['controls_with_findings'])}.",
        f"- bugs that were reported as several findings: {result['split_bugs']}.",
    ]
    if grouping := result["grouping"]:
        lines.append(
            f"- grouping rule: of the pairs it joins {format_share(grouping['precision'])} report one bug; of the pairs that report one bug it joins {format_share(grouping['recall'])}."
        )
    lines.append(
        "- A mutant is a simple bug in a small program. Real defects are harder to find, so expect lower figures."
    )
    return "\n".join(lines)
