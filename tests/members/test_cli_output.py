"""Parsing agent output: in chunks of any size, as JSON lines, as one object, or as plain text."""

from __future__ import annotations

import json
from typing import Any

import pytest

from council.members.cli_output import READERS, AgentOutput, OutputParser
from council.types import Usage

CLAUDE: list[dict[str, Any]] = [
    {"type": "system", "subtype": "init", "tools": []},
    {"type": "stream_event", "event": {"type": "message_start", "message": {"model": "claude-opus-4-6"}}},
    {"type": "stream_event", "event": {"type": "content_block_delta", "delta": {"type": "thinking_delta", "thinking": "Hm"}}},
    {"type": "stream_event", "event": {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "Tabs."}}},
    {"type": "assistant", "message": {"content": [{"type": "text", "text": "Tabs."}]}},
    {"type": "result", "subtype": "success", "is_error": False, "result": "Tabs.", "stop_reason": "end_turn", "session_id": "s",
     "usage": {"input_tokens": 2, "cache_creation_input_tokens": 5, "cache_read_input_tokens": 7, "output_tokens": 3}},
]  # fmt: skip
CODEX: list[dict[str, Any]] = [
    {"type": "thread.started", "thread_id": "s"},
    {"type": "turn.started"},
    {"type": "error", "message": "Reconnecting... 2/5"},
    {"type": "item.completed", "item": {"id": "0", "type": "reasoning", "text": "Hm"}},
    {"type": "item.completed", "item": {"id": "1", "type": "agent_message", "text": "I shall think."}},
    {"type": "item.completed", "item": {"id": "2", "type": "agent_message", "text": "Tabs."}},
    {"type": "turn.completed", "usage": {"input_tokens": 14, "cached_input_tokens": 7, "cache_write_input_tokens": 5, "output_tokens": 3}},
]  # fmt: skip
GEMINI: list[dict[str, Any]] = [
    {"type": "init", "session_id": "s", "model": "gemini-3-pro-preview"},
    {"type": "message", "role": "user", "content": "Tabs or spaces?"},
    {"type": "message", "role": "assistant", "content": "Ta", "delta": True},
    {"type": "error", "severity": "warning", "message": "slow"},
    {"type": "message", "role": "assistant", "content": "bs.", "delta": True},
    {"type": "result", "status": "success", "stats": {"input_tokens": 14, "output_tokens": 3, "cached": 7}},
]
GEMINI_WHOLE = {
    "session_id": "s", "response": "Tabs.",
    "stats": {"models": {"gemini-3-pro-preview": {"tokens": {"prompt": 14, "candidates": 2, "thoughts": 1, "cached": 7}}}},
}  # fmt: skip
GEMINI_TOTALS = {"total_tokens": 17, "input_tokens": 14, "output_tokens": 2, "cached": 7}  # thoughts only in the total
USAGE = {"claude": Usage(14, 3, 7, True, 5), "codex": Usage(14, 3, 7, True, 5), "gemini": Usage(14, 3, 7)}


def lines(events: list[dict[str, Any]]) -> bytes:
    return b"".join(json.dumps(event).encode() + b"\n" for event in events)


def heard(agent: str, data: bytes, size: int) -> tuple[AgentOutput, list[str]]:
    pieces: list[str] = []
    listener = OutputParser(READERS[agent], pieces.append)
    for start in range(0, len(data), size):
        listener.feed(data[start : start + size])
    return listener.finish(), pieces


@pytest.mark.parametrize("size", [1, 7, 64, 10_000])
@pytest.mark.parametrize(("agent", "events"), [("claude", CLAUDE), ("codex", CODEX), ("gemini", GEMINI)])
def test_stream_is_parsed_in_chunks_of_any_size(agent: str, events: list[dict[str, Any]], size: int) -> None:
    said, pieces = heard(agent, lines(events), size)
    assert (said.text, said.done, said.error, said.finish, said.id) == ("Tabs.", True, "", "stop", "s")
    assert said.usage == USAGE[agent]
    assert "".join(pieces).endswith("Tabs.")


@pytest.mark.behaviour("14-usage-validated")
@pytest.mark.parametrize("value", ["10000000000000000000", "-5", "NaN", "9" * 400, '"12"', "3.0", "true", '{"a": 3}'])
@pytest.mark.parametrize(("agent", "events"), [("claude", CLAUDE), ("codex", CODEX), ("gemini", GEMINI)])
def test_invalid_count_makes_the_usage_unknown(agent: str, events: list[dict[str, Any]], value: str) -> None:
    whole = lines(events).replace(b'"output_tokens": 3', b'"output_tokens": ' + value.encode())
    assert whole != lines(events)
    said, _ = heard(agent, whole, 10_000)
    assert (said.text, said.done, said.usage.validated().known) == ("Tabs.", True, False)


@pytest.mark.parametrize(("agent", "events"), [("claude", CLAUDE), ("codex", CODEX), ("gemini", GEMINI)])
def test_truncated_stream_is_never_complete(agent: str, events: list[dict[str, Any]]) -> None:
    data = lines(events)
    whole = len(data) - 1  # the last line's end may be missing
    assert not any(heard(agent, data[:end], 10_000)[0].done for end in range(whole))
    assert heard(agent, data[:whole], 10_000)[0].done


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("before", ["", "Loaded cached credentials.\n"])
def test_object_at_the_end_is_parsed_after_other_output(indent: int | None, before: str) -> None:
    said, _ = heard("gemini", (before + json.dumps(GEMINI_WHOLE, indent=indent)).encode(), 10)
    assert (said.text, said.usage, said.model) == ("Tabs.", USAGE["gemini"], "gemini-3-pro-preview")


