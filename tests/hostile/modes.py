"""Table of the hostile endpoint: each mode with its answer, the expected fault, the number of requests and whether
they may be billed.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from council.calling.fault_table import FAULT_TABLE
from council.money import UNBILLED_FAULTS

from tests.hostile.endpoint import (  # isort: skip
    ANSWER, BODY, STREAM, Behaviour, Talk, answer_events, chunk, finish, head, respond, say, sse, start, think,
)  # fmt: skip

WIRES = ("openai", "anthropic", "google")
REQUESTS = {
    "ok": 1, "cut": 2, "flood": 1, "stall": 1, "empty": 2, "endpoint": 1, "auth": 1, "model": 1, "quota": 1, "refused": 1,
    "parameter": 2, "server": 3, "rate": 7, "overload": 7, "net": 5, "length": 2, "loop": 2, "size": 2,
}  # fmt: skip


@dataclass(frozen=True)
class Mode:
    """One mode. `kind` is the fault of the seat's last attempt, or "ok"."""

    behaviour: Behaviour
    kind: str
    requests: int
    wires: tuple[str, ...] = WIRES
    by_wire: Mapping[str, str] = field(default_factory=dict)  # kinds of wires that differ
    text: str | None = ANSWER  # of an ok seat; None: any
    knows_usage: bool | None = None  # of an ok seat; None: either
    at_connect: bool = False  # starts before the request is read

    def kind_on(self, wire: str) -> str:
        return self.by_wire.get(wire, self.kind)

    def state_on(self, wire: str) -> str:
        kind = self.kind_on(wire)
        return "ok" if kind == "ok" else FAULT_TABLE[kind].state

    def requests_on(self, wire: str) -> int:
        return REQUESTS[self.by_wire[wire]] if wire in self.by_wire else self.requests

    def is_billable(self, wire: str) -> bool:
        return self.kind_on(wire) not in UNBILLED_FAULTS


MODES: dict[str, Mode] = {}


def mode(name: str, kind: str, requests: int | None = None, **more: Any) -> Callable[[Behaviour], Behaviour]:
    """Add a mode that talks on the connection itself."""

    def add(behaviour: Behaviour) -> Behaviour:
        assert name not in MODES, name
        MODES[name] = Mode(behaviour, kind, requests or REQUESTS[kind], **more)
        return behaviour

    return add


def fixed(name: str, kind: str, build: Callable[[Talk], bytes], requests: int | None = None, **more: Any) -> None:
    """Add a mode that sends bytes and closes the connection."""

    async def behave(talk: Talk) -> None:
        await talk.send(build(talk))

    mode(name, kind, requests, **more)(behave)


def streamed(name: str, kind: str, build: Callable[[str], list[Any]], requests: int | None = None, **more: Any) -> None:
    """Add a mode that sends events as a stream, by wire."""
    fixed(name, kind, lambda talk: respond(sse(*build(talk.wire))), requests, **more)


def body(name: str, kind: str, build: Callable[[Talk], bytes], requests: int | None = None, **more: Any) -> None:
    """Add a mode that sends one JSON body."""
    fixed(name, kind, lambda talk: respond(build(talk), kind=BODY), requests, **more)


def complete(wire: str, text: str = ANSWER) -> bytes:
    return sse(*answer_events(wire, text))


# Endless responses


@mode("endless JSON", "flood")
async def _endless_json(talk: Talk) -> None:
    await talk.send(head(kind=BODY), b'{"choices": [')
    await talk.flood(b'{"index": 0}, ' * 4000)


@mode("endless words", "flood")
async def _endless_words(talk: Talk) -> None:
    await talk.send(head(), sse(*start(talk.wire)))
    n = 0
    while True:
        words = (f"A sentence that never repeats has a number in it: {n + k}. " for k in range(500))
        await talk.send(sse(*(say(talk.wire, text) for text in words)))
        n += 500


@mode("endless thoughts", "flood")
async def _endless_thoughts(talk: Talk) -> None:
    await talk.send(head(), sse(*start(talk.wire)))
    await talk.flood(sse(*(think(talk.wire, f"thought {n}") for n in range(500))))


@mode("endless comments", "flood")
async def _endless_comments(talk: Talk) -> None:
    await talk.send(head())
    await talk.flood(b": still here\n\n" * 4000)


