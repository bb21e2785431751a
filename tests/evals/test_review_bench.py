"""The review bench: planted bugs that the programs' own checks reject, clean controls, and the measures of a review."""

from __future__ import annotations

import json

import pytest

from council.evals import review_bench as bench
from council.evals.review_measures import Reviewed, measure_support
from tests.acceptance.helpers import Terminal, Workspace
from tests.fake_provider import Reply, Seen


@pytest.mark.behaviour("evidence-review-bench")
def test_every_bug_is_rejected_by_the_checks_and_a_control_is_not() -> None:
    cases = bench.make_cases(seed=1)
    programs = bench.load_programs()
    assert cases == bench.make_cases(seed=1) != bench.make_cases(seed=2)
    assert len([case for case in cases if not case.line]) == len(programs) >= 8
    for case in cases:
        source, checks = programs[case.id.rpartition("-")[0]]
        assert bench.is_killed(case.source, checks) == bool(case.line)
        changed = [
            n for n, (a, b) in enumerate(zip(source.splitlines(), case.source.splitlines(), strict=True), 1) if a != b
        ]
        assert changed == ([case.line] if case.line else [])
    assert {case.operator for case in cases} >= {"boundary", "sign", "constant", "condition"}
    assert bench.is_killed("def f():\n    while True:\n        pass\n", "f()")


@pytest.mark.behaviour("evidence-review-bench")
def test_recall_and_precision_by_support_match_hand_figures() -> None:
    bug, clean = bench.Case("x-1", "a = 1\nb = 2\nc = 3\nd = 4\n", "constant", 2), bench.Case("x-clean", "a = 1\n")
    reviews = [
        Reviewed(True, ((2, True), (1, False)), 2),
        Reviewed(True, ((1, True), (1, True)), 2),  # one bug as two findings
        Reviewed(True, (), 2),
        Reviewed(False, ((1, False),), 2),
    ]
    one, two = measure_support(reviews)
    found = [one["recall"]["mean"], one["precision"]["mean"], one["f1"]]
    assert found == pytest.approx([2 / 3, 0.6, 12 / 19], abs=1e-6)
    assert [two["recall"]["mean"], two["precision"]["mean"]] == pytest.approx([1 / 3, 1.0], abs=1e-6)
    result = bench.summarize_bench(reviews)
    assert (result["bugs"], result["controls"], result["split_bugs"]) == (3, 1, 1)
    assert result["controls_with_findings"]["mean"] == 1.0
    head, *rows = bench.format_bench(result).splitlines()[:3]
    assert [row[:10] for row in (head, *rows)] == ["found by  ", "1 or more ", "2 or more "]
    assert [len(row) for row in rows] == [len(head)] * 2 and rows[0].endswith("   0.63")
    assert [bug.is_hit(line) for line in (1, 2, 3, 4, None)] == [True, True, True, False, False]
    assert bug.is_hit(None, "x\n  b = 2") and not clean.is_hit(1)


@pytest.mark.behaviour("evidence-review-bench")
def test_judges_are_measured_on_the_bench(workspace: Workspace, council: Terminal) -> None:
    cases = bench.make_cases(seed=1, limit=4)
    bugs = {case.bug_text: case.line for case in cases if case.line}

    def review(seen: Seen) -> Reply:
        quote = next((text for text in bugs if text in seen.prompt), "")
        found = {
            "severity": "significant", "category": "correctness", "description": "The boundary value is compared wrongly.",
            "location": f"stdin:{bugs.get(quote, 1)}", "recommendation": "Correct it.", "quote": quote, "fix": "x", "why": "y", "ref": "z",
        }  # fmt: skip
        opinion = {
            "verdict": "FAIL" if quote else "PASS", "confidence": "HIGH", "key_insight": "One bug.", "recommendation": "Correct it.",
            "findings": [found] if quote else [], "schema_version": 3,
        }  # fmt: skip
        return Reply(text=json.dumps(opinion))

    workspace.provider.answer = review
    command = ("eval", "bench:review", "--limit", "4", "--seed", "1", "--json")
    found = council(*command)
    assert found.code == 0, found.err
    assert found.json["bugs"] == len(bugs) and found.json["controls"] == 4 - len(bugs)
    assert [row["recall"]["mean"] for row in found.json["by_support"]] == [1.0, 1.0]
    assert found.json["by_support"][1]["precision"]["mean"] == 1.0 and found.json["split_bugs"] == 0
    asked = len(workspace.provider.log)
    assert council(*command).json == found.json and len(workspace.provider.log) == asked
    repositories = workspace.folder / "review-bench.eval" / "repositories"
    assert (
        sorted(json.loads((repositories / "bugs.json").read_text()).values(), key=str)
        and (repositories / cases[0].id / "program.py").is_file()
    )
    refused = council("eval", "bench:review", "--arms", "collaborative")
    assert refused.code == 2 and "the review bench measures judges" in refused.err


def test_a_program_has_bugs_of_different_kinds() -> None:
    kinds: dict[str, list[str]] = {}
    for case in bench.make_cases(seed=3):
        if case.line:
            kinds.setdefault(case.id.rpartition("-")[0], []).append(case.operator)
    assert max(map(len, kinds.values())) == 2
    assert all(len(set(found)) == len(found) for found in kinds.values())


@pytest.mark.parametrize(
    ("findings", "f1"),
    [((), None), (((1, False),), 0.0), (((1, True),), 1.0), (((1, True), (1, False)), 2 / 3)],
)
def test_the_f1_of_a_review_needs_findings(findings: tuple[tuple[int, bool], ...], f1: float | None) -> None:
    (row,) = measure_support([Reviewed(True, findings, 1)])
    assert row["f1"] == (None if f1 is None else pytest.approx(f1))
    assert measure_support([]) == []
