"""Library: `batch`, the rows of a batch as they end."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, Unpack

from council import protocols
from council.doors.library import RunOptions, as_flag, check_members, check_names, explicit
from council.doors.task_stream import TaskStream, iterate_results
from council.errors import UsageError
from council.render.report_object import Report
from council.runs.batch import DEFAULT_CONCURRENCY, BatchSettings, QuestionBatch
from council.runs.batch_output import BatchObject, BatchOutput, EndedRow, Summary
from council.runs.batch_rows import Problems, Row, RowTable, convert_options, detect_csv, make_row, read_rows
from council.runs.outcome import StopEvent
from council.runs.service import Convener
from council.runs.waves import Waves

Rows = str | PathLike[str] | Iterable[Mapping[str, Any]]
NOT_OF_ROWS = ("folder", "config", "env", "members", "trust", "max_cost")  # arguments that are not options of a row


@dataclass(frozen=True, slots=True)
class BatchRow:
    """A row of a batch that has ended. `error` says why it is not complete."""

    id: str
    run: str | None
    status: str
    error: str | None
    report: Report | None


class BatchStream(TaskStream[BatchRow]):
    """The rows of a batch as they end.

    The batch is a separate task; closing the stream stops it, and it can be continued.
    """

    def __init__(
        self,
        rows: Rows,
        output: Path,
        options: Mapping[str, Any],
        concurrency: int,
        sample: int | None,
        slow: bool = False,
    ) -> None:
        super().__init__(self._iterate())
        self._rows, self._output, self._sample = rows, output, sample
        given = {
            name: as_flag(value) for name, value in options.items() if name not in NOT_OF_ROWS and value is not None
        }
        if isinstance(protocol := options.get("protocol"), protocols.Protocol):
            protocols.register(protocol)
            given["protocol"] = protocol.name
        config, folder = options.get("config"), options.get("folder")
        self._folder = Path(folder) if folder else None
        self._settings = BatchSettings(
            convert_options(given),
            {"trust": True} if options.get("trust") else {},
            options.get("max_cost"),
            concurrency,
            Path(config) if config else None,
            options.get("env"),
            check_members(options.get("members") or ()),
            waves=Waves(output) if slow else None,
        )
        self._summary: Summary | None = None

    @property
    def summary(self) -> BatchObject:
        """The counts, the cost and the failures (`council.batch/1`), after the last row."""
        if self._summary is None:
            raise UsageError("the batch has not ended, so it has no summary: read its rows first")
        return self._summary.as_json()

    async def _iterate(self) -> AsyncGenerator[BatchRow, None]:
        stop = StopEvent()

        async def work(on_row: Callable[[EndedRow], None]) -> None:
            self._summary = await self._run(stop, on_row)

        async with aclosing(iterate_results(work, stop.set)) as rows:
            async for row in rows:
                report = Report.from_dict(row.report) if row.report else None
                yield BatchRow(row.id, row.run, row.status, row.error, report)

    async def _run(self, stop: StopEvent, on_row: Callable[[EndedRow], None]) -> Summary:
        settings, table = self._settings, self._read_rows()
        records = Convener(self._folder, settings.env, flags=settings.flags, config=settings.config, keeps_open=True)
        try:
            batch = QuestionBatch(table, BatchOutput(self._output), records, settings)
            try:
                await batch.check()
                return await batch.run(stop, on_row)
            finally:
                await batch.close()
        finally:
            await records.close()

    def _read_rows(self) -> RowTable:
        table, problems = RowTable(), Problems()
        if isinstance(self._rows, str | PathLike):
            path = Path(self._rows)
            with path.open("rb") as file:
                is_csv = detect_csv(path.name, file.read(4096))
                file.seek(0)
                table.fill(read_rows(file, problems, is_csv=is_csv), problems)
        else:
            table.fill(_make_rows(self._rows, problems), problems)
        problems.check()
        if self._sample is not None:
            table.keep_sample(self._sample)
        return table


def _make_rows(rows: Iterable[Mapping[str, Any]], problems: Problems) -> Iterator[Row]:
    for number, value in enumerate(rows, 1):
        try:
            yield make_row(value, number)
        except UsageError as error:
            problems.add(f"row {number}", str(error))


@explicit
def batch(
    rows: str | PathLike[str] | Iterable[Mapping[str, Any]],
    output: str | PathLike[str],
    *,
    concurrency: int = DEFAULT_CONCURRENCY,
    sample: int | None = None,
    slow: bool = False,
    **options: Unpack[RunOptions],
) -> BatchStream:
    """Run many questions and return a stream of the rows as they end (`BatchRow`), for `async for`. See
    [Batches](batch.md).

    `rows` is a file, or objects with `question` and optionally `id` and `options`. Each ended row is also a line of the
    file `output`; the same call again continues. The other arguments apply to every row, `max_cost` to the whole batch.
    `slow` sends the requests through the batch interfaces of vendors, at half the price.
    """
    check_names("batch", options, RunOptions.__annotations__)
    return BatchStream(rows, Path(output), options, concurrency, sample, slow)
