"""State of the limits of vendors, which all processes of a store change together."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import pytest

from council.calling.shared_limit import WINDOW_S
from council.calling.vendor_limits import BURST, SHARE, VendorLimits
from council.errors import StoreError
from council.store.interface import StoreAddress
from council.store.run_store import RunStore
from council.store.shared import open_store
from council.types import Usage

pytestmark = pytest.mark.anyio
PER_MINUTE = 1200
GAP_S = WINDOW_S / (SHARE * PER_MINUTE)
BURST_STARTS = int(BURST * PER_MINUTE) + 1
# Reserves starts in a process of its own, and prints them by the clock of the machine.
OTHER_PROCESS = f"""
import asyncio, sys, time
from pathlib import Path
from council.calling.vendor_limits import VendorLimits
from council.store.sqlite import SqliteStore
from council.types import Usage

async def reserve():
    store = SqliteStore(Path(sys.argv[1]))
    limit = VendorLimits("sim", {{"requests": {PER_MINUTE}}}, store)
    offset = time.time() - asyncio.get_running_loop().time()
    found = await asyncio.gather(*(limit.reserve("m", Usage()) for _ in range(30)))
    print(*(one.start + offset for one in found))
    store.close()

asyncio.run(reserve())
"""


@pytest.fixture
def stores(store_address: StoreAddress) -> Iterator[list[RunStore]]:
    """Two processes of one database, or of one data folder."""
    with closing(open_store(store_address)) as one, closing(open_store(store_address)) as two:
        yield [one, two]


@pytest.mark.behaviour("33-limits-per-minute")
async def test_two_stores_of_one_database_share_the_starts_of_a_limit(stores: list[RunStore]) -> None:
    limits = [VendorLimits("sim", {"requests": PER_MINUTE}, store) for store in stores]
    found = await asyncio.gather(*(limits[n % 2].reserve("m", Usage()) for n in range(60)))
    starts = sorted(one.start for one in found)
    assert len(starts) == 60
    assert starts[-1] - starts[0] > (60 - BURST_STARTS) * GAP_S - 0.5  # the clock runs on while the second one reserves
    assert min(later - earlier for earlier, later in pairwise(starts[-10:])) > GAP_S / 2


@pytest.mark.behaviour("33-limits-per-minute")
async def test_no_change_of_a_limit_is_lost(stores: list[RunStore]) -> None:
    def increase(state: str, now: float) -> tuple[str, float]:
        return str(int(state or "0") + 1), now

    times = await asyncio.gather(*(stores[n % 2].change_limit("count", increase) for n in range(40)))
    assert await stores[0].change_limit("count", lambda state, now: (state, state)) == "40"
    assert max(times) - min(times) < 60


@pytest.mark.behaviour("33-limits-per-minute")
async def test_two_processes_of_one_folder_share_a_limit(tmp_path: Path) -> None:
    processes = [
        await asyncio.create_subprocess_exec(
            sys.executable, "-c", OTHER_PROCESS, str(tmp_path), stdout=asyncio.subprocess.PIPE
        )
        for _ in range(2)
    ]
    printed = await asyncio.gather(*(process.communicate() for process in processes))
    starts = sorted(float(start) for out, _ in printed for start in out.split())
    assert len(starts) == 60
    for first, last in zip(starts, starts[BURST_STARTS + 1 :], strict=False):
        assert last - first > GAP_S / 2


async def test_an_error_of_a_change_is_that_of_its_caller(stores: list[RunStore]) -> None:
    def fail(state: str, now: float) -> tuple[str, None]:
        raise StoreError("no")

    with pytest.raises(StoreError, match="no"):
        await stores[0].change_limit("sim", fail)
    assert json.loads(await stores[0].change_limit("sim", lambda state, now: ("[1]", "[1]"))) == [1]
