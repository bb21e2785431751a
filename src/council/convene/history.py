"""History queries: the list of runs, and the requests and the packet of one run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from council import events as ev
from council.convene.washing import redact_value
from council.planning import packet_from, question_from, roster_from
from council.prompting import build_dossier
from council.record import Attempt, Record
from council.replies import OUTPUT_SCHEMA
from council.store.sqlite import SqliteStore
from council.types import Json

NO_LIMIT = 1_000_000  # effectively no limit: few runs are open at once


async def query_history(store: SqliteStore, wanted: Mapping[str, str], before: str | None, limit: int) -> Json:
    """Return {runs, more}, unfinished runs first. A `stopped` run has no owner and never ended."""
    status = wanted.get("status")
    kept = dict(wanted) | ({"status": "running"} if status == "stopped" else {})
    rows = await store.list_history(kept, before, NO_LIMIT if status in ("running", "stopped") else limit + 1)
    runs = [_add_run_state(store, row) for row in rows]
    if status:
        runs = [run for run in runs if run["status"] == status]
    return {"runs": runs[:limit], "more": len(runs) > limit}


def _add_run_state(store: SqliteStore, row: Json) -> Json:
    running = row["status"] == "running" and store.is_locked(row["id"])
    status = "stopped" if row["status"] == "running" and not running else row["status"]
    return row | {"status": status, "running": running, "unfinished": row["status"] != "complete"}


def list_attempts(record: Record, only: str = "") -> list[Json]:
    """Return every request of a run, or of one step, with its result. Secrets are masked."""
    told = {(one.key, one.n): one for one in _iter_attempt_events(record)}
    return [
        _attempt_json(key, attempt, told.get((key, attempt.n)))
        for key, attempts in record.attempts.items()
        for attempt in attempts
        if only in ("", key)
    ]


def _iter_attempt_events(record: Record) -> Iterator[ev.Attempted]:
    return (entry.event for entry in record.entries if isinstance(entry.event, ev.Attempted))


def _attempt_json(key: str, attempt: Attempt, event: ev.Attempted | None) -> Json:
    about: Json = {"key": key, "n": attempt.n, "member": attempt.member, "seat": event.seat if event else None}
    about |= {"why": event.why if event else "", "most": event.most if event else None}
    washed: Json = redact_value({"request": attempt.body.decode("utf-8", "replace"), "result": attempt.result})
    return about | washed


def describe_packet(record: Record) -> Json:
    """Return the receipt of the material sent, and the dossier of the first seat."""
    packet, question = packet_from(record.setup), question_from(record.setup)
    schema = OUTPUT_SCHEMA if question.task == "validate" else None
    shown = build_dossier(packet, question, roster_from(record.setup).seats[0], schema)
    return {"receipt": packet.as_json(), "dossier": shown}
