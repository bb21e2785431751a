"""Council by one `Convener` for all councils of the process, as a service uses it."""

from __future__ import annotations

from council import Convener, Minutes
from peers import ours


class Contestant(ours.Contestant):
    def __init__(self, base_url: str, model: str, stream: bool) -> None:
        super().__init__(base_url, model, stream)
        self.convener = Convener(self.folder)

    async def council(self) -> str:
        minutes = Minutes()
        plan = await self.convener.plan([self.next_question()], protocol="collaborative")
        await self.convener.run(plan, minutes.on_event)
        if minutes.status != "complete":
            raise RuntimeError(f"the status is {minutes.status}: {minutes.reason}")
        return str(minutes.verdict["answer"])

    async def close(self) -> None:
        await self.convener.close()
