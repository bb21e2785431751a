"""An earlier version of Council and this one on the same store, in both directions.

The earlier ones come from the git history.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
from collections.abc import Callable
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

import psycopg
import pytest

from council.store.postgres_connection import OLDEST_BESIDE
from tests.acceptance.helpers import QUESTION, Result, Terminal, Workspace, wait_for_exit, wait_until
from tests.databases import Server
from tests.fork_server import Process
from tests.store.older_stores import Content, describe_postgres, describe_sqlite, read_postgres, read_sqlite
from tests.trusted_project import write_user_file

REPOSITORY = Path(__file__).parents[2]
REVISIONS = {
    "40818e2": (3, 0),
    "d4c03537": (5, 0),
    "14e26ba7": (6, 0),
    "a2968afb": (7, 0),
    "b9afc79f": (8, 2),
    "c7482d51": (9, 3),
    "f1ebb3f6": (10, 4),
    "b28ec2c7": (11, 5),
    "19746b4b": (12, 6),
}  # with their schema versions in SQLite and PostgreSQL; 40818e2 is version 0.1.0
STORES = [("sqlite", revision) for revision in REVISIONS] + [
    ("postgres", revision) for revision, (_, version) in REVISIONS.items() if version
]
PREVIOUS = "b28ec2c7"  # version 0.2.0
OPEN_QUESTION = "Should the run of the older version stay open?"
ASK = ("--json", "--protocol", "triad")
KEPT = "SELECT i.body FROM intents i JOIN results r ON r.run = i.run AND r.key = i.key WHERE r.run = ?"


@dataclass
class OlderCouncil:
    """The command of an earlier revision."""

    folder: Path
    work: Path
    may_continue: bool = False  # on a store that this version has migrated

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        env = {**os.environ, "PYTHONPATH": str(self.folder / "src")}
        command = [sys.executable, "-m", "council", *arguments]
        return subprocess.Popen(
            command, cwd=self.work, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )  # fmt: skip

    def __call__(self, *arguments: str) -> Result:
        return wait_for_exit(self.start(*arguments))


def check_out(revision: str, folder: Path) -> None:
    """Write the package of a revision into a folder, or skip the test without the git history."""
    command = ["git", "archive", "--format=tar", revision, "src"]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True)
    if done.returncode:
        pytest.skip(f"the git history with {revision} is needed: clone without --depth")
    with tarfile.open(fileobj=BytesIO(done.stdout)) as packed:
        packed.extractall(folder, filter="data")


@pytest.fixture(
    params=[pytest.param(store, id=" ".join(store), marks=pytest.mark.covers("/".join(store))) for store in STORES]
)
def older(
    request: pytest.FixtureRequest, workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> OlderCouncil:
    """The command of an earlier revision, whose store, members and folder this version uses too."""
    kind, revision = request.param
    check_out(revision, tmp_path / "older")
    config = workspace.folder / "council.toml"
    write_user_file(config.read_text(encoding="utf-8"))  # each version trusts the configuration of the user
    config.unlink()
    if kind == "postgres":
        server = request.getfixturevalue("postgres")
        database = server.database("template1")
        monkeypatch.setenv("COUNCIL_DATABASE", database.__enter__())
        request.addfinalizer(lambda: database.__exit__(None, None, None))
    may_continue = kind == "postgres" and REVISIONS[revision][1] >= OLDEST_BESIDE
    return OlderCouncil(tmp_path / "older", workspace.folder, may_continue)


def read_store(workspace: Workspace) -> tuple[Content, object]:
    if url := os.environ.get("COUNCIL_DATABASE"):
        return read_postgres(url), describe_postgres(url)
    copy = workspace.data.parent / "copy"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(workspace.data, copy)  # a log that the last process has left stays where it is
    return read_sqlite(copy / "council.db"), describe_sqlite(copy / "council.db")


def read_results(workspace: Workspace) -> set[tuple[str, str]]:
    return {(run, key) for run, key, _ in read_store(workspace)[0]["results"]}


def resume(workspace: Workspace, council: Terminal, run: str) -> int:
    """Resume a run to its end. Return the number of kept answers that were bought again."""
    kept = {body for (body,) in workspace.rows(KEPT, run)}
    sent = len(workspace.provider.log)
    done = council("resume", run, "--json")
    assert (done.code, done.json.get("status")) == (0, "complete"), done
    return len(kept & {seen.raw for seen in workspace.provider.log[sent:]})


@pytest.mark.sweep
@pytest.mark.behaviour("40-older-beside-newer", "40-migration-keeps-rows")
def test_an_older_and_this_version_share_a_store(
    older: OlderCouncil, workspace: Workspace, council: Terminal, sweep_figures: Callable[..., None]
) -> None:
    assert older(*ASK, QUESTION).code == 0
    gate = workspace.hold("merge")
    killed = older.start(*ASK, QUESTION)
    gate.wait()
    killed.send_signal(signal.SIGKILL)
    wait_for_exit(killed)
    gate.release()
    gate = workspace.provider.hold(
        lambda seen: OPEN_QUESTION in seen.prompt and workspace.answers.who(seen)[1] == "merge"
    )
    running = older.start(*ASK, OPEN_QUESTION)
    gate.wait()
    before = read_results(workspace)
    assert len(before) == 4 + 3 + 3
    listed = council("runs", "list", "--json")  # migrates the store
    assert (listed.code, sorted(row["status"] for row in listed.json)) == (0, ["complete", "running", "stopped"])
    (run_killed,) = (row["run"] for row in listed.json if row["status"] == "stopped")
    (run_open,) = (row["run"] for row in listed.json if row["status"] == "running")
    refused = council("resume", run_open)
    assert (refused.code, refused.err.count("\n")) == (1, 1), refused.err
    bought_again = resume(workspace, council, run_killed)
    assert council(*ASK, QUESTION).code == 0
    gate.release()
    ended = wait_for_exit(running)
    if ended.code:
        assert (ended.code, ended.err.count("\n")) == (1, 0), ended
        bought_again += resume(workspace, council, run_open)
    after = read_store(workspace)
    listed_before, asked = older("runs", "list"), older(*ASK, QUESTION)
    if older.may_continue:
        assert (listed_before.code, asked.code) == (0, 0)
    else:
        assert (listed_before.code, listed_before.err.count("\n"), listed_before.out) == (1, 1, ""), listed_before
        assert "newer council" in listed_before.err
        assert asked.code == 1
        assert read_store(workspace) == after
    lost = before - read_results(workspace)
    assert (lost, bought_again) == (set(), 0)
    assert {row["status"] for row in council("runs", "list", "--json").json} == {"complete"}
    checked = council("runs", "fsck")
    assert checked.code == 0, checked.out
    sweep_figures(
        "two-versions", stores=1, ended=int(ended.code == 0), refused=int(ended.code != 0), lost=len(lost), bought_again=bought_again
    )  # fmt: skip


@pytest.mark.sweep
@pytest.mark.behaviour("32-rolling-upgrade")
def test_workers_of_the_previous_version_end_their_runs_beside_those_of_this_one(
    workspace: Workspace, council: Terminal, postgres: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Workers of 0.2.0 continue after the migration, connect again, and leave new runs to those of this version."""
    pytest.importorskip("procrastinate", reason="the queue of version 0.2.0")
    check_out(PREVIOUS, tmp_path / "older")
    config = workspace.folder / "council.toml"
    write_user_file(config.read_text(encoding="utf-8") + "\n[store]\nlease_seconds = 3\n")
    config.unlink()
    with postgres.database("template1") as url:
        monkeypatch.setenv("COUNCIL_DATABASE", url)
        older = OlderCouncil(tmp_path / "older", workspace.folder)
        gate = workspace.hold("draft")
        old_worker = older.start("worker", "--drain", "60")
        wait_for_line(old_worker, "ready")
        first = json.loads(older("--detach", *ASK, QUESTION).out)["run"]
        gate.wait(count=3)

        assert council("serve", "migrate").code == 0
        disconnect_all(url)  # the old worker connects again
        new_worker = Process(["serve", "worker"], workspace.folder)
        assert "ready" in new_worker.stderr.readline()
        second = json.loads(older("--detach", *ASK, OPEN_QUESTION).out)["run"]  # queued by the previous version
        third = council("--detach", *ASK, OPEN_QUESTION).json["run"]
        gate.release()
        wait_until(
            lambda: read_statuses(url) == {first: "complete", second: "complete", third: "complete"}, "they ended"
        )
        assert count_requests(url) == {first: 4, second: 4, third: 4}

        for worker in (old_worker, new_worker):
            os.kill(worker.pid, signal.SIGTERM)
        assert old_worker.wait(60) == 0
        assert "Traceback" not in old_worker.stderr.read()
        log = str(new_worker.stderr.read())
        assert (new_worker.wait(), log) == (0, "")
        assert len(workspace.provider.log) == 12


def wait_for_line(process: subprocess.Popen[str], word: str) -> None:
    assert process.stderr
    while word not in (line := process.stderr.readline()):
        assert line, "the process ended"


def disconnect_all(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as db:
        db.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


def read_statuses(url: str) -> dict[str, str]:
    with psycopg.connect(url) as db:
        return dict(db.execute("SELECT id, status FROM council.runs").fetchall())


def count_requests(url: str) -> dict[str, int]:
    with psycopg.connect(url) as db:
        return dict(db.execute("SELECT run, count(*) FROM council.settled GROUP BY run").fetchall())
