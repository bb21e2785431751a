"""Plans and rehearsals."""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from importlib.resources import files
from itertools import count
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from council import events as ev
from council import protocols
from council.engine.council import Council
from council.engine.reply import Reply
from council.errors import EngineError, PromptError, UsageError
from council.members.scripted import Scripted
from council.planning import rehearsal
from council.planning.intent import Inferred
from council.planning.plan import Plan
from council.planning.rehearsal import RehearsalInput, rehearse
from council.planning.setup import RunSetup
from council.protocols import Protocol
from council.runs.service import Convener
from council.types import Question, Roster, Seat, Verdict

pytestmark = pytest.mark.anyio
SEATS = dict.fromkeys(("alpha", "beta", "gamma", "chair"), "scripted:")
KEYS = [
    "schema", "task", "protocol", "why", "question", "target", "options", "seats", "chair", "phases", "calls", "agents",
    "packet", "cost", "warnings",
]  # fmt: skip


@pytest.fixture
async def convener() -> AsyncIterator[Convener]:
    convener = Convener(Path.cwd(), flags={"seats": SEATS})
    yield convener
    await convener.close()


async def make_plan(convener: Convener, words: str = "Tabs or spaces?", **how: Any) -> Plan:
    return await convener.plan([words], how.pop("flags", None), **how)


def phases(plan: Plan) -> list[tuple[str, int, bool]]:
    return [(phase["name"], phase["calls"], phase["parallel"]) for phase in plan.phases]


# Rehearsal


@pytest.mark.behaviour(
    "000-phases-collaborative",
    "000-phases-adversarial",
    "000-triad-four-calls",
    "000-collaborative-seven-calls",
    "000-adversarial-seven-calls",
)
@pytest.mark.parametrize(
    ("protocol", "shape", "calls"),
    [
        ("collaborative", [("draft", 3, True), ("improve", 3, True), ("synthesise", 1, False)], (7, 7)),
        ("adversarial", [("draft", 3, True), ("triage", 1, False), ("attack", 2, True), ("verdict", 1, False)], (5, 7)),
        ("triad", [("draft", 3, True), ("merge", 1, False)], (4, 4)),
    ],
)
async def test_planned_phases_and_calls_match_the_protocol(
    convener: Convener, protocol: str, shape: list[tuple[str, int, bool]], calls: tuple[int, int]
) -> None:
    plan = await make_plan(convener, protocol=protocol)
    assert (phases(plan), plan.calls, plan.agents) == (shape, calls, 3)


@pytest.mark.behaviour("000-same-seats-both-modes")
async def test_both_modes_seat_the_same_members() -> None:
    env = {"ANTHROPIC_API_KEY": "x", "OPENAI_API_KEY": "x", "GEMINI_API_KEY": "x", "GOOGLE_API_KEY": "x"}
    convener = Convener(Path.cwd(), env)
    seatings = [
        [(seat.name, seat.member, seat.fallbacks) for seat in plan.roster.seats]
        for plan in [await make_plan(convener, protocol=name) for name in ("collaborative", "adversarial", "triad")]
    ]
    assert seatings[0] == seatings[1] == seatings[2]
    assert [name for name, _, _ in seatings[0]] == ["alpha", "beta", "gamma"]
    await convener.close()


async def test_a_dry_run_sends_nothing_and_makes_no_folder(convener: Convener) -> None:
    member = Scripted()
    convener.members.add(member)
    await make_plan(convener)
    assert member.calls == []
    assert list(Path.cwd().iterdir()) == []
    assert convener._store is None


async def test_a_rehearsal_emits_the_events_of_a_whole_run() -> None:
    protocol = protocols.get_protocol("triad")
    entries = await rehearse(
        RehearsalInput(protocol, Roster(protocol.seats, protocol.chair), Question("?")), agree=True
    )
    assert [entry.event.type for entry in entries].count("statement") == 4
    assert isinstance(entries[-1].event, ev.PhaseEnded)


# Broken protocols fail before any request


async def breaks(council: Council) -> Verdict:
    async with council.phase("draft"):
        await council.poll(council.members, "mine/say")
    return Verdict(str(dict[str, str]()["nothing"]))


