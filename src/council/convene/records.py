"""Operations on stored runs: find, read, follow, export, remove, and answer for people."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from council.convene.following import FollowCursor
from council.errors import UnknownRun, UsageError
from council.events import Entry
from council.minutes import Minutes
from council.record import Record
from council.rules.forms import fill_form, form_fields
from council.settings import data_folder, quote_value
from council.store.sqlite import SqliteStore
from council.types import Json

FOLLOW_POLL_S = 0.1  # seconds between polls of a run that another process executes
OPEN_STATUSES = ("queued", "running")


class RunRecords:
    """Stored runs of one user."""

    def __init__(self, folder: Path, env: Mapping[str, str], store: SqliteStore | None = None) -> None:
        self.folder, self.env = folder, env
        self._store, self._is_shared_store = store, store is not None

    @property
    def store(self) -> SqliteStore:
        if self._store is None:
            self._store = SqliteStore(data_folder(self.env))
        return self._store

    async def close(self) -> None:
        if self._store and not self._is_shared_store:
            self._store.close()
            self._store = None

    # Find

    async def resolve_run(self, run: str) -> str:
        """Return the run with this id, or the only run whose id starts with it."""
        names = await self.store.match_runs(run)
        return names[0] if run not in names and len(names) == 1 else run

    async def newest_run(self) -> str:
        """Return the newest run of this folder."""
        for run in await self.store.list_runs():
            if run["folder"] == str(self.folder):
                return str(run["id"])
        raise UnknownRun('this folder has no runs yet: start one with `council "…"`')

    async def newest_unfinished_run(self) -> str:
        run = await self.store.find_newest_unfinished(str(self.folder))
        if run is None:
            raise UnknownRun("this folder has no unfinished run: `council runs` lists all runs")
        return run

    async def runs(self) -> list[Json]:
        """Return every run, unfinished first, then newest first. `running` means that a process owns it now."""
        rows = [
            run | {"running": run["status"] == "running" and self.store.is_locked(run["id"])}
            for run in await self.store.list_runs()
        ]
        return sorted(rows, key=lambda run: run["status"] == "complete")

    async def search(self, words: Sequence[str]) -> list[Json]:
        """Return the runs whose question, statements and answer contain all of the words."""
        found = set(await self.store.search_runs(words))
        return [run for run in await self.runs() if run["id"] in found]

    # Read

    async def entries(self, run: str) -> list[Entry]:
        return (await self.store.load(await self.resolve_run(run))).entries

    async def minutes(self, run: str) -> Minutes:
        return Minutes.fold(await self.entries(run))

    async def follow(self, run: str, since: int = 0) -> AsyncIterator[Entry]:
        """Yield the stored events of a run, then new ones until it ends, whichever process executes it."""
        run, seen = await self.resolve_run(run), FollowCursor(since)
        while True:
            entries, live, status = await self.store.load_since(run, seen.seq)
            for entry in seen.iter_new(entries, live):
                yield entry
            if status not in OPEN_STATUSES or (not entries and seen.is_orphan(self.store.is_locked(run), status)):
                return
            await asyncio.sleep(FOLLOW_POLL_S)

    async def run_state(self, run: str) -> Json:
        """Return the `run`, its `status`, whether it is `detached` and whether a process has it `owned` now."""
        run = await self.resolve_run(run)
        status, detached = await self.store.get_status(run)
        return {"run": run, "status": status, "detached": detached, "owned": self.store.is_locked(run)}

    async def is_verbose(self, run: str) -> bool:
        """Return whether the run was started with verbose output."""
        return bool((await self.store.load(await self.resolve_run(run))).setup.get("verbose"))

    async def export(self, run: str) -> Json:
        """Return everything stored about a run as one object; request bodies are base64."""
        return export_record(await self.store.load(await self.resolve_run(run)))

    async def remove(self, run: str) -> str:
        """Delete a run from the store. Its report file and its spending rows stay."""
        run = await self.resolve_run(run)
        with self.store.lock_run(run):
            status, _ = await self.store.get_status(run)
            if status == "queued":
                raise UsageError(f"run {run} is queued, so it was not removed: run `council cancel {run}` first")
            if forks := await self.store.list_unfinished_forks(run):
                raise UsageError(
                    f"run {run} was not removed, because the unfinished fork {forks[0]} uses its answers: "
                    f"run `council resume {forks[0]}` or `council runs rm {forks[0]}` first"
                )
            await self.store.delete_run(run)
        return run

    # Human members

    async def open_asks(self, run: str | None = None) -> list[Json]:
        """Return the open questions to people, of one run or of all, each with the fields to fill in."""
        rows = await self.store.list_open_asks(await self.resolve_run(run) if run else None)
        return [row | {"fields": form_fields(row["schema"])} for row in rows]

    async def answer(self, run: str, key: str, text: str) -> bool:
        """Store a person's answer: text, or JSON for fields; an empty one abstains. Return whether it was in time."""
        run = await self.resolve_run(run)
        asked = [row for row in await self.store.list_open_asks(run) if row["key"] == key]
        if not asked:
            raise UsageError(
                f"run {run} has no open question {quote_value(key)}: it was answered, or the run has ended"
            )
        return await self.store.save_answer(run, key, fill_form(asked[0]["schema"], text))


def export_record(record: Record) -> Json:
    return {
        "schema": "council.run/1",
        "run": record.run,
        "name": record.name,
        "folder": record.folder,
        "created": record.created,
        "seed": record.seed,
        "status": record.status,
        "setup": record.setup,
        "report": record.report,
        "events": [entry.as_json() for entry in record.entries],
        "steps": record.steps,
        "results": {key: outcome.as_json() for key, outcome in record.results.items()},
        "attempts": [
            {"key": key, "n": one.n, "member": one.member, "request": _encode_base64(one.body), "result": one.result}
            for key, attempts in record.attempts.items()
            for one in attempts
        ],
        "phases": record.phases,
        "spending": [{"key": key, "n": n, **asdict(spent)} for (key, n), spent in record.spending.items()],
    }


def _encode_base64(body: bytes) -> str:
    return base64.b64encode(body).decode()
