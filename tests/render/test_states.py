"""Every seat state has a description, and every seat of an ended run has a final state."""

from __future__ import annotations

import re

import pytest

from council.calling.fault_table import FAULT_TABLE
from council.engine.layout import describe_state, final_state, label_state
from council.types import SeatState

SPEC = ("ok_repaired", "truncated", "refused", "degenerate", "blind", "timed_out", "in_doubt", "skipped(budget)", "skipped(cancel)")  # fmt: skip


@pytest.mark.behaviour("40-states-in-words")
@pytest.mark.parametrize("state", sorted({*SPEC, *(row.state for row in FAULT_TABLE.values())}))
def test_a_state_is_described_in_words_without_its_name(state: str) -> None:
    text = describe_state(state)
    assert state not in text and not re.search(r"_|\(|\bthey\b|\bits?\b", text.replace("base_url", "")), text
    assert re.fullmatch(r"[a-z]+(?: [a-z]+)?", label_state(state)), "a column has room for two words"


@pytest.mark.behaviour("40-skipped-cancel")
@pytest.mark.parametrize(
    ("state", "stopped", "expected"),
    [
        ("waiting", "interrupted", "skipped(cancel)"), ("waiting", "budget", "skipped(budget)"),
        ("waiting", "quorum", "not_asked"), ("waiting", "", "not_asked"),
        ("asked", "interrupted", "no_answer"), ("ok", "interrupted", "ok"), ("timed_out", "budget", "timed_out"),
    ],
)  # fmt: skip
def test_state_of_an_unasked_seat_depends_on_what_stopped_the_run(
    state: SeatState, stopped: str, expected: str
) -> None:
    assert final_state(state, stopped) == expected


def test_a_state_of_a_command_or_an_unknown_one_is_described() -> None:
    assert describe_state("failed(cli:exit)") == "the command ended with an error"
    assert describe_state("failed(flood)") == "the response was larger than the limit"
    assert describe_state("melted") == "melted"
