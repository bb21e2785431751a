"""What makes the parts of the object `council.plan/1`. Needs pydantic: import it lazily."""

from __future__ import annotations

from collections.abc import Callable

from council.engine.plan_object import (
    AttachmentReceipt,
    PacketReceipt,
    PlanSeat,
)
from council.types import Attachment, Packet, Seat


def make_plan_seat(seat: Seat, timeout: Callable[[str], float]) -> PlanSeat:
    """Return the seat as the plan shows it. `total_timeout` adds the time of each fallback."""
    seconds = [float(timeout(name)) for name in (seat.member, *seat.fallbacks)]
    row: PlanSeat = {
        "name": seat.name,
        "role": seat.role or None,
        "perspective": seat.perspective or None,
        "model": seat.member,
        "vendor": seat.vendor,
        "fallbacks": list(seat.fallbacks),
        "timeout": seconds[0],
        "total_timeout": sum(seconds),
    }
    if seat.fallback_vendors:
        row["fallback_vendors"] = dict(seat.fallback_vendors)
    return row


def make_attachment_receipt(attachment: Attachment) -> AttachmentReceipt:
    """Return the receipt of an attachment, without its content."""
    receipt: AttachmentReceipt = {
        "path": attachment.path,
        "media_type": attachment.media_type,
        "bytes": attachment.bytes,
        "sha256": attachment.sha256,
    }
    if attachment.width:
        receipt["width"] = attachment.width
    if attachment.height:
        receipt["height"] = attachment.height
    if attachment.pages:
        receipt["pages"] = attachment.pages
    return receipt


def make_packet_receipt(packet: Packet) -> PacketReceipt:
    """Return the receipt of a packet: the included and skipped files without their contents."""
    receipt: PacketReceipt = {
        "files": [file.path for file in packet.files],
        "bytes": packet.bytes,
        "tokens": packet.tokens,
        "skipped": [{"path": item.path, "why": item.why} for item in packet.skipped],
        "holes": list(packet.holes),
        "masked": packet.masked,
        "matched": list(packet.matched),
        "stripped": packet.stripped,
        "remarks": list(packet.remarks),
        "commits": list(packet.commits),
    }
    if packet.attachments:
        receipt["attachments"] = [make_attachment_receipt(attachment) for attachment in packet.attachments]
    if packet.prefix:
        receipt["prefix"] = packet.prefix
    return receipt
