"""No behaviour of an endpoint makes a run cost more than its cap, and every surface tells the same bill.

`pytest -m sweep` adds every wire, cap and protocol.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from decimal import Decimal
from pathlib import Path

import pytest

from council.money import usd_to_nanos
from council.types import OK_STATES
from tests.acceptance.endpoint_behaviours import BEHAVIOURS, Behaviour
from tests.acceptance.helpers import QUESTION, Json, Result, Terminal, Workspace, kill, wait_for_exit, wait_until
from tests.doors.web.server import WebServer
from tests.fake_provider import Reply, Seen
from tests.paths import ROOT
from tests.trusted_project import write_user_file

KEYS = {"anthropic": "ANTHROPIC_API_KEY", "openai": "OPENAI_API_KEY", "google": "GEMINI_API_KEY"}
PATHS = {"anthropic": "/v1", "openai": "/v1", "google": "/v1beta"}
VENDORS = tuple(KEYS)
OPENAI_WIRES = ("openai", "openai-responses")
TRIAD = ("--protocol", "triad")
ROOMY = 3.0  # times the lowest cap that starts a run, so that retries and fallbacks have money
CODES = {"complete": (0, 3), "incomplete": (3, 5), "failed": (1, 4)}
DRAFT = "This is a plain answer of a few sentences."  # in each draft of the fake provider, so in the chair's prompt
_lowest: dict[tuple[str, ...], float] = {}  # by flags: the lowest cap that starts a run


class Bench:
    """Three vendors at list prices. The endpoints of `victims` behave as a row of the table says."""

    def __init__(self, workspace: Workspace, council: Terminal) -> None:
        self.workspace, self.council, self.provider = workspace, council, workspace.provider
        self.highest: Counter[str] = Counter()  # by run, and "" for all: what was spent, reserved and held at once
        self.behaviour: Behaviour | None = None
        self.victims: tuple[str, ...] = ()
        self.when: Callable[[Seen], bool] = lambda seen: True
        workspace.provider.answer = self.respond
        Path("council.toml").unlink()

    def respond(self, seen: Seen) -> Reply | None:
        """Look into the store while the request is open, and answer as the row says."""
        self.look()
        is_victim = seen.wire.partition("-")[0] in self.victims and self.when(seen)
        return self.behaviour.reply(seen) if is_victim and self.behaviour and self.behaviour.reply else None

    def look(self) -> Counter[str]:
        """Return what each run has spent, reserved and holds, in billionths of a dollar, and remember the highest
        amounts.
        """
        path = self.workspace.data / "council.db"
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
            rows = db.execute("SELECT run, sum(coalesce(charged, reserved, 0)) FROM spending GROUP BY run").fetchall()
        now = Counter({run: int(amount) for run, amount in rows})
        now[""] = now.total()
        self.highest |= now
        return now

    @contextmanager
    def misbehave(
        self, name: str, victims: tuple[str, ...] = VENDORS, *, openai_wire: str = "openai", connect: float = 0.2, more: str = ""
    ) -> Iterator[None]:  # fmt: skip
        """Let the endpoints of some vendors behave as a row says."""
        row = BEHAVIOURS[name]
        self.behaviour, self.victims = row, victims
        with ExitStack() as stack:
            odd = stack.enter_context(row.serve()) if row.serve else self.provider.address
            tables = [
                f'[providers.{vendor}]\nbase_url = "{odd if vendor in victims else self.provider.address}{PATHS[vendor]}"\n'
                f"backoff = 0.01\nconnect = {connect}\n" + (f'wire = "{openai_wire}"\n' if vendor == "openai" else "")
                for vendor in VENDORS
            ]
            write_user_file("\n".join(["model_lists = false", *tables, more]))
            yield

    def flags(self, cap: float, *flags: str) -> tuple[str, ...]:
        waits = ("--timeout", "1") if self.behaviour and self.behaviour.waits else ()
        return (*flags, *waits, "--max-cost", str(cap), "--json", QUESTION)

    def ask(self, cap: float, *flags: str) -> Result:
        return self.council(*self.flags(cap, *flags))

    def find_cap(self, *flags: str, times: float = 1.0) -> float:
        """Return the lowest cap that starts a run, or several times as much."""
        if flags not in _lowest:
            _lowest[flags] = self.council(*flags, "--max-cost", "0.0001", "--json", QUESTION).json["details"]["needed"]
        return round(times * _lowest[flags], 6)


@pytest.fixture
def bench(workspace: Workspace, council: Terminal, monkeypatch: pytest.MonkeyPatch) -> Bench:
    for variable in KEYS.values():
        monkeypatch.setenv(variable, "k")
    return Bench(workspace, council)


def nanos(usd: float) -> int:
    return usd_to_nanos(Decimal(str(usd)))


def find_problems(bench: Bench, done: Result, cap: float) -> list[str]:
    """Return what is wrong with the bill of a run, or with how it ended."""
    report = done.json
    if "status" not in report:
        return [f"exit {done.code}: {report}"]
    run, cost = report["run"], report["cost"]
    usd, in_doubt = nanos(cost["usd"]), nanos(cost.get("in_doubt", 0.0))
    stored = bench.look()[run]
    (spent,) = (row for row in bench.council("spend", "--json").json["runs"] if row["run"] == run)
    fsck = bench.council("runs", "fsck", run)
    checks = {
        f"it cost {usd} + {in_doubt} of {cap}": usd + in_doubt <= nanos(cap),
        f"{bench.highest[run]} were spent or held of {cap}": bench.highest[run] <= nanos(cap),
        f"the store has {stored}, the report {usd} + {in_doubt}": stored == usd + in_doubt,
        f"spend has {spent['usd']} + {spent['in_doubt']}, the report {usd} + {in_doubt}": (
            (nanos(spent["usd"]), nanos(spent["in_doubt"])) == (usd, in_doubt)
        ),
        f"fsck: {fsck.out}": fsck.code == 0,
        f"exit {done.code} of a run that is {report['status']}": done.code in CODES[report["status"]],
        "a traceback": "Traceback" not in done.err + done.out,
        "no reason": report["status"] == "complete" or all(row["reason"] for row in report["degraded"] or [{}]),
        "no answer": report["status"] != "complete" or bool((report["answer"] or "").strip()),
    }
    return [problem for problem, holds in checks.items() if not holds]


def find_problems_of_all(bench: Bench, done: Result) -> list[str]:
    """Return what is wrong with the bill of a run in which every endpoint behaved as the row says."""
    behaviour, report = bench.behaviour, done.json
    assert behaviour
    total = report["cost"]["usd"] + report["cost"].get("in_doubt", 0.0)
    checks = {
        "complete without one complete answer": report["status"] != "complete" or behaviour.answers,
        "a usage that is not plausible, and no estimate": not behaviour.is_bounded or report["cost"]["estimated"],
        f"{total} was charged": behaviour.costs == (total > 0),
    }
    return [problem for problem, holds in checks.items() if not holds]


def read_web_spending() -> Json:
    server = WebServer(Path.cwd(), os.environ, has_worker=False)
    try:
        spending: Json = server.ask("GET", "/api/spend").json
        return spending
    finally:
        server.close()


# The table


@pytest.mark.behaviour("40-endpoint-bills")
@pytest.mark.parametrize("name", BEHAVIOURS)
def test_no_behaviour_of_all_endpoints_exceeds_a_cap(bench: Bench, name: str) -> None:
    number, problems = list(BEHAVIOURS).index(name), []
    for times in (1.0,) if BEHAVIOURS[name].waits or BEHAVIOURS[name].serve else (1.0, ROOMY):
        with bench.misbehave(name, openai_wire=OPENAI_WIRES[number % 2]):
            cap = bench.find_cap(*TRIAD, times=times)
            done = bench.ask(cap, *TRIAD)
            problems += [*find_problems(bench, done, cap), *find_problems_of_all(bench, done)]
    assert not problems
    spent, web = bench.council("spend", "--json").json, read_web_spending()
    assert (web["total"], web["runs"]) == (spent["total"], spent["runs"])


@pytest.mark.behaviour("40-endpoint-bills")
@pytest.mark.parametrize("name", BEHAVIOURS)
def test_with_one_endpoint_that_misbehaves_the_others_complete_the_run(bench: Bench, name: str) -> None:
    """Its seats are filled by the fallbacks, which are paid from the same cap. Typed replies are asked for too."""
    number = list(BEHAVIOURS).index(name)
    victim, openai_wire = VENDORS[number % 3], OPENAI_WIRES[number // 3 % 2]
    flags = TRIAD if BEHAVIOURS[name].waits else ("--protocol", "adversarial")
    with bench.misbehave(name, (victim,), openai_wire=openai_wire):
        cap = bench.find_cap(*flags, times=ROOMY)
        done = bench.ask(cap, *flags)
        assert not find_problems(bench, done, cap)
    assert done.json["quorum"]["ok"] == 3
    assert done.json["status"] == "complete" or (done.code == 5 and BEHAVIOURS[name].exceeds_limit)
    if not BEHAVIOURS[name].answers:
        served = {str(seat["served_by"]) for seat in done.json["seats"] if seat["state"] in OK_STATES}
        assert victim not in {member.partition(":")[0] for member in served}


@pytest.mark.sweep
@pytest.mark.behaviour("40-endpoint-bills")
@pytest.mark.parametrize("protocol", ["triad", "adversarial", "collaborative"])
@pytest.mark.parametrize("name", [name for name, row in BEHAVIOURS.items() if not row.waits])
def test_every_wire_cap_and_protocol(
    bench: Bench, name: str, protocol: str, sweep_figures: Callable[..., None]
) -> None:
    problems, runs, flags = [], 0, ("--protocol", protocol)
    for victims in (VENDORS, *((vendor,) for vendor in VENDORS)):
        for openai_wire in OPENAI_WIRES if "openai" in victims else OPENAI_WIRES[:1]:
            for times in (1.0, ROOMY):
                with bench.misbehave(name, victims, openai_wire=openai_wire):
                    cap = bench.find_cap(*flags, times=times)
                    done = bench.ask(cap, *flags)
                    found = find_problems(bench, done, cap)
                    problems += [f"{victims} {openai_wire} {times}: {problem}" for problem in found]
                    runs += 1
    sweep_figures("bills", behaviours=protocol == "triad", runs=runs, problems=len(problems))
    assert not problems


@pytest.mark.behaviour("40-endpoint-bills")
def test_the_documentation_lists_every_group_with_its_rows() -> None:
    page = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")
    listed = dict(re.findall(r"^\| ([a-z ]+) \| (\d+) \| ", page, re.MULTILINE))
    assert listed == {group: str(count) for group, count in Counter(row.group for row in BEHAVIOURS.values()).items()}


# The chair, hedges, interrupts, batches and days

LIE, CUT, STATUS = "a million output tokens", "cut after 400 bytes", "500 each time"
LONG, LENGTH = "an answer of a hundred times its limit, with true usage", "a cut at its length with usage of a million"
UNFINISHED = "a TLS handshake that never ends"


@pytest.mark.behaviour("40-endpoint-bills")
@pytest.mark.parametrize("times", [1.0, ROOMY])
@pytest.mark.parametrize("name", [LIE, CUT, STATUS, LONG, LENGTH, "no usage", "a refusal with usage of a million"])
def test_a_chair_that_misbehaves_stays_within_the_cap(bench: Bench, name: str, times: float) -> None:
    bench.when = lambda seen: DRAFT in seen.prompt
    with bench.misbehave(name):
        cap = bench.find_cap(*TRIAD, times=times)
        done = bench.ask(cap, *TRIAD)
        assert not find_problems(bench, done, cap)
    assert done.json["quorum"]["ok"] == 3
    assert (done.json["status"] == "complete") == BEHAVIOURS[name].answers


@pytest.mark.behaviour("40-endpoint-bills")
@pytest.mark.parametrize("name", [LIE, CUT, LENGTH])
def test_a_hedge_with_members_that_misbehave_stays_within_the_cap(bench: Bench, name: str) -> None:
    """The member of beta is silent, so that another one is asked too, which misbehaves."""
    gate = bench.provider.hold(lambda seen: seen.wire == "openai")
    with bench.misbehave(name, ("anthropic", "google")):
        cap = bench.find_cap(*TRIAD, times=ROOMY)
        done = bench.ask(cap, *TRIAD, "--hedge", "--timeout", "2")
        gate.release()
        assert not find_problems(bench, done, cap)


@pytest.mark.behaviour("40-endpoint-bills", "40-unsent-costs-nothing")
def test_the_loser_of_a_hedge_that_was_never_sent_costs_nothing(bench: Bench) -> None:
    with bench.misbehave(UNFINISHED, ("openai",), connect=60):
        cap = bench.find_cap(*TRIAD, times=ROOMY)
        done = bench.ask(cap, *TRIAD, "--hedge", "--timeout", "4")
        assert not find_problems(bench, done, cap)
    beta = done.json["seats"][1]
    assert (beta["state"], beta["attempts"], len(beta["hedged"])) == ("ok", 2, 1)
    assert "in_doubt" not in done.json["cost"] and not done.json["cost"]["estimated"]
    rows = bench.workspace.rows("SELECT charged FROM spending WHERE member LIKE 'openai:%'")
    assert rows == [(0,)]


@pytest.mark.behaviour("40-endpoint-bills", "40-unsent-costs-nothing")
def test_a_timeout_before_the_request_was_sent_costs_nothing(bench: Bench) -> None:
    with bench.misbehave(UNFINISHED, connect=60):
        cap = bench.find_cap(*TRIAD)
        done = bench.ask(cap, *TRIAD, "--timeout", "1")
        assert not [*find_problems(bench, done, cap), *find_problems_of_all(bench, done)]
    assert {seat["state"] for seat in done.json["seats"]} == {"timed_out"}


@pytest.mark.behaviour("40-endpoint-bills", "40-unsent-costs-nothing")
def test_an_interrupt_before_the_request_was_sent_costs_nothing(bench: Bench) -> None:
    with bench.misbehave(UNFINISHED, ("openai", "google"), connect=60):
        gate = bench.provider.hold()  # the request of alpha
        cap = bench.find_cap(*TRIAD)
        process = bench.workspace.process(*bench.flags(cap, *TRIAD))
        gate.wait()
        wait_until(lambda: len(bench.workspace.rows("SELECT n FROM intents")) == 3, "the requests are recorded")
        os.killpg(process.pid, signal.SIGINT)
        done = wait_for_exit(process)
        gate.release()
        assert (done.code, done.json["status"]) == (130, "incomplete")
    charged = dict(bench.workspace.rows("SELECT key, charged FROM spending"))
    assert charged["draft/alpha"] > charged["draft/beta"] == charged["draft/gamma"] == 0
    spent = bench.council("spend", "--json").json["total"]
    assert nanos(spent["usd"]) == nanos(done.json["cost"]["usd"]) == charged["draft/alpha"]
    assert spent["in_doubt"] == done.json["cost"].get("in_doubt", 0.0) == 0
    assert bench.council("runs", "fsck").code == 0


@pytest.mark.behaviour("40-endpoint-bills")
@pytest.mark.parametrize("name", [LIE, CUT])
def test_a_killed_run_resumes_within_its_cap_at_endpoints_that_misbehave(bench: Bench, name: str) -> None:
    gate = bench.provider.hold(nth=2)
    with bench.misbehave(name, ("openai",)):
        cap = bench.find_cap(*TRIAD, times=ROOMY)
        process = bench.workspace.process(*bench.flags(cap, *TRIAD))
        gate.wait()
        kill(process)
        gate.release()
        done = bench.council("resume", "--json")
        assert not find_problems(bench, done, cap)
    assert done.json["status"] == "complete"
    assert done.json["calls"]["in_doubt"] >= 1


@pytest.mark.behaviour("40-endpoint-bills")
@pytest.mark.parametrize("name", [LIE, CUT, STATUS, LONG, "no usage"])
def test_a_batch_at_endpoints_that_misbehave_stays_within_its_cap(bench: Bench, name: str) -> None:
    rows = [json.dumps({"id": f"q{n}", "question": f"Should archive {n} move?"}) for n in range(4)]
    Path("rows.jsonl").write_text("\n".join(rows), encoding="utf-8")
    with bench.misbehave(name):
        cap = bench.find_cap(
            *TRIAD, "--cheap", times=9
        )  # rows are not shortened, so each needs more than the lowest cap
        done = bench.council(
            "batch", "rows.jsonl", "-o", "out.jsonl", *TRIAD, "--cheap", "--max-cost", str(cap), "--json"
        )
        bench.look()
    assert "Traceback" not in done.err
    assert 0 < bench.highest[""] <= nanos(cap)
    cost = json.loads(done.out)["cost"]
    assert nanos(cost["usd"]) + nanos(cost["in_doubt"]) == bench.look()[""]
    assert bench.council("runs", "fsck").code == 0


@pytest.mark.behaviour("40-endpoint-bills")
@pytest.mark.parametrize("name", [LIE, CUT, LENGTH])
def test_two_runs_at_endpoints_that_misbehave_share_the_cap_of_a_day(bench: Bench, name: str) -> None:
    with bench.misbehave(name):
        cap = bench.find_cap(*TRIAD, "--cheap", times=8)  # the runs of a day are not shortened
    with bench.misbehave(name, more=f"[budget]\nmax_cost_per_day = {cap}\n"):
        gate = bench.provider.hold()
        processes = [bench.workspace.process(*TRIAD, "--cheap", "--json", QUESTION) for _ in range(2)]
        gate.wait(count=3)
        bench.look()
        gate.release()
        ended = [wait_for_exit(process) for process in processes]
    assert not [done.err for done in ended if "Traceback" in done.err]
    assert bench.look()[""] <= bench.highest[""] <= nanos(cap)
    today = bench.council("spend", "--json").json["today"]
    assert nanos(today["usd"]) == bench.look()[""]
    assert bench.council("runs", "fsck").code == 0


# Time to connect


@pytest.mark.behaviour("40-endpoint-bills", "40-connect-bounds-lookup")
@pytest.mark.parametrize("name", [UNFINISHED, "a host that does not resolve"])
def test_connect_bounds_each_attempt_to_connect(bench: Bench, name: str) -> None:
    started = time.monotonic()
    with bench.misbehave(name, ("openai",), connect=1):
        cap = bench.find_cap(*TRIAD, times=ROOMY)
        done = bench.ask(cap, *TRIAD)
        assert not find_problems(bench, done, cap)
    assert done.json["status"] == "complete"
    assert time.monotonic() - started < 30  # five attempts of at most one second; without the bound, two minutes
