"""Ask the same question by several protocols at once and compare calls, cost and answers."""

import asyncio
import sys

import council

PROTOCOLS = ("triad", "collaborative", "ranking")


async def main(question: str = "How should we name our releases?") -> list[council.Report]:
    async with council.Client() as client:
        reports = await asyncio.gather(*(client.convene(question, protocol=name) for name in PROTOCOLS))
    for report in reports:
        cost = "unknown" if report.cost.usd is None else f"${report.cost.usd:.2f}"
        print(f"{report.protocol:14} {report.calls.made:2} calls  {cost}  trust {report.trust.level}")
        print(f"  {report.answer.splitlines()[0] if report.answer else 'no answer'}")
    return reports


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
