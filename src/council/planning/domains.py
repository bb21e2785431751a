"""Domain of a question: the kind of work it asks for, which gives each seat of the dual modes a line of focus.

A subject is not enough: "introduce coding agents in a team" names code and asks for no code. A question has a domain if
it contains a code artefact, a phrase of data/domains.toml, or a request whose verb and first object belong to the
domain.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.resources import files as resource_files
from typing import Any

from council.planning.phrases import (
    WORD_END,
    WORD_GAP,
    WORD_START,
    compile_phrases,
    mask_text,
    split_sentences,
    strip_opening,
)

GENERAL = "general"
MAX_REQUEST_CHARS = 4000  # a longer text has its request at the start or at the end
MAX_OPENING_CHARS = 60  # before the verb of a request
MAX_OBJECT_CHARS = 70  # after it


@cache
def load_domains() -> dict[str, Any]:
    return tomllib.loads(resource_files("council").joinpath("data/domains.toml").read_text(encoding="utf-8"))


def focus_line(domain: str, seat: str) -> str:
    """Return the focus of a seat of the dual modes in this domain, or ""."""
    return str(load_domains()["focus"].get(domain, {}).get(seat, ""))


def detect_domain(text: str) -> str:
    """Return the domain of a question, the first of the table that matches. Any code artefact in it means "code"."""
    if _compile_artefacts().search(text):
        return "code"
    if len(text) > MAX_REQUEST_CHARS:
        text = f"{text[: MAX_REQUEST_CHARS // 2]}\n{text[-MAX_REQUEST_CHARS // 2 :]}"
    return next((domain for domain in load_domains()["domains"] if _asks_for(domain, text)), GENERAL)


def _asks_for(domain: str, text: str) -> bool:
    sentences = split_sentences(text)
    phrases = _compile_phrases(domain)
    if not any(phrases.search(one) or any(_iter_requests(domain, strip_opening(one))) for one in sentences):
        return False  # most questions; the other patterns are not even compiled
    masked = mask_text(text, load_domains()["domains"][domain]["exceptions"])
    return any(phrases.search(one) or _has_request(domain, strip_opening(one)) for one in split_sentences(masked))


def _has_request(domain: str, sentence: str) -> bool:
    """Return whether a request has a verb of the domain, and the first object after it is of the domain too."""
    imperatives = load_domains()["domains"][domain].get("imperatives", ())
    for verb in _iter_requests(domain, sentence):
        if verb.group().lower() in imperatives and not sentence[: verb.start()].strip():
            return True
        if _find_first_object(sentence[verb.end() : verb.end() + MAX_OBJECT_CHARS]) == domain:
            return True
    return False


def _iter_requests(domain: str, sentence: str) -> Iterator[re.Match[str]]:
    """Yield the verbs of the domain that are what a sentence asks for."""
    for verb in compile_phrases(tuple(load_domains()["domains"][domain]["verbs"])).finditer(sentence):
        if _compile_request(domain).search(sentence[max(0, verb.start() - MAX_OPENING_CHARS) : verb.start()]):
            yield verb


def _find_first_object(text: str) -> str:
    """Return the domain of the first object that a text names, the longest at one place, or ""."""
    matches = ((domain, _compile_objects(domain).search(text)) for domain in load_domains()["domains"])
    found = [(match.start(), -match.end(), domain) for domain, match in matches if match]
    return min(found)[2] if found else ""


@cache
def _compile_artefacts() -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{artefact})" for artefact in load_domains()["artefacts"]))


@cache
def _compile_phrases(domain: str) -> re.Pattern[str]:
    rules = load_domains()
    phrases = "|".join(f"(?:{phrase})" for phrase in rules["domains"][domain]["phrases"])
    for name in ("language", "technology"):
        phrases = phrases.replace(f"{{{name}}}", f"(?:{'|'.join(rules[name])})")
    return re.compile(phrases)


@cache
def _compile_objects(domain: str) -> re.Pattern[str]:
    objects = sorted(load_domains()["domains"][domain]["objects"], key=len, reverse=True)
    choices = "|".join(pattern.replace(" ", WORD_GAP) for pattern in objects)
    return re.compile(f"{WORD_START}(?:{choices}){WORD_END}", re.IGNORECASE)


@cache
def _compile_request(domain: str) -> re.Pattern[str]:
    """Compile what may stand directly before the verb of a request."""
    rules = load_domains()
    openings = [*rules["request_openings"]]
    if rules["domains"][domain].get("decisions"):
        openings += rules["decision_openings"]
    choices = "|".join(opening.replace(" ", WORD_GAP) for opening in openings)
    return re.compile(rf"(?:\A\s*|[,:–—]\s*|{WORD_START}(?:(?:and|then|please)|{choices})\s+)\Z", re.IGNORECASE)
