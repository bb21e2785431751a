"""Counted function calls of a council and of a streamed event. Counts guard the speed without measuring time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

RUN = Path(__file__).parents[1] / "benchmarks" / "run"
# About a tenth above the counts of 2026-11-17, by row and column of the table. A change that needs more has to say why
# here. Since 2026-11-16: 1,400 calls for the typed facts of trust, the tail and the headings in the language of the
# answer. Since 2026-11-18: 700 calls for guards around the code of members, statements in seating order, and names of
# endpoints masked. Since 2026-11-19: 400 calls, 300 of them for the task in which each call of a member runs, so that a
# failing task group of a member does not end the run; and 400 calls for prompts that are rendered without caches of
# their parts and of their functions.
LIMITS = {("calls", "shared"): 20_600, ("calls", "convene"): 21_000, ("events8", "shared"): 24.0}


@pytest.mark.behaviour("calls-guard", "benchmarks-one-table")
def test_a_council_and_a_streamed_event_need_no_more_calls_than_their_limits() -> None:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, str(RUN), "--quick", "--no-peers", "--rows", "calls", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, env=env, check=True)
    rows = {row["name"]: row for row in json.loads(done.stdout)["rows"]}
    assert [row["notes"] for row in rows.values()] == [{}, {}, {}]
    counted = {place: rows[place[0]]["figures"][place[1]]["median"] for place in (*LIMITS, ("calls", "floor"))}
    assert {place: counted[place] for place, limit in LIMITS.items() if counted[place] > limit} == {}
    assert counted["calls", "floor"] < counted["calls", "shared"]


def test_both_benchmarks_of_calls_have_the_same_budgets() -> None:
    code = (
        "import json, calls, table; must = {row.name: row.must for row in table.ROWS}; "
        "print(json.dumps([[calls.MAX_CALLS, calls.MAX_EVENT_CALLS], [must['calls'], must['events']]]))"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(RUN.parent), *sys.path])}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, check=True)
    of_calls, of_table = json.loads(done.stdout)
    assert of_calls == of_table
