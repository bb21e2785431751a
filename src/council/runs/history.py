"""Stored runs: list and search them, read or follow one, export or remove it."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypedDict

from council import events as ev
from council.engine.minutes import Minutes
from council.engine.plan_object import PacketReceipt
from council.engine.prompting import build_dossier
from council.errors import CouncilError, RunConflict, StoreError, UnknownRun, UsageError, wording
from council.events import Entry
from council.packet.secret_filter import redact_text, redact_value
from council.planning.plan_object import make_packet_receipt
from council.planning.setup import RunSetup
from council.protocols import find_protocol
from council.runs.excerpts import make_excerpt
from council.runs.people import OpenQuestion, fill_form, form_fields
from council.runs.report_files import DATA_REPORTS, rewrite_report
from council.runs.spending import DAY_S
from council.runs.track_record import OutcomeObject, label_run, load_weights
from council.settings import OriginKind, Settings, load_settings
from council.settings.config_files import data_folder, find_names
from council.settings.schema import quote_value
from council.store.interface import (
    LEASE_SECONDS,
    OPEN_STATUSES,
    Attempt,
    AttemptResult,
    OpenDecision,
    Record,
    RunPage,
    RunRow,
    RunState,
    RunStatus,
    StoreAddress,
    StoredRun,
)
from council.store.migrations import list_migrations
from council.store.queries import unknown_run
from council.store.run_store import RunStore
from council.store.shared import acquire_store, close_promptly, open_patiently, open_store, release_store
from council.store.summaries import NO_FILTERS
from council.text_cleanup import abbreviate_base64, single_line
from council.types import Dossier, Json

# Stored statuses of the runs that a filter by status may find, where they differ from that status.
STORED_STATUSES: dict[str, Sequence[str]] = {
    RunStatus.QUEUED: [RunStatus.QUEUED, RunStatus.RUNNING],
    RunStatus.RUNNING: [RunStatus.RUNNING],
    RunStatus.STOPPED: [RunStatus.RUNNING],
}
UNFINISHED = "unfinished"  # filter: every status but complete and failed
PAGE = 200  # runs of one query
MAX_INDEXED, RUNS_PER_STEP = 5000, 100  # runs of an older version that one search indexes, and of one transaction


def make_store_address(env: Mapping[str, str], store: Mapping[str, Any]) -> StoreAddress:
    """Return where runs are stored, from the environment and the settings `[store]`."""
    url = env.get("COUNCIL_DATABASE", "").strip() or store.get("url", "")
    return StoreAddress(data_folder(env), url, store.get("lease_seconds", LEASE_SECONDS))


def find_store_address(env: Mapping[str, str]) -> StoreAddress:
    """Return where the runs of this user are stored, outside of any run's folder."""
    return make_store_address(env, load_settings(Path.cwd(), env).store)


def describe_store(address: StoreAddress) -> tuple[str, int]:
    """Return where the runs are stored, without a password, and the version of its schema."""
    if not address.url:
        return str(address.folder / "council.db"), len(list_migrations("sqlite"))
    from council.store.postgres_connection import describe_url

    return describe_url(address.url), len(list_migrations("postgres"))


# Queries


def filter_evaluations(shows_all: bool) -> dict[str, Any]:
    """Return the filter that leaves out the runs of evaluations; none if all runs are shown."""
    return {} if shows_all else {"evaluation": 0}


async def query_history(store: RunStore, wanted: Mapping[str, Any], before: str | None, limit: int | None) -> RunPage:
    """Return a page of the runs that match, unfinished ones first."""
    status = wanted.get("status")
    filters = {name: value for name, value in wanted.items() if name != "status"} | _filter_status(status)
    rows = await store.list_runs(filters, before, None if limit is None or status in STORED_STATUSES else limit + 1)
    runs = [run for run in await add_states(store, rows) if not status or run["status"] == status]
    if limit is None or len(runs) <= limit:
        return {"runs": runs, "more": False, "next": None}
    return {"runs": runs[:limit], "more": True, "next": runs[limit - 1]["run"]}


def _filter_status(status: str | None) -> dict[str, str]:
    return {"status": json.dumps(STORED_STATUSES.get(status, [status]))} if status and status != UNFINISHED else {}


