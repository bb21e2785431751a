"""Helpers: one step, scripted members, and the retry loop that executes the step."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from council.calling.budget import Budget
from council.calling.concurrency import ConcurrencyLimit, no_limit
from council.calling.fallback import FallbackPolicy
from council.calling.retry import Caller
from council.engine.ledger import Ledger
from council.errors import Fault
from council.members.base import Member
from council.store.sqlite import SqliteStore
from council.types import Ask, Cuts, Outcome, Step
from tests.fake_clock import skip
from tests.run_session import FunctionMember, make_ask

RUN, KEY = "r2345", "draft/alpha"


def step(*chain: str, read: Callable[[str], Any] = lambda text: None, ask: Ask | None = None) -> Step:
    def mend(said: str, words: str) -> Ask:
        asked = (ask or make_ask(KEY)).messages
        return replace(make_ask(KEY), messages=(*asked, {"role": "user", "content": f"{said} → {words}"}))

    def shrink(ask: Ask, share: float) -> tuple[Ask, Cuts]:
        return replace(ask, messages=({"role": "user", "content": f"{share:.0%}"},)), Cuts(("big.py",))

    return Step(ask or make_ask(KEY), "alpha", chain or ("one",), read, mend, shrink=shrink)


def answering(name: str, *answers: Any) -> FunctionMember:
    """Return a member that gives these answers in turn and then repeats the last one."""
    left = list(answers)
    return FunctionMember(name, lambda key: left.pop(0) if len(left) > 1 else left[0])


def unpriced(ledger: Ledger) -> Budget:
    """Return the budget of a run whose members have no known price, without caps."""
    return Budget(ledger.store, ledger.record, lambda member: None)  # type: ignore[arg-type]


async def call(
    ledger: Ledger,
    the_step: Step,
    *members: Member,
    timeout: Callable[[str], float] = lambda member: 10.0,
    resend: bool = True,
    limit_for: Callable[[str], ConcurrencyLimit] = no_limit,
    fallbacks: FallbackPolicy | None = None,
    budget: Budget | None = None,
) -> Outcome:
    by_name = {member.name: member for member in members}
    caller = Caller(
        by_name.__getitem__,
        ledger,
        budget or unpriced(ledger),
        timeout,
        resend,
        limit_for,
        fallbacks or FallbackPolicy(),
    )
    return await caller(the_step)


def events_of(ledger: Ledger, kind: type[Any]) -> list[Any]:
    return [entry.event for entry in ledger.record.entries if isinstance(entry.event, kind)]


def fault(kind: str, **more: Any) -> Fault:
    return Fault(kind, f"a {kind} fault", **more)


async def reload_ledger(store: SqliteStore) -> Ledger:
    """Load the run again, as another process would."""
    return Ledger(store, await store.load(RUN))


class Hanging(FunctionMember):
    """Member that gives these answers in turn. The next request hangs, sets `reached` and advances the clock."""

    def __init__(self, name: str, *answers: Any, skips: float = 0.0) -> None:
        self.skips = skips
        self.reached = asyncio.Event()
        left = list(answers)
        super().__init__(name, lambda key: left.pop(0) if left else self.hang())

    async def hang(self) -> None:
        self.reached.set()
        skip(self.skips)
        await asyncio.Event().wait()


async def interrupt(ledger: Ledger, the_step: Step, hanging: Hanging, *others: Member, **how: Any) -> None:
    """Cancel the call while its request is in flight."""
    task = asyncio.ensure_future(call(ledger, the_step, hanging, *others, **how))
    await hanging.reached.wait()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
