"""Reading and grading answers as models write them."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest

from council.errors import UsageError
from council.evals.dataset import Item, load_dataset, load_open_questions

CHOICES = ("a fox", "a dog", "the owl", "a bee")


@pytest.mark.behaviour("evidence-graders")
@pytest.mark.parametrize(
    ("grader", "answer", "text", "is_right"),
    [
        ("numeric", "42", "First 6 · 7.\n\n**Answer:** 42", True),
        ("numeric", "1200", "Answer: 1,200 euros", True),
        ("numeric", "0.5", "so \\boxed{1/2}", True),
        ("numeric", "-3", "The answer is −3.", True),
        ("exact", "No", "It may rain. The answer to this question is no. It is cold.", True),
        ("numeric", "42", "It is between 41 and 43.\nAnswer: about forty", False),
        ("numeric", "42", "I cannot answer this.", False),
        ("numeric", "42", "Answer: 41\n\nOn reflection:\n\nFinal answer: 42\n\n## Confidence Assessment\n\n**HIGH.** 17 of 20.", True),
        ("numeric", "42", "The total is 42", True),
        ("numeric", "42", "The total of all the parts that were listed in the table above is 42", True),
        ("numeric", "42", "Of 7 parts, 42", True),
        ("numeric", "0.5", "Answer: 50 %", True),
        ("numeric", "0.5", "Answer: 50%", True),
        ("numeric", "1", "Answer: 1/0", False),
        ("exact", "Berlin", "x" * 300, False),
        ("choice", "B", "Answer: B", True),
        ("choice", "B", "**Answer: (B) a dog**", True),
        ("choice", "a dog", "Answer: A dog", True),
        ("choice", "C", "answer is: the owl", True),
        ("choice", "B", "Answer: A or B", False),
        ("choice", "B", "A dog and a bee could both be meant.", False),
        ("choice", "D", "The correct option is D.", True),
        ("choice", "D", "I would choose (D) here.", True),
        ("choice", "A", "It was, I think, A long day.", False),
        ("exact", "Berlin", "## Verdict\n\nAnswer: **Berlin**.\n\n## Next Steps\n\n1. Go.", True),
        ("exact", "Berlin", "berlin", True),
        ("exact", "Berlin", "Berlin or Bonn.\nBoth were capitals.", False),
        ("regex", r"^(?:NYC|New York)\b", "Answer: New York City", True),
        ("regex", r"^(?:NYC|New York)\b", "Answer: Old New York", False),
    ],
)  # fmt: skip
def test_an_answer_is_read_as_models_write_it(grader: str, answer: str, text: str, is_right: bool) -> None:
    item = Item("1", "Which?", answer, CHOICES if grader == "choice" else (), grader)
    assert item.is_right(text) is is_right


def test_a_data_set_chooses_the_grader_by_the_answer(tmp_path: Path) -> None:
    path = tmp_path / "set.jsonl"
    path.write_text('{"question": "2+2", "answer": 4}\n\n{"id": "x", "question": "Who?", "answer": "B", "choices": ["I", "you"]}\n{"question": "Where?", "answer": "Rome"}\n')  # fmt: skip
    items = load_dataset(str(path))
    assert [item.grader for item in items] == ["numeric", "choice", "exact"]
    assert items[1].id == "x" and "B) you" in items[1].ask() and 'as "Answer: B"' in items[1].ask()
    assert load_dataset(str(path), limit=1) == items[:1]
    table = tmp_path / "set.csv"
    table.write_text("question,answer,choices\nWho?,you,I|you\n")
    assert load_dataset(str(table))[0].key == "B"


def test_a_column_says_whether_the_order_of_a_list_counts(tmp_path: Path) -> None:
    path = tmp_path / "set.jsonl"
    path.write_text(
        '{"question": "Which?", "answer": "red, blue", "list": "set"}\n'
        '{"question": "Which?", "answer": ["red", "blue"], "list": "ordered"}\n'
    )
    items = load_dataset(str(path))
    assert [item.mark("Answer: blue and red") for item in items] == ["right", "wrong"]
    assert [item.mark("Answer: red; blue") for item in items] == ["right", "right"]
    assert 'as "Answer: one, two, three"' in items[0].ask()


@pytest.mark.behaviour("evidence-blind")
def test_an_open_question_has_no_answer_and_no_form(tmp_path: Path) -> None:
    path = tmp_path / "open.jsonl"
    rows = [
        '{"id": "a", "question": "Why?"}',
        '{"question": "2+2?", "answer": 4}',
        '{"id": "b", "question": "How?", "answer": ""}',
    ]
    rows += [
        '{"id": "c", "question": "Which?", "answer": "x", "grader": "blind"}',
        '{"id": "d", "question": "Who?", "choices": ["I", "you"]}',
    ]
    path.write_text("\n".join(rows))
    items, left_out = load_open_questions(str(path))
    assert [item.id for item in items] == ["a", "b", "c", "d"] and left_out == 1
    assert items[0].ask() == "Answer this question.\n\nWhy?" and items[0].read("Answer: x") == ""
    assert items[3].ask().endswith("A) I\nB) you")
    assert [item.id for item in load_open_questions(str(path), 2)[0]] == ["a", "b"]
    table = tmp_path / "open.csv"
    table.write_text("question,answer\nWhy?,\nWho?,me\n")
    assert [item.question for item in load_open_questions(str(table))[0]] == ["Why?"]


def test_generated_questions_name_the_extra_that_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "reasoning_gym", None)
    with pytest.raises(UsageError, match=r'pip install "model-council\[eval\]"'):
        load_dataset("gym:basic_arithmetic")


def test_generated_questions_are_as_many_as_asked_for_or_30(monkeypatch: pytest.MonkeyPatch) -> None:
    """The package is replaced by a generator of the same shape; a sweep test has the real one."""

    class Sums(list[dict[str, str]]):
        def score_answer(self, said: str, entry: dict[str, str]) -> float:
            return float(said == entry["answer"])

    def create_dataset(name: str, size: int, seed: int) -> Sums:
        return Sums({"question": f"{n} + {seed}?", "answer": str(n + seed)} for n in range(size))

    package, factory = ModuleType("reasoning_gym"), ModuleType("reasoning_gym.factory")
    vars(package)["create_dataset"], vars(factory)["DATASETS"] = create_dataset, {"sums": None}
    monkeypatch.setitem(sys.modules, "reasoning_gym", package)
    monkeypatch.setitem(sys.modules, "reasoning_gym.factory", factory)
    items = load_dataset("gym:sums", limit=3, seed=7)
    assert [(item.question, item.is_right(f"Answer: {n + 7}")) for n, item in enumerate(items)] == [
        (f"{n} + 7?", True) for n in range(3)
    ]
    assert len(load_dataset("gym:sums")) == 30


def test_a_verifier_that_knows_one_spelling_accepts_another_case() -> None:
    item = Item("1", "q", "Yes", grader="gym", verify=lambda said: float(said == "Yes"))
    assert item.is_right("Answer: yes") and item.is_right("Yes") and not item.is_right("Answer: no")
    half = Item("1", "q", "1/2", grader="gym", verify=lambda said: float(said in ("1/2", "0.5")))
    assert half.is_right("Answer: 0.5") and not half.is_right("Answer: 0.6")
    assert not Item("1", "q", "", grader="gym", verify=lambda said: 0.5).is_right("Answer: ")


@pytest.mark.sweep
def test_generated_questions_are_seeded_and_verified_by_their_generator() -> None:
    pytest.importorskip("reasoning_gym", reason="the extra eval is not installed: pip install 'model-council[eval]'")
    items = load_dataset("gym:basic_arithmetic", limit=5, seed=3)
    assert (
        items
        == load_dataset("gym:basic_arithmetic", limit=5, seed=3)
        != load_dataset("gym:basic_arithmetic", limit=5, seed=4)
    )
    assert all(item.is_right(f"So it is.\n\nAnswer: {item.answer}") for item in items)
    assert not any(item.is_right("Answer: perhaps") for item in items)
    with pytest.raises(UsageError, match='unknown generator "basic_arithmetics": did you mean "basic_arithmetic"'):
        load_dataset("gym:basic_arithmetics")


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("{", "is not JSON"),
        ("[1]", "is no object"),
        ('{"question": "q"}', 'has no "answer": add one, or compare open questions with --grader blind'),
        ('{"question": "q", "grader": "blind"}', "use --grader blind"),
        ('{"question": "q", "answer": ["x", "y"]}', '"answer" is ["x", "y"]: write one text or number'),
        ('{"question": "q", "answer": "x", "choices": ["a", "b"]}', '"x" is none of the choices'),
        ('{"question": "q", "answer": "a", "choices": ["a"]}', "are not 2 to 26 texts"),
        ('{"question": "q", "answer": "a", "choices": 3}', "are not 2 to 26 texts"),
        ('{"question": "q", "answer": "a", "choices": "a | b | "}', "are not 2 to 26 texts"),
        ('{"question": "q", "answer": "(", "grader": "regex"}', "is no regular expression"),
        ('{"question": "q", "answer": "x", "grader": "numeric"}', '"x" is no number'),
        ('{"question": "q", "answer": "x, y", "list": "bag"}', '"list" is "bag": write "ordered", or "set"'),
        ('{"question": "q", "answer": "x", "grader": "best"}', 'unknown grader "best"'),
        ('{"id": 1, "question": "q", "answer": "x"}\n{"id": 1, "question": "r", "answer": "x"}', "twice"),
    ],
)
def test_a_bad_item_is_refused_in_one_line(line: str, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "set.jsonl"
    path.write_text(line)
    with pytest.raises(UsageError) as error:
        load_dataset(str(path))
    assert problem in str(error.value) and "\n" not in str(error.value)


def test_line_ends_inside_a_question_are_kept(tmp_path: Path) -> None:
    lines, table = tmp_path / "set.jsonl", tmp_path / "set.csv"
    lines.write_text('{"question": "a\u2028b", "answer": "x"}\n', encoding="utf-8")
    table.write_text('question,answer\n"a\nb",x\n', encoding="utf-8")
    assert [load_dataset(str(path))[0].question for path in (lines, table)] == ["a\u2028b", "a\nb"]
