"""Counted function calls of a council and of a streamed event. Counts guard the speed without measuring time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARK = Path(__file__).parents[1] / "benchmarks" / "calls.py"
# About a tenth above the counts of 2026-11-16. A change that needs more has to say why here.
LIMITS = {"council": 15_000, "convene": 15_500, "event_of_eight": 24.0}


@pytest.mark.behaviour("calls-guard")
def test_a_council_and_a_streamed_event_need_no_more_calls_than_their_limits() -> None:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, str(BENCHMARK), "--json", "--runs", "2"], capture_output=True, text=True, env=env, check=True
    )
    counted = json.loads(done.stdout)
    assert {name: counted[name] for name, limit in LIMITS.items() if counted[name] > limit} == {}
