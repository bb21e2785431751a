"""Local worker: a queued run is finished exactly once after any crash, and no process remains."""

from __future__ import annotations

import asyncio
import math
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from council.runs.report_files import reserve_report_path
from council.runs.service import Convener
from council.runs.worker import Worker
from council.runs.worker_client import LOCK_VARIABLE, find_inherited_lock, request_worker, worker_lock
from tests.acceptance.helpers import QUESTION, SEATS, Terminal, Workspace, check_store, wait_for_exit, wait_until
from tests.acceptance.workers import kill_worker, wait_for_worker_exit, workers
from tests.fake_provider import FakeProvider, Reply
from tests.fork_server import REAL_WORKERS
from tests.trusted_project import trust_project

SCRIPTED = "\n".join(
    f'[seats.{seat}]\nmodel = "scripted:"\n' if seat in SEATS else '[chair]\nmodel = "scripted:"\n'
    for seat in (*SEATS, "")
)


def with_convener(work: Callable[[Convener], Coroutine[Any, Any, Any]], **env: str) -> Any:
    """Run a coroutine with a convener of this folder and a changed environment."""

    async def run_and_close() -> Any:
        convener = Convener(env={**os.environ, **env})
        try:
            return await work(convener)
        finally:
            await convener.close()

    return asyncio.run(run_and_close())


def queue_run(protocol: str = "collaborative", **env: str) -> str:
    """Store a queued run without notifying a worker."""

    async def enqueue(convener: Convener) -> str:
        return await convener.enqueue(await convener.plan([QUESTION], protocol=protocol))

    return str(with_convener(enqueue, **env))


def notify(run: str, **env: str) -> None:
    asyncio.run(request_worker(run, {**os.environ, **env}))


# Crashes


@pytest.mark.behaviour("40-suspended-process-blocks-no-other")
def test_a_suspended_worker_is_continued_by_the_next_detached_run(detached: Workspace, council: Terminal) -> None:
    gate = detached.hold("draft")
    first = detached.council("--detach", "--json", "--protocol", "triad", QUESTION).json["run"]
    gate.wait(count=3)
    (worker,) = workers(detached.data)
    os.kill(worker, signal.SIGSTOP)
    gate.release()
    second = detached.council("--detach", "--json", "--protocol", "triad", QUESTION)
    assert second.code == 0, second.err
    detached.wait_until_finished(first, second.json["run"])
    check_store(council)


