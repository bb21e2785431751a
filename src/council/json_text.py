"""JSON values in the text of a model: prose or code fences around them, and mistakes of notation that have one reading.

A value is never completed: an object that is not closed, or that gives a key twice with different values, is a problem.
"""

from __future__ import annotations

import ast
import json
import re
from bisect import bisect_left
from collections.abc import Collection, Iterator
from contextlib import suppress
from typing import Any, NamedTuple

from council.types import map_strings, repair_surrogates

MAX_DEPTH = 100  # nested brackets
MAX_VALUES = 20  # values in one text
MAX_STRAY = 50  # brackets in prose that open no JSON
MAX_LITERAL_CHARS = 100_000  # of an object in Python's notation

_STRING = r'"(?:[^"\\]|\\.)*+"'
_COMMENT = r"//[^\n]*|/\*.*?(?:\*/|\Z)"
_LEAD = r"\s*(?:(?://[^\n]{0,300}|/\*[^*]{0,300}\*/)\s*){0,5}"  # before the first key
_KEY = r"""(?:"[^"\n]{0,200}"|“[^“”"\n]{0,200}”|'[^'\n]{0,200}')\s*:"""
_BARE_KEY = r"[A-Za-z_]\w*\s*:"
_OBJECT = re.compile(rf"\{{{_LEAD}{_KEY}", re.DOTALL)
_START = re.compile(rf"\{{{_LEAD}(?:{_KEY}|{_BARE_KEY})|\[\s*(?:\{{\s*(?:{_KEY}|{_BARE_KEY})|[\"“'])", re.DOTALL)
_BRACKET = re.compile(rf'{_STRING}|"(?:[^"\\]|\\.)*+\Z|{_COMMENT}|[{{}}\[\]]', re.DOTALL)
_STRING_OR_COMMENT = re.compile(rf"({_STRING})|{_COMMENT}", re.DOTALL)
_MISTAKE = re.compile(
    rf"({_STRING})|(,)(?=\s*[}}\]])|([{{,]\s*)([A-Za-z_]\w*)(?=\s*:)|\b(True|False|None)\b|“([^“”\"]*)”(?=\s*[,:}}\]])",
    re.DOTALL,
)
_INNER_QUOTE = re.compile(r'(?<!\\)"')
_CUT_TOKEN = re.compile(
    r'"(?P<key>(?:[^"\\]|\\.)*+)"(?=\s*:)|"(?:[^"\\]|\\.)*+"|(?P<open>")(?=(?:[^"\\]|\\.)*+\\?\Z)|[{}\[\],]', re.DOTALL
)
_CUT_ESCAPE = re.compile(r"\\(?:u[0-9a-fA-F]{0,3})?\Z")
_ESCAPE = re.compile(r"""\\(?:(u[0-9a-fA-F]{4}|["\\/bfnrt])|')?""")
_NAMES = {"True": "true", "False": "false", "None": "null"}
_THINKING = re.compile(r"\A\s*<(think|thinking)>.*?</\1>", re.DOTALL)


class Ambiguous(Exception):
    """A value that can be read in more than one way."""


def clean_text(text: str) -> str:
    """Return the text without NUL bytes, byte order marks and a leading block of thinking."""
    return _THINKING.sub("", text.replace("\x00", "").replace("\ufeff", "")).strip()


def load_json(text: str) -> Any:
    """Parse strict JSON, but allow raw line ends in strings. Raise ValueError or Ambiguous."""
    try:
        value = json.loads(text, strict=False, object_pairs_hook=_make_object, parse_constant=_reject_constant)
        return clean_strings(value) if "\\u" in text else value
    except RecursionError:
        raise ValueError("the JSON is nested too deeply") from None


def find_json(text: str) -> tuple[list[Any], str]:
    """Return the outermost JSON objects and lists of a text in order, and the first problem, worded for the model."""
    values: list[Any] = []
    problem, at, stray = "", 0, 0
    while len(values) < MAX_VALUES and stray < MAX_STRAY and (match := _START.search(text, at)):
        start = match.start()
        end = _find_end(text, start)
        if end is None:
            if _OBJECT.match(text, start) or (text[start] == "[" and "{" in match[0]):
                problem = problem or "the JSON is not closed: it ends in the middle, or a bracket or quote is missing"
                break
            at, stray = start + 1, stray + 1
            continue
        try:
            values.append(_load_lenient(text[start:end]))
        except (Ambiguous, ValueError) as error:
            problem = problem or str(error)
            stray += 1
        at = end
    return values, problem


def cut_json(text: str) -> str:
    """Return the text without its JSON objects and the code fences around them."""
    rest, at = [], 0
    while match := _START.search(text, at):
        end = _find_end(text, match.start())
        if end is None:
            break
        rest.append(text[at : match.start()])
        at = end
    return re.sub(
        r"(?m)^[ \t]*(?:```|~~~)[ \t]*(?:json)?[ \t]*\n\s*(?:```|~~~)[ \t]*$", "", "".join([*rest, text[at:]])
    ).strip()


