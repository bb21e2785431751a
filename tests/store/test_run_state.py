"""One function decides the state of a run, for every interface."""

from __future__ import annotations

import pytest

from council.store.interface import RunState, RunStatus

STATES = [
    # stored, detached, owned -> shown, open, active, needs a worker
    ("queued", True, False, "queued", True, True, True),
    ("queued", True, True, "queued", True, True, False),
    ("running", False, True, "running", True, True, False),
    ("running", True, True, "running", True, True, False),
    ("running", True, False, "queued", True, True, True),
    ("running", False, False, "stopped", True, False, False),
    ("complete", True, False, "complete", False, False, False),
    ("incomplete", False, False, "incomplete", False, False, False),
    ("failed", False, True, "failed", False, False, False),
]


@pytest.mark.parametrize(("stored", "detached", "owned", "shown", "open_", "active", "worker"), STATES)
def test_the_state_follows_from_the_stored_status_the_worker_and_the_owner(
    stored: str, detached: bool, owned: bool, shown: str, open_: bool, active: bool, worker: bool
) -> None:
    state = RunState("r2345", RunStatus(stored), is_detached=detached, is_owned=owned)
    assert (state.status, state.is_open, state.is_active, state.needs_worker) == (shown, open_, active, worker)
    assert state.is_running == (shown == "running")
