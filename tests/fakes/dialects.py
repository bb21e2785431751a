"""Wire dialects of a reply: stream, single body, errors and token counts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import ClassVar, Protocol

from tests.fakes.replies import Json, RawUsage, Reply, Seen


class Dialect(Protocol):
    breath: bytes  # a keep-alive without content

    def stream(self, seen: Seen, reply: Reply, said: str) -> Iterator[bytes]: ...
    def whole(self, seen: Seen, reply: Reply, said: str) -> Json: ...
    def error(self, status: int, message: str) -> Json: ...
    def models(self, names: tuple[str, ...]) -> Json: ...


def data(event: Json, end: str = "\n\n") -> bytes:
    return f"data: {json.dumps(event)}{end}".encode()


def cut_up(text: str, size: int) -> list[str]:
    return [text[start : start + size] for start in range(0, len(text), size)]


def often(reply: Reply) -> range:
    return range(2 if reply.twice else 1)


def usage_of(seen: Seen) -> Json:
    """Return the usage in the names of chat completions."""
    tokens = seen.tokens
    told = {"prompt_tokens": tokens["in"], "completion_tokens": tokens["out"], "total_tokens": tokens["in"] + tokens["out"]}  # fmt: skip
    details = {"cached_tokens": tokens.get("cached", 0), "cache_write_tokens": tokens.get("written", 0)}
    return told | ({"prompt_tokens_details": details} if any(details.values()) else {})


def reports(seen: Seen, reply: Reply) -> list[Json]:
    return [usage_of(seen)] if reply.usage is None else reply.usage


class OpenAI:
    breath = b": still here\n\n"

    def stream(self, seen: Seen, reply: Reply, said: str) -> Iterator[bytes]:
        field = "refusal" if reply.refuse else "content"
        for _ in often(reply):
            yield self._event(seen, delta={"role": "assistant", "content": ""})
        for thought in cut_up(reply.thinks, reply.piece):
            yield self._event(seen, delta={"reasoning_content": thought})
        for piece in cut_up(said, reply.piece):
            yield self._event(seen, delta={field: piece})
            if reply.blanks:
                yield from (self._event(seen, delta={}), self._event(seen), b"data:\n\n", b"\n")
            if reply.error_after:
                yield data(self.error(500, reply.error_after))
                return
        for _ in often(reply):
            yield self._event(seen, delta={}, finish=reply.finish)
            for usage in reports(seen, reply):
                yield self._event(seen, usage=usage)
        if reply.done:
            yield from (b"data: [DONE]\n\n" for _ in often(reply))

    def whole(self, seen: Seen, reply: Reply, said: str) -> Json:
        message = {"role": "assistant", "content": None if reply.refuse else said, "refusal": said if reply.refuse else None}  # fmt: skip
        choice = {"index": 0, "message": message, "finish_reason": reply.finish}
        return {"id": f"fake-{seen.n}", "object": "chat.completion", "created": 1, "model": seen.model, "choices": [choice],
                "usage": usage_of(seen)}  # fmt: skip

    def error(self, status: int, message: str) -> Json:
        return {"error": {"message": message, "type": "fake_error", "param": None, "code": None}}

    def models(self, names: tuple[str, ...]) -> Json:
        return {"object": "list", "data": [{"id": name, "object": "model"} for name in names]}

    def _event(self, seen: Seen, *, delta: Json | None = None, finish: str | None = None, usage: Json | None = None) -> bytes:  # fmt: skip
        choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish}]
        chunk: Json = {"id": f"fake-{seen.n}", "object": "chat.completion.chunk", "created": 1, "model": seen.model, "choices": choices}  # fmt: skip
        return data(chunk if usage is None else chunk | {"usage": usage})


class Responses:
    """OpenAI's Responses API."""

    breath = b': still here\n\nevent: keepalive\ndata: {"type": "keepalive", "sequence_number": 3}\n\n'
    reasons: ClassVar = {"length": "max_output_tokens", "content_filter": "content_filter"}

    def stream(self, seen: Seen, reply: Reply, said: str) -> Iterator[bytes]:
        whole, told = self.whole(seen, reply, said), [self.counted(report) for report in reports(seen, reply)]
        opening = whole | {"output": [], "status": "in_progress", "incomplete_details": None, "usage": None}
        for _ in often(reply):
            yield self._event("response.created", response=opening)
            yield self._event("response.in_progress", response=opening)
        index = 0
        if reply.thinks:
            yield from self._reasoning(reply)
            index += 1
        message = {"id": "msg_fake", "type": "message", "role": "assistant", "status": "in_progress", "content": []}
        yield self._event("response.output_item.added", output_index=index, item=message)
        part = (
            {"type": "refusal", "refusal": ""}
            if reply.refuse
            else {"type": "output_text", "text": "", "annotations": []}
        )
        yield self._event(
            "response.content_part.added", item_id="msg_fake", output_index=index, content_index=0, part=part
        )
        kind = "response.refusal.delta" if reply.refuse else "response.output_text.delta"
        at = {"item_id": "msg_fake", "output_index": index, "content_index": 0}
        for piece in cut_up(said, reply.piece):
            yield self._event(kind, delta=piece, **at, **({} if reply.refuse else {"logprobs": []}))
            if reply.blanks:
                yield from (self._event("response.output_text.delta", delta="", logprobs=[], **at), b"data:\n\n", b"\n")
            if reply.error_after:
                yield self._event("error", code="server_error", message=reply.error_after, param=None)
                return
        if not reply.done:
            return
        for _ in often(reply):
            for usage in told[:-1]:
                yield self._event("response.in_progress", response=opening | {"usage": usage})
            end = whole | {"usage": told[-1] if told else None}
            yield self._event(f"response.{whole['status']}", response=end)

    def whole(self, seen: Seen, reply: Reply, said: str) -> Json:
        part = {"type": "refusal", "refusal": said} if reply.refuse else {"type": "output_text", "text": said, "annotations": []}  # fmt: skip
        thoughts = [{"id": "rs_fake", "type": "reasoning", "summary": [{"type": "summary_text", "text": reply.thinks}]}]
        message = {"id": "msg_fake", "type": "message", "role": "assistant", "status": "completed", "content": [part]}
        reason = self.reasons.get(reply.finish or "")
        return {
            "id": f"resp_fake_{seen.n}", "object": "response", "created_at": 1, "model": seen.model, "error": None,
            "status": "incomplete" if reason else "completed", "incomplete_details": {"reason": reason} if reason else None,
            "output": [*(thoughts if reply.thinks else []), message], "usage": self.counted(usage_of(seen)),
            "parallel_tool_calls": True, "tool_choice": "auto", "tools": [], "store": False,
        }  # fmt: skip

    def error(self, status: int, message: str) -> Json:
        return {"error": {"message": message, "type": "fake_error", "param": None, "code": None}}

    def models(self, names: tuple[str, ...]) -> Json:
        return {"object": "list", "data": [{"id": name, "object": "model"} for name in names]}

    def counted(self, report: Json) -> Json:
        """Convert the usage to the names of the Responses API."""
        if isinstance(report, RawUsage):
            return report
        names = {"prompt_tokens": "input_tokens", "completion_tokens": "output_tokens", "total_tokens": "total_tokens"}
        told: Json = {ours: report[theirs] for theirs, ours in names.items() if theirs in report}
        details = report.get("prompt_tokens_details") or {}
        return told | ({"input_tokens_details": details, "output_tokens_details": {"reasoning_tokens": 0}} if told else {})  # fmt: skip

    def _reasoning(self, reply: Reply) -> Iterator[bytes]:
        item = {"id": "rs_fake", "type": "reasoning", "summary": []}
        yield self._event("response.output_item.added", output_index=0, item=item)
        for thought in cut_up(reply.thinks, reply.piece):
            yield self._event("response.reasoning_summary_text.delta", item_id="rs_fake", output_index=0, summary_index=0, delta=thought)  # fmt: skip
        yield self._event("response.output_item.done", output_index=0, item=item)

    def _event(self, kind: str, **more: object) -> bytes:
        return f"event: {kind}\n".encode() + data({"type": kind, "sequence_number": 1, **more})


