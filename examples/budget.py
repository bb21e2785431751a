"""Keep to a budget: look at the estimate first, set a cap, and decide what to do when it is reached."""

import asyncio
import sys

import council


async def main(question: str = "What should our data retention policy be?", cap: str = "0.50") -> council.Report | None:
    async with council.Client(max_cost=float(cap), allow_unpriced=False) as client:
        plan = await client.plan(question)
        cost = plan["cost"]
        print("calls:", plan["calls"]["max"], "- expected:", cost["expected"] if cost else "unknown")
        if cost and cost["expected"] is not None and cost["expected"] > float(cap):
            print("too expensive, nothing was spent: try cheap=True or another protocol")
            return None
        report = await client.convene(question)
        try:
            report.raise_for_status()
        except council.BudgetSpent as error:
            print(f"{error}\nspent {report.cost.usd}; the statements so far:\n{report.answer}")
            print(f'client.resume("{report.run}", max_cost=…) continues without paying for them again')
        else:
            print(f"spent {report.cost.usd} of {report.cost.cap}\n{report.answer}")
        return report


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
