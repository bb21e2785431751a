"""Check a member's answer: its finish reason, loops, placeholders and the schema of its reply.

A text loops if a long ending consists of one piece, repeated exactly. Tables, lists, code and data also repeat, but not
the same characters for pages.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from council.answer_text import find_refusal, is_placeholder
from council.errors import Fault
from council.json_text import iter_strings
from council.notes_filter import ends_in_notes, without_notes
from council.text_cleanup import single_line
from council.types import Answer, Step

MIN_LOOP_CHARS = 4000  # minimum length of the repeated ending, in characters
MIN_REPEATS = 6  # minimum repetitions of the piece
MAX_PIECE_CHARS = 2000  # maximum length of the piece, in characters
TAIL_CHARS = MIN_REPEATS * MAX_PIECE_CHARS
CHECK_INTERVAL_CHARS = 500  # new characters between checks; a check takes microseconds
ANCHOR_CHARS = 48  # length of the suffix that is searched for in the text before it
MAX_CANDIDATES = 8
MIN_ANSWER_LIMIT_BYTES = 256 * 1024  # smallest byte limit of an answer
BYTES_PER_TOKEN = 4  # of the output cap
MAX_SPACE_BEFORE_STOP = 20  # characters between the number of a list and its full stop


# Loops


def find_loop_at_end(text: str) -> str:
    """Return the piece that the end of a text repeats, or an empty string."""
    if len(text) < MIN_LOOP_CHARS:
        return ""
    end, anchor = len(text) - 1, text[-ANCHOR_CHARS:]
    for _ in range(MAX_CANDIDATES):
        start = text.rfind(anchor, 0, end)
        size = len(text) - ANCHOR_CHARS - start
        if start < 0 or size > MAX_PIECE_CHARS:
            return ""
        length = max(MIN_LOOP_CHARS, MIN_REPEATS * size)
        if length <= len(text) and text[-length:-size] == text[size - length :]:
            return text[-size:]
        end = start + ANCHOR_CHARS - 1
    return ""


class LoopDetector:
    """Loop detector for a stream."""

    __slots__ = ("_tail",)

    def __init__(self) -> None:
        self._tail = ""

    def feed(self, text: str) -> str:
        """Add text and return the repeated piece, or an empty string. Call it every CHECK_INTERVAL_CHARS characters."""
        self._tail = (self._tail + text)[-TAIL_CHARS:]
        return find_loop_at_end(self._tail)


def find_loop(text: str) -> str:
    """Return the piece for which a stream of this text would have been stopped, or an empty string."""
    if len(text) < MIN_LOOP_CHARS:
        return ""
    stream = LoopDetector()
    pieces = (
        stream.feed(text[end - CHECK_INTERVAL_CHARS : end])
        for end in range(CHECK_INTERVAL_CHARS, len(text) + 1, CHECK_INTERVAL_CHARS)
    )
    return next(filter(None, pieces), "") or find_loop_at_end(text[-TAIL_CHARS:])


# Size


class AnswerSize:
    """Counts the bytes of an answer and raises Fault if they are over its limit."""

    __slots__ = ("limit", "received")

    def __init__(self, max_tokens: int | None) -> None:
        self.limit = max(MIN_ANSWER_LIMIT_BYTES, BYTES_PER_TOKEN * (max_tokens or 0))
        self.received = 0

    def add(self, piece: str) -> None:
        self.received += len(piece) if piece.isascii() else len(piece.encode(errors="replace"))
        if self.received > self.limit:
            raise self.fault

    @property
    def fault(self) -> Fault:
        return Fault("flood", f"the answer is longer than {self.limit // 1024} KB")

    def check(self, answer: Answer) -> None:
        """Check the whole answer, because a member need not stream it. A person's answer has no limit."""
        self.received = 0
        if answer.finish != "spoken":
            self.add(answer.text)


# Placeholders and answers


