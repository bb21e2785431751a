"""What the text of an answer is: a placeholder, a refusal, or an answer."""

from __future__ import annotations

import re

# Matches placeholders only; short answers such as "No." are valid.
PUNCTUATION = r"[\s!-/:-@\[-`{-~…–—]*"  # punctuation around words, or instead of them
PLACEHOLDER = re.compile(
    rf"{PUNCTUATION}"
    r"(?:todo|tbd|tba|fixme|n/?a|null|none|undefined|string|text|placeholder|lorem ipsum\b.*"
    r"|(?:(?:insert|enter|put|add) (?:your |the )?|your )(?:answer|text|response|reply|statement|analysis)(?: here)?)?"
    rf"{PUNCTUATION}",
    re.IGNORECASE | re.DOTALL,
)
MAX_PLACEHOLDER_CHARS = 200  # a longer text is a placeholder only if it has no word at all


def is_placeholder(text: str) -> bool:
    return (
        PLACEHOLDER.fullmatch(text) if len(text) < MAX_PLACEHOLDER_CHARS else re.fullmatch(PUNCTUATION, text)
    ) is not None
