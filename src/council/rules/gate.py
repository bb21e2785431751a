"""CI gate: exit code and reason, computed from a run's report alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import get_args

from council.errors import UsageError
from council.rules.consensus import SCALE, Word
from council.rules.exits import COMPLETE, GATED, PARTIAL, exit_code
from council.types import OK_STATES, Json

FAIL_ON = ("fail", "warn", "critical", "significant", "never")
SEVERITIES = ("critical", "significant", "minor")  # worst first
NEEDED = 2
HOLE = "coverage_hole"  # state of a `degraded` row for material the judges were not shown


def gate(report: Json, fail_on: str) -> tuple[int, str]:
    """Return the exit code and one line with the reason."""
    if fail_on not in FAIL_ON:
        raise UsageError(f'unknown --fail-on "{fail_on}": use {", ".join(FAIL_ON)}')
    code, why = _unjudged(report) or _judged(report, fail_on)
    return code, f"gate: {why}"


def verdict_code(report: Json, fail_on: str | None) -> int:
    """Return the exit code for the verdict of a complete run, without the gate's quorum checks."""
    if report["verdict"] is None or fail_on == "never":
        return COMPLETE
    if fail_on and _met(report, fail_on):
        return GATED
    return PARTIAL if _holes(report) or report["verdict"] == "DISAGREE" else COMPLETE


def _unjudged(report: Json) -> tuple[int, str] | None:
    """Return code and reason if the run cannot be gated, else None. Applies to `never` too: it waives findings, not a missing review."""
    if report["status"] != "complete":
        states = [seat["state"] for seat in report["seats"] if seat["state"] not in OK_STATES]
        return exit_code(report["status"], "", states), f"inconclusive: the run is {report['status']}"
    if report["verdict"] is None and not report["quorum"]["asked"]:
        return COMPLETE, "nothing to judge"
    if report["verdict"] is None and report.get("task", "validate") != "validate":
        return PARTIAL, f"inconclusive: {report['task']} gives no verdict"
    voters, asked = len(_verdicts(report)), report["quorum"]["asked"]
    if voters < NEEDED:
        few = "single judge" if asked == 1 else f"{voters} of {asked} judges answered, a gate needs {NEEDED}"
        return PARTIAL, f"inconclusive: {few}"
    return (PARTIAL, "inconclusive: the run has no verdict") if report["verdict"] is None else None


def _judged(report: Json, fail_on: str) -> tuple[int, str]:
    facts = _facts(report)
    if fail_on == "never":
        return COMPLETE, f"{facts}; --fail-on never"
    if met := _met(report, fail_on):
        return GATED, f"{facts}; {met} meets --fail-on {fail_on}"
    if holes := _holes(report):
        return PARTIAL, f"{facts}; not everything was shown to the judges: {', '.join(holes)}"
    if report["verdict"] == "DISAGREE":
        return PARTIAL, f"{facts}; the families disagree, and a person has to decide"
    return COMPLETE, f"{facts}; --fail-on {fail_on} is not met"


def _met(report: Json, fail_on: str) -> str:
    """Return the verdict or finding that meets the gate, or ""."""
    if fail_on in SEVERITIES:
        grave = SEVERITIES[: SEVERITIES.index(fail_on) + 1]
        worst = [found for found in grave if _tally(report)[found]]
        return f"a {worst[0]} finding" if worst else ""
    verdict = _said(report)
    return verdict if SCALE.index(verdict) >= SCALE.index(fail_on.upper()) else ""


def _said(report: Json) -> str:
    """Return the judges' verdict, undoing a WARN that only a coverage hole caused."""
    only_capped = _holes(report) and set(_verdicts(report)) == {"PASS"}
    return "PASS" if only_capped else str(report["verdict"])


def _verdicts(report: Json) -> Sequence[str]:
    return [seat["verdict"] for seat in report["seats"] if seat["verdict"] in get_args(Word)]


def _holes(report: Json) -> Sequence[str]:
    return [row["reason"] for row in report["degraded"] if row["state"] == HOLE]


def _tally(report: Json) -> Counter[str]:
    return Counter(finding["severity"] for finding in report["findings"])


def _facts(report: Json) -> str:
    counts = [f"{n} {severity}" for severity in SEVERITIES if (n := _tally(report)[severity])]
    judges = f"{len(_verdicts(report))} of {report['quorum']['asked']} judges"
    return f"{report['verdict']} by {judges}, findings: {', '.join(counts) or 'none'}"
