"""Endless responses of the fake provider, one per way to fill the memory of a client."""

from __future__ import annotations

import json
import zlib

from tests.fakes.replies import Reply

STREAM = {"Content-Type": "text/event-stream"}
WORDS = "A sentence that never repeats has a number in it: {n}. "


def endless_json() -> Reply:
    return Reply(stream=False, raw=b'{"choices": [', flood=b'{"index": 0}, ' * 4000)


def endless_events(wire: str = "openai") -> Reply:
    """Return words that differ from each other, so that they are not a loop."""
    return Reply(flood=b"".join(_event(wire, WORDS.format(n=n)) for n in range(2000)))


def endless_comments() -> Reply:
    return Reply(flood=b": still here\n\n" * 2000)


def endless_line() -> Reply:
    return Reply(raw=b'data: {"choices": [{"delta": {"content": "', flood=b"word " * 12_000)


def gzip_bomb() -> Reply:
    """Return a gzip stream without an end: each block of about a kilobyte is a megabyte of zeros."""
    deflater, zeros = zlib.compressobj(9, zlib.DEFLATED, zlib.MAX_WBITS | 16), b"0" * 2**20
    head, block = (deflater.compress(zeros) + deflater.flush(zlib.Z_FULL_FLUSH) for _ in range(2))
    return Reply(stream=False, headers={"Content-Encoding": "gzip"}, raw=head, flood=block)


def _event(wire: str, text: str) -> bytes:
    events = {
        "openai": {"choices": [{"delta": {"content": text}}]},
        "openai-responses": {"type": "response.output_text.delta", "output_index": 0, "delta": text},
        "anthropic": {"type": "content_block_delta", "delta": {"type": "text_delta", "text": text}},
        "google": {"candidates": [{"content": {"parts": [{"text": text}]}}]},
    }
    return f"data: {json.dumps(events[wire])}\n\n".encode()


def compressed(reply_body: bytes, encoding: str = "gzip") -> Reply:
    """Return an ordinary body that is compressed although compression was not requested."""
    deflater = zlib.compressobj(9, zlib.DEFLATED, zlib.MAX_WBITS | (16 if encoding == "gzip" else 0))
    packed = deflater.compress(reply_body) + deflater.flush()
    return Reply(headers={"Content-Encoding": encoding}, raw=packed)
