"""The commands of `council serve` for operators: workers, queue and migrate."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import click

from council.doors.cli.params import print_json
from council.doors.cli.runner import make_command, make_runner
from council.doors.cli.tables import format_table
from council.render.terminal import format_seconds
from council.runs.service import Convener
from council.store.interface import WaitingRun, WorkerRow
from council.store.migrations import list_migrations
from council.text_cleanup import single_line
from council.version import __version__

SHOWN_RUNS = 50
WORKERS_HEAD = ("worker", "version", "host", "since", "running", "queues")
QUEUE_HEAD = ("run", "owner", "queue", "priority", "waits", "question")
MAX_QUESTION_CHARS = 60


def workers_command() -> click.Command:
    return make_command("workers", list_workers, help="List the workers of a shared store that are alive.")


def queue_command() -> click.Command:
    limit = click.Option(
        ["--limit"],
        type=click.IntRange(1),
        default=SHOWN_RUNS,
        metavar="N",
        help=f"Runs to show, those that wait longest first. Default: {SHOWN_RUNS}.",
    )
    return make_command("queue", show_queue, limit, help="List the runs that wait for a worker.")


def migrate_command() -> click.Command:
    about = (
        "Create the tables of the store, or bring them to this version. Every command does so when it opens the store."
    )
    return make_command("migrate", migrate_store, help=about)


def list_workers(json: bool, **params: Any) -> int:
    async def job(convener: Convener) -> int:
        if not convener.store.is_shared:
            return _show(
                json, [], [], "a local store has no list of workers: its worker starts with the first queued run"
            )
        workers = await convener.store.list_workers()
        about = "no worker is alive: start one with `council serve worker`"
        return _show(json, [_describe_worker(one) for one in workers], _format_workers(workers), about)

    return make_runner(params).with_convener(job)


def show_queue(limit: int, json: bool, **params: Any) -> int:
    async def job(convener: Convener) -> int:
        waiting = await convener.store.list_waiting(limit)
        return _show(json, [_describe_run(one) for one in waiting], _format_queue(waiting), "no run waits for a worker")

    return make_runner(params).with_convener(job)


def migrate_store(json: bool, **params: Any) -> int:
    async def job(convener: Convener) -> int:
        address = convener.find_store()
        await convener.store.require_sound()  # opening it has migrated it
        if address.url:
            from council.store.postgres_connection import describe_url

            schema, where = len(list_migrations("postgres")), describe_url(address.url)
        else:
            schema, where = len(list_migrations("sqlite")), str(address.folder / "council.db")
        if json:
            print_json({"store": where, "schema": schema, "version": __version__})
        else:
            click.echo(f"{where} has schema version {schema}, of council {__version__}")
        return 0

    return make_runner(params).with_convener(job)


def _show(as_json: bool, rows: list[dict[str, object]], lines: list[str], about_none: str) -> int:
    if as_json:
        print_json(rows)
    else:
        click.echo("\n".join(lines) if rows else about_none)
    return 0


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
