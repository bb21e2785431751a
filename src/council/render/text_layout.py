"""Layout of text on a terminal: width, cutting, wrapping, table columns, rows of a view, and ASCII."""

from __future__ import annotations

import os
import re
import shutil
import unicodedata
from collections.abc import Iterable, Sequence
from typing import TextIO

ELLIPSIS = "…"
DUMB_TERMINALS = ("dumb", "unknown")
MIN_WIDTH = 20  # columns; a narrower terminal breaks the lines itself
_TOKEN = re.compile(r"\s*\S+")  # a word and the space before it
_FIRST_COLUMN = re.compile(r"\s*\S.*?\s{2,}(?=\S)|\s*[!>*-] ")  # of a line with columns, or the sign of a list item
_FENCE = re.compile(r"\s{0,3}(`{3,}|~{3,})")


def terminal_size(stream: TextIO) -> tuple[int, int]:
    """Return the columns and lines of the terminal behind a stream, or of the environment if it is none."""
    try:
        columns, lines = os.get_terminal_size(stream.fileno())
    except (OSError, ValueError, AttributeError):
        columns, lines = shutil.get_terminal_size()
    return max(MIN_WIDTH, columns or 80), lines or 24


def is_drawable(stream: TextIO | None) -> bool:
    """Return whether a stream is a terminal on which text can be coloured and drawn again."""
    return stream is not None and stream.isatty() and os.environ.get("TERM") not in DUMB_TERMINALS


def needs_ascii(stream: TextIO) -> bool:
    """Return whether the encoding of a stream lacks the symbols of the views."""
    return not (stream.encoding or "utf-8").lower().startswith("utf")


def fit_lines(text: str, stream: TextIO, *, ascii: bool = False) -> str:
    """Return lines that are wrapped at their words for the terminal behind a stream; without one, as they are."""
    text = to_ascii(text) if ascii else text
    return "\n".join(wrap_lines(text, terminal_size(stream)[0])) if is_drawable(stream) else text


def text_width(text: str) -> int:
    """Return the number of terminal columns of a text."""
    return len(text) if text.isascii() else sum(map(_char_width, text))


