"""Fault table on every wire, at the first or at every attempt: seat state, requests, charges and messages."""

from __future__ import annotations

import io
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from council import events as ev
from council.calling.budget import Budget, Caps
from council.calling.fault_table import FAULT_TABLE
from council.calling.retry import result_from_json
from council.engine.reply import Reply as Form
from council.errors import BudgetSpent, QuorumLost
from council.members.wires.wire import WireMember
from council.money import Price, Rates
from council.render.plain import PlainView
from council.store.sqlite import SqliteStore
from council.types import Answer, Packet, PacketFile, Roster, Seat
from tests.fake_provider import FakeProvider, Reply
from tests.fakes.members import KEY as SECRET
from tests.fakes.members import member_at, seated
from tests.fakes.troubles import TROUBLES, WIRES, Trouble
from tests.run_session import RunSession, open_session

pytestmark = [pytest.mark.anyio, pytest.mark.behaviour("issue-5-fault-table")]
every_wire = pytest.mark.parametrize("wire", WIRES)
every_trouble = pytest.mark.parametrize("trouble", TROUBLES.values(), ids=list(TROUBLES))
SHORT_TIMEOUTS = {"first_byte": 0.8, "idle": 0.4}  # for stalls; a busy machine may be late with a first byte
A_DOLLAR_A_TOKEN = Price(Rates(*[Decimal(1_000_000)] * 4))
PACKET = Packet(files=(PacketFile("big.py", "x = 1\n" * 400), PacketFile("small.py", "y = 2\n")), target="big.py")
PLACE = "draft/alpha"


class Ballot(Form):
    yes: bool

    def prose(self) -> str:
        return "yes" if self.yes else "no"


@dataclass
class Heard:
    """Result of one step of one seat."""

    session: RunSession
    state: str
    lines: list[str]
    sent: list[bytes]  # the stored requests

    @property
    def charged(self) -> int:
        """Return the charged dollars, which equal tokens here."""
        return round(sum(row.amount for row in self.session.record.spending.values()) / 1e9)


NO_CAPS = Caps()


async def ask(
    member: WireMember, store: SqliteStore, folder: Path, *, typed: bool = False, caps: Caps = NO_CAPS
) -> Heard:
    """Ask one seat in a council with a ledger, a budget and a view."""
    seat = Seat("alpha", member=member.name)
    session = await open_session(
        store, folder, {member.name: member}, run="r6789", roster=Roster((seat,)), context={"packet": PACKET}, timeout=30.0
    )  # fmt: skip
    session.caller.budget = Budget(store, session.record, lambda member: A_DOLLAR_A_TOKEN, caps)
    session.council.effort = "high"  # an optional parameter that can be refused
    try:
        with suppress(QuorumLost, BudgetSpent):
            async with session.council.phase("draft"):
                await session.council.poll([seat], "t/say", reply=Ballot if typed else None)
    finally:
        await member.close()
    sent = [attempt.body for attempt in (await store.load("r6789")).attempts.get(PLACE, [])]
    (last,) = [event for event in session.events if isinstance(event, ev.Stated | ev.WasAbsent)]
    shown = io.StringIO()
    view = PlainView(shown, every_event=True)
    for entry in session.heard:
        view.on_event(entry)
    return Heard(session, last.state, shown.getvalue().splitlines(), sent)


def _clocks(trouble: Trouble) -> dict[str, float]:
    return SHORT_TIMEOUTS if trouble.kind == "stall" else {}


@pytest.fixture
async def folder(tmp_path: Path) -> AsyncIterator[Path]:
    yield tmp_path / "prompts"


def check_ledger(heard: Heard, provider: FakeProvider, wire: str, counted: bool) -> None:
    """Check that the ledger has each request byte for byte, and charges at least the provider's bill."""
    assert heard.sent == [seen.raw for seen in provider.log]
    assert heard.session.ledger.calls["made"] == len(provider.log)
    bill = provider.bill_of(wire)
    if counted:
        assert heard.charged == bill["in"] + bill["out"]
    else:
        assert heard.charged >= bill["in"] + bill["out"]


def check_words(heard: Heard, trouble: Trouble, wire: str, faults: int) -> None:
    lines = [line for line in heard.lines if f" fault on {wire}:m1: {trouble.kind}: " in line]
    assert len(lines) == (1 if trouble.kind == "auth" else faults)
    assert all(trouble.words in line for line in lines)
    assert all(line.isprintable() and SECRET not in line for line in heard.lines)


# The table


@every_trouble
@every_wire
async def test_a_fault_at_every_attempt(
    provider: FakeProvider, store: SqliteStore, folder: Path, wire: str, trouble: Trouble
) -> None:
    provider.always("m1", trouble.replies[wire])
    heard = await ask(seated(provider, wire, **_clocks(trouble)), store, folder, typed=trouble.typed)
    row = FAULT_TABLE[trouble.kind]
    assert (heard.state, len(provider.log)) == (row.state, 1 + row.retries)
    check_ledger(heard, provider, wire, trouble.counted)
    check_words(heard, trouble, wire, 1 + row.retries)
    (absent,) = [line for line in heard.lines if "draft alpha absent after " in line]
    assert f": {row.state}: " in absent
    assert trouble.words in absent