def test_object_is_complete_before_the_process_exits() -> None:
    listener = OutputParser(READERS["gemini"], lambda piece: None)
    assert listener.feed(json.dumps(GEMINI_WHOLE, indent=2).encode() + b"\n")
    assert listener.output.done


def test_list_of_events_is_parsed_like_a_stream() -> None:
    said, _ = heard("claude", json.dumps(CLAUDE).encode(), 10_000)
    assert (said.text, said.done) == ("Tabs.", True)


def test_structured_output_is_used_as_the_reply() -> None:
    result = CLAUDE[-1] | {"structured_output": {"answer": "Tabs."}, "result": "as prose"}
    assert json.loads(heard("claude", lines([result]), 99)[0].text) == {"answer": "Tabs."}


@pytest.mark.parametrize(
    ("agent", "event", "failed"),
    [
        ("claude", {"type": "result", "is_error": True, "result": "no luck"}, "no luck"),
        ("claude", {"type": "result", "subtype": "error_during_execution", "errors": ["a hook"]}, "a hook"),
        ("claude", {"type": "result", "subtype": "error_max_turns"}, "error_max_turns"),
        ("codex", {"type": "turn.failed", "error": {"message": "no luck"}}, "no luck"),
        ("gemini", {"type": "result", "status": "error", "error": {"type": "x", "message": "no luck"}}, "no luck"),
        ("gemini", {"error": {"type": "Error", "message": "no luck", "code": 41}}, "no luck"),
    ],
)
def test_failure_event_is_not_an_answer(agent: str, event: dict[str, Any], failed: str) -> None:
    assert heard(agent, lines([event]), 99)[0].error == failed


@pytest.mark.parametrize(("reason", "finish"), [("max_tokens", "length"), ("refusal", "refused"), ("new_one", "stop")])
def test_finish_reason_is_reported(reason: str, finish: str) -> None:
    assert heard("claude", lines([CLAUDE[-1] | {"stop_reason": reason}]), 99)[0].finish == finish


@pytest.mark.parametrize("agent", READERS)
@pytest.mark.parametrize("junk", [b"{}", b"[1, null, \"x\"]", b'{"type": "result", "usage": 3}', b'{"type": "item.completed"}',
                                  b"\xff\xfe{", b'{"type": "message", "role": "assistant"}', b"[" * 5000])  # fmt: skip
def test_junk_output_does_not_break_the_parser(agent: str, junk: bytes) -> None:
    said, _ = heard(agent, junk + b"\n" + lines(CLAUDE + CODEX + GEMINI), 33)
    assert said.done


def test_gemini_total_includes_the_thoughts() -> None:
    whole = {"response": "Tabs.", "stats": {**GEMINI_TOTALS, "models": {"gemini-3.1-pro-preview": GEMINI_TOTALS}}}
    said, _ = heard("gemini", lines([{"type": "init", "model": "pro"}, whole]), 99)
    assert (said.usage, said.model) == (USAGE["gemini"], "gemini-3.1-pro-preview")


def retry(status: int) -> dict[str, Any]:
    return {"type": "system", "subtype": "api_retry", "error_status": status, "error": "rate_limit"}


def reconnect(status: int, scheme: str = "https") -> dict[str, Any]:
    return {"type": "error", "message": f"Reconnecting... 1/5 (unexpected status {status} No: x, url: {scheme}://h/v1)"}


@pytest.mark.behaviour("issue-18-agent-retries")
@pytest.mark.parametrize(
    ("agent", "events", "over", "status"),
    [
        ("claude", [retry(401)], True, 401),
        ("claude", [retry(403)], True, 403),
        ("claude", [retry(429)], False, 429),
        ("claude", [retry(429)] * 2, True, 429),
        ("claude", [retry(529), CLAUDE[3]], False, 529),
        ("codex", [reconnect(401)], True, 401),
        ("codex", [reconnect(500)], False, 500),
        ("codex", [reconnect(500)] * 2, True, 500),
        ("codex", [reconnect(404, "wss")] * 5, False, 0),  # it will use HTTP instead
        ("codex", [reconnect(401, "wss")], True, 401),
    ],
)
def test_retry_events_are_activity_and_end_a_hopeless_call(
    agent: str, events: list[dict[str, Any]], over: bool, status: int
) -> None:
    pieces: list[str] = []
    parser = OutputParser(READERS[agent], pieces.append)
    moved = [parser.feed(lines([event])) for event in events]
    assert (parser.output.is_hopeless, parser.output.status, parser.output.done) == (over, status, False)
    assert pieces == [event["event"]["delta"]["text"] for event in events if "event" in event]  # a retry is no content
    assert all(moved) or status == 0


def test_plain_text_is_the_answer_without_json_output() -> None:
    pieces: list[str] = []
    listener = OutputParser(None, pieces.append)
    listener.feed(b"\x1b[1mTabs\x1b[0m")
    listener.feed(b".\r\n")
    assert (listener.finish().text, "".join(pieces)) == ("Tabs.", "Tabs.\n")