async def add_states(store: RunStore, rows: Sequence[StoredRun]) -> list[RunRow]:
    """Return listed runs with their status now, and whether they can be continued."""
    return [_add_state(row, now) for row, now in zip(rows, await store.states_of(rows), strict=True)]


def _add_state(row: StoredRun, now: RunState) -> RunRow:
    """Return a listed run with its status now. A run that is continued has no result until it ends again."""
    if now.is_active:
        row = {**row, "trust": None, "verdict": None, "outcome": None, "confidence": None}
    is_unfinished = now.stored is not RunStatus.COMPLETE
    return {**row, "status": now.status, "running": now.is_running, "unfinished": is_unfinished}


class AttemptContent(TypedDict):
    """What was sent, and what came back. Secrets are masked."""

    request: str
    result: AttemptResult | None


class AttemptRow(AttemptContent):
    """A request of a run."""

    key: str
    n: int
    member: str
    seat: str | None
    why: str
    most: float | None  # dollars that it could cost; None if the price is unknown


class SentMaterial(TypedDict):
    """The material that was sent. Secrets are masked."""

    receipt: PacketReceipt
    dossier: Dossier  # of the first seat


def list_attempts(attempts: Mapping[str, Sequence[Attempt]], events: Iterable[ev.Attempted]) -> list[AttemptRow]:
    """Return requests of a run with their results. Secrets are masked."""
    known = {(event.key, event.n): event for event in events}
    rows: list[AttemptRow] = []
    for key, found in attempts.items():
        for attempt in found:
            event = known.get((key, attempt.n))
            request = abbreviate_base64(attempt.body.decode("utf-8", "replace"))
            content: AttemptContent = redact_value({"request": request, "result": attempt.result})
            seat, why, most = (event.seat, event.why, event.most) if event else (None, "", None)
            rows.append(
                AttemptRow(key=key, n=attempt.n, member=attempt.member, seat=seat, why=why, most=most, **content)
            )
    return rows


def describe_packet(record: Record) -> SentMaterial:
    """Return the receipt of the material sent, and the dossier of the first seat. Secrets are masked."""
    setup = RunSetup.of(record)
    schema = find_protocol(setup.protocol).load_output_schema(setup.question.task)
    dossier = build_dossier(setup.packet, setup.question, setup.roster.seats[0], schema)
    masked: SentMaterial = redact_value({"receipt": make_packet_receipt(setup.packet), "dossier": dossier})
    return masked


# Following

MAX_ORPHAN_POLLS = 20  # polls without an owner before a run counts as dead


@dataclass(slots=True)
class FollowCursor:
    """Position of one follower in a run."""

    seq: int = 0
    streamed: dict[str, int] = field(default_factory=dict)  # characters already yielded of each unfinished statement
    orphan_polls: int = 0

    def iter_new(self, entries: Sequence[Entry], live: Mapping[str, str]) -> Iterator[Entry]:
        """Yield the stored events, then the new text of unfinished statements."""
        for entry in entries:
            self.seq = entry.seq
            if isinstance(entry.event, (ev.Stated, ev.WasAbsent, ev.Faulted, ev.Attempted)):
                self.streamed.pop(entry.event.key, None)
            yield entry
        for key, text in live.items():
            sent = self.streamed.get(key, 0)
            if len(text) > sent:
                self.streamed[key] = len(text)
                yield Entry(0, time.time(), ev.Delta(key, key.rpartition("/")[2], text[sent:]))

    def is_orphan(self, owned: bool, status: str) -> bool:
        """Return whether a started run has had no owner for too many polls."""
        self.orphan_polls = 0 if owned or status == RunStatus.QUEUED else self.orphan_polls + 1
        return self.orphan_polls > MAX_ORPHAN_POLLS


# Records


class LabelledRun(NamedTuple):
    """A recorded outcome, and the report file of the run if that was left as it was."""

    row: OutcomeObject
    outdated_report: Path | None


MAX_TITLE_CHARS = 200
MAX_EXPIRED_RUNS = 20  # removed after one run, so that it does not delay the end of the command


