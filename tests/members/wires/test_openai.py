"""Chat-completions wire over a real socket: answers, faults and timeouts."""

from __future__ import annotations

import asyncio
import gc
import json
import socket
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from council.errors import Fault
from council.members.wires.error_responses import ErrorResponse, classify_error
from council.members.wires.openai import ChatCompletionParser, OpenAIMember
from council.text_cleanup import redact_line
from council.types import Answer, Ask, JsonSchema, Usage
from tests.fake_clock import settle, skip
from tests.fake_provider import FakeProvider, Reply
from tests.fake_replies import stream
from tests.fakes.raw import OPEN_ENDED, endpoint

pytestmark = pytest.mark.anyio
KEY = "-".join(["sk", "test", "0123456789abcdef"])
ASK = Ask("draft/alpha", ({"role": "system", "content": "Be brief."}, {"role": "user", "content": "Why?"}))
SCHEMA: JsonSchema = {
    "type": "object",
    "properties": {"yes": {"type": "boolean"}},
    "required": ["yes"],
    "additionalProperties": False,
}


def sitting(base_url: str, **options: Any) -> OpenAIMember:
    given = {"model": "m1", "api_key": KEY, "vendor": "sim", "first_byte": 20.0, **options}
    return OpenAIMember("sim:m1", base_url=base_url, **given)


async def asked(base_url: str, ask: Ask = ASK, **options: Any) -> tuple[Answer, list[str]]:
    member, heard = sitting(base_url, **options), list[str]()
    try:
        return await member.send(member.prepare(ask), heard.append), heard
    finally:
        await member.close()


async def fault(base_url: str, **options: Any) -> Fault:
    with pytest.raises(Fault) as caught:
        await asked(base_url, **options)
    return caught.value


