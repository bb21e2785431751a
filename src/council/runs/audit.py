"""Consistency checks of a run's record, for `council runs fsck`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal

from council import events as ev
from council.calling.budget import load_price
from council.engine.ledger import count_calls, ends_with_rejections
from council.errors import StoreError
from council.events import Entry
from council.money import exact_cost, format_usd, nanos_to_usd, usd_to_nanos
from council.planning.setup import RunSetup
from council.store.interface import OPEN_STATUSES, Attempt, AttemptResult, Record, RunStatus, SpendingRow
from council.types import Usage
from council.version import RULES, __version__

RULES_CHANGED = "the rules have changed since, so its report and verdict are not recomputed"


def is_ours(record: Record) -> bool:
    """Return whether this version of council made the run, with the present rules."""
    setup = RunSetup.of(record)
    return setup.version == __version__ and setup.rules == RULES


def describe_version(record: Record) -> str:
    return f"council {RunSetup.of(record).version or 'of an unknown version'}"


def require_first_event(record: Record) -> None:
    """Raise StoreError if a repaired store has lost the start of a run, which cannot be continued then."""
    if not record.entries or not isinstance(record.entries[0].event, ev.Convened):
        raise StoreError(
            f"run {record.run} is damaged: its first event is missing, so it cannot be continued: "
            f"see `council runs fsck`, or remove it with `council runs rm {record.run}`"
        )


def audit_record(record: Record, report: Callable[[Sequence[Entry]], str]) -> list[str]:
    """Return the problems found. Reads only; calls no model."""
    checks = (
        _check_sequence(record),
        _check_results(record),
        _check_attempts(record),
        _check_rejections(record) if is_ours(record) else (),  # with older rules, rejected answers were asked for again
        _check_phases(record),
        _check_bills(record),
        _check_budget(record),
        _check_calls(record),
        _check_report(record, report),
    )
    return [problem for check in checks for problem in check]


def _check_sequence(record: Record) -> Iterator[str]:
    for expected, entry in enumerate(record.entries, 1):
        if entry.seq != expected:
            yield f"the events have a gap: number {expected} is missing"
            return


def _check_results(record: Record) -> Iterator[str]:
    """Check that each result has a step, an answered attempt and exactly one event."""
    keys = [entry.event.key for entry in record.entries if isinstance(entry.event, (ev.Stated, ev.LookedUp))]
    is_fork = RunSetup.of(record).fork is not None
    for key in record.results:
        if key not in record.steps:
            yield f'the result "{key}" has no step'
        if keys.count(key) != 1:
            yield f'the result "{key}" has {keys.count(key)} events, not 1'
        free = key.endswith(("/look", "/search", "/join")) or (key not in record.attempts and is_fork)
        if not free and not any(one.result and "text" in one.result for one in record.attempts.get(key, [])):
            yield f'the result "{key}" has no attempt with an answer'
    for key in set(keys) - record.results.keys():
        yield f'the statement "{key}" has no result'


def _check_attempts(record: Record) -> Iterator[str]:
    """Check that attempts are numbered, belong to a step, and end with the accepted answer."""
    stated, before_result = set[str](), set[tuple[str, int]]()
    for event in _iter_events(record):
        if isinstance(event, ev.Stated):
            stated.add(event.key)
        elif isinstance(event, ev.Attempted) and event.key not in stated:
            before_result.add((event.key, event.n))
    for key, attempts in record.attempts.items():
        if [attempt.n for attempt in attempts] != list(range(1, len(attempts) + 1)):
            yield f'the attempts of "{key}" are not numbered from 1 without a gap'
        if key not in record.steps:
            yield f'the attempts of "{key}" belong to no step'
        if key in record.results and attempts and (key, attempts[-1].n) not in before_result:
            yield f'"{key}" was asked again after its result was stored'


def _check_rejections(record: Record) -> Iterator[str]:
    """Check that no step is asked again whose answers were all rejected, unless its run lacked answers."""
    rejected: set[str] = set()
    answers: dict[str, list[Attempt]] = {}  # attempts of each step since its run last ended
    for event in _iter_events(record):
        if isinstance(event, ev.Attempted):
            if event.key in rejected:
                yield f'"{event.key}" was asked again after its answers were rejected'
            answers.setdefault(event.key, []).extend(record.attempts.get(event.key, [])[event.n - 1 : event.n])
        elif isinstance(event, ev.WasAbsent) and ends_with_rejections(answers.get(event.key, [])):
            rejected.add(event.key)
        elif isinstance(event, ev.Closed) and event.lacks_answers:
            rejected.clear()
            answers.clear()


def _check_phases(record: Record) -> Iterator[str]:
    """Check that no seat is asked in a phase that has ended, and that each end has both an event and a row."""
    ended: set[str] = set()
    for event in (entry.event for entry in record.entries):
        if isinstance(event, ev.PhaseEnded):
            ended.add(event.phase)
        elif isinstance(event, ev.Asked) and event.phase in ended:
            yield f'"{event.key}" was asked after its phase had ended'
    for phase in ended ^ record.phases.keys():
        yield f'the end of the phase "{phase}" has an event or a row, but not both'


def _check_bills(record: Record) -> Iterator[str]:
    """Check each charge against usage and price, and the billing events against the spending rows."""
    for (key, n), spent in record.spending.items():
        attempts = record.attempts.get(key, [])
        if spent.price is None or n > len(attempts):  # price unknown, or reserved and never sent
            continue
        result = attempts[n - 1].result
        if result is not None and spent.charged is None:
            yield f'request {n} of "{key}" has a result but was never charged'
        elif (due := _expected_charge(result, spent)) is not None and not _is_due(spent, due):
            yield f'request {n} of "{key}" was charged {format_usd(nanos_to_usd(spent.amount))}, but used {format_usd(nanos_to_usd(due))}'
    billed = sum(usd_to_nanos(Decimal(str(one.usd))) for one in _iter_events(record) if isinstance(one, ev.Billed))
    charged = sum(spent.charged or 0 for spent in record.spending.values())
    if billed != charged:
        yield f"the billing events total {format_usd(nanos_to_usd(billed))}, the spending rows {format_usd(nanos_to_usd(charged))}"
    for event in _iter_events(record):
        if isinstance(event, ev.Attempted) and event.most and (event.key, event.n) not in record.spending:
            yield f'request {event.n} of "{event.key}" was sent without a reservation'


def _is_due(spent: SpendingRow, due: int) -> bool:
    """Return whether a charge fits the usage. An implausible usage is charged up to a bound, as an estimate."""
    return spent.charged == due or (spent.estimated and (spent.charged or 0) < due)


def _expected_charge(result: AttemptResult | None, spent: SpendingRow) -> int | None:
    """Return the cost of the answer's usage, or None if the usage is unknown."""
    if result is None or "usage" not in result or result["usage"].get("unknown"):
        return None
    return usd_to_nanos(exact_cost(Usage.from_json(result["usage"]), load_price(spent)))


