"""Messages that are too long for a member, cut by one rule: what is quoted gives way, what is asked never does.

Material stands in fences (prompting.py draws them). The packet is fitted as for a small member: spec, diff, files and
environment in that order, whole while there is room. Every other quotation keeps its beginning.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from council.rules.fitting import MARKER, fitted
from council.types import WORDS_OF, Json, Message, Packet, PacketFile, tokens_of

FENCE = re.compile(r"<<<(?P<name>[^\n]*) (?P<mark>[0-9a-f]{12})\n(?P<text>.*?)\n(?P=mark)>>>", re.DOTALL)
SHORT = 100  # tokens that a quotation keeps in any case
LEAST = 0.1  # of the material stays in any case: with less there is nothing left to speak about


@dataclass(slots=True)
class Scissors:
    """Cuts each fence to the same share, and remembers what it cut."""

    share: float
    cuts: dict[str, None] = field(default_factory=dict)

    def fence(self, found: re.Match[str]) -> str:
        name, mark, text = found["name"], found["mark"], found["text"]
        kept = self.packet(text) if name == "Packet" else None
        return f"<<<{name} {mark}\n{self.quotation(name, text) if kept is None else kept}\n{mark}>>>"

    def packet(self, text: str) -> str | None:
        """The packet with less in it, still one object; None if this is none."""
        try:
            told = json.loads(text)
            context = told["council_packet"]["context"]
            packet = _packet(context)
        except (ValueError, KeyError, TypeError):
            return None
        smaller = fitted(packet, int(packet.tokens * self.share))
        self.cuts |= dict.fromkeys(item.path for item in smaller.skipped)
        context |= {"files": [{"path": file.path, "content": file.content} for file in smaller.files]}
        context |= {"diff": smaller.diff, "spec": {**context["spec"], "content": smaller.spec}}
        if "environment" in context:
            context["environment"] = smaller.environment
        return json.dumps(told, ensure_ascii=False, indent=1)

    def quotation(self, name: str, text: str) -> str:
        room = max(SHORT, int(tokens_of(text) * self.share))
        if tokens_of(text) <= room:
            return text
        self.cuts[f"{WORDS_OF}{name or 'others'}"] = None
        start = text.encode()[: 3 * room].decode(errors="ignore")
        return f"{start.rsplit(None, 1)[0]}\n{MARKER}"


def shrunk(messages: Sequence[Message], share: float) -> tuple[tuple[Message, ...], tuple[str, ...]] | None:
    """The messages at this share of their length, or as near to it as can be, and what was cut; None if nothing can be."""
    whole = sum(tokens_of(message["content"]) for message in messages)
    quoted = sum(tokens_of(found["text"]) for message in messages for found in FENCE.finditer(message["content"]))
    scissors = Scissors(max(LEAST, (share * whole - (whole - quoted)) / max(1, quoted)))
    cut = tuple({**message, "content": FENCE.sub(scissors.fence, message["content"])} for message in messages)
    return (cut, tuple(scissors.cuts)) if scissors.cuts else None


def _packet(context: Json) -> Packet:
    files = tuple(PacketFile(file["path"], file["content"]) for file in context["files"])
    source, spec = (context["spec"][part] for part in ("source", "content"))
    return Packet(
        files, context["diff"], "" if source == "none" else source, spec, tuple(context["prior_decisions"]),
        context.get("environment", ""),
    )  # fmt: skip
