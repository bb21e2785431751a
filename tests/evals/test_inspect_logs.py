"""Logs that inspect_ai itself wrote are read with the scores that inspect_ai gave.

Needs its package, so it is a sweep test.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from council.evals.matrix import read_matrix
from council.evals.replay import replay

pytestmark = pytest.mark.sweep
QUESTIONS = ("2 + 2", "3 + 3", "4 + 4", "5 + 5")
TRUTH = ("4", "6", "8", "10")
ANSWERS = {"mockllm/a": ("4", "6", "8", "11"), "mockllm/b": ("4", "7", "8", "11"), "mockllm/c": ("5", "6", "8", "10")}


@pytest.mark.behaviour("evidence-inspect")
def test_a_log_of_inspect_ai_is_imported_and_scored_equal_to_its_own_score(tmp_path: Path) -> None:
    pytest.importorskip("inspect_ai")
    from inspect_ai import Task, eval
    from inspect_ai.dataset import MemoryDataset, Sample
    from inspect_ai.model import ModelOutput, ModelUsage, get_model
    from inspect_ai.scorer import exact

    own = {}
    for model, answers in ANSWERS.items():
        outputs = [ModelOutput.from_content(model, answer) for answer in answers]
        for output in outputs:
            output.usage = ModelUsage(input_tokens=5, output_tokens=1, total_tokens=6)  # offline it is not filled in
        samples = [Sample(id=n, input=question, target=truth) for n, (question, truth) in enumerate(zip(QUESTIONS, TRUTH, strict=True))]  # fmt: skip
        task = Task(MemoryDataset(samples), scorer=exact(), name="sums")
        (log,) = eval(
            task, get_model(model, custom_outputs=outputs), log_dir=str(tmp_path), display="none", max_samples=1
        )
        assert log.status == "success" and log.results
        own[model] = log.results.scores[0].metrics["mean"].value if "mean" in log.results.scores[0].metrics else log.results.scores[0].metrics["accuracy"].value  # fmt: skip
    found = replay(read_matrix(sorted(tmp_path.glob("*.eval"))))
    scored = {row["model"]: row["accuracy"]["mean"] for row in found.as_json()["models"]}
    assert scored == own == {"mockllm/a": 0.75, "mockllm/b": 0.5, "mockllm/c": 0.75}
    assert sum(found.arms["plurality"].right) == 3  # 10 is lost: two of three say 11
