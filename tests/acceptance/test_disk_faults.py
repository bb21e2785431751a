"""A failing or full disk: the run stops before the next paid call with one clear line, and resume completes it."""

from __future__ import annotations

import errno
import json
import os
import shutil
import sqlite3
import stat
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from council.runs import worker_client
from council.settings.disk_space import explain_full_temp_folder
from council.store.sqlite import explain_error
from tests.acceptance.helpers import QUESTION, Json, Result, Terminal, Workspace, comparable, wait_for_exit
from tests.fake_provider import Reply
from tests.fork_server import Process
from tests.system_faults import PAGE, DiskFault, fill_disk, small_disk, start_with_fault

ASK = ("--json", "--quiet", "--protocol", "collaborative", QUESTION)
KEPT = """SELECT i.body FROM intents i JOIN settled s USING (run, key, n) WHERE s.body LIKE '%"finish"%'"""
PARTS = 4  # of the sweep over all disk operations
KINDS = {
    "full from then on": (errno.ENOSPC, 0, ()),
    "one error": (errno.EIO, 1, ()),
    "quota used up from then on": (errno.EDQUOT, 0, ()),
    "errors for a while": (errno.EIO, 7, ()),
    "one short write": (0, 1, ("write",)),
    "one failed sync": (errno.EIO, 1, ("fsync",)),
    "failed syncs from then on": (errno.EIO, 0, ("fsync",)),
}  # error, number of failing operations, operations


@dataclass
class Trials:
    """One question on a disk that fails, again and again; what an undisturbed run says; the figures."""

    workspace: Workspace
    council: Terminal
    calm: Json = field(default_factory=dict)
    operations: list[str] = field(default_factory=list)  # of the undisturbed run, in order
    figures: Counter[str] = field(default_factory=Counter)

    @property
    def root(self) -> Path:
        return self.workspace.data.parent

    def start_again(self) -> None:
        self.workspace.provider.forget()
        shutil.rmtree(self.workspace.data, ignore_errors=True)

    def measure(self, operations: Sequence[str] = ()) -> int:
        """Run without a fault, and return the number of disk operations."""
        self.start_again()
        log = self.root / "operations.log"
        log.unlink(missing_ok=True)
        done = wait_for_exit(
            start_with_fault(DiskFault(self.workspace.data, operations=operations, log=log), ASK, self.workspace.folder)
        )
        assert done.code == 0, done.err
        self.calm = done.json
        self.operations = log.read_text().splitlines()
        return len(self.operations)

    def run(self, fault: DiskFault) -> None:
        """Run with a fault, resume without it, and compare with the undisturbed run."""
        self.start_again()
        self.figures["trials"] += 1
        done = wait_for_exit(start_with_fault(fault, ASK, self.workspace.folder))
        self.check(done, f"operation {fault.first}, error {fault.error}, {fault.count} times")

    def check(self, done: Result, what: str) -> None:
        workspace = self.workspace
        sent = len(workspace.provider.log)
        intents = self.bodies("SELECT body FROM intents")
        kept = self.bodies(KEPT)
        assert {seen.raw for seen in workspace.provider.log} <= intents, (
            f"{what}: a request was sent before it was stored"
        )
        runs = workspace.runs()
        if done.code == 0:
            assert (done.err, done.json["status"], len(kept)) == ("", "complete", 7), what
            self.figures["completed"] += 1
        else:
            self.check_refusal(done, what)
        resumed = self.council("resume", runs[0], "--json") if runs else workspace.council(*ASK)
        assert (resumed.code, resumed.json["status"]) == (0, "complete"), f"{what}: {resumed.out}{resumed.err}"
        again, lost = {seen.raw for seen in workspace.provider.log[sent:]} & kept, kept - self.bodies(KEPT)
        self.figures["bought_again"] += len(again)
        self.figures["lost"] += len(lost)
        assert not again, f"{what}: a kept answer was paid for again"
        assert not lost, f"{what}: a kept answer was lost"
        assert comparable(resumed.json) == comparable(self.calm), what
        checked = self.council("runs", "fsck")
        assert checked.code == 0, f"{what}: {checked.out}"
        assert [path.name for path in workspace.reports()] == [Path(self.calm["report_path"]).name], what
        assert workspace.reports()[0].read_text().startswith("#"), what

    def check_refusal(self, done: Result, what: str) -> None:
        self.figures["stopped"] += 1
        assert (done.code, done.err) == (1, ""), f"{what}: {done}"
        assert done.json["schema"] == "council.error/1", what
        said = done.json["error"]
        assert "\n" not in said and "internal error" not in said, f"{what}: {said}"
        assert str(self.root) in said and ": " in said, f"{what}: {said}"

    def bodies(self, query: str) -> set[bytes]:
        if not (self.workspace.data / "council.db").exists() or not self.workspace.runs():
            return set()
        return {body for (body,) in self.workspace.rows(query)}


