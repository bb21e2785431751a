"""Usage of steps, whatever their outcome."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from council import events as ev
from council.engine.ledger import Ledger
from council.errors import Fault
from council.store.sqlite import SqliteStore
from council.types import Answer, Usage
from tests.calling.helpers import KEY, answering, call, fault, reload_ledger, step
from tests.run_session import ALPHA, BETA, FunctionMember, make_ask, open_session

pytestmark = pytest.mark.anyio


def misfit(text: str) -> None:
    raise Fault("schema", "it does not fit", said=text)


@pytest.mark.behaviour("40-rejected-answers-are-counted")
@pytest.mark.parametrize(
    ("finish", "read", "state", "usage"),
    [
        ("length", None, "truncated", Usage(20, 10)),
        ("stop", misfit, "failed(schema)", Usage(20, 10)),
        ("refused", None, "refused", Usage(10, 5)),
    ],
)
async def test_an_absent_seat_includes_the_usage_of_rejected_answers(
    ledger: Ledger, finish: str, read: Any, state: str, usage: Usage
) -> None:
    member = answering("one", Answer("words", finish, Usage(10, 5)))
    outcome = await call(ledger, step(**({"read": read} if read else {})), member)
    assert (outcome.state, outcome.usage) == (state, usage)


async def test_usage_of_the_requested_member_and_its_fallback_is_summed(ledger: Ledger) -> None:
    one = answering("one", Answer("no", "refused", Usage(10, 5)))
    two = answering("two", Answer("words", "length", Usage(7, 3)))
    outcome = await call(ledger, step("one", "two", ask=make_ask(schema={"type": "object"})), one, two)
    assert outcome.usage == Usage(24, 11)


@pytest.mark.behaviour("40-rejected-answers-are-counted")
async def test_an_absence_reports_its_usage(store: SqliteStore, tmp_path: Path) -> None:
    def answer(key: str) -> Answer:
        return Answer("no", "refused", Usage(10, 5, 2)) if key == "draft/alpha" else Answer("yes")

    session = await open_session(store, tmp_path / "prompts", FunctionMember("scripted:", answer), run="r6789")
    async with session.council.phase("draft"):
        await session.council.poll([ALPHA, BETA], "t/say")
    (absence,) = session.of_type(ev.WasAbsent)
    assert absence.usage == {"in": 10, "out": 5, "cached": 2}


def test_an_absence_without_usage_can_be_parsed() -> None:
    row: dict[str, Any] = {
        "key": "draft/alpha",
        "phase": "draft",
        "seat": "alpha",
        "state": "refused",
        "reason": "no",
        "attempts": 1,
    }
    assert ev.parse_event("absence", row) == ev.WasAbsent(**row, usage={})


async def test_a_seat_that_is_asked_again_counts_only_new_usage(ledger: Ledger, store: SqliteStore) -> None:
    failing = answering("one", Answer("", usage=Usage(10, 5)), fault("auth"))
    first = await call(ledger, step(), failing)
    absence = ev.WasAbsent(KEY, "draft", "alpha", first.state, "", first.attempts, dict(first.usage.as_json()))
    await ledger.emit_durably(absence)
    outcome = await call(await reload_ledger(store), step(), answering("one", Answer("Tabs.", usage=Usage(1, 1))))
    assert (first.usage, outcome.usage) == (Usage(10, 5), Usage(1, 1))


@pytest.mark.behaviour("40-cut-is-counted-in-doubt")
@pytest.mark.parametrize(("resend", "made"), [(True, 2), (False, 1)])
async def test_a_seat_left_in_doubt_by_a_cut_is_counted_in_doubt(ledger: Ledger, resend: bool, made: int) -> None:
    outcome = await call(ledger, step(), answering("one", fault("cut")), resend=resend)
    assert outcome.state == "in_doubt"
    assert ledger.calls == {"made": made, "replayed": 0, "in_doubt": 1}


async def test_a_cut_with_a_successful_retry_is_not_in_doubt(ledger: Ledger) -> None:
    await call(ledger, step(), answering("one", fault("cut"), "Tabs."))
    assert ledger.calls["in_doubt"] == 0


@pytest.mark.behaviour("40-unknown-tokens-are-unknown")
async def test_one_answer_without_usage_makes_the_sum_unknown(ledger: Ledger, store: SqliteStore) -> None:
    member = answering("one", Answer("", usage=Usage(known=False)), Answer("Tabs.", usage=Usage(10, 5)))
    outcome = await call(ledger, step(), member)
    assert outcome.usage.as_json() == {"in": 10, "out": 5, "cached": 0, "unknown": True}
    reloaded = await call(await reload_ledger(store), step(), answering("one", "never"))
    assert reloaded.usage == outcome.usage


def test_known_usage_has_no_unknown_field() -> None:
    assert Usage(1, 2, 3).as_json() == {"in": 1, "out": 2, "cached": 3}
    assert Usage.from_json({"in": 1, "out": 2, "cached": 3}) == Usage(1, 2, 3)
