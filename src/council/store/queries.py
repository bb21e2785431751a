"""Queries of the run store: removal of runs, questions to people, spending, and whole runs."""

from __future__ import annotations

import base64
import json
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal, TypeVar, cast

from council import events as ev
from council.errors import StoreError, UnknownRun, wording
from council.store import summaries
from council.store.interface import (
    HOLD_KEY,
    Attempt,
    BudgetRefusal,
    Charge,
    Connection,
    DecisionOutcome,
    Hold,
    OpenAsk,
    OpenDecision,
    Record,
    SpendingRow,
    SpentRequest,
    StoredOutcome,
    StoredRun,
    Total,
    WaitingRun,
)
from council.store.summaries import NO_FILTERS, NO_LIMIT, QUESTION
from council.store.texts import TextReader, index_older_runs, list_texts, reset_index, unindex_run
from council.store.texts import search_runs as search_texts
from council.text_cleanup import single_line
from council.types import Outcome, OutcomeLabel, RecordedOutcome, RunOutcomes

R = TypeVar("R")

# Outcomes

OUTCOME_COLUMNS = "run, at, label, value, note, seats"


def save_outcome(db: Connection, run: str, row: DecisionOutcome) -> None:
    """Store the outcome of a run. The one before it is kept among the earlier ones."""
    kept = f"INSERT INTO earlier_outcomes ({OUTCOME_COLUMNS}) SELECT {OUTCOME_COLUMNS} FROM outcomes WHERE run = ?"
    db.execute(kept, (run,))
    db.execute("DELETE FROM outcomes WHERE run = ?", (run,))
    values = (run, row["at"], row["label"], row["value"], row["note"], json.dumps(row["seats"], ensure_ascii=False))
    db.execute(f"INSERT INTO outcomes ({OUTCOME_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)", values)


def select_outcomes(
    db: Connection, run: str | None, table: Literal["outcomes", "earlier_outcomes"] = "outcomes"
) -> list[StoredOutcome]:
    condition = "CAST(?1 AS TEXT) IS NULL OR run = ?1"
    found = db.execute(f"SELECT {OUTCOME_COLUMNS} FROM {table} WHERE {condition} ORDER BY at, run", (run,))
    return [
        {"run": run_id, "at": at, "label": label, "value": value, "note": note, "seats": json.loads(seats)}
        for run_id, at, label, value, note, seats in found.fetchall()
    ]


def load_run_outcomes(db: Connection, run: str) -> RunOutcomes:
    """Return the outcome of a run, and those of the runs that it continues or is a fork of."""
    own = next(iter(select_outcomes(db, run)), None)
    has_any = db.execute("SELECT 1 FROM outcomes LIMIT 1").fetchone()
    return RunOutcomes(own and _select_recorded(own), _load_earlier_labels(db, run) if has_any else {})


def _select_recorded(row: StoredOutcome) -> RecordedOutcome:
    return {"at": row["at"], "label": row["label"], "value": row["value"], "note": row["note"]}


def _load_earlier_labels(db: Connection, run: str) -> dict[str, OutcomeLabel]:
    """Return the outcomes of the runs that a run builds on, the nearest first. A removed run ends the search."""
    found: dict[str, OutcomeLabel] = {}
    seen, left = {run}, _list_parents(db, run) or []
    while left:
        name = left.pop(0)
        if name in seen:
            continue
        seen.add(name)
        parents = _list_parents(db, name)
        if parents is None:
            continue
        for row in select_outcomes(db, name):
            found[name] = row["label"]
        left += parents
    return found


def _list_parents(db: Connection, run: str) -> list[str] | None:
    """Return the run that a stored run continues and the one that it is a fork of; None for a removed run."""
    query = """SELECT (SELECT body FROM events e WHERE e.run = r.id AND e.type = 'convened' ORDER BY e.seq LIMIT 1)
               FROM runs r WHERE r.id = ?"""
    row = db.execute(query, (run,)).fetchone()
    if row is None:
        return None
    with _naming_damage(run):
        plan = TextReader(db, run).unpack(row[0])["plan"] if row[0] else {}
    return [name for name in (plan.get("continues"), (plan.get("fork") or {}).get("run")) if name]


