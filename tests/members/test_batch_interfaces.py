"""The jobs of the fake endpoint are those of the vendors: their own packages submit and read them."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.fake_provider import FakeProvider

QUESTIONS = ("One?", "Two?")


@pytest.fixture
def provider() -> Iterator[FakeProvider]:
    with FakeProvider() as running:
        yield running


@pytest.mark.behaviour("32-slow-batch")
def test_the_package_of_openai_reads_a_job(provider: FakeProvider) -> None:
    openai = pytest.importorskip("openai")
    client = openai.OpenAI(api_key="k", base_url=provider.base_url)
    lines = [
        {"custom_id": text, "method": "POST", "url": "/v1/chat/completions", "body": {"model": "m1", "messages": [{"role": "user", "content": text}]}}
        for text in QUESTIONS
    ]  # fmt: skip
    content = io.BytesIO("\n".join(map(json.dumps, lines)).encode())
    file = client.files.create(file=("requests.jsonl", content), purpose="batch")
    job = client.batches.create(input_file_id=file.id, endpoint="/v1/chat/completions", completion_window="24h")
    ended = client.batches.retrieve(job.id)
    assert ended.status == "completed"
    results = [json.loads(line) for line in client.files.content(ended.output_file_id).text.splitlines()]
    assert [one["custom_id"] for one in results] == list(QUESTIONS)
    assert all(one["response"]["body"]["choices"][0]["message"]["content"] for one in results)


@pytest.mark.behaviour("32-slow-batch")
def test_the_package_of_anthropic_reads_a_job(provider: FakeProvider) -> None:
    anthropic = pytest.importorskip("anthropic")
    client = anthropic.Anthropic(api_key="k", base_url=provider.address)
    asked: list[Any] = [
        {"custom_id": f"q{n}", "params": {"model": "m1", "max_tokens": 50, "messages": [{"role": "user", "content": text}]}}
        for n, text in enumerate(QUESTIONS)
    ]  # fmt: skip
    job = client.messages.batches.create(requests=asked)
    assert client.messages.batches.retrieve(job.id).processing_status == "ended"
    results = {one.custom_id: one.result for one in client.messages.batches.results(job.id)}
    assert {name: one.type for name, one in results.items()} == {"q0": "succeeded", "q1": "succeeded"}
    assert all(one.message.content[0].text for one in results.values())


@pytest.mark.behaviour("32-slow-batch")
def test_the_package_of_google_reads_a_job(provider: FakeProvider) -> None:
    genai = pytest.importorskip("google.genai")
    client = genai.Client(api_key="k", http_options={"base_url": provider.address, "api_version": "v1beta"})
    asked = [
        {"contents": [{"role": "user", "parts": [{"text": text}]}], "metadata": {"key": text}} for text in QUESTIONS
    ]
    job = client.batches.create(model="m1", src=asked)
    ended = client.batches.get(name=job.name)
    assert ended.state.name == "JOB_STATE_SUCCEEDED"
    assert [one.metadata["key"] for one in ended.dest.inlined_responses] == list(QUESTIONS)
    assert all(one.response.text for one in ended.dest.inlined_responses)
