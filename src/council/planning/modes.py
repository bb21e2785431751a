"""Modes by their names: "adversarial council: …", "in collaborative mode, …", "council of advisors - …".

A name at the start of a question is a prefix: it chooses the protocol and is removed. Elsewhere it is a request and
stays.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

from council.planning.phrases import (
    UNIFIED,
    Sentence,
    compile_opening,
    compile_words,
    join_starts,
    join_words,
    load_triggers,
    lower,
    strip_opening,
)

MAX_PREFIX_CHARS = 200
MARK = (  # after a name, with "please" or "for this" before it
    r"(?: (?:for|on|about|with) (?:this|that|it|the following)(?: one| question)?(?=[:：,，.!]))?(?:,? please)?"
    r"(?:\s*[:：,，、–—]|[.!]+(?=\s)|\s*-+(?=\s|$)|\s+-+(?=\S)|\s*[\])】）]\s*[:：,，–—-]?)"
)
BRACKET = r"[\[(【（]?\s*"
IN_QUESTION = re.compile(
    r"[,:(–—] ?(?:(?:in|using|with|via) )?(?:(?:an?|the) )?$|^(?:can|could|would|will) (?:an?|the|my|our) $"
)
VERB = re.compile(r"(?:is|are|was|were|has|can|will|does|could|would|should)\b", re.IGNORECASE)


class Mode(NamedTuple):
    """A protocol, and the name by which it was chosen."""

    protocol: str
    words: str


def strip_mode(text: str) -> tuple[Mode | None, str]:
    """Return the mode that a question starts with, and the question without it."""
    core = strip_opening(text)
    opening = Sentence(core, re.sub(r"\s", " ", lower(core[:MAX_PREFIX_CHARS].translate(UNIFIED))))
    if not _has_stem(opening.text):
        return None, text
    masked = opening.mask(_load_modes()["exceptions"]).text
    for protocol in _load_modes()["names"]:
        if found := _match_prefix(masked, core, protocol):
            return Mode(protocol, _format_name(found)), core[found.end() :].strip()
    return None, text


def _format_name(found: re.Match[str]) -> str:
    colon = ":" if found.group()[found.end("name") :].strip().startswith((":", "：")) else ""
    return " ".join(found["name"].replace("-", " ").split()) + colon


def _match_prefix(opening: str, core: str, protocol: str) -> re.Match[str] | None:
    marked, short, bare = _compile_prefixes(protocol)
    if found := marked.match(opening) or short.match(opening):
        return found
    found = bare.match(opening)
    is_sentence = found and VERB.match(core[found.end() :]) and not core.rstrip().endswith(("?", "？"))
    return None if is_sentence else found  # "Adversarial council is a pattern"


@cache
def _compile_prefixes(protocol: str) -> tuple[re.Pattern[str], ...]:
    """Compile a name with a mark or a preposition after it, a short name with a mark, and a name before other words."""
    modes = _load_modes()
    names, short_names = (join_starts(modes[table][protocol]) for table in ("names", "short_names"))
    before = rf"(?:(?:{join_starts(modes['before'])}) ?)?(?:(?:{join_words(modes['articles'])}) )?"
    mark = rf"(?:{'|'.join(modes['suffixes'])})?(?:{MARK}|\s*$)"
    after = rf" (?:{join_words(modes['after'])})(?!\w)"
    continued = rf" (?:{join_words(modes['continued'])})(?!\w)"
    return (
        re.compile(rf"{BRACKET}{before}(?P<name>{names})(?:{mark}|{after})\s*"),
        re.compile(rf"{BRACKET}{before}(?P<name>{short_names}){mark}\s*"),
        re.compile(rf"{before}(?P<name>{names})(?!{continued})\s+"),
    )


def find_mode(sentences: Sequence[Sentence]) -> Mode | None:
    """Return the mode that a sentence asks for by its name; a question about a mode asks for none."""
    for sentence in sentences:
        if not _has_stem(sentence.text):
            continue
        text = sentence.without_opening().mask(_load_modes()["exceptions"]).text
        found = [
            (match.start(), Mode(protocol, match.group()))
            for protocol in _load_modes()["names"]
            if (match := _compile_requests(protocol).search(text)) and _is_asked(text, match.start())
        ]
        if found:
            return min(found)[1]
    return None


@cache
def _compile_requests(protocol: str) -> re.Pattern[str]:
    return compile_words((*_load_modes()["names"][protocol], *_load_modes()["requests"].get(protocol, ())))


def _is_asked(sentence: str, start: int) -> bool:
    """Return whether a name is a request; in a question only after a comma, or if it is to do something."""
    if not (compile_opening("questions").match(sentence) or compile_opening("telling").match(sentence)):
        return True
    return bool(IN_QUESTION.search(sentence[:start]))


def _has_stem(text: str) -> bool:
    return any(stem in text for stem in _load_modes()["stems"])


def _load_modes() -> dict[str, Any]:
    modes: dict[str, Any] = load_triggers()["modes"]
    return modes
