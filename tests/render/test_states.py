"""Every state of a seat has words for people, and a seat at rest has a state of the spec."""

from __future__ import annotations

import pytest

from council.calling.table import TABLE
from council.render.states import at_rest, in_words

SPEC = ("ok_repaired", "truncated", "refused", "degenerate", "blind", "timed_out", "in_doubt", "skipped(budget)", "skipped(cancel)")  # fmt: skip


@pytest.mark.behaviour("40-states-in-words")
@pytest.mark.parametrize("state", sorted({*SPEC, *(row.state for row in TABLE.values())}))
def test_a_state_is_told_in_words_with_its_name_behind_them(state: str) -> None:
    told = in_words(state)
    assert told.endswith(f" ({state})") and len(told) > len(state) + 10


@pytest.mark.behaviour("40-skipped-cancel")
@pytest.mark.parametrize(
    ("state", "stopped", "called"),
    [
        ("waiting", "interrupted", "skipped(cancel)"), ("waiting", "budget", "skipped(budget)"),
        ("waiting", "quorum", "not_asked"), ("waiting", "", "not_asked"),
        ("asked", "interrupted", "no_answer"), ("ok", "interrupted", "ok"), ("timed_out", "budget", "timed_out"),
    ],
)  # fmt: skip
def test_who_had_no_turn_is_called_after_what_stopped_the_run(state: str, stopped: str, called: str) -> None:
    assert at_rest(state, stopped) == called
