"""Members by `-m`, `--members` and `--cheap`: seats, members, chair and calls of the plan, and refused combinations."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from council.errors import ConfigError, UsageError
from council.planning.plan import Plan
from council.runs.service import Convener
from council.settings import load_settings
from council.settings.member_lookup import fast_members, resolve_member
from tests.trusted_project import trust_project

pytestmark = pytest.mark.anyio
KEYS = {"ANTHROPIC_API_KEY": "k", "OPENAI_API_KEY": "k", "GEMINI_API_KEY": "k"}
OPUS, SONNET, HAIKU = "anthropic:claude-opus-5.5", "anthropic:claude-sonnet-5.5", "anthropic:claude-haiku-5.5"
GPT, MINI, NANO = "openai:gpt-5.2", "openai:gpt-6.1-terra", "openai:gpt-6-luna"
GEMINI, FLASH = "google:gemini-3.1-pro-preview", "google:gemini-3.8-flash"
LITE = "google:gemini-3.5-flash-lite"
GREEK = ("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta")
GENERALS = ("generalist", "skeptic", "domain_expert", *GREEK[3:])
ADVISORS = ("pragmatist", "visionary", "skeptic")
QUESTION = "Should the archive move to cold storage?"


def put(name: str, text: str) -> None:
    Path(name).write_text(text, encoding="utf-8")
    trust_project()


async def plan_with(
    protocol: str, flags: Mapping[str, Any], options: Mapping[str, Any] | None = None, *, config: str = "",
    env: Mapping[str, str] = KEYS, words: str = QUESTION,
) -> Plan:  # fmt: skip
    if config:
        put("council.toml", config)
    convener = Convener(Path.cwd(), env, flags=flags)
    try:
        return await convener.plan([words], options, protocol=protocol)
    finally:
        await convener.close()


def seats_of(plan: Plan) -> tuple[str, ...]:
    return tuple(seat.name for seat in plan.roster.seats)


def members_of(plan: Plan) -> list[str]:
    return [seat.member for seat in plan.roster.seats]


def chair_of(plan: Plan) -> str:
    assert plan.roster.chair
    return plan.roster.chair.member


# Numbers of seats and calls

SIZES = [
    # protocol, seats by size, calls (min, max) by size
    ("collaborative", GREEK, {2: (5, 5), 3: (7, 7), 4: (9, 9), 8: (17, 17)}),
    ("triad", GREEK, {2: (3, 3), 3: (4, 4), 4: (5, 5), 8: (9, 9)}),
    ("adversarial", GREEK, {2: (4, 5), 3: (5, 7), 4: (6, 9), 8: (10, 17)}),
    ("ranking", GREEK, {2: (5, 5), 3: (7, 7), 4: (9, 9), 8: (17, 17)}),
    ("general", GENERALS, {2: (4, 7), 3: (5, 9), 4: (6, 11), 8: (10, 19)}),
]


@pytest.mark.behaviour("13-other-sizes")
@pytest.mark.parametrize(("protocol", "names", "calls"), SIZES, ids=[row[0] for row in SIZES])
async def test_two_to_eight_members_make_as_many_seats(
    protocol: str, names: tuple[str, ...], calls: dict[int, tuple[int, int]]
) -> None:
    options = {"no_search": True} if protocol == "general" else None
    for size, expected in calls.items():
        named = [SONNET, GPT, GEMINI, HAIKU, OPUS, MINI, FLASH, GPT][:size]
        plan = await plan_with(protocol, {"models": named}, options)
        assert (seats_of(plan), members_of(plan), plan.calls, plan.agents) == (names[:size], named, expected, size)
        assert chair_of(plan) == SONNET
        first = plan.phases[0]
        assert (first["calls"], first["parallel"]) == (size, True)
        assert plan.cost and plan.cost["expected"] > 0


@pytest.mark.behaviour("13-other-sizes")
async def test_added_seats_have_no_title_and_no_prescribed_sections() -> None:
    plan = await plan_with("collaborative", {"models": ["sonnet"] * 5})
    assert [bool(seat.role) for seat in plan.roster.seats] == [True, True, True, False, False]
    assert plan.as_json()["seats"][3]["role"] is None


@pytest.mark.behaviour("13-other-sizes")
async def test_the_largest_cost_grows_with_the_seats() -> None:
    costs = [(await plan_with("collaborative", {"models": ["sonnet"] * n})).cost for n in (2, 3, 8)]
    assert [cost["worst"] for cost in costs if cost] == sorted(cost["worst"] for cost in costs if cost)
    assert len({cost["worst"] for cost in costs if cost}) == 3


# Who sits where

TABLE = [
    # id, protocol, flags, options, configuration, members, chair
    ("one fills all", "collaborative", {"models": ["sonnet"]}, {}, "", [SONNET] * 3, SONNET),
    ("a text is one name", "collaborative", {"models": "sonnet"}, {}, "", [SONNET] * 3, SONNET),
    ("one over a configured chair", "triad", {"models": ["sonnet"]}, {}, '[chair]\nmodel = "opus"', [SONNET] * 3, SONNET),
    ("two keep a configured chair", "triad", {"models": ["sonnet", "gpt-5.2"]}, {}, '[chair]\nmodel = "opus"', [SONNET, GPT], OPUS),
    ("two without a configured chair", "triad", {"models": ["gpt-5.2", "sonnet"]}, {}, "", [GPT, SONNET], GPT),
    ("over configured seats", "triad", {"models": ["haiku", "gpt-5.2"]}, {}, '[seats.alpha]\nmodel = "opus"', [HAIKU, GPT], HAIKU),
    ("a seat by hand", "triad", {"models": ["haiku"], "seats": {"beta": "gpt-5.2"}}, {}, "", [HAIKU, GPT, HAIKU], HAIKU),
    ("the chair by hand", "triad", {"models": ["haiku"], "seats": {"chair": "opus"}}, {}, "", [HAIKU] * 3, OPUS),
    ("a seat by hand does not move to an added seat", "triad", {"models": ["haiku"] * 4, "seats": {"alpha": "gpt-5.2"}}, {}, "", [GPT, HAIKU, HAIKU, HAIKU], HAIKU),
    ("an added seat by hand", "triad", {"models": ["haiku"] * 4, "seats": {"delta": "gpt-5.2"}}, {}, "", [HAIKU, HAIKU, HAIKU, GPT], HAIKU),
    ("general by the first seats", "general", {"models": ["haiku"], "seats": {"alpha": "gpt-5.2"}}, {"no_search": True}, "", [GPT, HAIKU, HAIKU], HAIKU),
    ("one for the advisors", "advisors", {"models": ["haiku"]}, {}, '[chair]\nmodel = "opus"', [HAIKU] * 3, HAIKU),
    ("advisors in order", "advisors", {"models": ["haiku", "gpt-5.2", "gemini-3-pro"]}, {}, "", [HAIKU, GPT, GEMINI], HAIKU),
    ("advisors again from the first", "advisors", {"models": ["haiku", "gpt-5.2"]}, {}, "", [HAIKU, GPT, HAIKU], HAIKU),
    ("advisors keep a configured chair", "advisors", {"models": ["haiku", "gpt-5.2"]}, {}, '[chair]\nmodel = "opus"', [HAIKU, GPT, HAIKU], OPUS),
    ("over the members of a roster", "ranking", {"models": ["haiku", "gpt-5.2"]}, {"roster": "board"},
     '[rosters.board]\nseats = [{name = "cfo", model = "opus"}, {name = "coo"}, {name = "cto"}]\nchair = {model = "opus"}', [HAIKU, GPT, HAIKU], OPUS),
    ("cheap", "collaborative", {"cheap": True}, {}, "", [HAIKU, NANO, LITE], HAIKU),
    ("cheap general", "general", {"cheap": True}, {"no_search": True}, "", [HAIKU, NANO, LITE], HAIKU),
    ("cheap advisors", "advisors", {"cheap": True}, {}, "", [HAIKU] * 3, HAIKU),
    ("cheap over files", "triad", {"cheap": True}, {}, '[seats.alpha]\nmodel = "opus"\n[chair]\nmodel = "opus"', [HAIKU, NANO, LITE], HAIKU),
    ("cheap over a roster", "ranking", {"cheap": True}, {"roster": "board"},
     '[rosters.board]\nseats = [{name = "cfo", model = "opus"}, {name = "coo"}, {name = "cto"}]', [HAIKU, NANO, LITE], HAIKU),
    ("cheap with an own fast model", "triad", {"cheap": True}, {}, '[models]\nfast = "openai:gpt-4o-mini"\ndefault = "opus"', [HAIKU, "openai:gpt-4o-mini", LITE], HAIKU),
    ("cheap with a seat by hand", "triad", {"cheap": True, "seats": {"beta": "opus"}}, {}, "", [NANO, OPUS, LITE], HAIKU),
    ("cheap with named seats", "triad", {"cheap": True, "models": ["opus", "gpt-5.2"]}, {}, "", [OPUS, GPT], HAIKU),
    ("cheap with one name", "triad", {"cheap": True, "models": ["opus"]}, {}, "", [OPUS] * 3, OPUS),
]  # fmt: skip


@pytest.mark.behaviour("13-model-flag", "13-cheap")
@pytest.mark.parametrize(
    ("protocol", "flags", "options", "config", "members", "chair"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE]
)  # fmt: skip
async def test_flags_decide_who_fills_the_seats(
    protocol: str, flags: dict[str, Any], options: dict[str, Any], config: str, members: list[str], chair: str
) -> None:
    plan = await plan_with(protocol, flags, options, config=config)
    assert (members_of(plan), chair_of(plan)) == (members, chair)


@pytest.mark.behaviour("13-model-flag")
async def test_only_named_members_are_called() -> None:
    one = await plan_with("collaborative", {"models": ["haiku"]})
    assert one.roster.member_names == (HAIKU,)
    three = await plan_with("collaborative", {"models": ["haiku", "gpt-5.2", "gpt-6.1-terra"]})
    assert set(three.roster.member_names) == {HAIKU, GPT, MINI}
    assert [seat.fallbacks for seat in three.roster.seats] == [(), (), ()]
    assert three.roster.chair and three.roster.chair.fallbacks == (GPT,)


@pytest.mark.behaviour("13-cheap")
async def test_cheap_fallbacks_are_cheap_too_and_the_plan_says_so() -> None:
    usual, cheap = [await plan_with("collaborative", flags) for flags in ({}, {"cheap": True})]
    assert set(cheap.roster.member_names) == {HAIKU, NANO, LITE}
    assert usual.cost and cheap.cost and cheap.cost["worst"] < usual.cost["worst"] / 2
    assert "--cheap: seats that no other flag sets use fast models" in cheap.remarks
    assert (cheap.as_json()["cheap"], "cheap" in usual.as_json()) == (True, False)
    (line,) = [
        one for one in (await plan_with("triad", {"cheap": True, "models": ["opus"]})).warnings if "--cheap" in one
    ]
    assert line == "--cheap has no effect: -m names the member of every seat"


@pytest.mark.behaviour("13-cheap")
async def test_cheap_without_a_fast_model_is_refused_and_without_any_model_is_local() -> None:
    config = '[providers.sim]\nbase_url = "http://127.0.0.1:1/v1"\n[models]\ndefault = "sim:m1"'
    with pytest.raises(ConfigError, match=r'no fast model beside "sim:m1": set \[models\] fast'):
        await plan_with("triad", {"cheap": True}, config=config, env={})
    put("council.toml", "")
    assert [one.member for one in fast_members(load_settings(Path.cwd(), {}), {})] == ["local:smollm2"]


@pytest.mark.behaviour("13-cheap")
def test_cheap_does_not_guess_a_model_of_a_keyless_provider_whose_models_are_named() -> None:
    env = {**KEYS, "OLLAMA_HOST": "127.0.0.1"}
    assert fast_members(load_settings(Path.cwd(), env), env)[-1].member == "ollama:llama3.2"
    put("council.toml", '[models]\nother = "ollama:qwen3"')
    assert [one.member for one in fast_members(load_settings(Path.cwd(), env), env)] == [HAIKU, NANO, LITE]


# Judges

JUDGES = [
    ("as many as named", {"models": ["haiku", "gpt-5.2", "gemini-3-pro"]}, {}, [HAIKU, GPT, GEMINI]),
    ("one fills all", {"models": ["haiku"]}, {}, [HAIKU, HAIKU]),
    ("one with a count", {"models": ["haiku"]}, {"count": 4}, [HAIKU] * 4),
    ("an equal count", {"models": ["haiku", "gpt-5.2"]}, {"count": 2}, [HAIKU, GPT]),
    ("over --deep", {"models": ["haiku", "gpt-5.2"]}, {"deep": True}, [HAIKU, GPT]),
    ("quick", {"models": ["haiku"]}, {"quick": True}, [HAIKU]),
    ("over the profile", {"models": ["haiku", "gpt-5.2"], "profile": "thorough"}, {"profile": "thorough"}, [HAIKU, GPT]),
    ("cheap", {"cheap": True}, {}, [HAIKU, HAIKU]),
    ("cheap and mixed", {"cheap": True}, {"mixed": True}, [HAIKU] * 3 + [NANO] * 3),
    ("a judge by hand", {"models": ["haiku"], "seats": {"judge-2": "gpt-5.2"}}, {}, [HAIKU, GPT]),
]  # fmt: skip


@pytest.mark.behaviour("13-model-flag", "13-cheap")
@pytest.mark.parametrize(("flags", "options", "members"), [row[1:] for row in JUDGES], ids=[row[0] for row in JUDGES])
async def test_judges_are_as_many_as_the_named_members(
    flags: dict[str, Any], options: dict[str, Any], members: list[str]
) -> None:
    put("notes.md", "# Notes\n")
    plan = await plan_with("judges", flags, options, words="validate notes.md")
    assert members_of(plan) == members


async def test_named_judges_have_no_fallbacks_and_use_the_perspectives() -> None:
    put("notes.md", "# Notes\n")
    flags, options = {"models": ["haiku", "gpt-5.2"]}, {"preset": "code-review", "explorers": 1}
    plan = await plan_with("judges", flags, options, words="validate notes.md")
    assert seats_of(plan) == ("judge-error-paths", "judge-api-surface")
    assert [seat.fallbacks for seat in plan.roster.seats] == [(), ()]
    assert plan.roster.helpers[0].member == HAIKU
    assert "perspectives dropped: spec-compliance" in plan.warnings


# Refusals

REFUSED = [
    ("collaborative", {"models": ["sonnet"] * 9}, {}, "models names 9 members, but a council has at most 8 seats: drop 1"),
    ("collaborative", {"models": ["sonnet", " "]}, {}, 'models "" names no member'),
    ("collaborative", {"models": ["sonnet,gpt-5.2"]}, {}, 'models "sonnet,gpt-5.2" has a comma: name the members one by one'),
    ("advisors", {"models": ["sonnet"] * 4}, {}, "models names 4 members, but this council has 3 seats (pragmatist, visionary, skeptic): drop 1"),
    ("quick", {"models": ["sonnet", "haiku"]}, {}, "quick=True seats 1, and models names 2 members"),
    ("judges", {"models": ["sonnet", "haiku"]}, {"count": 3}, "count=3 seats 3, and models names 2 members"),
    ("judges", {"models": ["sonnet"]}, {"mixed": True}, "mixed=True chooses the members of several vendors, and models names them"),
    ("judges", {"models": ["sonnet"] * 8}, {"explorers": 1}, "models names 8 judges x (1 + 1 explorers) = 16 agents, over the cap of 12"),
    ("advisors", {"models": ["sonnet"]}, {"tier": "heavy"}, 'tier="heavy" and models both choose the models'),
    ("advisors", {"cheap": True}, {"tier": "light"}, 'tier="light" and cheap both choose the models'),
    ("triad", {"models": ["sonnet", "haiku"], "seats": {"gamma": "opus"}}, {}, 'seats sets "gamma", but the seats of this council are alpha, beta, chair'),
    ("triad", {"seats": {"delta": "opus"}}, {}, 'seats sets "delta", but the seats of this council are alpha, beta, gamma, chair; name 4 members for it'),
]  # fmt: skip


@pytest.mark.behaviour("13-model-flag")
@pytest.mark.parametrize(("protocol", "flags", "options", "line"), REFUSED, ids=[row[3] for row in REFUSED])
async def test_contradictions_are_refused(
    protocol: str, flags: dict[str, Any], options: dict[str, Any], line: str
) -> None:
    with pytest.raises(UsageError) as refused:
        await plan_with(
            protocol, flags, options, words="validate this" if protocol in ("judges", "quick") else QUESTION
        )
    assert line in str(refused.value)


# Short names

NAMES = [
    ("sonnet", "aog", SONNET),
    ("Sonnet", "aog", SONNET),
    ("gemini-3-pro", "g", GEMINI),
    ("claude-opus", "a", OPUS),
    ("claude-opus", "r", "openrouter:claude-opus-5.5"),
    ("claude-haiku-4-5", "a", "anthropic:claude-haiku-4.5"),
    ("claude-opus-5", "a", "anthropic:claude-opus-5"),
    ("gpt-4o-mini", "o", "openai:gpt-4o-mini"),
    ("gpt-5", "o", "openai:gpt-5"),
    ("gpt-4o", "r", "openrouter:openai/gpt-4o"),
    ("gemini-2.5-flash", "g", "google:gemini-2.5-flash"),
    ("openai:gpt-99", "", "openai:gpt-99"),
]
VARIABLES = {"a": "ANTHROPIC_API_KEY", "o": "OPENAI_API_KEY", "g": "GEMINI_API_KEY", "r": "OPENROUTER_API_KEY"}


@pytest.mark.behaviour("13-short-names")
@pytest.mark.parametrize(("name", "keys", "member"), NAMES)
def test_short_names_resolve_by_catalogue_start_and_vendor(name: str, keys: str, member: str) -> None:
    env = {VARIABLES[key]: "k" for key in keys}
    assert resolve_member(name, load_settings(Path.cwd(), env), env) == member


@pytest.mark.behaviour("13-short-names")
def test_the_model_of_a_configured_member_is_a_short_name() -> None:
    Path("council.toml").write_text(
        '[providers.sim]\nbase_url = "http://127.0.0.1:1/v1"\n[models]\ndefault = "sim:m1"', encoding="utf-8"
    )
    trust_project()
    assert resolve_member("m1", load_settings(Path.cwd(), {}), {}) == "sim:m1"


UNKNOWN = [
    ("gpt-52", 'unknown model "gpt-52": did you mean "gpt-5.2"'),
    ("sonet", 'unknown model "sonet": did you mean "sonnet"'),
    ("claude", '"claude" can mean several models: write claude-opus-5.5, claude-sonnet-5.5 or claude-haiku-5.5'),
    ("gpt-4o", 'no provider of "gpt-4o" is available: set one of OPENAI_API_KEY, OPENROUTER_API_KEY'),
    ("opus", 'no provider of "opus" is available: set one of ANTHROPIC_API_KEY, OPENROUTER_API_KEY'),
    ("nowhere:m1", 'unknown provider "nowhere"'),
]


@pytest.mark.behaviour("13-short-names")
@pytest.mark.parametrize(("name", "line"), UNKNOWN)
def test_an_unknown_or_unavailable_name_gets_one_line(name: str, line: str) -> None:
    with pytest.raises(ConfigError) as refused:
        resolve_member(name, load_settings(Path.cwd(), {}), {})
    assert str(refused.value).startswith(line)
    assert "\n" not in str(refused.value)
