"""Several workers of a shared database under load: random kills, and one rate limit for all of them."""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
import threading
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

import psycopg
import pytest

from council.runs.service import Convener
from tests.acceptance.helpers import QUESTION, Terminal, Workspace, check_store, kill, wait_until
from tests.acceptance.shared_store import LEASE_S, Workers, detach
from tests.databases import Server
from tests.fakes.vendor_limits import EnforcedLimits
from tests.fork_server import Process
from tests.trusted_project import trust_project, write_user_file

pytestmark = pytest.mark.sweep
COUNCILS, CALLS = 300, 4
RATE, ALLOWED = 50, 55
REQUESTS, TOKENS = 60, 30_000  # in a minute
ROWS, KILL_EVERY_S, KILL_FOR_S, WORKERS = 2000, 5, 300, 3
MOST_S = 1200  # without a kill, all rows end in a part of it


def queue_runs(workspace: Workspace, number: int) -> list[str]:
    """Queue councils, each with a question of its own."""
    trust_project(workspace.folder)

    async def queue() -> list[str]:
        convener = Convener(workspace.folder)
        try:
            plans = [await convener.plan([f"{QUESTION} Case {n}."], protocol="triad") for n in range(number)]
            return [await convener.enqueue(plan) for plan in plans]
        finally:
            await convener.close()

    return asyncio.run(queue())


def count_open() -> int:
    with psycopg.connect(os.environ["COUNCIL_DATABASE"]) as db:
        ((left,),) = db.execute("SELECT count(*) FROM council.runs WHERE status != 'complete'").fetchall()
        return int(left)


@pytest.mark.behaviour("16-worker-takeover")
def test_three_workers_finish_300_councils_while_one_is_killed_every_second(
    shared: Workspace, shared_workers: Workers, council: Terminal, capsys: pytest.CaptureFixture[str]
) -> None:
    chance, kills, started = random.Random(16), 0, time.monotonic()
    shared.provider.delay = 0.2
    runs = queue_runs(shared, COUNCILS)
    alive = [shared_workers.start("--concurrency", "8") for _ in range(3)]
    while count_open():
        time.sleep(1)  # the rhythm of the kills
        victim = chance.randrange(3)
        shared_workers.kill(alive[victim])
        alive[victim] = shared_workers.start("--concurrency", "8", waits=False)
        kills += 1
    with capsys.disabled():
        sent = len(shared.provider.log)
        print(f"\n{kills} kills, {time.monotonic() - started:.0f} s, {sent} requests of {COUNCILS * CALLS} calls")
    assert read_totals() == count_ledger()
    check_store(council)
    assert find_repeated_requests(shared, runs) == []


def read_totals() -> dict[str, int]:
    """Return the sums that the metrics show."""
    with psycopg.connect(os.environ["COUNCIL_DATABASE"]) as db:
        found = db.execute("SELECT name || ' ' || kind, sum(value)::bigint FROM council.totals GROUP BY 1").fetchall()
        return {name.strip(): value for name, value in found if value and not name.startswith(("retries", "takeovers"))}


def count_ledger() -> dict[str, int]:
    """Return the same sums from the rows of the runs."""
    with psycopg.connect(os.environ["COUNCIL_DATABASE"], options="-c search_path=council") as db:
        counted = {
            "requests": "SELECT count(*) FROM intents",
            "answers": "SELECT count(*) FROM settled WHERE body::json ->> 'fault' IS NULL",
            "cost": "SELECT sum(charged)::bigint FROM spending WHERE key <> ''",
            "councils complete": "SELECT count(*) FROM runs WHERE status = 'complete'",
            **{f"tokens {kind}": f"SELECT sum((body::json #>> '{{usage,{kind}}}')::bigint)::bigint FROM settled" for kind in ("in", "out", "cached")},
        }  # fmt: skip
        found = {name: db.execute(query).fetchone()[0] for name, query in counted.items()}  # type: ignore[index,arg-type]
        return {name: value for name, value in found.items() if value}


