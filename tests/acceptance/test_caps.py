"""A cap gives a finished answer or a refusal before the run exists."""

from __future__ import annotations

import asyncio
import random
import re
import sqlite3
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from council.calling.budget import local_date
from council.planning.setup import RunSetup
from council.runs.fork import plan_fork
from council.runs.service import Convener
from tests.acceptance.helpers import QUESTION, Terminal, Workspace, kill, wait_for_exit
from tests.fake_provider import Reply, Seen
from tests.trusted_project import user_file, write_user_file

KEYS = {"anthropic": "ANTHROPIC_API_KEY", "openai": "OPENAI_API_KEY", "google": "GEMINI_API_KEY"}
PROTOCOLS = ("collaborative", "adversarial", "triad", "advisors", "general", "ranking", "refine", "solo", "adaptive", "panel")  # fmt: skip
CAPS = (0.02, 0.03, 0.05, 0.08, 0.12, 0.2, 0.3, 0.5, 0.8, 1.2, 2.0)
FLAGS = {"general": ("--no-search",)}
REFUSED = "does not cover this council"
ASKED_WORDS = re.compile(r"at most (\d+) words|(?:\d+) to (\d+) words", re.IGNORECASE)
VOCABULARY = [f"{first}{last}" for first in ("re", "con", "pro", "sub", "de") for last in ("view", "tain", "mote", "ject", "port", "form", "pose", "fer", "duct", "scribe")]  # fmt: skip


