"""Test council on a real store: scripted members, custom prompts, and `again` to resume as another process."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from council import events as ev
from council.calling.budget import Budget
from council.calling.retry import Caller
from council.engine.council import Council
from council.engine.ledger import Ledger
from council.engine.prompting import Prompts
from council.members.base import Member, OnDelta
from council.members.scripted import Scripted
from council.store.interface import Record
from council.store.sqlite import SqliteStore
from council.types import Answer, Ask, Effects, Question, Roster, Seat

QUESTION = Question("Tabs or spaces?")
SAY = "{{ question }} It is your turn, {{ seat.name }}."
CHAIR = Seat("chair", "Orchestrator", member="scripted:")


def seated(*names: str, **more: Any) -> tuple[Seat, ...]:
    return tuple(Seat(name, member="scripted:", **more) for name in names)


ALPHA, BETA, GAMMA = seated("alpha", "beta", "gamma")
ROSTER = Roster((ALPHA, BETA, GAMMA), CHAIR)


class FunctionMember(Scripted):
    """Scripted member that answers by a function of the step's key."""

    def __init__(self, name: str, answer: Callable[[str], Any]) -> None:
        super().__init__(name, {})
        self.answer = answer

    async def send(self, body: bytes, hear: OnDelta) -> Answer:
        key = str(json.loads(body)["key"])
        self.calls.append({"key": key, "body": body})
        answer = self.answer(key)
        if hasattr(answer, "__await__"):
            answer = await answer
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, Answer) else Answer(answer)


class RunSession:
    """One process working on one run."""

    def __init__(
        self, store: SqliteStore, record: Record, folder: Path, members: Mapping[str, Member], *,
        effects: Effects | None = None, roster: Roster = ROSTER, quorum: int = 1, timeout: float = 10.0,
        context: Mapping[str, Any] | None = None, resend: bool = True,
    ) -> None:  # fmt: skip
        self.store, self.record, self.folder, self.members = store, record, folder, members
        self.heard: list[ev.Entry] = []
        self.ledger = Ledger(store, record, self.heard.append)
        self.caller = Caller(
            members.__getitem__, self.ledger, Budget(store, record, lambda member: None), lambda member: timeout, resend
        )
        self.council = Council(
            roster, QUESTION, ledger=self.ledger, prompts=Prompts(record.seed, [folder]), carry_out=self.caller,
            effects=effects, quorum=quorum, context=context,
        )  # fmt: skip

    @property
    def events(self) -> list[ev.Event]:
        return [entry.event for entry in self.heard if not isinstance(entry.event, ev.TRANSIENT_EVENTS)]

    def of_type(self, kind: type[Any]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]

    async def resume(self, members: Mapping[str, Member] | None = None, **how: Any) -> RunSession:
        """Return the same run, resumed from the store."""
        return RunSession(
            self.store, await self.store.load(self.record.run), self.folder, members or self.members, **how
        )


async def open_session(
    store: SqliteStore, folder: Path, members: Mapping[str, Member] | Member | None = None, *, run: str = "r2345",
    seed: str = "seed", prompts: Mapping[str, str] | None = None, **how: Any,
) -> RunSession:  # fmt: skip
    """Open a run. The prompt `t/say` always exists."""
    for name, text in {"t/say": SAY, **(prompts or {})}.items():
        path = folder / f"{name}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    if not isinstance(members, Mapping):
        members = {"scripted:": members or Scripted()}
    record = Record(run, "a run", str(folder), 1.0, seed, {})
    session = RunSession(store, record, folder, members, **how)
    row = ("run", (record.name, record.folder, record.created, record.seed, "{}"))
    await session.ledger.emit_durably(ev.Convened(run, record.name, {}, record.folder), row)
    return session


def make_ask(key: str = "draft/alpha", **more: Any) -> Ask:
    return Ask(key, ({"role": "user", "content": "Tabs or spaces?"},), **more)
