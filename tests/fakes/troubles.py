"""Provider responses for every row of the fault table, in each vendor's format."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

from tests.fakes.replies import Reply

WIRES = ("openai", "anthropic", "google")


@dataclass(frozen=True)
class Trouble:
    kind: str  # row of the fault table
    words: str  # part of the message
    replies: Mapping[str, Reply]  # by wire
    typed: bool = False  # needs a typed reply
    counted: bool = True  # the answer reports its usage, so the exact bill is known
    heals: str = "ok"  # seat state if only the first attempt fails


def everywhere(kind: str, words: str, reply: Reply, **more: Any) -> Trouble:
    return Trouble(kind, words, dict.fromkeys(WIRES, reply), **more)


def status(kind: str, code: int, **headers: str) -> Trouble:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return everywhere(kind, f"{code}: scripted {code}", Reply(status=code, headers=named), counted=code < 500)


def each(kind: str, words: str, **said: tuple[int, str, Any]) -> Trouble:
    """Build a fault from a status, a message and a code (or details) for each wire."""
    shapes = {"openai": _openai, "anthropic": _anthropic, "google": _google}
    replies = {wire: Reply(status=code, error=shapes[wire](code, text, detail)) for wire, (code, text, detail) in said.items()}  # fmt: skip
    return Trouble(kind, words, replies)


def _openai(status: int, message: str, code: Any) -> Any:
    return {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": code}}


def _anthropic(status: int, message: str, kind: Any) -> Any:
    return {
        "type": "error",
        "error": {"type": kind or "invalid_request_error", "message": message},
        "request_id": "req_1",
    }


def _google(status: int, message: str, details: Any) -> Any:
    return {"error": {"code": status, "message": message, "status": "FAILED", "details": details or []}}


AGO = format_datetime(datetime.now(UTC) - timedelta(hours=1), usegmt=True)
PER_DAY = [
    {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [{"quotaId": "RequestsPerDayPerProject"}]}
]
TROUBLES: dict[str, Trouble] = {
    "429 with seconds": status("rate", 429, Retry_After="0.01"),
    "429 with a date": status("rate", 429, Retry_After=AGO),
    "429 with nonsense": status("rate", 429, Retry_After="soon"),
    "no money": each(
        "quota", "plan",
        openai=(429, "You exceeded your current quota, please check your plan.", "insufficient_quota"),
        anthropic=(400, "Your credit balance is too low to access the API: see plans.", None),
        google=(429, "You exceeded your current quota, please check your plan.", PER_DAY),
    ),
    "503": status("overload", 503),
    "529": status("overload", 529),
    "500": status("server", 500),
    "502": status("cut", 502),
    "504": status("cut", 504),
    "error after 200": everywhere("cut", "the stream ended with an error: the engine died", Reply(error_after="the engine died"), counted=False),
    "no terminator": everywhere("cut", "the stream ended without its terminator", Reply(done=False, finish=None), counted=False),
    "cut": everywhere("cut", "the connection closed before the answer was complete", Reply(cut=300), counted=False),
    "reset": everywhere("cut", "the connection", Reply(reset=300), counted=False),
    "silence": everywhere("stall", "timed out waiting for data", Reply(hang=True), counted=False),
    "stall": everywhere("stall", "timed out waiting for data", Reply(stall=700, piece=4), counted=False),
    "slow drip": everywhere("stall", "timed out waiting for data", Reply(drip=3.0), counted=False),
    "comments only": everywhere("stall", "timed out waiting for data", Reply(comments=True), counted=False),
    "empty": everywhere("empty", "the answer was empty", Reply(empty=True)),
    "loop": everywhere("loop", "the answer repeats itself", Reply(loop=400, piece=200), counted=False),
    "length": everywhere("length", "cut at its length limit", Reply(finish="length")),
    "all thinking": everywhere("length", "cut at its length limit", Reply(empty=True, thinks="hm hm", finish="length")),
    "refusal": everywhere("refused", "declined to answer", Reply("I will not.", refuse=True)),
    "content filter": everywhere("refused", "declined to answer", Reply(finish="content_filter")),
    "wrong schema": everywhere("schema", "yes is missing", Reply(wrong_schema=True), typed=True, heals="ok_repaired"),
    "half a reply": everywhere("schema", "the JSON is not closed", Reply('{"yes": tr'), typed=True, heals="ok_repaired"),
    "too long": each(
        "size", "too long",
        openai=(400, "Your input is too long: maximum context length is 8192 tokens, yours has 16384.", "context_length_exceeded"),
        anthropic=(400, "prompt is too long: 16384 tokens > 8192 maximum", None),
        google=(400, "The input token count is too long: 16384 exceeds the maximum number of tokens allowed 8192.", None),
    ),
    "model not found": each(
        "model", "m1",
        openai=(404, "The model `m1` does not exist", "model_not_found"),
        anthropic=(404, "model: m1", "not_found_error"),
        google=(404, "models/m1 is not found for API version v1beta", None),
    ),
    "401": status("auth", 401),
    "403": status("auth", 403),
    "bad key": each(
        "auth", "key",
        openai=(401, "Incorrect API key provided: sk-abcd****wxyz", "invalid_api_key"),
        anthropic=(401, "invalid x-api-key", "authentication_error"),
        google=(400, "API key not valid. Please pass a valid API key.", [{"reason": "API_KEY_INVALID"}]),
    ),
    "bad parameter": each(
        "parameter", "not supported",
        openai=(400, "'reasoning_effort' is not supported with this model.", "unsupported_parameter"),
        anthropic=(400, "output_config.effort is not supported by this model", None),
        google=(400, "Thinking level is not supported for this model.", None),
    ),
}  # fmt: skip