SKIPPED = "(SELECT k.at FROM outcome_skips k WHERE k.run = summaries.id)"
ANSWER = "(SELECT json_extract(report, '$.answer') FROM runs r WHERE r.id = summaries.id)"
OPEN_DECISIONS = """FROM summaries WHERE status = 'complete' AND +evaluation = 0
                    AND NOT EXISTS (SELECT 1 FROM outcomes o WHERE o.run = summaries.id)"""


def select_open_decisions(db: Connection, filters: Mapping[str, object], limit: int | None) -> list[OpenDecision]:
    """Return complete runs without an outcome, oldest first; those that were skipped come last."""
    where, values = summaries.make_conditions(filters)
    columns, order = f"id, created, {QUESTION}, {ANSWER}, trust, {SKIPPED}", f"coalesce({SKIPPED}, 0), n"
    query = f"SELECT {columns} {OPEN_DECISIONS} AND {where} ORDER BY {order} LIMIT ?"
    rows = db.execute(query, (*values, NO_LIMIT if limit is None else limit)).fetchall()
    return [
        {"run": run, "created": at, "question": question or "", "answer": answer or "", "trust": trust, "skipped": skip}
        for run, at, question, answer, trust, skip in rows
    ]


def count_open_decisions(db: Connection, filters: Mapping[str, object]) -> int:
    where, values = summaries.make_conditions(filters)
    (count,) = db.execute(f"SELECT count(*) {OPEN_DECISIONS} AND {where}", values).fetchone()
    return int(count)


def skip_outcome(db: Connection, run: str, at: float) -> None:
    db.execute("DELETE FROM outcome_skips WHERE run = ?", (run,))
    db.execute("INSERT INTO outcome_skips (run, at) VALUES (?, ?)", (run, at))


# Runs

RUNS_PER_STEP = 100
RUN_TABLES = (
    *("events", "steps", "results", "intents", "phases", "live", "live_parts", "asks", "texts"),
    *("earlier_outcomes", "outcome_skips"),
)
# Spending rows and their token counts stay after a run is removed, so that totals remain correct.
HAS_SPENDING = "EXISTS (SELECT 1 FROM spending p WHERE p.run = settled.run AND p.key = settled.key AND p.n = settled.n)"


# In SQLite, the totals are read from the rows of the runs. In PostgreSQL, triggers add them up.
KEEP_TOTALS = """INSERT INTO removed_totals (name, provider, kind, value)
                 SELECT name, provider, kind, sum(value) FROM run_totals WHERE run = ? GROUP BY name, provider, kind
                 ON CONFLICT (name, provider, kind) DO UPDATE SET value = value + excluded.value"""


def delete_run(db: Connection, run: str) -> None:
    db.execute(KEEP_TOTALS, (run,))
    unindex_run(db, run, forget_words=True)
    for table in RUN_TABLES:
        db.execute(f"DELETE FROM {table} WHERE run = ?", (run,))
    db.execute(f"DELETE FROM settled WHERE run = ? AND NOT {HAS_SPENDING}", (run,))
    db.execute("UPDATE settled SET body = json_object('usage', json_extract(body, '$.usage')) WHERE run = ?", (run,))
    db.execute("DELETE FROM spending WHERE run = ? AND key = ?", (run, HOLD_KEY))
    db.execute("UPDATE outcomes SET value = '', note = '' WHERE run = ?", (run,))
    db.execute("DELETE FROM runs WHERE id = ?", (run,))


def select_report_paths(db: Connection, run: str) -> list[Path]:
    """Return the absolute paths of the report files of a run."""
    query = """SELECT r.folder, e.body FROM events e JOIN runs r ON r.id = e.run
               WHERE e.run = ? AND e.type IN ('closed', 'verdict')"""
    texts = TextReader(db, run)
    events = [(folder, texts.unpack(body)) for folder, body in db.execute(query, (run,)).fetchall()]
    named = [(folder, event.get("report_path") or event.get("file")) for folder, event in events]
    return [Path(folder, path) for folder, path in dict.fromkeys(named) if path]


UNFINISHED_FORKS = """SELECT id, json_extract(setup, '$.fork.run') FROM runs
           WHERE id IN (SELECT id FROM summaries WHERE status IN ('queued', 'running', 'incomplete', 'failed'))"""