@dataclass(slots=True)
class Removal:
    """Result of removing runs."""

    removed: list[str] = field(default_factory=list)
    kept: dict[str, CouncilError] = field(default_factory=dict)  # run → reason
    freed: int = 0  # bytes returned to the file system


def _word_command(command: str, http: str) -> str:
    """Name a command in a message; HTTP has its own words."""
    return wording(python=f"run `{command}`", cli=f"run `{command}`", http=http)


class RunRecords:
    """Stored runs of one user."""

    def __init__(
        self, folder: Path, env: Mapping[str, str], store: RunStore | None = None, *, keeps_open: bool = False
    ) -> None:
        """`keeps_open`: use the store and connections that runs of this process share, which stay open."""
        self.folder, self.env = folder, env
        self.store_settings: Mapping[str, Any] | None = None
        self._store, self._is_own_store, self._keeps_open = store, store is None, keeps_open
        self._opened = (time.time(), time.monotonic())
        self.on_store_wait: Callable[[str], object] = lambda message: None  # called by another thread
        self._unavailable: StoreError | None = None  # why the store is not open yet

    @property
    def store(self) -> RunStore:
        if self._store is None:
            if self._unavailable:
                raise StoreError(str(self._unavailable))
            address = self.find_store()
            self._store = acquire_store(address) if self._keeps_open else open_store(address)
            self._store.on_wait = lambda message: self.on_store_wait(message)
        return self._store

    async def wait_for_store(self, on_failure: Callable[[StoreError], object]) -> RunStore:
        """Open the store of a server. Wait for a database that cannot be reached; requests get the reason meanwhile."""

        def note(error: StoreError) -> None:
            self._unavailable = error
            on_failure(error)

        if self._store is None:
            self._unavailable = StoreError("the run store is not open yet: try again in a few seconds")
            try:
                store = await open_patiently(self.find_store(), note)
            finally:
                self._unavailable = None
            store.on_wait = lambda message: self.on_store_wait(message)
            self._store = store
        return self._store

    def find_store(self) -> StoreAddress:
        """Return where the runs are stored."""
        settings = load_settings(self.folder, self.env).store if self.store_settings is None else self.store_settings
        return make_store_address(self.env, settings)

    async def close(self) -> None:
        if self._store is None or not self._is_own_store:
            return
        store, self._store = self._store, None
        if self._keeps_open:
            release_store(store)
        elif store.is_shared:
            await close_promptly(store)
        else:
            store.close()

    # Find

    async def resolve_run(self, run: str) -> str:
        """Return the run with this id, or the only run whose id starts with it."""
        names = await self.store.match_runs(run)
        return names[0] if run not in names and len(names) == 1 else run

    async def find_owned_run(self, run: str, owner: str) -> str:
        """Return the run of an owner with this id, or the only one whose id starts with it. Any other is unknown."""
        found = await self.store.list_runs({"owner": owner, "ids": json.dumps([run])})
        if not found and run:
            found = await self.store.list_runs({"owner": owner, "prefix": run}, limit=2)
        if len(found) != 1:
            raise unknown_run(run)
        return found[0]["run"]

    async def newest_run(self) -> str:
        """Return the newest run of this folder."""
        if run := await self.store.find_newest(str(self.folder)):
            return run
        start = wording(python='`client.convene("…")`', cli='`council "…"`')
        raise UnknownRun(f"this folder has no runs yet: start one with {start}")

    async def find_continued_run(self, run: str | None) -> str | None:
        """Return the run to continue: the named one, or the newest of this folder for an empty name."""
        if run != "":
            return run
        try:
            return await self.newest_run()
        except UnknownRun:
            raise UnknownRun(
                "this folder has no run to continue: ask without -c, or name a run of `council runs`"
            ) from None

    async def newest_unfinished_run(self) -> str:
        run = await self.store.find_newest_unfinished(str(self.folder))
        if run is None:
            listing = wording(python="`client.runs()`", cli="`council runs`", http="`council runs`")
            raise UnknownRun(f"this folder has no unfinished run: {listing} lists all runs")
        return run

    async def runs(
        self, *, here: bool = False, status: str | None = None, limit: int | None = None, **named: Any
    ) -> list[RunRow]:
        """Return the runs with their status now, unfinished first, then newest first.

        `here` selects the runs of this folder, `status` one status, or "unfinished"; `owner` and `project` those with
        this name, `evaluation` those that an evaluation made (1) or did not make (0).
        """
        return (await query_history(self.store, self._make_filters(here, status, **named), None, limit))["runs"]

    async def count_runs(self, *, here: bool = False, status: str | None = None, **named: Any) -> int:
        if status in STORED_STATUSES:
            return len(await self.runs(here=here, status=status, **named))
        return await self.store.count_runs(self._make_filters(here, status, **named) | _filter_status(status))

    async def find_runs(self, ids: Iterable[str]) -> list[RunRow]:
        """Return these runs, as `runs` does."""
        return await add_states(self.store, await self.store.list_runs({"ids": json.dumps(list(ids))}))

    async def iter_runs(self, **named: Any) -> AsyncIterator[RunRow]:
        """Yield the runs with these values in pages, as `runs` does."""
        before, filters = None, self._make_filters(False, None, **named)
        while page := await self.store.list_runs(filters, before, PAGE):
            for run in await add_states(self.store, page):
                yield run
            before = page[-1]["run"]

    def _make_filters(self, here: bool, status: str | None, **named: Any) -> dict[str, object]:
        filters: dict[str, object] = {"folder": str(self.folder)} if here else {}
        filters |= {name: value for name, value in named.items() if value is not None}
        if status == UNFINISHED:
            return filters | {"unfinished": 1}
        return filters | ({"status": status} if status else {})

    async def search(
        self, words: Sequence[str], limit: int | None = None, filters: Mapping[str, object] = NO_FILTERS
    ) -> list[RunRow]:
        """Return runs whose question, statements and answer contain all of the words, as `runs` does."""
        await self._index_older_runs()
        return await self.find_runs(await self.store.search_runs(words, limit, filters))

    async def excerpt(self, run: str, words: Sequence[str]) -> str:
        """Return one line of the question, the answer or a statement of a run with these words around it."""
        return make_excerpt(await self.store.list_texts(run), words)

    async def _index_older_runs(self) -> None:
        """Index runs that an older version has stored. Searches read the texts of the others, until all are indexed."""
        count = 0 if self.store.is_read_only else await self.store.count_runs({"indexed": 0})
        if count > RUNS_PER_STEP:
            self.on_store_wait(f"indexing {min(count, MAX_INDEXED):,} of {count:,} older runs for the search")
        for _ in range(0, min(count, MAX_INDEXED), RUNS_PER_STEP):
            if not await self.store.index_older_runs(RUNS_PER_STEP):
                break

    # Read

    async def entries(self, run: str) -> list[Entry]:
        return (await self.store.load(await self.resolve_run(run))).entries

    async def add_weights(self, options: Json) -> Json:
        """Return the options, with the weights of members by their track records if `weights` asks for them."""
        if options.get("weights") != "track-record":
            return options
        return options | {"record_weights": await load_weights(self.store)}

    async def minutes(self, run: str) -> Minutes:
        minutes, _ = await self.load_minutes(run)
        return minutes

    async def load_minutes(self, run: str) -> tuple[Minutes, list[Entry]]:
        """Return the minutes of a run as it is now, and its events."""
        state = await self.run_state(run)  # first: a run that ends in between has not ended, as its reader sees it
        entries = (await self.store.load(state.run)).entries
        return await self.fold(entries, state), entries

    async def fold(self, entries: Sequence[Entry], state: RunState | None = None) -> Minutes:
        """Return the minutes of stored events, with the outcomes of the run and of those that it builds on.

        `state` is that of the run before its events were read.
        """
        minutes = Minutes.fold(entries)
        if state and state.is_active:
            minutes.active = "running" if state.is_running else "queued"
        if minutes.run:
            minutes.outcomes = await self.store.load_outcomes(minutes.run)
        return minutes

    async def record_outcome(self, run: str, label: str, note: str = "") -> LabelledRun:
        """Record how the decision of a run turned out: right, wrong, or the value that was right.

        Its report file is written again, unless someone has changed it.
        """
        run = await self.resolve_run(run)
        known = await self.store.load_outcomes(run)
        row = await label_run(self.store, run, label, note)
        record = await self.store.load(run)
        before, now = Minutes.fold(record.entries), await self.fold(record.entries)
        before.outcomes = known
        return LabelledRun(row, await asyncio.to_thread(rewrite_report, record, before, now))

    async def list_open_decisions(
        self, before: float, *, here: bool = False, limit: int | None = None
    ) -> list[OpenDecision]:
        """Return the complete runs without an outcome from before a time, oldest first, skipped ones last.

        In a shared database, those of this user.
        """
        return await self.store.list_open_decisions(self._filter_own(here) | {"to": before}, limit)

    async def count_open_decisions(self, before: float | None = None, *, here: bool = False) -> int:
        """Return how many decisions `list_open_decisions` has; without a time, all."""
        return await self.store.count_open_decisions(
            self._filter_own(here) | ({} if before is None else {"to": before})
        )

    def _filter_own(self, here: bool) -> dict[str, object]:
        shared = bool(self.find_store().url)
        owner = find_names(self.folder, load_settings(self.folder, self.env).store.get("owner"))[0] if shared else None
        return self._make_filters(here, None, owner=owner)

    async def follow(self, run: str, since: int = 0) -> AsyncIterator[Entry]:
        """Yield the stored events of a run, then new ones until it ends, whichever process executes it."""
        run, cursor = await self.resolve_run(run), FollowCursor(since)
        while True:
            entries, live, status = await self.store.load_since(run, cursor.seq)
            for entry in cursor.iter_new(entries, live):
                yield entry
            if status not in OPEN_STATUSES or (
                not entries and cursor.is_orphan(await self.store.is_locked(run), status)
            ):
                return
            await self.store.wait_for_change(run)

    async def run_state(self, run: str) -> RunState:
        return await self.store.run_state(await self.resolve_run(run))

    async def is_verbose(self, run: str) -> bool:
        """Return whether the run was started with verbose output."""
        record = await self.store.load(await self.resolve_run(run))
        return RunSetup.of(record).verbose

    async def export(self, run: str, write: Callable[[str], object]) -> None:
        """Write everything stored about a run as one JSON object, piece by piece; request bodies are base64."""
        await self.store.export_run(await self.resolve_run(run), write)

    async def rename(self, run: str, title: str) -> str:
        """Give a run a title, which lists show instead of its question; an empty title removes it. Return the run."""
        shown = redact_text(" ".join(title.split()))
        if len(shown) > MAX_TITLE_CHARS:
            raise UsageError(f"the title has {len(shown)} characters: use at most {MAX_TITLE_CHARS}")
        run = (await self.run_state(run)).run
        await self.store.write(run, [("rename", (shown or None,))])
        return run

    async def _remove(self, run: str, forks: Mapping[str, str]) -> str:
        """Delete a run and its report in the data folder. `forks` has the parent runs of unfinished forks."""
        run = await self.resolve_run(run)
        async with self.store.lock_run(run):
            if (await self.store.run_state(run)).stored is RunStatus.QUEUED:
                raise RunConflict(
                    f"run {run} is queued, so it was not removed: {_word_command(f'council cancel {run}', 'cancel it')} first"
                )
            if fork := next((fork for fork, parent in forks.items() if parent == run), None):
                commands = f"council resume {fork}` or `council runs rm {fork}"
                raise RunConflict(
                    f"run {run} was not removed, because the unfinished fork {fork} uses its answers: "
                    f"{_word_command(commands, 'resume or delete the fork')} first"
                )
            reports = await self.store.list_report_paths(run)
            await self.store.delete_run(run)
        for path in reports:
            if path.parent == self.store.folder.absolute() / DATA_REPORTS:
                path.unlink(missing_ok=True)
        return run

    async def remove_all(self, runs: Sequence[str], *, may_rewrite: bool = True) -> Removal:
        """Delete runs and shrink the store. Runs in use are kept, with the reason."""
        done = Removal()
        if not runs:
            return done
        forks = await self.store.list_unfinished_forks()
        size = await self.store.size()
        for run in runs:
            try:
                done.removed.append(await self._remove(run, forks))
                forks.pop(done.removed[-1], None)
            except CouncilError as error:
                done.kept[run] = error
        if done.removed:
            await self.store.shrink(may_rewrite=may_rewrite)
            done.freed = max(0, size - await self.store.size())
        return done

    async def select_old_runs(
        self, before: float | None, keep: int, *, here: bool = False, limit: int | None = None, owner: str | None = None
    ) -> list[RunRow]:
        """Return the finished runs from before a time, without the newest `keep` ones, newest first."""
        filters = self._make_filters(here, None, owner=owner)
        if before is not None and not keep:
            older = await self.store.list_runs(filters | {"ended_before": before}, limit=limit)
        else:
            finished = await self.store.list_runs(filters | {"unfinished": 0})
            older = [run for run in finished[keep:] if before is None or run["created"] < before][:limit]
        return await add_states(self.store, older)

    async def select_expired_runs(
        self, settings: Settings, *, here: bool = False, limit: int | None = None
    ) -> list[RunRow]:
        """Return the finished runs that are older than `[store] keep_days`. A project file decides about its folder
        only.

        In a shared database, a user decides about the own runs only.
        """
        days = settings.store.get("keep_days")
        if days is None:
            return []
        here |= settings.origins["store.keep_days"].kind is OriginKind.PROJECT_FILE
        opened, since = self._opened  # a clock that is set forward during a run removes nothing
        now = min(time.time(), opened + time.monotonic() - since)
        owner = find_names(self.folder, settings.store.get("owner"))[0] if self.find_store().url else None
        return await self.select_old_runs(now - days * DAY_S, 0, here=here, limit=limit, owner=owner)

    async def remove_expired_runs(self, settings: Settings) -> None:
        """Delete a few runs that are older than `[store] keep_days`."""
        old = await self.select_expired_runs(settings, limit=MAX_EXPIRED_RUNS)
        await self.remove_all([run["run"] for run in old], may_rewrite=False)

    # Human members

    async def open_asks(self, run: str | None = None) -> list[OpenQuestion]:
        """Return the open questions to people, of one run or of all, each with the fields to fill in."""
        rows = await self.store.list_open_asks(await self.resolve_run(run) if run else None)
        return [{**row, "fields": form_fields(row["schema"])} for row in rows]

    async def answer(self, run: str, key: str, text: str) -> bool:
        """Store a person's answer: text, or JSON for fields; an empty one abstains. Return whether it was in time.

        Secrets in it are masked, because it is sent to the other members.
        """
        run = await self.resolve_run(run)
        questions = [row for row in await self.store.list_open_asks(run) if row["key"] == key]
        if not questions:
            raise UsageError(
                f"run {run} has no open question {quote_value(key)}: it was answered, or the run has ended"
            )
        return await self.store.save_answer(run, key, fill_form(questions[0]["schema"], redact_text(text)))


