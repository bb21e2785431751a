"""Truncation of a packet to a member's context window: whole texts in order, one cut at a line, then nothing."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from council.types import Packet, PacketFile, Skipped, tokens_of

MARKER = "[cut here: the rest does not fit]"


@dataclass(slots=True)
class Window:
    """Tokens left in a member's context window, and the texts that did not fit."""

    size: int
    left: int
    closed: bool = False
    cuts: dict[str, Skipped] = field(default_factory=dict)

    def show(self, name: str, text: str) -> str:
        """Return as much of a text as fits. After the first cut the window is closed, to keep the order."""
        cost = tokens_of(name) + tokens_of(text)
        if not self.closed and cost <= self.left:
            self.left -= cost
            return text
        part = "" if self.closed else _cut(text, self.left - tokens_of(name))
        self.closed = True
        self.cuts[name] = Skipped(name, f"does not fit the member's window ({self.size:,} tokens)", True)
        return part

    def part(self, name: str, text: str) -> str:
        return self.show(name, text) if text else ""

    def file(self, file: PacketFile) -> PacketFile | None:
        content = self.show(file.path, file.content)
        return None if file.path in self.cuts and not content else PacketFile(file.path, content)


def fitted(packet: Packet, tokens: int) -> Packet:
    """Truncate a packet to a number of tokens: spec, diff, files, environment, in that order.

    Decisions are never cut: they are short, and the rest can be misread without them.
    """
    if packet.tokens <= tokens:
        return packet
    window = Window(tokens, max(0, tokens - sum(map(tokens_of, packet.prior_decisions))))
    spec = window.part(packet.spec_source or "spec", packet.spec)
    diff = window.part("diff", packet.diff)
    files = [window.file(file) for file in packet.files]
    environment = window.part("environment", packet.environment)
    return replace(
        packet, spec=spec, diff=diff, files=tuple(file for file in files if file), environment=environment,
        skipped=(*packet.skipped, *window.cuts.values()),
    )  # fmt: skip


def _cut(text: str, tokens: int) -> str:
    """Return the first lines that fit, followed by the marker, or "" if none fits."""
    room = tokens - tokens_of(f"{MARKER}\n")
    kept: list[str] = []
    for line in text.splitlines(keepends=True):
        if (room := room - tokens_of(line)) < 0:
            break
        kept.append(line)
    return "".join([*kept, MARKER, "\n"]) if kept else ""
