"""Runs in PostgreSQL through the real command: crashes, takeover, views and budgets over processes with their own
data folders.
"""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from tests.acceptance.helpers import QUESTION, Terminal, Workspace, kill, wait_for_exit, wait_until
from tests.databases import PASSWORD
from tests.fork_server import Process
from tests.store.older_stores import read_postgres

MOMENTS = 60  # of the sweep


@pytest.fixture
def shared(workspace: Workspace, database: str, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """The workspace with a PostgreSQL store and short leases."""
    monkeypatch.setenv("COUNCIL_DATABASE", database)
    folder = Path(os.environ["XDG_CONFIG_HOME"]) / "council"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "config.toml").open("a") as file:
        file.write('[store]\nlease_seconds = 1\nowner = "ann@laptop"\n')
    return workspace


def lease_of(database: str, run: str) -> list[tuple[bool]]:
    with psycopg.connect(database) as db:
        query = "SELECT expires > clock_timestamp() FROM council.leases WHERE run = %s"
        return db.execute(query, (run,)).fetchall()


def read_reports(shared: Workspace) -> dict[str, bytes]:
    """Return the files in the report folder, also hidden ones."""
    folder = shared.data / "reports"
    return {path.name: path.read_bytes() for path in folder.iterdir()} if folder.exists() else {}


@pytest.mark.behaviour("16-both-stores", "40-committed-never-bought-again", "40-resume-byte-identical")
def test_a_killed_run_is_resumed_from_the_database(shared: Workspace, council: Terminal, tmp_path: Path) -> None:
    gate = shared.hold("merge")
    process = shared.process("--json", "--protocol", "triad", QUESTION)
    gate.wait()
    kill(process)
    gate.release()
    first = shared.provider.log[-1].raw
    done = wait_for_exit(Process(("resume", "--json"), shared.folder, COUNCIL_DATA=str(tmp_path / "other")))
    assert (done.code, done.json["calls"]) == (0, {"made": 5, "replayed": 3, "in_doubt": 1}), done.err
    assert shared.asked()[3:] == ["merge/chair", "merge/chair"]
    assert shared.provider.log[-1].raw == first
    assert (council("runs", "fsck").code, not (shared.data / "council.db").exists()) == (0, True)


@pytest.mark.behaviour("16-fencing")
@pytest.mark.parametrize("data", ["other", "data"], ids=["from another data folder", "from the same data folder"])
def test_a_stopped_process_whose_run_was_taken_over_writes_nothing(
    shared: Workspace, council: Terminal, database: str, tmp_path: Path, data: str
) -> None:
    gate = shared.hold("merge")
    stopped = shared.process("--protocol", "triad", QUESTION)
    gate.wait()
    (run,) = shared.runs()
    os.killpg(stopped.pid, signal.SIGSTOP)
    wait_until(lambda: lease_of(database, run) == [(False,)], "the lease has expired")
    other = Process(("resume", "--json", run), shared.folder, COUNCIL_DATA=str(tmp_path / data))
    gate.wait(count=2)
    gate.release()
    done = wait_for_exit(other)
    assert done.code == 0, done.err
    rows, reports = shared.rows("SELECT seq, type FROM events ORDER BY seq"), read_reports(shared)
    os.killpg(stopped.pid, signal.SIGCONT)
    late = wait_for_exit(stopped)
    assert late.code == 1
    assert f"run {run} was taken over by another process" in late.err
    assert shared.rows("SELECT seq, type FROM events ORDER BY seq") == rows
    assert read_reports(shared) == reports
    assert council("runs", "fsck").code == 0


def suspend_and_take_over(shared: Workspace, council: Terminal, database: str, process: Process) -> Counter[str]:
    """Suspend a process until its lease has expired, let another one end its run, and continue it.

    Return what happened.
    """
    process.send_signal(signal.SIGSTOP)
    listed = council("runs", "list", "--json")  # the server has ended what the process had sent
    assert listed.code == 0, listed.err
    figures = Counter(suspended=process.poll() is None, listed=1)
    for run in {row["run"] for row in listed.json}:
        wait_until(lambda run=run: (True,) not in lease_of(database, run), "the lease has expired or was released")
    open_runs = [row["run"] for row in council("runs", "list", "--json").json if row["status"] != "complete"]
    for run in open_runs:
        done = shared.council("resume", "--json", run)
        while "is locked by a transaction of another process: try again later" in done.out:  # until the server ends it
            done = shared.council("resume", "--json", run)
        assert (done.code, done.json.get("status")) == (0, "complete"), done
        figures["taken_over"] += 1
    rows, reports = read_postgres(database), read_reports(shared)
    process.send_signal(signal.SIGCONT)
    late = wait_for_exit(process)
    if open_runs:
        assert (late.code, late.json["schema"]) == (1, "council.error/1"), late
        assert f"run {open_runs[0]} was taken over by another process" in late.json["error"]
        assert read_postgres(database) == rows
        added = read_reports(shared).items() - reports.items()
        assert not added, (sorted(name for name, _ in added), sorted(reports))
        figures["fenced"] += 1
    else:
        assert (late.code, late.json["status"]) == (0, "complete"), late
    return figures