ANSWER_SECONDS = """SELECT s.at - i.at FROM (SELECT id FROM runs ORDER BY created DESC LIMIT 200) r
           JOIN intents i ON i.run = r.id JOIN settled s ON s.run = i.run AND s.key = i.key AND s.n = i.n
           WHERE i.member = ? AND json_extract(s.body, '$.fault') IS NULL"""

# Questions to people

OPEN_ASKS = """SELECT a.run, a.key, a.seat, a.prompt, a.schema, a.at FROM asks a JOIN runs r ON r.id = a.run
          WHERE a.answer IS NULL AND r.status IN ('queued', 'running') AND (CAST(?1 AS TEXT) IS NULL OR a.run = ?1) ORDER BY a.at, a.key"""

# Spending

# What a run holds does not count if the process ended before the run was stored, which takes less than a minute.
COUNTS = "(key <> ? OR at > ? OR run IN (SELECT id FROM runs))"
START_S = 60
SPENT = f"SELECT CAST(coalesce(sum(coalesce(charged, reserved)), 0) AS BIGINT) FROM spending WHERE {COUNTS} AND {{}}"
NOT_THIS = "NOT (run = ? AND ((key = ? AND n = ?) OR key = ?))"
OF_USER = "day = ? AND run IN (SELECT run FROM user_runs WHERE name = ?)"


def reserve_spending(db: Connection, run: str, hold: Hold) -> BudgetRefusal | None:
    """Reserve money within the caps of the run, the day and the user, or return the cap that refuses it.

    The same transaction updates what the run holds for requests that are still to be sent.
    """
    requested = hold.reserved + hold.rest
    for scope, cap, condition, values in (
        ("run", hold.run_cap, "run = ?", (run,)),
        ("day", hold.day_cap, "day = ?", (hold.day,)),
        ("user", hold.user_cap, OF_USER, (hold.day, hold.user)),
    ):
        if cap is None:
            continue
        others = (HOLD_KEY, hold.at - START_S, *values, run, hold.key, hold.n, HOLD_KEY)
        (spent,) = db.execute(SPENT.format(f"{condition} AND {NOT_THIS}"), others).fetchone()
        if spent + requested > cap:
            return BudgetRefusal(scope, cap, spent, requested)
    db.execute(WRITE_STATEMENTS["reserve"], (run, *hold.as_row()))
    if hold.key != HOLD_KEY:
        _update_hold(db, run, hold)
    return None


def _update_hold(db: Connection, run: str, hold: Hold) -> None:
    """Store what the run still holds; nothing if it holds nothing and never did."""
    db.execute("DELETE FROM spending WHERE run = ? AND key = ?", (run, HOLD_KEY))
    if hold.rest:
        row = (HOLD_KEY, 0, "", hold.at, hold.day, hold.price, hold.rest)
        db.execute(WRITE_STATEMENTS["reserve"], (run, *row))


def load_spending(db: Connection, run: str) -> dict[tuple[str, int], SpendingRow]:
    rows = db.execute(
        "SELECT key, n, member, price, reserved, charged, estimated FROM spending WHERE run = ? AND key <> ?",
        (run, HOLD_KEY),
    )
    return {
        (key, n): SpendingRow(member, json.loads(price) if price else None, reserved, charged, Charge(estimated))
        for key, n, member, price, reserved, charged, estimated in rows
    }


def select_spending_since(db: Connection, day: str, user: str | None) -> list[SpentRequest]:
    """Return every request since that day that may cost money, with its use of tokens and what is known of its run."""
    of_user = "" if user is None else " AND p.run IN (SELECT run FROM user_runs WHERE name = ?)"
    found = db.execute(
        f"""SELECT p.run, p.key, p.n, p.member, p.at, p.day, p.reserved, p.charged, p.estimated,
                  s.body IS NOT NULL AND json_extract(s.body, '$.fault') IS NULL,
                  json_extract(s.body, '$.usage'), r.name, r.folder, p.price, r.protocol, r.status, r.cost, r.stops, r.saved
           FROM spending p LEFT JOIN settled s ON s.run = p.run AND s.key = p.key AND s.n = p.n
                           LEFT JOIN summaries r ON r.id = p.run
           WHERE p.day >= ?{of_user} AND (p.key <> ? OR p.at > ? OR r.id IS NOT NULL) ORDER BY p.at""",
        (day, *([] if user is None else [user]), HOLD_KEY, time.time() - START_S),
    )
    return [_make_spent_request(row) for row in found]


