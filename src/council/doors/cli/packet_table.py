"""Table of a packet: what is sent with its size and reason, and what is left out."""

from __future__ import annotations

from collections.abc import Iterator

from council.doors.cli.tables import format_table
from council.engine.layout import format_count
from council.packet.git import split_patch
from council.packet.secret_filter import redact_text
from council.text_cleanup import clean
from council.types import Packet, PacketFile, estimate_tokens

HEAD = ("path", "part", "lines", "tokens", "reason")
MAX_RANGES = 3  # of a file that are listed
Row = tuple[str, str, str, str, str]


def format_packet_table(packet: Packet) -> list[str]:
    """Return a table of what is sent with its total, and below it what is left out and why."""
    attached = [(one.path, "attachment", "", "", one.media_type) for one in packet.attachments]
    rows = [*_list_texts(packet), *map(_describe_file, packet.files), *attached]
    total = format(packet.tokens, ",") + (f" of {packet.budget:,}" if packet.budget else "")
    lines = format_table(HEAD, [*rows, ("total", "", "", format(packet.tokens, ","), "")], right=(3,))
    lines = [*lines, "", f"{total} tokens, {packet.bytes:,} bytes, {format_count(len(packet.files), 'file')}"]
    if packet.skipped:
        kinds = [(item.path, "not reviewed: " if item.hole else "", item.why) for item in packet.skipped]
        lines += ["", "Not included:", *(f"  {path}: {kind}{why}" for path, kind, why in kinds)]
    return [clean(line) for line in lines]


def _list_texts(packet: Packet) -> Iterator[Row]:
    """Yield a row for each text that is no file: the diff of each path, the commits, the specification."""
    for section in split_patch(packet.diff):
        yield _name_section(section), "diff", _count_changes(section), _count(section), "the change"
    texts = (
        (packet.spec_source or "spec", "spec", packet.spec, "what is to be built"),
        ("commits", "commits", "\n".join(packet.commits), "what the change is for"),
        ("decisions", "decisions", "\n".join(packet.prior_decisions), "already decided"),
        ("environment", "environment", packet.environment, ""),
    )
    for name, part, text, reason in texts:
        if text:
            yield name, part, f"{text.count(chr(10)) + 1:,}", _count(text), reason


def _name_section(section: str) -> str:
    """Return the path of the diff of one file: the new one of a renamed file."""
    first = section.split("\n", 1)[0]
    return redact_text(first.rpartition(" b/")[2].rstrip('"') or first)


def _count_changes(section: str) -> str:
    hunks = section.partition("\n@@ ")[2].split("\n")[1:]
    added, removed = (sum(line.startswith(sign) for line in hunks) for sign in "+-")
    return f"+{added:,} -{removed:,}"


def _describe_file(file: PacketFile) -> Row:
    cost = estimate_tokens(file.path) + estimate_tokens(file.content)
    return file.path, file.part or "file", _format_lines(file), format(cost, ","), file.reason


def _format_lines(file: PacketFile) -> str:
    if not file.ranges:
        return f"all {len(file.number_lines()):,}"
    shown = ", ".join(f"{first}-{last}" if last > first else str(first) for first, last in file.ranges[:MAX_RANGES])
    more = f" and {len(file.ranges) - MAX_RANGES} more" if len(file.ranges) > MAX_RANGES else ""
    return f"{shown}{more} of {file.lines:,}"


def _count(text: str) -> str:
    return format(estimate_tokens(text), ",")
