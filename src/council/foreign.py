"""What others wrote, made fit to keep and to show: without what nobody sees, on one line, with no key in it."""

from __future__ import annotations

import re
from collections.abc import Iterable

from council.types import sound

# Zero-width and direction marks, soft hyphens, tags, variation selectors but the emoji's own, and controls but tab and line ends.
INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0e\ufeff\uffa0\ufff9-\ufffb"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff\x00-\x08\x0b\x0e-\x1f\x7f-\x9f]"
)
ESCAPE = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
CONTROLS = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
# What a vendor quotes of somebody's key, also where it has masked the middle of it itself.
KEY_SHAPED = re.compile(
    r"\b(?:(?:sk|pk|rk|gsk|csk|hf|xai|r8|fw|pplx|tvly|nvapi|glpat|gh[opsu]|github_pat)[-_]|AIza|AKIA|ya29\.|eyJ)[\w*.…-]{8,}"
)
LOGIN = re.compile(r"(?<=://)[^\s/@]+@")  # somebody's, inside an address
SHORTEST_SECRET = 4  # characters; anything shorter is a placeholder, and would make holes in plain words


def visible(text: str) -> tuple[str, int]:
    """The text without characters that nobody sees, and how many of them it had."""
    return INVISIBLE.subn("", sound(text))


def plain(text: str) -> str:
    """The text on one line, without terminal sequences and without what nobody sees: what was one word stays one."""
    return " ".join(visible(ESCAPE.sub("", text))[0].split())


def flat(text: str) -> str:
    """The text on one line, without terminal sequences."""
    return " ".join(CONTROLS.sub(" ", text).split())


def cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def without(text: str, secrets: Iterable[str]) -> str:
    """The text with these very secrets masked."""
    for secret in secrets:
        if len(secret) >= SHORTEST_SECRET:
            text = text.replace(secret, "***")
    return text


def one_line(message: str, secrets: Iterable[str] = ()) -> str:
    """One line fit for any terminal: no control characters, no secret, 200 characters at most."""
    return cut(LOGIN.sub("***@", KEY_SHAPED.sub("***", without(flat(message), secrets))), 200)
