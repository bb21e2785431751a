"""Helpers for runs in a shared database: worker processes, and the state of runs."""

from __future__ import annotations

import os
import signal

from tests.acceptance.helpers import QUESTION, Terminal, Workspace
from tests.fork_server import Process

LEASE_S = 3  # the shortest


class Workers:
    """Worker processes of a test, with their logs."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self.processes: list[Process] = []

    def start(self, *arguments: str, waits: bool = True, **env: str) -> Process:
        """Start a worker and wait until it is ready."""
        worker = Process(["serve", "worker", *arguments], self.workspace.folder, **env)  # type: ignore[arg-type]
        self.processes.append(worker)
        if not waits:
            return worker
        line = worker.stderr.readline()
        assert "ready; queues" in line, line
        return worker

    def kill(self, worker: Process) -> None:
        os.kill(worker.pid, signal.SIGKILL)
        worker.wait()

    def wait_for_line(self, worker: Process, word: str) -> str:
        """Return the first line of a worker's log that has a word."""
        return str(next(line for line in worker.stderr if word in line))

    def stop(self, worker: Process) -> str:
        """Stop a worker with TERM. Return its log."""
        os.kill(worker.pid, signal.SIGTERM)
        log = str(worker.stderr.read())
        assert worker.wait() == 0, log
        return log


def detach(council: Terminal, *arguments: str) -> str:
    done = council("--detach", "--json", "--protocol", "collaborative", *arguments, QUESTION)
    assert done.code == 0, done.err
    return str(done.json["run"])
