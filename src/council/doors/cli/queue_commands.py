"""The commands of `council serve` for operators: workers, queue and migrate."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import click

from council.doors.cli.params import print_result
from council.doors.cli.runner import make_command, with_convener
from council.doors.cli.tables import format_table
from council.render.terminal import format_seconds
from council.runs.history import describe_store
from council.runs.service import Convener
from council.store.interface import WaitingRun, WorkerRow
from council.text_cleanup import single_line
from council.version import __version__

SHOWN_RUNS = 50
WORKERS_HEAD = ("worker", "version", "host", "since", "running", "queues")
QUEUE_HEAD = ("run", "owner", "queue", "priority", "waits", "question")
MAX_QUESTION_CHARS = 60


def workers_command() -> click.Command:
    return make_command("workers", list_workers, help="List the workers of a shared store that are alive.")


def queue_command() -> click.Command:
    about = f"Runs to show, those that wait longest first. Default: {SHOWN_RUNS}."
    limit = click.Option(["--limit"], type=click.IntRange(1), default=SHOWN_RUNS, metavar="N", help=about)
    return make_command("queue", show_queue, limit, help="List the runs that wait for a worker.")


def migrate_command() -> click.Command:
    about = (
        "Create the tables of the store, or bring them to this version. Every command does so when it opens the store."
    )
    return make_command("migrate", migrate_store, help=about)


@with_convener
async def list_workers(convener: Convener, json: bool, **params: Any) -> int:
    workers = await convener.store.list_workers()
    none = "no worker is alive: start one with `council serve worker`"
    if not convener.store.is_shared:
        none = "a local store has no list of workers: its worker starts with the first queued run"
    lines = _format_workers(workers) if workers else [none]
    return print_result(json, [_describe_worker(one) for one in workers], lines)


@with_convener
async def show_queue(convener: Convener, limit: int, json: bool, **params: Any) -> int:
    waiting = await convener.store.list_waiting(limit)
    lines = _format_queue(waiting) if waiting else ["no run waits for a worker"]
    return print_result(json, [_describe_run(one) for one in waiting], lines)


@with_convener
async def migrate_store(convener: Convener, json: bool, **params: Any) -> int:
    await convener.store.require_sound()  # opening it has migrated it
    where, schema = describe_store(convener.find_store())
    line = f"{where} has schema version {schema}, of council {__version__}"
    return print_result(json, {"store": where, "schema": schema, "version": __version__}, [line])


def _describe_worker(worker: WorkerRow) -> dict[str, object]:
    return {
        "name": worker.name,
        "version": worker.version,
        "host": worker.host,
        "pid": worker.pid,
        "since": worker.started,
        "running": worker.running,
        "queues": list(worker.queues),
    }


def _format_workers(workers: Sequence[WorkerRow]) -> list[str]:
    rows = [
        (
            worker.name,
            worker.version or "unknown",
            worker.host,
            f"{datetime.fromtimestamp(worker.started):%Y-%m-%d %H:%M}" if worker.started else "unknown",
            str(worker.running),
            ", ".join(worker.queues),
        )
        for worker in workers
    ]
    return format_table(WORKERS_HEAD, rows, right=(4,))


def _describe_run(run: WaitingRun) -> dict[str, object]:
    return {
        "run": run.run,
        "owner": run.owner,
        "queue": run.queue,
        "priority": run.priority,
        "waits": round(time.time() - run.since, 3),
        "question": run.question,
    }


def _format_queue(waiting: Sequence[WaitingRun]) -> list[str]:
    rows = [
        (
            run.run,
            run.owner or "-",
            run.queue,
            str(run.priority),
            format_seconds(max(0.0, time.time() - run.since)),
            single_line(run.question, MAX_QUESTION_CHARS),
        )
        for run in waiting
    ]
    return format_table(QUEUE_HEAD, rows, right=(3, 4))
