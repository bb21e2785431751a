"""Human members: their questions are stored until a person answers through any interface."""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import dataclass, replace

from council.members.human import HUMAN
from council.store.sqlite import SqliteStore
from council.types import CarryOut, Json, Outcome, Step

ANSWER_POLL_S = 0.2  # seconds between checks for an answer


@dataclass(frozen=True, slots=True)
class StoredQuestions:
    """Stored questions of one run. An answer given before a crash is reused."""

    store: SqliteStore
    run: str

    async def ask(self, key: str, seat: str, prompt: str, schema: Json | None) -> str:
        answer = await self.store.get_answer(self.run, key, prompt)
        if answer is not None:
            return answer
        await self.store.write(self.run, [("ask", (key, seat, prompt, json.dumps(schema), time.time()))])
        try:
            while True:
                if (answer := await self.store.get_answer(self.run, key, prompt)) is not None:
                    return answer
                await asyncio.sleep(ANSWER_POLL_S)
        finally:
            self.store.post(self.run, [("withdraw", (key,))])


def remove_timeout_for_people(carry_out: CarryOut) -> CarryOut:
    """Wrap `carry_out` so that phase timeouts do not apply to people; [human] timeout does."""

    async def carry_out_untimed(step: Step) -> Outcome:
        return await carry_out(replace(step, timeout=None) if step.chain[0] == HUMAN else step)

    return carry_out_untimed
