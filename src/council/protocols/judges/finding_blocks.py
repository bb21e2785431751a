"""Findings as blocks for a reader: at the terminal, and in Markdown. Those that several judges hold come first."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePosixPath
from typing import NamedTuple

from council.engine.layout import fence_code, format_code, format_disputed, format_location_caveat, list_holders
from council.engine.records import FindingRow
from council.protocols.judges.findings import NO_FIX, NO_REF, NO_WHY
from council.text_cleanup import (
    clean,
    first_sentence,
    neutralize_commands,
    next_fence,
    quote_tail_lines,
    shorten_sentences,
    single_line,
    squash,
)
from council.wording import Wording

MAX_DESCRIPTION_CHARS = 6_000  # a longer one ends after a sentence
MAX_FIX_LINES = 200
MAX_TITLE_CHARS = 300
MAX_BLOCKS = 10  # at the terminal; further minor findings are only counted
PROSE_INDENT = "  "
CODE_INDENT = " " * 6
DETAIL_SIGN = "·"  # starts a line that is less important: who found it
TITLE_SIGN = "──"
CODE_SIGN = re.compile(r"[={};]|\w\(|^\W|->|::|:$|\w\.\w+\.\w|^\s{2,}\S")
PROSE_START = re.compile(r"(?:[-*•]\s+|\d+[.)]\s+)?[A-Z][a-z']*,?\s+[`\w(\"'/]")
FENCE_KIND = re.compile(r"[\w+#-]{1,20}")
SUFFIX_KIND = re.compile(r"\.[a-z][a-z0-9]{0,4}")
# What would start a heading, a table, a rule, a fence or a command of a CI system in a line of Markdown.
BLOCK_START = re.compile(r"[#|]|::|[-*_=|:\s]{2,}$|`{3}|~{3}")


class TextBlock(NamedTuple):
    """A part of a model's text: prose, or code with its line breaks."""

    text: str
    is_code: bool
    kind: str = ""  # the language that the model named


def split_code(text: str, *, is_fix: bool = False) -> list[TextBlock]:
    """Split a text at its code fences. A fix without fences is code if most of its lines look like code."""
    blocks: list[TextBlock] = []
    held: list[str] = []
    fence = kind = ""

    def flush(is_code: bool) -> None:
        body = "\n".join(held).strip("\n").rstrip()
        if body.strip():
            blocks.append(TextBlock(body, is_code or (is_fix and looks_like_code(body)), kind))
        held.clear()

    for line in clean(text).strip("\n").split("\n"):
        was_open, fence = fence, next_fence(line, fence)
        if bool(was_open) == bool(fence):
            held.append(line)
            continue
        flush(bool(was_open))
        named = FENCE_KIND.fullmatch(line.strip().lstrip("`~").strip()) if fence else None
        kind = named[0] if named else ""
    flush(bool(fence))
    return blocks


def looks_like_code(text: str) -> bool:
    """Return whether most lines of a text are code: `if exp < now:` is, "Compare `exp` with the clock." is not."""
    lines = [line for line in text.split("\n") if line.strip()]
    return sum(map(_is_code_line, lines)) * 2 > len(lines)


def _is_code_line(line: str) -> bool:
    if not CODE_SIGN.search(line.rstrip()):
        return False
    return not PROSE_START.match(line.strip()) or line.rstrip().endswith((";", "{", "}"))


# Facts of a row


def is_shared(row: FindingRow) -> bool:
    return len(list_holders(row)) > 1


def sort_for_reader(rows: Iterable[FindingRow]) -> list[FindingRow]:
    """Return the findings of several judges first; otherwise in the order of the report, worst first."""
    return sorted(rows, key=lambda row: not is_shared(row))


def select_shown(rows: Sequence[FindingRow]) -> tuple[list[FindingRow], int]:
    """Return the findings that are shown at the terminal, and the number of minor ones that are left out."""
    minor = [row for row in rows if row["severity"] == "minor"]
    hidden = {id(row) for row in minor[max(0, MAX_BLOCKS - len(rows) + len(minor)) :]}
    return [row for row in rows if id(row) not in hidden], len(hidden)


def list_finder_ids(row: FindingRow) -> list[str]:
    """Return the ids under which judges found it, without judges that only support it or do not count."""
    said = row.get("by_judge") or []
    supporters = {one["seat"] for one in said if one.get("supports")}
    ids = [str(one["id"]) for one in said if one.get("id") and one["seat"] in row["found_by"]]
    return ids or [seat for seat in row["found_by"] if seat not in supporters]


