"""Every mode of the hostile endpoint: the fault, the number of requests, what may be billed, and whole councils."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from council import events as ev
from council.calling.fault_table import FAULT_TABLE
from council.engine.ledger import Ledger
from council.members.wires.http import ByteLimits
from council.money import UNBILLED_FAULTS
from tests.calling.conftest import ledger as ledger
from tests.calling.conftest import store as store
from tests.calling.helpers import call, events_of, step
from tests.fake_clock import settle, skip
from tests.fakes.members import ASK, KEY, member_at
from tests.hostile.councils import QUESTION, Done, run_council
from tests.hostile.endpoint import ANSWER, HostileEndpoint
from tests.hostile.modes import MODES, WIRES

LIMITS = ByteLimits(body=200_000, stream=600_000, line=300_000)
TIMEOUT_S = 60.0  # of the test's clock, which the endpoint advances when it waits


# Members


async def pass_time(seconds: float) -> None:
    """Advance the clock of the test instead of waiting."""
    skip(10 * seconds)
    for _ in range(3):
        await asyncio.sleep(0)


def cases() -> list[object]:
    """Return every mode on one wire, the wires in turn, and the others as a sweep."""
    chosen = {name: mode.wires[n % len(mode.wires)] for n, (name, mode) in enumerate(MODES.items())}
    return [
        pytest.param(wire, name, marks=() if wire == chosen[name] else pytest.mark.sweep)
        for name, mode in MODES.items()
        for wire in mode.wires
    ]


@pytest.mark.anyio
@pytest.mark.behaviour("14-hostile-endpoint")
@pytest.mark.parametrize(("wire", "name"), cases())
async def test_a_hostile_answer_ends_in_its_fault_or_is_complete(wire: str, name: str, ledger: Ledger) -> None:
    mode = MODES[name]
    endpoint = HostileEndpoint(mode.behaviour, pass_time, mode.at_connect)
    async with endpoint.serve():
        member = member_at(endpoint.base_url(wire), wire, first_byte=None, limits=LIMITS)
        outcome = await call(ledger, step(member.name), member, timeout=lambda member: TIMEOUT_S)
        await member.close()
    faults, kind = events_of(ledger, ev.Faulted), mode.kind_on(wire)
    assert outcome.state == mode.state_on(wire), outcome.reason
    assert [fault.kind for fault in faults] == ([] if kind == "ok" else [kind] * mode.requests_on(wire))
    assert len(endpoint.requests()) == mode.requests_on(wire)
    assert mode.is_billable(wire) == (kind not in UNBILLED_FAULTS)
    if kind == "ok" and mode.text is not None:
        assert outcome.text == mode.text
    if kind == "ok" and mode.knows_usage is not None:
        assert outcome.usage.known == mode.knows_usage
    for fault in faults:
        assert KEY not in fault.detail and fault.detail.isprintable() and len(fault.detail) <= 200
    assert endpoint.connections == 0


@pytest.mark.anyio
@pytest.mark.behaviour("14-hostile-endpoint")
@pytest.mark.parametrize("name", ["a second response pushed early", "a second response pushed late"])
@pytest.mark.parametrize("wire", WIRES)
async def test_a_pushed_response_is_not_taken_for_the_next_answer(wire: str, name: str) -> None:
    endpoint = HostileEndpoint(MODES[name].behaviour, pass_time)
    answers = []
    async with endpoint.serve():
        member = member_at(endpoint.base_url(wire), wire)
        for _ in range(4):
            answers.append(await member.send(member.prepare(ASK), lambda piece: None))
            await settle()  # the pushed response arrives
        await member.close()
    assert [answer.text for answer in answers] == [ANSWER] * 4
    assert len(endpoint.requests()) == 4


@pytest.mark.anyio
async def test_cookies_of_an_endpoint_are_not_sent_back() -> None:
    endpoint = HostileEndpoint(MODES["cookies"].behaviour, pass_time)
    async with endpoint.serve():
        member = member_at(endpoint.base_url("openai", "localhost"), "openai")
        for _ in range(2):
            await member.send(member.prepare(ASK), lambda piece: None)
        await member.close()
    assert ["cookie" in seen.headers for seen in endpoint.requests()] == [False, False]


# Whole councils

COUNCIL_TIMEOUT_S = 6.0
MAX_MEMORY_MB = 300
SLOW_KINDS = ("flood", "stall", "loop")  # an endpoint may also keep such a seat busy until its deadline
PARALLEL = 4


def configure(endpoint: HostileEndpoint, wire: str, is_shared: bool) -> str:
    """Return a configuration with one hostile seat; an honest one uses the same endpoint, unless it breaks
    connections.
    """
    honest = "sim:honest" if is_shared else "scripted:"
    return f"""
