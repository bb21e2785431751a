"""The CI gate reads a report and calls no model."""

from __future__ import annotations

from typing import Any

import pytest

from council.errors import UsageError
from council.runs.ci_gate import COVERAGE_HOLE, FAIL_ON, evaluate_gate, verdict_exit_code

Json = dict[str, Any]


def seat(verdict: str | None, state: str = "ok") -> Json:
    return {"verdict": verdict, "state": state}


def report(verdict: str | None, *verdicts: str | None, findings: tuple[str, ...] = (), holes: tuple[str, ...] = (), **more: Any) -> Any:  # fmt: skip
    said = verdicts or (verdict, verdict)
    value: Json = {
        "status": "complete",
        "verdict": verdict,
        "seats": [seat(one, "ok" if one else "timed_out") for one in said],
        "findings": [{"severity": severity} for severity in findings],
        "degraded": [{"seat": None, "phase": None, "state": COVERAGE_HOLE, "reason": reason} for reason in holes],
        "quorum": {"needed": 1, "ok": len([one for one in said if one]), "asked": len(said)},
    }
    return value | more


@pytest.mark.behaviour("50-gate")
@pytest.mark.parametrize(
    ("fail_on", "codes"),
    [
        ("fail", [0, 0, 3, 10]),
        ("warn", [0, 10, 10, 10]),
        ("never", [0, 0, 0, 0]),
        ("critical", [0, 0, 3, 0]),
        ("significant", [0, 0, 3, 0]),
    ],
)
def test_verdicts_meet_a_gate_in_their_order(fail_on: str, codes: list[int]) -> None:
    reports = [
        report("PASS"),
        report("WARN"),
        report("DISAGREE", "PASS", "FAIL"),
        report("FAIL"),
    ]
    assert [evaluate_gate(one, fail_on)[0] for one in reports] == codes


@pytest.mark.behaviour("50-gate")
@pytest.mark.parametrize(
    ("findings", "critical", "significant"),
    [((), 0, 0), (("minor",), 0, 0), (("minor", "significant"), 0, 10), (("critical",), 10, 10)],
)
def test_severities_meet_a_gate_with_any_verdict(findings: tuple[str, ...], critical: int, significant: int) -> None:
    one = report("WARN", findings=findings)
    assert (evaluate_gate(one, "critical")[0], evaluate_gate(one, "significant")[0]) == (critical, significant)


@pytest.mark.behaviour("50-gate")
def test_line_states_the_findings_and_the_gate() -> None:
    line = evaluate_gate(report("FAIL", findings=("critical", "minor", "minor")), "fail")[1]
    assert line == "gate: FAIL by 2 of 2 judges, findings: 1 critical, 2 minor; FAIL meets --fail-on fail"


@pytest.mark.behaviour("00-gate-needs-two")
@pytest.mark.parametrize("fail_on", FAIL_ON)
def test_a_quick_run_is_inconclusive(fail_on: str) -> None:
    assert evaluate_gate(report("FAIL", "FAIL"), fail_on) == (3, "gate: inconclusive: single judge")


@pytest.mark.behaviour("00-gate-needs-two")
def test_one_of_three_judges_is_too_few() -> None:
    code, line = evaluate_gate(report("PASS", "PASS", None, None), "fail")
    assert (code, line) == (3, "gate: inconclusive: 1 of 3 judges answered, a gate needs 2")


def test_judge_with_only_a_first_round_verdict_counts() -> None:
    value = report("PASS")
    value["seats"][1]["state"] = "timed_out"  # in the second round
    assert evaluate_gate(value, "fail")[0] == 0


@pytest.mark.behaviour("50-gate")
def test_coverage_hole_blocks_the_gate_and_is_listed() -> None:
    code, line = evaluate_gate(report("WARN", "PASS", "PASS", holes=("big.py: over the size limit",)), "fail")
    assert code == 3
    assert "big.py: over the size limit" in line


@pytest.mark.behaviour("50-gate")
def test_warn_caused_only_by_a_hole_is_not_a_finding() -> None:
    assert evaluate_gate(report("WARN", "PASS", "PASS", holes=("big.py",)), "warn")[0] == 3
    assert evaluate_gate(report("WARN", "WARN", "PASS", holes=("big.py",)), "warn")[0] == 10


def test_never_waives_disagreement_and_holes() -> None:
    assert evaluate_gate(report("DISAGREE", "PASS", "FAIL", holes=("big.py",)), "never")[0] == 0


@pytest.mark.parametrize("fail_on", FAIL_ON)
def test_unfinished_run_never_passes(fail_on: str) -> None:
    seats = [seat(None, "failed(server)"), seat(None, "failed(auth)")]
    assert evaluate_gate(report(None, status="failed", seats=seats), fail_on)[0] == 1
    assert evaluate_gate(report(None, status="failed", seats=[seat(None, "failed(auth)")] * 2), fail_on)[0] == 4
    assert evaluate_gate(report("PASS", status="incomplete"), fail_on)[0] == 3


def test_nothing_changed_is_nothing_to_judge() -> None:
    nothing = report(None, seats=[], quorum={"needed": 1, "ok": 0, "asked": 0})
    assert evaluate_gate(nothing, "fail") == (0, "gate: nothing to judge")


def test_a_run_of_a_protocol_without_verdicts_is_inconclusive() -> None:
    assert evaluate_gate(report(None, "PASS", "PASS"), "fail")[0] == 3


def test_an_unknown_gate_lists_the_known_ones() -> None:
    with pytest.raises(UsageError, match='unknown --fail-on "error": use fail, warn, critical, significant, never'):
        evaluate_gate(report("PASS"), "error")


def test_gate_is_deterministic() -> None:
    one = report("WARN", findings=("minor",))
    assert evaluate_gate(one, "warn") == evaluate_gate(one, "warn")


@pytest.mark.behaviour("50-gate")
@pytest.mark.parametrize("task", ["brainstorm", "research", "ask"])
def test_task_without_a_verdict_is_inconclusive(task: str) -> None:
    code, line = evaluate_gate(report(None, "PASS", task=task), "fail")
    assert (code, line) == (3, f"gate: inconclusive: {task} gives no verdict")


@pytest.mark.parametrize(
    ("verdict", "fail_on", "code"),
    [("FAIL", "fail", 10), ("WARN", "fail", 0), ("WARN", "warn", 10), ("FAIL", None, 0), ("FAIL", "never", 0), ("DISAGREE", None, 3)],
)  # fmt: skip
def test_without_a_gate_the_verdict_decides_the_exit_code_of_one_judge_too(
    verdict: str, fail_on: str | None, code: int
) -> None:
    assert verdict_exit_code(report(verdict, verdict), fail_on) == code
