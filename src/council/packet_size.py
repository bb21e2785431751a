"""Size of packets: truncate one to the window of a member, or split one whose diff is larger than its budget.

The changes come first and are cut last: the diff, and the new files that it only lists. Then come the specification,
the commits, the rules of the project and the rest of the context. What is cut of the changes or of named files is a
coverage hole.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from council.types import Packet, PacketFile, Skipped, estimate_tokens
from council.unified_diff import FileDiff, Hunk, parse_diff

T = TypeVar("T")
PART_ORDER = ("rules", "", "definitions", "callers", "tests", "types", "rest")  # cut from the end
DIFF_SHARE = 0.7  # of the budget of a part; the rest is for its context
ONE_REQUEST = "one request"
IN_ANOTHER_PART = "judged in another part of this review"
_WORD = re.compile(r"\w+")
REASON_WORDS = frozenset(
    ["also", "and", "around", "calls", "changed", "changes", "defines", "more", "names", "the"]
)  # around a name


def measure_changes(packet: Packet) -> int:
    """Return the tokens of the diff, and of the new files that it only lists."""
    return estimate_tokens(packet.diff) + sum(_measure_file(file) for file in list_added_files(packet))


def list_added_files(packet: Packet) -> tuple[PacketFile, ...]:
    """Return the new files that the diff only lists: their content is among the files, and is part of the changes."""
    listed = {section.path for section in parse_diff(packet.diff) if section.is_listed}
    return tuple(file for file in packet.files if file.path in listed and file.part in ("", "rest"))


def list_changed_paths(packet: Packet) -> tuple[str, ...]:
    return tuple(dict.fromkeys(section.path for section in parse_diff(packet.diff) if section.path))


def _measure_file(file: PacketFile) -> int:
    return estimate_tokens(file.path) + estimate_tokens(file.content)


# Truncation


@dataclass(slots=True)
class PacketWindow:
    """Tokens left in a member's context window, and the texts that did not fit."""

    place: str  # what it does not fit, for the reader
    remaining: int
    closed: bool = False
    cuts: dict[str, Skipped] = field(default_factory=dict)

    def fit(self, name: str, text: str, lines: Sequence[str], *, hole: bool) -> int:
        """Return how many lines of a text fit. After the first cut the window is closed, to keep the order."""
        cost = estimate_tokens(name) + estimate_tokens(text)
        if not self.closed and cost <= self.remaining:
            self.remaining -= cost
            return len(lines)
        room = 0 if self.closed else self.remaining - estimate_tokens(name)
        self.closed = True
        count = 0
        for line in lines[:-1]:
            room -= estimate_tokens(f"{line}\n")
            if room < 0:
                break
            count += 1
        if name not in self.cuts or hole:
            self.cuts[name] = Skipped(name, f"{'the rest ' if count else ''}does not fit {self.place}", hole)
        return count

    def fit_text(self, name: str, text: str, *, hole: bool = False) -> str:
        lines = text.split("\n")
        count = self.fit(name, text, lines, hole=hole) if text else len(lines)
        return text if count == len(lines) else "".join(f"{line}\n" for line in lines[:count])

    def fit_file(self, file: PacketFile, *, hole: bool) -> PacketFile | None:
        lines = [text for _, text in file.number_lines()]
        count = self.fit(file.path, file.content, lines, hole=hole)
        if count == len(lines):
            return None if file.path in self.cuts and not lines else file
        return take_lines(file, 0, count) if count else None

    def fit_section(self, section: FileDiff) -> str:
        """Return as many hunks and rows of the diff of a file as fit."""
        text = section.text
        lines = text.split("\n")
        count = self.fit(section.path or "diff", text, lines, hole=True)
        if count == len(lines):
            return text
        return _keep_rows(section, count) if section.hunks else "".join(f"{line}\n" for line in lines[:count])


def truncate_packet(packet: Packet, tokens: int, place: str = "the member's window") -> Packet:
    """Truncate a packet to a number of tokens. `place` names for the reader what has this size.

    The order is: diff and new files, specification, commits, rules, named files, definitions, callers, tests, types,
    the rest of the changed files, environment. Decisions are never cut: they are short, and the rest can be misread
    without them.
    """
    if packet.tokens <= tokens:
        return packet
    window = PacketWindow(
        f"{place} ({tokens:,} tokens)", max(0, tokens - sum(map(estimate_tokens, packet.prior_decisions)))
    )
    sections = [(section, window.fit_section(section)) for section in parse_diff(packet.diff)]
    added = list_added_files(packet)
    fitted = {id(file): window.fit_file(file, hole=True) for file in added}
    spec = window.fit_text(packet.spec_source or "spec", packet.spec, hole=True)
    commits = [window.fit_text("commits", commit) for commit in packet.commits]
    shown = {section.path for section, text in sections if section.hunks and text}
    for part in PART_ORDER:
        for file in packet.files:
            if file.part == part and id(file) not in fitted:
                fitted[id(file)] = window.fit_file(file, hole=not part and file.path not in shown)
    environment = window.fit_text("environment", packet.environment)
    files = (fitted[id(file)] for file in packet.files)
    return replace(
        packet,
        spec=spec,
        diff="".join(text for _, text in sections),
        commits=tuple(commit for commit in commits if commit),
        files=tuple(file for file in files if file),
        environment=environment,
        skipped=(*packet.skipped, *window.cuts.values()),
    )


def take_lines(file: PacketFile, start: int, count: int) -> PacketFile:
    """Return the included lines of a file from an index on, as a part of it."""
    rows = file.number_lines()
    kept = rows[start : start + count]
    ranges: list[tuple[int, int]] = []
    for number, _ in kept:
        if ranges and ranges[-1][1] == number - 1:
            ranges[-1] = (ranges[-1][0], number)
        else:
            ranges.append((number, number))
    content = "".join(f"{text}\n" for _, text in kept)
    return replace(file, content=content, ranges=tuple(ranges), lines=file.lines or (rows[-1][0] if rows else 0))


