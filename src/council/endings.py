"""How a deliberation ends: with a verdict, or with what can still be said when it was cut short."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from council import protocols
from council.council import Council
from council.errors import BudgetSpent, ChairAbsent, QuorumLost
from council.rules.digest import digest
from council.types import Json, Verdict

Stop = asyncio.Event
NOTHING = Verdict("")


@dataclass(frozen=True, slots=True)
class Ending:
    """How a deliberation ended, before it is written down."""

    status: str
    verdict: Verdict
    stopped: str = ""
    reason: str = ""


async def deliberate(council: Council, protocol: protocols.Protocol, options: Json) -> Ending:
    """Run the protocol to its end, or to what can still be said when too few are left."""
    try:
        verdict = await protocol.load()(council, **options)
    except BudgetSpent as spent:
        return replace(_cut_short(council, "Budget used up", "budget", str(spent)), status="incomplete")
    except ChairAbsent as lost:
        return _cut_short(council, "No chair", "chair", str(lost), lost.so_far or NOTHING)
    except QuorumLost as lost:
        return _cut_short(council, "Quorum lost", "quorum", str(lost))
    return Ending("incomplete" if verdict.incomplete else "complete", verdict, reason=verdict.incomplete)


def interrupted(council: Council) -> Ending:
    return replace(
        _cut_short(council, "Interrupted", "interrupted", "interrupted before the last step was done"),
        status="incomplete",
    )


def cancelled(council: Council) -> Ending:
    return replace(
        _cut_short(council, "Cancelled", "cancelled", "cancelled before the last step was done"), status="incomplete"
    )


def _cut_short(council: Council, cause: str, stopped: str, reason: str, so_far: Verdict = NOTHING) -> Ending:
    """Never one seat's raw text as the answer: a digest of all of them, told apart from an answer; then what rules made out."""
    if not council.positions:
        return Ending("failed", Verdict(""), stopped, reason)
    positions, stances = (_in_order(council, said) for said in (council.positions, council.stances))
    text = digest(cause, positions, list(stances.items()))
    answer = "\n\n".join(filter(None, (text, so_far.answer)))
    return Ending("incomplete", replace(so_far, answer=answer), stopped, reason)


def _in_order(council: Council, by_seat: Mapping[str, Any]) -> dict[str, Any]:
    """In seating order, not in that of arrival, which is chance."""
    place = {seat.name: n for n, seat in enumerate(council.members)}
    return dict(sorted(by_seat.items(), key=lambda item: place.get(item[0], len(place))))


async def until(work: asyncio.Future[Ending], stop: Stop, recalled: asyncio.Future[None]) -> Ending | None:
    """What the work came to, or None if it was stopped or recalled first."""
    tasks: set[asyncio.Future[Any]] = {work, recalled, asyncio.ensure_future(stop.wait())}
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        return work.result() if work.done() else None
    finally:
        for task in tasks:  # one that is done stays as it is
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