@mode("endless empty events", "flood")
async def _endless_empty_events(talk: Talk) -> None:
    await talk.send(head())
    await talk.flood(b"data: {}\n\n" * 4000)


@mode("endless blank lines", "flood")
async def _endless_blank_lines(talk: Talk) -> None:
    await talk.send(head())
    await talk.flood(b"\n" * 60_000)


@mode("a line without an end", "flood")
async def _endless_line(talk: Talk) -> None:
    await talk.send(head(), b'data: {"choices": [{"delta": {"content": "')
    await talk.flood(b"word " * 12_000)


@mode("a line of 1 GB", "flood")
async def _huge_line(talk: Talk) -> None:
    await talk.send(head(length=2**30 + 6), b"data: ")
    for _ in range(2**14):
        await talk.send(b"x" * 2**16)


@mode("an endless loop of one sentence", "loop")
async def _endless_loop(talk: Talk) -> None:
    await talk.send(head(), sse(*start(talk.wire)))
    while True:
        await talk.send(sse(say(talk.wire, "The very same sentence comes again and again. ")) * 20)
        await talk.pause(0.0)


@mode("an endless error body", "server")
async def _endless_error(talk: Talk) -> None:
    await talk.send(head("500 Internal Server Error", "text/plain"))
    await talk.flood(b"no reason " * 4000)


@mode("words after the answer without end", "ok", by_wire={"google": "flood"})
async def _words_after_the_answer(talk: Talk) -> None:
    await talk.send(head(), complete(talk.wire))
    n = 0
    while True:  # on the wire of Google, text may follow the finish reason
        n += 1
        await talk.send(sse(*(say(talk.wire, f"More, number {n}-{k}. ") for k in range(200))))


@mode("comments after the answer without end", "ok")
async def _comments_after_the_answer(talk: Talk) -> None:
    await talk.send(head(), complete(talk.wire))
    while True:
        await talk.send(b": more\n\n" * 100)
        await talk.pause(0.1)


# Compression


def bomb(bits: int) -> tuple[bytes, bytes]:
    """Return the start of a compressed stream, and a block of about a kilobyte that is a megabyte of zeros."""
    deflater, zeros = zlib.compressobj(9, zlib.DEFLATED, bits), b"0" * 2**20
    first, block = (deflater.compress(zeros) + deflater.flush(zlib.Z_FULL_FLUSH) for _ in range(2))
    return first, block


def compress_bomb(name: str, encoding: str, bits: int, kind: str, content: str = BODY, status: str = "200 OK") -> None:
    async def behave(talk: Talk) -> None:
        first, block = bomb(bits)
        await talk.send(head(status, content, Content_Encoding=encoding), first)
        await talk.flood(block)

    mode(name, kind)(behave)


compress_bomb("gzip bomb", "gzip", zlib.MAX_WBITS | 16, "flood")
compress_bomb("deflate bomb", "deflate", zlib.MAX_WBITS, "flood")
compress_bomb("gzip bomb as a stream", "gzip", zlib.MAX_WBITS | 16, "flood", STREAM)
compress_bomb("gzip bomb as an error", "gzip", zlib.MAX_WBITS | 16, "auth", BODY, "401 Unauthorized")
compress_bomb("raw deflate bomb", "deflate", -zlib.MAX_WBITS, "cut")
compress_bomb("brotli", "br", zlib.MAX_WBITS, "endpoint")
compress_bomb("zstd", "zstd", zlib.MAX_WBITS, "endpoint")
compress_bomb("gzip inside gzip", "gzip, gzip", zlib.MAX_WBITS | 16, "endpoint")
compress_bomb("an unknown encoding with escapes", "\x1b[31mred", zlib.MAX_WBITS, "endpoint")


def gzipped(data: bytes) -> bytes:
    deflater = zlib.compressobj(9, zlib.DEFLATED, zlib.MAX_WBITS | 16)
    return deflater.compress(data) + deflater.flush()


fixed("gzip of gzip", "cut", lambda talk: respond(gzipped(gzipped(complete(talk.wire))), Content_Encoding="gzip"))
fixed("gzip cut off", "cut", lambda talk: respond(gzipped(complete(talk.wire))[:60], Content_Encoding="gzip"))
fixed("a valid gzip answer", "ok", lambda talk: respond(gzipped(complete(talk.wire)), Content_Encoding="gzip"))


