"""The packet as a seat reads it: plain blocks under headings, the changes first, every line of code with its number.

Each line of foreign text begins with its number, a bar or blanks, so that none of them looks like a heading.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from council.packet_size import list_added_files
from council.text_cleanup import LINE_ENDS
from council.types import DIFF_SCOPE, LINE_BREAK, Packet, PacketFile, format_elision
from council.unified_diff import FileDiff, parse_diff

FILE_HEADINGS = {
    "": "Files",
    "definitions": "The changed definitions",
    "callers": "Callers of what is changed",
    "tests": "Tests that name what is changed",
    "types": "Types and base classes that the changed code uses",
    "rest": "The rest of the changed files",
}
MAX_LISTED = 100  # paths that are named as not shown
SILENT_ROWS = ("diff --git ", "index ", "--- ", "+++ ", "similarity index", "dissimilarity index", "rename to ")
STATES = {
    "new file mode": "new file",
    "deleted file mode": "deleted",
    "rename from ": "renamed from",
    "copy from ": "copied from",
}


def render_packet(packet: Packet, task: str) -> str:
    """Return the packet as plain text: the changes, what is judged, what helps to judge it, and what is missing."""
    added = list_added_files(packet)
    files = [file for file in packet.files if file not in added]
    named = [file for file in files if not file.part]
    blocks = [
        *_list_target(packet, task),
        *([] if packet.diff else _list_files("Files", named)),
        *_list_changes(packet.diff, {file.path: file for file in added}),
        *_list_lines("Commits, newest first", map(_indent_rest, packet.commits)),
        *_list_files("Rules of the project", [file for file in files if file.part == "rules"]),
        *_list_files(
            "Specification",
            [PacketFile(packet.spec_source or "given with the question", packet.spec)] if packet.spec else [],
        ),
        *_list_lines("Decisions already taken", (f"- {_indent_rest(decision)}" for decision in packet.prior_decisions)),
        *_list_lines("Environment", (f"    {_join_lines(line)}" for line in _split_lines(packet.environment))),
        *_list_lines(
            "Attachments, sent with this request",
            (f"- {_join_lines(one.path)} ({one.media_type})" for one in packet.attachments),
        ),
    ]
    changed = _list_shown_lines(packet.diff)
    for part, heading in FILE_HEADINGS.items():
        if part or packet.diff:
            blocks += _list_files(heading, [file for file in files if file.part == part], changed)
    blocks += _list_missing(packet)
    return "\n\n".join(blocks)


def _list_target(packet: Packet, task: str) -> Iterator[str]:
    lines = [f"Target: {_join_lines(packet.target)}"] if packet.target else []
    if packet.diff and task == "validate":
        lines.append(DIFF_SCOPE)
    if lines:
        yield "\n".join(lines)


# Changes


def _list_changes(diff: str, added: dict[str, PacketFile]) -> Iterator[str]:
    sections = parse_diff(diff)
    if sections:
        yield "## Changes"
    for section in sections:
        yield "\n".join(_render_section(section, added.get(section.path) if section.is_listed else None))


def _render_section(section: FileDiff, added: PacketFile | None) -> Iterator[str]:
    yield _format_heading(section.path or "diff", _describe_section(section))
    for row in section.head:
        if row.strip() and not row.startswith((*SILENT_ROWS, *STATES)):
            yield f"| {_join_lines(row)}"
    if added:
        yield from number_file(added, mark=" + |")
    for hunk in section.hunks:
        yield _join_lines(hunk.header)
        lines = hunk.list_lines()
        width = len(str(max((line.number for line in lines), default=0)))
        yield from (f"{line.number:>{width}} {line.sign} | {_join_lines(line.text)}" for line in lines)


def _describe_section(section: FileDiff) -> str:
    for row in section.head:
        for start, state in STATES.items():
            if row.startswith(start):
                name = row[len(start) :] if start.endswith("from ") else ""
                return f"{state} {_join_lines(name)}".strip()
    return ""


# Files and other texts


NO_LINES: Mapping[str, frozenset[int]] = {}


def _list_shown_lines(diff: str) -> dict[str, frozenset[int]]:
    """Return the lines of each new file that the diff shows."""
    found: dict[str, set[int]] = {}
    for section in parse_diff(diff):
        lines = (line for hunk in section.hunks for line in hunk.list_lines())
        found.setdefault(section.path, set()).update(line.number for line in lines if line.sign != "-")
    return {path: frozenset(numbers) for path, numbers in found.items()}


def _list_files(
    heading: str, files: Sequence[PacketFile], changed: Mapping[str, frozenset[int]] = NO_LINES
) -> Iterator[str]:
    if files:
        yield f"## {heading}"
    for file in files:
        rows = number_file(file, changed.get(file.path, frozenset()))
        yield "\n".join([_format_heading(file.path, _join_lines(file.reason)), *rows])


def number_file(file: PacketFile, changed: frozenset[int] = frozenset(), mark: str = "|") -> Iterator[str]:
    """Yield the lines of a file with their numbers, and a line for each part that is left out or is in the changes."""
    width = _measure_numbers(file)
    for block in file.list_blocks():
        if isinstance(block, tuple):
            is_above = changed.issuperset(range(block[0], block[1] + 1))
            elision = format_elision(*block)
            yield elision.replace(" not shown", ": see the changes") if is_above else elision
        else:
            yield from (f"{number:>{width}}{mark} {_join_lines(text)}" for number, text in block)


def _measure_numbers(file: PacketFile) -> int:
    rows = file.number_lines()
    return len(str(rows[-1][0])) if rows else 1


def _format_heading(path: str, about: str) -> str:
    return f"### {_join_lines(path)} ({about})" if about else f"### {_join_lines(path)}"


def _list_lines(heading: str, lines: Iterable[str]) -> Iterator[str]:
    """Yield the block of these lines, if there are any."""
    if listed := list(lines):
        yield "\n".join([f"## {heading}", *listed])


def _list_missing(packet: Packet) -> Iterator[str]:
    """Yield the list of what the seat does not see, each with its reason."""
    reasons = {item.path: item.why for item in packet.skipped}
    listed = [f"- {_join_lines(path)}: {_join_lines(why)}" for path, why in list(reasons.items())[:MAX_LISTED]]
    if len(reasons) > MAX_LISTED:
        listed.append(f"- and {len(reasons) - MAX_LISTED:,} more")
    yield from _list_lines("Not shown", listed)


def _indent_rest(text: str) -> str:
    """Return a text whose lines after the first are indented."""
    first, *rest = _split_lines(text.strip()) or [""]
    return "\n".join([_join_lines(first), *(f"    {_join_lines(line)}".rstrip() for line in rest)])


def _split_lines(text: str) -> list[str]:
    bare = text.rstrip("\r\n")
    return LINE_BREAK.split(bare) if bare else []


def _join_lines(text: str) -> str:
    """Return a text of one line: other characters that end a line become blanks."""
    return text if text.isprintable() else LINE_ENDS.sub(" ", text)