@pytest.fixture
def vendors(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """Three vendors at their list prices, whose members write as many words as they are asked for."""
    wires = {"anthropic": "anthropic", "openai": "openai", "google": "google"}
    tables = [f'[providers.{name}]\nbase_url = "{workspace.provider.base(wire)}"\nbackoff = 0.01\n' for name, wire in wires.items()]  # fmt: skip
    write_user_file("\n".join(["model_lists = false", *tables]))
    for variable in KEYS.values():
        monkeypatch.setenv(variable, "k")
    Path("council.toml").unlink()
    workspace.provider.answer = write_asked_words
    return workspace


def write_asked_words(seen: Seen) -> Reply | None:
    """Return a free text with as many words as the prompt asks for; None, the usual reply, for a typed one."""
    found = ASKED_WORDS.search(seen.prompt)
    if seen.schema or not found:
        return None
    chosen = random.Random(seen.n).choices(VOCABULARY, k=int(found[1] or found[2]))
    sentences = [" ".join(chosen[n : n + 12]).capitalize() for n in range(0, len(chosen), 12)]
    return Reply(text=". ".join(sentences) + ".")


@pytest.mark.behaviour("40-cap-finishes-or-refuses")
def test_the_cap_of_the_readme_gives_a_complete_answer(vendors: Workspace, council: Terminal) -> None:
    done = council("--max-cost", "0.20", "--json", "Should a team of four use a monorepo?")
    assert (done.code, done.json["status"], done.json["quorum"]["ok"]) == (0, "complete", 3)
    assert 0 < done.json["cost"]["usd"] <= 0.20
    assert len(vendors.provider.log) == 7


@pytest.mark.behaviour("40-cap-finishes-or-refuses")
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_no_cap_starts_a_run_that_cannot_finish(vendors: Workspace, council: Terminal, protocol: str) -> None:
    finished = []
    for cap in CAPS:
        sent, runs = len(vendors.provider.log), len(vendors.runs())
        flags = ("--protocol", protocol, *FLAGS.get(protocol, ()))
        done = council(*flags, "--max-cost", str(cap), "--json", QUESTION)
        if done.code == 2:
            assert REFUSED in done.json["error"]
            assert (len(vendors.provider.log), len(vendors.runs())) == (sent, runs)
            assert done.json["details"]["needed"] > cap
            continue
        assert (done.code, done.json["status"]) == (0, "complete"), (cap, done.json["degraded"], done.err)
        assert 0 < done.json["cost"]["usd"] <= cap
        finished.append(cap)
    assert finished == list(CAPS[CAPS.index(finished[0]) :])  # a higher cap never refuses what a lower one allows
    assert council("runs", "fsck").code == 0


def use_all_output(seen: Seen) -> Reply:
    """Return the usual reply, billed for as much output as the request allows."""
    reply = write_asked_words(seen) or Reply()
    body, config = seen.body, seen.body.get("generationConfig") or {}
    names = ("max_tokens", "max_completion_tokens", "max_output_tokens")
    limit = config.get("maxOutputTokens") or next(body[name] for name in names if name in body)
    reply.usage = [{"prompt_tokens": len(seen.raw) // 3, "completion_tokens": limit}]
    return reply


@pytest.mark.behaviour("40-cap-finishes-or-refuses")
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_run_whose_members_use_all_of_their_output_finishes_too(
    vendors: Workspace, council: Terminal, protocol: str
) -> None:
    vendors.provider.answer = use_all_output
    for cap in (0.02, 0.04, 0.13, 0.14, 0.15, 0.3, 0.7, 1.5):
        flags = ("--protocol", protocol, *FLAGS.get(protocol, ()))
        done = council(*flags, "--max-cost", str(cap), "--json", QUESTION)
        assert done.code == 2 or (done.code, done.json["status"]) == (0, "complete"), (cap, done.err)


@pytest.mark.behaviour("40-cap-finishes-or-refuses")
def test_under_a_cap_the_seats_of_a_phase_are_asked_at_once(vendors: Workspace) -> None:
    gate = vendors.provider.hold(lambda seen: True)
    process = vendors.process("--max-cost", "0.20", "--json", QUESTION)
    assert len({seen.wire for seen in gate.wait(count=3)}) == 3
    gate.release()
    assert wait_for_exit(process).json["status"] == "complete"


@pytest.mark.behaviour("40-cap-finishes-or-refuses")
def test_a_refusal_names_what_fits_and_its_price(vendors: Workspace, council: Terminal) -> None:
    chosen = {"alpha": "opus", "beta": "gpt-6.1-sol", "gamma": "gemini-3.1-pro-preview"}
    seats = [f'[seats.{seat}]\nmodel = "{model}"' for seat, model in chosen.items()]
    write_user_file("\n".join([user_file().read_text(encoding="utf-8"), *seats]))
    done = council("--max-cost", "0.05", QUESTION)
    assert done.code == 2
    (line,) = done.err.strip().splitlines()
    assert line.startswith("council: the cap of $0.050 does not cover this council, which needs at least $0.")
    assert re.search(r"raise it with --max-cost 0\.\d+", line)
    assert re.search(r"what fits: --cheap \(about \$0\.0\d+\), --protocol \w+ \(about \$0\.0\d+\)", line)
    assert (vendors.provider.log, vendors.runs()) == ([], [])
    needed = re.search(r"--max-cost (0\.\d+)", line)
    assert needed
    assert council("--max-cost", needed[1], QUESTION).code == 0  # the fix works


@pytest.mark.behaviour("40-cap-finishes-or-refuses")
def test_members_that_the_user_did_not_choose_give_way_to_fast_ones(vendors: Workspace, council: Terminal) -> None:
    plan = council("--max-cost", "0.20", "--dry-run", "--json", QUESTION).json
    assert plan["cheap"]
    assert any("fast models fill the seats" in line for line in plan["notices"])
    full = council("--max-cost", "2", "--dry-run", "--json", QUESTION).json
    assert "cheap" not in full and "limits" not in full
    assert {seat["model"] for seat in plan["seats"]}.isdisjoint(seat["model"] for seat in full["seats"])


@pytest.mark.behaviour("40-cap-finishes-or-refuses")
def test_a_cap_between_asks_for_shorter_answers(vendors: Workspace, council: Terminal) -> None:
    done = council("--max-cost", "0.40", "--json", QUESTION)
    assert (done.code, done.json["status"]) == (0, "complete")
    (line,) = (row["reason"] for row in done.json["degraded"] if "to fit the cap" in row["reason"])
    stated = re.search(r"answers have at most about (\d+) words instead of 1,500", line)
    assert stated
    asked = {
        int(found[1]) for seen in vendors.provider.log if (found := re.search(r"At most (\d+) words", seen.prompt))
    }
    assert max(asked) == int(stated[1]) < 1500
    limits = [seen.body.get("max_tokens") for seen in vendors.provider.log if seen.wire == "anthropic"]
    assert all(limit and limit < 6300 for limit in limits)


# Bad input


@pytest.mark.behaviour("40-cap-finishes-or-refuses")
@pytest.mark.parametrize("cap", ["0", "0.0001", "0.01"])
def test_a_cap_that_covers_nothing_is_refused_in_one_line(vendors: Workspace, council: Terminal, cap: str) -> None:
    done = council("--max-cost", cap, QUESTION)
    assert (done.code, len(done.err.strip().splitlines())) == (2, 1)
    assert REFUSED in done.err
    assert (vendors.provider.log, vendors.runs()) == ([], [])
    needed = re.search(r"--max-cost ([\d.]+)", done.err)
    assert needed and council("--dry-run", "--max-cost", needed[1], QUESTION).code == 0  # the fix works


@pytest.mark.behaviour("40-cap-finishes-or-refuses")
@pytest.mark.parametrize("cap", ["-1", "nan", "inf", "ten"])
def test_a_cap_that_is_no_amount_is_refused_with_its_value(vendors: Workspace, council: Terminal, cap: str) -> None:
    done = council("--max-cost", cap, QUESTION)
    assert done.code == 2
    assert cap in done.err
    assert vendors.provider.log == []


@pytest.mark.behaviour("40-cap-finishes-or-refuses")
def test_a_cap_of_zero_allows_free_members(vendors: Workspace, council: Terminal) -> None:
    Path("s.toml").write_text('[[reply]]\ntext = "Yes, one repository."\n', encoding="utf-8")
    done = council("-m", "scripted:s.toml", "--protocol", "triad", "--max-cost", "0", "--json", QUESTION)
    assert (done.code, done.json["status"]) == (0, "complete"), done.err  # the cap does not refuse it


# What may go wrong on the way


@pytest.mark.behaviour("40-cap-finishes-or-refuses")
def test_a_retry_never_takes_the_money_of_later_phases(vendors: Workspace, council: Terminal) -> None:
    """Each first request of a seat is cut after it could have been billed in full."""
    cut: set[str] = set()

    def cut_first(seen: Seen) -> Reply | None:
        if len(cut) < 3 and seen.model not in cut:
            cut.add(seen.model)
            return Reply(cut=400)
        return write_asked_words(seen)

    vendors.provider.answer = cut_first
    for cap in ("0.03", "0.05", "0.1", "0.2"):
        cut.clear()
        done = council("--protocol", "collaborative", "--max-cost", cap, "--json", QUESTION)
        if done.code == 2:
            continue
        cost = done.json["cost"]
        assert cost["usd"] + cost.get("in_doubt", 0) <= float(cap)
        assert (done.code, done.json["status"], done.json["quorum"]["ok"]) == (0, "complete", 3), done.err
    assert council("runs", "fsck").code == 0


@pytest.mark.behaviour("40-cap-finishes-or-refuses")
def test_one_lost_seat_does_not_stop_a_run_under_a_cap(vendors: Workspace, council: Terminal) -> None:
    """The drafts of one vendor are cut every time: the seat is absent, and the others finish within the cap."""

    def cut_google(seen: Seen) -> Reply | None:
        return Reply(cut=300) if seen.wire == "google" else write_asked_words(seen)

    vendors.provider.answer = cut_google
    done = council("--protocol", "triad", "--max-cost", "0.2", "--json", QUESTION)
    assert (done.code, done.json["status"]) == (0, "complete")
    cost = done.json["cost"]
    assert cost["usd"] + cost.get("in_doubt", 0) <= 0.2


@pytest.mark.behaviour("40-cap-finishes-or-refuses")
def test_the_rest_of_a_day_starts_only_runs_that_can_finish(vendors: Workspace, council: Terminal) -> None:
    write_user_file(user_file().read_text(encoding="utf-8") + "\n[budget]\nmax_cost_per_day = 0.30\n")
    codes = []
    for _ in range(30):
        done = council("--cheap", "--protocol", "triad", "--json", QUESTION)
        codes.append(done.code)
        if done.code:
            assert "left of today's $0.30 does not cover this council" in done.json["error"]
            break
        assert done.json["status"] == "complete"
    assert codes[-1] == 2 and len(codes) > 2
    spent = council("spend", "--json").json["today"]
    assert 0.15 < spent["usd"] <= 0.30


@pytest.mark.behaviour("40-cap-finishes-or-refuses")
@pytest.mark.parametrize("factor", [0.1, 30])
def test_prices_that_change_during_a_run_do_not_exceed_its_cap(
    vendors: Workspace, council: Terminal, factor: float
) -> None:
    gate = vendors.provider.hold(lambda seen: seen.wire == "google")
    process = vendors.process("--cheap", "--protocol", "triad", "--max-cost", "0.2", QUESTION)
    gate.wait()
    kill(process)
    gate.release()
    prices = [f'[prices."{name}:*"]\ninput = {factor}\noutput = {5 * factor}\n' for name in KEYS]
    write_user_file("\n".join([user_file().read_text(encoding="utf-8"), *prices]))
    report = council("resume", "--json").json
    cost = report["cost"]
    assert cost["usd"] + cost.get("in_doubt", 0) <= 0.2
    assert report["status"] == ("complete" if factor < 1 else "incomplete")
    assert council("runs", "fsck").code == 0


@pytest.mark.behaviour("40-cap-finishes-or-refuses", "00-unpriced-refused")
def test_a_price_unknown_for_one_seat_of_three(vendors: Workspace, council: Terminal) -> None:
    url = vendors.provider.base_url
    unknown = f'[providers.odd]\nwire = "openai"\nbase_url = "{url}"\n[seats.beta]\nmodel = "odd:m1"\nfallback = []\n'
    write_user_file(user_file().read_text(encoding="utf-8") + unknown)
    flags = ("--protocol", "triad", "--max-cost", "1", "--json")
    refused = council(*flags, QUESTION)
    assert refused.code == 2 and 'no price for "odd:m1"' in refused.json["error"]
    done = council(*flags, "--allow-unpriced", QUESTION)
    assert (done.code, done.json["status"]) == (0, "complete")
    assert (done.json["cost"]["usd"], done.json["cost"]["unpriced"]) == (None, ["odd:m1"])
    ((spent,),) = vendors.rows("SELECT sum(coalesce(charged, reserved)) FROM spending")
    assert 0 < spent <= 1e9


@pytest.mark.behaviour("40-cap-finishes-or-refuses")
@pytest.mark.parametrize("protocol", ["triad", "ranking", "general"])
def test_the_stated_length_is_the_one_that_is_asked_for(vendors: Workspace, council: Terminal, protocol: str) -> None:
    flags = ("--protocol", protocol, *FLAGS.get(protocol, ()))
    checked = 0
    for cap in ("0.25", "0.35", "0.45"):
        sent = len(vendors.provider.log)
        done = council(*flags, "--max-cost", cap, "--json", QUESTION)
        prompts = [seen.prompt for seen in vendors.provider.log[sent:]]
        for line in (row["reason"] for row in done.json["degraded"] if " words instead of " in row["reason"]):
            stated = re.search(r"at most about (\d+) words instead of ([\d,]+)", line)
            assert stated and int(stated[1]) < int(stated[2].replace(",", ""))
            assert any(f"t most {stated[1]} words" in prompt for prompt in prompts)
            checked += 1
    assert checked


@pytest.mark.behaviour("40-cap-finishes-or-refuses")
def test_a_higher_cap_never_refuses_what_a_lower_one_allows_beside_a_day_cap(
    vendors: Workspace, council: Terminal
) -> None:
    write_user_file(user_file().read_text(encoding="utf-8") + "\n[budget]\nmax_cost_per_day = 0.45\n")
    codes = [council("--dry-run", "--max-cost", cap, QUESTION).code for cap in ("0.40", "0.44", "0.46", "1")]
    assert codes == [0, 0, 0, 0]


@pytest.mark.behaviour("40-cap-finishes-or-refuses")
def test_money_that_a_process_held_before_its_run_was_stored_is_free_again(
    vendors: Workspace, council: Terminal
) -> None:
    write_user_file(user_file().read_text(encoding="utf-8") + "\n[budget]\nmax_cost_per_day = 0.30\n")
    assert council("--cheap", "--protocol", "triad", QUESTION).code == 0
    with closing(sqlite3.connect(vendors.data / "council.db")) as db:  # as left by a process that died two minutes ago
        at, day = time.time() - 120, local_date(time.time())
        db.execute(
            "INSERT INTO spending (run, key, n, member, at, day, price, reserved) VALUES ('rgone', '', 0, '', ?, ?, '', ?)",
            (at, day, 10**9),
        )
        db.commit()
    assert council("spend", "--json").json["today"]["reserved"] == 0
    assert council("--cheap", "--protocol", "triad", QUESTION).code == 0


@pytest.mark.behaviour("40-cap-finishes-or-refuses")
def test_a_fork_is_fitted_to_its_cap_or_refused(vendors: Workspace, council: Terminal) -> None:
    run = council("--cheap", "--protocol", "triad", "--json", QUESTION).json["run"]
    fork = ("fork", run, "--seat", "alpha=anthropic:claude-opus-5.5", "--json", "--max-cost")
    refused = council(*fork, "0.05")
    assert refused.code == 2 and REFUSED in refused.json["error"]
    assert vendors.runs() == [run]
    for cap in (refused.json["details"]["needed"], 0.3, 1.0):
        done = council(*fork, str(cap))
        assert (done.code, done.json["status"]) == (0, "complete"), done.err
        assert done.json["cost"]["usd"] <= cap


@pytest.mark.behaviour("40-cap-finishes-or-refuses")
def test_a_fork_holds_no_money_for_the_answers_that_it_reuses(vendors: Workspace, council: Terminal) -> None:
    run = council("--cheap", "--protocol", "triad", "--max-cost", "0.20", "--json", QUESTION).json["run"]

    async def check() -> None:
        convener = Convener(vendors.folder)
        try:
            parent = await convener.store.load(run)
            held = RunSetup.of(parent).spending
            assert [name for name, _ in held.phases] == ["draft", "merge"]
            for start, kept in (("draft", held.phases), ("merge", held.phases[1:])):
                setup, _ = plan_fork(parent, start, {}, convener.run_context)
                assert setup.spending == replace(held, phases=kept)
        finally:
            await convener.close()

    asyncio.run(check())


@pytest.mark.behaviour("40-cap-finishes-or-refuses", "50-batch-budget")
def test_a_cap_of_each_run_and_a_limit_of_the_batch_apply_together(vendors: Workspace, council: Terminal) -> None:
    budget = "\n[budget]\nmax_cost = 0.50\nmax_cost_per_day = 5.00\n"
    write_user_file(user_file().read_text(encoding="utf-8") + budget)
    Path("rows.jsonl").write_text(
        '{"id": "a", "question": "One?"}\n{"id": "b", "question": "Two?"}\n', encoding="utf-8"
    )
    for limit in ((), ("--max-cost", "4")):
        done = council("batch", "rows.jsonl", "-o", f"out{len(limit)}.jsonl", "--json", *limit)
        assert (done.code, done.json["complete"]) == (0, 2), done.err
