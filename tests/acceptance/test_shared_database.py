"""Runs in PostgreSQL through the real command: crashes, takeover, views and budgets over processes with their own data folders."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import psycopg
import pytest

from tests.acceptance.helpers import QUESTION, Terminal, Workspace, kill, wait_for_exit, wait_until
from tests.databases import PASSWORD
from tests.fork_server import Process


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
def test_a_stopped_process_whose_run_was_taken_over_writes_nothing(
    shared: Workspace, council: Terminal, database: str, tmp_path: Path
) -> None:
    gate = shared.hold("merge")
    stopped = shared.process("--protocol", "triad", QUESTION)
    gate.wait()
    (run,) = shared.runs()
    os.killpg(stopped.pid, signal.SIGSTOP)
    wait_until(lambda: lease_of(database, run) == [(False,)], "the lease has expired")
    other = Process(("resume", "--json", run), shared.folder, COUNCIL_DATA=str(tmp_path / "other"))
    gate.wait(count=2)
    gate.release()
    done = wait_for_exit(other)
    assert done.code == 0, done.err
    rows = shared.rows("SELECT seq, type FROM events ORDER BY seq")
    os.killpg(stopped.pid, signal.SIGCONT)
    late = wait_for_exit(stopped)
    assert late.code == 1
    assert f"run {run} was taken over by another process" in late.err
    assert shared.rows("SELECT seq, type FROM events ORDER BY seq") == rows
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
    folder.mkdir(parents=True, exist_ok=True)
    for url in (f"postgresql://ann:{PASSWORD}@host/council", f"postgresql://ann@host/council?password={PASSWORD}"):
        (folder / "config.toml").write_text(f'[store]\nurl = "{url}"\n')
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
