"""Exit codes. "Found problems" and "did not run" never share a code."""

from __future__ import annotations

from collections.abc import Collection

ACCESS_STATES = ("failed(auth)", "failed(quota)")
EXIT_COMPLETE, EXIT_FAILED, EXIT_USAGE, EXIT_PARTIAL, EXIT_NO_ACCESS, EXIT_BUDGET, EXIT_GATED, EXIT_INTERRUPTED = (
    0,
    1,
    2,
    3,
    4,
    5,
    10,
    130,
)


def exit_code(status: str, stopped: str, absences: Collection[str]) -> int:
    """Return the exit code of a run. `stopped` is why it ended early; `absences` are the states of seats without an answer."""
    if stopped in ("interrupted", "cancelled"):
        return EXIT_INTERRUPTED
    if stopped == "budget":
        return EXIT_BUDGET
    if status == "failed":
        return EXIT_NO_ACCESS if absences and all(state in ACCESS_STATES for state in absences) else EXIT_FAILED
    return EXIT_COMPLETE if status == "complete" else EXIT_PARTIAL
