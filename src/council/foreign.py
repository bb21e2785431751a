"""Cleanup of untrusted text: remove invisible characters, join lines, mask keys."""

from __future__ import annotations

import re
from collections.abc import Iterable

from council.types import repair_surrogates

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


def mask_values(text: str, secrets: Iterable[str]) -> str:
    """Return the text with these secret values masked."""
    for secret in secrets:
        if len(secret) >= MIN_SECRET_CHARS:
            text = text.replace(secret, "***")
    return text


def redact_line(message: str, secrets: Iterable[str] = ()) -> str:
    """Return one line of at most 200 characters, without control characters and secrets."""
    return truncate(URL_LOGIN.sub("***@", KEY_SHAPED.sub("***", mask_values(flatten_line(message), secrets))), 200)