def _check_budget(record: Record) -> Iterator[str]:
    """Check that the run cost no more than the highest cap it ever had."""
    caps = [event.plan.get("cap") for event in _iter_events(record) if isinstance(event, ev.Convened)]
    caps += [event.cap for event in _iter_events(record) if isinstance(event, ev.Resumed)]
    spent = sum(row.amount for row in record.spending.values())
    limits = [float(cap) for cap in caps if cap is not None]
    if limits and len(limits) == len(caps) and spent > usd_to_nanos(Decimal(str(max(limits)))):
        yield f"the run cost {format_usd(nanos_to_usd(spent))}, more than its cap of {format_usd(max(limits))}"


def _check_calls(record: Record) -> Iterator[str]:
    """Check the counts of a finished run against its attempts. Earlier versions counted the last process only."""
    last = record.entries[-1].event if record.entries else None
    if not isinstance(last, ev.Closed) or not is_ours(record):
        return
    for name, counted in zip(("made", "in_doubt"), count_calls(record), strict=True):
        if (stored := last.calls.get(name)) != counted:
            yield f"the run has {counted} calls {name.replace('_', ' ')} in its ledger, but its report says {stored}"


def _iter_events(record: Record) -> Iterator[ev.Event]:
    return (entry.event for entry in record.entries)


def is_same_report(built: str, stored: str | None) -> bool:
    """Return whether a stored report is the built one. Earlier versions stored it with other white space."""
    if built == stored:
        return True
    try:
        return bool(json.loads(stored or "") == json.loads(built))
    except ValueError:
        return False


def _check_report(record: Record, report: Callable[[Sequence[Entry]], str]) -> Iterator[str]:
    last = record.entries[-1].event if record.entries else None
    if not isinstance(last, ev.Closed):
        if record.status not in OPEN_STATUSES:
            yield f'the run has the status "{record.status}", but its last event is not "closed"'
        return
    if not is_same_report(report(record.entries), record.report):
        yield "the report rebuilt from the ledger differs from the stored one"
    if record.status not in (RunStatus.QUEUED, last.status):  # a run that ended can be queued again
        yield f'the run has the status "{record.status}", but its closed event says "{last.status}"'
