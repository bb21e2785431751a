"""Whether a finished run may pass a gate: a pure reading of its report, the same each time it is read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import get_args

from council.errors import UsageError
from council.rules.consensus import SCALE, Word
from council.rules.exits import COMPLETE, GATED, PARTIAL, exit_code
from council.types import OK_STATES, Json

FAIL_ON = ("fail", "warn", "critical", "significant", "never")
SEVERITIES = ("critical", "significant", "minor")  # the worst first
NEEDED = 2
HOLE = "coverage_hole"  # the state of a row in `degraded` that names what the judges were not shown


def gate(report: Json, fail_on: str) -> tuple[int, str]:
    """The exit code and one line that says why."""
    if fail_on not in FAIL_ON:
        raise UsageError(f'--fail-on "{fail_on}" is no gate: known are {", ".join(FAIL_ON)}')
    code, why = _unjudged(report) or _judged(report, fail_on)
    return code, f"gate: {why}"


def verdict_code(report: Json, fail_on: str | None) -> int:
    """What a complete run tells the shell about what it found; the gate itself asks for more."""
    if report["verdict"] is None or fail_on == "never":
        return COMPLETE
    if fail_on and _met(report, fail_on):
        return GATED
    return PARTIAL if _holes(report) or report["verdict"] == "DISAGREE" else COMPLETE


def _unjudged(report: Json) -> tuple[int, str] | None:
    """A run that cannot be held against a gate at all. `never` waives what was found, not that nobody looked."""
    if report["status"] != "complete":
        states = [seat["state"] for seat in report["seats"] if seat["state"] not in OK_STATES]
        return exit_code(report["status"], "", states), f"inconclusive: the run is {report['status']}"
    if report["verdict"] is None and not report["quorum"]["asked"]:
        return COMPLETE, "nothing to judge"
    if report["verdict"] is None and report.get("task", "validate") != "validate":
        return PARTIAL, f"inconclusive: {report['task']} gives no verdict to hold against a gate"
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
        return PARTIAL, f"{facts}; not all was shown to the judges: {', '.join(holes)}"
    if report["verdict"] == "DISAGREE":
        return PARTIAL, f"{facts}; the families disagree, and a person has to decide"
    return COMPLETE, f"{facts}; --fail-on {fail_on} is not met"


def _met(report: Json, fail_on: str) -> str:
    """What meets the gate, or nothing."""
    if fail_on in SEVERITIES:
        grave = SEVERITIES[: SEVERITIES.index(fail_on) + 1]
        worst = [found for found in grave if _tally(report)[found]]
        return f"a {worst[0]} finding" if worst else ""
    verdict = _said(report)
    return verdict if SCALE.index(verdict) >= SCALE.index(fail_on.upper()) else ""


def _said(report: Json) -> str:
    """The verdict that judges gave: a WARN that only a coverage hole made out of PASS found nothing wrong."""
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
