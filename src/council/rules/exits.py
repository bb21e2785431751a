"""Exit codes. "Found problems" and "did not run" never share a code."""

from __future__ import annotations

from collections.abc import Collection

ACCESS = ("failed(auth)", "failed(quota)")
COMPLETE, FAILED, USAGE, PARTIAL, NO_ACCESS, BUDGET, GATED, INTERRUPTED = 0, 1, 2, 3, 4, 5, 10, 130


def exit_code(status: str, stopped: str, absences: Collection[str]) -> int:
    """Return the exit code of a run. `stopped` is why it ended early; `absences` are the states of seats without an answer."""
    if stopped in ("interrupted", "cancelled"):
        return INTERRUPTED
    if stopped == "budget":
        return BUDGET
    if status == "failed":
        return NO_ACCESS if absences and all(state in ACCESS for state in absences) else FAILED
    return COMPLETE if status == "complete" else PARTIAL