def check_answer(answer: Answer | Fault, step: Step, *, was_repaired: bool = False) -> Answer:
    """Return an acceptable answer, or raise its Fault. Contradictions are accepted after the repair turn."""
    if isinstance(answer, Fault):
        raise answer
    if answer.finish == "spoken":  # a person's answer is only checked against the schema
        if unread := getattr(step.read(answer.text), "unread", None):
            raise Fault("schema", f"{'; '.join(unread)} could not be read", said=answer.text)
        _check_contradictions(answer.text, step, was_repaired)
        return answer
    if answer.finish == "refused":
        raise _make_refusal(answer.text, find_refusal(answer.text) or answer.text)
    if piece := find_loop(answer.text):
        raise Fault("loop", describe_loop(piece), said=answer.text)
    is_cut = answer.finish == "length" and not (step.ask.schema is None and ends_in_notes(answer.text))
    is_short = step.ask.schema is None and not step.is_json and step.ask.max_tokens is not None  # of a small member
    if is_cut and not (is_short and answer.text.strip()):
        raise Fault("length", "the answer was cut at its length limit", said=answer.text)
    shown = answer.text if step.ask.schema else without_notes(answer.text)
    if not shown.strip():
        raise Fault("empty", "the answer was empty")
    reply = _read_reply(answer.text, step)
    if step.is_json:  # what fits may quote a refusal, or be a dash
        return answer
    if wording := find_refusal(shown) if step.ask.schema is None else find_refusal_in_reply(reply, step.ask.schema):
        raise _make_refusal(answer.text, wording)
    if is_stub(shown if step.ask.schema is None else reply, step.ask.schema):
        raise Fault("stub", "the answer is a placeholder", said=answer.text)
    _check_contradictions(answer.text, step, was_repaired)
    return replace(answer, text=_trim_to_last_sentence(answer.text)) if is_cut else answer


def _check_contradictions(text: str, step: Step, was_repaired: bool) -> None:
    if not was_repaired and (contradictions := step.review(text)):
        raise Fault("schema", contradictions, said=text)


def is_complete_reply(text: str, step: Step) -> bool:
    """Return whether a truncated reply still matches its schema. Free text never counts as complete."""
    schema = step.ask.schema
    try:
        reply = step.read(text)
    except Fault:
        return False
    if step.is_json:
        return True
    return schema is not None and not is_stub(reply, schema) and not find_refusal_in_reply(reply, schema)


def _read_reply(text: str, step: Step) -> Any:
    try:
        return step.read(text)
    except Fault:
        if wording := find_refusal(text):
            raise _make_refusal(text, wording) from None
        raise


def _make_refusal(said: str, wording: str) -> Fault:
    quoted = f': "{single_line(wording)}"' if wording.strip() else ""
    return Fault("refused", f"the member declined to answer{quoted}", said=said)


def describe_loop(piece: str) -> str:
    """Describe a loop, with the start of the repeated text."""
    start = " ".join(piece.split())[:40] or "blank space"
    return f'the answer repeats itself: "{start}"'


def is_stub(answer: Any, schema: Any = None) -> bool:
    """Return whether a text is a placeholder. A typed reply is one if all its free text is."""
    if schema is None:
        return is_placeholder(answer)
    free_text = _list_free_text(answer, schema)
    return len(free_text) > 1 and all(map(is_placeholder, free_text))


def find_refusal_in_reply(reply: Any, schema: Any) -> str:
    """Return the wording if a typed reply declines the request, or an empty string.

    It does if its answer declines, if all its texts do, or if its first text does, it lists nothing (no finding, no
    claim) and the other texts add almost nothing.
    """
    answer = getattr(reply, getattr(reply, "answer_field", "") or "answer_field", "")
    if isinstance(answer, str) and (wording := find_refusal(answer)):
        return wording
    said = [text for text in _list_free_text(reply, schema) if not is_placeholder(text)]
    wordings = [find_refusal(text) for text in said]
    if not wordings or not wordings[0]:
        return ""
    fields = reply.model_dump() if hasattr(reply, "model_dump") else {}
    lists_nothing = not any(isinstance(value, list) and value for value in fields.values())
    return wordings[0] if all(wordings) or (lists_nothing and find_refusal("\n".join(said))) else ""


def _list_free_text(reply: Any, schema: Any) -> list[str]:
    """Return the strings that a member gave, without the words of enums."""
    given = reply.model_dump(exclude_unset=True) if hasattr(reply, "model_dump") else reply
    choices = _collect_choices(schema)
    return [text for text in iter_strings(given) if text not in choices]


def _collect_choices(schema: Any) -> set[Any]:
    """Return every enum and const value in the schema."""
    if isinstance(schema, list):
        return {choice for item in schema for choice in _collect_choices(item)}
    if not isinstance(schema, dict):
        return set()
    own = {choice for choice in (*schema.get("enum", ()), schema.get("const")) if isinstance(choice, str)}
    return own | {choice for item in schema.values() for choice in _collect_choices(item)}


def _trim_to_last_sentence(text: str) -> str:
    """Return the text up to its last complete sentence, or all of it if there is none."""
    ends = [
        match.end()
        for match in re.finditer(r"[.!?][\"')\]]*(?=\s|$)", text)
        if not text[max(0, match.start() - MAX_SPACE_BEFORE_STOP) : match.start()].rstrip()[-1:].isdigit()
    ]
    return text[: ends[-1]] if ends else text
