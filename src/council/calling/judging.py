"""Whether an answer can be taken, and as how much of it."""

from __future__ import annotations

import re
from dataclasses import replace

from council.errors import Fault
from council.types import Answer, Step


def judged(answer: Answer | Fault, step: Step) -> Answer:
    """The answer as it is taken; raises the fault that it is."""
    if isinstance(answer, Fault):
        raise answer
    if answer.finish == "refused":
        raise Fault("refused", "the member declined to answer", said=answer.text)
    if answer.finish == "length" and not _whole(answer, step):
        raise Fault("length", "the answer was cut at its length limit", said=answer.text)
    if not answer.text.strip():
        raise Fault("empty", "the answer was empty")
    step.read(answer.text)
    return replace(answer, text=_sentences(answer.text)) if answer.finish == "length" else answer


def _whole(answer: Answer, step: Step) -> bool:
    """A small member's free text is cut on purpose; a typed reply counts only if it can be read."""
    return step.ask.schema is None and step.ask.max_tokens is not None and bool(answer.text.strip())


def _sentences(text: str) -> str:
    """Up to the last sentence that is whole; all of it, if none is."""
    ends = [
        found.end()
        for found in re.finditer(r"[.!?][\"')\]]*(?=\s|$)", text)
        if not text[: found.start()].rstrip()[-1:].isdigit()
    ]
    return text[: ends[-1]] if ends else text