@every_trouble
@every_wire
async def test_a_fault_at_the_first_attempt_only(
    provider: FakeProvider, store: SqliteStore, folder: Path, wire: str, trouble: Trouble
) -> None:
    provider.script("m1", trouble.replies[wire])
    heard = await ask(seated(provider, wire, **_clocks(trouble)), store, folder, typed=trouble.typed)
    row = FAULT_TABLE[trouble.kind]
    heals = row.retries > 0
    assert (heard.state, len(provider.log)) == ((trouble.heals, 2) if heals else (row.state, 1))
    check_ledger(heard, provider, wire, trouble.counted)
    check_words(heard, trouble, wire, 1)
    assert any(f"draft alpha {heard.state} " in line for line in heard.lines) is heals


# Changed requests


@every_wire
async def test_an_oversized_request_is_truncated_and_the_cut_is_recorded(
    provider: FakeProvider, store: SqliteStore, folder: Path, wire: str
) -> None:
    provider.script("m1", TROUBLES["too long"].replies[wire])
    heard = await ask(seated(provider, wire), store, folder)
    first, second = provider.log
    assert len(second.prompt) < len(first.prompt)
    (stated,) = heard.session.of_type(ev.Stated)
    assert "big.py" in stated.cut


@every_wire
async def test_a_refused_parameter_is_dropped_and_recorded(
    provider: FakeProvider, store: SqliteStore, folder: Path, wire: str
) -> None:
    provider.script("m1", TROUBLES["bad parameter"].replies[wire])
    heard = await ask(seated(provider, wire), store, folder)
    first, second = provider.log
    effort = {"openai": b"reasoning_effort", "anthropic": b"effort", "google": b"thinkingLevel"}[wire]
    assert (effort in first.raw, effort in second.raw) == (True, False)
    (retry,) = [line for line in heard.lines if "attempt 2 on" in line]
    (stated,) = heard.session.of_type(ev.Stated)
    assert f"without optional parameters ({', '.join(stated.dropped)})" in retry
    named = {"openai": "reasoning_effort", "anthropic": "output_config", "google": "generationConfig"}[wire]
    assert named in stated.dropped


@every_wire
async def test_a_truncated_answer_is_retried_with_twice_the_cap(
    provider: FakeProvider, store: SqliteStore, folder: Path, wire: str
) -> None:
    provider.script("m1", TROUBLES["length"].replies[wire])
    await ask(seated(provider, wire), store, folder)
    first, second = (_cap(seen.body) for seen in provider.log)
    assert second > (first or 8192)


def _cap(body: Any) -> int:
    return int(body.get("max_tokens") or (body.get("generationConfig") or {}).get("maxOutputTokens") or 0)


@every_wire
async def test_json_in_a_code_fence_is_accepted(
    provider: FakeProvider, store: SqliteStore, folder: Path, wire: str
) -> None:
    provider.always("m1", Reply(fenced=True))
    heard = await ask(seated(provider, wire), store, folder, typed=True)
    assert (heard.state, len(provider.log)) == ("ok", 1)
    check_ledger(heard, provider, wire, counted=True)


@pytest.mark.behaviour("issue-5-generation-ids")
@every_wire
async def test_the_ledger_stores_the_vendors_response_id(
    provider: FakeProvider, store: SqliteStore, folder: Path, wire: str
) -> None:
    heard = await ask(seated(provider, wire), store, folder)
    (attempt,) = heard.session.ledger.attempts(PLACE)
    assert attempt.result is not None
    answer = result_from_json(attempt.result)
    assert isinstance(answer, Answer)
    assert (answer.id, answer.model) == ("msg_fake_1" if wire == "anthropic" else "fake-1", "m1")


# Requests that are not sent


@every_wire
async def test_without_budget_nothing_is_sent(
    provider: FakeProvider, store: SqliteStore, folder: Path, wire: str
) -> None:
    heard = await ask(seated(provider, wire), store, folder, caps=Caps(run=1.0))
    assert (heard.state, provider.log, heard.charged) == ("skipped(budget)", [], 0)


@pytest.fixture
def port() -> Iterator[int]:
    """Yield a closed port."""
    with FakeProvider() as gone:
        free = gone.port
    yield free


@every_wire
@pytest.mark.parametrize("address", ["http://127.0.0.1:{port}", "http://missing.invalid", "https://127.0.0.1:{busy}"])
async def test_an_unreachable_address_host_or_certificate_is_a_net_fault(
    provider: FakeProvider, store: SqliteStore, folder: Path, port: int, wire: str, address: str
) -> None:
    url = address.format(port=port, busy=provider.port) + "/v1"
    heard = await ask(member_at(url, wire), store, folder)
    row = FAULT_TABLE["net"]
    assert (heard.state, len(heard.session.ledger.attempts(PLACE))) == (row.state, 1 + row.retries)
    assert (heard.charged, provider.bill["calls"]) == (0, 0)
    lines = [line for line in heard.lines if f" fault on {wire}:m1: net: no connection to " in line]
    assert len(lines) == 1 + row.retries


@every_wire
async def test_a_provider_that_starts_late_is_reached_on_retry(
    store: SqliteStore, folder: Path, port: int, wire: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = FakeProvider(port=port)
    member = member_at(late.base(wire), wire)
    send, tried = member.send, list[bytes]()

    async def sent(body: bytes, hear: Any) -> Any:
        if tried:
            late.__enter__()
        tried.append(body)
        return await send(body, hear)

    monkeypatch.setattr(member, "send", sent)
    try:
        heard = await ask(member, store, folder)
    finally:
        late.__exit__()
    assert (heard.state, len(tried), len(late.log)) == ("ok", 2, 1)
    assert heard.charged == late.bill["in"] + late.bill["out"]
    assert json.loads(tried[0]) == json.loads(tried[1])
