"""Run endings: the verdict, or a digest of the positions if the run stopped early."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from council import protocols
from council.council import Council
from council.errors import BudgetSpent, ChairAbsent, QuorumLost
from council.rules.digest import build_digest
from council.types import Json, Verdict

StopEvent = asyncio.Event
EMPTY_VERDICT = Verdict("")


@dataclass(frozen=True, slots=True)
class Ending:
    """Status and verdict of a run, before they are stored."""

    status: str
    verdict: Verdict
    stopped: str = ""
    reason: str = ""


async def run_protocol(council: Council, protocol: protocols.Protocol, options: Json) -> Ending:
    """Run the protocol. Return a digest as its ending if the budget, the chair or the quorum is lost."""
    try:
        verdict = await protocol.load()(council, **options)
    except BudgetSpent as spent:
        return replace(_end_early(council, "Budget used up", "budget", str(spent)), status="incomplete")
    except ChairAbsent as lost:
        return _end_early(council, "No chair", "chair", str(lost), lost.partial_verdict or EMPTY_VERDICT)
    except QuorumLost as lost:
        return _end_early(council, "Quorum lost", "quorum", str(lost))
    return Ending("incomplete" if verdict.incomplete else "complete", verdict, reason=verdict.incomplete)


def end_interrupted(council: Council) -> Ending:
    return replace(
        _end_early(council, "Interrupted", "interrupted", "interrupted before the last step was done"),
        status="incomplete",
    )


def end_cancelled(council: Council) -> Ending:
    return replace(
        _end_early(council, "Cancelled", "cancelled", "cancelled before the last step was done"), status="incomplete"
    )


def _end_early(council: Council, cause: str, stopped: str, reason: str, so_far: Verdict = EMPTY_VERDICT) -> Ending:
    """Return an ending with a digest of all positions, then the partial verdict. One seat's text is never the answer."""
    if not council.positions:
        return Ending("failed", Verdict(""), stopped, reason)
    positions, stances = (_sort_by_seat(council, said) for said in (council.positions, council.stances))
    text = build_digest(cause, positions, list(stances.items()))
    answer = "\n\n".join(filter(None, (text, so_far.answer)))
    return Ending("incomplete", replace(so_far, answer=answer), stopped, reason)


def _sort_by_seat(council: Council, by_seat: Mapping[str, Any]) -> dict[str, Any]:
    """Sort by seating order, because the order of arrival is random."""
    place = {seat.name: n for n, seat in enumerate(council.members)}
    return dict(sorted(by_seat.items(), key=lambda item: place.get(item[0], len(place))))


async def wait_for_ending(
    work: asyncio.Future[Ending], stop: StopEvent, cancelled: asyncio.Future[None]
) -> Ending | None:
    """Return the ending of the work, or None if it was stopped or cancelled first."""
    tasks: set[asyncio.Future[Any]] = {work, cancelled, asyncio.ensure_future(stop.wait())}
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        return work.result() if work.done() else None
    finally:
        for task in tasks:  # no effect on finished tasks
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
