"""One step, members that answer as told, and the loop that carries the step out."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from council.calling.loop import Caller
from council.errors import Fault
from council.ledger import Ledger
from council.members.base import Member
from council.store.sqlite import SqliteStore
from council.types import Ask, Outcome, Step
from tests.sitting import Double, an_ask

RUN, KEY = "r2345", "draft/alpha"


def step(*chain: str, read: Callable[[str], Any] = lambda text: None, ask: Ask | None = None) -> Step:
    def mend(said: str, words: str) -> Ask:
        asked = (ask or an_ask(KEY)).messages
        return replace(an_ask(KEY), messages=(*asked, {"role": "user", "content": f"{said} → {words}"}))

    def shrink(ask: Ask, share: float) -> tuple[Ask, tuple[str, ...]]:
        return replace(ask, messages=({"role": "user", "content": f"{share:.0%}"},)), ("big.py",)

    return Step(ask or an_ask(KEY), "alpha", chain or ("one",), read, mend, shrink=shrink)


def telling(name: str, *answers: Any) -> Double:
    """A member that gives these answers in turn, the last one for ever."""
    left = list(answers)
    return Double(name, lambda key: left.pop(0) if len(left) > 1 else left[0])


async def call(ledger: Ledger, the_step: Step, *members: Member, **how: Any) -> Outcome:
    by_name = {member.name: member for member in members}
    return await Caller(by_name.__getitem__, ledger, **{"timeout": lambda member: 10.0, **how})(the_step)


def told(ledger: Ledger, kind: type[Any]) -> list[Any]:
    return [entry.event for entry in ledger.record.entries if isinstance(entry.event, kind)]


def fault(kind: str, **more: Any) -> Fault:
    return Fault(kind, f"a {kind} fault", **more)


async def taken_up(store: SqliteStore) -> Ledger:
    """The same run in another process."""
    return Ledger(store, await store.load(RUN))


class Hanging(Double):
    """Says these things in turn; the request after that stays open, and `reached` says so."""

    def __init__(self, name: str, *answers: Any) -> None:
        self.reached = asyncio.Event()
        left = list(answers)
        super().__init__(name, lambda key: left.pop(0) if left else self.hang())

    async def hang(self) -> None:
        self.reached.set()
        await asyncio.Event().wait()


async def broken_off(ledger: Ledger, the_step: Step, hanging: Hanging, *others: Member, **how: Any) -> None:
    """Cut the process down while a request is open."""
    task = asyncio.ensure_future(call(ledger, the_step, hanging, *others, **how))
    await hanging.reached.wait()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
