"""A failing or full disk: the run stops before the next paid call with one clear line, and resume completes it."""

from __future__ import annotations

import errno
import shutil
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.acceptance.helpers import QUESTION, Json, Result, Terminal, Workspace, comparable, wait_for_exit
from tests.disk_faults import DiskFault, start_with_fault

ASK = ("--json", "--quiet", "--protocol", "collaborative", QUESTION)
KINDS = {
    "full from then on": (errno.ENOSPC, 0, ()),
    "one error": (errno.EIO, 1, ()),
    "quota used up from then on": (errno.EDQUOT, 0, ()),
    "errors for a while": (errno.EIO, 7, ()),
    "one short write": (0, 1, ("write",)),
    "one failed sync": (errno.EIO, 1, ("fsync",)),
}  # error, number of failing operations, operations


@dataclass
class Trials:
    """One question on a disk that fails, again and again; what an undisturbed run says; the figures."""

    workspace: Workspace
    council: Terminal
    calm: Json = field(default_factory=dict)
    operations: int = 0
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
        return len(log.read_text().splitlines())

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
        kept = self.bodies(
            """SELECT i.body FROM intents i JOIN settled s USING (run, key, n) WHERE s.body LIKE '%"finish"%'"""
        )
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
        again = {seen.raw for seen in workspace.provider.log[sent:]} & kept
        self.figures |= Counter({"lost": 0, "bought_again": 0})
        self.figures["bought_again"] += len(again)
        assert not again, f"{what}: a kept answer was paid for again"
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

    def print_figures(self, name: str) -> None:
        print(f"\nsweep {name}:", *(f"{key}={value}" for key, value in self.figures.items()))


@pytest.fixture
def trials(workspace: Workspace, council: Terminal) -> Trials:
    return Trials(workspace, council)


def run_all(trials: Trials, kind: str, numbers: Iterable[int]) -> None:
    error, count, operations = KINDS[kind]
    for n in numbers:
        trials.run(DiskFault(trials.workspace.data, n, count, error, operations))


@pytest.mark.sweep
@pytest.mark.parametrize("kind", KINDS)
def test_every_disk_operation_may_fail(trials: Trials, kind: str) -> None:
    last = trials.measure(KINDS[kind][2])
    run_all(trials, kind, range(1, last + 1))
    trials.print_figures(f"disk-faults ({kind})")
