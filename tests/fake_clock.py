"""Event loop with a clock that tests can advance, so that timeouts need no waiting."""

from __future__ import annotations

import asyncio


class Clock(asyncio.SelectorEventLoop):
    """Real time plus the skipped time. Sockets and threads work as usual."""

    skipped = 0.0

    def time(self) -> float:
        return super().time() + self.skipped

    def skip(self, seconds: float) -> None:
        """Advance the clock."""
        self.skipped += seconds


def skip(seconds: float) -> None:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, Clock)
    loop.skip(seconds)


async def settle(turns: int = 50) -> None:
    """Run all callbacks that need no time and no other thread."""
    for _ in range(turns):
        await asyncio.sleep(0)


CLOCKED = ("asyncio", {"loop_factory": Clock})  # return value for the fixture `anyio_backend`