@pytest.fixture
def trials(workspace: Workspace, council: Terminal) -> Trials:
    return Trials(workspace, council)


def run_all(trials: Trials, kind: str, numbers: Iterable[int]) -> None:
    error, count, operations = KINDS[kind]
    for n in numbers:
        trials.run(DiskFault(trials.workspace.data, n, count, error, operations))


@pytest.mark.behaviour("40-disk-full-stops-before-the-next-call", "40-disk-fault-at-any-operation")
def test_a_failing_disk_operation_loses_nothing(trials: Trials) -> None:
    last = trials.measure()
    run_all(trials, "full from then on", [last // 3])
    run_all(trials, "one error", [last // 2])
    report = next(n for n, line in enumerate(trials.operations, 1) if " write " in line and line.endswith(".md.tmp"))
    run_all(trials, "quota used up from then on", [report])


@pytest.mark.behaviour("40-failed-sync", "40-disk-fault-at-any-operation")
@pytest.mark.parametrize("kind", ["one failed sync", "failed syncs from then on"])
def test_an_answer_whose_sync_failed_is_not_counted_as_saved(trials: Trials, kind: str) -> None:
    last = trials.measure(("fsync",))
    synced = [Path(line.split(" ", 2)[2]).name for line in trials.operations]
    assert {"council.db-wal", "council.db"} <= set(synced)
    assert synced.count("council.db-wal") > 3  # the answers of each of three phases, which may share a sync, and more
    last_log, database = last - synced[::-1].index("council.db-wal"), synced.index("council.db") + 1
    run_all(trials, kind, [last // 2, last_log, database])


@pytest.mark.sweep
@pytest.mark.behaviour("40-disk-full-stops-before-the-next-call", "40-disk-fault-at-any-operation")
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("kind", KINDS)
def test_every_disk_operation_may_fail(
    trials: Trials, kind: str, part: int, sweep_figures: Callable[..., None]
) -> None:
    last = trials.measure(KINDS[kind][2])
    run_all(trials, kind, range(1 + part, last + 1, PARTS))
    sweep_figures("disk-faults", **trials.figures)


# Several runs in one process, whose rows share transactions

ROWS = 3
BATCH = ("batch", "rows.jsonl", "-o", "out.jsonl", "--protocol", "triad")


@dataclass
class BatchTrials(Trials):
    """A batch on a disk whose syncs fail."""

    def start_again(self) -> None:
        super().start_again()
        (self.workspace.folder / "out.jsonl").unlink(missing_ok=True)
        questions = [json.dumps({"id": f"row {n}", "question": f"Should archive {n} move?"}) for n in range(ROWS)]
        (self.workspace.folder / "rows.jsonl").write_text("\n".join(questions), encoding="utf-8")

    def measure(self, operations: Sequence[str] = ("fsync",)) -> int:
        self.start_again()
        log = self.root / "operations.log"
        log.unlink(missing_ok=True)
        fault = DiskFault(self.workspace.data, operations=operations, log=log)
        done = wait_for_exit(start_with_fault(fault, BATCH, self.workspace.folder))
        assert done.code == 0, done.err
        return len(log.read_text().splitlines())

    def run(self, fault: DiskFault) -> None:
        """Run the batch with a fault, continue it without, and count answers that were bought again or lost."""
        self.start_again()
        self.figures["trials"] += 1
        what = f"sync {fault.first}, {fault.count} times"
        done = wait_for_exit(start_with_fault(fault, BATCH, self.workspace.folder))
        sent, kept = len(self.workspace.provider.log), self.bodies(KEPT)
        self.figures["stopped"] += done.code != 0
        assert {seen.raw for seen in self.workspace.provider.log} <= self.bodies("SELECT body FROM intents"), what
        assert "internal error" not in done.err, f"{what}: {done.err}"
        again = self.council(*BATCH)
        assert again.code == 0, f"{what}: {again.err}"
        lines = (self.workspace.folder / "out.jsonl").read_text(encoding="utf-8").splitlines()
        rows = {row["id"]: row["status"] for row in map(json.loads, lines)}
        assert rows == {f"row {n}": "complete" for n in range(ROWS)} and len(lines) == ROWS, what
        bought_again = {seen.raw for seen in self.workspace.provider.log[sent:]} & kept
        lost = kept - self.bodies(KEPT)
        self.figures["bought_again"] += len(bought_again)
        self.figures["lost"] += len(lost)
        assert not bought_again and not lost, what
        assert self.council("runs", "fsck").code == 0, what


@pytest.mark.behaviour("40-failed-sync")
def test_a_failed_sync_of_a_transaction_of_several_runs_loses_no_answer(
    workspace: Workspace, council: Terminal
) -> None:
    trials = BatchTrials(workspace, council)
    last = trials.measure()
    run_all(trials, "one failed sync", [last // 3, last // 2])
    run_all(trials, "failed syncs from then on", [last // 2])


@pytest.mark.sweep
@pytest.mark.behaviour("40-failed-sync")
@pytest.mark.parametrize("kind", ["one failed sync", "failed syncs from then on"])
def test_every_sync_of_a_batch_may_fail(
    workspace: Workspace, council: Terminal, kind: str, sweep_figures: Callable[..., None]
) -> None:
    trials = BatchTrials(workspace, council)
    run_all(trials, kind, range(1, trials.measure() + 1))
    sweep_figures("batch-syncs", **trials.figures)


# Full disks

DISK_BYTES = 4 << 20
ENOUGH = 5  # runs that complete, at the end of the sweep


def run_on_full_disk(trials: Trials, free: int) -> None:
    """Run with `free` bytes on the file system of the data folder; after space is freed, resume and compare."""
    shutil.rmtree(trials.workspace.data / "reports", ignore_errors=True)
    for path in trials.workspace.data.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    trials.workspace.provider.forget()
    filler = fill_disk(trials.workspace.data, free)
    trials.figures["trials"] += 1
    done = trials.workspace.council(*ASK)
    if done.code:
        assert "free some space" in done.json["error"], done
    filler.unlink()
    trials.check(done, f"{free} bytes free")


def measure_space(trials: Trials) -> int:
    """Return the bytes that one run needs."""
    done = trials.workspace.council(*ASK)
    assert done.code == 0, done.err
    trials.calm = done.json
    return sum(path.stat().st_size for path in trials.workspace.data.rglob("*") if path.is_file())


@pytest.mark.behaviour("40-disk-full-stops-before-the-next-call")
def test_a_full_disk_stops_the_run_until_space_is_freed(trials: Trials) -> None:
    with small_disk(trials.workspace.data, DISK_BYTES):
        needed = measure_space(trials)
        for part in (0.5, 2.0, 3.5):
            run_on_full_disk(trials, int(needed * part))


@pytest.mark.sweep
@pytest.mark.behaviour("40-disk-full-stops-before-the-next-call")
def test_the_disk_may_be_full_at_any_level(trials: Trials, sweep_figures: Callable[..., None]) -> None:
    with small_disk(trials.workspace.data, DISK_BYTES):
        measure_space(trials)
        for free in range(0, DISK_BYTES, PAGE):
            run_on_full_disk(trials, free)
            if trials.figures["completed"] >= ENOUGH:
                break
    sweep_figures("disk-full", **trials.figures)


@pytest.mark.behaviour("40-full-report-folder")
def test_a_full_report_folder_stops_the_run_and_resume_writes_the_report(
    workspace: Workspace, council: Terminal, tmp_path: Path
) -> None:
    folder = tmp_path / "reports"
    with small_disk(folder, 16 * PAGE):
        for free in (0, 1):  # none; enough for the reserved name, not for the report
            filler = fill_disk(folder, free * PAGE)
            gate = workspace.hold("merge")
            process = workspace.process(
                "--json", "--quiet", "--protocol", "triad", "--report-dir", str(folder), QUESTION
            )
            gate.wait()
            fill_disk(folder, free * PAGE)
            gate.release()
            done, (*_, run) = wait_for_exit(process), workspace.runs()
            assert (done.code, done.err) == (1, ""), done
            said = done.json["error"]
            assert said.startswith('the report "') and str(folder) in said, said
            assert "free some space" in said and f"`council resume {run}`" in said, said
            filler.unlink()
            sent = len(workspace.provider.log)
            resumed = council("resume", run, "--json")
            assert (resumed.code, len(workspace.provider.log)) == (0, sent), resumed
            path = Path(resumed.json["report_path"])
            assert path.parent == folder and path.read_text().startswith("#")
            assert list(folder.glob(".*")) == []
        assert council("runs", "fsck").code == 0


@pytest.mark.behaviour("40-full-report-folder")
def test_an_outdated_report_is_replaced_after_a_full_disk(
    workspace: Workspace, council: Terminal, tmp_path: Path
) -> None:
    folder = tmp_path / "reports"
    workspace.answers.instead["chair"] = Reply(status=500)
    with small_disk(folder, 16 * PAGE):
        stopped = council("--json", "--protocol", "triad", "--report-dir", str(folder), QUESTION)
        assert stopped.code == 3
        path = Path(stopped.json["report_path"])
        assert "INCOMPLETE" in path.read_text()
        workspace.answers.instead.clear()
        filler = fill_disk(folder, 0)
        refused = council("resume", "--json")
        assert (refused.code, "free some space" in refused.json["error"]) == (1, True), refused
        filler.unlink()
        done = council("resume", "--json")
        assert (done.code, done.json["report_path"]) == (0, str(path))
        assert "INCOMPLETE" not in path.read_text()
    assert council("runs", "fsck").code == 0


@pytest.mark.behaviour("40-full-temp-folder")
def test_a_full_folder_of_temporary_files_stops_no_run(workspace: Workspace, council: Terminal, tmp_path: Path) -> None:
    folder = tmp_path / "temporary"
    with small_disk(folder, 16 * PAGE):
        fill_disk(folder, 0)
        env = {"TMPDIR": str(folder), "SQLITE_TMPDIR": str(folder)}
        done = wait_for_exit(Process(ASK, workspace.folder, **env))
        assert (done.code, done.err) == (0, "")
    assert council("runs", "fsck").code == 0


@pytest.mark.behaviour("40-full-temp-folder")
def test_a_command_that_needs_temporary_files_names_their_folder(workspace: Workspace, tmp_path: Path) -> None:
    folder = tmp_path / "temporary"
    with small_disk(folder, 16 * PAGE):
        fill_disk(folder, 2 * PAGE)
        batch = ("batch", "-", "-o", str(tmp_path / "out.jsonl"))
        process = Process(batch, workspace.folder, stdin=True, TMPDIR=str(folder))
        out, err = process.communicate(json.dumps({"question": QUESTION, "id": "a" * 20 * PAGE}) + "\n")
    line = f'council: the folder for temporary files "{folder}" is full: free some space there, or set TMPDIR to a folder with space\n'
    assert (process.exit_code, out, err) == (1, "", line)
    assert workspace.provider.log == []


@pytest.mark.behaviour("40-full-temp-folder")
def test_a_full_folder_of_temporary_files_is_not_blamed_on_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, store = tmp_path / "temporary", tmp_path / "council.db"
    error = sqlite3.OperationalError("database or disk is full")
    monkeypatch.setenv("TMPDIR", str(folder))
    with small_disk(folder, 16 * PAGE):
        fill_disk(folder, 0)
        assert explain_error(error, store) == explain_full_temp_folder(folder)
        assert str(store) not in explain_full_temp_folder(folder)
    assert explain_error(error, store).startswith(f'the run store "{store}" cannot be used')


@pytest.mark.behaviour("40-kept-answers-only-of-a-stored-run")
def test_kept_answers_are_claimed_only_of_a_stored_run(workspace: Workspace, council: Terminal) -> None:
    council("runs")  # creates the store
    shown = {}
    log = workspace.folder / "operations.log"
    measured = DiskFault(workspace.data / "council.db-wal", operations=("write",), log=log)
    assert wait_for_exit(start_with_fault(measured, ASK, workspace.folder)).code == 0
    stored = set(workspace.runs())
    for first in (1, len(log.read_text().splitlines()) - 2):
        fault = DiskFault(workspace.data / "council.db-wal", first, 0, errno.EIO, ("write",))
        done = wait_for_exit(start_with_fault(fault, ASK, workspace.folder))
        assert done.code == 1, done
        new = set(workspace.runs()) - stored
        stored |= new
        shown[bool(new)] = done.json["error"]
        assert all(f"the stored answers of run {run} are kept" in done.json["error"] for run in new), done
    assert set(shown) == {False, True}
    assert "nothing was sent and no run is stored" in shown[False]
    assert "council resume" not in shown[False]


@pytest.mark.behaviour("40-worker-log")
def test_a_large_log_of_the_worker_is_kept_and_a_missing_one_is_not_named(tmp_path: Path) -> None:
    env = {"COUNCIL_DATA": str(tmp_path)}
    log = tmp_path / "worker.log"
    assert worker_client._name_log(env) == ""
    log.touch()
    assert worker_client._name_log(env) == "", "an empty log says nothing"
    log.write_text("the last words of the worker before\n" * (worker_client.MAX_LOG_BYTES // 30))
    assert worker_client._name_log(env) == f' (see "{log}")'
    os.close(worker_client._open_log(log))
    assert log.stat().st_size == 0
    assert "last words" in (tmp_path / "worker.log.1").read_text()
    assert [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("worker.log",)] == [0o600]


@pytest.mark.behaviour("40-disk-full-stops-before-the-next-call")
def test_a_worker_starts_without_its_log(detached: Workspace, council: Terminal) -> None:
    fault = DiskFault(detached.data / "worker.log", 1, 0, errno.ENOSPC)
    ask = ("--detach", "--protocol", "triad", QUESTION)
    assert wait_for_exit(start_with_fault(fault, ask, detached.folder)).code == 0
    assert not (detached.data / "worker.log").exists()
    (run,) = detached.runs()
    assert council("watch", run).code == 0
    assert council("runs", "fsck").code == 0
