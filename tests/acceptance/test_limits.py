"""Hostile endpoints through the whole command: floods keep time and memory bounded, invalid usage does no damage."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from tests.acceptance.helpers import QUESTION, Terminal, Workspace
from tests.fake_provider import Reply
from tests.fakes.floods import endless_events, endless_json, endless_line, gzip_bomb

MAX_MEMORY_MB = 300
TIMEOUT_S = 10
# Print the peak memory of a command. A child starts with the peak of its parent, so the parent has to be small.
MEASURE = """import resource, subprocess, sys
subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"""


def faults(workspace: Workspace) -> dict[str, tuple[str, str]]:
    """Return the fault of each member's attempts: its kind and detail."""
    query = "SELECT member, settled.body FROM intents JOIN settled USING (run, key, n)"
    stored = {member: json.loads(body) for member, body in workspace.rows(query)}
    return {member: (result["fault"], result["detail"]) for member, result in stored.items() if "fault" in result}


@pytest.mark.behaviour("14-flood-memory", "14-byte-limits", "14-deadline-with-data")
def test_four_floods_at_once_are_stopped_by_their_limits_and_below_300_mb(workspace: Workspace) -> None:
    workspace.configure(alpha=["sim:delta"])
    workspace.answers.instead = {
        "alpha": endless_json(), "beta": gzip_bomb(), "gamma": endless_line(), "delta": endless_events()
    }  # fmt: skip
    command = [sys.executable, "-m", "council", QUESTION, "--protocol", "triad", "--timeout", str(TIMEOUT_S)]
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, *command], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    peak_kb = int(done.stdout)
    assert faults(workspace) == {
        "sim:alpha": ("flood", "the response is larger than 8 MB"),
        "sim:beta": ("flood", "the response is larger than 8 MB"),
        "sim:gamma": ("flood", "a line of the response is larger than 2 MB"),
        "sim:delta": ("flood", "the answer is longer than 256 KB"),
    }, done.stderr
    assert len(workspace.provider.log) == 4  # no retry
    assert peak_kb / 1024 < MAX_MEMORY_MB


@pytest.mark.behaviour("14-byte-limits")
def test_a_flooding_member_is_replaced_and_not_asked_again(workspace: Workspace, council: Terminal) -> None:
    workspace.configure(beta=["sim:delta"])
    workspace.answers.seat_of["delta"] = "beta"
    workspace.answers.instead = {"beta": Reply(" ".join(map(str, range(60_000))), piece=4000)}
    result = council(QUESTION, "--protocol", "collaborative", "--json")
    assert result.code == 0
    (seat,) = (seat for seat in result.json["seats"] if seat["name"] == "beta")
    assert (seat["state"], seat["served_by"]) == ("ok", "sim:delta")
    assert len(workspace.provider.requests("beta")) == 1


VALUES: list[Any] = [10**19, -5, float("nan"), int("7" * 400), "12", 3.5, {"a": [1]}]


@pytest.mark.behaviour("14-usage-validated")
def test_invalid_usage_leaves_a_complete_and_undamaged_run(workspace: Workspace, council: Terminal) -> None:
    left = list(VALUES)

    def answer(seen: Any) -> Reply:
        value = left.pop(0)
        reply = workspace.answers.words(*workspace.answers.who(seen), seen)
        return Reply(reply, usage=[{"prompt_tokens": value, "completion_tokens": 3, "total_tokens": value}])

    workspace.provider.answer = answer
    result = council(QUESTION, "--protocol", "collaborative", "--json")
    assert (result.code, result.json["status"], left) == (0, "complete", [])
    assert [seat["tokens"] for seat in result.json["seats"]] == [{"in": 0, "out": 6, "cached": 0, "unknown": True}] * 3
    assert council("runs", "fsck").code == 0
    assert council("resume", result.json["run"]).code == 0
