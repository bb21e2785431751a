"""Recorded answers of many models to many questions, read from CSV or from logs of inspect_ai."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from council.errors import UsageError
from council.settings.catalogue import catalogue
from council.settings.schema import quote_value

QUESTION_COLUMNS = ("question", "id", "item")
TRUTH_COLUMNS = ("truth", "answer", "target")
INSPECT_SUFFIXES = (".eval", ".json")
RIGHT_SCORES: Mapping[Any, float] = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}  # letters that inspect_ai uses


@dataclass(frozen=True)
class Matrix:
    """The answers of each model to each question, and the right ones.

    `answers` holds a row per question with one answer per model; an empty answer is an abstention. `scores` holds
    the grades that came with the answers, if any; without them an answer is right if it equals the truth.
    """

    questions: tuple[str, ...]
    models: tuple[str, ...]
    truth: tuple[str, ...]
    answers: tuple[tuple[str, ...], ...]
    families: Mapping[str, str] = field(default_factory=dict)  # by model
    scores: tuple[tuple[float | None, ...], ...] = ()

    def right(self, model: str) -> list[bool]:
        """Return by question whether a model is right."""
        return [self.is_right(model, at) for at in range(len(self.questions))]

    def is_right(self, model: str, at: int) -> bool:
        column = self.models.index(model)
        if self.scores:
            return (self.scores[at][column] or 0.0) >= 1.0
        answer = self.answers[at][column]
        return bool(answer) and answer == self.truth[at]

    @cached_property
    def totals(self) -> dict[str, int]:
        """The number of right answers by model."""
        return {model: sum(self.right(model)) for model in self.models}


def normalize(answer: str) -> str:
    """Return an answer for comparison: without case, outer spaces and a final point."""
    return " ".join(answer.split()).casefold().removesuffix(".")


def guess_family(model: str) -> str:
    """Return the vendor of a model: from the model table, else the text before the first slash or colon."""
    known = catalogue().find(model.rpartition("/")[2].rpartition(":")[2])
    return known.vendor if known else model.partition("/" if "/" in model else ":")[0]


def read_matrix(paths: Sequence[Path]) -> Matrix:
    """Read one CSV file, or one or more logs of inspect_ai."""
    for path in paths:
        if not path.is_file():
            raise UsageError(f'"{path}" does not exist: name a CSV file, or logs of inspect_ai (.eval or .json)')
    if paths[0].suffix.lower() in INSPECT_SUFFIXES:
        return read_inspect_logs(paths)
    if len(paths) > 1:
        raise UsageError(f'"{paths[1]}" is a second CSV file: put the answers of all models into one file')
    try:
        with paths[0].open(encoding="utf-8-sig", newline="") as file:
            return read_csv(file, str(paths[0]))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UsageError(f'"{paths[0]}" cannot be read ({error}): save it as CSV in UTF-8') from None


# CSV


def read_csv(lines: Iterable[str], name: str = "the file") -> Matrix:
    """Read a table with a row per question: a column `question` or `id`, a column `truth`, and one column per model."""
    rows = list(csv.reader(lines))
    header = [cell.strip() for cell in rows[0]] if rows else []
    key = _find_column(header, QUESTION_COLUMNS)
    truth = _find_column(header, TRUTH_COLUMNS)
    if key is None or truth is None:
        missing = QUESTION_COLUMNS if key is None else TRUTH_COLUMNS
        raise UsageError(
            f'{name}: the header {quote_value(",".join(header)[:80])} has no column "{missing[0]}": '
            "begin the file with a header such as question,truth,model-a,model-b"
        )
    models = [n for n, column in enumerate(header) if n not in (key, truth) and column]
    if not models:
        raise UsageError(f"{name}: no column holds the answers of a model: add one column per model after the truth")
    names = tuple(header[n] for n in models)
    if twice := find_repeated(names):
        raise UsageError(f"{name}: the column {quote_value(twice)} occurs twice: name each model once")
    body = [row for row in rows[1:] if any(cell.strip() for cell in row)]
    for line, row in enumerate(body, 2):
        if len(row) != len(header):
            raise UsageError(
                f"{name}: row {line} has {len(row)} cells, but the header has {len(header)}: quote cells with commas"
            )
        if not row[truth].strip():
            raise UsageError(f"{name}: row {line} has no {header[truth]}: add the right answer, or remove the row")
    if not body:
        raise UsageError(f"{name}: there is no question: add one row per question below the header")
    questions = tuple(row[key] for row in body)
    if twice := find_repeated(questions):
        raise UsageError(f"{name}: the question {quote_value(twice[:60])} occurs twice: keep one row of it")
    return Matrix(
        questions,
        names,
        tuple(normalize(row[truth]) for row in body),
        tuple(tuple(normalize(row[n]) for n in models) for row in body),
        {model: guess_family(model) for model in names},
    )


def _find_column(header: Sequence[str], names: Sequence[str]) -> int | None:
    lowered = [column.lower() for column in header]
    return next((lowered.index(name) for name in names if name in lowered), None)


def find_repeated(values: Sequence[str]) -> str | None:
    """Return the first value that occurs twice."""
    return next((value for value, count in Counter(values).items() if count > 1), None)


# inspect_ai


def read_inspect_logs(paths: Sequence[Path]) -> Matrix:
    """Read logs that inspect_ai wrote, one per model and run of a task. The scores are those of the log."""
    try:
        from inspect_ai.log import read_eval_log
    except ImportError:
        raise UsageError(
            "logs of inspect_ai need its package, which is not installed: pip install 'model-council[inspect]'"
        ) from None
    columns: dict[str, dict[str, tuple[str, float | None]]] = {}
    truth: dict[str, str] = {}
    for path in paths:
        try:
            log = read_eval_log(str(path))
        except Exception as error:
            why = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise UsageError(
                f'"{path}" cannot be read as a log of inspect_ai ({why}): name a .eval or .json log'
            ) from None
        column = columns.setdefault(log.eval.model, {})
        for sample in log.samples or []:
            # Each epoch has its answer, so it counts as a question.
            key = f"{log.eval.task}/{sample.id}" + (f"#{sample.epoch}" if sample.epoch > 1 else "")
            truth[key] = normalize(sample.target if isinstance(sample.target, str) else " ".join(sample.target))
            column[key] = _read_sample(sample)
    questions = tuple(truth)
    if not questions:
        raise UsageError(f'"{paths[0]}" has no samples: name a log of a finished evaluation')
    absent: tuple[str, float | None] = ("", None)
    cells = [tuple(columns[model].get(question, absent) for model in columns) for question in questions]
    return Matrix(
        questions,
        tuple(columns),
        tuple(truth.values()),
        tuple(tuple(answer for answer, _ in row) for row in cells),
        {model: guess_family(model) for model in columns},
        tuple(tuple(score for _, score in row) for row in cells),
    )


def _read_sample(sample: Any) -> tuple[str, float | None]:
    """Return the answer of a sample and its score: that of its first scorer."""
    score = next(iter((sample.scores or {}).values()), None)
    output = sample.output.completion if sample.output else ""
    if score is None:
        return normalize(output), None
    answer = score.answer if isinstance(score.answer, str) and score.answer.strip() else output
    value = score.value if isinstance(score.value, int | float) else RIGHT_SCORES.get(str(score.value))
    return normalize(answer), value