# Slow responses


@mode("silence", "stall")
async def _silence(talk: Talk) -> None:
    await talk.hang()


@mode("headers, then silence", "stall")
async def _silent_body(talk: Talk) -> None:
    await talk.send(head())
    await talk.hang()


@mode("one byte at a time", "stall")
async def _dribble(talk: Talk) -> None:
    await talk.send(head())
    await talk.drip(complete(talk.wire) * 20)


@mode("headers one byte at a time", "stall")
async def _dribbled_headers(talk: Talk) -> None:
    await talk.drip(head(X_Filler="a" * 4000))


@mode("one header per interval", "stall")
async def _endless_headers(talk: Talk) -> None:
    await talk.send(b"HTTP/1.1 200 OK\r\n")
    for n in range(5000):
        await talk.send(b"X-%d: 1\r\n" % n)
        await talk.pause(0.4)


@mode("an error body one byte at a time", "auth")
async def _dribbled_error(talk: Talk) -> None:
    await talk.send(head("401 Unauthorized", BODY))
    await talk.drip(b'{"error": {"message": "%s"}}' % (b"a" * 4000), every=0.3)


@mode("keep-alive comments only", "stall")
async def _comments_only(talk: Talk) -> None:
    await talk.send(head())
    while True:
        await talk.send(b": still here\n\n")
        await talk.pause(0.3)


@mode("thoughts only, slowly", "stall")
async def _slow_thoughts(talk: Talk) -> None:
    await talk.send(head(), sse(*start(talk.wire)))
    while True:
        await talk.send(sse(think(talk.wire, "hm")))
        await talk.pause(0.3)


@mode("slow, then a flood", "flood")
async def _slow_then_fast(talk: Talk) -> None:
    await talk.send(head())
    await talk.drip(b": slow\n\n", every=0.1)
    await talk.flood(b": fast\n\n" * 4000)


@mode("half an answer, then silence", "stall")
async def _half_then_silence(talk: Talk) -> None:
    await talk.send(head(), complete(talk.wire)[:300])
    await talk.hang()


@mode("interim responses without end", "stall")
async def _interim_flood(talk: Talk) -> None:
    while True:
        await talk.send(b"HTTP/1.1 100 Continue\r\n\r\n" * 50)
        await talk.pause(0.2)


@mode("early hints, then an answer", "ok")
async def _early_hints(talk: Talk) -> None:
    await talk.send(b"HTTP/1.1 103 Early Hints\r\nLink: </x>; rel=preload\r\n\r\n" * 100, respond(complete(talk.wire)))


# Headers and framing

