"""Stores with one fault each, as a negative control: the crash trials have to notice them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from council.store.interface import Connection, Record, Row
from council.store.sqlite import SqliteStore

KEPT_LATE = ("result", "settled", "phase")


def _has_any(rows: Iterable[Row], tables: Sequence[str]) -> bool:
    return any(table in tables for table, _ in rows)


class KeepsResultsInMemory(SqliteStore):
    """Answers and ends of phases are written when the run closes."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._late: list[Row] = []

    def post(self, run: str, rows: Sequence[Row], *, may_wait: bool = False) -> None:
        if _has_any(rows, KEPT_LATE):
            self._late += rows
        else:
            super().post(run, rows, may_wait=may_wait)

    async def write(self, run: str, rows: Sequence[Row]) -> None:
        if _has_any(rows, KEPT_LATE):
            self._late += rows
        elif _has_any(rows, ["close"]):
            late, self._late = self._late, []
            await super().write(run, [*late, *rows])
        else:
            await super().write(run, rows)


class RecordsRequestsLate(SqliteStore):
    """A request is recorded together with its answer, after it was sent."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._late: dict[object, list[Row]] = {}  # by step

    async def write(self, run: str, rows: Sequence[Row]) -> None:
        if intents := [values for table, values in rows if table == "intent"]:
            self._late[intents[0][0]] = list(rows)
        else:
            await super().write(run, rows)

    def post(self, run: str, rows: Sequence[Row], *, may_wait: bool = False) -> None:
        keys = [values[0] for table, values in rows if table == "settled"]
        late = [row for key in keys for row in self._late.pop(key, [])]
        super().post(run, [*late, *rows], may_wait=may_wait)


class AcknowledgesEarly(SqliteStore):
    """A write returns before its rows are stored: the next write stores them."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._late: list[Row] = []

    async def write(self, run: str, rows: Sequence[Row]) -> None:
        late, self._late = self._late, list(rows)
        if late:
            await super().write(run, late)
        if _has_any(rows, ["run", "close"]):
            late, self._late = self._late, []
            await super().write(run, late)


class ForgetsUnfinishedPhase(SqliteStore):
    """A resume deletes the answers of the phase that had not ended, and asks for them again."""

    async def load(self, run: str) -> Record:
        record = await super().load(run)
        keys = [key for key in record.attempts if key.rpartition("/")[0] not in record.phases]
        if not keys or record.status != "running":
            return record

        def delete(db: Connection) -> None:
            for key in keys:
                for table in ("results", "settled"):
                    db.execute(f"DELETE FROM {table} WHERE run = ? AND key = ?", (run, key))
                db.execute(
                    "DELETE FROM events WHERE run = ? AND type = 'statement' AND json_extract(body, '$.key') = ?",
                    (run, key),
                )

        await self._write(run, delete)
        return await super().load(run)


class ForgetsRejectedAnswers(SqliteStore):
    """A resume does not see the absences of the phase that had not ended, nor the answers of their steps."""

    async def load(self, run: str) -> Record:
        record = await super().load(run)
        if record.status != "running":
            return record
        for key in [key for key in record.attempts if key not in record.results]:
            if key.rpartition("/")[0] not in record.phases:
                for attempt in record.attempts[key]:
                    if attempt.has_answer:
                        attempt.result = {
                            "fault": "server",
                            "detail": "",
                            "said": "",
                            "retry_after": None,
                            "given_up": True,
                        }
        return record
