"""kill -9 and costs: the store always covers the provider's bill and never exceeds the cap."""

from __future__ import annotations

from multiprocessing.context import ForkServerContext

import pytest

from tests.acceptance.helpers import Workspace
from tests.acceptance.test_crash_everywhere import clear_store, processes, resume, run_and_kill
from tests.acceptance.test_money import PRICES, billed

__all__ = ["processes"]

CAP = 2.0
WHERE_MONEY_MOVES = "SELECT seq FROM events WHERE type IN ('attempt', 'bill', 'statement') ORDER BY seq"


def books(workspace: Workspace) -> float:
    (spent,) = workspace.rows("SELECT coalesce(sum(coalesce(charged, reserved)), 0) FROM spending")[0]
    return spent / 1e9


@pytest.mark.behaviour("40-in-doubt-is-charged", "40-fsck-money")
def test_after_a_kill_at_any_spending_event_the_store_covers_the_bill(
    processes: ForkServerContext, workspace: Workspace
) -> None:
    workspace.configure(more=PRICES + f"[budget]\nmax_cost = {CAP}\n")
    assert not run_and_kill(processes, workspace, "triad", 10_000, resume=False)
    assert books(workspace) == pytest.approx(billed(workspace.provider.log), abs=1e-9)
    for seq in [seq for (seq,) in workspace.rows(WHERE_MONEY_MOVES)]:
        clear_store(workspace)
        assert run_and_kill(processes, workspace, "triad", seq, resume=False)
        if seq % 2:
            run_and_kill(processes, workspace, "triad", seq + 3, resume=True)
        told, _ = resume(workspace)  # fsck passes before and after
        bill = billed(workspace.provider.log)
        assert bill - 1e-9 <= books(workspace) <= CAP, f"killed at {seq}"
        assert told["cost"]["usd"] == pytest.approx(books(workspace), abs=1e-9), f"killed at {seq}"
        assert told["cost"]["estimated"] == (books(workspace) > bill + 1e-9), f"killed at {seq}"
