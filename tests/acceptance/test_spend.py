"""`council spend`: costs of all runs."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from council.money import format_usd
from tests.acceptance.helpers import QUESTION, Terminal, Workspace, kill
from tests.acceptance.test_money import PRICES, billed, priced
from tests.fake_provider import Reply
from tests.trusted_project import write_user_file

__all__ = ["priced"]


@pytest.mark.behaviour("00-spend")
def test_spend_equals_the_providers_bill(priced: Workspace, council: Terminal) -> None:
    reports = [council("--protocol", protocol, "--json", QUESTION).json for protocol in ("triad", "adversarial")]
    spent = council("spend", "--json").json
    today = time.strftime("%Y-%m-%d")
    assert spent["total"]["usd"] == pytest.approx(billed(priced.provider.log), abs=1e-9)
    assert [(day["day"], day["usd"]) for day in spent["days"]] == [(today, spent["total"]["usd"])]
    assert {run["run"]: run["usd"] for run in spent["runs"]} == {r["run"]: r["cost"]["usd"] for r in reports}
    alpha = next(group for group in spent["members"] if group["member"] == "sim:alpha")
    assert alpha["usd"] == pytest.approx(sum(report["seats"][0]["cost"] for report in reports), abs=1e-9)
    assert alpha["tokens"]["in"] == sum(seen.tokens["in"] for seen in priced.provider.requests("alpha"))


@pytest.mark.behaviour("00-spend")
def test_spend_shows_the_rest_of_the_daily_cap(priced: Workspace, council: Terminal) -> None:
    priced.configure(more="[budget]\nmax_cost_per_day = 5.00\n")
    assert council("--protocol", "triad", QUESTION).code == 0
    told = council("spend").out.splitlines()
    assert told[0].split() == ["by", "day", "cost", "calls", "unpriced", "tokens", "in", "tokens", "out"]
    assert told[-1].startswith("today $0.0") and told[-1].endswith(" left")
    left = council("spend", "--json").json["today"]
    assert left["left"] == pytest.approx(5.0 - left["usd"])


@pytest.mark.behaviour("00-spend")
def test_spend_lists_unpriced_and_in_doubt_requests(priced: Workspace, council: Terminal) -> None:
    gate = priced.hold("draft", "alpha")
    process = priced.process("--protocol", "triad", QUESTION)
    gate.wait()
    kill(process)
    gate.release()
    write_user_file(PRICES.replace("sim:*", "sim:alpha"))
    assert council("--protocol", "triad", QUESTION).code == 0
    told = council("spend").out
    assert "in doubt" in told
    assert "unpriced: sim:beta, sim:chair, sim:gamma" in told
    total = council("spend", "--json").json["total"]
    assert total["in_doubt"] > 0 and total["usd"] > 0 and total["estimated"] == 0


@pytest.mark.behaviour("00-spend")
def test_a_cut_request_is_in_doubt_also_after_a_resend(priced: Workspace, council: Terminal) -> None:
    priced.answers.instead["alpha/draft"] = Reply(cut=60)
    told = council("--protocol", "triad", "--no-resend", "--json", QUESTION).json
    spent = council("spend", "--json").json["total"]
    assert told["calls"]["in_doubt"] == 1
    assert spent["in_doubt"] == told["cost"]["in_doubt"] > 0
    assert told["seats"][0]["cost"] == 0


@pytest.mark.behaviour("00-spend")
@pytest.mark.parametrize("since", ["today", "1d", "2020-01-01", "all"])
def test_spend_accepts_a_start_date(priced: Workspace, council: Terminal, since: str) -> None:
    assert council("spend").out.startswith("no paid calls since ")
    assert council("--protocol", "triad", QUESTION).code == 0
    assert council("spend", "--since", since, "--json").json["total"]["calls"] == 4
    assert council("spend", "--since", "2999-01-01", "--json").json["total"]["calls"] == 0


@pytest.mark.parametrize("since", ["yesterday", "7", "2026-13-01", "-3d", ""])
def test_an_invalid_date_is_rejected_in_one_line(workspace: Workspace, council: Terminal, since: str) -> None:
    done = council("spend", f"--since={since}")
    assert done.code == 2
    assert f'"{since}" is not a day' in done.err
    assert done.err.count("\n") == 1


# Protocols and what stops saved


@pytest.mark.behaviour("money-spend-protocols", "money-stops-saved")
def test_a_consensus_saves_the_attack_by_the_estimate_of_the_plan(priced: Workspace, council: Terminal) -> None:
    plan = council("--protocol", "adversarial", "--dry-run", "--json", QUESTION).json
    assert sum(plan["cost"]["phases"].values()) == pytest.approx(plan["cost"]["expected"], abs=1e-5)
    assert council("--protocol", "adversarial", QUESTION).code == 0
    priced.answers.consensus = True
    done = council("--protocol", "adversarial", "-v", QUESTION)
    (stop,) = council("report", "--json").json["stops"]
    phases, attack = plan["cost"]["phases"], stop["saved"]
    spent = council("report", "--json").json["cost"]["usd"]
    expected = sum(phases.values()) - phases["attack"]
    assert attack == pytest.approx(phases["attack"] * spent / expected, abs=1e-6)  # by the ratio of the other phases
    assert f"saved by stops: 2 calls, about {format_usd(attack)}" in done.err
    report = council("report", "--json").json
    (stop,) = report["stops"]
    assert (stop["skipped"], stop["calls"], stop["saved"]) == (["attack"], 2, attack)
    assert f"| Saved by stops | 2 calls, about {format_usd(attack)} |" in Path(report["report_path"]).read_text("utf-8")

    spent = council("spend", "--json").json
    (group,) = spent["protocols"]
    assert group["protocol"] == "adversarial"
    assert [group[name] for name in ("runs", "complete", "calls", "stops", "saved")] == [2, 2, 12, 1, attack]
    assert group["mean"] == pytest.approx(spent["total"]["usd"] / 2)
    told = council("spend", "--by", "protocol").out.splitlines()
    assert told[0].split() == [
        "by",
        "protocol",
        "runs",
        "calls",
        "cost",
        "per",
        "complete",
        "run",
        "stops",
        "stops",
        "saved",
    ]
    assert f"1 stop saved about {format_usd(attack)}, by the estimates of the plans" in told


@pytest.mark.behaviour("money-spend-protocols", "money-stops-saved")
def test_without_prices_what_a_stop_saved_is_unknown(workspace: Workspace, council: Terminal) -> None:
    workspace.answers.consensus = True
    report = council("--protocol", "adversarial", "--json", QUESTION).json
    assert [stop["saved"] for stop in report["stops"]] == [None]
    (group,) = council("spend", "--json").json["protocols"]
    assert (group["stops"], group["saved"], group["mean"]) == (1, None, None)
    assert "1 stop; what they saved is unknown, because prices are missing" in council("spend").out


@pytest.mark.behaviour("money-spend-protocols")
def test_a_removed_run_keeps_its_cost_without_a_protocol(priced: Workspace, council: Terminal) -> None:
    report = council("--protocol", "triad", "--json", QUESTION).json
    assert council("runs", "rm", report["run"]).code == 0
    spent = council("spend", "--json").json
    (group,) = spent["protocols"]
    assert (group["protocol"], group["runs"], group["complete"], group["mean"]) == ("", 1, 0, None)
    assert group["usd"] == report["cost"]["usd"]
    assert any(line.startswith("(removed runs)") for line in council("spend", "--by", "protocol").out.splitlines())


@pytest.mark.behaviour("money-stops-saved")
def test_an_attack_that_absent_seats_prevent_saves_nothing(priced: Workspace, council: Terminal) -> None:
    priced.answers.instead |= {"beta": Reply(status=401), "gamma": Reply(status=401)}
    report = council("--protocol", "adversarial", "--json", QUESTION).json
    assert report["status"] == "incomplete"
    assert "stops" not in report
