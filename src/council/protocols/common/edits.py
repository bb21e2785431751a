"""Edits of a text: each names the words that it replaces, as a model copies them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

WORD = re.compile(r"\w+")
EMPHASIS_END = re.compile(r"(?:\*{1,3}|_{1,3}|`)\Z")
EMPHASIS_START = re.compile(r"\*{1,3}|_{1,3}|`")


@dataclass(frozen=True, slots=True)
class EditedText:
    """A text after its edits. `problems` says for each edit, by its index, why it was not made."""

    text: str
    problems: dict[int, str]


def apply_edits(text: str, edits: Sequence[tuple[str, str]]) -> EditedText:
    """Replace the words of each edit, given as (find, replace). An edit whose place is not clear is left out."""
    problems: dict[int, str] = {}
    for number, (find, replace) in enumerate(edits):
        places = find_places(text, find)
        if len(places) != 1:
            count = f"occur {len(places)} times" if places else "are not in the text"
            problems[number] = f'the words "{find}" {count}'
            continue
        start, end = places[0]
        if text[start:end] == replace:
            problems[number] = f'the words "{find}" are replaced by the same words'
            continue
        text = f"{text[:start]}{replace}{text[end:]}"
    return EditedText(text, problems)


def find_places(text: str, find: str) -> list[tuple[int, int]]:
    """Return where words occur: exactly, else with other marks and spaces between them."""
    if not find.strip():
        return []
    exact = [match.span() for match in re.finditer(re.escape(find), text)]
    if exact:
        return exact
    words = WORD.findall(find)
    if not words:
        return []
    between = r"[^\w\n]*\s?[^\w\n]*"
    lead = find[: find.index(words[0])]
    tail = find[find.rindex(words[-1]) + len(words[-1]) :]
    before = "".join(rf"(?:{mark}[ \t]*)?" for mark in _list_marks(lead))
    after = "".join(rf"(?:[ \t]*{mark})?" for mark in _list_marks(tail))
    pattern = rf"{before}(?<!\w){between.join(map(re.escape, words))}(?!\w){after}"
    return [_include_emphasis(text, *match.span()) for match in re.finditer(pattern, text)]


def _list_marks(text: str) -> list[str]:
    """Return patterns of the marks before or after the words, which the text may lack."""
    return [re.escape(mark) for mark in text if not mark.isspace()]


def _include_emphasis(text: str, start: int, end: int) -> tuple[int, int]:
    """Return a place with the emphasis marks that it would cut in two: `**Upgrade** on` is taken from its first
    mark.
    """
    before = EMPHASIS_END.search(text[:start])
    if before and text[start:end].count(before[0]) % 2:
        start = before.start()
    after = EMPHASIS_START.match(text, end)
    if after and text[start:end].count(after[0]) % 2:
        end = after.end()
    return start, end
