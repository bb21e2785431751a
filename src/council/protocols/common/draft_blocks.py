"""Blocks of a draft: headings, list items, paragraphs and tables, with their marks of emphasis read or removed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from council.protocols.common import flag_words as w
from council.protocols.common.flag_words import compile_words

MAX_READ_CHARS = 200_000  # of a draft


@dataclass(frozen=True, slots=True)
class Block:
    """A heading with its level, a list item, a paragraph, or a table with its rows of cells."""

    kind: Literal["heading", "item", "text", "table"]
    text: str = ""
    level: int = 0
    rows: tuple[tuple[str, ...], ...] = ()


SEVERE = compile_words(rf"(?<![\w.]){w.SEVERE}(?!\w)")
FENCE = re.compile(r"^\s*(?:>\s*)*(?:`{3,}|~{3,})\s*([\w+-]*)")
TEXT_FENCES = ("", "markdown", "md", "text", "txt")  # others hold code, where FATAL is the level of a log
HEADING = re.compile(r"^\s*(#{1,6})\s+(.*?)\s*#*$")
ITEM = re.compile(r"^\s*(?:[-*+•▪‣◦·]|\(?\d{1,3}[.)]|[a-z]\))\s+(.*)$")
CHECKBOX = re.compile(r"^\[([ xX])\]\s+")
DONE = re.compile(r"^(?:\[[xX]\]\s|✅|✔|☑)")
RULE = re.compile(r"^\s*(?:[-*_=]\s*){3,}$")
TABLE_LINE = re.compile(r"^\s*\|.*\||^[^|]+\|[^|]+\|")
TABLE_RULE = re.compile(r"^[\s|:+-]+$")
STRUCK = compile_words(r"~~.*?~~|<del>.*?</del>|<s>.*?</s>")
EMPHASIS = compile_words(r"(\*{1,3}|_{2,3}|`|<b>|<strong>)([^*_`<>]{1,80}?)(?:\*{1,3}|_{2,3}|`|</b>|</strong>)(\s*)")
WORD = re.compile(r"\w")
WORD_BEFORE = re.compile(r"\w\s*$")
MAX_JOINED_CHARS = 4_000  # of one paragraph
LEVEL = f"(?:{w.SEVERE}|{w.IMPORTANT}|{w.MINOR})"
NAMED_FIELD = re.compile(r"^[^\W\d][\w ]{0,24}\s?:\s")  # "Status: open"
ENDED = compile_words(rf"[.!?:…]\W*$|^\W*{LEVEL}(?:\s+{w.PROBLEM})?\W*$")  # a sentence, or a label alone
LEVEL_LABEL = compile_words(rf"^\W*{LEVEL}(?!\w)(?:\s+{w.PROBLEM})?\s*(?:\([^)]*\)\s*)?(?:[:\]–—|)]|-\s|$)")


def split_blocks(text: str) -> list[Block]:
    """Return the blocks of a text, without code, struck-out words and items that are ticked off.

    Lines of a paragraph are joined.
    """
    blocks: list[Block] = []
    is_joinable = False  # the next line of text continues the last block
    for line in drop_code(text):
        line = STRUCK.sub(" ", line)
        was_joinable, is_joinable = is_joinable, False
        if not line.strip() or RULE.match(line):
            continue
        if TABLE_LINE.match(line):
            _add_table_line(blocks, line)
        elif heading := HEADING.match(line):
            blocks.append(Block("heading", _read_emphasis(heading[2]), len(heading[1])))
        elif item := ITEM.match(line):
            if is_joinable := not DONE.match(item[1]):
                blocks.append(Block("item", _read_emphasis(CHECKBOX.sub("", item[1]))))
        else:
            _add_text_line(blocks, _read_emphasis(line.strip()), was_joinable)
            is_joinable = True
    return blocks


def drop_code(text: str) -> Iterator[str]:
    """Return the lines outside fences of code, without marks of quotation. A fence of prose is read."""
    fence = None  # label of the open fence
    for line in text[:MAX_READ_CHARS].splitlines():
        if found := FENCE.match(line):
            fence = found[1].lower() if fence is None else None
        elif fence is None or fence in TEXT_FENCES:
            yield re.sub(r"^\s*(?:>\s?)+", "", line)


def _add_text_line(blocks: list[Block], words: str, is_joinable: bool) -> None:
    starts = LEVEL_LABEL.match(words) or NAMED_FIELD.match(words)
    last = blocks[-1].text if is_joinable else ""
    if is_joinable and not starts and len(last) < MAX_JOINED_CHARS and not ENDED.search(last):
        blocks[-1] = replace(blocks[-1], text=f"{last} {words}")
    else:
        blocks.append(Block("text", words))


def _add_table_line(blocks: list[Block], line: str) -> None:
    if TABLE_RULE.match(line):
        return
    cells = tuple(_read_emphasis(cell.strip()) for cell in line.strip().strip("|").split("|"))
    earlier = blocks.pop().rows if blocks and blocks[-1].kind == "table" else ()
    blocks.append(Block("table", rows=(*earlier, cells)))


def _read_emphasis(text: str) -> str:
    """Remove emphasis.

    A label that is nothing but emphasis gets a colon, so that `**Critical** no backup` is read as a label.
    """

    def label(found: re.Match[str]) -> str:
        words, space = found[2], found[3]
        is_severity = SEVERE.fullmatch(words.strip(" []()")) is not None
        is_first = not WORD_BEFORE.search(text, max(0, found.start() - 5), found.start())
        has_words_after = bool(space) and WORD.match(text, found.end()) is not None
        return f"{words}:{space}" if is_severity and is_first and has_words_after else words + space

    return EMPHASIS.sub(label, text).replace("**", "")


# Sentences

SENTENCE_END = re.compile(r"(?<=[.!?])[\"')\]»”]*\s+(?=[^a-zà-ÿ\s])|;\s+|\s+[·•]\s+")


def split_sentences(text: str) -> list[str]:
    """Return the sentences of a block; a semicolon ends one too."""
    return [one.strip() for one in SENTENCE_END.split(text) if one.strip()]