class Anthropic:
    breath = b'event: ping\ndata: {"type": "ping"}\n\n: still here\n\n'
    finishes: ClassVar = {"stop": "end_turn", "length": "max_tokens", "content_filter": "refusal"}
    kinds: ClassVar = {400: "invalid_request_error", 401: "authentication_error", 402: "billing_error", 403: "permission_error",
             404: "not_found_error", 413: "request_too_large", 429: "rate_limit_error", 504: "timeout_error",
             529: "overloaded_error"}  # fmt: skip

    def stream(self, seen: Seen, reply: Reply, said: str) -> Iterator[bytes]:
        told = [self.counted(report) for report in reports(seen, reply)]
        first = {**told[0], "output_tokens": 1} if told and isinstance(told[0].get("output_tokens"), int) else {}
        message = {**self.whole(seen, reply, said), "content": [], "stop_reason": None, "stop_details": None, "usage": first}  # fmt: skip
        for _ in often(reply):
            yield self._event("message_start", message=message)
        yield self.breath
        index = 0
        if reply.thinks:
            yield from self._block(index, "thinking", reply.thinks, reply)
            index += 1
        if not reply.refuse:
            yield from self._block(index, "text", said, reply)
            if reply.error_after and said:
                yield self._event("error", error=self.error(500, reply.error_after)["error"])
                return
        for _ in often(reply):
            for usage in told or [{}]:
                yield self._event("message_delta", delta=self._end(reply, said), usage=usage)
        if reply.done:
            yield from (self._event("message_stop") for _ in often(reply))

    def whole(self, seen: Seen, reply: Reply, said: str) -> Json:
        content = [] if reply.refuse else [{"type": "text", "text": said}]
        if reply.thinks:
            content.insert(0, {"type": "thinking", "thinking": reply.thinks, "signature": "c2ln"})
        return {"id": f"msg_fake_{seen.n}", "type": "message", "role": "assistant", "model": seen.model, "content": content,
                **self._end(reply, said), "usage": self.counted(usage_of(seen))}  # fmt: skip

    def error(self, status: int, message: str) -> Json:
        return {"type": "error", "error": {"type": self.kinds.get(status, "api_error"), "message": message}, "request_id": "req_fake"}  # fmt: skip

    def models(self, names: tuple[str, ...]) -> Json:
        return {"data": [{"id": name, "type": "model"} for name in names], "has_more": False}

    def counted(self, report: Json) -> Json:
        """Convert the usage to Anthropic's names, where cached tokens are separate from the input."""
        if isinstance(report, RawUsage):
            return report
        details = report.get("prompt_tokens_details") or {}
        cached, written = details.get("cached_tokens") or 0, details.get("cache_write_tokens") or 0
        told = {"cache_read_input_tokens": cached, "cache_creation_input_tokens": written} if report else {}
        if "prompt_tokens" in report:
            read = report["prompt_tokens"]
            told["input_tokens"] = read - cached - written if type(read) is int else read
        return told | ({"output_tokens": report["completion_tokens"]} if "completion_tokens" in report else {})

    def _end(self, reply: Reply, said: str) -> Json:
        finish = "refusal" if reply.refuse else self.finishes.get(reply.finish or "", reply.finish)
        why = {"type": "refusal", "category": None, "explanation": said} if reply.refuse else None
        return {"stop_reason": finish, "stop_sequence": None, "stop_details": why}

    def _block(self, index: int, kind: str, text: str, reply: Reply) -> Iterator[bytes]:
        opening = {"type": kind, kind: ""} | ({"signature": ""} if kind == "thinking" else {})
        yield self._event("content_block_start", index=index, content_block=opening)
        for piece in cut_up(text, reply.piece):
            yield self._event("content_block_delta", index=index, delta={"type": f"{kind}_delta", kind: piece})
            if reply.blanks:
                empty = {"type": f"{kind}_delta", kind: ""}
                yield from (self._event("content_block_delta", index=index, delta=empty), b"data:\n\n", self.breath)
            if reply.error_after and kind == "text":
                return
        if kind == "thinking":
            signed = {"type": "signature_delta", "signature": "c2ln"}
            yield self._event("content_block_delta", index=index, delta=signed)
        yield self._event("content_block_stop", index=index)

    def _event(self, kind: str, **more: object) -> bytes:
        return f"event: {kind}\n".encode() + data({"type": kind, **more})