def _find_end(text: str, start: int) -> int | None:
    """Return the place after the bracket that closes the one at `start`."""
    depth = 0
    for token in _BRACKET.finditer(text, start):
        char = text[token.start()]
        if char in "{[":
            depth += 1
            if depth > MAX_DEPTH:
                return None
        elif char in "}]":
            depth -= 1
            if not depth:
                return token.end()
    return None


def _load_lenient(text: str) -> Any:
    try:
        return load_json(text)
    except ValueError as error:
        problem = _describe(error)
    with suppress(ValueError):
        return load_json(correct_notation(text))
    if "'" in text and len(text) <= MAX_LITERAL_CHARS:
        with suppress(ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
            return clean_strings(ast.literal_eval(text))
    raise ValueError(problem)


def correct_notation(text: str) -> str:
    """Remove comments and trailing commas; correct quotes, bare keys, Python's constants and unknown escapes."""
    return _MISTAKE.sub(_correct, _STRING_OR_COMMENT.sub(lambda match: match[1] or " ", text))


def escape_inner_quotes(text: str, names: Collection[str]) -> str:
    """Return a text with escapes for quotes inside the strings of its object; `names` are keys that follow a string."""
    keys = "|".join(map(re.escape, names))
    closings = [found.start() for found in re.finditer(rf'"\s*(?:,\s*"(?:{keys})"\s*:|[}}\]]|\Z)', text)]
    parts, at = [], 0
    for opening in re.finditer(rf'"(?:{keys})"\s*:\s*"', text):
        place = bisect_left(closings, opening.end())
        if opening.start() >= at and place < len(closings):
            parts += [text[at : opening.end()], _INNER_QUOTE.sub(r'\\"', text[opening.end() : closings[place]])]
            at = closings[place]
    return "".join([*parts, text[at:]])


class CutObject(NamedTuple):
    """An object that was cut off, closed after its last complete value; the value of `field` is not complete."""

    text: str
    field: str


def close_json(text: str, answer: str = "") -> CutObject | None:
    """Close an object that is cut off, or return None. A text under the key `answer` is kept and ends with "…"."""
    opening = _OBJECT.search(text)
    if not opening or _find_end(text, opening.start()) is not None:
        return None
    state = _scan_cut(text, opening.start())
    closing = "".join("}" if char == "{" else "]" for char in reversed(state.stack))
    if state.string is None:
        return CutObject(f"{text[opening.start() :].rstrip(' `,')}{closing}", state.key if len(state.stack) > 1 else "")
    if state.key == answer and len(state.stack) == 1:
        kept = _CUT_ESCAPE.sub("", text[opening.start() :].rstrip())
        return CutObject(f'{kept} …"}}', answer)
    closing = "".join("}" if char == "{" else "]" for char in reversed(state.safe_stack))
    return CutObject(f"{text[opening.start() : state.safe]}{closing}", state.key)


class _CutState(NamedTuple):
    stack: str  # open brackets
    string: int | None  # start of the open string
    key: str  # last key of the object itself
    safe: int  # place after the last complete value
    safe_stack: str


def _scan_cut(text: str, start: int) -> _CutState:
    stack, key, safe, safe_stack, string = "", "", start + 1, "{", None
    for token in _CUT_TOKEN.finditer(text, start):
        char = token[0][0]
        if char == '"':
            string = token.end() if token["open"] is not None else None
            if token["key"] is not None and len(stack) == 1:
                key = token["key"]
        elif char in "{[":
            stack += char
        elif char in "}]":
            stack = stack[:-1]
            safe, safe_stack = token.end(), stack
        else:
            safe, safe_stack = token.start(), stack
    return _CutState(stack, string, key, safe, safe_stack)


def _correct(match: re.Match[str]) -> str:
    string, comma, before, key, constant, curly = match.groups()
    if string:
        return _correct_escapes(string) if "\\" in string else string
    if comma:
        return ""
    if key:
        return f'{before}"{key}"'
    return _NAMES[constant] if constant else f'"{curly}"'


def _correct_escapes(string: str) -> str:
    """Double the backslashes that start no escape, and drop those before an apostrophe.

    Beside them, \\b, \\f, \\r and \\t may be part of a path or pattern: leave all.
    """
    escapes = {escape[1] for escape in _ESCAPE.finditer(string)}
    if not escapes.isdisjoint("bfrt"):
        return string
    return _ESCAPE.sub(lambda escape: escape[0] if escape[1] else "'" if escape[0] == "\\'" else "\\\\", string)


def _make_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        for key, value in pairs:
            if value != made[key]:
                raise Ambiguous(f'the key "{key}" is given twice with different values')
    return made


def _reject_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON value")


def _describe(error: ValueError) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"the JSON is not valid: {error.msg} at line {error.lineno}, column {error.colno}"
    return str(error)


def clean_strings(value: Any) -> Any:
    """Return the value without NUL characters and lone surrogates, which can be neither stored nor sent."""
    return map_strings(value, lambda text: repair_surrogates(text.replace("\x00", "")))


def iter_strings(value: Any) -> Iterator[str]:
    """Yield every string inside a JSON value, without its keys."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from iter_strings(item)
