"""Limits of a vendor that the headers of an answer state: those of OpenAI, which many vendors use, and of Anthropic."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime

from council.types import StatedLimit

# Kind of a limit: the beginning and the end of its headers, between or after which is limit, remaining or reset.
OPENAI = {"requests": "x-ratelimit-{}-requests", "tokens": "x-ratelimit-{}-tokens"}
ANTHROPIC = {
    "requests": "anthropic-ratelimit-requests-{}",
    "tokens": "anthropic-ratelimit-tokens-{}",
    "input": "anthropic-ratelimit-input-tokens-{}",
    "output": "anthropic-ratelimit-output-tokens-{}",
}
MAX_LIMIT = 10**12
MAX_RESET_S = 120.0  # a longer one is that of a day, which no run can wait for
DURATION = re.compile(r"(?:(\d{1,3})h)?(?:(\d{1,4})m(?!s))?(?:(\d{1,6}(?:\.\d{1,9})?)s)?(?:(\d{1,7}(?:\.\d{1,9})?)ms)?")


def read_limits(headers: Mapping[str, str]) -> tuple[StatedLimit, ...]:
    """Return the limits of an answer, those of minutes only. Odd values are ignored."""
    if "x-ratelimit-limit-requests" in headers or "x-ratelimit-limit-tokens" in headers:
        return _read_all(headers, OPENAI)
    if "anthropic-ratelimit-requests-limit" in headers or "anthropic-ratelimit-tokens-limit" in headers:
        return _read_all(headers, ANTHROPIC)
    if "anthropic-ratelimit-input-tokens-limit" in headers or "anthropic-ratelimit-output-tokens-limit" in headers:
        return _read_all(headers, ANTHROPIC)
    return ()


def _read_all(headers: Mapping[str, str], names: Mapping[str, str]) -> tuple[StatedLimit, ...]:
    found = {kind: stated for kind, name in names.items() if (stated := _read_limit(headers, kind, name))}
    if "input" in found or "output" in found:  # "tokens" repeats the one that is nearer to its limit
        found.pop("tokens", None)
    return tuple(found.values())


def _read_limit(headers: Mapping[str, str], kind: str, name: str) -> StatedLimit | None:
    most, left = (_read_count(headers.get(name.format(part), "")) for part in ("limit", "remaining"))
    reset = _read_reset(headers.get(name.format("reset"), ""), headers.get("Date", ""))
    if not most or left is None or left > most or reset is None or reset > MAX_RESET_S:
        return None
    return StatedLimit(kind, most, left, reset)


def _read_count(text: str) -> int | None:
    text = text.strip()
    return int(text) if text.isascii() and text.isdigit() and len(text) < len(str(MAX_LIMIT)) else None


def _read_reset(text: str, date: str) -> float | None:
    """Return the seconds until a reset, from a duration or from a time by the clock of the vendor."""
    text = text.strip()
    if (found := DURATION.fullmatch(text)) and text:
        hours, minutes, seconds, milliseconds = (float(part or 0) for part in found.groups())
        return hours * 3600 + minutes * 60 + seconds + milliseconds / 1000
    try:
        if re.fullmatch(r"\d{1,4}(\.\d{1,9})?", text):
            return float(text)
        at = datetime.fromisoformat(text)
        return None if at.tzinfo is None else max(0.0, at.timestamp() - _read_clock(date))
    except (ValueError, OverflowError):
        return None


def _read_clock(date: str) -> float:
    """Return the time of the vendor's clock, or of this one if the vendor does not state it."""
    try:
        return parsedate_to_datetime(date).timestamp()
    except (ValueError, TypeError, OverflowError, IndexError):
        return time.time()