def said(text: str = "", finish: str | None = None) -> bytes:
    event = {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": finish}]}
    return b"data: " + json.dumps(event).encode() + b"\n\n"


WHOLE = said("All ") + said("of it.") + said(finish="stop") + b"data: [DONE]\n\n"


# Requests


def test_the_same_ask_gives_the_same_bytes() -> None:
    first, second = sitting("http://x/v1"), sitting("http://y/v1")
    assert first.prepare(ASK) == second.prepare(ASK)


def test_a_request_streams_and_includes_usage() -> None:
    body = json.loads(
        sitting("http://x/v1", token_field="max_completion_tokens").prepare(Ask("k", ASK.messages, max_tokens=9))
    )
    assert body["stream"] is True
    assert body["stream_options"] == {"include_usage": True}
    assert body["max_completion_tokens"] == 9
    assert "temperature" not in body


def test_a_typed_reply_is_asked_for_as_a_strict_schema() -> None:
    body = json.loads(sitting("http://x/v1").prepare(Ask("k", ASK.messages, SCHEMA, "ballot")))
    wanted = {"name": "ballot", "strict": True, "schema": SCHEMA}
    assert body["response_format"] == {"type": "json_schema", "json_schema": wanted}
    assert body["messages"] == list(ASK.messages)


@pytest.mark.parametrize("structured", ["json_object", "prompt"])
def test_without_schema_support_the_schema_is_in_the_last_user_message(structured: str) -> None:
    body = json.loads(sitting("http://x/v1", structured=structured).prepare(Ask("k", ASK.messages, SCHEMA, "ballot")))
    assert body["messages"][0] == ASK.messages[0]
    assert json.dumps(SCHEMA, separators=(",", ":")) in body["messages"][1]["content"]
    assert body.get("response_format") == ({"type": "json_object"} if structured == "json_object" else None)


def test_a_lone_surrogate_does_not_stop_a_request() -> None:
    body = sitting("http://x/v1").prepare(Ask("k", ({"role": "user", "content": "a\ud800b"},)))
    assert json.loads(body)["messages"][0]["content"] == "a?b"


def test_temperature_is_omitted_if_the_model_does_not_take_it() -> None:
    ask = Ask("k", ASK.messages, temperature=0.2)
    assert json.loads(sitting("http://x/v1").prepare(ask))["temperature"] == 0.2
    assert "temperature" not in json.loads(sitting("http://x/v1", takes_temperature=False).prepare(ask))


@pytest.mark.behaviour("40-optional-parameters-are-dropped")
def test_a_bare_request_has_no_optional_parameters() -> None:
    body = json.loads(sitting("http://x/v1").prepare(Ask("k", ASK.messages, bare=True)))
    assert set(body) == {"model", "messages", "stream"}


# Answers


async def test_a_streamed_answer_is_reported_in_pieces_and_returned_whole(provider: FakeProvider) -> None:
    answer, heard = await asked(provider.base_url)
    assert answer.text == "".join(heard)
    assert provider.log[0].marker in answer.text
    assert len(heard) > 3
    assert (answer.finish, answer.model) == ("stop", "m1")
    assert answer.usage == Usage(provider.bill["in"], provider.bill["out"])
    assert provider.log[0].headers["Authorization"] == f"Bearer {KEY}"


async def test_an_unstreamed_answer_is_accepted(provider: FakeProvider) -> None:
    provider.script("m1", Reply("At once.", stream=False))
    answer, heard = await asked(provider.base_url)
    assert (answer.text, heard) == ("At once.", ["At once."])
    assert answer.usage.output > 0


async def test_prepared_bytes_arrive_unchanged(provider: FakeProvider) -> None:
    member = sitting(provider.base_url)
    body = member.prepare(Ask("k", ({"role": "user", "content": "große Frage " * 200_000},)))
    await member.send(body, lambda piece: None)
    await member.close()
    assert len(body) > 2**20
    assert provider.log[0].raw == body


@pytest.mark.behaviour("wire.usage-is-the-largest-report")
async def test_usage_is_the_largest_report_not_the_sum(provider: FakeProvider) -> None:
    reports = [
        {"prompt_tokens": 7, "completion_tokens": n, "prompt_tokens_details": {"cached_tokens": 3}} for n in (1, 5, 4)
    ]
    provider.script("m1", Reply(usage=reports))
    assert (await asked(provider.base_url))[0].usage == Usage(7, 5, 3)


@pytest.mark.behaviour("40-unknown-tokens-are-unknown")
@pytest.mark.parametrize("reports", [[], [{}], [{"prompt_tokens": None, "completion_tokens": None}]])
async def test_unreported_usage_is_unknown_not_zero(provider: FakeProvider, reports: list[Any]) -> None:
    provider.script("m1", Reply(usage=reports))
    assert (await asked(provider.base_url))[0].usage == Usage(known=False)


async def test_an_answer_at_its_length_limit_has_finish_length(provider: FakeProvider) -> None:
    provider.script("m1", Reply(finish="length"), Reply(empty=True, finish="length"))
    assert (await asked(provider.base_url))[0].finish == "length"
    assert (await asked(provider.base_url))[0] == Answer("", "length", Usage(4, 1), "m1", "fake-2")


@pytest.mark.parametrize(
    "reply",
    [
        Reply(refuse=True),
        Reply(finish="content_filter"),
        Reply(empty=True, finish="content_filter"),
        Reply(refuse=True, stream=False),
    ],
)
async def test_a_refusal_has_finish_refused(provider: FakeProvider, reply: Reply) -> None:
    provider.script("m1", reply)
    assert (await asked(provider.base_url))[0].finish == "refused"


async def test_a_refusal_as_an_error_status_is_a_fault_with_a_status(provider: FakeProvider) -> None:
    provider.script("m1", Reply(status=400, error={"error": {"message": "filtered", "code": "content_filter"}}))
    caught = await fault(provider.base_url)
    assert (caught.kind, caught.detail, caught.said) == (
        "refused",
        'the member declined to answer: "filtered"',
        "filtered",
    )
    assert caught.has_status  # so that the address of the endpoint decides whether it may be billed


async def test_a_framed_stream_may_close_without_done(provider: FakeProvider) -> None:
    provider.script("m1", Reply(done=False), Reply(done=False, finish=None))
    assert (await asked(provider.base_url))[0].finish == "stop"
    assert (await fault(provider.base_url)).kind == "cut"


async def test_reasoning_is_reported_as_activity_without_text() -> None:
    thought = b'data: {"choices":[{"delta":{"reasoning_content":"hmm"}}]}\n\n'
    async with endpoint([OPEN_ENDED, thought, said(""), WHOLE]) as url:
        assert (await asked(url))[1] == ["", "All ", "of it."]


# Faults


@pytest.mark.behaviour("wire.status-decides-the-kind")
@pytest.mark.parametrize(
    ("status", "error", "kind"),
    [
        (302, None, "endpoint"),
        (400, {"error": {"message": "Unsupported parameter: 'temperature'"}}, "parameter"),
        (400, {"error": {"message": "too long", "code": "context_length_exceeded"}}, "size"),
        (401, {"error": {"message": "bad key"}}, "auth"),
        (402, {"error": {"message": "pay"}}, "quota"),
        (403, {"error": {"message": "no"}}, "auth"),
        (404, {"error": {"message": "no such model"}}, "model"),
        (404, {"error": {"message": 'model "m1" not found, try pulling it first'}}, "model"),
        (404, {"error": {"message": "Not found", "code": "model_not_found"}}, "model"),
        (404, {"error": {"message": "No endpoints found for m1."}}, "model"),
        (404, {"error": {"message": "Invalid URL (POST /v1/v1/chat/completions)"}}, "endpoint"),
        (404, {"error": {"message": "File Not Found", "type": "not_found_error", "code": 404}}, "endpoint"),
        (404, {"detail": "Not Found"}, "endpoint"),
        (404, "<html><title>404</title><h1>404 Not Found</h1></html>", "endpoint"),
        (404, "", "endpoint"),
        (405, "", "endpoint"),
        (413, "entity too large", "size"),
        (422, {"detail": "max_tokens: not an integer"}, "parameter"),
        (429, {"error": {"message": "slow down"}}, "rate"),
        (429, {"error": {"message": "x", "code": "insufficient_quota"}}, "quota"),
        (429, {"error": {"message": "Your credit balance is too low"}}, "quota"),
        (429, {"error": {"message": "You exceeded your current quota, check billing. Retry in 34s"}}, "rate"),
        (500, "<html><body>oops</body></html>", "server"),
        (502, "", "cut"),
        (503, None, "overload"),
        (504, None, "cut"),
        (529, {"error": {"type": "overloaded_error", "message": "busy"}}, "overload"),
    ],
)
async def test_the_status_and_the_body_decide_the_kind(
    provider: FakeProvider, status: int, error: Any, kind: str
) -> None:
    provider.script("m1", Reply(status=status, error=error))
    caught = await fault(provider.base_url)
    assert caught.kind == kind
    assert str(status) in caught.detail


async def test_a_refused_token_field_names_the_setting_that_fixes_it(provider: FakeProvider) -> None:
    words = "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."
    provider.script("m1", Reply(status=400, error={"error": {"message": words}}))
    caught = await fault(provider.base_url)
    assert caught.detail == f'400: {words} (token_field = "max_completion_tokens" in its [providers] table)'


PAGE = b"<!doctype html>\n<title>Welcome</title>\n<p>data: none</p>"


def http(body: bytes, kind: str, status: str = "200 OK", framed: bool = True, more: str = "") -> bytes:
    length = f"Content-Length: {len(body)}\r\n" if framed else ""
    return f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\n{length}{more}Connection: close\r\n\r\n".encode() + body


@pytest.mark.behaviour("wire.no-model-there")
@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (http(PAGE, "text/html; charset=utf-8"), "a web page, not a model's answer: check base_url"),
        (http(PAGE, "text/html", framed=False), "a web page, not a model's answer: check base_url"),
        (http(PAGE, "application/json"), "a web page, not a model's answer: check base_url"),
        (http(b"", "text/event-stream"), "an empty response, not a model's answer: check base_url"),
        (http(b"", "application/json"), "an empty response, not a model's answer: check base_url"),
        (http(b"OK", "text/plain"), "text/plain, not a model's answer: check base_url"),
        (b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n", "an empty response, not a model's answer"),
    ],
)
async def test_a_non_model_response_is_described(answer: bytes, words: str) -> None:
    async with endpoint([answer]) as url:
        caught = await fault(url)
    assert caught.kind == "endpoint"
    assert words in caught.detail


