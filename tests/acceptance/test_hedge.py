"""`--hedge` in the real command: the report names both members, and a crash during the race buys nothing twice."""

from __future__ import annotations

import sqlite3

import pytest

from tests.acceptance.helpers import QUESTION, Terminal, Workspace, kill, wait_until
from tests.fake_provider import Reply

RUN = ("--hedge", "--protocol", "triad", "--timeout", "60", "--json", QUESTION)


@pytest.fixture
def slow_beta(workspace: Workspace, council: Terminal) -> Workspace:
    """Return a workspace in whose past runs beta answered at once; it has a fallback now."""
    assert council("--protocol", "triad", QUESTION).code == 0
    (run,) = workspace.runs()
    db = sqlite3.connect(workspace.data / "council.db")
    for n in range(20):
        db.execute("INSERT INTO intents VALUES (?, ?, 1, 'sim:beta', x'7b7d', 100.0)", (run, f"past/{n}"))
        db.execute("INSERT INTO settled VALUES (?, ?, 1, '{}', 100.01)", (run, f"past/{n}"))
    db.commit()
    db.close()
    workspace.configure(beta=["sim:spare"])
    workspace.provider.forget()
    return workspace


@pytest.mark.behaviour("15-hedge")
def test_the_report_says_that_a_seat_was_hedged_and_by_whom(slow_beta: Workspace, council: Terminal) -> None:
    slow_beta.answers.instead["beta"] = Reply(hang=True)
    assert "hedge: if a member is slower than usual" in council("--dry-run", *RUN[:-2], QUESTION).out
    done = council(*RUN)
    assert (done.code, done.json["status"]) == (0, "complete")
    beta = done.json["seats"][1]
    assert (beta["served_by"], beta["state"], beta["attempts"]) == ("sim:spare", "ok", 2)
    (hedge,) = beta["hedged"]
    assert (hedge["phase"], hedge["member"], hedge["by"]) == ("draft", "sim:beta", "sim:spare")
    assert all("hedged" not in seat for seat in (done.json["seats"][0], done.json["seats"][2]))
    reasons = [row["reason"] for row in done.json["degraded"]]
    assert "requested sim:beta, which was slower: sim:spare answered first" in reasons
    assert any("so sim:spare was asked too" in reason for reason in reasons)
    assert council("runs", "fsck", done.json["run"]).code == 0


@pytest.mark.behaviour("15-hedge")
def test_the_plan_says_nothing_of_a_hedge_that_cannot_happen(slow_beta: Workspace, council: Terminal) -> None:
    plan = ("--dry-run", "--hedge", "--protocol", "triad", "--json", QUESTION)
    assert council(*plan).json["hedge"] is True
    assert "hedge" not in council("--no-resend", *plan).json  # a second request may be billed too
    slow_beta.configure()  # without fallbacks
    assert "hedge" not in council(*plan).json


@pytest.mark.behaviour("15-hedge")
def test_a_crash_during_the_race_buys_no_stored_answer_again(slow_beta: Workspace, council: Terminal) -> None:
    gate = slow_beta.provider.hold(lambda seen: seen.model in ("beta", "spare"))
    stored = len(slow_beta.rows("SELECT key FROM results"))
    process = slow_beta.process(*RUN)
    gate.wait(count=2)
    wait_until(lambda: len(slow_beta.rows("SELECT key FROM results")) == stored + 2, "alpha and gamma are stored")
    kill(process)
    gate.release()
    done = council("resume", "--json")
    assert (done.code, done.json["status"], done.json["calls"]["in_doubt"]) == (0, "complete", 2)
    assert {seat["name"]: seat["state"] for seat in done.json["seats"]} == dict.fromkeys(
        ("alpha", "beta", "gamma"), "ok"
    )
    asked = [seen.model for seen in slow_beta.provider.log]
    assert (asked.count("alpha"), asked.count("gamma"), asked.count("beta"), asked.count("spare")) == (1, 1, 1, 2)
    assert council("runs", "fsck", done.json["run"]).code == 0


@pytest.mark.behaviour("15-hedge", "40-unknown-price-is-unknown")
def test_after_a_crash_the_report_has_the_hedge_and_the_unknown_cost_of_the_first_request(
    slow_beta: Workspace, council: Terminal
) -> None:
    """Only beta has no price, and it is not asked again."""
    models = ("alpha", "gamma", "chair", "spare")
    prices = "".join(f'[prices."sim:{model}"]\ninput = 5.0\noutput = 25.0\n' for model in models)
    slow_beta.configure(beta=["sim:spare"], more=prices)
    gate = slow_beta.provider.hold(lambda seen: seen.model in ("beta", "spare"))
    process = slow_beta.process("--allow-unpriced", *RUN)
    gate.wait(count=2)
    kill(process)
    gate.release()
    done = council("resume", "--json")
    assert [seen.model for seen in slow_beta.provider.log].count("beta") == 1
    assert (done.json["cost"]["usd"], done.json["cost"]["unpriced"]) == (None, ["sim:beta"])
    seats = {seat["name"]: seat for seat in done.json["seats"]}
    assert (seats["beta"]["served_by"], seats["beta"]["cost"]) == ("sim:spare", None)
    assert [hedge["by"] for hedge in seats["beta"]["hedged"]] == ["sim:spare"]


@pytest.mark.behaviour("15-hedge")
def test_without_the_flag_no_second_member_is_asked(slow_beta: Workspace, council: Terminal) -> None:
    slow_beta.answers.instead["beta"] = Reply(delay=0.5)
    done = council("--protocol", "triad", "--json", QUESTION)
    assert done.json["seats"][1]["served_by"] == "sim:beta"
    assert slow_beta.provider.requests("spare") == []
