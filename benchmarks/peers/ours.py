"""Council by `convene()`: every run and event in the store on disk with `synchronous = FULL`, and the report files.

Council always asks for a stream. Without a stream the endpoint answers with one JSON body, as it does for the other
contestants. Each council has its own question.
"""

from __future__ import annotations

import os
from contextlib import ExitStack
from itertools import count

from measure import isolated_environment, write_config

import council
from peers.workload import QUESTION


class Contestant:
    def __init__(self, base_url: str, model: str, stream: bool) -> None:
        self.cleanup = ExitStack()
        self.folder, env = self.cleanup.enter_context(isolated_environment())
        os.environ.clear()
        os.environ.update(env)
        write_config(self.folder, base_url, model if stream else f"{model}-whole", connections=1000)
        self.numbers = count(1)

    def next_question(self) -> str:
        return f"Case {next(self.numbers)}: {QUESTION}"

    async def council(self) -> str:
        report = await council.convene(self.next_question(), folder=self.folder, protocol="collaborative")
        report.raise_for_status()
        return report.answer

    def stored_bytes(self) -> int:
        """Return the size of the store. Call it after `close`."""
        return sum(path.stat().st_size for path in (self.folder.parent / "data").rglob("*") if path.is_file())

    async def close(self) -> None:
        council.close()
