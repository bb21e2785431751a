"""Waves: the requests of a slow batch are jobs of vendors, and a job that is paid for is not submitted again."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from council.errors import Fault
from council.members.wires.anthropic import AnthropicMember
from council.members.wires.google import GoogleMember
from council.members.wires.openai import OpenAIMember
from council.members.wires.openai_responses import ResponsesMember
from council.members.wires.wire import WireMember
from council.runs.waves import SlowMember, Waves, divide, read_waves
from council.types import Answer, Ask
from tests.fake_provider import FakeProvider, Reply

pytestmark = pytest.mark.anyio
KINDS: dict[str, type[WireMember]] = {
    "openai": OpenAIMember,
    "openai-responses": ResponsesMember,
    "anthropic": AnthropicMember,
    "google": GoogleMember,
}
SCHEMA = {
    "type": "object",
    "properties": {"is_good": {"type": "boolean"}},
    "required": ["is_good"],
    "additionalProperties": False,
}


@pytest.fixture
def provider() -> Iterator[FakeProvider]:
    with FakeProvider() as running:
        yield running


class Batch:
    """Waves beside an output file, with one member."""

    def __init__(self, provider: FakeProvider, folder: Path, wire: str = "openai") -> None:
        self.inner = KINDS[wire](
            "sim:m1", base_url=provider.base(wire), model="m1", api_key="secret-key-0001", vendor="sim"
        )
        self.said: list[str] = []
        self.sent = asyncio.Event()
        self.waves = Waves(folder / "out.jsonl", self._hear)
        self.waves.quiet_seconds, self.waves.first_poll, self.waves.max_poll = 0.05, 0.02, 0.05
        self.member = self.waves.wrap(self.inner)
        assert isinstance(self.member, SlowMember)

    def _hear(self, line: str) -> None:
        self.said.append(line)
        self.sent.set()

    def ask(self, text: str, **options: object) -> asyncio.Task[Answer]:
        ask = Ask(key=text, messages=({"role": "user", "content": text},), **options)  # type: ignore[arg-type]
        return asyncio.create_task(self.member.send(self.member.prepare(ask), lambda piece: None))

    async def close(self) -> None:
        await self.waves.close()
        await self.member.close()


@pytest.fixture(params=KINDS)
async def batch(request: pytest.FixtureRequest, provider: FakeProvider, tmp_path: Path) -> AsyncIterator[Batch]:
    made = Batch(provider, tmp_path, request.param)
    yield made
    await made.close()


@pytest.mark.behaviour("32-slow-batch")
async def test_requests_that_wait_together_are_one_job(batch: Batch, provider: FakeProvider) -> None:
    asked = [batch.ask(f"Question {n}?") for n in range(3)]
    typed = batch.ask("Is it good?", schema=SCHEMA)
    answers = await asyncio.gather(*asked)
    assert [answer.finish for answer in answers] == ["stop"] * 3
    assert len({answer.text for answer in answers}) == 3
    assert all(answer.usage.known and answer.usage.output for answer in answers)
    assert json.loads((await typed).text) == {"is_good": False}
    assert [len(job.requests) for job in provider.batches.jobs.values()] == [4]
    assert {seen.path for seen in provider.log} == {"batch"}
    assert all("stream" not in seen.body for seen in provider.log)
    again = await batch.ask("A later question?")
    assert (again.finish, len(provider.batches.jobs)) == ("stop", 2)
    assert isinstance(batch.member, SlowMember)
    assert (batch.member.thinks, batch.member.accepts) == (batch.inner.thinks, batch.inner.accepts)
    assert batch.member.max_output_tokens(Ask("a", (), max_tokens=7)) == batch.inner.max_output_tokens(
        Ask("a", (), max_tokens=7)
    )
    assert "4 requests were sent to sim:m1 as the job" in batch.said[0]


@pytest.mark.behaviour("32-slow-batch")
async def test_a_request_that_fails_or_expires_in_a_job_fails_alone(batch: Batch, provider: FakeProvider) -> None:
    provider.answer = lambda seen: Reply(status=400) if "wrong" in seen.prompt else None
    provider.batches.lost = {2}
    good, wrong, lost = await asyncio.gather(
        *(batch.ask(text) for text in ("right", "wrong", "lost")), return_exceptions=True
    )
    assert isinstance(good, Answer)
    assert isinstance(wrong, Fault) and "scripted 400" in wrong.detail
    assert isinstance(lost, Fault) and lost.kind not in ("auth", "model")


@pytest.mark.behaviour("32-slow-batch-resume")
async def test_after_a_crash_the_results_of_a_job_are_collected_and_nothing_is_submitted_again(
    provider: FakeProvider, tmp_path: Path, batch: Batch
) -> None:
    provider.batches.is_held = True
    lost = [batch.ask(text) for text in ("one", "two", "one")]
    await batch.sent.wait()
    await batch.close()  # as a process that ends: nothing more is stored
    for task in lost:
        task.cancel()
    assert "3 requests wait for jobs of vendors" in batch.said[-1]
    provider.batches.is_held = False
    wire = next(name for name, kind in KINDS.items() if type(batch.inner) is kind)
    later = Batch(provider, tmp_path, wire)
    try:
        first = await later.ask("two")
        rest = await asyncio.gather(later.ask("one"), later.ask("one"))
        assert {answer.finish for answer in (first, *rest)} == {"stop"}
        assert (len(provider.batches.jobs), len(provider.log)) == (1, 3)
        await later.ask("two")  # asked again on purpose: it is a new request
        assert len(provider.batches.jobs) == 2
    finally:
        await later.close()


@pytest.mark.behaviour("32-slow-batch-resume")
async def test_a_job_that_is_refused_fails_its_requests_and_is_not_waited_for(tmp_path: Path) -> None:
    with FakeProvider() as provider:
        batch = Batch(provider, tmp_path)
        batch.inner.endpoint.base_url = f"{provider.address}/nothing"
        with pytest.raises(Fault) as refused:
            await batch.ask("one")
        assert refused.value.kind in ("endpoint", "model")
        assert list(read_waves(batch.waves.path)) == []
        await batch.close()


def test_a_file_of_waves_may_be_cut_and_may_have_waves_without_a_job(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl.waves"
    assert list(read_waves(path)) == []
    lines = [
        {"wave": "w1", "member": "a:1", "requests": ["x-1"]}, {"wave": "w1", "job": "j1"},
        {"wave": "w2", "member": "a:1", "requests": ["y-1"]}, {"wave": "w3", "member": "a:1", "requests": ["z-1"]},
        {"wave": "w3", "ended": True},
    ]  # fmt: skip
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines) + '{"wave": "w2", "jo', encoding="utf-8")
    assert [(wave.name, wave.member, wave.requests, wave.job) for wave in read_waves(path)] == [
        ("w1", "a:1", ["x-1"], "j1")
    ]


async def test_requests_are_divided_into_jobs_that_vendors_accept(
    monkeypatch: pytest.MonkeyPatch, provider: FakeProvider, tmp_path: Path
) -> None:
    monkeypatch.setattr("council.runs.waves.MAX_REQUESTS", 2)
    batch = Batch(provider, tmp_path)
    await asyncio.gather(*(batch.ask(f"Question {n}?") for n in range(5)))
    assert [len(job.requests) for job in provider.batches.jobs.values()] == [2, 2, 1]
    monkeypatch.setattr("council.runs.waves.MAX_BYTES", 1)
    assert list(divide([])) == []
    await asyncio.gather(*(batch.ask(f"More {n}?") for n in range(2)))
    assert [len(job.requests) for job in provider.batches.jobs.values()][3:] == [1, 1]
    await batch.close()
