"""Descriptions of seat states."""

from __future__ import annotations

from council.minutes import AbsenceMinutes
from council.render.clean import single_line

STATE_DESCRIPTIONS = {
    "ok_repaired": "its answer needed a repair turn to match the schema",
    "in_doubt": "no complete answer arrived, and it may have been billed",
    "degenerate": "its answer was empty, repetitive or a placeholder",
    "truncated": "its answer was cut off at its length limit",
    "refused": "it declined to answer",
    "blind": "it had files to read but cited none",
    "timed_out": "it ran out of time",
    "failed(net)": "it could not be reached",
    "failed(rate)": "it was still rate-limited after all retries",
    "failed(quota)": "its account has no credit or quota left",
    "failed(overload)": "it was overloaded",
    "failed(server)": "its server failed",
    "failed(schema)": "its answer did not match the schema",
    "failed(size)": "the prompt did not fit its context window",
    "failed(model)": "there is no such model",
    "failed(auth)": "its key or login was refused",
    "failed(endpoint)": "its base_url does not look like a model API",
    "failed(parameter)": "it rejected a request parameter",
    "failed(script)": "its script made it fail",
    "skipped(budget)": "the budget did not cover it",
    "skipped(cancel)": "the run was stopped before its turn",
}
UNFINISHED_STATES = {
    "waiting": "not_asked",
    "asked": "no_answer",
    "writing": "no_answer",
}  # the run ended before a final state
SKIPPED_STATES = {
    "interrupted": "skipped(cancel)",
    "cancelled": "skipped(cancel)",
    "budget": "skipped(budget)",
}  # state of seats that were not asked, by what stopped the run


def describe_state(state: str) -> str:
    """Describe a state: `its server failed (failed(server))`; return an unknown state unchanged."""
    words = STATE_DESCRIPTIONS.get(state) or ("its command failed" if state.startswith("failed(cli") else "")
    return f"{words} ({state})" if words else state


def format_absence(missed: AbsenceMinutes) -> str:
    """Format state and reason: `failed(server): 500 Internal Server Error`."""
    reason = single_line(missed.reason).rstrip(".")
    return f"{missed.state}: {reason}" if reason else missed.state


def describe_absence(missed: AbsenceMinutes) -> str:
    """Describe state and reason: `its server failed (failed(server)): 500 Internal Server Error`."""
    reason = single_line(missed.reason).rstrip(".")
    return f"{describe_state(missed.state)}: {reason}" if reason else describe_state(missed.state)


def final_state(state: str, stopped: str = "") -> str:
    """Return the state of a seat after its run has ended."""
    return (
        SKIPPED_STATES[stopped]
        if state == "waiting" and stopped in SKIPPED_STATES
        else UNFINISHED_STATES.get(state, state)
    )
