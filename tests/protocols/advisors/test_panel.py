"""Panels of advisors: default or custom roster, tier and referee."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from council.planning.plan import Plan
from council.runs.service import Convener

pytestmark = pytest.mark.anyio
TIERS = """
[providers.sim]
base_url = "http://127.0.0.1:9/v1"
[models]
default = "sim:plain"
strong = "sim:strong"
"""


async def plan(settings: str = TIERS, seats: dict[str, str] | None = None, **flags: Any) -> Plan:
    """Plan a council of advisors with optional `--seat` flags."""
    Path("council.toml").write_text(settings, encoding="utf-8")  # noqa: ASYNC240
    convener = Convener(Path.cwd(), {"XDG_CONFIG_HOME": "config"}, flags={"seats": seats or {}, "trust": True})
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
async def test_the_default_advisors_have_the_specified_lenses_and_stances() -> None:
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
async def test_precedence_of_tier_seat_and_roster_settings(
    settings: str, seats: dict[str, str], flags: dict[str, Any], members: list[str]
) -> None:
    assert sitting(await plan(settings, seats, **flags)) == members


@pytest.mark.behaviour("001-tiers")
@pytest.mark.parametrize(("tier", "warns"), [("light", False), ("medium", True), ("heavy", True)])
async def test_a_tier_without_a_stronger_model_warns(tier: str, warns: bool) -> None:
    made = await plan(TIERS.replace('strong = "sim:strong"\n', ""), tier=tier)
    assert (
        any(f"--tier {tier} has no effect, no stronger model than sim:plain is set" in line for line in made.warnings)
        is warns
    )


async def test_several_rounds_on_one_model_warn() -> None:
    warning = "several rounds between advisors on one model"
    assert any(warning in line for line in (await plan(rounds=2)).hints)
    assert not any(warning in line for line in (await plan()).hints)
    assert not any(warning in line for line in (await plan(seats={"skeptic": "sim:other"}, rounds=2)).hints)


ROSTER = '[[seats]]\nname = "{0} one"\nrole = "{0}"\n[[seats]]\nname = "{0} two"\n'


@pytest.mark.behaviour("10-advisors-roster")
async def test_a_roster_name_is_looked_up_in_settings_then_user_folder_then_shipped() -> None:
    assert next(seat.name for seat in (await plan(roster="executives")).roster.seats) == "finance"
    (folder := Path("config/council/rosters")).mkdir(parents=True)
    (folder / "executives.toml").write_text(ROSTER.format("user"))
    assert [seat.name for seat in (await plan(roster="executives")).roster.seats] == ["user-one", "user-two"]
    own = '[rosters.executives]\nseats = [{name = "a one"}, {name = "b two"}]\n'
    assert [seat.name for seat in (await plan(TIERS + own, roster="executives")).roster.seats] == ["a-one", "b-two"]


@pytest.mark.behaviour("001-roster-override")
async def test_the_default_advisors_can_be_replaced_in_settings() -> None:
    own = '[rosters.advisors]\nseats = [{name = "yes", role = "Yes-man"}, {name = "no"}]\n'
    assert [(seat.name, seat.role) for seat in (await plan(TIERS + own)).roster.seats] == [
        ("yes", "Yes-man"),
        ("no", "No"),
    ]