def _make_spent_request(values: Sequence[Any]) -> SpentRequest:
    row = dict(zip(SpentRequest.__annotations__, values, strict=True))
    for name in ("usage", "price"):
        row[name] = json.loads(row[name]) if row[name] else None
    return cast(SpentRequest, row)


# Figures for operators

TOTALS = (
    "SELECT name, provider, kind, CAST(sum(value) AS BIGINT) FROM totals GROUP BY name, provider, kind ORDER BY 1, 2, 3"
)
RUNNING = "SELECT id FROM summaries WHERE unfinished = 1 AND status = 'running'"
WAITING_RUNS = """SELECT r.id, coalesce(r.owner, ''), 'default', 0, r.created, coalesce(r.title, r.question, '')
                  FROM summaries r WHERE r.detached = 1 AND r.status IN ('queued', 'running')
                  ORDER BY r.n LIMIT ?"""


def select_totals(db: Connection) -> list[Total]:
    """Return what runs have used since the first one, also removed runs."""
    return [Total(*row) for row in db.execute(TOTALS).fetchall()]


def select_waiting(db: Connection, limit: int) -> list[WaitingRun]:
    """Return the runs that no process executes and that a worker can execute, those that wait longest first.

    In SQLite, a process may own some of them.
    """
    return [WaitingRun(*row) for row in db.execute(WAITING_RUNS, (limit,)).fetchall()]


# Whole runs


@contextmanager
def _naming_damage(run: str) -> Iterator[None]:
    """Raise StoreError if a row of the run cannot be parsed."""
    try:
        yield
    except (ValueError, TypeError, KeyError) as error:
        raise StoreError(
            f"run {run} cannot be read, because a stored row of it is damaged ({error}): "
            f"list the damage with `council runs fsck`, or remove it with `council runs rm {run}`"
        ) from error


SELECT_RUN = "SELECT id, name, folder, created, seed, setup, status, report FROM runs WHERE id = ?"
SELECT_EVENTS = "SELECT seq, at, type, body FROM events WHERE run = ? AND seq > ? ORDER BY seq"
SELECT_STEPS = "SELECT key, fingerprint FROM steps WHERE run = ?"
SELECT_RESULTS = "SELECT key, body FROM results WHERE run = ?"
SELECT_PHASES = "SELECT phase, absences FROM phases WHERE run = ?"


def load_record(db: Connection, run: str) -> Record:
    row = db.execute(SELECT_RUN, (run,)).fetchone()
    if row is None:
        raise unknown_run(run)
    id_, name, folder, created, seed, setup, status, report = row
    texts = TextReader(db, run).read_all()
    with _naming_damage(run):
        record = Record(id_, name, folder, created, seed, texts.unpack_setup(setup), status, report)
        for seq, at, tag, body in db.execute(SELECT_EVENTS, (run, 0)):
            record.entries.append(ev.Entry(seq, at, ev.parse_event(tag, texts.unpack(body))))
        record.steps = dict(db.execute(SELECT_STEPS, (run,)).fetchall())
        for key, body in db.execute(SELECT_RESULTS, (run,)):
            record.results[key] = Outcome.from_json(texts.unpack(body))
        record.attempts = _load_attempts(db, run, texts)
        record.spending = load_spending(db, run)
        for phase, absences in db.execute(SELECT_PHASES, (run,)):
            record.phases[phase] = texts.unpack(absences)
    return record


def unknown_run(run: str) -> UnknownRun:
    listing = wording(python="`client.runs()` lists them", cli="`council runs` lists them", http="list the runs")
    return UnknownRun(f'there is no run "{single_line(run, 80)}": {listing}')


