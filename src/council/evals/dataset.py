"""Data sets and graders: read questions with known answers, ask for an answer in one line, read it and grade it."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from council.errors import UsageError
from council.evals.matrix import find_repeated, normalize
from council.final_answers.choices import LETTERS
from council.final_answers.finder import find_last_answer
from council.final_answers.marks import (
    AnswerKey,
    ListForm,
    Mark,
    Question,
    Reading,
    find_choice,
    find_kind,
    make_key,
    mark_reply,
    read_reply,
)
from council.final_answers.quantities import read_number
from council.settings.schema import quote_value
from council.types import Json

BLIND = "blind"
GRADERS = ("auto", "exact", "numeric", "choice", "regex", "gym", "judges", BLIND)
GYM_PREFIX = "gym:"
DEFAULT_GYM_ITEMS = 30
LIST_FORMS: tuple[ListForm, ...] = ("ordered", "set")


@dataclass(frozen=True, slots=True)
class Item:
    """A question with its right answer; an open one has none. `verify` returns the score of an answer, from 0 to 1."""

    id: str
    question: str
    answer: str
    choices: tuple[str, ...] = ()
    grader: str = "exact"
    items: ListForm = ""  # of an answer that is a list: whether the order counts
    verify: Callable[[str], float] | None = field(default=None, compare=False)

    @property
    def is_open(self) -> bool:
        """Whether the question has no right answer, so that texts are compared."""
        return self.grader == BLIND

    def ask(self) -> str:
        """Return the question as it is asked, with the form of the last line; an open one has no form."""
        parts = ["Answer this question.", self.question.strip()]
        if self.choices:
            parts.append("\n".join(f"{letter}) {text}" for letter, text in zip(LETTERS, self.choices, strict=False)))
        if not self.is_open:
            parts.append(self._describe_last_line())
        return "\n\n".join(parts)

    def _describe_last_line(self) -> str:
        if self.choices:
            return 'End with one line that contains only the letter of your choice, as "Answer: B".'
        if self.grader == "numeric":
            return 'End with one line that contains only the number, as "Answer: 42".'
        if self.items:
            return 'End with one line that contains only the list, as "Answer: one, two, three".'
        return 'End with one line that contains only the final answer, as "Answer: …".'

    def read(self, text: str) -> str:
        """Return the answer in a text in a form that can be compared; empty if there is none, or if several fit."""
        return read_answer(text, self.grader, self.choices, question=self.question, items=self.items).answer

    def mark(self, text: str) -> Mark:
        """Return whether the answer in a text is right, wrong, ambiguous, or cannot be read."""
        if self.verify is not None or self.grader == "regex":
            said = find_last_answer(text) or text.strip()
            return "unreadable" if not said else "right" if self._accepts(said) else "wrong"
        return mark_reply(text, self._key)

    def is_right(self, text: str) -> bool:
        """Return whether the answer in a text is right. One that is ambiguous or cannot be read is not."""
        return self.mark(text) == "right"

    def _accepts(self, said: str) -> bool:
        if self.verify is None:
            return re.search(self.answer, said, re.IGNORECASE) is not None
        return self.verify(said) >= 1.0 or (bool(self.answer) and normalize(said) == normalize(self.answer))

    @property
    def _key(self) -> AnswerKey:
        return make_key(self.answer, Question(self.question, self.choices, self.items))

    @property
    def key(self) -> str:
        """The right answer in the form of `read`."""
        if self.grader == "choice":
            choice = find_choice(self.answer, self.choices)
            return normalize(self.answer) if choice is None else LETTERS[choice]
        return read_answer(f"Answer: {self.answer}", self.grader, question=self.question, items=self.items).answer


# Reading answers


def read_answer(
    text: str, grader: str, choices: Sequence[str] = (), *, question: str = "", items: ListForm = ""
) -> Reading:
    """Return the answer in a text, in a form in which equal answers are equal."""
    if grader == BLIND:
        return Reading()
    asked = Question(question, tuple(choices), items)
    if grader == "choice":
        return read_reply(text, "choice", asked)
    if grader == "numeric":
        return read_reply(text, "number", asked)
    return read_reply(text, "list" if items else find_kind(text, question), asked)


# Reading data sets


def load_dataset(name: str, *, grader: str = "auto", limit: int | None = None, seed: int = 0) -> list[Item]:
    """Return the items of a file of JSON lines or CSV, or of a generator `gym:NAME`."""
    if name.startswith(GYM_PREFIX):
        return generate_items(name.removeprefix(GYM_PREFIX), limit or DEFAULT_GYM_ITEMS, seed)
    if grader == "gym":
        raise UsageError(f'the grader "gym" belongs to generated data sets: use {GYM_PREFIX}NAME instead of "{name}"')
    path = Path(name)
    if not path.is_file():
        reason = "is a folder" if path.is_dir() else "does not exist"
        raise UsageError(f'the data set "{name}" {reason}: name a file of JSON lines or CSV, or {GYM_PREFIX}NAME')
    items = read_items(path, grader)
    if not items:
        raise UsageError(f'"{name}" has no questions: add rows such as {{"question": "…", "answer": "…"}}')
    if twice := find_repeated([item.id for item in items]):
        raise UsageError(f'"{name}" has the item {quote_value(twice)} twice: give each its own id')
    return items[:limit]


def load_open_questions(name: str, limit: int | None = None) -> tuple[list[Item], int]:
    """Return the open questions of a file, and how many rows with an answer were left out."""
    items = load_dataset(name, grader=BLIND)
    found = [item for item in items if item.is_open]
    if not found:
        raise UsageError(
            f'"{name}" has no open question: the grader "blind" needs rows without "answer", such as {{"question": "…"}}'
        )
    return found[:limit], len(items) - len(found)


def read_items(path: Path, grader: str) -> list[Item]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f'"{path}" cannot be read ({error}): save it as UTF-8') from None
    if path.suffix.lower() == ".csv":
        rows = [(n, dict(row)) for n, row in enumerate(csv.DictReader(io.StringIO(text)), 2)]
    else:
        rows = [(n, _parse_line(path, n, line)) for n, line in enumerate(text.split("\n"), 1) if line.strip()]
    return [make_item(row, f'line {n} of "{path}"', grader) for n, row in rows]


def _parse_line(path: Path, number: int, line: str) -> Json:
    try:
        value: Any = json.loads(line)
    except ValueError as error:
        raise UsageError(f'line {number} of "{path}" is not JSON ({error}): write one object on each line') from None
    if not isinstance(value, dict):
        raise UsageError(f'line {number} of "{path}" is no object: write {{"question": "…", "answer": "…"}}')
    return value


def make_item(row: Mapping[str, Any], place: str, grader: str) -> Item:
    """Return an item, or raise UsageError with the place, the problem and the fix.

    With the grader "blind" a row without an answer is an open question, and any other is graded as without a grader.
    """
    items = _read_list_form(row.get("list"), place)
    if items and isinstance(row.get("answer"), list):
        row = {**row, "answer": "; ".join(map(_to_text, row["answer"]))}
    question, answer = (_to_text(row.get(name)) for name in ("question", "answer"))
    own_grader = _to_text(row.get("grader"))
    is_open = own_grader == BLIND or (grader == BLIND and not own_grader and row.get("answer") in (None, ""))
    if is_open and grader != BLIND:
        raise UsageError(f'{place}: the grader "{BLIND}" compares the arms on a whole data set: use --grader {BLIND}')
    for name, value in (("question", question), ("answer", answer)):
        if not value.strip() and not (is_open and name == "answer"):
            if isinstance(row.get(name), bool | list | dict):
                raise UsageError(f'{place}: "{name}" is {json.dumps(row[name])[:60]}: write one text or number')
            fix = ", or compare open questions with --grader blind" if name == "answer" and grader != BLIND else ""
            raise UsageError(f'{place} has no "{name}": add one{fix}')
    choices = _read_choices(row.get("choices"), place)
    chosen = BLIND if is_open else own_grader or ("auto" if grader == BLIND else grader)
    if chosen not in GRADERS or chosen == "gym":
        raise UsageError(f'{place}: unknown grader "{chosen}": known are {", ".join(GRADERS)}')
    if chosen == "auto":
        number = None if items else read_number(answer)
        chosen = "choice" if choices else "numeric" if number and number.word in ("", "%") else "exact"
    digest = hashlib.sha256(f"{question}\n{answer}".encode("utf-8", "surrogatepass")).hexdigest()
    item = Item(_to_text(row.get("id")) or digest[:10], question, answer, choices, chosen, items)
    _check_item(item, place)
    return item


def _check_item(item: Item, place: str) -> None:
    if item.grader == "choice" and item.key not in LETTERS[: len(item.choices)]:
        raise UsageError(
            f"{place}: the answer {quote_value(item.answer)} is none of the choices: name its letter or its text"
        )
    if item.grader == "numeric" and read_number(item.answer) is None:
        raise UsageError(f"{place}: the answer {quote_value(item.answer)} is no number: use another grader")
    if item.grader == "regex":
        try:
            re.compile(item.answer)
        except re.error as error:
            raise UsageError(
                f"{place}: {quote_value(item.answer)} is no regular expression ({error}): correct it"
            ) from None


def _read_list_form(value: Any, place: str) -> ListForm:
    form = _to_text(value)
    if form and form not in LIST_FORMS:
        raise UsageError(
            f'{place}: "list" is {quote_value(form)}: write "ordered", or "set" if the order does not count'
        )
    return "ordered" if form == "ordered" else "set" if form else ""


def _read_choices(value: Any, place: str) -> tuple[str, ...]:
    if value in (None, "", []):
        return ()
    if isinstance(value, str):
        value = value.split("|")
    if not isinstance(value, list) or not 2 <= len(value) <= len(LETTERS) or not all(map(_to_text, value)):
        raise UsageError(f'{place}: choices {quote_value(str(value)[:60])} are not 2 to 26 texts: use ["…", "…"]')
    return tuple(map(_to_text, value))


def _to_text(value: Any) -> str:
    return "" if value is None or isinstance(value, bool | list | dict) else str(value).strip()


# reasoning-gym


def generate_items(name: str, count: int, seed: int) -> list[Item]:
    """Return seeded items of a generator of reasoning-gym, which verifies the answers itself."""
    try:
        import reasoning_gym
    except ImportError:
        raise UsageError(
            f'"{GYM_PREFIX}{name}" needs the package reasoning-gym, which is not installed: pip install "model-council[eval]"'
        ) from None
    from reasoning_gym.factory import DATASETS

    if name not in DATASETS:
        from difflib import get_close_matches

        near = get_close_matches(name, list(DATASETS), n=1)
        hint = f'did you mean "{near[0]}"? ' if near else ""
        raise UsageError(
            f'unknown generator "{name}": {hint}reasoning-gym has {len(DATASETS)}, such as basic_arithmetic'
        )
    data = reasoning_gym.create_dataset(name, size=count, seed=seed)
    return [
        Item(
            f"{name}-{n}",
            str(entry["question"]),
            str(entry["answer"] or ""),
            (),
            "gym",
            verify=partial(_score, data, entry),
        )
        for n, entry in enumerate(data)
    ]


def _score(data: Any, entry: Json, said: str) -> float:
    return float(data.score_answer(said, entry))