def find_repeated_requests(workspace: Workspace, runs: Sequence[str]) -> list[str]:
    """Return the requests that arrived after the result of their step was stored, and those without a record."""
    offset = time.time() - time.monotonic()
    stored = {
        (run, key): at + 0.0 for run, key, at in workspace.rows("SELECT run, key, min(at) FROM settled GROUP BY 1, 2")
    }
    recorded = Counter(workspace.rows("SELECT run, key FROM intents"))
    problems = []
    for seen in workspace.provider.log:
        seat, phase = workspace.answers.who(seen)
        case = re.search(r"Case (\d+)\.", seen.prompt)
        assert case
        step = (runs[int(case[1])], f"{phase}/{seat}")
        recorded[step] -= 1
        if seen.arrived + offset > stored[step]:
            problems.append(f"{step} arrived after its result was stored")
        if recorded[step] < 0:
            problems.append(f"{step} was sent more often than recorded")
    return problems


@pytest.mark.behaviour("16-rate-limit")
def test_four_workers_keep_one_rate_in_every_second(
    shared: Workspace, shared_workers: Workers, council: Terminal, capsys: pytest.CaptureFixture[str]
) -> None:
    path = shared.folder / "council.toml"
    path.write_text(path.read_text().replace("backoff = 0.01", f"backoff = 0.01\nmax_connections = 100\nrate = {RATE}"))
    runs = queue_runs(shared, 150)
    for _ in range(4):
        shared_workers.start("--concurrency", "20")
    wait_until(lambda: not count_open(), "the workers finished the runs", 120)
    times = sorted(seen.arrived for seen in shared.provider.log)
    most = count_most_in_a_second(times)
    with capsys.disabled():
        print(f"\n{len(times)} requests in {times[-1] - times[0]:.1f} s, at most {most} in one second")
    assert len(times) == len(runs) * CALLS
    assert most <= ALLOWED
    check_store(council)


@pytest.mark.behaviour("33-limits-per-minute")
def test_four_workers_keep_the_limits_per_minute_of_a_vendor_and_use_them(
    shared: Workspace, shared_workers: Workers, council: Terminal, capsys: pytest.CaptureFixture[str]
) -> None:
    limits = shared.provider.limits = EnforcedLimits(REQUESTS, TOKENS, sends_headers=False)
    path = shared.folder / "council.toml"
    settings = f"backoff = 0.01\nrequests_per_minute = {REQUESTS}\ntokens_per_minute = {TOKENS}"
    path.write_text(path.read_text().replace("backoff = 0.01", settings))
    runs = queue_runs(shared, 65)
    for _ in range(4):
        shared_workers.start("--concurrency", "20")
    wait_until(lambda: not count_open(), "the workers finished the runs", 420)
    requests, tokens, refused = (limits.count(kind) for kind in ("requests", "tokens", "refused"))
    full = range(1, len(requests) - 1)  # the last minute is not full
    used = max(sum(requests[n] for n in full) / REQUESTS, sum(tokens[n] for n in full) / TOKENS) / len(full)
    with capsys.disabled():
        print(f"\nby minute: requests {requests}, tokens {tokens}, refused {refused}; {used:.1%} of the limits used")
    assert sum(requests) == len(runs) * CALLS
    assert sum(refused[1:]) == 0
    assert used >= 0.9
    check_store(council)


def count_most_in_a_second(times: Sequence[float]) -> int:
    """Return the largest number of requests in any window of one second."""
    first, most = 0, 0
    for last, at in enumerate(times):
        while at - times[first] >= 1:
            first += 1
        most = max(most, last - first + 1)
    return most


@pytest.mark.behaviour("32-no-run-forgotten")
@pytest.mark.parametrize("kill_after", [0.3, 1.0, 2.0])
def test_a_batch_that_was_killed_without_a_worker_ends_with_workers_and_the_same_command(
    shared: Workspace, shared_workers: Workers, council: Terminal, kill_after: float
) -> None:
    """128 rows; the kill leaves rows that are queued, that run in the batch itself, and that are not stored yet."""
    rows = "".join(json.dumps({"id": f"row {n}", "question": f"Question {n}?"}) + "\n" for n in range(128))
    (shared.folder / "rows.jsonl").write_text(rows, encoding="utf-8")
    command = ("batch", "rows.jsonl", "-o", "out.jsonl", "--protocol", "triad", "--concurrency", "64")
    batch = shared.process(*command)
    wait_until(lambda: count_open() >= 8, "rows are stored", 60)
    time.sleep(kill_after)
    kill(batch)
    for _ in range(4):
        shared_workers.start("--concurrency", "16")
    done = council(*command)
    assert done.code == 0, done.err
    lines = [json.loads(line) for line in (shared.folder / "out.jsonl").read_text(encoding="utf-8").splitlines()]
    assert sorted(line["id"] for line in lines) == sorted(f"row {n}" for n in range(128))
    assert {line["status"] for line in lines} == {"complete"}
    check_store(council)


