"""Ending of a run: status and exit code, interrupts, and the digest of statements if there is no answer."""

from __future__ import annotations

import asyncio
import signal
from collections import Counter
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any, Literal

from council import events as ev
from council import protocols
from council.engine.council import Council
from council.engine.ledger import Ledger
from council.engine.response_format import ResponseFormat
from council.errors import BudgetSpent, ChairAbsent, CouncilError, QuorumLost, RunOwned, StoreError, UnknownRun
from council.language import detect_language
from council.protocols.options import parse_options
from council.runs.audit import describe_version, is_ours
from council.store.interface import OPEN_STATUSES
from council.store.run_store import RunStore
from council.text_cleanup import quote_tail_lines
from council.types import Json, Seat, Statement, Verdict
from council.wording import Wording, load_wording

RELEASE_POLLS, RELEASE_POLL_S = 100, 0.05
MAX_SUSPENDED_POLLS = 10
EXCERPT_WORDS = 120  # words of each position


def build_digest(
    stopped: str, positions: Mapping[str, Statement[Any]], tally: Sequence[tuple[str, str]], wording: Wording
) -> str:
    """Build the digest from each seat's latest statement and, if the protocol asks for them, the declared stances."""
    title = f"{wording.heading(f'digest_{stopped}')}{wording.colon}{wording.heading('digest')}"
    lines = [f"## {title}", "", wording.heading("not_weighed"), ""]
    for statement in positions.values():
        lines += [f"### {_format_title(statement.seat)}", "", _make_excerpt(statement.said), ""]
    if tally:
        rows = [f"- {seat.capitalize()}{wording.colon}{stance}" for seat, stance in tally]
        lines += [f"### {wording.heading('tally')}", "", *rows, ""]
        lines += _format_dissent(tally, wording)
    return "\n".join(lines).rstrip()


def _format_title(seat: Seat) -> str:
    """Return the seat's label, with its role unless both are the same."""
    same = seat.role.lower() == seat.name.lower().replace("_", " ").replace("-", " ")
    return seat.role if same else f"{seat.label} ({seat.role})" if seat.role else seat.label


def _make_excerpt(text: str) -> str:
    words = text.split(" ")
    return text if len(words) <= EXCERPT_WORDS else " ".join(words[:EXCERPT_WORDS]) + " …"


def _format_dissent(tally: Sequence[tuple[str, str]], wording: Wording) -> list[str]:
    """List the seats outside the majority; a tie has no majority and so no dissent."""
    counts = Counter(stance for _, stance in tally)
    most = max(counts.values())
    if list(counts.values()).count(most) > 1 or len(counts) == 1:
        return []
    rows = [f"- {seat.capitalize()}{wording.colon}{stance}" for seat, stance in tally if counts[stance] < most]
    return [f"### {wording.heading('dissent')}", "", *rows]


ACCESS_STATES = ("failed(auth)", "failed(quota)")
EXIT_COMPLETE, EXIT_FAILED, EXIT_USAGE, EXIT_PARTIAL, EXIT_NO_ACCESS, EXIT_BUDGET = range(6)
EXIT_GATED, EXIT_INTERRUPTED = 10, 130


def exit_code(status: str, stopped: str, absences: Collection[str]) -> int:
    """Return the exit code of a run that ended early if `stopped`. `absences` are the states of missing seats."""
    if stopped in ("interrupted", "cancelled"):
        return EXIT_INTERRUPTED
    if stopped == "budget":
        return EXIT_BUDGET
    if status == "failed":
        return EXIT_NO_ACCESS if absences and all(state in ACCESS_STATES for state in absences) else EXIT_FAILED
    return EXIT_COMPLETE if status == "complete" else EXIT_PARTIAL


StopEvent = asyncio.Event


@dataclass(frozen=True, slots=True)
class Ending:
    """Status and verdict of a run, before they are stored."""

    status: str
    verdict: Verdict
    stopped: str = ""
    reason: str = ""


async def run_protocol(
    council: Council,
    protocol: protocols.Protocol,
    options: Json,
    *,
    check: bool = False,
    response_format: ResponseFormat | None = None,
) -> Ending:
    """Run the protocol. Return a digest as its ending if the budget, the chair or the quorum is lost."""
    values = dict(parse_options(protocol.name, council.question.task, options, protocol.load_options()))
    try:
        verdict = await protocols.run_flow(protocol, council, values, check=check, response_format=response_format)
    except BudgetSpent as spent:
        return replace(_end_early(council, "budget", str(spent)), status="incomplete")
    except ChairAbsent as lost:
        return _end_early(council, "chair", str(lost))
    except QuorumLost as lost:
        return _end_early(council, "quorum", str(lost))
    shown = replace(verdict, answer=quote_tail_lines(verdict.answer))
    return Ending("incomplete" if verdict.incomplete else "complete", shown, reason=verdict.incomplete)