async def test_a_stream_with_an_html_content_type_is_a_stream() -> None:
    async with endpoint([http(WHOLE, "text/html")]) as url:
        assert (await asked(url))[0].text == "All of it."


@pytest.mark.behaviour("wire.no-model-there")
@pytest.mark.parametrize(
    ("location", "words"),
    [
        (
            "https://api.example.com/v2/chat/completions?key=s3cret",
            "redirects to https://api.example.com/v2: set base_url",
        ),
        (f"https://me:{'s3cret'}@login.example.com/in", "redirects to https://login.example.com/in: set base_url"),
        ("/v9/chat/completions", "/v9: set base_url to it"),
        ("", "without a location: check base_url"),
    ],
)
async def test_a_redirect_is_reported_and_not_followed(location: str, words: str) -> None:
    more = f"Location: {location}\r\n" if location else ""
    async with endpoint([http(b"", "text/html", "308 Permanent Redirect", more=more)]) as url:
        caught = await fault(url)
    assert (caught.kind, "s3cret" in caught.detail) == ("endpoint", False)
    assert caught.detail.startswith("308: the endpoint redirects")
    assert words in caught.detail


@pytest.mark.parametrize(
    "message",
    [
        "This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens.",
        "prompt is too long: 210000 tokens > 200000 maximum",
        "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
        "the request exceeds the available context size, try increasing it",
        "Please reduce the length of the messages or completion.",
        "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
        "too many tokens: total number of tokens in the prompt cannot exceed 4081",
        "`inputs` tokens + `max_new_tokens` must be <= 4097. Given: 5000",
    ],
)
def test_context_length_messages_are_size_faults(message: str) -> None:
    assert classify_error(400, ErrorResponse(frozenset(), message), None) == "size"


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ("Too many tokens, please wait before trying again.", "rate"),
        ("Request too large on tokens per minute (TPM): Limit 6000", "rate"),
        ("max_tokens is too large: 99999. This model supports at most 16384 completion tokens", "parameter"),
        ("API key not valid. Please pass a valid API key.", "auth"),
        ("The model `gpt-9` does not exist", "model"),
    ],
)
def test_messages_similar_to_size_errors_are_distinguished(message: str, kind: str) -> None:
    assert classify_error(400, ErrorResponse(frozenset(), message), None) == kind


