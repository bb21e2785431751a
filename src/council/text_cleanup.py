"""Cleanup of text: invisible characters, terminal sequences, secrets in lines, and packets that are too long."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from council.types import Packet, PacketFile, Skipped, estimate_tokens, repair_surrogates

# Zero-width and direction marks, soft hyphens, tags, variation selectors except the emoji one, controls except tab and line ends.
INVISIBLE_CHARS = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0e\ufeff\uffa0\ufff9-\ufffb"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff\x00-\x08\x0b\x0e-\x1f\x7f-\x9f]"
)
CSI_SEQUENCE = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
CONTROL_RUNS = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
# Keys as vendors quote them in errors, also with the middle already masked.
KEY_SHAPED = re.compile(
    r"\b(?:(?:sk|pk|rk|gsk|csk|hf|xai|r8|fw|pplx|tvly|nvapi|glpat|gh[opsu]|github_pat)[-_]|AIza|AKIA|ya29\.|eyJ)[\w*.…-]{8,}"
)
URL_LOGIN = re.compile(r"(?<=://)[^\s/@]+@")  # user and password in a URL
MIN_SECRET_CHARS = 4  # characters; a shorter value is a placeholder, and masking it would damage ordinary words


# Single lines


def strip_invisible(text: str) -> tuple[str, int]:
    """Return the text without invisible characters, and how many were removed."""
    return INVISIBLE_CHARS.subn("", repair_surrogates(text))


def strip_to_line(text: str) -> str:
    """Return the text on one line, without terminal sequences and invisible characters; words are not split."""
    return " ".join(strip_invisible(CSI_SEQUENCE.sub("", text))[0].split())


def flatten_line(text: str) -> str:
    """Return the text on one line, without terminal sequences."""
    return " ".join(CONTROL_RUNS.sub(" ", text).split())


def truncate(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"


def slugify(name: str) -> str:
    """Return the name in lower case with hyphens: "Error paths" becomes "error-paths"."""
    return re.sub(r"\W+", "-", name.lower()).strip("-")


def mask_values(text: str, secrets: Iterable[str]) -> str:
    """Return the text with these secret values masked."""
    for secret in secrets:
        if len(secret) >= MIN_SECRET_CHARS:
            text = text.replace(secret, "***")
    return text


def redact_line(message: str, secrets: Iterable[str] = ()) -> str:
    """Return one line of at most 200 characters, without control characters and secrets."""
    return truncate(URL_LOGIN.sub("***@", KEY_SHAPED.sub("***", mask_values(flatten_line(message), secrets))), 200)


# Text for a terminal

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


# Packets

TRUNCATION_MARKER = "[cut here: the rest does not fit]"


@dataclass(slots=True)
class PacketWindow:
    """Tokens left in a member's context window, and the texts that did not fit."""

    size: int
    remaining: int
    closed: bool = False
    cuts: dict[str, Skipped] = field(default_factory=dict)

    def fit_text(self, name: str, text: str) -> str:
        """Return as much of a text as fits. After the first cut the window is closed, to keep the order."""
        cost = estimate_tokens(name) + estimate_tokens(text)
        if not self.closed and cost <= self.remaining:
            self.remaining -= cost
            return text
        part = "" if self.closed else _truncate_lines(text, self.remaining - estimate_tokens(name))
        self.closed = True
        self.cuts[name] = Skipped(name, f"does not fit the member's window ({self.size:,} tokens)", True)
        return part

    def fit_optional(self, name: str, text: str) -> str:
        return self.fit_text(name, text) if text else ""

    def fit_file(self, file: PacketFile) -> PacketFile | None:
        content = self.fit_text(file.path, file.content)
        return None if file.path in self.cuts and not content else PacketFile(file.path, content)


def truncate_packet(packet: Packet, tokens: int) -> Packet:
    """Truncate a packet to a number of tokens: spec, diff, files, environment, in that order.

    Decisions are never cut: they are short, and the rest can be misread without them.
    """
    if packet.tokens <= tokens:
        return packet
    window = PacketWindow(tokens, max(0, tokens - sum(map(estimate_tokens, packet.prior_decisions))))
    spec = window.fit_optional(packet.spec_source or "spec", packet.spec)
    diff = window.fit_optional("diff", packet.diff)
    files = [window.fit_file(file) for file in packet.files]
    environment = window.fit_optional("environment", packet.environment)
    return replace(
        packet, spec=spec, diff=diff, files=tuple(file for file in files if file), environment=environment,
        skipped=(*packet.skipped, *window.cuts.values()),
    )  # fmt: skip


def _truncate_lines(text: str, tokens: int) -> str:
    """Return the first lines that fit, followed by the marker, or "" if none fits."""
    room = tokens - estimate_tokens(f"{TRUNCATION_MARKER}\n")
    lines: list[str] = []
    for line in text.splitlines(keepends=True):
        if (room := room - estimate_tokens(line)) < 0:
            break
        lines.append(line)
    return "".join([*lines, TRUNCATION_MARKER, "\n"]) if lines else ""
