"""Questions with one short factual answer: one hint before a council is paid for, and the answer of one model."""

from __future__ import annotations

import pytest

from tests.acceptance.helpers import QUESTION, Terminal, Workspace

FACT = "What is the capital of Mongolia?"
HINT = f"one model is enough for a short fact: council --protocol quick '{FACT}'"


@pytest.mark.behaviour("00-short-fact-hint")
def test_a_short_fact_gets_one_hint_before_anything_is_spent(workspace: Workspace, council: Terminal) -> None:
    assert council(FACT, "--dry-run", "--json").json["warnings"].count(HINT) == 1
    asked = council(FACT)
    assert asked.code == 0 and asked.err.count("one model is enough") == 1
    assert "one model is enough" not in asked.out


@pytest.mark.behaviour("00-short-fact-hint")
@pytest.mark.parametrize(
    "words",
    [
        [QUESTION],
        [FACT, "--protocol", "collaborative"],
        ["collaborative council:", FACT],
        [f"{FACT} Should we open an office there?"],
        ["Debate this:", FACT],
    ],
)
def test_other_questions_get_no_hint(workspace: Workspace, council: Terminal, words: list[str]) -> None:
    plan = council(*words, "--dry-run", "--json").json
    assert not [line for line in plan["warnings"] if "one model is enough" in line]


@pytest.mark.behaviour("00-short-fact-hint")
def test_a_short_fact_about_material_gets_no_hint(workspace: Workspace, council: Terminal) -> None:
    (workspace.folder / "notes.md").write_text("Ulaanbaatar\n")
    plan = council(FACT, "notes.md", "--dry-run", "--json").json
    assert not [line for line in plan["warnings"] if "one model is enough" in line]


@pytest.mark.behaviour("00-quick-answers")
@pytest.mark.parametrize("words", [["--protocol", "quick", FACT], ["ask", "--protocol", "quick", "How do trees grow"]])
def test_quick_answers_a_question_with_one_call(workspace: Workspace, council: Terminal, words: list[str]) -> None:
    report = council(*words, "--json").json
    assert (report["status"], report["protocol"], report["task"]) == ("complete", "quick", "ask")
    assert report["calls"]["made"] == len(workspace.provider.log) == 1
    assert report["answer"] and report["verdict"] is None
    assert not (workspace.folder / ".agents").exists()


@pytest.mark.behaviour("00-quick-answers")
def test_quick_still_reviews_words_that_are_no_short_fact(workspace: Workspace, council: Terminal) -> None:
    (workspace.folder / "plan.md").write_text("Move the archive.\n")
    for words in (["plan.md"], ["validate", "plan.md"], ["Is the plan sound?"]):
        assert council("--protocol", "quick", *words, "--dry-run", "--json").json["task"] == "validate", words


@pytest.mark.behaviour("evidence-advice")
def test_advice_asks_one_model_for_a_short_fact(workspace: Workspace, council: Terminal) -> None:
    assert council("advise", FACT, "--json").json["protocol"] == "quick"
    plan = council("--protocol", "auto", FACT, "--dry-run", "--json").json
    assert (plan["protocol"], plan["task"], plan["calls"]["max"]) == ("quick", "ask", 1)
    assert "one model is enough" in plan["why"] and not [line for line in plan["warnings"] if "one model" in line]