class Google:
    breath = b": still here\r\n\r\n"
    finishes: ClassVar = {"stop": "STOP", "length": "MAX_TOKENS", "content_filter": "SAFETY"}
    kinds: ClassVar = {400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND",
             429: "RESOURCE_EXHAUSTED", 500: "INTERNAL", 503: "UNAVAILABLE", 504: "DEADLINE_EXCEEDED"}  # fmt: skip

    def stream(self, seen: Seen, reply: Reply, said: str) -> Iterator[bytes]:
        told: list[Json | None] = [self.counted(report) for report in reports(seen, reply)]
        *early, last = told or [None]
        for thought in cut_up(reply.thinks, reply.piece):
            yield self._event(seen, part={"text": thought, "thought": True})
        for piece in () if reply.refuse else cut_up(said, reply.piece):
            yield self._event(seen, part={"text": piece})
            if reply.blanks:
                yield from (self._event(seen, part={"text": ""}), self._event(seen), b"data:\r\n\r\n", b"\r\n")
            if reply.error_after:
                yield data(self.error(500, reply.error_after), "\r\n\r\n")
                return
        yield from (self._event(seen, usage=usage) for usage in early)
        for _ in often(reply):
            yield data(self._end(seen, reply, said, [], last), "\r\n\r\n")

    def whole(self, seen: Seen, reply: Reply, said: str) -> Json:
        thoughts = [{"text": reply.thinks, "thought": True}] if reply.thinks else []
        return self._end(seen, reply, said, [*thoughts, {"text": said}], self.counted(usage_of(seen)))

    def error(self, status: int, message: str) -> Json:
        return {"error": {"code": status, "message": message, "status": self.kinds.get(status, "UNKNOWN")}}

    def models(self, names: tuple[str, ...]) -> Json:
        return {"models": [{"name": f"models/{name}"} for name in names]}

    def counted(self, report: Json) -> Json:
        if isinstance(report, RawUsage):
            return report
        names = {"prompt_tokens": "promptTokenCount", "completion_tokens": "candidatesTokenCount", "total_tokens": "totalTokenCount"}  # fmt: skip
        cached = (report.get("prompt_tokens_details") or {}).get("cached_tokens")
        told = {ours: report[theirs] for theirs, ours in names.items() if theirs in report}
        return told | ({"cachedContentTokenCount": cached} if cached else {})

    def _end(self, seen: Seen, reply: Reply, said: str, parts: list[Json], usage: Json | None) -> Json:
        told = self._about(seen) | ({"usageMetadata": usage} if usage is not None else {})
        if reply.refuse:
            return told | {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT", "blockReasonMessage": said}}
        finish = self.finishes.get(reply.finish or "", reply.finish)
        candidate = {"content": {"parts": parts, "role": "model"}, "index": 0}
        return told | {"candidates": [candidate | ({"finishReason": finish} if finish else {})]}

    def _event(self, seen: Seen, *, part: Json | None = None, usage: Json | None = None) -> bytes:
        told = self._about(seen)
        if part is not None:
            told["candidates"] = [{"content": {"parts": [part], "role": "model"}, "index": 0}]
        return data(told | ({"usageMetadata": usage} if usage is not None else {}), "\r\n\r\n")

    def _about(self, seen: Seen) -> Json:
        return {"modelVersion": seen.model, "responseId": f"fake-{seen.n}"}


DIALECTS: dict[str, Dialect] = {
    "openai": OpenAI(),
    "openai-responses": Responses(),
    "anthropic": Anthropic(),
    "google": Google(),
}


def kept_prefix(body: Json) -> str:
    """Return the cacheable prefix of a messages request: everything up to the last cache marker."""
    said, kept = "", ""
    turns = [turn["content"] for turn in body.get("messages", [])]
    for block in (
        block for blocks in (body.get("system") or [], *turns) for block in blocks if isinstance(block, dict)
    ):
        said += block.get("text", "")
        kept = said if "cache_control" in block else kept
    return kept
