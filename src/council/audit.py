"""The invariants of a run's record, as `council runs fsck` holds them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from council import events as ev
from council.events import Entry
from council.record import Attempt, Record


def audit(record: Record, report: Callable[[Sequence[Entry]], str]) -> list[str]:
    """What does not hold. Nothing here asks a model or changes a row."""
    checks = (_sequence(record), _results(record), _attempts(record), _phases(record), _report(record, report))
    return [problem for check in checks for problem in check]


def _sequence(record: Record) -> Iterator[str]:
    for expected, entry in enumerate(record.entries, 1):
        if entry.seq != expected:
            yield f"the events have a gap: number {expected} is missing"
            return


def _results(record: Record) -> Iterator[str]:
    """Each result has a step, an intent whose answer was kept, and a statement that tells of it."""
    told = [entry.event.key for entry in record.entries if isinstance(entry.event, (ev.Stated, ev.LookedUp))]
    for key in record.results:
        if key not in record.steps:
            yield f'the result "{key}" has no step'
        if told.count(key) != 1:
            yield f'the result "{key}" is told of {told.count(key)} times, not once'
        effect = key.endswith(("/look", "/search"))
        if not effect and not any(_answered(attempt) for attempt in record.attempts.get(key, [])):
            yield f'the result "{key}" has no intent with an answer'
    for key in set(told) - record.results.keys():
        yield f'the statement "{key}" has no result'


def _attempts(record: Record) -> Iterator[str]:
    """Nothing is asked after its answer was accepted."""
    for key, attempts in record.attempts.items():
        if [attempt.n for attempt in attempts] != list(range(1, len(attempts) + 1)):
            yield f'the attempts of "{key}" are not numbered from 1 without a gap'
        if key in record.results and not _answered(attempts[-1]):
            yield f'"{key}" was asked again after its result was kept'
        if key not in record.steps:
            yield f'the attempts of "{key}" belong to no step'


def _answered(attempt: Attempt) -> bool:
    return attempt.result is not None and "text" in attempt.result


def _phases(record: Record) -> Iterator[str]:
    """A phase's end is kept before the next phase's first request, and nobody is asked in it afterwards."""
    ended: set[str] = set()
    for event in (entry.event for entry in record.entries):
        if isinstance(event, ev.PhaseEnded):
            ended.add(event.phase)
        elif isinstance(event, ev.Asked) and event.phase in ended:
            yield f'"{event.key}" was asked after its phase had ended'
    for phase in ended ^ record.phases.keys():
        yield f'the end of the phase "{phase}" is told of or kept, but not both'


def _report(record: Record, report: Callable[[Sequence[Entry]], str]) -> Iterator[str]:
    last = record.entries[-1].event if record.entries else None
    if not isinstance(last, ev.Closed):
        if record.status != "running":
            yield f"the run is called {record.status}, but its last event is not its end"
        return
    if report(record.entries) != record.report:
        yield "the report rebuilt from the ledger is not the one that was kept"
    if record.status != last.status:
        yield f"the run is called {record.status}, but its end says {last.status}"
