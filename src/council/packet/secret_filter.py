"""Detection and masking of secrets. Prefers false positives to a leaked key."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from council.packet.secret_blocks import BLOCK_HINTS, find_blocks
from council.packet.secret_calls import CALL_HINTS, find_calls
from council.packet.secret_context import (
    HEADER_HINTS,
    KUBERNETES_HINTS,
    LOGIN_HINTS,
    find_auth_headers,
    find_kubernetes_secrets,
    find_logins,
    find_url_logins,
)
from council.packet.secret_rules import KEY_RULES, NEW_LINE, KeyRule, compile_key
from council.packet.secret_scan import Scan, Secret
from council.packet.secret_settings import SETTING_STEMS, find_settings
from council.packet.secret_values import decode_base64, is_sample_key

MAX_KEY_BLOCK_CHARS = 20_000  # longest key block without an END line
MIN_REPEATED_CHARS = 8  # of a secret that is masked wherever it is repeated
MAX_SHORT_CHARS = 60  # of a text that is tested with one pattern first; in a longer one substrings are found faster
MAX_KEPT_CHARS = 32_000  # of a text whose secrets are kept, because it may come again
MAX_HINTED_CHARS = 10_000  # of a text that is tested with the hints of a finder first; in a longer one most are found
# Every secret has a long word or one of these: a sentence has neither.
POSSIBLE_SECRET = re.compile(
    r"(?i)\S{20}|://|pass|pwd|secret|token|key|credential|auth|bearer|cookie|[_-]pat|psk|identified|convertto|:\$|kind|phrase|mnemonic|login"
    r"|curl|wget|smbc|mysql|mariadb|mongo|redis-|sqlcmd|ldap"
)


def find_secrets(text: str) -> list[Secret]:
    """Return all secrets in a text, in order and without overlaps."""
    if len(text) < MAX_SHORT_CHARS and not POSSIBLE_SECRET.search(text):
        return []
    return list(_search_once(text)) if len(text) <= MAX_KEPT_CHARS else _search(text)


@lru_cache(maxsize=128)
def _search_once(text: str) -> tuple[Secret, ...]:
    """Search a text that may come again: an answer is stored, and then quoted in the prompts of the next phase."""
    return tuple(_search(text))


def _search(text: str) -> list[Secret]:
    scan = Scan(text)
    secrets = list(_run_finders(scan))
    if _is_escaped(scan):
        secrets += _run_finders(Scan(ESCAPE.sub(_replace_escape, text)))  # of the same length
    if not secrets:
        return []
    starts = {secret.start for secret in secrets}
    extended = (secret._replace(end=_find_wrapped_end(text, secret, starts)) for secret in secrets)
    return _merge_overlapping(sorted(extended, key=lambda secret: (secret.start, -secret.end)))


def _run_finders(scan: Scan) -> Iterator[Secret]:
    """Yield the secrets of each finder whose hints are in the text, in the order of the finders."""
    if scan.words:
        yield from _find_known_keys(scan)
    for hints, find in FINDERS:
        if len(scan.text) > MAX_HINTED_CHARS or scan.has(*hints):
            yield from find(scan)


def redact_text(text: str) -> str:
    """Return the text with every secret masked, for logs, errors and reports."""
    secrets = find_secrets(text)
    return mask_secrets(text, add_repeats(text, secrets, list_values([(text, secrets)]))) if secrets else text


def redact_value(value: Any) -> Any:
    """Mask secrets in every string of a JSON value.

    A value that one string shows to be a secret is masked in all of them.
    """
    if isinstance(value, str):
        return redact_text(value)
    found = {text: find_secrets(text) for text in _iter_strings(value)}
    if not any(found.values()):
        return value
    values = list_values(found.items())

    def redact(value: Any) -> Any:
        if isinstance(value, str):
            return mask_secrets(value, add_repeats(value, found[value], values))
        if isinstance(value, dict):
            return {name: redact(item) for name, item in value.items()}
        return [redact(item) for item in value] if isinstance(value, (list, tuple)) else value

    return redact(value)


def list_values(texts: Iterable[tuple[str, Sequence[Secret]]]) -> dict[str, str]:
    """Return the kind of each secret of texts by its text. Short values and blocks of several lines are left out."""
    found = {text[secret.start : secret.end]: secret.kind for text, secrets in texts for secret in secrets}
    return {value: kind for value, kind in found.items() if len(value) >= MIN_REPEATED_CHARS and "\n" not in value}


def add_repeats(text: str, secrets: Sequence[Secret], values: Mapping[str, str]) -> list[Secret]:
    """Return the secrets and all other places of these values: a text may repeat a key without its context."""
    if not values:
        return list(secrets)
    repeats = [
        Secret(kind, found.start(), found.end())
        for value, kind in values.items()
        for found in re.finditer(re.escape(value), text)
    ]
    return _merge_overlapping(sorted([*secrets, *repeats], key=lambda secret: (secret.start, -secret.end)))


def _iter_strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from (text for item in value.values() for text in _iter_strings(item))
    elif isinstance(value, (list, tuple)):
        yield from (text for item in value for text in _iter_strings(item))


class PromptRedactor:
    """Redacts prompts. Those of one phase start with the same material, which is searched once."""

    MAX_KEPT = 8  # prompts, one for each run or kind of message
    MIN_CHARS = MAX_KEPT_CHARS  # a shorter prompt is searched by its blocks
    OVERLAP = 500  # characters before the first difference that are searched again

    def __init__(self) -> None:
        self._kept: dict[str, tuple[str, list[Secret]]] = {}  # the last prompt with this start, and its secrets

    def redact_messages(self, messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Mask the secrets of a request. A key that one message shows to be one is masked in all of them."""
        texts = [str(message["content"]) for message in messages]
        found = [self.find_secrets(text) for text in texts]
        if not any(found):
            return list(map(dict, messages))
        values = list_values(zip(texts, found, strict=True))
        return [
            {**message, "content": mask_secrets(text, add_repeats(text, secrets, values))}
            for message, text, secrets in zip(messages, texts, found, strict=True)
        ]

    def find_secrets(self, text: str) -> list[Secret]:
        if len(text) < self.MIN_CHARS:
            return _search_blocks(text)
        start = text[:200]
        before, known = self._kept.pop(start, ("", []))
        at = max(0, _common_length(text, before) - self.OVERLAP)
        kept = [secret for secret in known if secret.end <= at]
        at = min([at, *(secret.start for secret in known[len(kept) :])])
        rest = max(text.rfind("\n", 0, at) + 1, kept[-1].end if kept else 0)
        found = [
            secret._replace(start=secret.start + rest, end=secret.end + rest) for secret in find_secrets(text[rest:])
        ]
        self._kept[start] = (text, [*kept, *found])
        if len(self._kept) > self.MAX_KEPT:
            del self._kept[next(iter(self._kept))]
        return [*kept, *found]


