"""Who advises: the usual three or a roster, on the tier that was asked for, and the referee."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from council.convene import Convener
from council.planning import Plan

pytestmark = pytest.mark.anyio
TIERS = """
[providers.sim]
base_url = "http://127.0.0.1:9/v1"
[models]
default = "sim:plain"
strong = "sim:strong"
"""


async def plan(settings: str = TIERS, seats: dict[str, str] | None = None, **flags: Any) -> Plan:
    """A council of advisors as it would sit, with `--seat` flags if there are any."""
    Path("council.toml").write_text(settings, encoding="utf-8")  # noqa: ASYNC240
    convener = Convener(Path.cwd(), {"XDG_CONFIG_HOME": "config"}, flags={"seats": seats or {}})
    try:
        return await convener.plan(["Should we move?"], flags, protocol="advisors")
    finally:
        await convener.close()


def phases(made: Plan) -> list[tuple[str, int, bool]]:
    return [(phase["name"], phase["calls"], phase["parallel"]) for phase in made.phases]


@pytest.mark.behaviour("10-advisors-shape")
async def test_advisors_speak_once_a_round_and_the_referee_closes() -> None:
    debate = await plan(flow="debate")
    assert [seat.name for seat in debate.roster.seats] == ["pragmatist", "visionary", "skeptic"]
    assert debate.roster.chair and debate.roster.chair.name == "referee"
    assert phases(debate) == [("r1", 3, True), ("r2", 3, True), ("r3", 3, True), ("referee", 1, False)]
    assert debate.calls == (10, 10)
    assert phases(await plan(flow="sequential"))[0] == ("r1", 3, False)
