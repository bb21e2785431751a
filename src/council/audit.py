"""The invariants of a run's record, as `council runs fsck` holds them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal

from council import events as ev
from council.events import Entry
from council.money import Price, dollars, exact, nanos, shown
from council.record import Attempt, Record, Spent
from council.types import Json, Usage


def audit(record: Record, report: Callable[[Sequence[Entry]], str]) -> list[str]:
    """What does not hold. Nothing here asks a model or changes a row."""
    checks = (
        _sequence(record),
        _results(record),
        _attempts(record),
        _phases(record),
        _bills(record),
        _budget(record),
        _report(record, report),
    )
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
        free = key.endswith(("/look", "/search")) or (key not in record.attempts and record.setup.get("fork"))
        if not free and not any(_answered(attempt) for attempt in record.attempts.get(key, [])):
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


def _bills(record: Record) -> Iterator[str]:
    """Each bill is what its answer used at the price of that time, and the bills that were told of are those in the books."""
    for (key, n), spent in record.spending.items():
        attempts = record.attempts.get(key, [])
        if spent.price is None or n > len(attempts):  # nobody knows its price, or it was held and never sent
            continue
        result = attempts[n - 1].result
        if result is not None and spent.charged is None:
            yield f'request {n} of "{key}" came back and was never charged'
        elif (due := _due(result, spent)) is not None and due != spent.charged:
            yield f'request {n} of "{key}" was charged {shown(dollars(spent.counts))}, but used {shown(dollars(due))}'
    told = sum(nanos(Decimal(str(event.usd))) for event in _events(record) if isinstance(event, ev.Billed))
    charged = sum(spent.charged or 0 for spent in record.spending.values())
    if told != charged:
        yield f"the bills told of come to {shown(dollars(told))}, those in the books to {shown(dollars(charged))}"
    for event in _events(record):
        if isinstance(event, ev.Attempted) and event.most and (event.key, event.n) not in record.spending:
            yield f'request {event.n} of "{event.key}" left without money held for it'


def _due(result: Json | None, spent: Spent) -> int | None:
    """What an answer's own count comes to; None where nobody counted."""
    used = (result or {}).get("usage")
    if used is None or used.get("unknown"):
        return None
    return nanos(exact(Usage.from_json(used), Price.from_json(spent.price or {})))


def _budget(record: Record) -> Iterator[str]:
    """Never more than the cap; of several, than the highest that was ever in force."""
    caps = [event.plan.get("cap") for event in _events(record) if isinstance(event, ev.Convened)]
    caps += [event.cap for event in _events(record) if isinstance(event, ev.Resumed)]
    spent = sum(row.counts for row in record.spending.values())
    known = [float(cap) for cap in caps if cap is not None]
    if known and len(known) == len(caps) and spent > nanos(Decimal(str(max(known)))):
        yield f"the run cost {shown(dollars(spent))}, more than its cap of {shown(max(known))}"


def _events(record: Record) -> Iterator[ev.Event]:
    return (entry.event for entry in record.entries)


def _report(record: Record, report: Callable[[Sequence[Entry]], str]) -> Iterator[str]:
    last = record.entries[-1].event if record.entries else None
    if not isinstance(last, ev.Closed):
        if record.status not in ("queued", "running"):
            yield f"the run is called {record.status}, but its last event is not its end"
        return
    if report(record.entries) != record.report:
        yield "the report rebuilt from the ledger is not the one that was kept"
    if record.status not in ("queued", last.status):  # queued again after it had ended
        yield f"the run is called {record.status}, but its end says {last.status}"