def _has_store(env: Mapping[str, str]) -> bool:
    """Return whether there is a store, without creating one."""
    if (data_folder(env) / "council.db").is_file():
        return True
    try:
        return bool(find_store_address(env).url)
    except UsageError:
        return False


def _list_similar(run: str, env: Mapping[str, str], filters: Mapping[str, object] = NO_FILTERS) -> list[StoredRun]:
    """Return the runs whose id starts with this, without creating a store."""
    if not _has_store(env):
        return []

    async def read() -> list[StoredRun]:
        store = open_store(find_store_address(env))
        try:
            return await store.list_runs({"prefix": run, **filters}, limit=PAGE)
        finally:
            store.close()

    return asyncio.run(read())


def is_stored_run(run: str, env: Mapping[str, str]) -> bool:
    """Return whether a run has this id, or is the only one whose id starts with it."""
    try:
        found = [row["run"] for row in _list_similar(run, env)] if run else []
    except UsageError:
        return False
    return run in found or len(found) == 1


def list_run_titles(env: Mapping[str, str], prefix: str) -> dict[str, str]:
    """Return runs with their titles or questions, to complete an id; none without a store that can be read.

    Runs of evaluations are left out.
    """
    with suppress(CouncilError):
        rows = _list_similar(prefix, env, filter_evaluations(False))
        return {row["run"]: single_line(row["title"] or row["question"], 60) for row in rows}
    return {}
