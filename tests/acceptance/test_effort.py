"""--effort: from the command line to every request, also after a crash."""

from __future__ import annotations

import pytest

from tests.acceptance.helpers import EVERYONE, QUESTION, Table, Terminal, kill
from tests.fake_provider import Reply

pytestmark = pytest.mark.behaviour("issue-5-effort")


def write(table: Table, effort: str) -> None:
    config = table.folder / "council.toml"
    config.write_text(f'effort = "{effort}"\n' + config.read_text())


def test_a_requested_effort_is_in_the_plan(table: Table, council: Terminal) -> None:
    assert "effort" not in council("--dry-run", "--json", QUESTION).json
    assert council("--dry-run", "--json", "--effort", "low", QUESTION).json["effort"] == "low"
    write(table, "medium")
    assert council("--dry-run", "--json", QUESTION).json["effort"] == "medium"
    assert council("--dry-run", "--json", "--effort=high", QUESTION).json["effort"] == "high"


def test_every_request_sets_the_effort(table: Table, council: Terminal) -> None:
    assert council("--json", "--effort", "high", "--protocol", "triad", QUESTION).code == 0
    assert [seen.body["reasoning_effort"] for seen in table.provider.log] == ["high"] * 4


def test_a_resumed_run_keeps_its_effort(table: Table, council: Terminal) -> None:
    gate = table.hold("merge")
    running = table.process("--effort", "medium", "--protocol", "triad", QUESTION)
    gate.wait()
    kill(running)
    gate.release()
    write(table, "low")
    done = council("resume", "--json")
    assert (done.code, done.json["calls"]["replayed"]) == (0, 3)
    assert {seen.body["reasoning_effort"] for seen in table.provider.log} == {"medium"}
    assert council("runs", "fsck").code == 0


def test_an_endpoint_that_refuses_effort_is_asked_without_it(table: Table, council: Terminal) -> None:
    refused = Reply(status=400, error={"error": {"message": "Unsupported parameter: 'reasoning_effort'"}})
    table.cast.instead["beta"] = lambda seen: refused if "reasoning_effort" in seen.body else None
    done = council("--json", "--effort", "high", "--protocol", "triad", QUESTION)
    assert (done.code, done.json["status"]) == (0, "complete")
    assert [seen.body.get("reasoning_effort") for seen in table.provider.requests("beta")] == ["high", None]


def test_an_unknown_effort_is_rejected_in_one_line(table: Table, council: Terminal) -> None:
    done = council("--effort", "extreme", QUESTION)
    assert (done.code, len(done.err.splitlines()), "extreme" in done.err) == (2, 1, True)
    write(table, "extreme")
    done = council("--dry-run", QUESTION)
    assert (done.code, len(done.err.splitlines())) == (2, 1)
    assert '"effort" is "extreme": it must be one of low, medium, high' in done.err


def test_higher_effort_raises_the_estimated_cost(table: Table, council: Terminal) -> None:
    priced = "".join(f'[prices."sim:{seat}"]\ninput = 1\noutput = 10\n' for seat in EVERYONE)
    table.configure(more=priced)
    usual, hard = (
        council("--dry-run", "--json", *flags, QUESTION).json["cost"] for flags in ((), ("--effort", "high"))
    )
    assert hard["expected"] > usual["expected"]
    assert hard["worst"] > usual["worst"]
