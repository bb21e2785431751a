"""Truncation of a packet to a member's context window: whole texts in order, one cut at a line, then nothing."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from council.types import Packet, PacketFile, Skipped, estimate_tokens

TRUNCATION_MARKER = "[cut here: the rest does not fit]"


@dataclass(slots=True)
class PacketWindow:
    """Tokens left in a member's context window, and the texts that did not fit."""

    size: int
    remaining: int
    closed: bool = False
    cuts: dict[str, Skipped] = field(default_factory=dict)

    def fit_text(self, name: str, text: str) -> str:
        """Return as much of a text as fits. After the first cut the window is closed, to keep the order."""
        cost = estimate_tokens(name) + estimate_tokens(text)
        if not self.closed and cost <= self.remaining:
            self.remaining -= cost
            return text
        part = "" if self.closed else _truncate_lines(text, self.remaining - estimate_tokens(name))
        self.closed = True
        self.cuts[name] = Skipped(name, f"does not fit the member's window ({self.size:,} tokens)", True)
        return part

    def fit_optional(self, name: str, text: str) -> str:
        return self.fit_text(name, text) if text else ""

    def fit_file(self, file: PacketFile) -> PacketFile | None:
        content = self.fit_text(file.path, file.content)
        return None if file.path in self.cuts and not content else PacketFile(file.path, content)


def truncate_packet(packet: Packet, tokens: int) -> Packet:
    """Truncate a packet to a number of tokens: spec, diff, files, environment, in that order.

    Decisions are never cut: they are short, and the rest can be misread without them.
    """
    if packet.tokens <= tokens:
        return packet
    window = PacketWindow(tokens, max(0, tokens - sum(map(estimate_tokens, packet.prior_decisions))))
    spec = window.fit_optional(packet.spec_source or "spec", packet.spec)
    diff = window.fit_optional("diff", packet.diff)
    files = [window.fit_file(file) for file in packet.files]
    environment = window.fit_optional("environment", packet.environment)
    return replace(
        packet, spec=spec, diff=diff, files=tuple(file for file in files if file), environment=environment,
        skipped=(*packet.skipped, *window.cuts.values()),
    )  # fmt: skip


def _truncate_lines(text: str, tokens: int) -> str:
    """Return the first lines that fit, followed by the marker, or "" if none fits."""
    room = tokens - estimate_tokens(f"{TRUNCATION_MARKER}\n")
    kept: list[str] = []
    for line in text.splitlines(keepends=True):
        if (room := room - estimate_tokens(line)) < 0:
            break
        kept.append(line)
    return "".join([*kept, TRUNCATION_MARKER, "\n"]) if kept else ""
