"""Many runs in one process that may open few files."""

from __future__ import annotations

import asyncio
import os
import resource
from pathlib import Path

import pytest

import council

SEATS = dict.fromkeys(("alpha", "beta", "gamma", "chair"), "scripted:")


async def convene_many(count: int) -> list[str]:
    """Return the status or the error of each council."""
    runs = (council.convene("Tabs or spaces?", protocol="triad", seats=SEATS) for _ in range(count))
    ended = await asyncio.gather(*runs, return_exceptions=True)
    return [repr(end) if isinstance(end, BaseException) else str(end.status) for end in ended]


def convene_in_child(count: int, files: int) -> list[str]:
    """Run councils in another process that may open this many more files than it has now."""
    read, write = os.pipe()
    if (pid := os.fork()) == 0:
        used = sum(1 for _ in Path("/dev/fd").iterdir())
        resource.setrlimit(resource.RLIMIT_NOFILE, (used + files, used + files))
        try:
            lines = asyncio.run(convene_many(count))
        except BaseException as error:
            lines = [repr(error)]
        os.write(write, "\n".join(lines).encode()[:60_000])
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as result:
        lines = result.read().splitlines()
    os.waitpid(pid, 0)
    return lines


@pytest.mark.behaviour("40-open-files")
def test_councils_wait_if_the_process_may_open_few_files() -> None:
    assert convene_in_child(40, files=100) == ["complete"] * 40
