"""Recorded answers from logs of inspect_ai.

The package is replaced by a reader of the same shape; a sweep test has the real one.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from council.errors import UsageError
from council.evals.matrix import read_matrix

pytestmark = pytest.mark.behaviour("evidence-inspect")


@pytest.fixture(autouse=True)
def inspect_package(monkeypatch: pytest.MonkeyPatch) -> None:
    package, log = ModuleType("inspect_ai"), ModuleType("inspect_ai.log")
    log.read_eval_log = _read_log  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "inspect_ai", package)
    monkeypatch.setitem(sys.modules, "inspect_ai.log", log)


def _read_log(path: str) -> Any:
    return json.loads(Path(path).read_text(encoding="utf-8"), object_hook=lambda fields: Fields(**fields))


class Fields(SimpleNamespace):
    def values(self) -> list[Any]:
        return list(vars(self).values())


def sample(id: int, target: Any, answer: str, *scores: Any, epoch: int = 1, extracted: str | None = None) -> Any:
    named = {f"scorer{n}": {"value": value, "answer": extracted} for n, value in enumerate(scores)}
    return {"id": id, "epoch": epoch, "target": target, "output": {"completion": answer}, "scores": named or None}


def write_log(path: Path, model: str, samples: list[Any] | None) -> Path:
    path.write_text(json.dumps({"eval": {"model": model, "task": "sums"}, "samples": samples}), encoding="utf-8")
    return path


def test_each_sample_and_epoch_is_a_question_with_the_answers_and_scores_of_all_models(tmp_path: Path) -> None:
    first = [
        sample(1, "4", "4", "C"), sample(2, ["6", "six"], "It is 7", "I", "C", extracted="7"),
        sample(2, ["6", "six"], "6", 0.5, epoch=2), sample(3, "8", "8"),
    ]  # fmt: skip
    second = [sample(1, "4", "5", "P"), sample(3, "8", "9", "unknown")]
    logs = [write_log(tmp_path / "a.json", "m/a", first), write_log(tmp_path / "b.json", "m/b", second)]
    found = read_matrix(logs)
    assert (found.questions, found.models) == (("sums/1", "sums/2", "sums/2#2", "sums/3"), ("m/a", "m/b"))
    assert found.truth == ("4", "6 six", "6 six", "8")
    assert found.answers == (("4", "5"), ("7", ""), ("6", ""), ("8", "9"))
    assert found.scores == ((1.0, 0.5), (0.0, None), (0.5, None), (None, None))


def test_an_answer_that_the_scorer_left_blank_is_that_of_the_model(tmp_path: Path) -> None:
    log = write_log(tmp_path / "a.json", "m/a", [sample(1, "4", "It is 4", "C", extracted="  ")])
    assert read_matrix([log]).answers == (("it is 4",),)


def test_a_sample_without_output_is_an_abstention(tmp_path: Path) -> None:
    lost = sample(1, "4", "") | {"output": None}
    log = write_log(tmp_path / "a.json", "m/a", [lost])
    assert (read_matrix([log]).answers, read_matrix([log]).scores) == ((("",),), ((None,),))


def test_two_logs_of_one_model_are_one_column(tmp_path: Path) -> None:
    logs = [write_log(tmp_path / f"{n}.json", "m/a", [sample(n, "4", answer, "C")]) for n, answer in enumerate("45", 1)]
    found = read_matrix(logs)
    assert (found.questions, found.models) == (("sums/1", "sums/2"), ("m/a",))
    assert found.answers == (("4",), ("5",))


def test_only_a_full_score_is_right(tmp_path: Path) -> None:
    samples = [sample(n, "4", "4", score) for n, score in enumerate(["C", "P", "I", "N", 1, 0.5, True, False], 1)]
    found = read_matrix([write_log(tmp_path / "a.json", "m/a", samples)])
    assert [score for (score,) in found.scores] == [1.0, 0.5, 0.0, 0.0, 1.0, 0.5, 1.0, 0.0]
    assert found.right("m/a") == [True, False, False, False, True, False, True, False]


def test_an_error_without_text_is_named_by_its_kind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(path: str) -> Any:
        raise EOFError

    monkeypatch.setattr(sys.modules["inspect_ai.log"], "read_eval_log", fail)
    with pytest.raises(UsageError, match=r'cut.eval" cannot be read as a log of inspect_ai \(EOFError\)'):
        (tmp_path / "cut.eval").touch()
        read_matrix([tmp_path / "cut.eval"])


def test_a_log_without_samples_or_that_cannot_be_read_is_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r'empty.json" has no samples'):
        read_matrix([write_log(tmp_path / "empty.json", "m/a", None)])
    (tmp_path / "broken.json").write_text("{", encoding="utf-8")
    with pytest.raises(
        UsageError, match=r'broken.json" cannot be read as a log of inspect_ai \(Expecting property name'
    ):
        read_matrix([tmp_path / "broken.json"])
