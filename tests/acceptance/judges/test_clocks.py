"""Judges that think before they answer: one request each, no fallback while the request is open."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from council import events as ev
from council.engine.minutes import Minutes
from council.runs.service import Convener
from tests.acceptance.helpers import Terminal
from tests.acceptance.judges.fake_judges import JUDGES, JudgesWorkspace
from tests.fake_clock import settle, skip

SPARE = '["sim:spare-1", "simb:spare-2"]'
SILENCE = 70.0  # seconds before the first token
ROUNDS = ["judge/judge-1", "judge/judge-2", "r2/judge-1", "r2/judge-2"]


def configure_fallbacks(judges: JudgesWorkspace) -> None:
    judges.configure()
    text = judges.config.read_text()
    for seat in JUDGES:
        text = text.replace(f'model = "sim:{seat}"\nfallback = []', f'model = "sim:{seat}"\nfallback = {SPARE}')
    judges.config.write_text(text)


class Debate:
    """A running debate on a clock that the test advances. Every request of a round is held until `answer`."""

    def __init__(self, judges: JudgesWorkspace, **flags: Any) -> None:
        configure_fallbacks(judges)
        self.judges = judges
        self.convener = Convener(flags=flags)
        self.entries: list[ev.Entry] = []
        self.gate = judges.hold_key("judge")
        self.task = asyncio.ensure_future(self._run())

    async def _run(self) -> Minutes:
        try:
            plan = await self.convener.plan(["validate", "src/auth"], {"debate": True})
            return await self.convener.run(plan, self.entries.append)
        finally:
            await self.convener.close()

    async def stay_silent(self, seconds: float, count: int = 2) -> None:
        """Advance the clock while `count` requests are open."""
        await asyncio.to_thread(self.gate.wait, count=count)
        await settle()
        skip(seconds)
        await settle()

    def answer(self, then_hold: str = "") -> None:
        done, self.gate = self.gate, self.judges.hold_key(then_hold or "nothing")
        done.release()

    def of_type(self, kind: type[Any]) -> list[Any]:
        return [entry.event for entry in self.entries if isinstance(entry.event, kind)]


def assert_each_answered_once(judges: JudgesWorkspace, minutes: Minutes) -> None:
    assert sorted(judges.steps()) == ROUNDS
    assert (minutes.status, minutes.absences) == ("complete", [])
    assert {(said.seat, said.phase, said.served_by) for said in minutes.statements} == {
        (seat, phase, f"sim:{seat}") for seat in JUDGES[:2] for phase in ("r1", "r2")
    }


@pytest.mark.anyio
@pytest.mark.behaviour("40-silence-is-not-a-failure")
async def test_silent_judges_are_asked_once_per_round_and_every_answer_counts(judges: JudgesWorkspace) -> None:
    debate = Debate(judges)
    await debate.stay_silent(SILENCE)
    debate.answer(then_hold="r2")
    await debate.stay_silent(SILENCE)
    debate.answer()
    minutes = await debate.task
    assert_each_answered_once(judges, minutes)
    assert not debate.of_type(ev.Faulted)


@pytest.mark.anyio
@pytest.mark.behaviour("00-timeout-everywhere")
async def test_the_timeout_flag_applies_to_the_second_round(judges: JudgesWorkspace) -> None:
    debate = Debate(judges, timeout=1500.0)
    await debate.stay_silent(1400)
    debate.answer(then_hold="r2")
    await debate.stay_silent(1400)
    debate.answer()
    assert_each_answered_once(judges, await debate.task)
    assert {event.seconds for event in debate.of_type(ev.Attempted)} == {1500.0}


@pytest.mark.anyio
@pytest.mark.behaviour("00-timeout-everywhere", "40-grouped-absences")
async def test_the_variable_of_the_second_round_overrides_the_timeout_flag(
    judges: JudgesWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COUNCIL_R2_TIMEOUT", "90")
    debate = Debate(judges, timeout=1500.0)
    await debate.stay_silent(0)
    debate.answer(then_hold="r2")
    for asked in (2, 4, 6):  # each judge, then its two fallbacks: each has its own 90 s
        await debate.stay_silent(91, count=asked)
    minutes = await debate.task
    assert sorted(judges.steps()) == sorted([*ROUNDS, *["r2/spare-1", "r2/spare-2"] * 2])
    assert {(missed.seat, missed.phase, missed.state) for missed in minutes.absences} == {
        (seat, "r2", "timed_out") for seat in JUDGES[:2]
    }


@pytest.mark.behaviour("00-timeout-everywhere")
def test_the_plan_shows_the_timeouts(judges: JudgesWorkspace, council: Terminal) -> None:
    configure_fallbacks(judges)
    plan = council("--debate", "--dry-run", "--json", "validate", "src/auth").json
    assert [(seat["timeout"], seat["total_timeout"]) for seat in plan["seats"]] == [(120, 360), (120, 360)]
    assert [(phase["name"], phase.get("timeout")) for phase in plan["phases"]] == [
        ("r1", None),
        ("r2", 90),
        ("grouping", None),
    ]
    line = "timeout 120 s per member and phase, r2 90 s; at most 360 s per seat with its fallbacks"
    assert line in council("--debate", "--dry-run", "validate", "src/auth").out
    longer = council("--debate", "--timeout=1500", "--dry-run", "validate", "src/auth").out
    assert "timeout 1500 s per member and phase; at most 4500 s per seat with its fallbacks" in longer


@pytest.mark.sweep
@pytest.mark.behaviour("40-silence-is-not-a-failure")
def test_judges_that_are_silent_for_70_seconds_are_asked_once(judges: JudgesWorkspace, council: Terminal) -> None:
    configure_fallbacks(judges)
    judges.provider.delay = SILENCE
    done = council("--debate", "validate", "src/auth", "--json")
    assert (done.code, done.json["status"], done.json["degraded"]) == (0, "complete", [])
    assert sorted(judges.steps()) == ROUNDS
    assert {seat["served_by"] for seat in done.json["seats"]} == {"sim:judge-1", "sim:judge-2"}
    assert done.json["seconds"] >= 2 * SILENCE
