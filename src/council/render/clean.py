"""Foreign text made safe to show: nothing in it can move a cursor, recolour a screen or reorder a line."""

from __future__ import annotations

import re
from typing import Any

# A payload stops at the next introducer too, so that a megabyte of unclosed ones is read once, not squared.
_STRING = re.compile(r"(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c\x9d\x90\x98\x9e\x9f]*(?:\x07|\x1b\\|\x9c)")
_UNCLOSED = re.compile(
    r"(?:\x1b\]|\x9d)\d{1,4};[^\s\x07\x1b\x9c\x9d\x90\x98\x9e\x9f]*"
)  # its first word goes, the rest may be text
# What a title or a link leaves behind where someone took only its escape character; code like `a[i]0;` is none.
_REMNANT = re.compile(r"(?<![\w\])'\"`])\](?:0|1|2|4|7|8|9|10|11|52|133|777|1337);\S*")
_CSI = re.compile(r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?")
_ESCAPE = re.compile(r"\x1b[ -/]*[0-~]?")
_BREAK = re.compile(r"\r\n?|[\u2028\u2029]")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_SURROGATE = re.compile(r"[\ud800-\udfff]")  # JSON can carry them, UTF-8 cannot


def clean(text: str) -> str:
    """The text without terminal sequences and control characters; newline and tab stay."""
    for pattern in (_STRING, _UNCLOSED, _CSI, _ESCAPE):
        text = pattern.sub("", text)
    text = _CONTROL.sub("", _BREAK.sub("\n", text))
    return _SURROGATE.sub("\ufffd", _REMNANT.sub("", text))


def one_line(text: str, limit: int = 200) -> str:
    """The text on one line, shortened with an ellipsis."""
    line = " ".join(clean(text).split())
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


def clean_json(value: Any) -> Any:
    """The same value with every string in it cleaned."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        return {clean(str(key)): clean_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [clean_json(item) for item in value]
    return value
