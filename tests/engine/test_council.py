"""The verbs of a protocol with a real ledger."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

import pytest

from council import events as ev
from council.engine.council import Council
from council.engine.reply import Reply
from council.errors import (
    BudgetSpent,
    ChairAbsent,
    DuplicateKey,
    EngineError,
    Fault,
    LedgerMismatch,
    PromptError,
    QuorumLost,
)
from council.members.scripted import Scripted
from council.store.sqlite import SqliteStore
from council.types import Answer, Json, LookupQuery, Outcome, Roster, Seat, Statement, Step, Verdict
from tests.run_session import ALPHA, BETA, CHAIR, GAMMA, ROSTER, FunctionMember, RunSession, open_session

pytestmark = pytest.mark.anyio
ALL = ROSTER.seats


class Killed(Exception):
    """Simulates a killed process."""


class Pick(Reply):
    leader: str

    def prose(self) -> str:
        return f"It is {self.leader}."


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    store = SqliteStore(tmp_path / "store")
    yield store
    store.close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "prompts"


def scripted(session: RunSession) -> Scripted:
    member = session.members["scripted:"]
    assert isinstance(member, Scripted)
    return member


def asked(session: RunSession) -> list[str]:
    return [call["key"] for call in scripted(session).calls]


# phase


async def test_a_phase_prefixes_the_keys_of_its_steps(store: SqliteStore, folder: Path) -> None:
    council = (await open_session(store, folder)).council
    async with council.phase("draft"):
        assert (await council.ask(ALPHA, "t/say")).key == "draft/alpha"


async def test_a_phase_inside_another_carries_both_names(store: SqliteStore, folder: Path) -> None:
    session = await open_session(store, folder)
    async with session.council.phase("r1"):
        async with session.council.phase("explore"):
            assert (await session.council.ask(ALPHA, "t/say")).key == "r1/explore/alpha"
        assert (await session.council.ask(ALPHA, "t/say")).key == "r1/alpha"
    assert [event.phase for event in session.of_type(ev.PhaseEnded)] == ["r1/explore", "r1"]


async def test_a_phase_emits_its_start_its_steps_and_its_end_in_order(store: SqliteStore, folder: Path) -> None:
    session = await open_session(store, folder)
    async with session.council.phase("draft"):
        await session.council.ask(ALPHA, "t/say")
    tags = [event.type for event in session.events]
    assert tags == ["convened", "phase", "asked", "attempt", "statement", "phase_ended"]
    assert [entry.seq for entry in session.heard if entry.seq] == list(range(1, 7))


async def test_a_phase_that_raises_has_no_end_event(store: SqliteStore, folder: Path) -> None:
    session = await open_session(store, folder)
    with suppress(Killed):
        async with session.council.phase("draft"):
            raise Killed
    assert not session.of_type(ev.PhaseEnded)
    assert (await store.load("r2345")).phases == {}


async def test_a_step_outside_any_phase_is_a_clear_error(store: SqliteStore, folder: Path) -> None:
    council = (await open_session(store, folder)).council
    with pytest.raises(EngineError, match="phase"):
        await council.ask(ALPHA, "t/say")


# ask


async def test_ask_returns_the_statement_with_its_outcome(store: SqliteStore, folder: Path) -> None:
    session = await open_session(store, folder, Scripted(script={"draft/alpha": {"text": "Tabs."}}))
    async with session.council.phase("draft"):
        said = await session.council.ask(ALPHA, "t/say")
    assert (said.seat, said.text, said.said, said.reply) == (ALPHA, "Tabs.", "Tabs.", None)
    assert (said.outcome.state, said.outcome.served_by, said.outcome.attempts) == ("ok", "scripted:", 1)
    (stated,) = session.of_type(ev.Stated)
    assert (stated.key, stated.said, stated.usage["out"]) == ("draft/alpha", "Tabs.", 1)


async def test_the_asked_event_contains_the_exact_messages(store: SqliteStore, folder: Path) -> None:
    session = await open_session(store, folder)
    async with session.council.phase("draft"):
        await session.council.ask(BETA, "t/say")
    (event,) = session.of_type(ev.Asked)
    assert (event.phase, event.seat, event.member) == ("draft", "beta", "scripted:")
    assert "Tabs or spaces? It is your turn, beta." in event.messages[-1]["content"]
    assert event.messages == scripted(session).calls[0]["messages"]


async def test_a_typed_reply_is_parsed_and_shown_as_prose(store: SqliteStore, folder: Path) -> None:
    script = {"triage/chair": {"reply": {"leader": "beta"}}}
    session = await open_session(store, folder, Scripted(script=script))
    async with session.council.phase("triage"):
        said = await session.council.ask(CHAIR, "t/say", reply=Pick)
    assert (said.reply, said.said) == (Pick(leader="beta"), "It is beta.")
    (stated,) = session.of_type(ev.Stated)
    assert (stated.said, stated.reply) == ("It is beta.", {"leader": "beta"})
    assert scripted(session).calls[0]["schema"]["required"] == ["leader"]


async def test_an_absent_seat_that_was_asked_alone_loses_the_quorum(store: SqliteStore, folder: Path) -> None:
    session = await open_session(store, folder, Scripted(script={"draft/alpha": {"fail": "auth"}}))
    with pytest.raises(QuorumLost, match=r"alpha did not answer in draft: failed\(auth\)"):
        async with session.council.phase("draft"):
            await session.council.ask(ALPHA, "t/say")


async def test_an_absent_chair_raises_chair_absent(store: SqliteStore, folder: Path) -> None:
    session = await open_session(store, folder, Scripted(script={"merge/chair": {"fail": "server"}}))
    with pytest.raises(ChairAbsent, match=r"chair did not answer in merge: failed\(server\)"):
        async with session.council.phase("merge"):
            await session.council.ask(CHAIR, "t/say")


async def test_a_protocol_without_a_chair_cannot_ask_it(store: SqliteStore, folder: Path) -> None:
    council = (await open_session(store, folder, roster=Roster(ALL))).council
    with pytest.raises(EngineError, match="its Protocol entry has none"):
        _ = council.chair


async def test_after_continues_the_conversation_of_that_seat(store: SqliteStore, folder: Path) -> None:
    session = await open_session(
        store, folder, Scripted(script={"r1/alpha": {"text": "Tabs."}}), prompts={"t/on": "And now?"}
    )
    async with session.council.phase("r1"):
        first = await session.council.ask(ALPHA, "t/say")
    async with session.council.phase("r2"):
        second = await session.council.ask(ALPHA, "t/on", after=first)
    sent = scripted(session).calls[1]["messages"]
    assert [message["role"] for message in sent] == ["system", "user", "assistant", "user"]
    assert sent[:2] == scripted(session).calls[0]["messages"]
    assert (sent[2]["content"], sent[3]["content"]) == ("Tabs.", "And now?")
    assert second.conversation[-1]["content"] == second.text


async def test_poll_after_continues_each_seats_own_conversation(store: SqliteStore, folder: Path) -> None:
    session = await open_session(store, folder, prompts={"t/on": "And now?"})
    async with session.council.phase("r1"):
        first = await session.council.poll(ALL, "t/say")
    async with session.council.phase("r2"):
        await session.council.poll(ALL, "t/on", after=first)
    for call in scripted(session).calls[3:]:
        name = call["key"].split("/")[1]
        assert call["messages"][2]["content"] == first[name].text


# poll


@pytest.mark.behaviour("10-independent-first-statements")
async def test_poll_asks_in_parallel_and_keeps_the_seating_order(store: SqliteStore, folder: Path) -> None:
    together = asyncio.Barrier(3)
    order = iter(("gamma", "alpha", "beta"))

    async def answer(key: str) -> str:
        await together.wait()  # released only after all three were asked
        return f"{key}, spoken {next(order)}"

    council = (await open_session(store, folder, {"scripted:": FunctionMember("scripted:", answer)})).council
    async with council.phase("draft"):
        assert list(await council.poll(ALL, "t/say")) == ["alpha", "beta", "gamma"]


@pytest.mark.behaviour("10-absent-never-dropped")
async def test_a_failing_seat_is_absent_with_its_reason_while_quorum_holds(store: SqliteStore, folder: Path) -> None:
    session = await open_session(store, folder, Scripted(script={"draft/beta": {"fail": "server"}}))
    async with session.council.phase("draft"):
        drafts = await session.council.poll(ALL, "t/say")
    assert list(drafts) == ["alpha", "gamma"]
    assert (drafts.absent["beta"].state, drafts.absent["beta"].seat) == ("failed(server)", BETA)
    (absence,) = session.of_type(ev.WasAbsent)
    assert (absence.key, absence.state, absence.reason) == (
        "draft/beta", "failed(server)", "scripted failure",
    )  # fmt: skip
    (ended,) = session.of_type(ev.PhaseEnded)
    assert ended.absent == ["beta"]


@pytest.mark.behaviour("00-quorum")
@pytest.mark.parametrize(("quorum", "failing", "lost"), [(1, 2, False), (1, 3, True), (2, 1, False), (2, 2, True)])
async def test_quorum_is_counted_over_the_seats_that_answered(
    store: SqliteStore, folder: Path, quorum: int, failing: int, lost: bool
) -> None:
    script = {f"draft/{seat.name}": {"fail": "model"} for seat in ALL[:failing]}
    council = (await open_session(store, folder, Scripted(script=script), quorum=quorum)).council
    async with council.phase("draft"):
        if not lost:
            assert len(await council.poll(ALL, "t/say")) == 3 - failing
            return
        with pytest.raises(QuorumLost, match=rf"{3 - failing} of 3 seats answered in draft \(alpha: failed\(model\)"):
            await council.poll(ALL, "t/say")


async def test_polling_no_seats_returns_an_empty_round(store: SqliteStore, folder: Path) -> None:
    council = (await open_session(store, folder)).council
    async with council.phase("attack"):
        assert len(await council.poll((), "t/say")) == 0


async def test_an_error_in_a_poll_cancels_the_other_seats(store: SqliteStore, folder: Path) -> None:
    member = FunctionMember("scripted:", lambda key: asyncio.Event().wait())
    prompts = {"t/two": "Who?", "t/two.beta": "{{ missing_variable }}"}
    council = (await open_session(store, folder, {"scripted:": member}, prompts=prompts)).council
    before = len(asyncio.all_tasks())
    async with council.phase("draft"):
        with pytest.raises(PromptError):
            await council.poll(ALL, "t/two")
    assert len(asyncio.all_tasks()) == before


# relay


async def test_relay_passes_earlier_statements_to_each_seat(store: SqliteStore, folder: Path) -> None:
    prompts = {"t/turn": "{% for said in heard %}{{ said.seat.name }}: {{ said.text }}. {% endfor %}Now you."}
    script = {f"r1/{seat.name}": {"text": seat.name.upper()} for seat in ALL}
    session = await open_session(store, folder, Scripted(script=script), prompts=prompts)
    async with session.council.phase("r1"):
        heard = await session.council.relay(ALL, "t/turn")
    words = [call["messages"][-1]["content"].rpartition("\n")[2] for call in scripted(session).calls]
    assert words == ["Now you.", "alpha: ALPHA. Now you.", "alpha: ALPHA. beta: BETA. Now you."]
    assert list(heard) == ["alpha", "beta", "gamma"]


async def test_prompts_of_several_seats_may_have_variables_named_review_and_final(
    store: SqliteStore, folder: Path
) -> None:
    session = await open_session(store, folder, prompts={"t/turn": "{{ review }} {{ final }}"})
    async with session.council.phase("r1"):
        await session.council.poll(ALL[:1], "t/turn", review="First", final="draft.")
    async with session.council.phase("r2"):
        await session.council.relay(ALL[:1], "t/turn", review="Second", final="draft.")
    words = [call["messages"][-1]["content"].rpartition("\n")[2] for call in scripted(session).calls]
    assert words == ["First draft.", "Second draft."]


async def test_relay_continues_after_an_absent_seat(store: SqliteStore, folder: Path) -> None:
    prompts = {"t/turn": "{{ heard|length }} before you."}
    session = await open_session(store, folder, Scripted(script={"r1/beta": {"fail": "refused"}}), prompts=prompts)
    async with session.council.phase("r1"):
        heard = await session.council.relay(ALL, "t/turn")
    assert (list(heard), list(heard.absent)) == (["alpha", "gamma"], ["beta"])
    assert "1 before you." in scripted(session).calls[-1]["messages"][-1]["content"]


# gather


async def two_steps(council: Council, seat: Seat) -> Statement[None]:
    async with council.phase("look"):
        await council.ask(seat, "t/say")
    async with council.phase("judge"):
        return await council.ask(seat, "t/say")


async def test_gather_keys_include_the_seat(store: SqliteStore, folder: Path) -> None:
    session = await open_session(store, folder)
    async with session.council.phase("r1"):
        said = await session.council.gather(ALL, two_steps)
    assert [one.key for one in said.values()] == ["r1/alpha/judge/alpha", "r1/beta/judge/beta", "r1/gamma/judge/gamma"]
    assert sorted(asked(session)) == sorted(f"r1/{s.name}/{p}/{s.name}" for s in ALL for p in ("look", "judge"))


async def test_gather_seats_do_not_wait_for_each_other(store: SqliteStore, folder: Path) -> None:
    released = asyncio.Event()

    async def answer(key: str) -> str:
        if key == "r1/alpha/look/alpha":  # stalls until gamma has finished both of its steps
            await released.wait()
        if key.endswith("judge/gamma"):
            released.set()
        return key

    session = await open_session(store, folder, {"scripted:": FunctionMember("scripted:", answer)})
    async with session.council.phase("r1"):
        await session.council.gather((ALPHA, GAMMA), two_steps)
    told = [event.key for event in session.of_type(ev.Stated)]
    assert told.index("r1/gamma/judge/gamma") < told.index("r1/alpha/look/alpha")


async def test_a_seat_out_in_a_gather_is_out_for_the_whole_council(store: SqliteStore, folder: Path) -> None:
    async def act(council: Council, seat: Seat) -> Statement[None]:
        return await council.ask(seat, "t/say")

    session = await open_session(store, folder, Scripted(script={"r1/beta/beta": {"fail": "quota"}}))
    async with session.council.phase("r1"):
        said = await session.council.gather(ALL, act)
    assert (list(said), list(said.absent)) == (["alpha", "gamma"], ["beta"])
    async with session.council.phase("r2"):
        assert list(await session.council.poll(ALL, "t/say")) == ["alpha", "gamma"]
    assert "r2/beta" not in asked(session)


async def test_gather_raises_when_no_seat_answered(store: SqliteStore, folder: Path) -> None:
    script = {f"r1/{seat.name}/look/{seat.name}": {"fail": "refused"} for seat in ALL}
    session = await open_session(store, folder, Scripted(script=script))
    with pytest.raises(QuorumLost, match="0 of 3 seats answered in r1"):
        async with session.council.phase("r1"):
            await session.council.gather(ALL, two_steps)
    async with session.council.phase("r2"):
        assert not await session.council.gather((), two_steps)


@pytest.mark.behaviour("00-exit-budget")
async def test_in_a_gather_the_others_finish_when_one_seat_is_out_of_budget(store: SqliteStore, folder: Path) -> None:
    session = await open_session(store, folder)
    carry_out = session.council.carry_out

    async def refuse_beta(step: Step) -> Outcome:
        return (
            Outcome("skipped(budget)", reason="used up")
            if step.ask.key == "r1/beta/judge/beta"
            else await carry_out(step)
        )

    session.council.carry_out = refuse_beta
    with pytest.raises(BudgetSpent, match="used up"):
        async with session.council.phase("r1"):
            await session.council.gather(ALL, two_steps)
    answered = [event.key for event in session.of_type(ev.Stated)]
    assert {"r1/alpha/judge/alpha", "r1/gamma/judge/gamma"} <= set(answered)


async def test_gather_refuses_the_statement_of_another_seat(store: SqliteStore, folder: Path) -> None:
    async def act(council: Council, seat: Seat) -> Statement[None]:
        return await council.ask(ALPHA, "t/say")

    session = await open_session(store, folder)
    with pytest.raises(EngineError, match='returned a statement of "alpha" for "beta"'):
        async with session.council.phase("r1"):
            await session.council.gather((BETA,), act)


async def test_a_partial_verdict_recorded_in_a_gather_belongs_to_the_run(store: SqliteStore, folder: Path) -> None:
    async def act(council: Council, seat: Seat) -> Statement[None]:
        council.so_far(Verdict(f"{seat.name} is being asked"))
        return await council.ask(seat, "t/say")

    session = await open_session(store, folder)
    assert session.council.state.partial_verdict == Verdict("")
    async with session.council.phase("r1"):
        await session.council.gather((BETA,), act)
    assert session.council.state.partial_verdict.answer == "beta is being asked"


# look and search


@pytest.mark.parametrize(("kind", "key"), [("look", "r1/alpha/look"), ("search", "r1/search")])
async def test_an_effect_is_a_ledger_step_and_is_not_repeated(
    store: SqliteStore, folder: Path, kind: str, key: str
) -> None:
    done: list[Json] = []

    async def effect(wanted: Json) -> list[Json]:
        done.append(wanted)
        return [{"path": "a.py", "text": "café"}]

    async def use(session: RunSession) -> Sequence[object]:
        async with session.council.phase("r1"):
            if kind == "look":
                return await session.council.look(ALPHA, {"files": [], "names": ["a.py"], "patterns": []})
            return await session.council.search(["tabs"])

    effects: Any = {kind: effect}
    session = await open_session(store, folder, effects=effects)
    assert await use(session) == [{"path": "a.py", "text": "café"}]
    (event,) = session.of_type(ev.LookedUp)
    assert (event.key, event.phase, event.found) == (key, "r1", 1)
    resumed = await session.resume(effects=effects)
    assert await use(resumed) == [{"path": "a.py", "text": "café"}]
    assert (len(done), resumed.ledger.calls["replayed"]) == (1, 1)


@pytest.mark.parametrize("kind", ["look", "search"])
async def test_a_missing_effect_is_a_clear_error(store: SqliteStore, folder: Path, kind: str) -> None:
    council = (await open_session(store, folder)).council
    with pytest.raises(EngineError, match=f'no "{kind}" effect: configure a packet or a search provider'):
        async with council.phase("r1"):
            wanted: LookupQuery = {"files": [], "names": [], "patterns": []}
            await (council.look(ALPHA, wanted) if kind == "look" else council.search(["tabs"]))


# note and shuffled


async def test_a_note_is_emitted_once_across_replays(store: SqliteStore, folder: Path) -> None:
    session = await open_session(store, folder)
    for _ in range(2):
        session.council.note("attack skipped", why="consensus")
    resumed = await session.resume()
    resumed.council.note("attack skipped", why="consensus")
    resumed.council.note("attack skipped", why="another reason")
    record = await store.load("r2345")
    notes = [entry.event for entry in record.entries if isinstance(entry.event, ev.Noted)]
    assert notes == [ev.Noted("attack skipped", "consensus"), ev.Noted("attack skipped", "another reason")]


async def test_every_reader_gets_a_different_order(store: SqliteStore, folder: Path) -> None:
    council = (await open_session(store, folder)).council
    items = list(range(8))
    orders = [council.shuffled(items, seat) for seat in ALL]
    assert len({tuple(order) for order in orders}) == 3
    assert all(sorted(order) == items for order in orders)


async def test_the_order_is_stable_on_resume_and_differs_between_runs(store: SqliteStore, folder: Path) -> None:
    one = await open_session(store, folder)
    other = await open_session(store, folder, run="r3456", seed="another")
    items = list(range(8))
    assert one.council.shuffled(items, ALPHA) == (await one.resume()).council.shuffled(items, ALPHA)
    assert one.council.shuffled(items, ALPHA) != other.council.shuffled(items, ALPHA)


# The ledger


@pytest.mark.behaviour("40-duplicate-key")
async def test_a_duplicate_key_is_refused(store: SqliteStore, folder: Path) -> None:
    session = await open_session(store, folder)
    async with session.council.phase("draft"):
        await session.council.ask(ALPHA, "t/say")
        with pytest.raises(DuplicateKey, match='"draft/alpha": open another phase'):
            await session.council.ask(ALPHA, "t/say")
    assert len(asked(session)) == 1


async def test_a_seat_joins_its_statements_once_in_a_phase(store: SqliteStore, folder: Path) -> None:
    council = (await open_session(store, folder)).council

    async def ask_parts() -> tuple[list[Statement[Any]], Pick]:
        async with council.phase("part"):
            return [await council.ask(ALPHA, "t/say")], Pick(leader="beta")

    async with council.phase("draft"):
        joined = await council.join(ALPHA, Pick, ask_parts)
        with pytest.raises(DuplicateKey, match='"draft/alpha/join": open another phase'):
            await council.join(ALPHA, Pick, ask_parts)
    assert joined.reply.leader == "beta"


@pytest.mark.behaviour("40-ledger-mismatch")
async def test_a_changed_request_under_a_known_key_suggests_a_fork(store: SqliteStore, folder: Path) -> None:
    session = await open_session(store, folder, prompts={"t/other": "Something else."})
    async with session.council.phase("draft"):
        await session.council.ask(ALPHA, "t/say")
    council = (await session.resume()).council
    with pytest.raises(LedgerMismatch, match=r'"draft/alpha" of run r2345 .* `council fork r2345`'):
        async with council.phase("draft"):
            await council.ask(ALPHA, "t/other")


@pytest.mark.behaviour("40-committed-never-bought-again", "00-calls-counted")
async def test_answered_steps_are_replayed_and_not_asked_again(store: SqliteStore, folder: Path) -> None:
    session = await open_session(store, folder)
    async with session.council.phase("draft"):
        drafts = await session.council.poll(ALL, "t/say")
    resumed = await session.resume({"scripted:": Scripted()})
    async with resumed.council.phase("draft"):
        replayed = await resumed.council.poll(ALL, "t/say")
    assert dict(replayed) == dict(drafts)
    assert asked(resumed) == []
    assert resumed.ledger.calls == {"made": 3, "replayed": 3, "in_doubt": 0}
    assert resumed.events == []


@pytest.mark.behaviour("40-absence-replays")
async def test_an_absence_in_a_finished_phase_is_replayed_as_an_absence(store: SqliteStore, folder: Path) -> None:
    session = await open_session(store, folder, Scripted(script={"draft/beta": {"fail": "server"}}))
    async with session.council.phase("draft"):
        await session.council.poll(ALL, "t/say")
    resumed = await session.resume({"scripted:": Scripted()})
    async with resumed.council.phase("draft"):
        drafts = await resumed.council.poll(ALL, "t/say")
    assert (list(drafts), drafts.absent["beta"].state) == (["alpha", "gamma"], "failed(server)")
    assert asked(resumed) == []
    assert not resumed.of_type(ev.WasAbsent)


@pytest.mark.behaviour("40-unfinished-phase-asks-absent-again")
@pytest.mark.parametrize("fault", ["server", "auth", "stall"])
async def test_an_absence_in_an_unfinished_phase_is_asked_again(store: SqliteStore, folder: Path, fault: str) -> None:
    session = await open_session(store, folder, Scripted(script={"draft/beta": {"fail": fault}}))
    with suppress(Killed):
        async with session.council.phase("draft"):
            await session.council.poll(ALL, "t/say")
            raise Killed
    resumed = await session.resume({"scripted:": Scripted()})
    async with resumed.council.phase("draft"):
        assert list(await resumed.council.poll(ALL, "t/say")) == ["alpha", "beta", "gamma"]
    assert asked(resumed) == ["draft/beta"]


REJECTED: dict[str, Any] = {
    "refused": Answer("no", "refused"),
    "truncated": Answer("The first half", "length"),
    "degenerate": Answer(""),
    "failed(flood)": Fault("flood", "it is too long"),
}


def answer_for_beta(answer: Any) -> FunctionMember:
    """Return a member that gives this answer for beta, and text for the other seats."""
    return FunctionMember("scripted:", lambda key: answer if key.endswith("/beta") else "Tabs.")


async def poll_and_stop(session: RunSession) -> None:
    with suppress(Killed):
        async with session.council.phase("draft"):
            await session.council.poll(ALL, "t/say")
            raise Killed


@pytest.mark.behaviour("40-rejected-answer-never-bought-again")
@pytest.mark.parametrize("state", REJECTED)
async def test_an_absence_with_rejected_answers_holds_in_an_unfinished_phase(
    store: SqliteStore, folder: Path, state: str
) -> None:
    session = await open_session(store, folder, answer_for_beta(REJECTED[state]))
    await poll_and_stop(session)
    (absence,) = session.of_type(ev.WasAbsent)
    for _ in range(2):  # also when it is killed again
        resumed = await session.resume({"scripted:": Scripted()})
        await poll_and_stop(resumed)
    resumed = await session.resume({"scripted:": Scripted()})
    async with resumed.council.phase("draft"):
        drafts = await resumed.council.poll(ALL, "t/say")
    assert (list(drafts), drafts.absent["beta"].state) == (["alpha", "gamma"], state)
    assert (asked(resumed), resumed.of_type(ev.WasAbsent)) == ([], [])
    assert [event.absent for event in resumed.of_type(ev.PhaseEnded)] == [["beta"]]
    record = await store.load(session.record.run)
    assert record.phases["draft"]["draft/beta"] == {
        "seat": "beta", "state": state, "reason": absence.reason, "since": "",
    }  # fmt: skip


@pytest.mark.behaviour("40-rejected-answer-asked-again-after-the-end")
@pytest.mark.parametrize(
    ("stopped", "status", "sent"),
    [
        ("quorum", "failed", ["draft/beta"]), ("chair", "incomplete", ["draft/beta"]), ("", "incomplete", ["draft/beta"]),
        ("interrupted", "incomplete", []), ("cancelled", "incomplete", []), ("budget", "incomplete", []),
    ],
)  # fmt: skip
async def test_a_run_that_ended_without_enough_answers_is_resumed_for_new_ones(
    store: SqliteStore, folder: Path, stopped: str, status: str, sent: list[str]
) -> None:
    session = await open_session(store, folder, answer_for_beta(REJECTED["refused"]))
    await poll_and_stop(session)
    await session.ledger.close(ev.Closed(status, {}, {}, stopped), lambda entries: "{}")
    resumed = await session.resume({"scripted:": Scripted()})
    await poll_and_stop(resumed)
    assert asked(resumed) == sent
    again = await session.resume({"scripted:": Scripted()})
    async with again.council.phase("draft"):
        drafts = await again.council.poll(ALL, "t/say")
    assert (asked(again), list(drafts.absent)) == ([], [] if sent else ["beta"])


@pytest.mark.behaviour("10-out-for-the-run", "10-other-failures-asked-again")
@pytest.mark.parametrize(
    ("fault", "state", "out"),
    [
        ("stall", "timed_out", True), ("auth", "failed(auth)", True), ("quota", "failed(quota)", True),
        ("model", "failed(model)", True), ("server", "failed(server)", False), ("net", "failed(net)", False),
        ("refused", "refused", False), ("schema", "failed(schema)", False),
    ],
)  # fmt: skip
async def test_some_absences_last_for_the_run_and_others_for_the_phase(
    store: SqliteStore, folder: Path, fault: str, state: str, out: bool
) -> None:
    session = await open_session(store, folder, Scripted(script={"draft/beta": {"fail": fault}}))
    async with session.council.phase("draft"):
        assert (await session.council.poll(ALL, "t/say")).absent["beta"].state == state
    async with session.council.phase("improve"):
        improved = await session.council.poll(ALL, "t/say")
    assert ("improve/beta" in asked(session)) is not out
    if out:
        assert (improved.absent["beta"].state, improved.absent["beta"].reason) == (
            state, f"out since it was {state} in draft",
        )  # fmt: skip


@pytest.mark.behaviour("10-out-for-the-run")
async def test_a_seat_out_for_the_run_stays_out_after_resume(store: SqliteStore, folder: Path) -> None:
    session = await open_session(store, folder, Scripted(script={"draft/beta": {"fail": "quota"}}))
    async with session.council.phase("draft"):
        await session.council.poll(ALL, "t/say")
    resumed = await session.resume({"scripted:": Scripted()})
    async with resumed.council.phase("draft"):
        await resumed.council.poll(ALL, "t/say")
    async with resumed.council.phase("improve"):
        assert list((await resumed.council.poll(ALL, "t/say")).absent) == ["beta"]
    assert asked(resumed) == ["improve/alpha", "improve/gamma"]


@pytest.mark.behaviour("10-chair-names-absent-seat")
async def test_a_name_that_is_not_allowed_gets_a_repair_turn(store: SqliteStore, folder: Path) -> None:
    answers = iter((json.dumps({"leader": "delta"}), json.dumps({"leader": "gamma"})))
    member = FunctionMember("scripted:", lambda key: next(answers))
    session = await open_session(store, folder, {"scripted:": member})
    async with session.council.phase("triage"):
        said = await session.council.ask(CHAIR, "t/say", reply=Pick, choices={"leader": ["alpha", "gamma"]})
    assert (said.reply.leader, said.outcome.state, said.outcome.attempts) == ("gamma", "ok_repaired", 2)
    (fault,) = session.of_type(ev.Faulted)
    assert fault.detail == 'leader: "delta" is not one of alpha, gamma'
    repair = json.loads(member.calls[1]["body"])["messages"]
    assert [message["role"] for message in repair[-2:]] == ["assistant", "user"]
    assert fault.detail in repair[-1]["content"]


class Checked(Pick):
    """Reply whose check became stricter in a later version."""

    allowed: ClassVar[list[str]] = ["alpha"]

    def check_choices(self, choices: Any) -> None:
        if self.leader not in self.allowed:
            raise ValueError(f"{self.leader} is not allowed")


async def test_a_stored_reply_that_is_no_longer_valid_makes_the_seat_absent(
    store: SqliteStore, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    member = FunctionMember("scripted:", lambda key: '{"leader": "alpha"}')
    session = await open_session(store, folder, {"scripted:": member})
    async with session.council.phase("triage"):
        await session.council.poll(ALL[:1], "t/say", reply=Checked)
    monkeypatch.setattr(Checked, "allowed", ["beta"])
    resumed = await session.resume({"scripted:": member})
    async with resumed.council.phase("triage"):
        round_ = await resumed.council.poll(ALL[:1], "t/say", reply=Checked, quorum=0)
    assert round_.absent["alpha"].state == "failed(schema)"
    assert round_.absent["alpha"].reason == "this version cannot read the stored reply: alpha is not allowed"


async def test_positions_are_the_latest_statements_of_members_without_the_chair(
    store: SqliteStore, folder: Path
) -> None:
    council = (await open_session(store, folder)).council
    for phase in ("draft", "improve"):
        async with council.phase(phase):
            await council.poll(ALL[:2], "t/say")
    async with council.phase("merge"):
        await council.ask(CHAIR, "t/say")
    assert {name: said.key for name, said in council.state.positions.items()} == {
        "alpha": "improve/alpha", "beta": "improve/beta",
    }  # fmt: skip


async def test_context_and_arguments_reach_the_template_and_arguments_win(store: SqliteStore, folder: Path) -> None:
    session = await open_session(store, folder, prompts={"t/of": "{{ one }} {{ two }}"}, context={"one": 1, "two": 2})
    async with session.council.phase("draft"):
        await session.council.ask(ALPHA, "t/of", two=3)
    assert scripted(session).calls[0]["messages"][-1]["content"].endswith("1 3")


async def test_two_runs_in_one_store_are_independent(store: SqliteStore, folder: Path) -> None:
    one, other = await open_session(store, folder), await open_session(store, folder, run="r3456")
    for session in (one, other):
        async with session.council.phase("draft"):
            await session.council.ask(ALPHA, "t/say")
    assert [len(asked(session)) for session in (one, other)] == [1, 1]


def test_the_public_verbs_are_pinned() -> None:
    verbs: set[str] = {
        "phase",
        "ask",
        "poll",
        "relay",
        "gather",
        "join",
        "with_context",
        "look",
        "search",
        "note",
        "so_far",
        "shuffled",
        "is_out",
        "record_labels",
        Council.assign_labels.__name__,
    }
    public: dict[str, Any] = {name: value for name, value in vars(Council).items() if not name.startswith("_")}
    assert {name for name, value in public.items() if callable(value)} == verbs


async def test_a_budget_that_ends_in_a_gather_ends_the_run_after_the_other_seats(
    store: SqliteStore, tmp_path: Path
) -> None:
    session = await open_session(store, tmp_path)
    answered: list[str] = []

    async def act(council: Council, seat: Seat) -> Statement[Any]:
        if seat.name == "alpha":
            raise BudgetSpent("the budget for this run is used up")
        said = await council.ask(seat, "t/say")
        answered.append(seat.name)
        return said

    async with session.council.phase("draft"):
        with pytest.raises(BudgetSpent, match="the budget for this run is used up"):
            await session.council.gather(session.council.members, act)
    assert answered == [seat.name for seat in session.council.members[1:]]
