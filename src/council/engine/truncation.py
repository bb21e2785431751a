"""Truncation of requests that do not fit a member's context window: each fence is cut by the same share."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from council.packet_size import truncate_packet
from council.types import Cuts, Message, Packet, estimate_tokens

TRUNCATION_MARKER = "[cut here: the rest does not fit]"
FENCE = re.compile(r"<<<(?P<name>[^\n]*) (?P<mark>[0-9a-f]{12})\n(?P<text>.*?)\n(?P=mark)>>>", re.DOTALL)
MIN_QUOTATION_TOKENS = 100  # tokens that every quotation keeps
MIN_SHARE = 0.1  # of the material is always kept; less would be useless
MAX_TRIALS = 6  # to find a packet whose text fits: numbers and headings have tokens too


@dataclass(frozen=True, slots=True)
class FencedPacket:
    """The packet of a request, the mark of its fence, and the function that returns a packet in it."""

    packet: Packet
    mark: str
    fence: Callable[[Packet], str]

    def truncate(self, room: int) -> tuple[str, Packet]:
        """Return the fence with as much of the packet as fits, and what it has."""
        tokens = room
        for _ in range(MAX_TRIALS):
            smaller = truncate_packet(self.packet, tokens)
            text = self.fence(smaller)
            excess = estimate_tokens(text) / max(1, room)
            if excess <= 1:
                break
            tokens = int(min(tokens, smaller.tokens) / excess)
        return text, smaller


@dataclass(slots=True)
class FenceTruncator:
    """Truncates each fence to the same share and records the cuts."""

    share: float
    packet: FencedPacket | None = None
    cut_material: dict[str, None] = field(default_factory=dict)
    cut_context: dict[str, None] = field(default_factory=dict)
    cut_statements: dict[str, None] = field(default_factory=dict)

    def truncate_fence(self, found: re.Match[str]) -> str:
        name, mark, text = found["name"], found["mark"], found["text"]
        if self.packet and mark == self.packet.mark:
            return self.truncate_packet(self.packet, text)
        return f"<<<{name} {mark}\n{self.truncate_quotation(name, text)}\n{mark}>>>"

    def truncate_packet(self, packet: FencedPacket, text: str) -> str:
        """Return the packet with less material, rendered again. `text` is what the request has of it now."""
        fence, smaller = packet.truncate(int(estimate_tokens(text) * self.share))
        known = len(packet.packet.skipped)
        for item in smaller.skipped[known:]:
            (self.cut_material if item.hole else self.cut_context)[item.path] = None
        return fence

    def truncate_quotation(self, name: str, text: str) -> str:
        room = max(MIN_QUOTATION_TOKENS, int(estimate_tokens(text) * self.share))
        if estimate_tokens(text) <= room:
            return text
        self.cut_statements[name or "others"] = None
        start = text.encode()[: 3 * room].decode(errors="ignore")
        return f"{start.rsplit(None, 1)[0]}\n{TRUNCATION_MARKER}"


def truncate_messages(
    messages: Sequence[Message], share: float, packet: FencedPacket | None = None
) -> tuple[tuple[Message, ...], Cuts] | None:
    """Return the messages at about this share of their length, and the cuts. Return None if nothing can be cut."""
    total = sum(estimate_tokens(message["content"]) for message in messages)
    quoted = sum(estimate_tokens(found["text"]) for message in messages for found in FENCE.finditer(message["content"]))
    truncator = FenceTruncator(max(MIN_SHARE, (share * total - (total - quoted)) / max(1, quoted)), packet)
    cut = tuple({**message, "content": FENCE.sub(truncator.truncate_fence, message["content"])} for message in messages)
    cuts = Cuts(tuple(truncator.cut_material), tuple(truncator.cut_statements), tuple(truncator.cut_context))
    return (cut, cuts) if cuts else None