def format_place(row: FindingRow) -> str:
    """Format location and caveat: `src/no.py:9 (not found in the packet)`."""
    location = str(row["location"] or "")
    return f"{single_line(location, 200)}{format_location_caveat(row)}" if location else ""


def find_title(row: FindingRow) -> str:
    """Return the defect in one sentence: the clerk's words for a finding of several judges; else empty."""
    title = single_line(str(row.get("defect") or ""), MAX_TITLE_CHARS)
    return title if is_shared(row) and squash(title) != squash(first_sentence(row["description"])) else ""


def find_fix(row: FindingRow) -> list[TextBlock]:
    """Return what to do: the fix, after the recommendation if the fix is code alone."""
    fix = str(row.get("fix") or "")
    blocks = split_code(fix, is_fix=True) if fix.strip() and fix != NO_FIX else []
    advice = str(row.get("recommendation") or "").strip()
    if advice and advice != fix.strip() and all(block.is_code for block in blocks):
        blocks = [*split_code(advice, is_fix=True), *blocks]
    return [_limit_lines(block) for block in blocks]


def _limit_lines(block: TextBlock) -> TextBlock:
    lines = block.text.split("\n")
    return block if len(lines) <= MAX_FIX_LINES else block._replace(text="\n".join([*lines[:MAX_FIX_LINES], "…"]))


# At the terminal


def format_findings(rows: Sequence[FindingRow], wording: Wording, report_command: str) -> list[str]:
    """Format the findings as blocks of lines. Lines of prose are not wrapped; lines of code keep their breaks."""
    shown, hidden = select_shown(sort_for_reader(rows))
    places = {str(row.get("id")): str(row["location"] or "") for row in rows}
    shared = [row for row in shown if is_shared(row)]
    single = [row for row in shown if not is_shared(row)]
    titles = _format_titles(shared, single, hidden, wording) if max((row["of"] for row in rows), default=0) > 1 else {}
    lines: list[str] = []
    for key, part in (("shared", shared), ("single", single)):
        for n, row in enumerate(part):
            title = [titles[key], ""] if not n and key in titles else []
            lines += [*([""] if lines else []), *title, *_format_block(row, places, wording)]
    if hidden:
        lines += ["", wording.heading("more_minor", number=hidden, count=hidden, command=report_command)]
    return lines


def _format_titles(
    shared: Sequence[FindingRow], single: Sequence[FindingRow], hidden: int, wording: Wording
) -> dict[str, str]:
    counts = {"shared": len(shared), "single": len(single) and len(single) + hidden}
    return {
        key: f"{TITLE_SIGN} {wording.heading(f'{key}_title', number=count, count=count)}"
        for key, count in counts.items()
        if count
    }


def _format_block(row: FindingRow, places: Mapping[str, str], wording: Wording) -> list[str]:
    count = wording.heading("count_of", count=len(list_holders(row)), total=row["of"])
    head = "  ".join(filter(None, [single_line(row["severity"]), format_place(row), count]))
    title = find_title(row)
    lines = [head, *([*_format_prose(title, MAX_TITLE_CHARS), ""] if title else [])]
    lines += _format_prose(row["description"], MAX_DESCRIPTION_CHARS)
    label = f"{wording.heading('fix')}{wording.colon}"
    fix = find_fix(row)
    lines += [""] if any(block.is_code for block in fix) else []
    for n, block in enumerate(fix):
        if block.is_code:
            lines += [*([] if n else [f"{PROSE_INDENT}{label.rstrip()}"]), *_indent_code(block.text)]
        else:
            lines += _format_prose(block.text, MAX_DESCRIPTION_CHARS, label if not n else "")
    return [*lines, *(f"{PROSE_INDENT}{DETAIL_SIGN} {line}" for line in list_details(row, places, wording))]


def _format_prose(text: str, limit: int, label: str = "") -> list[str]:
    lines: list[str] = []
    for block in split_code(shorten_sentences(text, limit)):
        if block.is_code:
            lines += _indent_code(block.text)
            continue
        quoted = quote_tail_lines(block.text)
        lines += [f"{PROSE_INDENT}{single_line(line, limit)}" for line in quoted.split("\n") if line.strip()]
    if label and lines:
        lines[0] = f"{PROSE_INDENT}{label}{lines[0].strip()}"
    return lines


def _indent_code(text: str) -> list[str]:
    return [f"{CODE_INDENT}{line.expandtabs(4).rstrip()}".rstrip() for line in text.split("\n")]


