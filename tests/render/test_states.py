"""Every seat state has a description, and every seat of an ended run has a final state."""

from __future__ import annotations

import pytest

from council.calling.fault_table import FAULT_TABLE
from council.engine.layout import describe_state, final_state

SPEC = ("ok_repaired", "truncated", "refused", "degenerate", "blind", "timed_out", "in_doubt", "skipped(budget)", "skipped(cancel)")  # fmt: skip


@pytest.mark.behaviour("40-states-in-words")
@pytest.mark.parametrize("state", sorted({*SPEC, *(row.state for row in FAULT_TABLE.values())}))
def test_description_of_a_state_ends_with_its_name(state: str) -> None:
    text = describe_state(state)
    assert text.endswith(f" ({state})") and len(text) > len(state) + 10


@pytest.mark.behaviour("40-skipped-cancel")
@pytest.mark.parametrize(
    ("state", "stopped", "expected"),
    [
        ("waiting", "interrupted", "skipped(cancel)"), ("waiting", "budget", "skipped(budget)"),
        ("waiting", "quorum", "not_asked"), ("waiting", "", "not_asked"),
        ("asked", "interrupted", "no_answer"), ("ok", "interrupted", "ok"), ("timed_out", "budget", "timed_out"),
    ],
)  # fmt: skip
def test_state_of_an_unasked_seat_depends_on_what_stopped_the_run(state: str, stopped: str, expected: str) -> None:
    assert final_state(state, stopped) == expected