fixed("a header of 1 MB", "flood", lambda talk: respond(complete(talk.wire), X_Long="a" * 2**20))
fixed("5,000 headers", "flood", lambda talk: respond(complete(talk.wire), **{f"X_{n}": "a" for n in range(5000)}))
fixed("a reason phrase of 1 MB", "flood", lambda talk: respond(complete(talk.wire), "200 " + "a" * 2**20))
fixed("a length that is too short", "cut", lambda talk: head(length=200) + complete(talk.wire))
fixed("a length that is too long", "cut", lambda talk: head(length=10**6) + complete(talk.wire)[:-40])
fixed("a negative length", "cut", lambda talk: head(Content_Length="-5") + complete(talk.wire))
fixed("a length that is no number", "cut", lambda talk: head(Content_Length="many") + complete(talk.wire))
fixed("a length of 10^12", "flood", lambda talk: head(kind=BODY, length=10**12) + b"{}")
fixed("two lengths", "cut", lambda talk: head(length=9).replace(b"\r\n", b"\r\nContent-Length: 400\r\n", 1) + complete(talk.wire))  # fmt: skip
fixed("chunks with a bad size", "cut", lambda talk: head(Transfer_Encoding="chunked") + chunk(complete(talk.wire)[:90]) + b"zz\r\nmore\r\n")  # fmt: skip
fixed("a chunk size of 10^30", "cut", lambda talk: head(Transfer_Encoding="chunked") + b"F" * 25 + b"\r\ndata: {}\n\n")
fixed("a negative chunk size", "cut", lambda talk: head(Transfer_Encoding="chunked") + b"-5\r\ndata: {}\n\n\r\n")
fixed(
    "chunks without the last one",
    "cut",
    lambda talk: head(Transfer_Encoding="chunked") + chunk(complete(talk.wire)[:90]),
)
fixed("a status that is no number", "cut", lambda talk: b"HTTP/1.1 abc OK\r\n\r\n" + complete(talk.wire))
fixed("status 999", "server", lambda talk: respond(complete(talk.wire), "999 Odd"))
fixed("no HTTP at all", "cut", lambda talk: complete(talk.wire))
fixed(
    "bytes of TLS on a plain port",
    "cut",
    lambda talk: b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(range(200)),
)
fixed(
    "HTTP/1.0", "ok", lambda talk: b"HTTP/1.0 200 OK\r\nContent-Type: text/event-stream\r\n\r\n" + complete(talk.wire)
)
fixed("HTTP/0.9", "cut", lambda talk: b"hello\r\n")
fixed("HTTP/2 preface", "cut", lambda talk: b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(60))
fixed("switching protocols", "endpoint", lambda talk: b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n")  # fmt: skip
fixed("control characters in headers", "cut", lambda talk: respond(complete(talk.wire), X_Odd="a\x00b"))
fixed("a chunk extension of 1 MB", "cut", lambda talk: head(Transfer_Encoding="chunked") + b"5;" + b"a" * 2**20 + b"\r\ndata:\r\n0\r\n\r\n", by_wire={})  # fmt: skip


@mode("endless trailers", "ok")
async def _endless_trailers(talk: Talk) -> None:
    await talk.send(head(Transfer_Encoding="chunked") + chunk(complete(talk.wire)))
    await talk.pause(0.1)
    await talk.send(b"0\r\n")
    await talk.flood(b"X: 1\r\n" * 2000)


# Broken connections


@mode("closed at once", "cut", at_connect=True)
async def _closed_at_connect(talk: Talk) -> None:
    await talk.pause(0.0)


@mode("reset at once", "cut", at_connect=True)
async def _reset_at_connect(talk: Talk) -> None:
    talk.reset()


@mode("an answer before the request", "ok", at_connect=True, wires=("openai",))
async def _unsolicited(talk: Talk) -> None:
    await talk.send(respond(complete("openai")))
    await talk.hang()


@mode("closed after the request", "cut")
async def _closed_after_request(talk: Talk) -> None:
    await talk.pause(0.0)


@mode("reset after the request", "cut")
async def _reset_after_request(talk: Talk) -> None:
    talk.reset()


fixed("closed inside the status line", "cut", lambda talk: b"HTTP/1.1 2")
fixed("closed inside the headers", "cut", lambda talk: b"HTTP/1.1 200 OK\r\nContent-Ty")
fixed("closed after the headers", "cut", lambda talk: head())
fixed("closed inside an event", "cut", lambda talk: head() + complete(talk.wire)[:150])
fixed("closed before the terminator", "cut", lambda talk: head() + sse(*answer_events(talk.wire)[: -3 if talk.wire == "openai" else -1]))  # fmt: skip
fixed("closed inside a JSON body", "cut", lambda talk: respond(json.dumps(talk.whole()).encode(), kind=BODY)[:-30])


@mode("reset inside the answer", "cut")
async def _reset_inside(talk: Talk) -> None:
    await talk.send(head(), complete(talk.wire)[:150])
    await talk.pause(0.05)
    talk.reset()


PUSHED = "This answer belongs to another request, so no seat may have it."


@mode("a second response pushed early", "ok")
async def _pushed_early(talk: Talk) -> None:
    """Send an unrequested answer together with the own one, and keep the connection open for the next request."""
    answers = (respond(complete(talk.wire, text), Connection="keep-alive") for text in (ANSWER, PUSHED))
    await talk.send(b"".join(answers))
    talk.keeps_open = True


@mode("a second response pushed late", "ok")
async def _pushed_late(talk: Talk) -> None:
    await talk.send(respond(complete(talk.wire), Connection="keep-alive"))
    await talk.pause(0.0)
    await talk.send(respond(complete(talk.wire, PUSHED), Connection="keep-alive"))
    talk.keeps_open = True


# Statuses and redirects

for code in (301, 302, 303, 307, 308):
    fixed(f"{code} to another host", "endpoint", lambda talk, code=code: respond(b"", f"{code} Moved", Location=f"{talk.other}/v1"))  # type: ignore[misc]  # fmt: skip
fixed("redirect to a file", "endpoint", lambda talk: respond(b"", "302 Found", Location="file:///etc/passwd"))
fixed("redirect to itself", "endpoint", lambda talk: respond(b"", "307 Again", Location=talk.seen.path))
fixed("redirect to no URL", "endpoint", lambda talk: respond(b"", "302 Found", Location="http://[::1"))
fixed("redirect without a location", "endpoint", lambda talk: respond(b"", "302 Found"))
fixed("refresh to another host", "ok", lambda talk: respond(complete(talk.wire), Refresh=f"0; url={talk.other}", Link=f"<{talk.other}>; rel=preload"))  # fmt: skip
fixed("204", "endpoint", lambda talk: b"HTTP/1.1 204 No Content\r\n\r\n")
fixed("205", "endpoint", lambda talk: b"HTTP/1.1 205 Reset Content\r\nContent-Length: 0\r\n\r\n")
fixed("206 with a part of the answer", "cut", lambda talk: respond(complete(talk.wire)[:150], "206 Partial Content", Content_Range="bytes 0-149/9000"))  # fmt: skip
fixed("304", "endpoint", lambda talk: b"HTTP/1.1 304 Not Modified\r\nETag: x\r\n\r\n")
fixed("401 with escapes, CI commands and our key", "auth", lambda talk: respond(HOSTILE_WORDS.encode() + talk.key.encode(), "401 No", kind="text/plain"))  # fmt: skip
fixed("403 with 4 MB of HTML", "auth", lambda talk: respond(b"<html>" + b"<p>no</p>" * 450_000, "403 No", kind="text/html"))  # fmt: skip
fixed("404 with our key as JSON", "model", lambda talk: respond(json.dumps({"error": {"message": f"no model for {talk.key}", "code": "model_not_found"}}).encode(), "404 No", kind=BODY))  # fmt: skip
fixed("400 nested 20,000 deep", "parameter", lambda talk: respond(b'{"error": ' + b"[" * 20_000 + b"]" * 20_000 + b"}", "400 No", kind=BODY))  # fmt: skip
fixed("400 nested 300 deep", "parameter", lambda talk: respond(b'{"error": ' + b"[" * 300 + b"]" * 300 + b"}", "400 No", kind=BODY))  # fmt: skip
fixed("400 with a number of 5,000 digits", "parameter", lambda talk: respond(b'{"error": {"message": %s}}' % (b"9" * 5000), "400 No", kind=BODY))  # fmt: skip
fixed("413 with numbers of 90 digits", "size", lambda talk: respond(json.dumps({"error": {"message": f"context length {'9' * 90}, yours {'8' * 90}"}}).encode(), "413 No", kind=BODY))  # fmt: skip
fixed("500 with a page of scripts", "server", lambda talk: respond(b"<script>alert(1)</script><h1>Down</h1>", "500 No", kind="text/html"))  # fmt: skip
for name, after in {
    "10^12 seconds": "1000000000000", "400 digits": "9" * 400, "the year 9999": "Fri, 31 Dec 9999 23:59:59 GMT",
}.items():  # fmt: skip
    fixed(f"retry after {name}", "rate", lambda talk, after=after: respond(b"{}", "429 Slow", kind=BODY, Retry_After=after), 7 if "digits" in name else 1)  # type: ignore[misc]  # fmt: skip
for name, after in {"-5": "-5", "a past date": "Thu, 01 Jan 1970 00:00:00 GMT", "the year 99999": "Fri, 31 Dec 99999 23:59:59 GMT", "NaN": "nan"}.items():  # fmt: skip
    fixed(f"retry after {name}", "rate", lambda talk, after=after: respond(b"{}", "429 Slow", kind=BODY, Retry_After=after))  # type: ignore[misc]  # fmt: skip
HOSTILE_WORDS = "\x1b]0;owned\x07\x1b[31m\r\n::error::stop\r\n::stop-commands::x\n##vso[task.complete]\u202e "
fixed("cookies", "ok", lambda talk: respond(complete(talk.wire), Set_Cookie="id=42; Path=/; Max-Age=999999"))  # fmt: skip


# Content types and encodings

fixed("HTML with status 200", "endpoint", lambda talk: respond(b"<!doctype html><h1>Log in</h1>", kind="text/html"))
fixed("HTML that says it is JSON", "endpoint", lambda talk: respond(b"<!doctype html><h1>Log in</h1>", kind=BODY))
fixed("plain text", "endpoint", lambda talk: respond(ANSWER.encode(), kind="text/plain"))
fixed("no content type", "ok", lambda talk: b"HTTP/1.1 200 OK\r\n\r\n" + complete(talk.wire))
fixed("an image", "endpoint", lambda talk: respond(b"\x89PNG\r\n\x1a\n" + bytes(200), kind="image/png"))
fixed("a content type of nonsense", "ok", lambda talk: respond(complete(talk.wire), kind=";;=\xff,,"))
fixed("a JSON answer as an event stream", "cut", lambda talk: respond(json.dumps(talk.whole()).encode()))
fixed("an event stream as JSON", "cut", lambda talk: respond(complete(talk.wire), kind=BODY))
fixed("a byte order mark before the events", "ok", lambda talk: respond(b"\xef\xbb\xbf" + complete(talk.wire)))
body("a byte order mark before JSON", "ok", lambda talk: b"\xef\xbb\xbf" + json.dumps(talk.whole()).encode())
body("UTF-16", "cut", lambda talk: json.dumps(talk.whole()).encode("utf-16"))
streamed("invalid UTF-8", "cut", lambda wire: [*start(wire), json.dumps(say(wire, "X")).encode().replace(b"X", b"\xff\xfe"), *finish(wire)])  # fmt: skip
streamed("a lone surrogate", "ok", lambda wire: [*start(wire), say(wire, ANSWER + " \ud800"), *finish(wire)], text=ANSWER + " \ufffd")  # fmt: skip
streamed("a surrogate pair in two events", "ok", lambda wire: [*start(wire), say(wire, ANSWER + " \ud83d"), say(wire, "\ude00"), *finish(wire)], text=ANSWER + " \U0001f600")  # fmt: skip
streamed("NUL in a string", "ok", lambda wire: [*start(wire), say(wire, ANSWER + "\0"), *finish(wire)], text=None)
streamed("raw NUL bytes", "cut", lambda wire: [*start(wire), json.dumps(say(wire, "X")).encode().replace(b"X", b"\0"), *finish(wire)])  # fmt: skip
fixed("only NUL bytes", "cut", lambda talk: respond(bytes(5000)))


# JSON

DEEP = b"[" * 100_000 + b"]" * 100_000
body("JSON nested 100,000 deep", "cut", lambda talk: DEEP)
streamed("an event nested 100,000 deep", "cut", lambda wire: [DEEP])
streamed("an error nested deep in the stream", "cut", lambda wire: [b'{"type": "error", "error": ' + b"[" * 900 + b"]" * 900 + b"}"])  # fmt: skip
streamed("200,000 objects in one event", "flood", lambda wire: [b'{"choices": [%s{}]}' % (b"{}," * 200_000)])
streamed("duplicate keys", "ok", lambda wire: [*start(wire), json.dumps(say(wire, ANSWER)).encode().replace(b"{", b'{"x": 1, "x": 2, ', 1), *finish(wire)])  # fmt: skip
streamed("5,000 keys", "ok", lambda wire: [{f"key {n}": n for n in range(5_000)}, *answer_events(wire)])
streamed("NaN and Infinity", "ok", lambda wire: [{"x": float("nan"), "y": float("inf")}, *answer_events(wire)])
streamed("an event that is no object", "cut", lambda wire: [[1, 2], *answer_events(wire)])
streamed("an event that is null", "cut", lambda wire: [b"null", *answer_events(wire)])
streamed("text that is null", "empty", lambda wire: [*start(wire), say(wire, None), *finish(wire)])
streamed("text that is a number", "cut", lambda wire: [*start(wire), say(wire, 10**40), *finish(wire)])
streamed("text that is an object", "cut", lambda wire: [*start(wire), say(wire, {"a": [1]}), *finish(wire)], by_wire={"openai": "cut"})  # fmt: skip
streamed("half of an event", "cut", lambda wire: [*start(wire), json.dumps(say(wire, ANSWER)).encode()[:-9], *finish(wire)])  # fmt: skip


# Usage

for label, value in {
    "10^19": 10**19, "-5": -5, "NaN": float("nan"), "400 digits": int("9" * 400), "a string": "12", "a float": 3.5,
    "nested": {"a": [1]}, "true": True, "10^9": 10**9,
}.items():  # fmt: skip
    streamed(
        f"usage of {label}",
        "ok",
        lambda wire, value=value: [*answer_events(wire)[: -len(finish(wire))], *finish(wire, usage={"prompt_tokens": 7, "completion_tokens": value})],  # type: ignore[misc]
        knows_usage=False,
    )  # fmt: skip
streamed("usage of 5,000 digits", "ok", lambda wire: [*answer_events(wire)[: -len(finish(wire))], *(json.dumps(event).encode().replace(b"5}", b"9" * 5000 + b"}") if isinstance(event, dict) else event for event in finish(wire))], knows_usage=False)  # fmt: skip
streamed("usage that is a list", "ok", lambda wire: [*answer_events(wire)[: -len(finish(wire))], *finish(wire, usage=[1, 2])], knows_usage=False)  # fmt: skip
streamed("usage that shrinks", "ok", lambda wire: [*answer_events(wire)[: -len(finish(wire))], *finish(wire, usage={"prompt_tokens": 900, "completion_tokens": 800})[:-1], *finish(wire)], knows_usage=True)  # fmt: skip
streamed("usage whose total contradicts it", "ok", lambda wire: [*answer_events(wire)[: -len(finish(wire))], *finish(wire, usage={"prompt_tokens": 7, "completion_tokens": 5, "total_tokens": 2})], knows_usage=True)  # fmt: skip
streamed("10,000 names of usage", "ok", lambda wire: [*answer_events(wire)[: -len(finish(wire))], *finish(wire, usage={f"n{k}": k for k in range(10_000)} | {"prompt_tokens": 7, "completion_tokens": 5})])  # fmt: skip


# Meaning of the events


def tool_call(wire: str) -> Any:
    if wire == "anthropic":
        return {"type": "content_block_start", "index": 1, "content_block": {"type": "tool_use", "id": "t", "name": "rm", "input": {}}}  # fmt: skip
    if wire == "google":
        return {"candidates": [{"content": {"parts": [{"functionCall": {"name": "rm", "args": {}}}]}, "index": 0}]}
    call = {"index": 0, "id": "t", "type": "function", "function": {"name": "rm", "arguments": "{}"}}
    return {"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]}


TOOL_ENDS = {"openai": "tool_calls", "anthropic": "tool_use", "google": "STOP"}
streamed("a tool call that was not offered", "empty", lambda wire: [*start(wire), tool_call(wire), *finish(wire, TOOL_ENDS[wire])])  # fmt: skip
streamed("text and a tool call", "ok", lambda wire: [*answer_events(wire)[: -len(finish(wire))], tool_call(wire), *finish(wire)])  # fmt: skip
streamed("an unknown finish reason", "ok", lambda wire: [*answer_events(wire)[: -len(finish(wire))], *finish(wire, "because")])  # fmt: skip
streamed("a finish reason that is an object", "ok", lambda wire: [*answer_events(wire)[: -len(finish(wire))], *finish(wire, {"a": 1})], text=None)  # type: ignore[arg-type]  # fmt: skip
streamed("only the terminator", "empty", lambda wire: finish(wire)[-1:])
streamed("empty choices", "empty", lambda wire: [{"choices": [], "candidates": [], "type": "ping"}, *finish(wire)])
streamed("choices that are no list", "cut", lambda wire: [{"choices": 7, "candidates": 7, "type": "message_start", "message": 7}, *finish(wire)])  # fmt: skip
streamed("content as parts", "ok", lambda wire: [*start(wire), say(wire, [{"type": "text", "text": ANSWER}]), *finish(wire)], wires=("openai",))  # fmt: skip
streamed("content as parts of nonsense", "cut", lambda wire: [say(wire, [{"type": "text", "text": {"a": 1}}]), *finish(wire)], wires=("openai",))  # fmt: skip
streamed("a second choice mixed in", "ok", lambda wire: [event for text in answer_events(wire)[: -len(finish(wire))] for event in (text, _second(wire))] + finish(wire), wires=("openai", "google"))  # fmt: skip
streamed("a refusal", "refused", lambda wire: _refuse(wire))
streamed("the role of a user", "ok", lambda wire: [{"choices": [{"delta": {"role": "user", "content": ""}}], "type": "ping"}, *answer_events(wire)])  # fmt: skip
streamed("an error after the first words", "cut", lambda wire: [*answer_events(wire)[:4], _error(f"{HOSTILE_WORDS}the engine died")])  # fmt: skip
streamed("an error without words", "server", lambda wire: [_error("")])  # its code counts like a status
streamed("a model name of 100 KB", "ok", lambda wire: [{"model": "m" * 100_000, "modelVersion": "m" * 100_000, "id": "i" * 2**10, "type": "ping"}, *answer_events(wire)])  # fmt: skip
streamed("a length finish on every answer", "length", lambda wire: [*answer_events(wire)[: -len(finish(wire))], *finish(wire, {"openai": "length", "anthropic": "max_tokens", "google": "MAX_TOKENS"}[wire])])  # fmt: skip
streamed("a think block that never closes", "empty", lambda wire: [say(wire, "<think>and on and on"), *finish(wire)], wires=("openai",))  # fmt: skip
body("the keys of the request as an answer", "ok", lambda talk: json.dumps(talk.whole(f"{ANSWER} {talk.key}")).encode(), text=None)  # fmt: skip


def _second(wire: str) -> Any:
    event: Any = say(wire, "other words ")
    (event.get("choices") or event.get("candidates"))[0]["index"] = 1
    return event


def _refuse(wire: str) -> list[Any]:
    if wire == "anthropic":
        return [*start(wire), *finish(wire, "refusal")]
    if wire == "google":
        return [{"promptFeedback": {"blockReason": "OTHER", "blockReasonMessage": HOSTILE_WORDS}}]
    return [{"choices": [{"index": 0, "delta": {"refusal": f"{HOSTILE_WORDS}I will not."}}]}, *finish(wire)]


def _error(message: str) -> Any:
    return {"type": "error", "error": {"message": message, "type": "fake", "code": 500}}


# Event streams


def transformed(name: str, kind: str, change: Callable[[bytes], bytes], **more: Any) -> None:
    """Add a mode that changes the bytes of a complete stream."""
    fixed(name, kind, lambda talk: respond(change(complete(talk.wire))), **more)


transformed("line ends of CR", "ok", lambda raw: raw.replace(b"\n", b"\r"))
transformed("line ends of CRLF", "ok", lambda raw: raw.replace(b"\n", b"\r\n"))
transformed("mixed line ends", "ok", lambda raw: raw.replace(b"\n\n", b"\r\n\r", 3).replace(b"\n\n", b"\r\r", 2))
transformed("no space after the colon", "ok", lambda raw: raw.replace(b"data: ", b"data:"))
transformed("many spaces after the colon", "ok", lambda raw: raw.replace(b"data: ", b"data:   \t "))
transformed("other fields", "ok", lambda raw: b"retry: 99999999999\nid: x\nevent: y\nfoo\n" + raw)
transformed("no blank lines", "ok", lambda raw: raw.replace(b"\n\n", b"\n"))
transformed(
    "a last line without an end", "ok", lambda raw: raw.rstrip(b"\n"), by_wire={"anthropic": "cut", "google": "cut"}
)
transformed("the wrong field name", "cut", lambda raw: raw.replace(b"data:", b"date:"))
streamed("two terminators", "ok", lambda wire: [*answer_events(wire), finish(wire)[-1]])
streamed("text after the terminator", "ok", lambda wire: [*answer_events(wire), say(wire, "late words")], by_wire={}, wires=("openai", "anthropic"))  # fmt: skip
streamed("an error after the terminator", "ok", lambda wire: [*answer_events(wire), _error("late")], wires=("openai", "anthropic"))  # fmt: skip
streamed("the terminator first", "empty", lambda wire: [*finish(wire)[-1:], *answer_events(wire)], wires=("openai", "anthropic"))  # fmt: skip


@mode("one byte per packet", "ok", text=ANSWER + " Größe 😀")
async def _one_byte_per_packet(talk: Talk) -> None:
    raw = json.dumps(ANSWER + " Größe 😀", ensure_ascii=False)
    events = [json.dumps(say(talk.wire, "X")).encode().replace(b'"X"', raw.encode())]
    await talk.send(head())
    for byte in sse(*start(talk.wire), *events, *finish(talk.wire)):
        await talk.send(bytes([byte]))
        await talk.pause(0.0)
