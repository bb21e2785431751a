"""The states of a seat in plain words; the state itself stays beside them, for those who look it up."""

from __future__ import annotations

from council.minutes import Missed
from council.render.clean import one_line

WORDS = {
    "ok_repaired": "its answer had to be asked for in the right form",
    "in_doubt": "no complete answer came back, and it may have been billed",
    "degenerate": "its answer was empty, a loop or a placeholder",
    "truncated": "its answer was cut off at its length limit",
    "refused": "it declined to answer",
    "blind": "it was to read files and cites none",
    "timed_out": "it ran out of time",
    "failed(net)": "it could not be reached",
    "failed(rate)": "it was asked too often and kept saying so",
    "failed(quota)": "its account has no money or quota left",
    "failed(overload)": "it was overloaded",
    "failed(server)": "its server failed",
    "failed(schema)": "its answer did not have the form that was asked for",
    "failed(size)": "the material did not fit it",
    "failed(model)": "there is no such model",
    "failed(auth)": "its key or login was refused",
    "failed(endpoint)": "what answered there is no model",
    "failed(parameter)": "it refused a setting of the request",
    "failed(script)": "its script has no such line",
    "skipped(budget)": "there was no money left for it",
    "skipped(cancel)": "the run was stopped before its turn",
}
UNASKED = {"waiting": "not_asked", "asked": "no_answer", "writing": "no_answer"}  # where the run ended first
SKIPPED = {
    "interrupted": "skipped(cancel)",
    "cancelled": "skipped(cancel)",
    "budget": "skipped(budget)",
}  # who had no turn, by what stopped the run


def in_words(state: str) -> str:
    """`its server failed (failed(server))`; a state without words of its own speaks for itself."""
    words = WORDS.get(state) or ("its command failed" if state.startswith("failed(cli") else "")
    return f"{words} ({state})" if words else state


def why(missed: Missed) -> str:
    """State and reason in one breath: `failed(server): 500 Internal Server Error`."""
    reason = one_line(missed.reason).rstrip(".")
    return f"{missed.state}: {reason}" if reason else missed.state


def told(missed: Missed) -> str:
    """The same for people: `its server failed (failed(server)): 500 Internal Server Error`."""
    reason = one_line(missed.reason).rstrip(".")
    return f"{in_words(missed.state)}: {reason}" if reason else in_words(missed.state)


def at_rest(state: str, stopped: str = "") -> str:
    """How a seat is called once its run has ended."""
    return SKIPPED[stopped] if state == "waiting" and stopped in SKIPPED else UNASKED.get(state, state)
