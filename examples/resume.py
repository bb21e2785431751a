"""Stop a run in the middle and continue it: answers that were paid for are not asked again."""

import asyncio
import sys

import council
from council.events import PhaseEnded


async def main(question: str = "How do we introduce code owners?") -> council.Report:
    async with council.Client(protocol="triad") as client:
        async with client.stream(question) as run:
            async for entry in run:
                if isinstance(entry.event, PhaseEnded):
                    break  # leaving the block stops the run, as a crash or Ctrl-C would
        print(f"run {run.run} stopped after {run.report.calls.made} calls")
        report = await client.resume(run.run)
        print(f"resumed: {report.calls.replayed} answers from the store, calls in all: {report.calls.made}")
        print(report.answer)
        return report


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