@pytest.mark.behaviour("wire.retry-after")
@pytest.mark.parametrize(
    ("headers", "low", "high"),
    [
        ({"Retry-After": "7"}, 7, 7),
        ({"Retry-After": "0.5"}, 0.5, 0.5),
        ({"retry-after-ms": "1500", "Retry-After": "9"}, 1.5, 1.5),
        ({"Retry-After": format_datetime(datetime.now(UTC) + timedelta(hours=2), usegmt=True)}, 3600, 7200),
        ({"Retry-After": format_datetime(datetime.now(UTC) - timedelta(hours=2), usegmt=True)}, 0, 0),
    ],
)
async def test_retry_after_is_parsed_as_seconds_or_a_date(
    provider: FakeProvider, headers: dict[str, str], low: float, high: float
) -> None:
    provider.script("m1", Reply(status=429, headers=headers))
    after = (await fault(provider.base_url)).retry_after
    assert after is not None
    assert low <= after <= high


@pytest.mark.parametrize("nonsense", ["soon", "-3", "nan", "inf", "1e999", "", "Thu, 99 Foo 2026"])
async def test_an_invalid_retry_after_is_ignored(provider: FakeProvider, nonsense: str) -> None:
    provider.script("m1", Reply(status=429, headers={"Retry-After": nonsense}))
    caught = await fault(provider.base_url)
    assert (caught.kind, caught.retry_after) == ("rate", None)


@pytest.mark.behaviour("wire.cut-anywhere-is-never-ok")
async def test_a_stream_cut_at_any_byte_is_never_ok_without_its_terminator() -> None:
    end = WHOLE.index(b"[DONE]") + len(b"[DONE]\n")
    answers: list[list[bytes | float]] = [[OPEN_ENDED, WHOLE[:at]] for at in range(len(WHOLE))]
    async with endpoint(*answers) as url:
        for at in range(len(WHOLE)):
            if at < end:
                assert (await fault(url)).kind == "cut", f"cut after {WHOLE[:at]!r}"
            else:
                assert (await asked(url))[0].text == "All of it."


@pytest.mark.behaviour("wire.cut-anywhere-is-never-ok")
async def test_a_chunked_stream_cut_at_any_byte_is_never_ok_without_its_terminator(provider: FakeProvider) -> None:
    for at in range(2000):
        provider.script("m1", Reply("Short.", cut=at))
        try:
            await asked(provider.base_url)
        except Fault as caught:
            assert caught.kind == "cut"
        else:
            whole = b"".join(stream(provider.log[-1], Reply(), "Short."))
            assert at == whole.index(b"[DONE]") + len(b"[DONE]\n")
            return


