"""Many processes with several councils each on one store: all complete, the day budget is exact, and fsck is clean."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
from collections import Counter
from collections.abc import Callable
from multiprocessing.context import ForkServerContext
from pathlib import Path

import pytest

from tests.acceptance.helpers import QUESTION, Terminal, Workspace
from tests.fork_server import CLI

IN, OUT = 3.0, 15.0  # dollars per million tokens
NANOS = 1_000_000_000
CALLS = 4  # of one triad


def convene_several(folder: Path, env: dict[str, str], count: int) -> list[str]:
    """Convene councils at once in this process. Return the status or the error of each."""
    import council

    os.environ.clear()
    os.environ.update(env)
    os.chdir(folder)

    async def work() -> list[str]:
        runs = (council.convene(QUESTION, protocol="triad") for _ in range(count))
        ended = await asyncio.gather(*runs, return_exceptions=True)
        return [type(end).__name__ if isinstance(end, BaseException) else end.status for end in ended]

    return asyncio.run(work())


def convene_in_processes(workspace: Workspace, processes: int, count: int) -> Counter[str]:
    """Return how often each status or error occurred."""
    context: ForkServerContext = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([*CLI, "council.doors.library"])
    with context.Pool(processes, maxtasksperchild=1) as pool:
        tasks = [(workspace.folder, dict(os.environ), count)] * processes
        return Counter(status for ended in pool.starmap(convene_several, tasks, chunksize=1) for status in ended)


def priced(workspace: Workspace, day_cap: float) -> None:
    workspace.configure(
        more=f'[prices."sim:*"]\ninput = {IN}\noutput = {OUT}\n\n[budget]\nmax_cost_per_day = {day_cap}\n'
    )


def spent(workspace: Workspace) -> int:
    return int(workspace.rows("SELECT coalesce(sum(coalesce(charged, reserved)), 0) FROM spending")[0][0])


def billed(workspace: Workspace) -> int:
    """Return the bill of the endpoint."""
    log = workspace.provider.log
    dollars = sum(seen.tokens["in"] * IN + seen.tokens["out"] * OUT for seen in log) / 1e6
    return round(dollars * NANOS)


def check_all_complete(workspace: Workspace, council: Terminal, processes: int, count: int) -> dict[str, int]:
    priced(workspace, 100.0)
    assert convene_in_processes(workspace, processes, count) == {"complete": processes * count}
    calls = len(workspace.provider.log)
    assert calls == processes * count * CALLS
    assert spent(workspace) == billed(workspace)
    checked = council("runs", "fsck")
    assert checked.code == 0, checked.out
    return {"processes": processes, "councils": processes * count, "calls": calls, "failures": 0}


@pytest.mark.behaviour("40-many-processes")
def test_councils_of_several_processes_share_one_store(workspace: Workspace, council: Terminal) -> None:
    check_all_complete(workspace, council, 6, 2)


@pytest.mark.sweep
@pytest.mark.behaviour("40-many-processes")
def test_fifty_processes_share_one_store(
    workspace: Workspace, council: Terminal, sweep_figures: Callable[..., None]
) -> None:
    sweep_figures("many-processes", **check_all_complete(workspace, council, 50, 4))


@pytest.mark.sweep
@pytest.mark.behaviour("40-many-processes", "40-budget-race")
def test_fifty_processes_never_exceed_the_budget_of_the_day(
    workspace: Workspace, council: Terminal, sweep_figures: Callable[..., None]
) -> None:
    priced(workspace, 100.0)
    assert council("--json", "--protocol", "triad", QUESTION).code == 0
    cap = 40 * spent(workspace)  # of some forty councils; the worst case of a request costs more
    priced(workspace, cap / NANOS)
    ended = convene_in_processes(workspace, 50, 4)
    assert billed(workspace) <= spent(workspace) <= cap
    assert set(ended) <= {"complete", "incomplete", "failed"} and ended["incomplete"], ended
    checked = council("runs", "fsck")
    assert checked.code == 0, checked.out
    sweep_figures("many-processes", over_budget=0, **ended)
