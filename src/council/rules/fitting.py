"""A packet cut to a small window, by one rule: in order, whole while it fits, then one cut at a line, then nothing."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from council.types import Packet, PacketFile, Skipped, tokens_of

MARKER = "[cut here: the rest does not fit]"


@dataclass(slots=True)
class Window:
    """The room that is left, and what did not find any."""

    size: int
    left: int
    closed: bool = False
    cuts: dict[str, Skipped] = field(default_factory=dict)

    def show(self, name: str, text: str) -> str:
        """As much of a text as there is room for. After the first cut the window is closed, so that nothing slips in out of turn."""
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
    """The packet as a member with a window of so many tokens sees it: spec, diff, files, environment, in that order.

    Decisions are never cut: they are short, and without them the rest means something else.
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
    """The first lines that fit with the marker under them; "" when not even one does."""
    room = tokens - tokens_of(f"{MARKER}\n")
    kept: list[str] = []
    for line in text.splitlines(keepends=True):
        if (room := room - tokens_of(line)) < 0:
            break
        kept.append(line)
    return "".join([*kept, MARKER, "\n"]) if kept else ""