@pytest.mark.behaviour("32-fair-queue")
def test_a_question_beside_500_rows_of_another_owner_waits_for_one_council_at_most(
    shared: Workspace, shared_workers: Workers, council: Terminal, capsys: pytest.CaptureFixture[str]
) -> None:
    shared.provider.delay = 0.2
    write_user_file('[store]\nowner = "ann"\n')
    queue_runs(shared, 500)
    shared_workers.start("--concurrency", "4")
    wait_until(lambda: count_open() < 490, "councils of the first owner have ended", 60)
    write_user_file('[store]\nowner = "ben"\n')
    asked = time.time()
    run = detach(council)
    shared.wait_until_finished(run)
    assert count_open() > 100
    rows = "SELECT r.id, min(i.at), max(s.at) FROM runs r JOIN intents i ON i.run = r.id JOIN settled s ON s.run = r.id GROUP BY 1"
    times = {name: (first, last) for name, first, last in shared.rows(rows)}
    longest = max(last - first for name, (first, last) in times.items() if name != run)
    waited = times[run][0] - asked
    with capsys.disabled():
        print(f"\nwaited {waited:.2f} s; the longest council took {longest:.2f} s")
    started_before = sum(asked < first < times[run][0] for first, _ in times.values())
    assert started_before <= 4  # those that were claimed while the question was being stored
    assert waited < longest + 1


class Sweep:
    """A batch whose client, workers and database are killed in turn, at random."""

    def __init__(self, shared: Workspace, workers: Workers, server: Server) -> None:
        self.shared, self.workers, self.server = shared, workers, server
        self.chance = random.Random(35)
        self.kills = Counter[str]()
        self.ends = Counter[str]()  # processes that ended by themselves, by their last line
        self.logs: dict[int, list[str]] = {}
        self.command = ("batch", "rows.jsonl", "-o", "out.jsonl", "--protocol", "triad", "--concurrency", "32", "--yes")
        self.alive = [self._start_worker() for _ in range(WORKERS)]
        wait_until(lambda: sum(any("ready; queues" in line for line in log) for log in self.logs.values()) == WORKERS, "the workers are ready")  # fmt: skip
        self.client = self._read(shared.process(*self.command))

    def _start_worker(self) -> Process:
        return self._read(self.workers.start("--concurrency", "16", waits=False))

    def _read(self, process: Process) -> Process:
        """Read what a process prints, so that it never waits for a reader."""
        self.logs[process.pid] = log = list[str]()
        for stream in (process.stdout, process.stderr):
            threading.Thread(target=log.extend, args=(stream,), daemon=True).start()
        return process

    def kill_one(self) -> None:
        victim = self.chance.choice(("client", "worker", "database"))
        self.kills[victim] += 1
        match victim:
            case "client":
                self.workers.kill(self.client)
                self.client = self._read(self.shared.process(*self.command))
            case "worker":
                n = self.chance.randrange(WORKERS)
                self.workers.kill(self.alive[n])
                self.alive[n] = self._start_worker()
            case _:
                self.server.stop_at_once()
                time.sleep(self.chance.uniform(0, 1.5 * LEASE_S))
                self.server.start_again()

    def replace_ended(self) -> bool:
        """Start processes again that have ended by themselves. Return whether the batch is complete."""
        for n, worker in enumerate(self.alive):
            if worker.poll() is not None:
                self._count_end("worker", worker)
                self.alive[n] = self._start_worker()
        if self.client.poll() is None:
            return False
        if self.client.exit_code == 0:
            return True
        self._count_end("client", self.client)
        self.client = self._read(self.shared.process(*self.command))
        return False

    def _count_end(self, kind: str, process: Process) -> None:
        log = [line.strip() for line in self.logs[process.pid] if line.strip()]
        self.ends[f"{kind}, exit {process.exit_code}: {log[-1] if log else ''}"] += 1

    def find_tracebacks(self) -> list[str]:
        return ["".join(log) for log in self.logs.values() if any("Traceback" in line for line in log)]