def end_stopped(council: Council, stopped: Literal["interrupted", "cancelled"]) -> Ending:
    return replace(_end_early(council, stopped, f"{stopped} before the last step was done"), status="incomplete")


def _end_early(council: Council, stopped: str, reason: str) -> Ending:
    """Return an ending with a digest of all positions, then the partial verdict; one seat's text is no answer."""
    if not council.state.positions:
        return Ending("failed", Verdict(""), stopped, reason)
    partial = council.state.partial_verdict
    if council.state.has_answer:
        return Ending("incomplete", replace(partial, answer=quote_tail_lines(partial.answer)), stopped, reason)
    positions, stances = (_sort_by_seat(council, said) for said in (council.state.positions, council.state.stances))
    statements = "\n".join(said.said for said in positions.values())
    wording = load_wording(detect_language(statements, council.question.text))
    text = build_digest(stopped, positions, list(stances.items()), wording)
    answer = quote_tail_lines("\n\n".join(filter(None, (text, partial.answer))))
    return Ending("incomplete", replace(partial, answer=answer), stopped, reason)


def _sort_by_seat(council: Council, by_seat: Mapping[str, Any]) -> dict[str, Any]:
    """Sort by seating order, because the order of arrival is random."""
    place = {seat.name: n for n, seat in enumerate(council.members)}
    return dict(sorted(by_seat.items(), key=lambda item: place.get(item[0], len(place))))


@asynccontextmanager
async def name_resume(store: RunStore, run: str) -> AsyncIterator[None]:
    """Add to a StoreError what is kept: the stored answers, with the command that continues the run, or nothing."""
    try:
        yield
    except StoreError as error:
        command = f"`council resume {run}`"
        if command in error.template:
            raise
        kept = ""
        try:
            await store.run_state(run)
            kept = f"the stored answers of run {run} are kept: continue it with {command}"
        except UnknownRun:
            kept = "nothing was sent and no run is stored"
        except CouncilError:  # the store cannot be read
            pass
        if not kept:
            raise
        raise StoreError(f"{error.template}; {kept}") from error


async def wait_for_ending(
    work: asyncio.Future[Ending], stop: StopEvent | None, cancelled: asyncio.Future[None]
) -> Ending | None:
    """Return the ending of the work, or None if it was stopped or cancelled first."""
    tasks: set[asyncio.Future[Any]] = {work, cancelled, *([asyncio.ensure_future(stop.wait())] if stop else [])}
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        return work.result() if work.done() else None
    finally:
        for task in tasks:  # no effect on finished tasks
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def has_returned(task: asyncio.Future[None]) -> bool:
    return task.done() and not task.cancelled() and task.exception() is None


def note_other_version(ledger: Ledger) -> None:
    """Note that answers of another version are reused although its prompts may differ."""
    reused = {"run": ledger.record} if ledger.record.results else {}
    if ledger.source and ledger.source.earlier_phases:
        reused[f"parent run {ledger.source.record.run}"] = ledger.source.record
    for run, record in reused.items():
        if not is_ours(record):
            made_by = describe_version(record)
            why = "its earlier answers were asked with that version's prompts"
            ledger.emit_once(ev.Noted(f"{run} made by {made_by}", why))


# Owners of runs


async def wait_for_release(store: RunStore, run: str) -> None:
    """Wait while another process releases a run that has ended, for example one that was cancelled a moment ago."""
    for _ in range(RELEASE_POLLS):
        try:
            async with store.lock_run(run):
                return
        except RunOwned:
            owner = await store.find_owner(run)
            if (owner is None or owner.is_alive) and (await store.run_state(run)).stored in OPEN_STATUSES:
                return  # it is in use: the caller says so
        await asyncio.sleep(RELEASE_POLL_S)


async def end_suspended_owner(store: RunStore, run: str) -> None:
    """Continue the suspended owner of a cancelled run, so that it ends the run. Kill it if it stays suspended."""
    owner = await store.find_owner(run)
    if owner is None or not owner.is_suspended:
        return
    owner.send(signal.SIGCONT)
    suspended_polls = 0
    for _ in range(RELEASE_POLLS):
        if not await store.is_locked(run):
            return
        suspended_polls = suspended_polls + 1 if owner.is_suspended else 0
        if suspended_polls == MAX_SUSPENDED_POLLS:
            owner.send(signal.SIGKILL)  # as after a crash, nothing stored is lost
            await wait_for_release(store, run)
            return
        await asyncio.sleep(RELEASE_POLL_S)