def list_details(
    row: FindingRow, places: Mapping[str, str], wording: Wording, personas: Mapping[str, str] | None = None
) -> list[str]:
    """Return who found and who holds a finding, who disputes it, and what it may be the same as, one line each.

    `personas` maps seats to the names under which they are shown before their ids.
    """
    finders = list_finder_ids(row)
    seats = {name.partition(".F")[0] for name in finders}
    found, others = (
        wording.comma.join(_format_judge(name, personas or {}) for name in names)
        for names in (finders, [seat for seat in list_holders(row) if seat not in seats])
    )
    parts = [
        wording.heading("found_by_judges", judges=found),
        wording.heading("also_held_by", judges=others) if others else "",
        wording.heading("grouped_by_clerk") if row.get("grouped_by") == "clerk" and is_shared(row) else "",
        format_disputed(row) if row["disputed"] else "",
    ]
    lines = [wording.semicolon.join(filter(None, parts))]
    if row.get("possibly_same"):
        names = wording.comma.join(_format_near(str(one), places, wording) for one in row["possibly_same"])
        lines.append(wording.heading("possibly_same_as", findings=names))
    return lines


def _format_judge(name: str, personas: Mapping[str, str]) -> str:
    """Format a judge or the id of its finding: `judge-1.F2`, `Red (attacker) [judge-attacker.F1]`."""
    persona = personas.get(name.partition(".F")[0])
    return f"{persona} [{single_line(name)}]" if persona else single_line(name)


def _format_near(name: str, places: Mapping[str, str], wording: Wording) -> str:
    place = single_line(places.get(name, ""), 120)
    return f"{single_line(name)}{wording.enclose(place) if place else ''}"


# In Markdown


def render_markdown_block(
    row: FindingRow, places: Mapping[str, str], wording: Wording, personas: Mapping[str, str]
) -> str:
    """Render a finding: a heading, the description, the fix, the cause, who found it, and every judge's own words."""
    place = f"{format_code(row['location'])}{format_location_caveat(row)}" if row["location"] else ""
    kind = " ".join(filter(None, [row["severity"], row.get("category") or ""]))
    count = wording.heading("count_of", count=len(list_holders(row)), total=row["of"])
    parts = [f"#### {' · '.join(filter(None, [single_line(kind), place, count]))}"]
    if title := find_title(row):
        parts.append(f"**{_render_prose(title).replace('*', '')}**")
    parts += _render_text(row["description"])
    parts += _render_fix(row, wording)
    for key, none in (("why", NO_WHY), ("ref", NO_REF)):
        text = str(row.get(key) or "")
        if text and text not in (none, row["location"]):
            name = wording.heading("reference" if key == "ref" else key)
            body = "\n\n".join(_render_text(text))
            parts.append(f"**{name}{wording.colon.rstrip()}** {body}")
    parts.append("  \n".join(f"*{line}*" for line in list_details(row, places, wording, personas)))
    return "\n\n".join(parts)


def _render_fix(row: FindingRow, wording: Wording) -> list[str]:
    parts: list[str] = []
    label = f"**{wording.heading('fix')}{wording.colon.rstrip()}**"
    for n, block in enumerate(find_fix(row)):
        if block.is_code:
            parts += [*([] if n else [label]), _fence(block, guess_kind(row))]
        else:
            text = _render_prose(block.text)
            parts.append(text if n else f"{label} {text}")
    return parts


def _fence(block: TextBlock, kind: str) -> str:
    """Fence code, without lines that a CI system would run if it printed the file."""
    return fence_code(neutralize_commands(block.text), block.kind or kind)


def guess_kind(row: FindingRow) -> str:
    """Return the language of a code block: the suffix of the finding's file."""
    suffix = PurePosixPath(str(row.get("path") or row["location"] or "").partition(":")[0]).suffix
    return suffix[1:] if SUFFIX_KIND.fullmatch(suffix) else "text"


def _render_text(text: str) -> list[str]:
    blocks = split_code(shorten_sentences(text, MAX_DESCRIPTION_CHARS))
    return [_fence(block, "text") if block.is_code else _render_prose(block.text) for block in blocks]


def _render_prose(text: str) -> str:
    """Return prose with its line breaks; no line starts a heading, a table, a rule or a code block."""
    lines = (single_line(line, MAX_DESCRIPTION_CHARS) for line in quote_tail_lines(text).split("\n"))
    escaped = (f"\\{line}" if BLOCK_START.match(line) else line for line in lines)
    return re.sub(r"\n{2,}", "\n\n", "\n".join(escaped)).strip()