@pytest.mark.parametrize("at", [0, 1, 40])
async def test_an_incomplete_json_body_is_a_cut(provider: FakeProvider, at: int) -> None:
    provider.script("m1", Reply(stream=False, cut=at))
    assert (await fault(provider.base_url)).kind == "cut"


@pytest.mark.parametrize("body", [b"%b", b"\n  \n%b", b"\xef\xbb\xbf\r\n%b", b"%b\r\n \t"])
async def test_blanks_around_a_json_body_are_no_part_of_it(body: bytes) -> None:
    reply = {"choices": [{"message": {"content": "Tabs."}, "finish_reason": "stop"}]}
    async with endpoint([http(body % json.dumps(reply).encode(), "application/json")]) as url:
        assert (await asked(url))[0].text == "Tabs."


async def test_a_json_body_with_more_behind_it_is_unreadable() -> None:
    async with endpoint([http(b'{"choices": []}{"choices": []}', "application/json")]) as url:
        assert "unreadable event" in (await fault(url)).detail


async def test_an_error_after_200_is_a_cut_and_keeps_the_partial_text(provider: FakeProvider) -> None:
    provider.script("m1", Reply(error_after="the engine died"))
    caught = await fault(provider.base_url)
    assert caught.kind == "cut"
    assert "the engine died" in caught.detail
    assert caught.said


async def test_a_connection_that_closes_before_any_answer_is_cut() -> None:
    async with endpoint([]) as url:
        assert (await fault(url)).kind == "cut"


async def test_a_stale_connection_is_a_net_fault() -> None:
    framed = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: keep-alive\r\n"
    first = framed + f"Content-Length: {len(WHOLE)}\r\n\r\n".encode() + WHOLE
    async with endpoint([first], []) as url:
        member = sitting(url)
        await member.send(member.prepare(ASK), lambda piece: None)
        with pytest.raises(Fault) as caught:
            await member.send(member.prepare(ASK), lambda piece: None)
        await member.close()
        assert caught.value.kind == "net"


@pytest.mark.behaviour("40-rejected-answers-are-counted")
async def test_an_empty_answer_has_its_usage(provider: FakeProvider) -> None:
    provider.script("m1", Reply(empty=True), Reply(text=" \n"), Reply(empty=True, stream=False))
    for _ in range(3):
        answer, _heard = await asked(provider.base_url)
        assert (answer.text.strip(), answer.finish, answer.usage) == ("", "stop", Usage(4, 1))


# Timeouts


async def test_an_endpoint_that_never_answers_stalls(provider: FakeProvider) -> None:
    provider.script("m1", Reply(hang=True))
    assert (await fault(provider.base_url, first_byte=0.1)).kind == "stall"


@pytest.mark.behaviour("wire.only-content-moves-the-clock")
async def test_keep_alive_comments_do_not_count_as_a_first_byte(provider: FakeProvider) -> None:
    provider.script("m1", Reply(comments=True))
    assert (await fault(provider.base_url, first_byte=0.15)).kind == "stall"


@pytest.mark.behaviour("wire.only-content-moves-the-clock")
async def test_keep_alive_comments_and_empty_events_do_not_reset_the_idle_timeout() -> None:
    breath: list[bytes | float] = [b": still here\n\n", said(""), 0.02]
    async with endpoint([OPEN_ENDED, said("All "), *(breath * 500), WHOLE]) as url:
        caught = await fault(url, idle=0.15)
    assert (caught.kind, caught.said) == ("stall", "All ")


async def test_content_resets_the_idle_timeout() -> None:
    async with endpoint([OPEN_ENDED, *([said("on ")] * 20), WHOLE]) as url:
        member = sitting(url, first_byte=1000.0, idle=100.0)
        answer = await member.send(member.prepare(ASK), lambda piece: skip(20))
        await member.close()
    assert answer.text.endswith("All of it.")


async def test_an_answer_that_has_begun_may_pause_for_90_seconds() -> None:
    async with endpoint([OPEN_ENDED, said("All "), 1000.0]) as url:
        member, pieces = sitting(url), list[str]()
        task = asyncio.ensure_future(member.send(member.prepare(ASK), pieces.append))
        while not pieces:  # noqa: ASYNC110
            await asyncio.sleep(0)
        skip(89.5)
        await settle()
        assert not task.done()
        skip(1.0)
        with pytest.raises(Fault) as caught:
            await task
        await member.close()
    assert (caught.value.kind, caught.value.said) == ("stall", "All ")