def _char_width(char: str) -> int:
    if unicodedata.combining(char) or unicodedata.category(char) in ("Cf", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def _is_wider(text: str, width: int) -> bool:
    """Return whether a text has more columns than this. Reads no more of it than needed."""
    if text.isascii():
        return len(text) > width
    taken = 0
    for char in text:
        taken += _char_width(char)
        if taken > width:
            return True
    return False


def split_at(text: str, width: int) -> tuple[str, str]:
    """Split a text after at most this many columns; the first part has at least one character."""
    taken = 0
    for place, char in enumerate(text):
        taken += _char_width(char)
        if taken > width and place:
            return text[:place], text[place:]
    return text, ""


def cut(text: str, width: int, mark: str = ELLIPSIS) -> str:
    """Cut the end of a text that is too wide, and mark the cut."""
    if text_width(text) <= width:
        return text
    return split_at(text, width - len(mark))[0].rstrip() + mark if width > len(mark) else mark[: max(0, width)]


def cut_words(text: str, width: int, mark: str = ELLIPSIS) -> str:
    """Cut the end of a text that is too wide, after a word if possible, and mark the cut."""
    if text_width(text) <= width or width <= len(mark) + 1:
        return cut(text, width, mark)
    kept, rest = split_at(text, width - len(mark) - 1)
    words = kept if rest[:1].isspace() else kept.rpartition(" ")[0]
    return f"{words.rstrip()} {mark}" if words.strip() else cut(text, width, mark)


def cut_start(text: str, width: int, mark: str = ELLIPSIS) -> str:
    """Cut the start of a text that is too wide, at a word if possible, and mark the cut."""
    if text_width(text) <= width:
        return text
    if width <= len(mark):
        return mark[: max(0, width)]
    kept = split_at(text[::-1], width - len(mark))[0][::-1]
    is_word_start = text[: len(text) - len(kept)][-1:].isspace() or kept[:1].isspace()
    words = kept if is_word_start else kept.partition(" ")[2]
    return mark + (words or kept).lstrip()


def wrap(text: str, width: int, indent: int = 0) -> list[str]:
    """Break one line at its spaces, later lines indented; a longer word is split, after a / or - if possible."""
    width = max(1, width)
    start = " " * min(indent, width // 2)
    lines: list[str] = []
    line = ""
    for token in _TOKEN.findall(text.rstrip()):  # spaces at the end would take quadratic time
        if text_width(line) + text_width(token) <= width:
            line += token
            continue
        word = token.lstrip()
        if line.strip():
            lines.append(line)
            line = start
        elif not lines:
            room = width - text_width(word)  # a word that fits without the indent is not split for it
            kept = min(width // 2, room) if room >= 0 else width // 2
            line = token[: len(token) - len(word)][:kept]  # the indent of the text
        while _is_wider(word, width - text_width(line)):
            head, word = _split_word(word, width - text_width(line))
            lines.append(line + head)
            line = start
        line += word
    return [*lines, line]


def _split_word(word: str, width: int) -> tuple[str, str]:
    """Split a word that is too wide after its last / or - that fits, else at the width."""
    head, rest = split_at(word, width)
    place = max(head.rfind("/"), head.rfind("-")) + 1
    return (word[:place], word[place:]) if place > 1 else (head, rest)


def last_blocks(text: str, limit: int) -> str:
    """Return the last blocks of Markdown with at most `limit` characters, or the last block. No code block is split."""
    start = place = 0
    fence = ""
    for line in text.splitlines(keepends=True):
        mark = _FENCE.match(line)
        if mark and not fence:
            fence = mark[1]
        elif mark and mark[1].startswith(fence):
            fence = ""
        place += len(line)
        if not fence and not line.strip() and text[place:].strip():
            start = place
            if len(text) - start <= limit:
                break
    return text if len(text) <= limit else text[start:]


def hanging_indent(line: str) -> int:
    """Return the indent of the later lines of a line with columns or a sign: `critical   text`, `! text`."""
    first = _FIRST_COLUMN.match(line.rstrip())
    return text_width(first[0]) if first else len(line) - len(line.lstrip())


def wrap_lines(text: str, width: int) -> list[str]:
    """Break every line of a text at its spaces, with a hanging indent under its first column."""
    return [part for line in text.split("\n") for part in wrap(line, width, min(hanging_indent(line), width // 3))]


def fit_columns(natural: Sequence[int], longest_word: Sequence[int], room: int) -> list[int] | None:
    """Return the widths of table columns that fit into `room`, without the gaps; None if a word would be split.

    The widest columns are reduced to a common width, and none below its longest word.
    """
    if sum(longest_word) > room:
        return None
    limits = range(max(natural, default=0), -1, -1)
    columns = list(zip(natural, longest_word, strict=True))
    candidates = ([max(word, min(width, limit)) for width, word in columns] for limit in limits)
    widths = next(one for one in candidates if sum(one) <= room)
    for place in sorted(range(len(widths)), key=lambda n: natural[n] - widths[n], reverse=True):
        widths[place] += min(natural[place] - widths[place], 1, room - sum(widths))  # what the common width leaves over
    return widths


def share_rows(room: int, *wanted: int) -> list[int]:
    """Return the rows of each part of a view: earlier parts get theirs first."""
    shares = []
    for rows in wanted:
        shares.append(max(0, min(rows, room)))
        room -= shares[-1]
    return shares


def count_rows(widths: Iterable[int], columns: int, *, reflows: bool) -> int:
    """Return the rows of drawn lines after a resize. Most terminals break lines that are too wide; others cut."""
    return sum(max(1, -(-width // max(1, columns))) if reflows else 1 for width in widths)


def find_hidden(widths: Sequence[int], columns: int, visible: int, *, reflows: bool) -> list[int]:
    """Return the widths of the lines above the last `visible` rows, with the hidden part of a cut one."""
    hidden = list(widths)
    while hidden and visible > 0:
        visible -= (rows := count_rows(hidden[-1:], columns, reflows=reflows))
        last = hidden.pop()
        if visible < 0:
            hidden.append(min(last, (rows - (rows + visible)) * columns))
    return hidden


# ASCII

_ASCII_FORMS = str.maketrans(
    {
        "—": "-", "–": "-", "‐": "-", "‑": "-", "−": "-", "…": "...", "‘": "'", "’": "'", "‚": ",", "′": "'", "“": '"', "”": '"',
        "„": '"', "«": '"', "»": '"', "→": "->", "←": "<-", "↔": "<->", "⇒": "=>", "≤": "<=", "≥": ">=", "≠": "!=", "≈": "~",
        "×": "x", "÷": "/", "⁄": "/", "·": "-", "•": "*", "▪": "*", "✓": "+", "✔": "+", "✗": "x", "✘": "x", "▸": ">", "▌": "|", "─": "-",
        "━": "-", "│": "|", "█": "#", "░": ".", "€": "EUR", "£": "GBP", "ß": "ss", "æ": "ae", "Æ": "AE", "ø": "o", "Ø": "O", "ł": "l",
        "Ł": "L", "đ": "d", "Đ": "D", "©": "(c)", "®": "(R)", "°": " deg", "§": "section ",
    }
)  # fmt: skip


def to_ascii(text: str) -> str:
    """Return the text in ASCII: the usual replacement of each character, or `?`."""
    if text.isascii():
        return text
    plain = unicodedata.normalize("NFKD", text).translate(_ASCII_FORMS)
    kept = (char for char in plain if char.isascii() or not unicodedata.combining(char))
    return "".join(char if char.isascii() else "?" for char in kept)
