"""Table of what an endpoint may do to a bill: false usage, errors, cuts, floods, odd answers, and connections that
fail.
"""

from __future__ import annotations

import json
import random
import socket
import struct
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from tests.fakes import floods
from tests.fakes.dialects import DIALECTS
from tests.fakes.replies import Json, RawUsage, Reply, Seen, said_by

MILLION, HUGE = 10**6, 10**8
VOCABULARY = [first + last for first in ("re", "con", "pro", "sub", "de") for last in ("view", "mote", "port", "form")]
MakeReply = Callable[[Seen], Reply]
Address = str  # of an endpoint, without the path


@dataclass(frozen=True)
class Behaviour:
    """One behaviour: replies of the fake provider, or the address of a server that talks on the socket itself."""

    group: str
    reply: MakeReply | None = None
    serve: Callable[[], AbstractContextManager[Address]] | None = None
    answers: bool = False  # the reply is a complete answer, which a seat may use
    is_bounded: bool = False  # its usage is not plausible, so the cost is an estimate
    costs: bool = (
        True  # it may be billed, so it is spent or in doubt. False: nothing is sent, or the status is never billed
    )
    exceeds_limit: bool = False  # its answers are longer than asked, so that the next prompts may cost too much
    waits: bool = False  # it ends only at a timeout


BEHAVIOURS: dict[str, Behaviour] = {}


def add(name: str, group: str, reply: MakeReply | Reply | None = None, **more: Any) -> None:
    assert name not in BEHAVIOURS, name
    make = (lambda seen: reply) if isinstance(reply, Reply) else reply
    BEHAVIOURS[name] = Behaviour(group, make, **more)


# False usage


def name_counts(wire: str, **counts: Any) -> RawUsage:
    """Return usage in the names of a wire: read, out, cached, written, total, thoughts."""
    if wire == "anthropic":
        names = {"read": "input_tokens", "out": "output_tokens", "cached": "cache_read_input_tokens", "written": "cache_creation_input_tokens"}  # fmt: skip
    elif wire == "google":
        names = {"read": "promptTokenCount", "out": "candidatesTokenCount", "cached": "cachedContentTokenCount", "total": "totalTokenCount", "thoughts": "thoughtsTokenCount"}  # fmt: skip
    elif wire == "openai-responses":
        names = {"read": "input_tokens", "out": "output_tokens", "total": "total_tokens"}
    else:
        names = {"read": "prompt_tokens", "out": "completion_tokens", "total": "total_tokens"}
    usage = RawUsage({names[name]: value for name, value in counts.items() if name in names})
    if wire.startswith("openai"):
        place = "input_tokens_details" if wire == "openai-responses" else "prompt_tokens_details"
        details = {"cached": "cached_tokens", "written": "cache_write_tokens"}
        if told := {details[name]: value for name, value in counts.items() if name in details}:
            usage[place] = told
        if "thoughts" in counts:
            usage[place.replace("input", "output").replace("prompt", "completion")] = {"reasoning_tokens": counts["thoughts"]}  # fmt: skip
    return usage