async def asks_outside(council: Council) -> Verdict:
    return Verdict((await council.ask(council.chair, "triad/merge")).text)


async def asks_twice(council: Council) -> Verdict:
    async with council.phase("draft"):
        for _ in range(2):
            await council.ask(council.chair, "mine/say")
    return Verdict("")


async def asks_a_missing_prompt(council: Council) -> Verdict:
    async with council.phase("draft"):
        await council.ask(council.chair, "mine/no-such-prompt")
    return Verdict("")


async def forgets_a_variable(council: Council) -> Verdict:
    async with council.phase("merge"):
        await council.ask(council.chair, "triad/merge")
    return Verdict("")


@pytest.mark.behaviour("10-template-checked-first")
@pytest.mark.parametrize(
    ("function", "error", "words"),
    [
        (breaks, EngineError, 'the protocol "mine" failed in rehearsal, nothing was spent: '),
        (asks_outside, EngineError, "outside any phase"),
        (asks_twice, EngineError, 'the key "draft/chair"'),
        (asks_a_missing_prompt, PromptError, 'there is no prompt "mine/no-such-prompt.md"'),
        (forgets_a_variable, PromptError, 'needs "drafts"'),
    ],
)
async def test_a_broken_protocol_fails_before_anything_is_spent(
    convener: Convener, tmp_path: Path, function: Any, error: type[Exception], words: str
) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/say.md").write_text("Say it.")
    member = Scripted()
    convener.members.add(member)
    protocols.register(Protocol("mine", function, (Seat("alpha"),), prompts=tmp_path))
    try:
        with pytest.raises(error, match=words) as caught:
            await make_plan(convener, protocol="mine")
    finally:
        protocols._registered.pop("mine")
    assert "\n" not in str(caught.value)
    assert member.calls == []


# Rehearsal is bounded, and cached only by what a protocol reads


class Said(Reply):
    yes: bool

    def prose(self) -> str:
        return "Yes." if self.yes else "No."


async def asks_until_yes(council: Council) -> Verdict:
    """Loop until a seat says yes, which a stand-in never does in prose."""
    for n in count(1):
        async with council.phase(f"round-{n}"):
            if "yes" in (await council.ask(council.members[0], "mine/say")).text:
                return Verdict("yes")
    return Verdict("")


async def polls_until_yes(council: Council) -> Verdict:
    for n in count(1):
        async with council.phase(f"round-{n}"):
            said = await council.poll(council.members, "mine/say", reply=Said)
        if any(one.reply.yes for one in said.values()):
            return Verdict("yes")
    return Verdict("")


async def ignores_errors(council: Council) -> Verdict:
    for n in count(1):
        with suppress(Exception):
            async with council.phase(f"round-{n}"):
                await council.ask(council.members[0], "mine/say")
    return Verdict("")


async def opens_phases(council: Council) -> Verdict:
    for n in count(1):
        async with council.phase(f"round-{n}"):
            council.note(f"round {n}", why="no seat is asked")
    return Verdict("")


async def branches_on_the_question(council: Council) -> Verdict:
    rounds = 3 if "hard" in council.question.text else 1
    for n in range(1, rounds + 1):
        async with council.phase(f"round-{n}"):
            await council.poll(council.members, "mine/say")
    return Verdict("done")


@contextmanager
def registered(function: Any, folder: Path) -> Iterator[None]:
    (folder / "mine").mkdir(exist_ok=True)
    (folder / "mine/say.md").write_text("Say it.")
    protocols.register(Protocol("mine", function, (Seat("alpha"), Seat("beta")), prompts=folder))
    try:
        yield
    finally:
        protocols._registered.pop("mine")


@pytest.mark.behaviour("rehearsal-bounded")
@pytest.mark.parametrize("function", [asks_until_yes, polls_until_yes, ignores_errors, opens_phases])
async def test_a_protocol_that_never_ends_is_refused_at_planning(
    convener: Convener, tmp_path: Path, function: Any
) -> None:
    started = time.process_time()  # a busy machine does not count
    with registered(function, tmp_path), pytest.raises(EngineError) as caught:
        await make_plan(convener, protocol="mine")
    assert time.process_time() - started < 2.0
    assert re.fullmatch(
        r'the protocol "mine" did not finish in rehearsal after 2000 steps, in the phase "round-\d+": '
        r"end its loop after a fixed number of rounds; nothing was spent",
        str(caught.value),
    )