@pytest.mark.behaviour("32-batch-survives-kills")
def test_every_row_of_a_batch_ends_once_while_the_client_the_workers_and_the_database_are_killed(
    shared: Workspace, shared_workers: Workers, postgres: Server, council: Terminal, capsys: pytest.CaptureFixture[str]
) -> None:
    shared.configure(more=f'[prices."sim:*"]\ninput = 1\noutput = 1\n[store]\nlease_seconds = {LEASE_S}\n')
    shared.provider.delay = 0.8
    rows = "".join(json.dumps({"id": f"row {n}", "question": f"{QUESTION} Case {n}."}) + "\n" for n in range(ROWS))
    (shared.folder / "rows.jsonl").write_text(rows, encoding="utf-8")
    started = time.monotonic()
    sweep = Sweep(shared, shared_workers, postgres)
    next_kill = time.monotonic() + KILL_EVERY_S
    while not sweep.replace_ended():
        time.sleep(0.2)
        seconds = time.monotonic() - started
        assert seconds < MOST_S, f"{count_open()} rows are open; {dict(sweep.kills)}, {dict(sweep.ends)}"
        if seconds < KILL_FOR_S and time.monotonic() >= next_kill:
            sweep.kill_one()
            next_kill = max(next_kill + KILL_EVERY_S, time.monotonic() + 1)
    lines = [json.loads(line) for line in (shared.folder / "out.jsonl").read_text(encoding="utf-8").splitlines()]
    runs = {int(line["id"].removeprefix("row ")): line["run"] for line in lines}
    seen = count_requests(shared, runs)
    bought = sum(seen.values())
    in_doubt = {line["run"]: line["report"]["calls"]["in_doubt"] for line in lines}
    with capsys.disabled():
        kills = ", ".join(f"{number} of the {name}" for name, number in sorted(sweep.kills.items()))
        print(f"\n{sweep.kills.total()} kills ({kills}) in {time.monotonic() - started:.0f} s; {bought} requests of {ROWS * CALLS} calls, {bought - len(seen)} repeated, {sum(in_doubt.values())} in doubt")  # fmt: skip
        for end, number in sweep.ends.items():
            print(f"{number} times {end}")
    assert sorted(line["id"] for line in lines) == sorted(f"row {n}" for n in range(ROWS))
    assert {line["status"] for line in lines} == {"complete"}
    assert len(seen) == ROWS * CALLS  # each step was bought
    assert find_uncounted_repeats(shared, seen, in_doubt) == []
    assert find_repeated_requests(shared, [runs[n] for n in range(ROWS)]) == []
    assert sweep.find_tracebacks() == []
    assert read_totals() == count_ledger()
    check_store(council)


Step = tuple[str, str]  # run and key


def count_requests(workspace: Workspace, runs: dict[int, str]) -> Counter[Step]:
    """Return how often the endpoint got each step of the runs, by the cases of their questions."""
    counted = Counter[Step]()
    for seen in workspace.provider.log:
        seat, phase = workspace.answers.who(seen)
        case = re.search(r"Case (\d+)\.", seen.prompt)
        assert case
        counted[runs[int(case[1])], f"{phase}/{seat}"] += 1
    return counted


def find_uncounted_repeats(workspace: Workspace, seen: Counter[Step], in_doubt: dict[str, int]) -> list[str]:
    """Return the steps that were bought more often than recorded, and the runs whose report has another number of
    requests in doubt than the ledger, or fewer than were repeated.
    """
    intents = Counter[Step](dict(read_counts(workspace, "SELECT run, key, count(*) FROM intents GROUP BY 1, 2")))
    results = dict(read_counts(workspace, "SELECT run, key, count(*) FROM settled GROUP BY 1, 2"))
    problems = [f"{step}: {number} requests, {intents[step]} recorded" for step, number in seen.items() if number > intents[step]]  # fmt: skip
    repeated, open_requests = Counter[str](), Counter[str]()
    for (run, key), number in intents.items():
        repeated[run] += max(0, seen[run, key] - 1)
        open_requests[run] += number - results.get((run, key), 0)
    for run, number in in_doubt.items():
        if not repeated[run] <= number == open_requests[run]:
            problems.append(
                f"{run}: {number} in doubt, {repeated[run]} repeated, {open_requests[run]} without a result"
            )
    return problems


def read_counts(workspace: Workspace, query: str) -> list[tuple[Step, int]]:
    found: list[tuple[Any, ...]] = workspace.rows(query)
    return [((run, key), number) for run, key, number in found]