def _keep_rows(section: FileDiff, rows: int) -> str:
    """Return a section with its first rows; its head and the header of each hunk count too."""
    rows -= len(section.head)
    hunks: list[Hunk] = []
    for hunk in section.hunks:
        if rows < 2:
            break
        hunks.append(replace(hunk, rows=hunk.rows[: rows - 1]))
        rows -= len(hunk.rows) + 1
    return replace(section, hunks=tuple(hunks)).text if hunks else ""


# Splitting


@dataclass(frozen=True, slots=True)
class Change:
    """Changes of one file, or some of them: a section of the diff, or a listed new file with its content."""

    section: FileDiff
    file: PacketFile | None = None

    @property
    def tokens(self) -> int:
        return estimate_tokens(self.section.text) + (_measure_file(self.file) if self.file else 0)


def split_packet(packet: Packet) -> tuple[Packet, ...]:
    """Return the packet alone, or the parts in which a diff over its budget is sent, each with its own context.

    A part has whole files if they fit, else whole hunks, else lines. A line that is longer than the budget is a part of
    its own.
    """
    if not packet.budget or measure_changes(packet) <= packet.budget:
        return (packet,)
    room = max(1, int(packet.budget * DIFF_SHARE))
    added_files, changed_paths = list_added_files(packet), list_changed_paths(packet)
    added = {file.path: file for file in added_files}
    changes = [
        change
        for section in parse_diff(packet.diff)
        for change in _divide_change(Change(section, added.get(section.path) if section.is_listed else None), room)
    ]
    groups = _group(changes, [change.tokens for change in changes], room)
    if len(groups) < 2:
        return (packet,)
    added_ids = {id(file) for file in added_files}
    context = [file for file in packet.files if id(file) not in added_ids]
    return tuple(_build_part(packet, group, changed_paths, context, is_first=n == 0) for n, group in enumerate(groups))


def _divide_change(change: Change, room: int) -> list[Change]:
    """Return the change, or pieces of it that fit."""
    if change.tokens <= room:
        return [change]
    if change.file:
        lines = _divide_lines([text for _, text in change.file.number_lines()], room)
        return [replace(change, file=take_lines(change.file, start, count)) for start, count in lines]
    section = change.section
    if not section.hunks:
        pieces = _divide_lines(section.head, room)
        return [Change(replace(section, head=section.head[start : start + count])) for start, count in pieces]
    hunks = [piece for hunk in section.hunks for piece in _divide_hunk(hunk, room)]
    sizes = [estimate_tokens("\n".join(hunk.rows)) for hunk in hunks]
    return [Change(replace(section, hunks=tuple(group))) for group in _group(hunks, sizes, room)]


def _divide_hunk(hunk: Hunk, room: int) -> Iterable[Hunk]:
    if sum(estimate_tokens(row) for row in hunk.rows) <= room:
        return [hunk]
    return hunk.split([count for _, count in _divide_lines(hunk.rows, room)])


def _divide_lines(lines: Sequence[str], room: int) -> list[tuple[int, int]]:
    """Return the start and the number of lines of each piece that fits; a piece has at least one line."""
    pieces: list[tuple[int, int]] = []
    start, used = 0, 0
    for n, line in enumerate(lines):
        cost = estimate_tokens(f"{line}\n")
        if n > start and used + cost > room:
            pieces.append((start, n - start))
            start, used = n, 0
        used += cost
    return [*pieces, (start, len(lines) - start)]


def _group(items: Sequence[T], sizes: Sequence[int], room: int) -> list[list[T]]:
    """Return the items in groups that fit, in their order."""
    groups: list[list[T]] = []
    used = 0
    for item, size in zip(items, sizes, strict=True):
        if groups and used + size <= room:
            groups[-1].append(item)
            used += size
        else:
            groups.append([item])
            used = size
    return groups


def _build_part(
    packet: Packet,
    group: Sequence[Change],
    changed_paths: Sequence[str],
    context: Sequence[PacketFile],
    *,
    is_first: bool,
) -> Packet:
    """Return the packet of one request: its changes, and as much context of these as fits."""
    added = tuple(change.file for change in group if change.file)
    paths = {change.section.path for change in group}
    diff = "".join(change.section.text for change in group)
    others = [path for path in changed_paths if path not in paths]
    chosen = _choose_context(context, paths, set(others), diff + "".join(file.content for file in added))
    part = replace(
        packet,
        diff=diff,
        files=(*added, *chosen),
        skipped=(*packet.skipped, *(Skipped(path, IN_ANOTHER_PART) for path in others)),
        attachments=packet.attachments if is_first else (),
        budget=0,
    )
    return truncate_packet(part, max(packet.budget, measure_changes(part)), ONE_REQUEST)


def _choose_context(
    context: Sequence[PacketFile], paths: set[str], elsewhere: set[str], changed: str
) -> list[PacketFile]:
    """Return the files that are context of these changes: what their reasons name in the changes comes first."""
    words = set(_WORD.findall(changed))
    known = [file for file in context if file.path not in elsewhere or file.part not in ("", "definitions", "rest")]
    return sorted(known, key=lambda file: file.path not in paths and words.isdisjoint(_list_names(file.reason)))


def _list_names(reason: str) -> list[str]:
    """Return the names of definitions in a reason: `calls price_of; names Cart and 2 more`."""
    return [word for word in _WORD.findall(reason) if word not in REASON_WORDS]
