"""`--exclude-family`: no seat, chair, helper or fallback uses a member of the vendor."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from council.errors import UsageError
from council.planning.exclusion import require_allowed
from council.planning.plan import Plan
from council.runs.service import Convener
from council.settings import load_settings

pytestmark = pytest.mark.anyio
KEYS = {"a": "ANTHROPIC_API_KEY", "o": "OPENAI_API_KEY", "g": "GEMINI_API_KEY", "r": "OPENROUTER_API_KEY"}
PROTOCOLS = (
    "panel",
    "adaptive",
    "collaborative",
    "adversarial",
    "triad",
    "ranking",
    "refine",
    "advisors",
    "solo",
    "quick",
)


@pytest.fixture(autouse=True)
def _no_lists(tmp_path: Path) -> None:
    Path("council.toml").write_text("model_lists = false\n", encoding="utf-8")


def write_file(name: str, text: str) -> None:
    Path(name).write_text(text, encoding="utf-8")


async def make_plan(keys: str, *, protocol: str = "panel", words: Iterable[str] = ("Where to?",), **flags: Any) -> Plan:
    env = {KEYS[letter]: "k" for letter in keys} | {"XDG_CONFIG_HOME": str(Path.cwd() / "none")}
    convener = Convener(Path.cwd(), env, flags=flags)
    try:
        return await convener.plan(list(words), protocol=protocol)
    finally:
        await convener.close()


def list_members(plan: Plan) -> list[str]:
    return [member for seat in plan.roster.all_seats for member in (seat.member, *seat.fallbacks)]


@pytest.mark.behaviour("00-exclude-family")
@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("vendor", ["anthropic", "openai", "google"])
async def test_no_seat_chair_helper_or_fallback_is_of_the_vendor(protocol: str, vendor: str) -> None:
    plan = await make_plan("aog", protocol=protocol, exclude_family=vendor)
    members = list_members(plan)
    assert members and not [one for one in members if one.startswith(f"{vendor}:")]
    assert plan.as_json()["exclude_family"] == [vendor]


@pytest.mark.behaviour("00-exclude-family")
@pytest.mark.parametrize("options", [{}, {"deep": True}, {"mixed": True}])
async def test_judges_and_their_clerk_are_of_other_vendors(options: dict[str, Any]) -> None:
    write_file("plan.md", "Move it.\n")
    env = {KEYS[letter]: "k" for letter in "aog"} | {"XDG_CONFIG_HOME": str(Path.cwd() / "none")}
    convener = Convener(Path.cwd(), env, flags={"exclude_family": "anthropic"})
    try:
        plan = await convener.plan(["validate", "plan.md"], options)
    finally:
        await convener.close()
    members = list_members(plan)
    assert members and not [one for one in members if one.startswith("anthropic:")]


@pytest.mark.behaviour("00-exclude-family")
async def test_a_vendor_behind_a_router_is_excluded_too() -> None:
    plan = await make_plan("r", exclude_family="anthropic")
    assert not [one for one in list_members(plan) if "claude" in one]


@pytest.mark.behaviour("00-exclude-family")
async def test_several_vendors_and_fast_models() -> None:
    plan = await make_plan("aog", protocol="quick", exclude_family=["anthropic", "google"], cheap=True)
    assert {seat.vendor for seat in plan.roster.all_seats} == {"openai"}
    plan = await make_plan("aog", exclude_family=["google"], cheap=True)
    assert {seat.vendor for seat in plan.roster.all_seats} == {"anthropic", "openai"}


@pytest.mark.behaviour("00-exclude-family")
async def test_members_of_the_configuration_are_left_out() -> None:
    write_file(
        "council.toml",
        'model_lists = false\n[models]\ndefault = "opus"\n[seats.alpha]\nmodel = "sonnet"\nfallback = ["opus", "gpt"]\n'
        '[seats.clerk]\nmodel = "haiku"\n[chair]\nmodel = "opus"\n',
    )
    for protocol in ("panel", "collaborative"):
        plan = await make_plan("aog", protocol=protocol, exclude_family="Anthropic")
        assert not [one for one in list_members(plan) if one.startswith("anthropic:")]


@pytest.mark.behaviour("00-exclude-family")
@pytest.mark.parametrize(
    ("keys", "flags", "message"),
    [
        ("aog", {"exclude_family": "anthropc"}, 'exclude_family: unknown vendor "anthropc": did you mean "anthropic"? known are '),
        ("aog", {"exclude_family": "claude"}, 'unknown vendor "claude": did you mean "anthropic"?'),
        ("aog", {"exclude_family": "opus"}, 'unknown vendor "opus": did you mean "anthropic"?'),
        ("aog", {"exclude_family": " "}, 'exclude_family "" names no vendor: use a name such as anthropic'),
        ("ao", {"exclude_family": "anthropic"}, "leaves one member that can be called (openai:"),
        ("a", {"exclude_family": "anthropic"}, "leaves no member that can be called: set the key of another vendor"),
        ("ao", {"exclude_family": "anthropic", "models": ["sonnet", "gpt"]}, 'models names "sonnet", and exclude_family excludes its vendor "anthropic": drop one of the two'),
        ("aog", {"exclude_family": "anthropic", "seats": {"beta": "opus"}}, 'seats names "opus", and exclude_family excludes its vendor "anthropic"'),
    ],
)  # fmt: skip
async def test_bad_vendors_are_one_clear_line(keys: str, flags: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as refused:
        await make_plan(keys, **flags)
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.behaviour("00-exclude-family")
async def test_a_council_that_the_exclusion_does_not_change_is_not_refused() -> None:
    plan = await make_plan("o", exclude_family="anthropic")
    assert {seat.vendor for seat in plan.roster.seats} == {"openai"}


async def test_members_named_one_by_one_are_used() -> None:
    plan = await make_plan("ao", exclude_family="anthropic", models=["gpt"])
    assert len(plan.roster.seats) == 3


async def test_one_member_is_enough_for_one_seat() -> None:
    plan = await make_plan("ao", protocol="quick", exclude_family="anthropic")
    assert [seat.vendor for seat in plan.roster.seats] == ["openai"]


@pytest.mark.parametrize(("name", "vendor"), [("Sonnet", "anthropic"), ("GPT-5.2", "openai"), ("gpt-5.2", "openai")])
def test_the_vendor_of_a_name_does_not_depend_on_its_capitals(name: str, vendor: str) -> None:
    settings = load_settings(Path.cwd(), {})
    with pytest.raises(UsageError, match=f'names "{name}", and .* excludes its vendor "{vendor}"'):
        require_allowed(name, {vendor}, settings, {})
    require_allowed(name, {"google"}, settings, {})
    require_allowed("nonsense", {vendor}, settings, {})
