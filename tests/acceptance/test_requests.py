"""Requests of the three protocols as the endpoint sees them: their order and their content."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from council.engine.minutes import Minutes
from council.render.report import build_report
from council.runs.service import Convener
from tests.acceptance.helpers import EVERYONE, PHASES, QUESTION, SEATS, FixedAnswers, Workspace, mark
from tests.fake_provider import FakeProvider
from tests.trusted_project import trust_project

pytestmark = pytest.mark.anyio


async def deliberate(protocol: str, question: str = QUESTION) -> Minutes:
    convener = Convener()
    try:
        return await convener.run(await convener.plan([question], protocol=protocol), lambda entry: None)
    finally:
        await convener.close()


async def in_waves(workspace: Workspace, protocol: str, phases: dict[str, tuple[str, ...]]) -> Minutes:
    """Hold each phase until all its requests have arrived, and check that no others have."""
    gates = {phase: workspace.hold(phase) for phase in phases}
    run = asyncio.create_task(deliberate(protocol))
    expected: list[str] = []
    for phase, seats in phases.items():
        await asyncio.to_thread(gates[phase].wait, count=len(seats))
        expected += [f"{phase}/{seat}" for seat in seats]
        assert sorted(workspace.asked()) == sorted(expected)
        gates[phase].release()
    minutes = await run
    assert sorted(workspace.asked()) == sorted(expected)
    assert [len(wave) for wave in workspace.provider.waves()] == [len(seats) for seats in phases.values()]
    return minutes


@pytest.mark.behaviour("000-collaborative-seven-calls", "000-adversarial-seven-calls", "000-triad-four-calls")
@pytest.mark.parametrize(("protocol", "calls"), [("collaborative", 7), ("adversarial", 7), ("triad", 4)])
async def test_each_phase_is_one_wave_of_requests(workspace: Workspace, protocol: str, calls: int) -> None:
    minutes = await in_waves(workspace, protocol, PHASES[protocol])
    assert minutes.status == "complete"
    assert minutes.calls == {"made": calls, "replayed": 0, "in_doubt": 0}


@pytest.mark.behaviour("000-consensus-skips-attack")
async def test_consensus_goes_straight_to_the_verdict_in_five_requests(workspace: Workspace) -> None:
    workspace.answers.consensus = True
    phases = {name: seats for name, seats in PHASES["adversarial"].items() if name != "attack"}
    minutes = await in_waves(workspace, "adversarial", phases)
    assert (minutes.verdict["outcome"], minutes.verdict["confidence"]) == ("SURVIVED", "HIGH")
    assert "Consensus detected — no adversarial round needed" in [note.why for note in minutes.notes]


@pytest.mark.behaviour("000-leader-sits-out", "000-attacker-sees-own-and-leader")
@pytest.mark.parametrize("leader", SEATS)
async def test_the_leader_sits_out_and_attackers_see_only_its_draft_and_their_own(
    workspace: Workspace, leader: str
) -> None:
    workspace.answers.leader = leader
    await deliberate("adversarial")
    attackers = [seat for seat in SEATS if seat != leader]
    assert sorted(key for key in workspace.asked() if key.startswith("attack/")) == [
        f"attack/{seat}" for seat in attackers
    ]
    for attacker, third in zip(attackers, reversed(attackers), strict=True):
        prompt = workspace.prompt(f"attack/{attacker}")
        assert mark(leader, "draft") in prompt
        assert mark(attacker, "draft") in prompt
        assert mark(third, "draft") not in prompt


@pytest.mark.behaviour("000-verdict-sees-everything")
async def test_the_verdict_prompt_contains_leader_attacks_and_all_drafts(workspace: Workspace) -> None:
    await deliberate("adversarial")
    prompt = workspace.prompt("verdict/chair")
    assert all(mark(seat, "draft") in prompt for seat in SEATS)
    assert all(mark(seat, "attack") in prompt for seat in ("beta", "gamma"))


@pytest.mark.behaviour("000-improvers-read-all-drafts", "000-synthesis-from-improved")
async def test_improvers_read_every_draft_and_the_chair_the_improved_versions(workspace: Workspace) -> None:
    minutes = await deliberate("collaborative")
    for seat in SEATS:
        prompt = workspace.prompt(f"improve/{seat}")
        assert all(mark(name, "draft") in prompt for name in SEATS)
        assert prompt.index(mark(seat, "draft")) == min(prompt.index(mark(name, "draft")) for name in SEATS)
    prompt = workspace.prompt("synthesise/chair")
    assert all(mark(seat, "improve") in prompt for seat in SEATS)
    assert all(prompt.index(mark(seat, "draft")) > prompt.index("# How they began") for seat in SEATS)
    assert minutes.verdict["answer"] == f"The synthesise of chair: {mark('chair', 'synthesise')}."


@pytest.mark.behaviour("000-triad-merges-drafts")
async def test_the_triad_merges_the_three_drafts(workspace: Workspace) -> None:
    minutes = await deliberate("triad")
    assert all(mark(seat, "draft") in workspace.prompt("merge/chair") for seat in SEATS)
    assert mark("chair", "merge") in minutes.verdict["answer"]


@pytest.mark.behaviour("10-independent-first-statements")
@pytest.mark.parametrize("protocol", PHASES)
async def test_draft_prompts_contain_no_other_statements(workspace: Workspace, protocol: str) -> None:
    await deliberate(protocol)
    for seat in SEATS:
        prompt = workspace.prompt(f"draft/{seat}")
        assert QUESTION in prompt
        assert "mark-" not in prompt


@pytest.mark.behaviour("10-prompts-name-no-vendor")
@pytest.mark.parametrize("protocol", PHASES)
async def test_no_prompt_names_a_vendor_or_a_model(provider: FakeProvider, protocol: str) -> None:
    models = dict(zip(EVERYONE, ("quokka-7", "wombat-8", "numbat-9", "bilby-10"), strict=True))
    workspace = Workspace(Path.cwd(), provider)
    provider.answer = workspace.answers = FixedAnswers({model: seat for seat, model in models.items()})
    text = (workspace.folder / "council.toml").read_text().replace("providers.sim]", 'providers.zyx]\nvendor = "acme"')
    for seat, model in models.items():
        text = text.replace(f'"sim:{seat}"', f'"zyx:{model}"')
    (workspace.folder / "council.toml").write_text(text)
    trust_project(workspace.folder)
    await deliberate(protocol)
    prompts = "\n".join(seen.prompt.lower() for seen in provider.log)
    known = ("claude", "anthropic", "openai", "gpt", "google", "gemini", "llama", "mistral")
    assert len(provider.log) == sum(map(len, PHASES[protocol].values()))
    assert [name for name in ("zyx", "acme", *models.values(), *known) if name in prompts] == []


@pytest.mark.behaviour("10-common-prefix")
@pytest.mark.parametrize("protocol", PHASES)
async def test_seats_of_a_phase_share_house_rules_and_question_byte_for_byte(
    workspace: Workspace, protocol: str
) -> None:
    await deliberate(protocol)
    for phase, seats in PHASES[protocol].items():
        asked = [seen.body["messages"] for seen in workspace.provider.log if workspace.answers.who(seen)[1] == phase]
        assert len(asked) == len(seats)
        assert len({messages[0]["content"] for messages in asked}) == 1
        assert [message["role"] for message in asked[0]] == ["system", "user"]
        assert all(messages[1]["content"].startswith(f"# Question\n\n{QUESTION}\n") for messages in asked)


@pytest.mark.behaviour("000-computed-confidence")
async def test_confidence_is_computed_from_the_attacks_that_landed(workspace: Workspace) -> None:
    minutes = await deliberate("adversarial")
    assert (minutes.verdict["outcome"], minutes.verdict["confidence"]) == ("MODIFIED", "MEDIUM")
    assert "## Confidence Assessment\n\n**MEDIUM.** Little is left open." in build_report(minutes)["answer"]
