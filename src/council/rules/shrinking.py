"""Truncation of messages that are too long for a member: quoted material is cut, instructions are not.

Material is inside fences (see prompting.py). The packet is truncated as for a small member: spec, diff, files and
environment in that order, each whole while it fits. Every other quotation keeps its beginning.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from council.rules.fitting import MARKER, fitted
from council.types import WORDS_OF, Json, Message, Packet, PacketFile, tokens_of

FENCE = re.compile(r"<<<(?P<name>[^\n]*) (?P<mark>[0-9a-f]{12})\n(?P<text>.*?)\n(?P=mark)>>>", re.DOTALL)
SHORT = 100  # tokens that every quotation keeps
LEAST = 0.1  # of the material is always kept; less would be useless


@dataclass(slots=True)
class Scissors:
    """Truncates each fence to the same share and records the cuts."""

    share: float
    cuts: dict[str, None] = field(default_factory=dict)

    def fence(self, found: re.Match[str]) -> str:
        name, mark, text = found["name"], found["mark"], found["text"]
        packet = self.packet(text) if name == "Packet" else None
        return f"<<<{name} {mark}\n{self.quotation(name, text) if packet is None else packet}\n{mark}>>>"

    def packet(self, text: str) -> str | None:
        """Return the packet JSON with less material, or None if the text is not a packet."""
        try:
            data = json.loads(text)
            context = data["council_packet"]["context"]
            packet = _packet(context)
        except (ValueError, KeyError, TypeError):
            return None
        smaller = fitted(packet, int(packet.tokens * self.share))
        self.cuts |= dict.fromkeys(item.path for item in smaller.skipped)
        context |= {"files": [{"path": file.path, "content": file.content} for file in smaller.files]}
        context |= {"diff": smaller.diff, "spec": {**context["spec"], "content": smaller.spec}}
        if "environment" in context:
            context["environment"] = smaller.environment
        return json.dumps(data, ensure_ascii=False, indent=1)

    def quotation(self, name: str, text: str) -> str:
        room = max(SHORT, int(tokens_of(text) * self.share))
        if tokens_of(text) <= room:
            return text
        self.cuts[f"{WORDS_OF}{name or 'others'}"] = None
        start = text.encode()[: 3 * room].decode(errors="ignore")
        return f"{start.rsplit(None, 1)[0]}\n{MARKER}"


def shrunk(messages: Sequence[Message], share: float) -> tuple[tuple[Message, ...], tuple[str, ...]] | None:
    """Return the messages at about this share of their length, and the cuts. Return None if nothing can be cut."""
    total = sum(tokens_of(message["content"]) for message in messages)
    quoted = sum(tokens_of(found["text"]) for message in messages for found in FENCE.finditer(message["content"]))
    truncator = Scissors(max(LEAST, (share * total - (total - quoted)) / max(1, quoted)))
    cut = tuple({**message, "content": FENCE.sub(truncator.fence, message["content"])} for message in messages)
    return (cut, tuple(truncator.cuts)) if truncator.cuts else None


def _packet(context: Json) -> Packet:
    files = tuple(PacketFile(file["path"], file["content"]) for file in context["files"])
    source, spec = (context["spec"][part] for part in ("source", "content"))
    return Packet(
        files, context["diff"], "" if source == "none" else source, spec, tuple(context["prior_decisions"]),
        context.get("environment", ""),
    )  # fmt: skip