@pytest.mark.behaviour("50-detached-outlives", "50-worker-on-demand")
def test_a_run_queued_by_a_dead_process_is_finished(
    detached: Workspace, council: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(REAL_WORKERS, "1")
    gate = detached.hold("draft")
    started = detached.council("--detach", "--json", "--protocol", "collaborative", QUESTION)
    assert started.code == 0, started.err
    run = started.json["run"]
    gate.wait(count=3)
    assert detached.status(run) == "running"
    gate.release()
    detached.wait_until_finished(run)
    assert len(detached.asked()) == 7
    report = council("report", run, "--json").json
    assert (report["status"], report["calls"]) == ("complete", {"made": 7, "replayed": 0, "in_doubt": 0})
    assert [path.name for path in detached.reports()] == [Path(report["report_path"]).name]
    check_store(council)


@pytest.mark.behaviour("50-worker-killed")
@pytest.mark.parametrize("by", ["call", "watch"])
def test_after_kill_9_the_next_worker_repeats_no_request(detached: Workspace, council: Terminal, by: str) -> None:
    gate = detached.hold("improve")
    run = council("--detach", "--json", "--protocol", "collaborative", QUESTION).json["run"]
    held = gate.wait(count=3)
    kill_worker(detached.data)
    assert detached.status(run) == "running"
    gate.release()
    sent = len(detached.provider.log)
    if by == "watch":
        watched = council("watch", run, "--json")
        assert (watched.code, watched.json["status"]) == (0, "complete")
    else:
        notify(run)
        detached.wait_until_finished(run)
    again = detached.asked(sent)
    assert sorted(again) == ["improve/alpha", "improve/beta", "improve/gamma", "synthesise/chair"]
    assert {seen.raw for seen in held} <= {seen.raw for seen in detached.provider.log[sent:]}
    assert council("report", run, "--json").json["calls"]["in_doubt"] == 3
    check_store(council)


@pytest.mark.behaviour("50-worker-leaves")
def test_a_stopped_worker_requeues_its_run(detached: Workspace, council: Terminal) -> None:
    gate = detached.hold("improve")
    run = council("--detach", "--json", "--protocol", "collaborative", QUESTION).json["run"]
    gate.wait(count=3)
    (pid,) = workers(detached.data)
    os.kill(pid, signal.SIGTERM)
    wait_for_worker_exit(detached.data)
    assert detached.status(run) == "queued"
    check_store(council)
    gate.release()
    notify(run)
    detached.wait_until_finished(run)
    assert [detached.asked().count(f"draft/{seat}") for seat in SEATS] == [1, 1, 1]
    check_store(council)


@pytest.mark.behaviour("40-kill-while-reports-are-written")
def test_a_new_worker_writes_the_report_that_a_killed_one_has_only_reserved(
    detached: Workspace, council: Terminal
) -> None:
    run = council("--detach", "--json", "--protocol", "triad", QUESTION).json["run"]
    detached.wait_until_finished(run)
    wait_for_worker_exit(detached.data)
    (path,) = detached.reports()
    text = path.read_text()
    path.unlink()
    assert reserve_report_path(path.parent, "triad", QUESTION, time.time(), run) == path
    other = queue_run("triad")
    notify(other)
    detached.wait_until_finished(other)
    assert path.read_text() == text
    check_store(council)


# Single worker


def test_a_program_that_a_worker_starts_does_not_keep_its_lock(tmp_path: Path) -> None:
    with worker_lock(tmp_path) as lock:
        assert lock is not None
        os.set_inheritable(lock, True)  # as in a worker, which inherits it from the process that started it
        assert find_inherited_lock({LOCK_VARIABLE: str(lock)}, tmp_path) == lock
        assert {find_inherited_lock({LOCK_VARIABLE: other}, tmp_path) for other in ("", "x", "0", "987654")} == {None}
        child = subprocess.Popen(["cat"], stdin=subprocess.PIPE, close_fds=False)
    with worker_lock(tmp_path) as next_lock:
        assert next_lock is not None
    child.communicate()


@pytest.mark.behaviour("50-one-worker")
def test_concurrent_clients_start_one_worker(detached: Workspace, council: Terminal) -> None:
    gate = detached.hold("draft")
    clients = [detached.process("--detach", "--json", "--protocol", "triad", QUESTION) for _ in range(3)]
    done = [wait_for_exit(client) for client in clients]
    assert [one.code for one in done] == [0, 0, 0], [one.err for one in done]
    gate.wait(count=4)
    assert len(workers(detached.data)) == 1
    gate.release()
    detached.wait_until_finished(*(one.json["run"] for one in done))
    assert len(detached.asked()) == 12
    check_store(council)


@pytest.mark.behaviour("issue-6-twenty-starts")
def test_twenty_concurrent_runs_are_all_finished(detached: Workspace, council: Terminal) -> None:
    (detached.folder / "council.toml").write_text(SCRIPTED)

    async def start(convener: Convener) -> list[str]:
        plan = await convener.plan([QUESTION], protocol="triad")

        async def one() -> str:
            run = await convener.enqueue(plan)
            await request_worker(run, convener.env)
            return run

        return list(await asyncio.gather(*(one() for _ in range(20))))

    runs = with_convener(start)
    assert len(set(runs)) == 20
    detached.wait_until_finished(*runs)
    assert len(workers(detached.data)) <= 1
    assert len(detached.reports()) == 20
    check_store(council)


@pytest.mark.behaviour("50-worker-idle")
def test_a_run_queued_while_the_worker_exits_is_not_lost(
    detached: Workspace, council: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With an idle timeout of zero the worker is always about to exit."""
    monkeypatch.setenv("COUNCIL_WORKER_IDLE", "0")
    (detached.folder / "council.toml").write_text(SCRIPTED)

    async def one_after_the_other(convener: Convener) -> list[str]:
        runs, plan = [], await convener.plan([QUESTION], protocol="triad")
        for _ in range(6):
            runs.append(await convener.enqueue(plan))
            await request_worker(runs[-1], convener.env)
            async for _entry in convener.follow(runs[-1]):
                pass
        return runs

    runs = with_convener(one_after_the_other)
    assert {detached.status(run) for run in runs} == {"complete"}
    wait_for_worker_exit(detached.data)
    check_store(council)


# Runs that cannot be executed


@pytest.mark.behaviour("50-worker-gives-up")
@pytest.mark.parametrize("lost", ["folder", "config", "provider"])
def test_a_run_with_a_missing_folder_or_setting_fails_once_with_a_reason(
    detached: Workspace, council: Terminal, lost: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    config = detached.folder / "council.toml"
    monkeypatch.chdir(elsewhere)
    monkeypatch.setenv("COUNCIL_CONFIG", str(config))
    run = queue_run("triad")
    monkeypatch.chdir(detached.folder)
    if lost == "folder":
        shutil.rmtree(elsewhere)
    elif lost == "config":
        config.unlink()
    else:
        config.write_text("timeout = 9\n")
    notify(run)
    wait_for_worker_exit(detached.data)
    assert detached.status(run) == "failed"
    assert detached.provider.log == []
    monkeypatch.delenv("COUNCIL_CONFIG")
    reason = {
        "folder": "no longer exists",
        "config": "configuration file",
        "provider": 'unknown member "sim:alpha"',
    }[lost]
    watched = council("watch", run)
    assert watched.code == 1
    assert reason in watched.out
    assert (lost == "folder") != elsewhere.exists()
    check_store(council)


# Keys


SECRET = "-".join(["k", "3f9d0c7e5b1a4826"])  # the secret filter finds the whole word


@pytest.fixture
def keyed(detached: Workspace) -> Workspace:
    path = detached.folder / "council.toml"
    path.write_text(path.read_text().replace("backoff = 0.01", 'backoff = 0.01\napi_key_env = "SIM_KEY"'))
    trust_project(detached.folder)
    return detached


def find_on_disk(secret: str, folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and secret.encode() in path.read_bytes()]


@pytest.mark.behaviour("50-worker-keys")
def test_keys_are_sent_to_a_running_worker_and_never_stored(keyed: Workspace, council: Terminal) -> None:
    gate = keyed.hold("draft")
    first = queue_run("triad", SIM_KEY="k-of-another-user")
    notify(first, SIM_KEY="k-of-another-user")
    gate.wait(count=3)
    second = queue_run("triad", SIM_KEY=SECRET)
    notify(second, SIM_KEY=SECRET)
    gate.wait(count=4)
    assert find_on_disk(SECRET, keyed.data) == []
    gate.release()
    keyed.wait_until_finished(first, second)
    keys = [seen.headers["Authorization"].removeprefix("Bearer ") for seen in keyed.provider.log]
    assert {key: keys.count(key) for key in keys} == {"k-of-another-user": 4, SECRET: 4}
    assert find_on_disk(SECRET, keyed.data) == find_on_disk(SECRET, keyed.folder) == []
    check_store(council)


@pytest.mark.behaviour("50-worker-keys")
def test_a_run_without_its_keys_waits_for_a_client_that_has_them(
    keyed: Workspace, council: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = queue_run("triad", SIM_KEY=SECRET)
    asyncio.run(_serve(dict(os.environ)))
    assert (keyed.status(run), keyed.provider.log) == ("queued", [])
    for command in (("watch", run), ("resume", "--detach", run)):
        refused = council(*command)
        assert refused.code == 2
        assert f"run {run} needs SIM_KEY: set it and try again" in refused.err
    assert (keyed.status(run), keyed.provider.log) == ("queued", [])
    monkeypatch.setenv("SIM_KEY", SECRET)
    watched = council("watch", run, "--json")
    assert (watched.code, watched.json["status"]) == (0, "complete")
    check_store(council)


@pytest.mark.behaviour("50-worker-keys")
def test_a_run_is_started_with_the_environment_of_its_client_and_others_wait_for_theirs(keyed: Workspace) -> None:
    first, second = queue_run("triad", SIM_KEY=SECRET), queue_run("triad", SIM_KEY=SECRET)

    async def work() -> None:
        worker = Worker(dict(os.environ), env_timeout=math.inf)
        serving = asyncio.create_task(worker.serve())
        await request_worker(first, {**os.environ, "SIM_KEY": SECRET})
        async with asyncio.timeout(120):
            while keyed.status(first) != "complete":  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        assert keyed.status(second) == "queued"
        worker.stop()
        await serving

    asyncio.run(work())


async def _serve(env: dict[str, str]) -> None:
    await Worker(env, env_timeout=0.0).serve()


# Shared limits and budget


@pytest.mark.behaviour("50-worker-limits")
def test_runs_of_the_worker_share_the_connection_limit(detached: Workspace, council: Terminal) -> None:
    detached.configure(more="")
    path = detached.folder / "council.toml"
    path.write_text(path.read_text().replace("backoff = 0.01", "backoff = 0.01\nmax_connections = 2"))
    trust_project(detached.folder)
    detached.provider.delay = 0.02
    runs = [queue_run("triad") for _ in range(4)]
    for run in runs:
        notify(run)
    detached.wait_until_finished(*runs)
    assert len(detached.provider.log) == 16
    assert max_concurrent(detached.provider) == 2
    check_store(council)


def max_concurrent(provider: FakeProvider) -> int:
    """Return the maximum number of concurrent requests."""
    moments = [(seen.arrived, 1) for seen in provider.log] + [(seen.ended or 0.0, -1) for seen in provider.log]
    open_, most = 0, 0
    for _, change in sorted(moments):
        open_ += change
        most = max(most, open_)
    return most


@pytest.mark.behaviour("50-worker-limits")
def test_runs_of_the_worker_share_the_daily_budget(detached: Workspace, council: Terminal) -> None:
    prices = '[prices."sim:*"]\ninput = 0\noutput = 1000\n[budget]\nmax_cost_per_day = 20\n'
    detached.configure(more=prices)
    gate = detached.hold("draft")
    runs = [queue_run("triad") for _ in range(3)]
    for run in runs:
        notify(run)
    over = lambda: [run for run in runs if detached.status(run) not in ("queued", "running")]  # noqa: E731
    wait_until(lambda: len(over()) == 2, "two have found no money left")
    gate.release()
    wait_until(lambda: len(over()) == 3, "all have ended")
    ((spent,),) = detached.rows("SELECT sum(coalesce(charged, reserved)) FROM spending")
    assert 0 < spent <= 20e9
    assert sorted(council("watch", run).code for run in runs) == [0, 5, 5]
    check_store(council)


def test_an_invalid_message_does_not_disturb_the_worker(detached: Workspace, council: Terminal) -> None:
    gate = detached.hold("draft")
    run = queue_run("triad")
    notify(run)
    gate.wait(count=3)
    asyncio.run(_send_invalid(detached.data / "worker.sock"))
    assert (detached.data / "worker.sock").stat().st_mode & 0o077 == 0
    gate.release()
    detached.wait_until_finished(run)
    check_store(council)


async def _send_invalid(path: Path) -> None:
    for words in (b"\n", b"[]\n", b'{"run": 1}\n', b'{"run": "r", "env": 3}\n', b"\xff\xfe\n", b""):
        reader, writer = await asyncio.open_unix_connection(str(path))
        writer.write(words)
        writer.write_eof()
        assert await reader.read() == b""
        writer.close()


def test_a_failing_seat_fails_the_same_way_in_the_worker(detached: Workspace, council: Terminal) -> None:
    detached.answers.instead["beta"] = Reply(status=401)
    run = queue_run("triad")
    watched = council("watch", run, "--json")
    assert watched.code == 0
    assert [row["seat"] for row in watched.json["degraded"] if row["seat"]] == ["beta"]
