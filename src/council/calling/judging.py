"""Whether an answer can be taken, and as how much of it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from council.calling.repeating import repeats
from council.errors import Fault
from council.types import Answer, Step

# An answer that only holds the place of one. Short and blunt answers are none of them.
MARKS = r"[\s!-/:-@\[-`{-~…–—]*"  # what stands around words, and now and then in their place
STUB = re.compile(
    rf"{MARKS}"
    r"(?:todo|tbd|tba|fixme|n/?a|null|none|undefined|string|text|placeholder|lorem ipsum\b.*"
    r"|(?:(?:insert|enter|put|add) (?:your |the )?|your )(?:answer|text|response|reply|statement|analysis)(?: here)?)?"
    rf"{MARKS}",
    re.IGNORECASE | re.DOTALL,
)
STUB_LENGTH = 200  # from here on it is one only if it holds no word at all


def judged(answer: Answer | Fault, step: Step) -> Answer:
    """The answer as it is taken; raises the fault that it is."""
    if isinstance(answer, Fault):
        raise answer
    if answer.finish == "spoken":  # a person's words are what they are; only the form is asked for again
        step.read(answer.text)
        return answer
    if answer.finish == "refused":
        raise Fault("refused", "the member declined to answer", said=answer.text)
    if piece := repeats(answer.text):
        raise Fault("loop", looping(piece), said=answer.text)
    if answer.finish == "length" and not _capped(answer, step):
        raise Fault("length", "the answer was cut at its length limit", said=answer.text)
    if not answer.text.strip():
        raise Fault("empty", "the answer was empty")
    step.read(answer.text)
    if is_stub(answer.text, step.ask.schema):
        raise Fault("stub", "the answer only held the place of one", said=answer.text)
    return replace(answer, text=_sentences(answer.text)) if answer.finish == "length" else answer


def is_whole(text: str, step: Step) -> bool:
    """Whether a reply that was cut off has all the same the form that was asked for: free text is never known to."""
    try:
        step.read(text)
    except Fault:
        return False
    return step.ask.schema is not None and bool(text.strip()) and not is_stub(text, step.ask.schema)


def looping(piece: str) -> str:
    """What is said of an answer that repeats a piece for ever."""
    shown = " ".join(piece.split())[:40] or "blank space"
    return f'the answer went round in circles: "{shown}"'


def is_stub(text: str, schema: Any = None) -> bool:
    """A placeholder in the place of an answer; of a typed reply, in the place of everything that was to be worded."""
    if schema is None:
        return _is_placeholder(text)
    try:
        said = list(_strings(json.loads(text)))
    except ValueError:
        return False  # it stood inside a fence, but it was read, and that is enough
    offered = _choices(schema)
    worded = [one for one in said if one not in offered]
    return len(worded) > 1 and all(map(_is_placeholder, worded))


def _is_placeholder(text: str) -> bool:
    return (STUB.fullmatch(text) if len(text) < STUB_LENGTH else re.fullmatch(MARKS, text)) is not None


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _strings(item)


def _choices(schema: Any) -> set[Any]:
    """Every value that the schema itself offers."""
    if isinstance(schema, list):
        return {choice for item in schema for choice in _choices(item)}
    if not isinstance(schema, dict):
        return set()
    own = {choice for choice in (*schema.get("enum", ()), schema.get("const")) if isinstance(choice, str)}
    return own | {choice for item in schema.values() for choice in _choices(item)}


def _capped(answer: Answer, step: Step) -> bool:
    """A small member's free text is cut on purpose."""
    return step.ask.schema is None and step.ask.max_tokens is not None and bool(answer.text.strip())


def _sentences(text: str) -> str:
    """Up to the last sentence that is whole; all of it, if none is."""
    ends = [
        found.end()
        for found in re.finditer(r"[.!?][\"')\]]*(?=\s|$)", text)
        if not text[: found.start()].rstrip()[-1:].isdigit()
    ]
    return text[: ends[-1]] if ends else text