@pytest.mark.behaviour("rehearsal-reads-question")
async def test_a_protocol_that_branches_on_the_question_is_planned_for_each_question(
    convener: Convener, tmp_path: Path
) -> None:
    with registered(branches_on_the_question, tmp_path):
        calls = [
            (await make_plan(convener, words, protocol="mine")).calls
            for words in ("An easy question?", "A hard question?", "An easy question?")
        ]
    assert calls == [(2, 2), (6, 6), (2, 2)]


@pytest.mark.behaviour("rehearsal-shared")
@pytest.mark.parametrize("protocol", ["collaborative", "adversarial", "ranking"])
async def test_questions_of_one_kind_share_one_rehearsal(
    convener: Convener, protocol: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rehearsal, "_REHEARSALS", {})
    first, second = [
        await make_plan(convener, words, protocol=protocol) for words in ("What is a mutex?", "Why is the sky blue?")
    ]
    assert len(rehearsal._REHEARSALS) == 1
    assert (first.phases, first.calls) == (second.phases, second.calls)


def test_the_flows_of_shipped_protocols_do_not_read_the_question() -> None:
    assert not any(protocols.get_protocol(name).reads_question for name in protocols.SHIPPED_PROTOCOLS)
    assert Protocol("mine", branches_on_the_question).reads_question


@pytest.mark.behaviour("30-general-calls")
@pytest.mark.parametrize(
    ("given", "calls"),
    [({}, (6, 10)), ({"search": "files:."}, (6, 10)), ({"no_search": True}, (5, 9)), ({"no_deliberate": True}, (6, 7))],
)
async def test_general_takes_six_to_ten_calls(
    convener: Convener, given: dict[str, Any], calls: tuple[int, int]
) -> None:
    plan = await convener.plan(["Tabs or spaces?"], given, protocol="general")
    assert [seat.name for seat in plan.roster.seats] == ["generalist", "skeptic", "domain_expert"]
    assert plan.calls == calls


# The plan object


@pytest.mark.behaviour("00-plan-object")
@pytest.mark.parametrize("protocol", protocols.protocol_names())
async def test_the_plan_object_matches_its_schema_with_its_keys_in_order(convener: Convener, protocol: str) -> None:
    made = (await make_plan(convener, protocol=protocol)).as_json()
    assert list(made)[: len(KEYS)] == KEYS
    schema = json.loads(files("council").joinpath("data/schemas/plan.json").read_text())
    jsonschema.validate(json.loads(json.dumps(made)), schema)
    assert made["schema"] == "council.plan/1"
    assert all(
        list(seat)[:6] == ["name", "role", "perspective", "model", "vendor", "fallbacks"] for seat in made["seats"]
    )


@pytest.mark.behaviour("000-titles")
@pytest.mark.parametrize(
    ("protocol", "titles"),
    [
        ("collaborative", ["Deep Explorer", "Practical Builder", "Elegant Minimalist"]),
        ("adversarial", ["Drafter & Red Teamer", "Fact-Checker & Validator", "Optimizer & Devil's Advocate"]),
        ("triad", ["Drafter & Red Teamer", "Fact-Checker & Validator", "Optimizer & Devil's Advocate"]),
    ],
)
async def test_the_seats_have_their_documented_titles(convener: Convener, protocol: str, titles: list[str]) -> None:
    assert [seat["role"] for seat in (await make_plan(convener, protocol=protocol)).as_json()["seats"]] == titles


def make_source() -> None:
    Path("auth.py").write_text("x = 1\n", encoding="utf-8")


async def test_a_setup_can_be_restored_from_its_stored_form() -> None:
    make_source()
    convener = Convener(Path.cwd(), flags={"seats": SEATS, "effort": "low", "max_cost": 1.0})
    plan = await make_plan(convener, "Fix the bug in auth.py")
    assert plan.packet.files and plan.roster.chair and plan.spending.phases
    assert RunSetup.load(json.loads(json.dumps(plan.setup().as_json()))) == plan.setup()
    await convener.close()