def load_since(db: Connection, run: str, seq: int) -> tuple[list[ev.Entry], dict[str, str], str]:
    status = db.execute("SELECT status FROM runs WHERE id = ?", (run,)).fetchone()
    if status is None:
        raise unknown_run(run)
    texts = TextReader(db, run)
    with _naming_damage(run):
        rows = db.execute(SELECT_EVENTS, (run, seq))
        entries = [ev.Entry(n, at, ev.parse_event(tag, texts.unpack(body))) for n, at, tag, body in rows]
    live: dict[str, str] = {}
    for key, text in db.execute("SELECT key, text FROM live_parts WHERE run = ? ORDER BY key, n", (run,)):
        live[key] = live.get(key, "") + text
    return entries, live, status[0]


SELECT_ATTEMPTS = """SELECT i.key, i.n, i.member, i.body, s.body FROM intents i
           LEFT JOIN settled s ON s.run = i.run AND s.key = i.key AND s.n = i.n
           WHERE i.run = ?1 AND (?2 = '' OR i.key = ?2) AND (i.key, i.n) > (?3, ?4) ORDER BY i.key, i.n LIMIT ?5"""


def load_attempt_page(
    db: Connection, run: str, key: str, after: tuple[str, int], limit: int
) -> tuple[dict[str, list[Attempt]], list[ev.Attempted]]:
    """Return a page of the requests of a run, of one step or of all, and the events of all its requests."""
    query = "SELECT body FROM events WHERE run = ? AND type = 'attempt' ORDER BY seq"
    texts = TextReader(db, run)
    with _naming_damage(run):
        events = [ev.parse_event("attempt", texts.unpack(body)) for (body,) in db.execute(query, (run,))]
        attempts = _load_attempts(db, run, texts, key, after, limit)
    return attempts, [event for event in events if isinstance(event, ev.Attempted)]


def _load_attempts(
    db: Connection, run: str, texts: TextReader, key: str = "", after: tuple[str, int] = ("", 0), limit: int = NO_LIMIT
) -> dict[str, list[Attempt]]:
    attempts: dict[str, list[Attempt]] = {}
    for step, n, member, body, result in db.execute(SELECT_ATTEMPTS, (run, key, *after, limit)):
        request, answer = texts.unpack_request(body), texts.unpack(result) if result else None
        attempts.setdefault(step, []).append(Attempt(n, member, request, answer))
    return attempts


# Export


def export_run(db: Connection, run: str, write: Callable[[str], object]) -> None:
    """Write everything stored about a run as one JSON object. Only one event or request is in memory at a time."""
    row = db.execute(SELECT_RUN, (run,)).fetchone()
    if row is None:
        raise unknown_run(run)
    id_, name, folder, created, seed, setup, status, report = row
    with _naming_damage(run):
        head = {"schema": "council.run/1", "run": id_, "name": name, "folder": folder, "created": created, "seed": seed}
        head |= {"status": status, "setup": TextReader(db, run).unpack_setup(setup), "report": report}
        write(_dump_indented(head)[:-2])
        for name, brackets, items in _list_parts(db, run):
            write(f',\n "{name}": ')
            _write_items(items, brackets, write)
        write("\n}\n")


def _list_parts(db: Connection, run: str) -> Iterator[tuple[str, str, Iterator[tuple[str | None, Any]]]]:
    """Yield name, brackets and items of each list and object of an exported run. An item of a list has no name."""

    def unpack(body: str) -> Any:
        return TextReader(db, run).unpack(body)  # a new reader, which keeps no texts of other rows

    rows = db.execute(SELECT_EVENTS, (run, 0))
    events = (ev.Entry(seq, at, ev.parse_event(tag, unpack(body))) for seq, at, tag, body in rows)
    yield "events", "[]", ((None, entry.as_json()) for entry in events)
    yield "steps", "{}", iter(db.execute(SELECT_STEPS, (run,)))
    results = db.execute(SELECT_RESULTS, (run,))
    yield "results", "{}", ((key, Outcome.from_json(unpack(body)).as_json()) for key, body in results)
    attempts = db.execute(SELECT_ATTEMPTS, (run, "", "", 0, NO_LIMIT))
    yield "attempts", "[]", (
        (None, {"key": key, "n": n, "member": member, "request": base64.b64encode(TextReader(db, run).unpack_request(body)).decode(),
                "result": unpack(result) if result else None})
        for key, n, member, body, result in attempts
    )  # fmt: skip
    yield "phases", "{}", ((phase, unpack(absences)) for phase, absences in db.execute(SELECT_PHASES, (run,)))
    spending = load_spending(db, run)
    yield "spending", "[]", ((None, {"key": key, "n": n, **asdict(spent)}) for (key, n), spent in spending.items())
    if outcomes := [*select_outcomes(db, run, "earlier_outcomes"), *select_outcomes(db, run)]:
        yield "outcomes", "[]", ((None, row) for row in outcomes)