def true_counts(seen: Seen) -> Json:
    return {"read": len(seen.prompt) // 4 + 1, "out": 30}


def lie(name: str, *reports: Json | Callable[[Seen], Json], is_bounded: bool = True, **more: Any) -> None:
    """Add a complete answer with other counts than the true ones. None leaves a count out."""

    def reply(seen: Seen) -> Reply:
        told = [true_counts(seen) | (report(seen) if callable(report) else report) for report in reports]
        usage = [{key: value for key, value in one.items() if value is not None} for one in told]
        return Reply(usage=[name_counts(seen.wire, **one) for one in usage])

    add(name, "false usage", reply, answers=True, is_bounded=is_bounded, **more)


lie("a million output tokens", {"out": MILLION})
lie("a million input tokens", {"read": MILLION})
lie("10^12 input tokens", {"read": 10**12})
lie("a count of 4,000 digits", {"out": 10**4000})
lie("negative counts", {"read": -100_000, "out": -500})
lie("counts as strings", {"read": "17", "out": "lots"})
lie("counts as fractions", {"read": 12.7, "out": 1.5e8})
lie("counts as booleans", {"read": True, "out": True})
lie("NaN and infinity", {"read": float("nan"), "out": float("inf")})
lie("counts as objects", {"read": {"value": MILLION}, "out": [MILLION]})
lie("counts of null", {"read": json.loads("null"), "out": 0})
lie("counts of zero", {"read": 0, "out": 0})
lie("only an output count", {"read": None, "out": MILLION})
lie("only an input count", {"read": MILLION, "out": None})
lie("more cached tokens than the prompt has", {"read": 10, "cached": MILLION})
lie("more written tokens than the prompt has", {"read": 10, "written": MILLION})
lie("usage that grows to a million", *({"out": tokens} for tokens in (10, 1000, MILLION)))
lie("usage that shrinks from a million", {"out": MILLION}, {"out": 10})
lie("two tokens for everything", {"read": 1, "out": 1}, is_bounded=False)
add("no usage", "false usage", Reply(usage=[]), answers=True, is_bounded=True)
add("usage sent twice", "false usage", lambda seen: Reply(usage=[name_counts(seen.wire, **true_counts(seen) | {"out": MILLION})], twice=True), answers=True, is_bounded=True)  # fmt: skip
add("usage in the names of another wire", "false usage", lambda seen: Reply(usage=[RawUsage(name_counts("google" if seen.wire == "anthropic" else "anthropic", read=7, out=MILLION))]), answers=True)  # fmt: skip

lie("a total of 10^8 beside small counts", {"total": HUGE})
lie("a million hidden thoughts", {"thoughts": MILLION}, is_bounded=False)
lie("the highest valid counts", {"read": 10**9 - 1, "out": 10**9 - 1, "cached": 10**9 - 1})
lie("10^8 cached tokens and no output count", {"cached": HUGE, "out": None})
lie("the prompt as cached and as written", lambda seen: {"cached": len(seen.prompt), "written": len(seen.prompt)})  # fmt: skip
lie("one token for each byte of the request", lambda seen: {"read": len(seen.raw)}, is_bounded=False)  # fmt: skip
add("a hundred other counts before the real ones", "false usage", lambda seen: Reply(usage=[RawUsage({f"n{k}": k for k in range(100)} | name_counts(seen.wire, read=7, out=MILLION))]), answers=True)  # fmt: skip


def write_stream(seen: Seen, reply: Reply) -> bytes:
    return b"".join(DIALECTS[seen.wire].stream(seen, reply, said_by(lambda *_: None, seen, reply)))


def write_usage_event(wire: str, **counts: Any) -> bytes:
    usage: Json = name_counts(wire, **counts)
    events: dict[str, Json] = {
        "openai": {"choices": [], "usage": usage},
        "openai-responses": {"type": "response.in_progress", "response": {"id": "r", "model": "m", "usage": usage}},
        "anthropic": {"type": "message_delta", "delta": {}, "usage": usage},
        "google": {"usageMetadata": usage},
    }
    return f"data: {json.dumps(events[wire])}\n\n".encode()


add("usage of a million after the terminator", "false usage", lambda seen: Reply(raw=write_stream(seen, Reply()) + write_usage_event(seen.wire, read=7, out=MILLION)), answers=True)  # fmt: skip
add("usage of a million before the answer", "false usage", lambda seen: Reply(raw=write_usage_event(seen.wire, read=7, out=MILLION) + write_stream(seen, Reply())), answers=True, is_bounded=True)  # fmt: skip
add("usage in the wrong place", "false usage", lambda seen: Reply(raw=b'data: {"metadata": {"usage": {"completion_tokens": 1000000, "output_tokens": 1000000}}}\n\n' + write_stream(seen, Reply())), answers=True)  # fmt: skip


# Error statuses and errors in a stream


def fail(name: str, status: int, headers: dict[str, str] | None = None, **more: Any) -> None:
    add(name, "errors", Reply(status=status, headers=headers or {}, billed=True), **more)


def error_with_usage(seen: Seen, message: str = "no", code: str | None = None) -> Json:
    error = DIALECTS[seen.wire].error(500, message)
    error["error"] |= {"code": code} if code else {}
    usage = name_counts(seen.wire, read=7, out=MILLION)
    return error | {"usage": usage, "usageMetadata": usage}


fail("500 each time", 500)
fail("502 each time", 502)
fail("503 each time", 503, costs=False)
fail("429 without a time", 429, costs=False)
fail("429 with a time of 30 years", 429, {"Retry-After": "999999999"}, costs=False)
fail("429 with a time of 0", 429, {"Retry-After": "0"}, costs=False)
fail("401", 401, costs=False)
fail("402", 402, costs=False)
fail("404", 404, costs=False)
fail("a redirect to itself", 307, {"Location": "/v1/chat/completions"}, costs=False)
add("500 with usage of a million", "errors", lambda seen: Reply(status=500, error=error_with_usage(seen), billed=True))
add("200 with an error as its body", "errors", lambda seen: Reply(headers={"Content-Type": "application/json"}, raw=json.dumps(error_with_usage(seen)).encode()))  # fmt: skip
add("an error event after output", "errors", Reply(error_after="the engine died", piece=40))
fail("504 each time", 504)
fail("529 each time", 529, costs=False)
fail("429 with a time that is no number", 429, {"Retry-After": "nan"}, costs=False)
fail("499, a status without a meaning", 499, costs=False)
fail("999, a status that does not exist", 999)


def write_error_event(seen: Seen, code: str, before: Reply) -> Reply:
    """Return a part of an answer and then an error event with a code."""
    part = b"\n\n".join(write_stream(seen, before).replace(b"\r\n", b"\n").split(b"\n\n")[:5]) + b"\n\n"
    error: Json = {"message": "no", "code": code, "type": code, "status": code}
    event = error | {"type": "error"} if seen.wire == "openai-responses" else {"type": "error", "error": error}
    return Reply(raw=part + f"data: {json.dumps(event)}\n\n".encode())


add("a rejected answer after output", "errors", lambda seen: write_error_event(seen, "json_validate_failed", Reply(piece=40)))  # fmt: skip
add("a rate limit after thinking", "errors", lambda seen: write_error_event(seen, "rate_limit_exceeded", Reply(thinks="hm " * 400, piece=40)))  # fmt: skip
add("a content filter as status 400 with usage", "errors", lambda seen: Reply(status=400, error=error_with_usage(seen, "filtered", "content_filter"), billed=True))  # fmt: skip
add("a prompt that is too long each time", "errors", lambda seen: Reply(status=400, error=DIALECTS[seen.wire].error(400, "prompt is too long: 16384 tokens > 8192 maximum")), costs=False)  # fmt: skip


def reject_limit(seen: Seen) -> Reply:
    """Reject requests with optional parameters, and write far more than its limit to the others."""
    if "temperature" in seen.raw.decode() or seen.nth == 1:
        return Reply(status=400, error=DIALECTS[seen.wire].error(400, "max_tokens is not supported with this model"))
    return write_long(seen)


# Cuts

add("cut before the first byte of the body", "cuts", Reply(cut=0))
add("cut after 40 bytes", "cuts", Reply(cut=40))
add("cut after 400 bytes", "cuts", Reply(cut=400))
add("reset before the first byte of the body", "cuts", Reply(reset=0))
add("reset after 400 bytes", "cuts", Reply(reset=400))
add("no terminator", "cuts", Reply(done=False, finish=None))
add("silence", "cuts", Reply(hang=True), waits=True)
add("a stall after 700 bytes", "cuts", Reply(stall=700, piece=4), waits=True)
add("keep-alives only", "cuts", Reply(comments=True), waits=True)
add("one piece in three seconds", "cuts", Reply(drip=3.0), waits=True)
add("usage of a million, then a cut", "cuts", lambda seen: Reply(raw=write_usage_event(seen.wire, read=7, out=MILLION), done=False))  # fmt: skip


# Floods


def limit_of(seen: Seen) -> int:
    """Return the output limit that the request states."""
    found = json.dumps(seen.body)
    for name in ("max_completion_tokens", "max_output_tokens", "maxOutputTokens", "max_tokens"):
        if f'"{name}": ' in found:
            return int(found.partition(f'"{name}": ')[2].partition(",")[0].rstrip("}"))
    raise AssertionError("a request under a cap states its output limit")


def write_words(count: int, seed: int) -> str:
    chosen = random.Random(seed).choices(VOCABULARY, k=count)
    return ". ".join(" ".join(chosen[at : at + 12]).capitalize() for at in range(0, count, 12)) + "."


def write_long(seen: Seen, times: int = 100, finish: str = "stop") -> Reply:
    """Return many times the output limit in tokens, with true usage."""
    return Reply(text=write_words(times * limit_of(seen) * 4 // 7, seen.n), piece=20_000, finish=finish)


add(
    "an answer of three times its limit, with true usage",
    "floods",
    lambda seen: write_long(seen, 3),
    answers=True,
    exceeds_limit=True,
)
add("an answer of a hundred times its limit, with true usage", "floods", write_long)
add("a hundred times its limit in thoughts, with true usage", "floods", lambda seen: Reply(thinks="hm " * 130 * limit_of(seen), piece=20_000), answers=True)  # fmt: skip
add("words without end", "floods", lambda seen: floods.endless_events(seen.wire))
add("comments without end", "floods", lambda seen: floods.endless_comments())
add("a line without end", "floods", lambda seen: floods.endless_line())
add("JSON without end", "floods", lambda seen: floods.endless_json())
add("a compressed body without end", "floods", lambda seen: floods.gzip_bomb())
add("a header of 1 MB", "floods", Reply(headers={"X-Long": "a" * MILLION}))
add("one sentence again and again", "floods", Reply(loop=3000, piece=200))
add("an output limit that is not supported, then a hundred times the limit", "floods", reject_limit)  # fmt: skip


# Odd answers


def compress(seen: Seen) -> Reply:
    deflater = zlib.compressobj(9, zlib.DEFLATED, zlib.MAX_WBITS | 16)
    lying = write_stream(seen, Reply(usage=[name_counts(seen.wire, read=7, out=MILLION)]))
    return Reply(headers={"Content-Encoding": "gzip"}, raw=deflater.compress(lying) + deflater.flush())


add("an empty answer", "odd answers", Reply(empty=True))
add("an answer that is cut at its length", "odd answers", Reply(finish="length"))
add("all thinking, cut at its length", "odd answers", Reply(empty=True, thinks="hm hm " * 3000, finish="length", piece=6000))  # fmt: skip
add("a refusal", "odd answers", Reply("I will not.", refuse=True))
add("a content filter", "odd answers", Reply(finish="content_filter"))
add(
    "JSON of another schema", "odd answers", Reply(wrong_schema=True), answers=True
)  # a free text, if no schema was asked for
add("terminators twice", "odd answers", Reply(twice=True), answers=True)
add("a refusal with usage of a million", "odd answers", lambda seen: Reply("I will not.", refuse=True, usage=[name_counts(seen.wire, read=7, out=MILLION)]), is_bounded=True)  # fmt: skip
add("a cut at its length with usage of a million", "odd answers", lambda seen: Reply(finish="length", usage=[name_counts(seen.wire, read=7, out=MILLION)]), is_bounded=True)  # fmt: skip
add("an empty answer with usage of a million", "odd answers", lambda seen: Reply(empty=True, usage=[name_counts(seen.wire, read=7, out=MILLION)]), is_bounded=True)  # fmt: skip
add("a compressed answer with usage of a million", "odd answers", compress, answers=True, is_bounded=True)  # fmt: skip
add("one body instead of a stream", "odd answers", Reply(stream=False), answers=True)


# Connections


@contextmanager
def listen(
    talk: Callable[[socket.socket, bytes], None], *, scheme: str = "http", reads: bool = True
) -> Iterator[Address]:
    """Serve `talk` on each connection, with the request that was read, and close the connection afterwards."""
    listening = socket.create_server(("127.0.0.1", 0))
    opened: list[socket.socket] = []

    def serve(connection: socket.socket) -> None:
        with suppress(OSError), connection:
            while request := read_request(connection) if reads else b"-":
                talk(connection, request)
                if reads is not KEEP_OPEN:
                    return

    def accept() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listening.accept()
                opened.append(connection)
                threading.Thread(target=serve, args=(connection,), daemon=True).start()

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    try:
        yield f"{scheme}://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        for connection in opened:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        thread.join(10)


KEEP_OPEN: Any = "keep open"  # `reads`: further requests are read from the connection


def read_request(connection: socket.socket) -> bytes:
    received = b""
    while b"\r\n\r\n" not in received:
        received += (part := connection.recv(65536))
        if not part:
            return b""
    head, _, body = received.partition(b"\r\n\r\n")
    length = next(int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
    while len(body) < length:
        body += (part := connection.recv(65536))
        if not part:
            return b""
    return head + b"\r\n\r\n" + body


def close(connection: socket.socket, request: bytes) -> None:
    """Close the connection without an answer."""


def reset(connection: socket.socket, request: bytes) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def wait_for_close(connection: socket.socket, request: bytes = b"") -> None:
    with suppress(OSError):
        while connection.recv(65536):
            pass


def refuse_plainly(connection: socket.socket, request: bytes) -> None:
    """Answer a TLS handshake in plain HTTP."""
    connection.recv(65536)
    connection.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")


def send_interim_forever(connection: socket.socket, request: bytes) -> None:
    while True:
        connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")


def send_headers_forever(connection: socket.socket, request: bytes) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n")
    n = 0
    while n := n + 1:
        connection.sendall(b"X-%d: 1\r\n" % n)


def drop_second_request() -> Callable[[socket.socket, bytes], None]:
    """Answer the first request of a connection with 429, and close it when the next one was read."""
    seen: set[socket.socket] = set()

    def talk(connection: socket.socket, request: bytes) -> None:
        if connection in seen:
            connection.close()
            raise OSError("closed")
        seen.add(connection)
        connection.sendall(b"HTTP/1.1 429 Slow\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}")

    return talk


@contextmanager
def at(address: Address) -> Iterator[Address]:
    yield address


@contextmanager
def refused_port() -> Iterator[Address]:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    yield f"http://127.0.0.1:{port}"


def send_alert(connection: socket.socket, request: bytes) -> None:
    """Refuse a TLS handshake with an alert: no certificate fits."""
    connection.recv(65536)
    connection.sendall(b"\x15\x03\x03\x00\x02\x02\x28")


def connect_to(name: str, serve: Callable[[], AbstractContextManager[Address]], **more: Any) -> None:
    add(name, "connections", None, serve=serve, **more)


connect_to("a port that refuses", refused_port, costs=False)
connect_to("a host that does not resolve", lambda: at("https://council.invalid"), costs=False)
connect_to("TLS to a plain port", lambda: listen(refuse_plainly, scheme="https", reads=False), costs=False)
connect_to("a TLS handshake that never ends", lambda: listen(wait_for_close, scheme="https", reads=False), costs=False)
connect_to("closed when the request was read", lambda: listen(close))
connect_to("reset when the request was read", lambda: listen(reset))
connect_to("a host name with a label of 70 letters", lambda: at(f"https://{'a' * 70}.example"), costs=False)  # fmt: skip
connect_to("a TLS handshake that is closed", lambda: listen(close, scheme="https", reads=False), costs=False)  # fmt: skip
connect_to("a TLS handshake that ends in an alert", lambda: listen(send_alert, scheme="https", reads=False), costs=False)  # fmt: skip
connect_to("interim responses without end", lambda: listen(send_interim_forever), waits=True)
connect_to("headers without end", lambda: listen(send_headers_forever))
connect_to("closed when the second request of a connection was read", lambda: listen(drop_second_request(), reads=KEEP_OPEN))  # fmt: skip
