"""Panels of judges: seats, families and sizes from flags and settings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from council.errors import UsageError
from council.planning.plan import Plan, preview_packet
from council.protocols.common.perspectives import list_presets, load_preset
from council.protocols.judges.options import JudgesOptions
from council.protocols.judges.rules import Vote
from council.protocols.judges.verdict import may_disagree
from council.runs.service import Convener
from tests.trusted_project import trust_project

pytestmark = pytest.mark.anyio
ONE = '[models]\ndefault = "scripted:"\n'
TWO = ONE + 'other = "sim:m"\n[providers.sim]\nbase_url = "http://127.0.0.1:9/v1"\n'


def convener_with(settings: str, env: dict[str, str]) -> Convener:
    Path("council.toml").write_text(settings, encoding="utf-8")
    trust_project()
    return Convener(Path.cwd(), env)


async def plan(
    task: str = "validate", settings: str = ONE, env: dict[str, str] | None = None, strict: bool = False, **flags: Any
) -> Plan:
    convener = convener_with(settings, env or {})
    try:
        return await convener.plan(
            [*task.split(), *(["tabs and spaces"] if " " not in task else [])], flags, protocol="judges", strict=strict
        )
    finally:
        await convener.close()


def names(made: Plan) -> list[str]:
    return [seat.name for seat in made.roster.seats]


def phases(made: Plan) -> list[tuple[str, int, bool]]:
    return [(phase["name"], phase["calls"], phase["parallel"]) for phase in made.phases]


@pytest.mark.behaviour("002-judge-names")
@pytest.mark.parametrize(
    ("given", "seats"),
    [
        ({}, ["judge-1", "judge-2"]),
        ({"preset": "security-audit"}, ["judge-attacker", "judge-defender", "judge-compliance"]),
        ({"perspectives": "Error paths", "count": 3}, ["judge-error-paths", "judge-2", "judge-3"]),
        ({"perspectives": "a,b", "preset": "ops"}, ["judge-a", "judge-b"]),
        ({"profile": "thorough"}, ["judge-1", "judge-2", "judge-3"]),
        ({"profile": "fast"}, ["judge-1", "judge-2"]),
        ({"quick": True}, ["judge-1"]),
    ],
)
async def test_judges_are_named_by_number_or_perspective(given: dict[str, Any], seats: list[str]) -> None:
    assert names(await plan(**given)) == seats


@pytest.mark.behaviour("20-mixed-pairs")
async def test_each_perspective_has_one_judge_in_each_family() -> None:
    mixed = await plan(settings=TWO, mixed=True, preset="architecture")
    lenses = [lens.name for lens in load_preset("architecture").perspectives]
    assert [seat.perspective for seat in mixed.roster.seats] == lenses * 2
    assert names(mixed)[0] == "scripted-judge-scalability" and names(mixed)[3] == "sim-judge-scalability"
    assert [seat.vendor for seat in mixed.roster.seats] == ["scripted"] * 3 + ["sim"] * 3
    assert mixed.agents == 6


@pytest.mark.behaviour("002-judge-names")
async def test_the_default_families_are_named_claude_and_codex() -> None:
    env = {"ANTHROPIC_API_KEY": "x", "OPENAI_API_KEY": "x"}
    mixed = await plan(settings="", env=env, mixed=True, count=1)
    assert names(mixed) == ["claude-judge-1", "codex-judge-1"]
    assert [seat.member for seat in mixed.roster.seats] == ["anthropic:claude-sonnet-5.5", "openai:gpt-5.3-codex"]


async def test_a_mixed_council_without_a_second_family_says_so_or_is_refused() -> None:
    alone = await plan(mixed=True)
    assert names(alone) == ["judge-1", "judge-2", "judge-3"]
    assert "--mixed found no second vendor family: all judges are of the first." in alone.notices
    with pytest.raises(UsageError, match="mixed=True needs a second vendor family"):
        await plan(mixed=True, strict=True)


@pytest.mark.behaviour("20-no-chair-in-validate")
async def test_only_brainstorm_and_research_have_a_chair() -> None:
    assert (await plan()).roster.chair is None
    assert (await plan("research", quick=True)).calls == (1, 1)
    research = await plan("research")
    assert research.roster.chair and phases(research) == [("judge", 2, True), ("consolidate", 1, False)]


@pytest.mark.behaviour("20-clerk-groups")
@pytest.mark.parametrize(
    ("settings", "env", "members"),
    [
        ("", {"ANTHROPIC_API_KEY": "x", "OPENAI_API_KEY": "x"}, ["anthropic:claude-haiku-5.5", "anthropic:claude-sonnet-5.5"]),
        ("", {"OPENAI_API_KEY": "x"}, ["openai:gpt-6-luna", "openai:gpt-6.1-sol"]),
        (TWO.replace("other", "fast"), {"ANTHROPIC_API_KEY": "x"}, ["sim:m"]),
        (ONE, {}, ["scripted:"]),
        ('[models]\ndefault = "human:"\n', {}, []),
    ],
)  # fmt: skip
async def test_the_clerk_is_a_fast_member_and_its_fallback_is_that_of_the_judges(
    settings: str, env: dict[str, str], members: list[str]
) -> None:
    clerks = (await plan(settings=settings, env=env)).roster.helpers
    assert [member for clerk in clerks for member in (clerk.member, *clerk.fallbacks)] == members


async def test_a_debate_asks_every_judge_twice() -> None:
    debate = await plan(debate=True, deep=True)
    assert phases(debate) == [("r1", 3, True), ("r2", 3, True), ("grouping", 1, False)]
    assert debate.calls == (6, 7)


@pytest.mark.behaviour("002-bench-cap")
async def test_scaling_down_warns_and_names_the_dropped_perspectives() -> None:
    scaled = await plan("research", settings=TWO, mixed=True, explorers=2, preset="research")
    assert (len(scaled.roster.seats), scaled.agents) == (4, 12)
    assert "3 judges per family scaled down to 2: at most 12 agents" in scaled.warnings
    assert "perspectives dropped: contrarian" in scaled.warnings


@pytest.mark.behaviour("002-explorers-agents")
async def test_explorers_count_as_agents_and_have_three_look_ups() -> None:
    deep = await plan("research", deep=True, explorers=1)
    assert deep.agents == 6
    assert phases(deep) == [
        ("judge/questions", 3, True),
        ("judge/explore", 12, True),
        ("judge", 3, True),
        ("consolidate", 1, False),
    ]
    assert deep.calls == (3 + 3 + 3 + 1, 3 + 3 * 4 + 3 + 1)


@pytest.mark.behaviour("20-unknown-names-listed")
async def test_an_unknown_preset_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UsageError, match=r'unknown preset "securty-audit": did you mean "security-audit".*doc-review'):
        await plan(preset="securty-audit")


@pytest.mark.behaviour("20-presets")
def test_presets_have_three_perspectives_but_plans_and_documents_four() -> None:
    sizes = {name: len(load_preset(name).perspectives) for name in list_presets()}
    assert {name for name, size in sizes.items() if size == 4} == {"plan-review", "doc-review"}
    assert set(sizes.values()) == {3, 4} and len(sizes) == 10


@pytest.mark.behaviour("10-quick-one-call")
async def test_quick_is_one_seat_and_one_call() -> None:
    quick = await plan(quick=True)
    assert (names(quick), quick.calls, quick.agents, quick.roster.chair) == (["judge-1"], (1, 1), 1, None)


async def test_the_environment_overrides_the_profile_and_the_settings() -> None:
    env = {"COUNCIL_CLAUDE_MODEL": "scripted:", "COUNCIL_JUDGE_COUNT": "4"}
    made = await plan(
        settings='[models]\ndefault = "sim:m"\n[providers.sim]\nbase_url = "http://127.0.0.1:9/v1"\n',
        env=env,
        profile="thorough",
    )
    assert (len(names(made)), {seat.member for seat in made.roster.seats}) == (4, {"scripted:"})


@pytest.mark.behaviour("20-mixed-pairs")
async def test_seats_of_a_mixed_council_have_no_fallbacks() -> None:
    assert {seat.fallbacks for seat in (await plan(settings=TWO, mixed=True)).roster.seats} == {()}


@pytest.mark.behaviour("20-disagree-by-choice")
async def test_families_may_disagree_only_if_the_user_chose_them() -> None:
    assert (await plan(settings=TWO)).options["may_disagree"] is False
    assert (await plan(settings=TWO, mixed=True)).options["may_disagree"] is True
    seated = TWO + '[seats.judge-1]\nmodel = "sim:other"\n'
    assert (await plan(settings=seated)).options["may_disagree"] is True


@pytest.mark.behaviour("20-disagree-by-choice")
@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (JudgesOptions(may_disagree=False), False),
        (JudgesOptions(may_disagree=True), True),
        (JudgesOptions(), True),  # a plan of an earlier version
    ],
)
def test_a_verdict_takes_from_the_plan_whether_families_may_disagree(options: JudgesOptions, expected: bool) -> None:
    votes = [Vote("judge-1", "anthropic", "PASS", "HIGH"), Vote("judge-2", "openai", "FAIL", "HIGH")]
    assert may_disagree(options, votes) is expected


async def test_the_environment_overrides_the_file_for_the_second_family() -> None:
    made = await plan(settings=TWO, env={"COUNCIL_CODEX_MODEL": "sim:other"}, mixed=True, count=1)
    assert [seat.member for seat in made.roster.seats] == ["scripted:", "sim:other"]


async def test_the_packet_contains_the_perspective_and_the_reply_schema() -> None:
    Path("notes.md").write_text("one\ntwo\n", encoding="utf-8")  # noqa: ASYNC240
    made = await plan("validate notes.md", preset="ops")
    packet = preview_packet(made)["council_packet"]
    assert packet["context"]["files"] == [{"path": "notes.md", "content": "1| one\n2| two"}]
    assert (packet["perspective"], packet["output_schema"]["verdict"]) == ("reliability", "PASS | WARN | FAIL")