def _write_items(items: Iterator[tuple[str | None, Any]], brackets: str, write: Callable[[str], object]) -> None:
    """Write a list or an object as `json.dumps` with an indent of 1 would."""
    before = brackets[0]
    for name, value in items:
        label = "" if name is None else f"{_dump_indented(name)}: "
        write(f"{before}\n  {label}" + _dump_indented(value).replace("\n", "\n  "))
        before = ","
    write(brackets if before != "," else f"\n {brackets[1]}")


_dump_indented = json.JSONEncoder(ensure_ascii=False, indent=1).encode

# Writing

INSERTED = {
    # kind: table, columns; the first one is the run
    "run": ("runs", "id name folder created seed setup"),
    "event": ("events", "run seq at type body"),
    "step": ("steps", "run key fingerprint"),
    "result": ("results", "run key body"),
    "intent": ("intents", "run key n member body at"),
    "settled": ("settled", "run key n body at"),
    "phase": ("phases", "run phase absences"),
    "text": ("texts", "run n body"),
    "live": ("live_parts", "run key n text"),
    "reserve": ("spending", "run key n member at day price reserved"),
    "user_run": ("user_runs", "run name"),
    "request": ("idempotency", "run owner key digest at"),
}
ON_CONFLICT = {
    "reserve": """ON CONFLICT (run, key, n) DO UPDATE SET member = excluded.member, at = excluded.at, day = excluded.day,
                  price = excluded.price, reserved = excluded.reserved, charged = NULL, estimated = 0"""
}


def make_insert(kind: str, rows: str) -> str:
    """Return the statement that inserts rows of a kind, for the placeholders of their values."""
    table, columns = INSERTED[kind]
    return f"INSERT INTO {table} ({columns.replace(' ', ', ')}) VALUES {rows} {ON_CONFLICT.get(kind, '')}"


WRITE_STATEMENTS = {
    **{kind: make_insert(kind, f"({', '.join('?' * len(names.split()))})") for kind, (_, names) in INSERTED.items()},
    "queue": "INSERT INTO runs (id, name, folder, created, seed, setup, status, detached) VALUES (?, ?, ?, ?, ?, ?, 'queued', 1)",
    "withdraw_attempt": "DELETE FROM intents WHERE run = ? AND key = ? AND n = ?",
    "discard_stream": "DELETE FROM live_parts WHERE run = ? AND key = ?",
    "discard_streams": "DELETE FROM live_parts WHERE run = ?",
    "close": "UPDATE runs SET status = ?2, report = ?3, cancel = 0 WHERE id = ?1",
    "reopen": "UPDATE runs SET status = 'running', report = '' WHERE id = ?1",  # keeps `cancel`, which may have been set since
    "detach": "UPDATE runs SET status = 'queued', detached = 1, cancel = 0, setup = ?2 WHERE id = ?1",
    "cancel": "UPDATE runs SET cancel = 1 WHERE id = ?1 AND status IN ('queued', 'running')",
    "rename": "UPDATE runs SET title = ?2 WHERE id = ?1",
    "release": "DELETE FROM spending WHERE run = ? AND key = ? AND n = ? AND charged IS NULL",
    "charge": "UPDATE spending SET charged = ?4, estimated = ?5 WHERE run = ?1 AND key = ?2 AND n = ?3",
    "ask": """INSERT INTO asks (run, key, seat, prompt, schema, at) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (run, key) DO UPDATE
              SET seat = excluded.seat, prompt = excluded.prompt, schema = excluded.schema, at = excluded.at, answer = NULL""",
    "withdraw": "DELETE FROM asks WHERE run = ?1 AND key = ?2 AND answer IS NULL",
}

