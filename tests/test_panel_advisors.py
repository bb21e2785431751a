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


@pytest.mark.behaviour("001-roster-default", "10-advisors-roles")
async def test_the_usual_three_have_the_seeds_lenses_and_stances() -> None:
    seats = (await plan()).roster.seats
    assert [(seat.role, seat.perspective, seat.focus) for seat in seats] == [
        ("Pragmatist", "feasibility, cost, effort, timeline", "Can we actually do this?"),
        ("Visionary", "long-term potential, innovation, cost of inaction", "What if we went bigger?"),
        ("Skeptic", "risk, failure modes, edge cases, unintended consequences", "What could go wrong?"),
    ]
    assert all(seat.style for seat in seats)


def sitting(made: Plan) -> list[str]:
    assert made.roster.chair
    return [seat.member.removeprefix("sim:") for seat in (*made.roster.seats, made.roster.chair)]


CHAIR = '[chair]\nmodel = "sim:chair"\nfallback = []\n'
BOARD = """
[rosters.board]
seats = [{name = "cfo", model = "sim:cfo"}, {name = "coo"}]
chair = {model = "sim:head"}
"""


@pytest.mark.behaviour("10-advisors-tier-precedence")
@pytest.mark.parametrize(
    ("settings", "seats", "flags", "members"),
    [
        (TIERS, {}, {}, ["plain", "plain", "plain", "plain"]),
        (TIERS, {}, {"tier": "light"}, ["plain", "plain", "plain", "plain"]),
        (TIERS, {}, {"tier": "medium"}, ["plain", "plain", "plain", "strong"]),
        (TIERS, {}, {"tier": "heavy"}, ["strong", "strong", "strong", "strong"]),
        (TIERS + CHAIR, {}, {}, ["plain", "plain", "plain", "chair"]),
        (TIERS + CHAIR, {}, {"tier": "light"}, ["plain", "plain", "plain", "plain"]),
        (TIERS + CHAIR, {}, {"tier": "medium"}, ["plain", "plain", "plain", "strong"]),
        (TIERS + CHAIR, {"chair": "sim:hand"}, {"tier": "medium"}, ["plain", "plain", "plain", "hand"]),
        (TIERS + CHAIR, {"referee": "sim:hand"}, {}, ["plain", "plain", "plain", "hand"]),
        (TIERS + '[seats.skeptic]\nmodel = "sim:own"\n', {}, {"tier": "heavy"}, ["strong", "strong", "own", "strong"]),
        (TIERS, {"visionary": "sim:flag"}, {"tier": "heavy"}, ["strong", "flag", "strong", "strong"]),
        (TIERS + BOARD, {}, {"roster": "board"}, ["cfo", "plain", "head"]),
        (TIERS + CHAIR + BOARD, {}, {"roster": "board", "tier": "heavy"}, ["cfo", "strong", "strong"]),
        (TIERS + BOARD, {"cfo": "sim:flag", "chair": "sim:hand"}, {"roster": "board"}, ["flag", "plain", "hand"]),
    ],
)  # fmt: skip
async def test_who_decides_where_whom_sits(
    settings: str, seats: dict[str, str], flags: dict[str, Any], members: list[str]
) -> None:
    assert sitting(await plan(settings, seats, **flags)) == members


@pytest.mark.behaviour("001-tiers")
@pytest.mark.parametrize(("tier", "told"), [("light", False), ("medium", True), ("heavy", True)])
async def test_a_tier_that_finds_nobody_stronger_says_so(tier: str, told: bool) -> None:
    made = await plan(TIERS.replace('strong = "sim:strong"\n', ""), tier=tier)
    assert any(f"--tier {tier} has no effect, no stronger model than sim:plain is set" in line for line in made.warnings) is told


async def test_copies_of_one_model_that_debate_are_told_apart_from_minds() -> None:
    said = "several rounds between advisors on one model"
    assert any(said in line for line in (await plan(rounds=2)).warnings)
    assert not any(said in line for line in (await plan()).warnings)
    assert not any(said in line for line in (await plan(seats={"skeptic": "sim:other"}, rounds=2)).warnings)


ROSTER = '[[seats]]\nname = "{0} one"\nrole = "{0}"\n[[seats]]\nname = "{0} two"\n'


@pytest.mark.behaviour("10-advisors-roster")
async def test_a_name_means_the_configuration_then_the_users_folder_then_what_is_shipped() -> None:
    assert next(seat.name for seat in (await plan(roster="executives")).roster.seats) == "finance"
    (folder := Path("config/council/rosters")).mkdir(parents=True)
    (folder / "executives.toml").write_text(ROSTER.format("user"))
    assert [seat.name for seat in (await plan(roster="executives")).roster.seats] == ["user-one", "user-two"]
    own = '[rosters.executives]\nseats = [{name = "a one"}, {name = "b two"}]\n'
    assert [seat.name for seat in (await plan(TIERS + own, roster="executives")).roster.seats] == ["a-one", "b-two"]


@pytest.mark.behaviour("001-roster-override")
async def test_the_usual_three_can_be_replaced_for_good() -> None:
    own = '[rosters.advisors]\nseats = [{name = "yes", role = "Yes-man"}, {name = "no"}]\n'
    assert [(seat.name, seat.role) for seat in (await plan(TIERS + own)).roster.seats] == [
        ("yes", "Yes-man"),
        ("no", "No"),
    ]
