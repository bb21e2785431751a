"""Repair of stored data, for `council runs fsck --repair`: derived data is made again, the ledger is never invented."""

from __future__ import annotations

import time
from pathlib import Path

from council import events as ev
from council.engine.minutes import Minutes
from council.errors import RunOwned, StoreError, UsageError
from council.render.report import encode_report
from council.runs.audit import is_ours, is_same_report
from council.runs.report_files import write_missing_files
from council.runs.service import Convener
from council.store.interface import OPEN_STATUSES, Record, Row, RunStatus
from council.store.locks import is_locked
from council.store.run_store import RunStore
from council.store.sqlite_repair import repair_store

DRAFT_AGE_S = 60.0  # a younger draft may be in use


async def repair_data(convener: Convener, run: str | None) -> list[str]:
    """Repair the database, then one run or all. Return a line for each repair."""
    address = convener.find_store()
    done = [] if address.url else [f"store: {line}" for line in repair_store(address.folder)]
    names = [await convener.resolve_run(run)] if run else [row["run"] for row in await convener.runs()]
    for name in names:
        try:
            async with convener.store.lock_run(name):
                done += [f"{name}: {line}" for line in await _repair_run(convener.store, name)]
        except (RunOwned, UsageError, StoreError):  # it is running; or damage has made it unreadable
            continue
    if not run:
        await convener.store.rebuild_search()
        done += [f"store: {line}" for line in _remove_leftovers(address.folder, set(names))]
    return done


async def _repair_run(store: RunStore, run: str) -> list[str]:
    record = await store.load(run)
    rows, lines = _find_repairs(record)
    if rows:
        await store.write(run, rows)
    minutes = Minutes.fold(record.entries)
    if write_missing_files(record, minutes):
        lines.append(f'its report "{minutes.report_path}" was written again')
    return lines


def _find_repairs(record: Record) -> tuple[list[Row], list[str]]:
    """Return the rows that mend a run, and a line for each."""
    rows: list[Row] = [("discard_streams", ())]  # text that streamed when a process died
    last = record.entries[-1].event if record.entries else None
    if not isinstance(last, ev.Closed):
        if record.status in OPEN_STATUSES:
            return rows, []
        return [*rows, ("reopen", ())], [f'its status was "{record.status}", but it has no end: it can be resumed now']
    if record.status == RunStatus.QUEUED or not is_ours(record):
        return rows, []
    report = encode_report(Minutes.fold(record.entries))
    lines = ["its report was built again from the ledger"] if not is_same_report(report, record.report) else []
    lines += [f'its status was "{record.status}": now "{last.status}"'] if record.status != last.status else []
    return [*rows, *([("close", (last.status, report))] if lines else [])], lines


def _remove_leftovers(folder: Path, runs: set[str]) -> list[str]:
    """Delete drafts that a crash has left, and the locks of runs that no longer exist."""
    before = time.time() - DRAFT_AGE_S
    drafts = [*folder.glob("*.tmp"), *folder.glob("reports/.*.tmp")]
    old = [path for path in drafts if path.stat().st_mtime < before]
    locks = [path for path in (folder / "locks").glob("*.lock") if path.stem not in runs and not is_locked(path)]
    for path in (*old, *locks):
        path.unlink(missing_ok=True)
    return [f"leftover file {path.name} deleted" for path in old]
