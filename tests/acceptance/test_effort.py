"""--effort: from the command line to every request, and through a crash."""

from __future__ import annotations

import pytest

from tests.acceptance.helpers import EVERYONE, QUESTION, Table, Terminal, kill
from tests.fake_provider import Reply

pytestmark = pytest.mark.behaviour("issue-5-effort")


def write(table: Table, effort: str) -> None:
    config = table.folder / "council.toml"
    config.write_text(f'effort = "{effort}"\n' + config.read_text())


def test_an_effort_stands_in_the_plan_where_somebody_said_one(table: Table, council: Terminal) -> None:
    assert "effort" not in council("--dry-run", "--json", QUESTION).json
    assert council("--dry-run", "--json", "--effort", "low", QUESTION).json["effort"] == "low"
    write(table, "medium")
    assert council("--dry-run", "--json", QUESTION).json["effort"] == "medium"
    assert council("--dry-run", "--json", "--effort=high", QUESTION).json["effort"] == "high"


def test_every_request_asks_for_it(table: Table, council: Terminal) -> None:
    assert council("--json", "--effort", "high", "--protocol", "triad", QUESTION).code == 0
    assert [seen.body["reasoning_effort"] for seen in table.provider.log] == ["high"] * 4


def test_a_resumed_run_goes_on_with_it_whatever_the_file_says_by_then(table: Table, council: Terminal) -> None:
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


def test_an_endpoint_that_refuses_it_is_asked_without_it(table: Table, council: Terminal) -> None:
    refused = Reply(status=400, error={"error": {"message": "Unsupported parameter: 'reasoning_effort'"}})
    table.cast.instead["beta"] = lambda seen: refused if "reasoning_effort" in seen.body else None
    done = council("--json", "--effort", "high", "--protocol", "triad", QUESTION)
    assert (done.code, done.json["status"]) == (0, "complete")
    assert [seen.body.get("reasoning_effort") for seen in table.provider.requests("beta")] == ["high", None]


def test_another_word_is_refused_in_one_line(table: Table, council: Terminal) -> None:
    done = council("--effort", "extreme", QUESTION)
    assert (done.code, len(done.err.splitlines()), "extreme" in done.err) == (2, 1, True)
    write(table, "extreme")
    done = council("--dry-run", QUESTION)
    assert (done.code, len(done.err.splitlines())) == (2, 1)
    assert '"effort" is "extreme": it must be one of low, medium, high' in done.err


def test_thinking_harder_is_foreseen_in_the_plans_cost(table: Table, council: Terminal) -> None:
    priced = "".join(f'[prices."sim:{seat}"]\ninput = 1\noutput = 10\n' for seat in EVERYONE)
    table.configure(more=priced)
    usual, hard = (
        council("--dry-run", "--json", *flags, QUESTION).json["cost"] for flags in ((), ("--effort", "high"))
    )
    assert hard["expected"] > usual["expected"]
    assert hard["worst"] > usual["worst"]
