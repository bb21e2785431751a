"""Truncation of requests that do not fit a member's context window: each fence is cut by the same share."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from council.engine.prompting import dump_packet
from council.text_cleanup import TRUNCATION_MARKER, truncate_packet
from council.types import Cuts, Json, Message, Packet, PacketFile, estimate_tokens

FENCE = re.compile(r"<<<(?P<name>[^\n]*) (?P<mark>[0-9a-f]{12})\n(?P<text>.*?)\n(?P=mark)>>>", re.DOTALL)
MIN_QUOTATION_TOKENS = 100  # tokens that every quotation keeps
MIN_SHARE = 0.1  # of the material is always kept; less would be useless


@dataclass(slots=True)
class FenceTruncator:
    """Truncates each fence to the same share and records the cuts."""

    share: float
    cut_material: dict[str, None] = field(default_factory=dict)
    cut_statements: dict[str, None] = field(default_factory=dict)

    def truncate_fence(self, found: re.Match[str]) -> str:
        name, mark, text = found["name"], found["mark"], found["text"]
        packet = self.truncate_packet_json(text) if name == "Packet" else None
        return f"<<<{name} {mark}\n{self.truncate_quotation(name, text) if packet is None else packet}\n{mark}>>>"

    def truncate_packet_json(self, text: str) -> str | None:
        """Return the packet JSON with less material, or None if the text is not a packet."""
        try:
            data = json.loads(text)
            context = data["council_packet"]["context"]
            packet = _parse_packet(context)
        except (ValueError, KeyError, TypeError):
            return None
        smaller = truncate_packet(packet, int(packet.tokens * self.share))
        self.cut_material |= dict.fromkeys(item.path for item in smaller.skipped)
        context |= {"files": [{"path": file.path, "content": file.content} for file in smaller.files]}
        context |= {"diff": smaller.diff, "spec": {**context["spec"], "content": smaller.spec}}
        if "environment" in context:
            context["environment"] = smaller.environment
        return dump_packet(data)

    def truncate_quotation(self, name: str, text: str) -> str:
        room = max(MIN_QUOTATION_TOKENS, int(estimate_tokens(text) * self.share))
        if estimate_tokens(text) <= room:
            return text
        self.cut_statements[name or "others"] = None
        start = text.encode()[: 3 * room].decode(errors="ignore")
        return f"{start.rsplit(None, 1)[0]}\n{TRUNCATION_MARKER}"


def truncate_messages(messages: Sequence[Message], share: float) -> tuple[tuple[Message, ...], Cuts] | None:
    """Return the messages at about this share of their length, and the cuts. Return None if nothing can be cut."""
    total = sum(estimate_tokens(message["content"]) for message in messages)
    quoted = sum(estimate_tokens(found["text"]) for message in messages for found in FENCE.finditer(message["content"]))
    truncator = FenceTruncator(max(MIN_SHARE, (share * total - (total - quoted)) / max(1, quoted)))
    cut = tuple({**message, "content": FENCE.sub(truncator.truncate_fence, message["content"])} for message in messages)
    cuts = Cuts(tuple(truncator.cut_material), tuple(truncator.cut_statements))
    return (cut, cuts) if cuts else None


def _parse_packet(context: Json) -> Packet:
    files = tuple(PacketFile(file["path"], file["content"]) for file in context["files"])
    source, spec = (context["spec"][part] for part in ("source", "content"))
    return Packet(
        files, context["diff"], "" if source == "none" else source, spec, tuple(context["prior_decisions"]),
        context.get("environment", ""),
    )  # fmt: skip
