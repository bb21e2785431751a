"""Reports with findings, for the machine-readable renderers."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

Json = dict[str, Any]
HOSTILE_TEXT = st.text(st.one_of(st.characters(), st.sampled_from("\x1b[]<>&'\":,%{}()#\r\n\t\u2028\x85/\\=")))


def finding(**more: Any) -> Json:
    value: Json = {
        "severity": "critical", "category": "security", "description": "The token is never checked.",
        "location": "src/auth.py:12", "fix": "Call verify().", "why": "It was forgotten.", "ref": "RFC 7519",
        "recommendation": "Check it.", "found_by": ["judge-1", "judge-2"], "of": 3, "verified": True,
        "fingerprint": "5f0e", "disputed": False,
    }  # fmt: skip
    return value | more


def seat(name: str, verdict: str | None = "PASS", state: str = "ok") -> Json:
    return {"name": name, "verdict": verdict, "state": state, "seconds": 1.5}


def report(*findings: Json, **more: Any) -> Any:
    value: Json = {
        "schema": "council.report/1", "run": "k3f9", "status": "complete", "task": "validate", "target": "recent",
        "verdict": "PASS", "confidence": "HIGH", "answer": "All well.", "seats": [seat("judge-1"), seat("judge-2")],
        "findings": list(findings), "degraded": [], "seconds": 12.5,
    }  # fmt: skip
    return value | more


def report_with_absent_seat(**more: Any) -> Any:
    lost = seat("judge-3", None, "timed_out")
    missing = {"seat": "judge-3", "phase": "judge", "state": "timed_out", "reason": "no answer within 120 s"}
    return report(seats=[seat("judge-1"), lost], degraded=[missing], **more)


HOSTILE_FINDINGS = st.builds(
    finding,
    description=HOSTILE_TEXT, location=HOSTILE_TEXT, fix=HOSTILE_TEXT, why=HOSTILE_TEXT, ref=HOSTILE_TEXT, category=HOSTILE_TEXT, verified=st.booleans(),
    severity=st.sampled_from(["critical", "significant", "minor"]), found_by=st.lists(HOSTILE_TEXT, max_size=2),
)  # fmt: skip
