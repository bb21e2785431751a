"""Batch interfaces of OpenAI, Anthropic and Google: many requests as one job, at half the price, answered within a day.

A job has requests by their ids. `submit` returns the name of the job, `collect` the results once it has ended.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from council.errors import Fault
from council.members.wires.anthropic import AnthropicMember
from council.members.wires.google import GoogleMember
from council.members.wires.openai import OpenAIMember
from council.members.wires.stream_parser import load_json
from council.members.wires.wire import WireMember
from council.types import Json, encode_json

EXCHANGE_S = 120.0  # seconds for one exchange with the interface, such as an upload
MAX_REQUESTS, MAX_BYTES = 10_000, 50_000_000  # of one job, below the limits of each vendor
STREAMING = ("stream", "stream_options")  # fields of a request that a job does not take
BOUNDARY = "council-boundary-6f1d3c"
ENDED_STATES = ("SUCCEEDED", "FAILED", "CANCELLED", "EXPIRED")  # of a job of Google
ENDED_WITHOUT_RESULTS = ("failed", "cancelled", "canceled")


@dataclass(frozen=True, slots=True)
class BatchResult:
    """Result of one request: the body of its answer, or an error with its HTTP status, 0 if there is none."""

    body: Any = None
    status: int = 200
    error: Any = None


class BatchApi(Protocol):
    async def submit(self, requests: Mapping[str, bytes]) -> str:
        """Submit requests by their ids. Return the name of the job."""

    async def collect(self, job: str) -> dict[str, BatchResult] | None:
        """Return the results by the ids of the requests, or None while the job runs."""


def find_batch_api(member: object) -> BatchApi | None:
    """Return the batch interface of a member's vendor, or None if it has none that is known."""
    if isinstance(member, AnthropicMember):
        return AnthropicBatches(member)
    if isinstance(member, GoogleMember):
        return GoogleBatches(member)
    return OpenAIBatches(member) if isinstance(member, OpenAIMember) else None


@dataclass(frozen=True, slots=True)
class OpenAIBatches:
    member: WireMember

    async def submit(self, requests: Mapping[str, bytes]) -> str:
        lines = b"".join(
            encode_json({"custom_id": name, "method": "POST", "url": f"/v1{self.member.path}", "body": _strip(body)})
            + b"\n"
            for name, body in requests.items()
        )
        uploaded = await self._exchange("/files", _make_form(lines), f"multipart/form-data; boundary={BOUNDARY}")
        asked = {
            "input_file_id": _read_name(uploaded, "id"),
            "endpoint": f"/v1{self.member.path}",
            "completion_window": "24h",
        }
        return _read_name(await self._exchange("/batches", encode_json(asked)), "id")

    async def collect(self, job: str) -> dict[str, BatchResult] | None:
        state = _read_object(await self.member.endpoint.exchange("GET", f"/batches/{job}", EXCHANGE_S))
        files = [state.get(name) for name in ("output_file_id", "error_file_id")]
        has_ended = state.get("status") in ("completed", "expired", *ENDED_WITHOUT_RESULTS)
        if not has_ended:
            return None
        found: dict[str, BatchResult] = {}
        for file in filter(None, files):
            content = await self.member.endpoint.exchange("GET", f"/files/{file}/content", EXCHANGE_S)
            for line in _read_lines(content):
                response = line.get("response") or {}
                status = response.get("status_code") or 0
                is_answer = status == 200 and not line.get("error")
                error = line.get("error") or response.get("body")
                found[str(line.get("custom_id"))] = (
                    BatchResult(response.get("body")) if is_answer else BatchResult(status=status, error=error)
                )
        return found

    async def _exchange(self, path: str, data: bytes, content_type: str = "application/json") -> Json:
        return _read_object(await self.member.endpoint.exchange("POST", path, EXCHANGE_S, data, content_type))


@dataclass(frozen=True, slots=True)
class AnthropicBatches:
    member: WireMember

    async def submit(self, requests: Mapping[str, bytes]) -> str:
        body = {"requests": [{"custom_id": name, "params": _strip(body)} for name, body in requests.items()]}
        answer = await self.member.endpoint.exchange("POST", "/messages/batches", EXCHANGE_S, encode_json(body))
        return _read_name(_read_object(answer), "id")

    async def collect(self, job: str) -> dict[str, BatchResult] | None:
        state = _read_object(await self.member.endpoint.exchange("GET", f"/messages/batches/{job}", EXCHANGE_S))
        if state.get("processing_status") != "ended":
            return None
        content = await self.member.endpoint.exchange("GET", f"/messages/batches/{job}/results", EXCHANGE_S)
        return {str(line.get("custom_id")): _read_message(line.get("result") or {}) for line in _read_lines(content)}


def _read_message(result: Json) -> BatchResult:
    if result.get("type") == "succeeded":
        return BatchResult(result.get("message"))
    if result.get("type") == "errored":
        return BatchResult(status=400, error=result.get("error"))
    return BatchResult(status=0, error={"message": f"the request is {result.get('type') or 'without a result'}"})


@dataclass(frozen=True, slots=True)
class GoogleBatches:
    member: WireMember

    async def submit(self, requests: Mapping[str, bytes]) -> str:
        listed = [{"request": json.loads(body), "metadata": {"key": name}} for name, body in requests.items()]
        body = {"batch": {"displayName": "council", "inputConfig": {"requests": {"requests": listed}}}}
        path = f"{self.member.path.partition(':')[0]}:batchGenerateContent"
        answer = await self.member.endpoint.exchange("POST", path, EXCHANGE_S, encode_json(body))
        return _read_name(_read_object(answer), "name")

    async def collect(self, job: str) -> dict[str, BatchResult] | None:
        state = _read_object(await self.member.endpoint.exchange("GET", f"/{job}", EXCHANGE_S))
        about = state.get("metadata") or {}
        if not (state.get("done") or str(about.get("state")).endswith(ENDED_STATES)):
            return None
        output = about.get("output") or state.get("response") or {}
        listed = (output.get("inlinedResponses") or {}).get("inlinedResponses") or []
        found: dict[str, BatchResult] = {}
        for one in listed:
            error = one.get("error")
            result = (
                BatchResult(status=int(error.get("code") or 0), error=error)
                if error
                else BatchResult(one.get("response"))
            )
            found[str((one.get("metadata") or {}).get("key"))] = result
        return found


# Bodies


def _strip(body: bytes) -> Json:
    """Return a request as a job takes it: its answer is not streamed."""
    return {name: value for name, value in json.loads(body).items() if name not in STREAMING}


def _make_form(lines: bytes) -> bytes:
    """Return the form with the file of requests."""
    head = (
        f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nbatch\r\n'
        f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="requests.jsonl"\r\n'
        "Content-Type: application/jsonl\r\n\r\n"
    )
    return head.encode() + lines + f"\r\n--{BOUNDARY}--\r\n".encode()


def _read_object(data: bytes) -> Json:
    try:
        value = load_json(data)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise Fault("endpoint", "the batch interface did not answer with JSON: check base_url")
    return value


def _read_name(value: Json, field: str) -> str:
    name = value.get(field)
    if not isinstance(name, str) or not name:
        raise Fault("endpoint", f"the batch interface named no job: its answer has no {field}")
    return name


def _read_lines(content: bytes) -> Iterator[Json]:
    for line in content.splitlines():
        if line.strip():
            yield _read_object(line)