@pytest.mark.sweep
@pytest.mark.behaviour("16-fencing", "40-suspended-process-blocks-no-other")
def test_a_process_suspended_at_a_random_moment_writes_nothing_after_it_was_replaced(
    shared: Workspace, council: Terminal, database: str, sweep_figures: Callable[..., None]
) -> None:
    moments, figures = random.Random(30), Counter[str]()
    shared.provider.delay = 0.1
    for _ in range(MOMENTS):
        process = shared.process("--json", "--protocol", "triad", QUESTION)
        time.sleep(moments.uniform(0.1, 1.0))
        figures += suspend_and_take_over(shared, council, database, process)
    sweep_figures("suspended-postgres", moments=MOMENTS, wrote_later=0, **figures)
    assert figures["fenced"] > MOMENTS / 4
    assert council("runs", "fsck").code == 0


@pytest.mark.behaviour("16-live-view-over-machines", "16-owner-and-project")
def test_a_run_is_watched_and_cancelled_from_another_data_folder(
    shared: Workspace, council: Terminal, tmp_path: Path
) -> None:
    gate = shared.hold("draft")
    process = shared.process("--protocol", "triad", QUESTION)
    gate.wait(count=3)
    (run,) = shared.runs()
    watching = Process(("watch", run), shared.folder, COUNCIL_DATA=str(tmp_path / "other"))
    (row,) = json.loads(council("runs", "--json", "--owner", "ann@laptop").out)
    assert (row["run"], row["status"]) == (run, "running")
    assert json.loads(council("runs", "--json", "--owner", "bob").out) == []
    assert council("cancel", run).code == 0
    assert [wait_for_exit(one).code for one in (process, watching)] == [130, 130]
    gate.release()
    assert council("runs", "search", "cold storage").out.count(run) == 1


@pytest.mark.behaviour("16-password-hidden", "16-database-lost")
def test_an_unreachable_database_is_one_line(
    workspace: Workspace, council: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COUNCIL_DATABASE", f"postgresql://ann:{PASSWORD}@127.0.0.1:1/council")
    for words in (("--protocol", "triad", QUESTION), ("runs",), ("spend",), ("runs", "fsck")):
        done = council(*words)
        assert (done.code, done.out) == (1, "")
        (line,) = (line for line in done.err.splitlines() if line.startswith("council: "))
        assert 'the database "postgresql://ann@127.0.0.1:1/council" cannot be reached' in line
        assert PASSWORD not in done.err
    checked = council("doctor", "--json")
    assert checked.code == 1 and "cannot be reached" in checked.json["warnings"][-1]
    assert PASSWORD not in council("config", "--origin").out + checked.out
    assert workspace.provider.log == []


@pytest.mark.behaviour("16-password-hidden")
def test_a_password_in_a_configuration_file_is_refused(council: Terminal) -> None:
    folder = Path(os.environ["XDG_CONFIG_HOME"]) / "council"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    for url in (f"postgresql://ann:{PASSWORD}@host/council", f"postgresql://ann@host/council?password={PASSWORD}"):
        (folder / "config.toml").write_text(f'[store]\nurl = "{url}"\n')
        (folder / "config.toml").chmod(0o600)
        done = council("runs")
        assert (done.code, done.err.count("\n"), PASSWORD in done.err) == (2, 1, False)
        assert "set COUNCIL_DATABASE, or use a password file" in done.err


@pytest.mark.behaviour("16-owner-and-project")
def test_a_user_removes_only_the_own_old_runs_of_a_shared_database(
    shared: Workspace, council: Terminal, database: str
) -> None:
    for owner in ("ann@laptop", "bob@desk"):
        assert council("--protocol", "triad", QUESTION).code == 0
        with psycopg.connect(database) as db:
            query = "UPDATE council.runs SET setup = replace(setup, 'ann@laptop', %s), created = 1 WHERE created > 1"
            db.execute(query, (owner,))
    with (Path(os.environ["XDG_CONFIG_HOME"]) / "council" / "config.toml").open("a") as file:
        file.write("keep_days = 1\n")
    assert council("--protocol", "triad", QUESTION).code == 0
    owners = [row["owner"] for row in json.loads(council("runs", "--json").out)]
    assert sorted(owners) == ["ann@laptop", "bob@desk"]