MARK_LINE = re.compile(r"<<<[A-Z][A-Za-z ]{0,30} ?\d{0,3} [0-9a-f]{12}|[0-9a-f]{12}>>>")


def _search_blocks(prompt: str) -> list[Secret]:
    """Search the blocks of a prompt between the lines that begin and end a quotation."""
    lines = prompt.split("\n")
    marks = [n for n, line in enumerate(lines) if line[:3] == "<<<" or line[-3:] == ">>>"]
    found, start, at = list[Secret](), 0, 0
    for mark in [*(n for n in marks if MARK_LINE.fullmatch(lines[n])), len(lines)]:
        block = "\n".join(lines[start:mark])
        found += [secret._replace(start=secret.start + at, end=secret.end + at) for secret in find_secrets(block)]
        at += len(block) + (1 if mark > start else 0) + (len(lines[mark]) + 1 if mark < len(lines) else 0)
        start = mark + 1
    return found


def _common_length(text: str, other: str) -> int:
    """Return how many leading characters two texts share."""
    low, high = 0, min(len(text), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if text.startswith(other[low:middle], low) else (low, middle - 1)
    return low


def mask_secrets(text: str, secrets: Sequence[Secret], *, margin: int = 0) -> str:
    """Return the text with the given secrets masked.

    Line breaks stay; in a diff so does the first column (`margin`).
    """
    parts, at = [], 0
    for secret in secrets:
        for start, end in _split_by_line(text, secret, margin):
            parts += [text[at:start], f"[redacted:{secret.kind}]"]
            at = end
    return "".join([*parts, text[at:]])


def line_number(text: str, secret: Secret) -> int:
    return text.count("\n", 0, secret.start) + 1


def _is_escaped(scan: Scan) -> bool:
    """Return whether a text may have other texts inside its strings, as JSON does."""
    return b'\\"' in scan.raw or (b"\\n" in scan.raw and scan.raw.lstrip()[:1] in (b"{", b"[", b'"'))


ESCAPE = re.compile(r"\\+([nrt\"/])")
ESCAPED = {"n": "\n", "r": "\r", "t": "\t"}


def _replace_escape(found: re.Match[str]) -> str:
    """Return the character and spaces; the spaces are outside of a quoted value."""
    blanks, char = " " * (len(found[0]) - 1), ESCAPED.get(found[1], found[1])
    is_closing = char == '"' and found.string[found.end() : found.end() + 1] in '" \t:,;.)]}>/\\=&|'
    return char + blanks if is_closing else blanks + char


def _split_by_line(text: str, secret: Secret, margin: int) -> Iterator[tuple[int, int]]:
    start = secret.start
    while (end := text.find("\n", start, secret.end)) >= 0:
        if end > start:
            yield start, end
        start = min(end + 1 + margin, secret.end)
    if secret.end > start:
        yield start, secret.end


def _merge_overlapping(secrets: Sequence[Secret]) -> list[Secret]:
    merged: list[Secret] = []
    for secret in secrets:
        if merged and secret.start < merged[-1].end:
            merged[-1] = merged[-1]._replace(end=max(merged[-1].end, secret.end))
        else:
            merged.append(secret)
    return merged


# Keys with a known format


def _find_known_keys(scan: Scan) -> Iterator[Secret]:
    words = ""
    for rule in _select_rules(scan.words):
        words = words or scan.words.decode("ascii")
        pattern = compile_key(rule.shape)
        if pattern.search(words):
            for match in pattern.finditer(scan.text):
                if not is_sample_key(match.group()):
                    yield Secret(rule.kind, *match.span())


def _select_rules(words: bytes) -> list[KeyRule]:
    """Return the rules with a hint in these words."""
    selected = []
    for rule in KEY_RULES:
        for hint in rule.hints:
            if hint in words:
                selected.append(rule)
                break
    return selected


# Private keys

# In lower case; the long ones are base64.
KEY_BLOCK_HINTS = (b"private key", b"putty-user-key-file-", b"ls0tls1crudjti", b"tfmwdextmunsvwrkvgl")
KEY_BLOCK_START = re.compile(
    r"-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----|---- BEGIN SSH2 (?:ENCRYPTED )?PRIVATE KEY ----|PuTTY-User-Key-File-\d:"
)
KEY_BLOCK_END = re.compile(r"-----END [A-Z0-9 ]{0,60}-{0,5}|---- END SSH2 [A-Z0-9 ]{0,40}-{0,4}")
BASE64 = re.compile(r"[A-Za-z0-9+/]{32,}")
# "-----BEGIN " in base64, once and twice
ENCODED_KEY_BLOCK = re.compile(
    rf"(?:LS0tLS1CRUdJTi|TFMwdExTMUNSVWRKVGl)[A-Za-z0-9+/=]{{20,}}(?:(?:\\n|{NEW_LINE}\"?)[A-Za-z0-9+/=]{{16,}}){{0,400}}"
)


def _find_key_blocks(scan: Scan) -> Iterator[Secret]:
    text = scan.text
    if scan.has(b"private key", b"putty-user-key-file-"):
        starts = list(KEY_BLOCK_START.finditer(text))
        nexts = [*(start.start() for start in starts[1:]), len(text)]
        for start, following in zip(starts, nexts, strict=False):
            reach = min(following, start.end() + MAX_KEY_BLOCK_CHARS)
            end = KEY_BLOCK_END.search(text, start.end(), reach)
            stop = end.end() if end else _find_key_end(text, start.end(), reach)
            if BASE64.search(text, start.end(), stop):
                yield Secret("private key", start.start(), stop)
    if b"LS0tLS1CRUdJTi" in scan.raw or b"TFMwdExTMUNSVWRKVGl" in scan.raw:
        for match in ENCODED_KEY_BLOCK.finditer(text):
            once = decode_base64(match[0][:160])
            if "PRIVATE KEY" in once or "PRIVATE KEY" in decode_base64(once):
                yield Secret("private key", *match.span())


def _find_key_end(text: str, start: int, reach: int) -> int:
    """Return where a key block without an END line stops."""
    stop = start
    for match in BASE64.finditer(text, start, reach):
        if match.start() - stop > 200:
            break
        stop = match.end()
    last_line = re.match(r"\r?\n.?[A-Za-z0-9+/]+={0,2}$", text[stop : stop + 200], re.MULTILINE)
    return stop + (last_line.end() if last_line else 0)


# Keys that continue on the next lines

WRAPPED_LINE = re.compile(
    rf"[\"']?[ \t]{{0,2}}[+.]?[ \t]?{NEW_LINE}[\"']?([A-Za-z0-9+/=_.-]{{4,200}})(?=[\"']?[,)]?[ \t]*\\?\r?(?:\n|$))"
)
MIN_WRAPPED_COLUMN = 60  # a line that is shorter was not wrapped


def _find_wrapped_end(text: str, secret: Secret, starts: set[int]) -> int:
    """Return the end of a secret, also if it was wrapped at the end of a long line."""
    end = secret.end
    if end - max(text.rfind("\n", 0, end), secret.start - 200) < MIN_WRAPPED_COLUMN or end - secret.start < 30:
        return end
    for _ in range(400):
        line = WRAPPED_LINE.match(text, end)
        if not line or line.start(1) in starts or not (re.search(r"\d", line[1]) or len(line[1]) >= MIN_WRAPPED_COLUMN):
            break
        end = line.end(1)
    return end


Finder = Callable[[Scan], Iterator[Secret]]
# Substrings in lower case without which a finder finds nothing. Keys with a known format are found by their words.
FINDERS: tuple[tuple[tuple[bytes, ...], Finder], ...] = (
    (KEY_BLOCK_HINTS, _find_key_blocks), ((b"://",), find_url_logins), (HEADER_HINTS, find_auth_headers), (LOGIN_HINTS, find_logins),
    (KUBERNETES_HINTS, find_kubernetes_secrets), (SETTING_STEMS, find_settings), (CALL_HINTS, find_calls), (BLOCK_HINTS, find_blocks),
)  # fmt: skip
