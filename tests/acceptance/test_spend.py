"""`council spend`: costs of all runs."""

from __future__ import annotations

import time

import pytest

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
    assert 0 < total["in_doubt"] <= total["estimated"] <= total["usd"]


@pytest.mark.behaviour("00-spend")
def test_a_cut_request_is_in_doubt_also_after_a_resend(priced: Workspace, council: Terminal) -> None:
    priced.answers.instead["alpha/draft"] = Reply(cut=60)
    told = council("--protocol", "triad", "--no-resend", "--json", QUESTION).json
    spent = council("spend", "--json").json["total"]
    assert told["calls"]["in_doubt"] == 1
    assert spent["in_doubt"] == told["seats"][0]["cost"] > 0


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
