"""An event loop whose clock a test can put forward: nobody has to wait for a timeout, and nothing runs early by chance."""

from __future__ import annotations

import asyncio


class Clock(asyncio.SelectorEventLoop):
    """Real time, and what was skipped of it. Sockets and threads go on as ever."""

    skipped = 0.0

    def time(self) -> float:
        return super().time() + self.skipped

    def skip(self, seconds: float) -> None:
        """As if so much time had passed at once."""
        self.skipped += seconds


def skip(seconds: float) -> None:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, Clock), "ask for the fixture `anyio_backend` of a test with a clock"
    loop.skip(seconds)


async def settle(turns: int = 50) -> None:
    """Let everything happen that needs no time and no other thread."""
    for _ in range(turns):
        await asyncio.sleep(0)


CLOCKED = ("asyncio", {"loop_factory": Clock})  # what the fixture `anyio_backend` returns