async def test_a_setup_of_another_version_is_read(convener: Convener) -> None:
    plan = await make_plan(convener, "Fix the bug in auth.py")
    stored = json.loads(json.dumps(plan.setup().as_json()))
    older = {name: stored[name] for name in ("protocol", "question", "options", "roster", "packet")}
    del older["roster"]["helpers"], older["packet"]["attachments"], older["roster"]["chair"]["fallback_vendors"]
    restored = RunSetup.load(older)
    assert (restored.question, restored.roster, restored.packet) == (plan.question, plan.roster, plan.packet)
    assert (restored.shared_vendors, restored.spending, restored.fork) == (None, plan.spending, None)
    stored["question"] |= {"language": "of a later version"}
    assert RunSetup.load(stored | {"later": 1}) == plan.setup()


@pytest.mark.behaviour("local-compact-template")
async def test_a_small_member_makes_its_seat_small() -> None:
    tiny = Scripted("scripted:tiny", {})
    tiny.small = True
    convener = Convener(Path.cwd(), flags={"seats": SEATS | {"beta": tiny.name}}, members=[tiny])
    plan = await make_plan(convener)
    assert [seat.small for seat in plan.roster.seats] == [False, True, False]
    await convener.close()


def make_changed_repository() -> None:
    subprocess.run(["git", "init", "-q"], check=True)
    Path("new.py").write_text("x = 1\n", encoding="utf-8")


@pytest.mark.behaviour("00-grammar-verb-leaves-question")
@pytest.mark.parametrize("word", ["validate", "review", "critique"])
async def test_a_bare_verb_means_the_changes_in_the_work_tree(word: str) -> None:
    make_changed_repository()
    convener = Convener(Path.cwd(), {})
    plan = await convener.plan([word])
    await convener.close()
    assert (plan.question.task, plan.question.target) == ("validate", "the changes in the work tree")
    assert plan.why == "nothing was named, and the work tree has changes"
    assert [file.path for file in plan.packet.files] == ["new.py"]


@pytest.mark.behaviour("00-bare-asks")
@pytest.mark.parametrize(
    ("words", "inferred"),
    [([], Inferred.TASK), (["validate"], Inferred.TARGET), (["Is", "it", "sound?"], Inferred.NOTHING)],
)
async def test_a_plan_says_what_the_user_did_not_name(words: list[str], inferred: Inferred) -> None:
    make_changed_repository()
    convener = Convener(Path.cwd(), {})
    assert (await convener.plan(words)).inferred is inferred
    await convener.close()


async def test_a_bare_verb_without_changes_is_refused() -> None:
    convener = Convener(Path.cwd(), {})
    with pytest.raises(UsageError, match="the work tree has no changes"):
        await convener.plan(["review"])
    await convener.close()


# Tiers and vendors with keys alone

KEYS_ALONE = {"ANTHROPIC_API_KEY": "a", "OPENAI_API_KEY": "o", "GEMINI_API_KEY": "g"}


@pytest.mark.parametrize(
    ("key", "default", "strong"),
    [
        ("ANTHROPIC_API_KEY", "anthropic:claude-sonnet-5.5", "anthropic:claude-opus-5.5"),
        ("OPENAI_API_KEY", "openai:gpt-6.1-terra", "openai:gpt-6.1-sol"),
        ("GEMINI_API_KEY", "google:gemini-3.8-flash", "google:gemini-3.1-pro-preview"),
    ],
)
@pytest.mark.behaviour("00-members-tiers")
async def test_a_tier_chooses_models_of_the_vendor_with_a_key_alone(key: str, default: str, strong: str) -> None:
    convener = Convener(Path.cwd(), {key: "k"})
    for tier, seats, referee in (("light", default, default), ("medium", default, strong), ("heavy", strong, strong)):
        plan = await convener.plan(["Tabs or spaces?"], {"tier": tier})
        assert {seat.member for seat in plan.roster.seats} == {seats}
        assert plan.roster.chair and plan.roster.chair.member == referee
        assert not any("has no effect" in warning for warning in plan.warnings)
    await convener.close()