# Reading


class RunQueries(ABC):
    """What can be asked about stored runs. Reads take no lock."""

    folder: Path  # for the files of this machine

    @abstractmethod
    async def _read(self, work: Callable[[Connection], R], *, after_own_writes: bool = True) -> R: ...

    @abstractmethod
    async def _write(self, run: str, work: Callable[[Connection], R]) -> R: ...

    async def _select(self, query: str, *values: object, after_own_writes: bool = True) -> list[Any]:
        """Return the rows of a query."""
        return await self._read(lambda db: db.execute(query, values).fetchall(), after_own_writes=after_own_writes)

    async def load(self, run: str) -> Record:
        return await self._read(lambda db: load_record(db, run))

    async def match_runs(self, run: str) -> list[str]:
        """Return the ids that start with `run`, an exact match first; none for an empty string."""
        query = "SELECT id FROM summaries WHERE ?1 != '' AND id >= ?1 AND id < ?2 ORDER BY id != ?1, n"
        return [row[0] for row in await self._select(query, run, f"{run}{chr(sys.maxunicode)}")]

    async def find_used_ids(self, runs: Sequence[str]) -> list[str]:
        """Return those of these ids that a run has, or a removed run had: its spending is kept."""
        query = """SELECT id FROM runs WHERE id IN (SELECT value FROM json_each(?1))
                   UNION SELECT run FROM spending WHERE run IN (SELECT value FROM json_each(?1))"""
        return [row[0] for row in await self._select(query, json.dumps(list(runs)))]

    async def is_cancelled(self, run: str) -> bool:
        query = "SELECT 1 FROM runs WHERE id = ? AND cancel = 1"
        return bool(await self._select(query, run, after_own_writes=False))

    async def list_runs(
        self, filters: Mapping[str, object] = NO_FILTERS, before: str | None = None, limit: int | None = None
    ) -> list[StoredRun]:
        """Return summaries of runs, unfinished first, then newest; `before` is the last run of the previous page."""
        return await self._read(lambda db: summaries.select_summaries(db, filters, before, limit))

    async def count_runs(self, filters: Mapping[str, object]) -> int:
        return await self._read(lambda db: summaries.count_summaries(db, filters))

    async def answer_seconds(self, member: str) -> list[float]:
        """Return how long the answers of a member took, in the last 200 runs."""
        return [seconds for (seconds,) in await self._select(ANSWER_SECONDS, member)]

    async def list_detached(self) -> list[str]:
        """Return detached runs that are queued, or still running after their worker died, oldest first."""
        return [row[0] for row in await self._select(summaries.OPEN_DETACHED)]

    async def list_ended_detached(self, limit: int) -> list[str]:
        """Return the newest complete detached runs."""
        return [row[0] for row in await self._select(summaries.ENDED_DETACHED, limit)]

    async def load_attempts(
        self, run: str, key: str, after: tuple[str, int], limit: int
    ) -> tuple[dict[str, list[Attempt]], list[ev.Attempted]]:
        """Return requests of a run after this step and number, and the events of all its requests."""
        return await self._read(lambda db: load_attempt_page(db, run, key, after, limit))

    async def load_since(self, run: str, seq: int) -> tuple[list[ev.Entry], dict[str, str], str]:
        """Return the events after `seq`, the text streaming now by key, and the run's status."""
        return await self._read(lambda db: load_since(db, run, seq))

    async def list_open_asks(self, run: str | None = None) -> list[OpenAsk]:
        """Return the unanswered questions of one run or of all, oldest first."""
        return [
            {"run": run_id, "key": key, "seat": seat, "prompt": prompt, "schema": json.loads(schema), "at": at}
            for run_id, key, seat, prompt, schema, at in await self._select(OPEN_ASKS, run)
        ]

    async def save_answer(self, run: str, key: str, text: str) -> bool:
        """Save an answer and return whether the question was still open; the first answer counts."""
        query = "UPDATE asks SET answer = ? WHERE run = ? AND key = ? AND answer IS NULL"
        return await self._write(run, lambda db: db.execute(query, (text, run, key)).rowcount == 1)

    async def get_answer(self, run: str, key: str, prompt: str) -> str | None:
        """Return the answer to this exact prompt, or None."""
        query = "SELECT answer FROM asks WHERE run = ? AND key = ? AND prompt = ?"
        rows = await self._select(query, run, key, prompt, after_own_writes=False)
        return rows[0][0] if rows else None

    async def search_runs(
        self, words: Sequence[str], limit: int | None = None, filters: Mapping[str, object] = NO_FILTERS
    ) -> list[str]:
        """Return runs that contain all of these words and match every filter, in the order of lists."""
        return await self._read(lambda db: search_texts(db, words, limit, filters))

    async def list_texts(self, run: str) -> list[str]:
        return await self._read(lambda db: list_texts(db, run))

    async def index_older_runs(self, count: int) -> int:
        """Index runs of an older version for the search. Return how many: 0 if none is left."""
        return await self._write("", lambda db: index_older_runs(db, count))

    async def rebuild_search(self) -> None:
        """Index all runs again, in small transactions."""
        await self._write("", reset_index)
        while await self.index_older_runs(RUNS_PER_STEP):
            pass

    async def export_run(self, run: str, write: Callable[[str], object]) -> None:
        """Write everything stored about a run as one JSON object. `write` is called by another thread."""
        await self._read(lambda db: export_run(db, run, write))

    async def list_unfinished_forks(self) -> dict[str, str]:
        """Return the unfinished forks with their parent runs, whose answers they still reuse."""
        return {fork: parent for fork, parent in await self._select(UNFINISHED_FORKS) if parent}

    async def list_report_paths(self, run: str) -> list[Path]:
        return await self._read(lambda db: select_report_paths(db, run))

    async def find_newest(self, folder: str) -> str | None:
        return await self._read(lambda db: summaries.select_newest(db, folder))

    async def find_newest_unfinished(self, folder: str) -> str | None:
        rows = await self._select(summaries.NEWEST_RESUMABLE, folder, summaries.RESUMABLE)
        return rows[0][0] if rows else None

    async def save_outcome(self, run: str, row: DecisionOutcome) -> None:
        """Store how the decision of a run turned out. The newest outcome counts; the earlier ones are kept."""
        await self._write("", lambda db: save_outcome(db, run, row))

    async def list_outcomes(self, run: str | None = None) -> list[StoredOutcome]:
        """Return the outcome of one run, or of all runs, oldest first."""
        return await self._read(lambda db: select_outcomes(db, run))

    async def list_earlier_outcomes(self, run: str) -> list[StoredOutcome]:
        """Return the outcomes of a run that a later one has replaced, oldest first."""
        return await self._read(lambda db: select_outcomes(db, run, "earlier_outcomes"))

    async def load_outcomes(self, run: str) -> RunOutcomes:
        """Return the outcome of a run, and those of the runs that it builds on."""
        return await self._read(lambda db: load_run_outcomes(db, run))

    async def list_open_decisions(
        self, filters: Mapping[str, object] = NO_FILTERS, limit: int | None = None
    ) -> list[OpenDecision]:
        """Return complete runs without an outcome that match every filter, oldest first, skipped ones last."""
        return await self._read(lambda db: select_open_decisions(db, filters, limit))

    async def count_open_decisions(self, filters: Mapping[str, object] = NO_FILTERS) -> int:
        return await self._read(lambda db: count_open_decisions(db, filters))

    async def skip_outcome(self, run: str) -> None:
        """Put a run last among those without an outcome."""
        await self._write("", lambda db: skip_outcome(db, run, time.time()))

    async def read_totals(self) -> list[Total]:
        """Return what runs have used, also removed ones."""
        return await self._read(select_totals)

    async def sum_day(self, day: str, user: str | None = None) -> int:
        """Return what the runs of a day, or those of a user, have spent, reserved and hold."""
        condition, values = ("day = ?", (day,)) if user is None else (OF_USER, (day, user))
        ((spent,),) = await self._select(SPENT.format(condition), HOLD_KEY, time.time() - START_S, *values)
        return int(spent)

    async def list_spending(self, day: str, user: str | None = None) -> list[SpentRequest]:
        """Return every request since that day that may cost money, of one user or of all, oldest first."""
        return await self._read(lambda db: select_spending_since(db, day, user))
