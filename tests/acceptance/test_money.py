"""Costs end to end: plan, reservations, the provider's bill, report and fsck."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

import pytest

from tests.acceptance.helpers import QUESTION, Terminal, Workspace, kill, wait_for_exit
from tests.fake_provider import Reply, Seen
from tests.fakes.replies import Json
from tests.trusted_project import write_user_file

IN, CACHED, OUT = 3.0, 0.3, 15.0
PRICES = f'[prices."sim:*"]\ninput = {IN}\ncached = {CACHED}\nwrite = 3.75\noutput = {OUT}\n'


@pytest.fixture
def priced(workspace: Workspace) -> Workspace:
    write_user_file(PRICES)
    workspace.configure()
    return workspace


def billed(seen: list[Seen]) -> float:
    """Return the cost of the logged requests."""
    cached = sum(one.tokens.get("cached", 0) for one in seen)
    fresh = sum(one.tokens["in"] for one in seen) - cached
    return float(fresh * IN + cached * CACHED + sum(one.tokens["out"] for one in seen) * OUT) / 1e6


def telling(workspace: Workspace, usage: list[Json]) -> Callable[[Seen], Reply]:
    """Return the usual replies with another usage."""
    return lambda seen: Reply(text=workspace.answers.words(*workspace.answers.who(seen), seen), usage=usage)


def adversarial(council: Terminal, *flags: str) -> Json:
    return council("--protocol", "adversarial", "--json", *flags, QUESTION).json


# The bill


@pytest.mark.behaviour("00-report-cost")
def test_the_report_equals_the_providers_bill_for_each_seat(priced: Workspace, council: Terminal) -> None:
    report = adversarial(council)
    log = priced.provider.log
    assert report["cost"] == {"usd": pytest.approx(billed(log), abs=1e-9), "estimated": False, "unpriced": []}
    for seat in (*report["seats"], report["chair"]):
        own = [seen for seen in log if seen.model == seat["name"]]
        assert seat["cost"] == pytest.approx(billed(own), abs=1e-9)
        assert seat["cost"] > 0
    assert council("runs", "fsck").code == 0


@pytest.mark.behaviour("00-report-cost")
def test_cache_reads_are_billed_at_the_cached_rate(priced: Workspace, council: Terminal) -> None:
    usage = {"prompt_tokens": 2000, "completion_tokens": 100, "prompt_tokens_details": {"cached_tokens": 1536}}
    priced.answers.instead["alpha"] = telling(priced, [usage])
    alpha = adversarial(council)["seats"][0]
    assert alpha["tokens"] == {"in": 2000, "out": 100, "cached": 1536}
    assert alpha["cost"] == pytest.approx((464 * 3 + 1536 * 0.3 + 100 * 15) / 1e6)


@pytest.mark.behaviour("wire.usage-is-the-largest-report")
def test_cumulative_usage_is_billed_once(priced: Workspace, council: Terminal) -> None:
    growing = [{"prompt_tokens": 500, "completion_tokens": tokens} for tokens in (10, 40, 100)]
    priced.answers.instead["alpha"] = telling(priced, growing)
    assert adversarial(council)["seats"][0]["cost"] == pytest.approx((500 * 3 + 100 * 15) / 1e6)


@pytest.mark.behaviour("40-estimated-where-not-told")
def test_missing_usage_makes_the_cost_an_estimate(priced: Workspace, council: Terminal) -> None:
    priced.answers.instead["alpha"] = telling(priced, [])
    done = council("--protocol", "adversarial", QUESTION)
    assert done.err.splitlines()[-1].startswith("about $")
    assert council("report", "--json").json["cost"]["estimated"]
    assert council("runs", "fsck").code == 0


@pytest.mark.behaviour("40-in-doubt-is-charged")
def test_a_cut_stream_is_charged_its_reservation(priced: Workspace, council: Terminal) -> None:
    priced.answers.instead["alpha/draft"] = [Reply(cut=40)]
    report = adversarial(council)
    cost, bill = report["cost"], billed(priced.provider.log)
    assert cost["usd"] < bill < cost["usd"] + cost["in_doubt"]  # the endpoint billed the cut request too
    assert not cost["estimated"]
    assert council("runs", "fsck").code == 0


@pytest.mark.behaviour("40-unknown-price-is-unknown")
def test_without_prices_the_cost_is_unknown_and_the_plan_states_the_reason(
    workspace: Workspace, council: Terminal
) -> None:
    plan = council("--protocol", "adversarial", "--dry-run", "--json", QUESTION).json
    members = ["sim:alpha", "sim:beta", "sim:gamma", "sim:chair"]
    assert (plan["cost"], plan["unpriced"]) == (None, members)
    shown = council("--protocol", "adversarial", "--dry-run", QUESTION).out
    assert "cost unknown (sim:alpha, sim:beta, sim:gamma, sim:chair unpriced)" in shown.splitlines()
    assert adversarial(council)["cost"] == {
        "usd": None, "estimated": False, "unpriced": ["sim:alpha", "sim:beta", "sim:chair", "sim:gamma"],
    }  # fmt: skip


# The plan


@pytest.mark.behaviour("00-plan-cost")
@pytest.mark.parametrize("protocol", ["collaborative", "adversarial", "triad", "advisors", "ranking"])
def test_a_run_costs_no_more_than_its_plan(priced: Workspace, council: Terminal, protocol: str) -> None:
    priced.configure(more='[models]\ndefault = "sim:alpha"\n')
    priced.provider.answer = None
    plan = council("--protocol", protocol, "--dry-run", "--json", QUESTION).json
    assert priced.provider.log == []
    cost = plan["cost"]
    assert 0 < cost["low"] <= cost["expected"] <= cost["worst"]
    report = council("--protocol", protocol, "--json", QUESTION).json
    assert 0 < report["cost"]["usd"] <= cost["worst"]


@pytest.mark.behaviour("00-plan-cost")
def test_the_plan_shows_the_cost_and_the_cap_in_one_line(priced: Workspace, council: Terminal) -> None:
    shown = council("--protocol", "triad", "--dry-run", "--max-cost", "0.60", QUESTION).out
    (line,) = (line for line in shown.splitlines() if line.startswith("cost "))
    assert [word.split()[0] for word in line.removeprefix("cost ").split(" · ")] == ["low", "expected", "worst", "cap"]
    assert line.endswith("cap $0.60")


@pytest.mark.behaviour("00-plan-cost")
def test_a_longer_question_costs_more_also_when_the_rehearsal_is_shared(priced: Workspace, council: Terminal) -> None:
    costs = [
        council("--protocol", "triad", "--dry-run", "--json", question).json["cost"]["expected"]
        for question in (QUESTION, QUESTION + " Say why." * 400)
    ]
    more = 4 * -(-len(" Say why." * 400) // 3) * IN / 1e6  # it is in four prompts
    assert costs[1] - costs[0] == pytest.approx(more, rel=0.01)


# The cap


@pytest.mark.behaviour("00-exit-budget")
def test_a_run_stops_at_its_cap_and_resumes_with_a_higher_one(priced: Workspace, council: Terminal) -> None:
    """The drafts are much longer than the output limits of their requests, so that the next phase costs more than
    planned.
    """
    long_text = " ".join(f"word{n}" for n in range(6000))
    for seat in ("alpha", "beta", "gamma"):
        priced.answers.instead[f"{seat}/draft"] = [Reply(text=long_text)]
    cap = council("--protocol", "collaborative", "--max-cost", "0.01", "--json", QUESTION).json["details"]["needed"]
    done = council("--protocol", "collaborative", "--max-cost", str(cap), "--json", QUESTION)
    sent = len(priced.provider.log)
    report = done.json
    assert (done.code, report["status"], report["verdict"]) == (5, "incomplete", None)
    assert report["cost"]["usd"] <= cap
    assert "the budget for this run is used up" in done.err
    assert "skipped(budget)" in {seat["state"] for seat in (*report["seats"], report["chair"])}
    (run,) = priced.runs()
    assert council("runs", "fsck").code == 0
    assert priced.rows("SELECT count(*) FROM results WHERE run = ?", run) == [(sent,)]

    again = council("resume", "--json")
    assert again.code == 5  # the cap of the run still applies
    assert len(priced.provider.log) == sent
    more = council("resume", "--max-cost", "2.00", "--json")
    assert (more.code, more.json["status"], more.json["calls"]["replayed"]) == (0, "complete", sent)
    assert more.json["cost"]["cap"] == 2.0
    assert cap < more.json["cost"]["usd"] <= 2.0
    assert council("runs", "fsck").code == 0


@pytest.mark.behaviour("00-unpriced-refused")
@pytest.mark.parametrize("how", ["flag", "file", "day"])
def test_an_unpriced_member_under_a_cap_is_refused_before_any_call(
    workspace: Workspace, council: Terminal, how: str
) -> None:
    budget = {"file": "max_cost = 1.0", "day": "max_cost_per_day = 1.0"}
    workspace.configure(more=f"[budget]\n{budget[how]}\n" if how in budget else "")
    flags = ["--max-cost", "1"] if how == "flag" else []
    done = council(*flags, "--protocol", "triad", QUESTION)
    assert done.code == 2
    assert 'no price for "sim:alpha"' in done.err
    assert (workspace.provider.log, workspace.runs()) == ([], [])
    allowed = council(*flags, "--protocol", "triad", "--allow-unpriced", "--json", QUESTION)
    assert (allowed.code, allowed.json["cost"]["usd"]) == (0, None)


@pytest.mark.behaviour("00-unpriced-refused")
def test_an_unpriced_fallback_is_refused_too(priced: Workspace, council: Terminal) -> None:
    priced.configure(more='[providers.simb]\nbase_url = "http://127.0.0.1:9/v1"\n', beta=["simb:m1"])
    done = council("--max-cost", "1", "--protocol", "triad", QUESTION)
    assert (done.code, 'no price for "simb:m1"' in done.err) == (2, True)


@pytest.mark.behaviour("40-budget-per-day")
def test_the_runs_of_a_day_share_the_daily_cap(priced: Workspace, council: Terminal) -> None:
    usage = [{"prompt_tokens": 1000, "completion_tokens": 2800}]  # $0.045
    for seat in ("alpha", "beta", "gamma", "chair"):
        priced.answers.instead[seat] = telling(priced, usage)
    priced.configure(more="[budget]\nmax_cost_per_day = 0.60\n")
    first, second, third = (council("--protocol", "triad", "--json", QUESTION) for _ in range(3))
    assert (first.code, second.code, first.json["status"], second.json["status"]) == (0, 0, "complete", "complete")
    assert third.code == 2
    assert "raise [budget] max_cost_per_day, or run it tomorrow" in third.json["error"]
    (spent,) = priced.rows("SELECT sum(coalesce(charged, reserved)) FROM spending")[0]
    assert spent <= 0.60e9


@pytest.mark.behaviour("40-in-doubt-is-charged")
def test_a_killed_run_is_charged_for_requests_in_flight(priced: Workspace, council: Terminal) -> None:
    gate = priced.hold("draft", "alpha")
    process = priced.process("--protocol", "triad", "--max-cost", "5", QUESTION)
    gate.wait()
    kill(process)
    (run,) = priced.runs()
    left = council("report", run, "--json").json["cost"]
    held = priced.rows("SELECT sum(reserved) FROM spending WHERE charged IS NULL AND key <> ''")[0][0] / 1e9
    assert left["in_doubt"] == pytest.approx(held) and held > 0
    gate.release()
    report = wait_for_exit(priced.process("resume", run, "--json")).json
    assert (report["status"], report["cost"]["cap"]) == ("complete", 5.0)
    assert report["cost"]["in_doubt"] == pytest.approx(held)
    assert council("runs", "fsck").code == 0


# fsck


DAMAGES = {
    "a bill that was changed": (
        "UPDATE spending SET charged = charged + 1000000000 WHERE key = 'draft/alpha'", 'request 1 of "draft/alpha" was charged $1.',
    ),
    "a bill that was struck out": (
        "UPDATE spending SET charged = NULL WHERE key = 'draft/alpha'", 'request 1 of "draft/alpha" has a result but was never charged',
    ),
    "a bill without an event": ("DELETE FROM spending WHERE key = 'draft/beta'", "the billing events total"),
    "a cap that was not kept": (
        "UPDATE events SET body = replace(body, '\"cap\":5.0', '\"cap\":0.0001') WHERE type = 'convened'", "more than its cap of $0.00010",
    ),
}  # fmt: skip


@pytest.mark.behaviour("40-fsck-money")
@pytest.mark.parametrize("damage", DAMAGES)
def test_fsck_finds_tampered_spending_rows(priced: Workspace, council: Terminal, damage: str) -> None:
    assert council("--protocol", "triad", "--max-cost", "5", QUESTION).code == 0
    assert council("runs", "fsck").code == 0
    statement, told = DAMAGES[damage]
    with sqlite3.connect(priced.data / "council.db") as db:
        assert db.execute(statement).rowcount
    db.close()
    done = council("runs", "fsck")
    assert (done.code, told in done.out) == (1, True)


# The strongest seat

DEAREST_GAMMA = f'{PRICES}[prices."sim:gamma"]\ninput = 5.0\noutput = 25.0\n'


@pytest.mark.behaviour("evidence-strongest")
def test_the_strongest_seat_is_that_of_the_dearest_member_also_in_a_fork(
    workspace: Workspace, council: Terminal
) -> None:
    write_user_file(DEAREST_GAMMA)
    workspace.configure()
    done = council("--protocol", "triad", "--json", QUESTION)
    assert done.json["strongest"]["seat"] == "gamma"
    assert "| Strongest seat | gamma (sim:gamma, the highest price)" in council("report", done.json["run"]).out
    plan = council("--protocol", "triad", "--dry-run", "--json", QUESTION).json
    assert plan["prices"] == {"sim:alpha": 0.018, "sim:beta": 0.018, "sim:gamma": 0.03, "sim:chair": 0.018}
    fork = council("fork", done.json["run"], "--seat", "alpha=sim:gamma", "--json")
    assert fork.code == 0 and "strongest" not in fork.json  # two seats have the dearest member


@pytest.mark.behaviour("10-strongest-absent")
def test_the_trust_line_names_a_strongest_seat_that_did_not_answer(workspace: Workspace, council: Terminal) -> None:
    write_user_file(DEAREST_GAMMA)
    workspace.configure()
    workspace.answers.instead["gamma"] = Reply(status=401)
    report = council("--protocol", "triad", "--json", QUESTION).json
    assert "strongest" not in report
    assert [reason for reason in report["trust"]["because"] if reason.startswith("gamma, the strongest member")]
    workspace.configure()
    workspace.answers.instead["beta"], workspace.answers.instead["gamma"] = Reply(status=401), Reply(text="Wait.")
    report = council("--protocol", "triad", "--json", QUESTION).json
    assert report["strongest"]["seat"] == "gamma"
    assert not [reason for reason in report["trust"]["because"] if "strongest" in reason]