@pytest.mark.behaviour("40-silence-is-not-a-failure")
async def test_a_pause_before_or_during_thinking_is_not_a_stall() -> None:
    thought = b'data: {"choices": [{"delta": {"reasoning_content": "Hm."}}]}\n\n'
    async with endpoint([OPEN_ENDED, 0.3, thought, 0.3, WHOLE]) as url:
        member = sitting(url, first_byte=None, idle=0.15)
        answer = await member.send(member.prepare(ASK), lambda piece: None)
        await member.close()
    assert answer.text == "All of it."


@contextmanager
def deaf_port() -> Iterator[int]:
    """Yield a port with a full backlog, which never accepts a connection."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as server:
        port = server.getsockname()[1]
        waiting = [socket.socket() for _ in range(4)]
        for one in waiting:
            one.setblocking(False)
            one.connect_ex(("127.0.0.1", port))
        yield port
        for one in waiting:
            one.close()


async def test_connecting_has_a_separate_timeout() -> None:
    with deaf_port() as port:
        assert (await fault(f"http://127.0.0.1:{port}/v1", connect=0.1)).kind == "net"


async def test_a_failed_connection_is_a_net_fault(provider: FakeProvider) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        closed = server.getsockname()[1]
    for url in (f"http://127.0.0.1:{closed}/v1", "http://missing.invalid/v1", f"https://127.0.0.1:{provider.port}/v1"):
        assert (await fault(url)).kind == "net"


@pytest.mark.behaviour("wire.refused-loopback-waits-little")
async def test_a_refused_loopback_connection_is_retried_soon() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        closed = server.getsockname()[1]
    for host in ("127.0.0.1", "localhost"):
        caught = await fault(f"http://{host}:{closed}/v1")
        assert (caught.kind, caught.retry_after) == ("net", 0.05)
    assert (await fault("http://missing.invalid/v1")).retry_after is None


async def test_waiting_for_a_free_connection_does_not_time_out(provider: FakeProvider) -> None:
    provider.delay = 0.15
    member = sitting(provider.base_url, max_connections=1, first_byte=0.4)
    answers = await asyncio.gather(*(member.send(member.prepare(ASK), lambda piece: None) for _ in range(4)))
    await member.close()
    assert len(answers) == 4
    assert len(provider.waves()) == 4


# Fault details


@pytest.mark.behaviour("wire.key-never-shown")
@pytest.mark.parametrize("status", [400, 401, 429, 500])
async def test_a_detail_is_one_clean_short_line_without_the_key(provider: FakeProvider, status: int) -> None:
    echo = f"\x1b[31mbad key {KEY}\x1b[0m\r\n\x00\x9b2J \x1b]0;title\x07 {'very ' * 100}long"
    provider.script("m1", Reply(status=status, error={"error": {"message": echo}}), Reply(status=status, error=echo))
    for _ in range(2):
        detail = (await fault(provider.base_url)).detail
        assert KEY not in detail
        assert detail.isprintable()
        assert len(detail) <= 200
        assert "bad key ***" in detail


@pytest.mark.behaviour("wire.key-never-shown")
@pytest.mark.parametrize(
    "quoted",
    [
        f"sk-{'proj'}-AbCd_1234-efgh5678", f"sk-{'ant'}-api03-abcdefgh12345678", f"sk-{'or'}-v1-0123456789abcdef", "gsk_abcdefgh12345678",
        "AIzaSyA-0123456789_abcdefghijklmnop", "xai-abcdefgh12345678", "hf_abcdefgh12345678", "ghp_abcdefgh12345678",
        f"{'AKIA'}ABCDEFGH12345678", "sk-abcd************wxyz", "eyJhbGciOi.eyJzdWIi.c2lnbmF0dXJl",
    ],
)  # fmt: skip
async def test_another_key_in_the_message_is_masked(provider: FakeProvider, quoted: str) -> None:
    said = f"Incorrect API key provided: {quoted}. You can find your key in the settings."
    provider.script("m1", Reply(status=401, error={"error": {"message": said}}))
    detail = (await fault(provider.base_url)).detail
    assert detail.startswith("401: Incorrect API key provided: ***")
    assert detail.endswith("You can find your key in the settings.")


def test_plain_words_are_not_masked_as_keys() -> None:
    said = "the task-force asks: risk_assessment of model gpt-5.2-2026-01-01 in eu-west-1, pk-1, hf_hub"
    assert redact_line(said) == said


async def test_a_key_at_the_truncation_boundary_is_fully_masked(provider: FakeProvider) -> None:
    provider.script("m1", Reply(error_after="x" * 150 + KEY))
    assert KEY[:8] not in (await fault(provider.base_url)).detail


# Connections


async def test_the_probe_counts_the_models(provider: FakeProvider) -> None:
    member = sitting(provider.base_url)
    assert await member.probe() == "answered, 3 models"
    provider.script("/models", Reply(status=401))
    with pytest.raises(Fault) as caught:
        await member.probe()
    await member.close()
    assert caught.value.kind == "auth"
    assert provider.bill["calls"] == 0


async def test_members_of_one_provider_share_their_connections(provider: FakeProvider) -> None:
    first, second = sitting(provider.base_url), sitting(provider.base_url, model="m2")
    assert first.endpoint.join_pool() is second.endpoint.join_pool()
    await first.close()
    await second.send(second.prepare(ASK), lambda piece: None)
    await second.close()


async def test_closing_members_closes_their_connections(provider: FakeProvider) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        await asked(provider.base_url)
        provider.script("m1", Reply(cut=10))
        await fault(provider.base_url)
        gc.collect()


async def test_closing_a_member_ends_a_call_that_is_still_open(provider: FakeProvider) -> None:
    gate = provider.hold()
    member = sitting(provider.base_url)
    call = asyncio.create_task(member.send(member.prepare(ASK), lambda piece: None))
    await asyncio.to_thread(gate.wait)
    await member.close()
    with pytest.raises(Fault):
        await asyncio.wait_for(call, 60)


async def test_credentials_in_a_url_are_not_shown(provider: FakeProvider) -> None:
    message = f"upstream http://me:{'hush'}@box:80/v1 is gone"
    provider.script("m1", Reply(status=500, error={"error": {"message": message}}))
    assert (await fault(provider.base_url)).detail == "500: upstream http://***@box:80/v1 is gone"


@pytest.mark.parametrize(
    ("port", "kind", "words"),
    [
        (None, "net", "the proxy refused to connect to https://models.invalid/v1: 404 Not Found"),
        (9, "net", "no connection to https://models.invalid/v1: the proxy 127.0.0.1:9 cannot be reached"),
    ],
)
@pytest.mark.parametrize("scheme", ["http://", ""])
async def test_a_failing_proxy_is_named_without_its_password(
    provider: FakeProvider, monkeypatch: pytest.MonkeyPatch, scheme: str, port: int | None, kind: str, words: str
) -> None:
    monkeypatch.setenv("https_proxy", f"{scheme}me:hush@127.0.0.1:{port or provider.port}")
    caught = await fault("https://models.invalid/v1")
    assert (caught.kind, caught.detail) == (kind, words)


async def test_an_environment_proxy_is_not_used_for_loopback(
    provider: FakeProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    assert (await asked(provider.base_url))[0].text


def test_importing_the_wire_does_not_import_aiohttp() -> None:
    code = "import sys, council.members.wires.openai; sys.exit('aiohttp' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# Arbitrary input


@given(st.lists(st.binary(max_size=80).map(lambda line: b"data: " + line)))
def test_any_bytes_are_parsed_or_rejected(lines: list[bytes]) -> None:
    try:
        ChatCompletionParser(lambda piece: None).feed_lines(lines)
    except ValueError as error:
        assert "unreadable" in str(error)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["choices", "delta", "content", "usage", "error", "finish_reason", "type", "text"]), inner
        )
    ),
    max_leaves=12,
)


@given(JSON)
def test_any_event_is_parsed_or_rejected(event: Any) -> None:
    hearing = ChatCompletionParser(lambda piece: None)
    try:
        hearing.feed_json(json.dumps(event).encode(), hearing.parse_event)
        hearing.build_answer(str)
    except Fault as caught:
        assert caught.kind == "cut"
    except ValueError as error:
        assert "unreadable" in str(error)
