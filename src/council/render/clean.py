"""Removal of terminal sequences and control characters from untrusted text."""

from __future__ import annotations

import re
from typing import Any

# A payload also stops at the next introducer: unclosed sequences would otherwise take quadratic time.
_CONTROL_STRING = re.compile(
    r"(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c\x9d\x90\x98\x9e\x9f]*(?:\x07|\x1b\\|\x9c)"
)
_UNCLOSED_OSC = re.compile(
    r"(?:\x1b\]|\x9d)\d{1,4};[^\s\x07\x1b\x9c\x9d\x90\x98\x9e\x9f]*"
)  # removes only the first word, the rest may be text
# Rest of a title or link sequence whose escape character was already removed; does not match code like `a[i]0;`.
_OSC_REMNANT = re.compile(r"(?<![\w\])'\"`])\](?:0|1|2|4|7|8|9|10|11|52|133|777|1337);\S*")
_CSI = re.compile(r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?")
_ESCAPE = re.compile(r"\x1b[ -/]*[0-~]?")
_LINE_BREAK = re.compile(r"\r\n?|[\u2028\u2029]")
_CONTROL_CHARS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_SURROGATE = re.compile(r"[\ud800-\udfff]")  # valid in JSON, not in UTF-8


def clean(text: str) -> str:
    """Remove terminal sequences and control characters, except newline and tab."""
    for pattern in (_CONTROL_STRING, _UNCLOSED_OSC, _CSI, _ESCAPE):
        text = pattern.sub("", text)
    text = _CONTROL_CHARS.sub("", _LINE_BREAK.sub("\n", text))
    return _SURROGATE.sub("\ufffd", _OSC_REMNANT.sub("", text))


def single_line(text: str, limit: int = 200) -> str:
    """Clean the text, join its lines and shorten it to `limit` characters."""
    line = " ".join(clean(text).split())
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


def clean_json(value: Any) -> Any:
    """Clean every string in a JSON value."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        return {clean(str(key)): clean_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [clean_json(item) for item in value]
    return value
