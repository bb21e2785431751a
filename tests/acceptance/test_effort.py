"""--effort: from the command line to every request, also after a crash."""

from __future__ import annotations

import pytest

from tests.acceptance.helpers import EVERYONE, QUESTION, Terminal, Workspace, kill
from tests.fake_provider import Reply

pytestmark = pytest.mark.behaviour("issue-5-effort")


def write(workspace: Workspace, effort: str) -> None:
    config = workspace.folder / "council.toml"
    config.write_text(f'effort = "{effort}"\n' + config.read_text())


def test_a_requested_effort_is_in_the_plan(workspace: Workspace, council: Terminal) -> None:
    assert "effort" not in council("--dry-run", "--json", QUESTION).json
    assert council("--dry-run", "--json", "--effort", "low", QUESTION).json["effort"] == "low"
    write(workspace, "medium")
    assert council("--dry-run", "--json", QUESTION).json["effort"] == "medium"
    assert council("--dry-run", "--json", "--effort=high", QUESTION).json["effort"] == "high"


def test_every_request_sets_the_effort(workspace: Workspace, council: Terminal) -> None:
    assert council("--json", "--effort", "high", "--protocol", "triad", QUESTION).code == 0
    assert [seen.body["reasoning_effort"] for seen in workspace.provider.log] == ["high"] * 4


def test_a_resumed_run_keeps_its_effort(workspace: Workspace, council: Terminal) -> None:
    gate = workspace.hold("merge")
    running = workspace.process("--effort", "medium", "--protocol", "triad", QUESTION)
    gate.wait()
    kill(running)
    gate.release()
    write(workspace, "low")
    done = council("resume", "--json")
    assert (done.code, done.json["calls"]["replayed"]) == (0, 3)
    assert {seen.body["reasoning_effort"] for seen in workspace.provider.log} == {"medium"}
    assert council("runs", "fsck").code == 0


def test_an_endpoint_that_refuses_effort_is_asked_without_it(workspace: Workspace, council: Terminal) -> None:
    refused = Reply(status=400, error={"error": {"message": "Unsupported parameter: 'reasoning_effort'"}})
    workspace.answers.instead["beta"] = lambda seen: refused if "reasoning_effort" in seen.body else None
    done = council("--json", "--effort", "high", "--protocol", "triad", QUESTION)
    assert (done.code, done.json["status"]) == (0, "complete")
    assert [seen.body.get("reasoning_effort") for seen in workspace.provider.requests("beta")] == ["high", None]


def test_an_unknown_effort_is_rejected_in_one_line(workspace: Workspace, council: Terminal) -> None:
    done = council("--effort", "extreme", QUESTION)
    assert (done.code, len(done.err.splitlines()), "extreme" in done.err) == (2, 1, True)
    write(workspace, "extreme")
    done = council("--dry-run", QUESTION)
    assert (done.code, len(done.err.splitlines())) == (2, 1)
    assert '"effort" is "extreme": it must be one of low, medium, high' in done.err


def test_higher_effort_raises_the_estimated_cost(workspace: Workspace, council: Terminal) -> None:
    priced = "".join(f'[prices."sim:{seat}"]\ninput = 1\noutput = 10\n' for seat in EVERYONE)
    workspace.configure(more=priced)
    usual, hard = (
        council("--dry-run", "--json", *flags, QUESTION).json["cost"] for flags in ((), ("--effort", "high"))
    )
    assert hard["expected"] > usual["expected"]
    assert hard["worst"] > usual["worst"]
