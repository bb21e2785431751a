"""Council as a library: public names, import time, and runs without a terminal."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import council
from council import events as ev
from council import protocols
from council.errors import UsageError
from council.members.scripted import Scripted
from council.protocols.options import Options
from council.runs.service import Convener

SEATS = dict.fromkeys(("alpha", "beta", "gamma", "chair"), "scripted:")
HEAVY = ("pydantic", "aiohttp", "jinja2", "click", "rich", "platformdirs", "sqlite3", "asyncio")


@pytest.fixture
def second_opinion(tmp_path: Path) -> Iterator[council.Protocol]:
    """A custom protocol: one function and one folder of prompts."""
    (tmp_path / "mine/second").mkdir(parents=True)
    (tmp_path / "mine/second/say.md").write_text("Say it.")

    class SecondOptions(Options):
        loud: bool = False

    async def second(convened: council.Council, loud: bool = False) -> council.Verdict:
        async with convened.phase("say"):
            statement = await convened.ask(convened.chair, "second/say")
        return council.Verdict(statement.text.upper() if loud else statement.text)

    protocol = council.Protocol("second", second, prompts=tmp_path / "mine", options=SecondOptions)
    yield protocol
    protocols._registered.pop("second", None)


# Public API


@pytest.mark.behaviour("house-public-surface")
def test_the_public_names_are_these_and_no_others() -> None:
    assert sorted(council.__all__) == [
        "AccessError", "Answer", "Ask", "AuthError", "BatchRow", "BatchStream", "BudgetSpent", "CapTooLow", "ChairAbsent", "Client", "ConfigError", "Convener",
        "Council", "CouncilError", "EngineError", "Entry", "Event", "Fault", "LocalModelError", "Member", "Minutes",
        "PacketRefused", "PromptError", "Protocol", "Question", "QuorumLost", "QuotaError", "Reply", "Report", "Roster",
        "Round", "RunFailed", "RunIncomplete", "RunInterrupted", "RunOptions", "RunOwned", "RunRow", "RunStream", "SearchNotEnabled",
        "Seat", "Statement", "StoreError", "TrustRequired", "UnknownRun", "Usage", "UsageError", "Verdict", "__version__", "batch", "close",
        "convene", "convene_sync", "register", "stream",
    ]  # fmt: skip
    assert {name: getattr(council, name) for name in council.__all__}
    assert set(council.__all__) <= set(dir(council))


def test_an_unknown_name_error_lists_the_public_names() -> None:
    with pytest.raises(AttributeError, match=r'has no attribute "convenne": .*convene'):
        _ = council.convenne  # type: ignore[attr-defined]


def test_no_public_name_is_hidden_by_a_module_of_the_same_name() -> None:
    assert callable(council.convene)
    modules = {name for name in council.__all__ if find_spec(f"council.{name}") is not None}
    assert not modules


@pytest.mark.behaviour("issue-2-lazy-import")
def test_importing_council_imports_nothing_heavy() -> None:
    code = f"import sys; before = set(sys.modules); import council; print([m for m in {HEAVY!r} if m in set(sys.modules) - before])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# Runs


def test_convene_sync_returns_the_report_object() -> None:
    member = Scripted(script={"synthesise/chair": {"text": "Spaces."}})
    report = council.convene_sync("Are tabs fine?", members=[member], seats=SEATS)
    assert (report.schema_name, report.status, report.answer) == ("council.report/1", "complete", "Spaces.")
    assert (report.protocol, report.calls.made, len(member.calls)) == ("collaborative", 7, 7)
    assert (report["schema"], report["calls"]["made"]) == ("council.report/1", 7)  # as a dictionary, too
    assert "answer" in report and report.get("ranking") is None
    assert report.report_path and Path(report.report_path).is_file()


@pytest.mark.anyio
async def test_convene_parses_words_like_the_command_line() -> None:
    report = await council.convene("adversarial council: pick a queue", members=[Scripted()], seats=SEATS)
    assert (report["protocol"], report["question"]) == ("adversarial", "pick a queue")


@pytest.mark.anyio
@pytest.mark.behaviour("10-panel-report", "00-exclude-family")
async def test_a_panel_gives_a_program_every_answer_and_leaves_a_vendor_out() -> None:
    question = "Is a lock needed here?"
    report = await council.convene(question, protocol="panel", members=[Scripted()], models=["scripted:"])
    assert [(seat.name, bool(seat.text)) for seat in report.seats] == [("alpha", True), ("beta", True), ("gamma", True)]
    assert report.comparison is not None and report.comparison.state == "answered"
    with pytest.raises(UsageError, match='models names "scripted:", and exclude_family excludes its vendor "scripted"'):
        await council.convene(
            question, protocol="panel", members=[Scripted()], models=["scripted:"], exclude_family="scripted"
        )


@pytest.mark.anyio
async def test_a_stream_yields_the_events_in_order_and_ends() -> None:
    entries = [
        entry async for entry in council.stream("Tabs or spaces?", protocol="triad", members=[Scripted()], seats=SEATS)
    ]
    kept = [entry for entry in entries if not isinstance(entry.event, ev.TRANSIENT_EVENTS)]
    assert [entry.seq for entry in kept] == list(range(1, len(kept) + 1))
    assert (kept[0].event.type, kept[-1].event.type) == ("convened", "closed")
    assert any(isinstance(entry.event, ev.Delta) for entry in entries)
    assert all(json.loads(json.dumps(entry.as_json())) for entry in entries)


@pytest.mark.anyio
async def test_closing_a_stream_stops_its_run_and_keeps_it_resumable() -> None:
    member = Scripted(script={"merge/chair": {"stall": True}})
    stream: AsyncIterator[Any] = council.stream("Tabs or spaces?", protocol="triad", members=[member], seats=SEATS)
    async with aclosing(stream) as entries:  # type: ignore[type-var]
        async for entry in entries:
            if isinstance(entry.event, ev.PhaseEnded):
                break
    convener = Convener(members=[Scripted(script={"merge/chair": {"text": "Spaces."}})])
    minutes = await convener.resume(None, lambda entry: None)
    assert (minutes.status, minutes.verdict["answer"]) == ("complete", "Spaces.")
    assert await convener.audit(minutes.run) == []
    await convener.close()


@pytest.mark.anyio
async def test_an_error_before_the_run_is_raised_to_the_caller() -> None:
    with pytest.raises(UsageError, match='unknown protocol "colaborative"'):
        await council.convene("Tabs or spaces?", protocol="colaborative", members=[Scripted()], seats=SEATS)
    with pytest.raises(UsageError):
        await council.convene("", members=[Scripted()], seats=SEATS)
    with pytest.raises(UsageError, match='flow="debate" needs at least 2 rounds'):
        await council.convene("Tabs or spaces?", flow="debate", rounds=1, members=[Scripted()], seats=SEATS)


@pytest.mark.anyio
async def test_a_question_with_invalid_characters_is_repaired() -> None:
    report = await council.convene("Tabs or caf\udce9?", protocol="triad", members=[Scripted()], seats=SEATS)
    assert (report["status"], report["question"]) == ("complete", "Tabs or caf\ufffd?")


@pytest.mark.anyio
@pytest.mark.behaviour("00-timeout-for-a-phase")
async def test_the_timeout_applies_per_seat_and_phase() -> None:
    member = Scripted(script={"draft/beta": {"stall": True}})
    report = await council.convene("Tabs or spaces?", protocol="triad", members=[member], seats=SEATS, timeout=3.0)
    assert [seat["state"] for seat in report["seats"]] == ["ok", "timed_out", "ok"]
    assert report["degraded"]


@pytest.mark.anyio
@pytest.mark.behaviour("50-batch-library")
async def test_a_batch_yields_the_rows_as_they_end_and_continues(tmp_path: Path) -> None:
    member = Scripted()
    rows: list[dict[str, Any]] = [{"id": n, "question": f"Question {n}?"} for n in range(4)]
    how: dict[str, Any] = {"protocol": "triad", "members": [member], "seats": SEATS, "concurrency": 2}
    async with council.batch(rows, tmp_path / "out.jsonl", **how) as stream:
        first = await anext(stream)
    assert first.report and (first.status, first.report.status) == ("complete", "complete")
    stream = council.batch(rows, tmp_path / "out.jsonl", **how)
    ended = {row.id async for row in stream}
    assert stream.summary["already_done"] + len(ended) == 4 and stream.summary["left"] == 0
    with pytest.raises(UsageError, match='row 1: the row has no "question"'):
        await anext(council.batch([{"id": 1}], tmp_path / "other.jsonl", **how))
    with pytest.raises(UsageError, match="timeout"):
        council.batch(rows, tmp_path / "other.jsonl", timeout="soon", **how)  # type: ignore[arg-type]
    assert not (tmp_path / "other.jsonl").exists()


@pytest.mark.anyio
@pytest.mark.behaviour("50-batch-library")
async def test_a_row_that_cannot_run_has_an_error_and_no_report(tmp_path: Path) -> None:
    spec = tmp_path / "spec.md"
    spec.write_text("Be brief.")

    class Removing(Scripted):
        async def send(self, *request: Any) -> council.Answer:
            spec.unlink(missing_ok=True)
            return await super().send(*request)

    rows = [{"id": "a", "question": "Tabs?"}, {"id": "b", "question": "Spaces?", "options": {"spec": str(spec)}}]
    how: dict[str, Any] = {"protocol": "triad", "members": [Removing()], "seats": SEATS, "concurrency": 1}
    first, second = [row async for row in council.batch(rows, tmp_path / "out.jsonl", **how)]
    assert first.report and (first.id, first.status, first.error) == ("a", "complete", None)
    assert (second.id, second.run, second.status, second.report) == ("b", None, "failed", None)
    assert second.error and "spec.md" in second.error


@pytest.mark.anyio
@pytest.mark.behaviour("50-batch-library")
async def test_a_batch_closes_its_members_when_it_ends(tmp_path: Path) -> None:
    class Closing(Scripted):
        is_closed = False

        async def close(self) -> None:
            self.is_closed = True

    member = Closing()
    how: dict[str, Any] = {"protocol": "triad", "members": [member], "seats": SEATS}
    async for row in council.batch([{"question": "Tabs?"}], tmp_path / "out.jsonl", **how):
        assert (row.status, member.is_closed) == ("complete", False)
    assert member.is_closed


# Custom protocols


@pytest.mark.anyio
@pytest.mark.behaviour("issue-2-own-protocol")
async def test_a_protocol_can_be_passed_or_registered(second_opinion: council.Protocol) -> None:
    member = Scripted(script={"say/chair": {"text": "Spaces."}})
    report = await council.convene("Tabs or spaces?", protocol=second_opinion, members=[member], seats=SEATS)
    assert (report["answer"], report["protocol"]) == ("Spaces.", "second")
    council.register(second_opinion)
    report = await council.convene("Tabs or spaces?", protocol="second", members=[member], seats=SEATS)
    assert report["answer"] == "Spaces."


@pytest.mark.anyio
@pytest.mark.behaviour("issue-13-explicit-arguments")
async def test_options_of_another_package_are_one_argument(second_opinion: council.Protocol) -> None:
    member = Scripted(script={"say/chair": {"text": "Spaces."}})
    how = {"protocol": second_opinion, "members": [member], "seats": SEATS}
    assert (await council.convene("Tabs?", options={"loud": True}, **how)).answer == "SPACES."
    with pytest.raises(UsageError, match="quiet is not an option of the protocol second"):
        await council.convene("Tabs?", options={"quiet": True}, **how)


def test_a_shipped_protocol_cannot_be_replaced() -> None:
    with pytest.raises(UsageError, match='protocol "triad" is already registered'):
        council.register(council.Protocol("triad", None))


@pytest.mark.anyio
async def test_two_councils_run_at_once_in_one_process() -> None:
    members = [Scripted(), Scripted()]
    runs = [
        council.convene(f"Question {n}?", protocol="triad", members=[m], seats=SEATS) for n, m in enumerate(members)
    ]
    reports = await asyncio.gather(*runs)
    assert {report["question"] for report in reports} == {"Question 0?", "Question 1?"}
    assert len({report["run"] for report in reports}) == len({report["report_path"] for report in reports}) == 2
    assert [len(member.calls) for member in members] == [4, 4]
