"""Detect possible prompt injections in search results. Matches are marked, not dropped: a page may discuss injections.

Ordinary prose ("the system: a description", "JavaScript: The Good Parts", `eval()` by name, a Python session's
`>>> print(x)`) is not marked. A line that begins with "System:" is, because it cannot be told from a role header.
"""

from __future__ import annotations

import re
from urllib.parse import unquote

MAX_SCAN_CHARS = 4_000  # characters that are scanned
_SENTENCE_START = r"(?:^|[\n.!?;>\]}\"'*#|-]\s*)"  # start of a line or sentence

REASONS: dict[str, tuple[re.Pattern[str], ...]] = {
    "tells its reader to ignore instructions": (
        re.compile(
            r"\b(?:ignore|disregard|forget|override|bypass|do not follow)\b[^.\n]{0,40}\b(?:previous|prior|above|earlier|preceding|all|any|your|these|those|system)\b"
            r"[^.\n]{0,30}\b(?:instructions?|prompts?|rules|directions|guidelines|directives|messages?|context)\b",
            re.I,
        ),
        re.compile(r"\b(?:new|updated|real|actual) instructions?\s*:", re.I),
    ),
    "gives its reader another role": (
        re.compile(r"\byou are now (?:an? |the |my |acting|called|named|no longer|free\b|dan\b|in \w+ mode|unrestricted)", re.I),
        re.compile(r"\b(?:from now on|for the rest of this conversation),? (?:you|act|respond|answer|always|only)\b", re.I),
        re.compile(r"\b(?:act|behave|respond) as (?:if you (?:are|were)|an? (?:unrestricted|different|new|evil))\b", re.I),
        re.compile(_SENTENCE_START + r"(?:system|assistant|developer)(?: (?:prompt|message|note|override))?\s*:(?!:)", re.I),
        re.compile(r"<\|[a-z_]{2,30}\|>|\[/?INST\]|</?(?:system|assistant|instructions?)>", re.I),
    ),
    "asks for the prompt or the context": (
        re.compile(
            r"\b(?:reveal|show|print|repeat|output|tell|disclose|send|leak|exfiltrate|recite|give|write out)\b[^.\n]{0,40}"
            r"\b(?:system prompt|system message|your (?:\w+ )?(?:instructions|prompt|context|rules|secrets|api keys?)"
            r"|(?:hidden|initial|original) (?:prompt|instructions)|(?:prompt|instructions|text|words|conversation|everything) above)\b",
            re.I,
        ),
    ),
    "holds script": (
        re.compile(r"<\s*/?\s*(?:script|iframe|object|embed)\b|\bjavascript:(?=[^\s])|\bdata:text/html|\bon(?:error|load|click|mouseover)\s*=\s*[\"'\w]", re.I),
        re.compile(r"\b(?:eval|exec|Function|setTimeout|document\.write)\s*\(\s*[^\s)]"),
    ),
    "gives commands to run": (
        re.compile(r"\b(?:run|execute|paste|type in|enter) (?:the following|this|these)\b", re.I),
        re.compile(r"\brm\s+-(?:rf|fr|r\s+-f|f\s+-r)\b|\b(?:curl|wget)\b[^\n|]{1,200}\|\s*(?:sudo\s+)?(?:ba|z)?sh\b|\bmkfs\.|:\(\)\s*\{"),
        re.compile(r"\b(?:call|invoke|use) your \S{1,40}(?: \S{1,40})? ?tools?\b|</?(?:tool_call|function_call|tool_use)\b", re.I),
    ),
    "holds a fence": (
        re.compile(r"<<<|>>>(?! (?:import|from|print|def|class|for|if|with|[a-zA-Z_][\w.]*\s*[=(\[]|[\d\"'(\[{]))"),
    ),
}  # fmt: skip
BASE64 = re.compile(r"[A-Za-z0-9+/_-]{64,}={0,2}")
MIN_PART_CHARS = 20  # average characters between slashes and dashes of encoded text; path names are shorter


def scan_text(text: str) -> list[str]:
    """Return the reasons not to trust this text, each once."""
    seen = text[:MAX_SCAN_CHARS]
    found = [reason for reason, patterns in REASONS.items() if any(pattern.search(seen) for pattern in patterns)]
    return found + ["holds encoded text"] * any(map(_is_encoded, BASE64.findall(seen)))


def scan_url(url: str) -> list[str]:
    """Return the same reasons for the words of a URL, which is shown too."""
    words = re.sub(r"[-_+./?=&]+", " ", unquote(url))
    return [reason for reason in list(REASONS)[:3] if any(pattern.search(words) for pattern in REASONS[reason])]


def _is_encoded(run: str) -> bool:
    """Return whether a long run mixes upper case, lower case and digits; hex hashes and paths do not count."""
    parts = len(re.split(r"[-_/]", run))
    return all(re.search(kind, run) for kind in ("[a-z]", "[A-Z]", r"\d")) and len(run) / parts >= MIN_PART_CHARS
