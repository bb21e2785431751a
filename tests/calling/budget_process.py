"""Process with many concurrent requests and a small budget: `python -m tests.calling.budget_process FOLDER URL RUN
COUNT DAY_CAP`.
"""

from __future__ import annotations

import asyncio
import os
import sys
from decimal import Decimal
from pathlib import Path

from council.calling.budget import Budget, Caps
from council.calling.retry import Caller
from council.engine.ledger import Ledger
from council.members.base import Member
from council.members.registry import MemberRegistry
from council.money import Price, Rates
from council.settings import load_settings
from council.store.interface import Record, StoreAddress
from council.store.shared import open_store
from council.types import Ask, Outcome, Step
from tests.run_session import make_ask

OUTPUT = 100  # max_tokens of each answer
NOTHING = Decimal(0)


def a_dime(member: Member) -> Price:
    """Return a price of $1,000 per million output tokens and free input: a full answer costs 10 cents."""
    return Price(Rates(NOTHING, NOTHING, NOTHING, Decimal(1000)))


def step(n: int, member: str = "sim:m1") -> Step:
    ask = make_ask(f"draft/seat-{n}", max_tokens=OUTPUT)

    def mend(said: str, words: str) -> Ask:
        return ask

    return Step(ask, f"seat-{n}", (member,), lambda text: None, mend)


async def spend(folder: Path, url: str, run: str, count: int, caps: Caps) -> list[Outcome]:
    """Execute `count` concurrent steps over a real wire and a real store."""
    config = folder / f"{run}.toml"
    config.write_text(f'[providers.sim]\nbase_url = "{url}"\nmax_connections = 100\n', encoding="utf-8")
    members = MemberRegistry(load_settings(folder, {"XDG_CONFIG_HOME": str(folder)}, config=config), {}, folder)
    store = open_store(StoreAddress(folder / "store", os.environ.get("COUNCIL_DATABASE", "")))
    record = Record(run, "a run", "here", 1.0, "s1", {})
    store.post(run, [("run", ("a run", "here", 1.0, "s1", "{}"))])
    caller = Caller(members, Ledger(store, record), budget=Budget(store, record, a_dime, caps))
    try:
        return list(await asyncio.gather(*(caller(step(n)) for n in range(count))))
    finally:
        await members.close()
        store.close()


if __name__ == "__main__":
    where, address, name, many, cap = sys.argv[1:]
    outcomes = asyncio.run(spend(Path(where), address, name, int(many), Caps(day=float(cap))))
    print(sum(outcome.ok for outcome in outcomes))