[providers.sim]
wire = "{wire}"
base_url = "{endpoint.base_url(wire)}"
api_key_env = "SIM_KEY"
backoff = 0
connect = 2
[seats.alpha]
model = "sim:m1"
fallback = []
[seats.beta]
model = "{honest}"
fallback = []
[seats.gamma]
model = "scripted:"
[chair]
model = "scripted:"
"""


def problems_of(done: Done, name: str, wire: str, endpoint: HostileEndpoint, folder: Path) -> list[str]:
    """Return the invariants that a council with one hostile seat breaks."""
    if done.code != 0:
        return [f"exit code {done.code}: {done.err[-300:]}"]
    mode, report = MODES[name], done.report
    states = {seat["name"]: seat["state"] for seat in report["seats"]}
    expected = {mode.state_on(wire)} | ({"timed_out"} if mode.kind_on(wire) in SLOW_KINDS else set())
    expected |= {"failed(net)"} if mode.at_connect else set()  # it depends on when the reset arrives
    # The ledger keeps an answer as it is; everything that is shown is redacted.
    is_kept = mode.kind_on(wire) == "ok"
    paths = [path for path in folder.rglob("*") if path.is_file()]
    files = [path for path in paths if not (is_kept and path.name.startswith("council.db"))]
    host = f"127.0.0.1:{endpoint.port}"
    # A shared connection that closes at once was idle too long, and a connection may be made again: both are net
    # faults.
    unbilled = FAULT_TABLE["net"].retries if mode.at_connect else 1
    checks = {
        f"the hostile seat is {states['alpha']}, not {sorted(expected)}": states["alpha"] in expected,
        f"the other seats are {states}": states["beta"] == states["gamma"] == "ok",
        f"the run is {report['status']}": report["status"] == "complete" and bool(report["answer"]),
        f"{done.peak_mb:.0f} MB": done.peak_mb < MAX_MEMORY_MB,
        f"fsck: {done.fsck}": not done.fsck,
        "a traceback is shown": "Traceback" not in done.err,
        "the key is shown": not any(KEY.encode() in path.read_bytes() for path in files),
        f"connected to {sorted(done.addresses)}": done.addresses <= {host} and not endpoint.connections,
        f"{len(endpoint.requests())} requests": len(endpoint.requests()) <= mode.requests_on(wire) + unbilled,
    }
    return [problem for problem, holds in checks.items() if not holds]


@pytest.mark.sweep
@pytest.mark.behaviour("14-hostile-endpoint")
def test_a_council_with_a_hostile_seat_ends_without_it(tmp_path: Path, sweep_figures: Callable[..., None]) -> None:
    def judge(case: tuple[str, str]) -> tuple[float, float, list[str]]:
        name, wire = case
        mode = MODES[name]
        folder = tmp_path / f"{list(MODES).index(name)}-{wire}"
        with HostileEndpoint(mode.behaviour, before_request=mode.at_connect).in_thread() as endpoint:
            done = run_council(
                folder, configure(endpoint, wire, not mode.at_connect), QUESTION, "--protocol", "triad", "--json",
                "--timeout", f"{COUNCIL_TIMEOUT_S:g}", env={"SIM_KEY": KEY},
            )  # fmt: skip
            problems = problems_of(done, name, wire, endpoint, folder)
        shutil.rmtree(folder)
        over = (done.report["seconds"] if done.code == 0 else 0.0) - COUNCIL_TIMEOUT_S  # includes the chair's time
        return done.peak_mb, over, [f"{name} on {wire}: {problem}" for problem in problems]

    everything = [(name, wire) for name, mode in MODES.items() for wire in mode.wires]
    with ThreadPoolExecutor(PARALLEL) as pool:
        results = list(pool.map(judge, everything))
    failures = [problem for _, _, problems in results for problem in problems]
    slowest = sorted(zip((over for _, over, _ in results), everything, strict=True), reverse=True)[:5]
    print("\nslowest:", "; ".join(f"{name} on {wire} {over:+.2f} s" for over, (name, wire) in slowest))
    sweep_figures(
        "hostile", modes=len(MODES), wires=len(WIRES), councils=len(everything),
        worst_peak_mb=round(max(peak for peak, _, _ in results)),
        worst_over_deadline_s=round(max(over for _, over, _ in results), 2), failures=len(failures),
    )  # fmt: skip
    assert not failures, "\n".join(failures)
