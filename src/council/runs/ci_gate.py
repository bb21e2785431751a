"""CI gate: exit code and reason, computed from a run's report alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TypedDict, get_args

from council.engine.records import ReportObject
from council.errors import UsageError
from council.runs.outcome import EXIT_COMPLETE, EXIT_GATED, EXIT_PARTIAL, exit_code
from council.types import OK_STATES, VERDICT_ORDER, VerdictWord

FAIL_ON = ("fail", "warn", "critical", "significant", "never")
SEVERITIES = ("critical", "significant", "minor")  # worst first
RULES = ("consensus", "corroborated")
DEFAULT_RULE = "corroborated"
MIN_JUDGES = 2
COVERAGE_HOLE = "coverage_hole"  # state of a `degraded` row for material the judges were not shown


class GateDecision(TypedDict):
    """What a gate decides about a finished run."""

    verdict: str | None  # by the rule of the gate
    exit: int
    why: str
    rule: str
    fail_on: str


def evaluate_gate(report: ReportObject, fail_on: str, rule: str = DEFAULT_RULE) -> tuple[int, str]:
    """Return the exit code and one line with the reason. `rule` combines the verdicts, whichever rule the run used."""
    if fail_on not in FAIL_ON:
        raise UsageError(f'unknown --fail-on "{fail_on}": use {", ".join(FAIL_ON)}')
    if rule not in RULES:
        raise UsageError(f'unknown --rule "{rule}": use {", ".join(RULES)}')
    report, remark = apply_rule(report, rule)
    code, why = _find_inconclusive(report) or _evaluate_verdict(report, fail_on)
    return code, f"gate: {why}{remark}"


def apply_rule(report: ReportObject, rule: str) -> tuple[ReportObject, str]:
    """Return the report with the verdict by a rule, if its version has it, and why it differs."""
    ruled = (report.get("by_rule") or {}).get(rule)
    if not ruled or report["verdict"] is None:
        return report, ""
    weak = report.get("uncorroborated") or []
    remark = ""
    if rule == "corroborated" and weak and report["by_rule"].get("consensus") != ruled:
        remark = f"; the FAIL of {' and '.join(weak)} counts as WARN, because its evidence was not found (--rule consensus fails on it)"
    return {**report, "verdict": ruled}, remark


def verdict_exit_code(report: ReportObject, fail_on: str | None) -> int:
    """Return the exit code for the verdict of a complete run, without the gate's quorum checks."""
    if report["verdict"] is None or fail_on == "never":
        return EXIT_COMPLETE
    if fail_on and _find_gate_match(report, fail_on):
        return EXIT_GATED
    return EXIT_PARTIAL if _list_coverage_holes(report) or report["verdict"] == "DISAGREE" else EXIT_COMPLETE


def _find_inconclusive(report: ReportObject) -> tuple[int, str] | None:
    """Return code and reason if the run cannot be gated, else None; also for `never`, which waives findings only."""
    if report["status"] is None:
        return EXIT_PARTIAL, "inconclusive: the run has not ended"
    if report["status"] != "complete":
        states = [seat["state"] for seat in report["seats"] if seat["state"] not in OK_STATES]
        return exit_code(report["status"], "", states), f"inconclusive: the run is {report['status']}"
    if report["verdict"] is None and not report["quorum"]["asked"]:
        return EXIT_COMPLETE, "nothing to judge"
    if report["verdict"] is None and report.get("task", "validate") != "validate":
        return EXIT_PARTIAL, f"inconclusive: {report['task']} gives no verdict"
    voters, asked = len(_list_verdicts(report)), report["quorum"]["asked"]
    if voters < MIN_JUDGES:
        few = "single judge" if asked == 1 else f"{voters} of {asked} judges answered, a gate needs {MIN_JUDGES}"
        return EXIT_PARTIAL, f"inconclusive: {few}"
    return (EXIT_PARTIAL, "inconclusive: the run has no verdict") if report["verdict"] is None else None


def _evaluate_verdict(report: ReportObject, fail_on: str) -> tuple[int, str]:
    facts = _format_facts(report)
    if fail_on == "never":
        return EXIT_COMPLETE, f"{facts}; --fail-on never"
    if met := _find_gate_match(report, fail_on):
        return EXIT_GATED, f"{facts}; {met} meets --fail-on {fail_on}"
    if holes := _list_coverage_holes(report):
        return EXIT_PARTIAL, f"{facts}; not everything was shown to the judges: {', '.join(holes)}"
    if report["verdict"] == "DISAGREE":
        return EXIT_PARTIAL, f"{facts}; the families disagree, and a person has to decide"
    return EXIT_COMPLETE, f"{facts}; --fail-on {fail_on} is not met"


def _find_gate_match(report: ReportObject, fail_on: str) -> str:
    """Return the verdict or finding that meets the gate, or ""."""
    if fail_on in SEVERITIES:
        grave = SEVERITIES[: SEVERITIES.index(fail_on) + 1]
        worst = [severity for severity in grave if _count_severities(report)[severity]]
        return f"a {worst[0]} finding" if worst else ""
    verdict = _effective_verdict(report)
    return verdict if VERDICT_ORDER.index(verdict) >= VERDICT_ORDER.index(fail_on.upper()) else ""


def _effective_verdict(report: ReportObject) -> str:
    """Return the judges' verdict, undoing a WARN that only a coverage hole caused; a critical finding excludes PASS."""
    all_pass = set(_list_verdicts(report)) == {"PASS"}
    only_capped = _list_coverage_holes(report) and all_pass and not _count_severities(report)["critical"]
    return "PASS" if only_capped else str(report["verdict"])


def _list_verdicts(report: ReportObject) -> Sequence[str | None]:
    return [seat["verdict"] for seat in report["seats"] if seat["verdict"] in get_args(VerdictWord)]


def _list_coverage_holes(report: ReportObject) -> Sequence[str]:
    return [row["reason"] for row in report["degraded"] if row["state"] == COVERAGE_HOLE]


def _count_severities(report: ReportObject) -> Counter[str]:
    return Counter(finding["severity"] for finding in report["findings"])


def _format_facts(report: ReportObject) -> str:
    counts = [f"{n} {severity}" for severity in SEVERITIES if (n := _count_severities(report)[severity])]
    judges = f"{len(_list_verdicts(report))} of {report['quorum']['asked']} judges"
    return f"{report['verdict']} by {judges}, findings: {', '.join(counts) or 'none'}"
