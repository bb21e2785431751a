"""`--seats N`: the number of seats without naming their members."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from council.errors import UsageError
from council.members.scripted import Scripted
from council.planning.plan import Plan
from council.runs.service import Convener

pytestmark = pytest.mark.anyio


async def plan_with(protocol: str, **flags: Any) -> Plan:
    convener = Convener(Path.cwd(), flags={"models": ["scripted:"]} | flags, members=[Scripted()])
    try:
        return await convener.plan(["Where to?"], protocol=protocol)
    finally:
        await convener.close()


@pytest.mark.behaviour("00-seats-flag")
@pytest.mark.parametrize("protocol", ["collaborative", "adversarial", "triad", "ranking", "refine", "adaptive"])
@pytest.mark.parametrize("count", [2, 3, 5, 8])
async def test_a_protocol_has_as_many_seats_as_asked_for(protocol: str, count: int) -> None:
    plan = await plan_with(protocol, seat_count=count)
    names = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta"]
    assert [seat.name for seat in plan.roster.seats] == names[:count]


@pytest.mark.behaviour("00-seats-flag")
@pytest.mark.parametrize(
    ("protocol", "flags", "message"),
    [
        ("refine", {"seat_count": 1}, "seat_count=1: a council has 2 to 8 seats"),
        ("refine", {"seat_count": 9}, "seat_count=9: a council has 2 to 8 seats"),
        ("refine", {"seat_count": 2.5}, "seat_count=2.5: a council has 2 to 8 seats"),
        ("advisors", {"seat_count": 2}, "seat_count=2: the protocol advisors has 3 seats here"),
        ("solo", {"seat_count": 2}, "seat_count=2: the protocol solo has 1 seat here"),
        ("refine", {"seat_count": 2, "models": ["scripted:"] * 3}, "models names 3 members: drop one of the two"),
    ],
)
async def test_another_number_is_one_clear_line(protocol: str, flags: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as refused:
        await plan_with(protocol, **flags)
    assert message in str(refused.value)
