"""What makes the parts of the object `council.plan/1`: seats, packet, and who cannot see an image or a PDF.

Needs pydantic: import it lazily.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from council.engine.plan_object import AttachmentReceipt, PacketReceipt, PlanAttachment, PlanSeat, UnseenBy
from council.errors import UsageError
from council.members.base import Member, list_unseen
from council.settings.schema import NO_ATTACHMENTS
from council.types import Attachment, Packet, Roster, Seat


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


def list_attachments(
    attachments: Sequence[Attachment], roster: Roster, member: Callable[[str], Member]
) -> tuple[PlanAttachment, ...]:
    """Return the receipt of each image and PDF, with the seats and the members that cannot see it."""
    unseen = {name: list_unseen(attachments, member(name)) for name in roster.member_names}
    rows: list[PlanAttachment] = []
    for attachment in attachments:
        blind = [seat for seat in roster.all_seats if attachment in unseen[seat.member]]
        seats: list[UnseenBy] = [{"seat": seat.name, "model": seat.member} for seat in blind]
        rows.append(
            {
                **make_attachment_receipt(attachment),
                "has_text": attachment.has_text,
                "unseen_by": seats,
                "unseen_members": [name for name, hidden in unseen.items() if attachment in hidden],
            }
        )
    return tuple(rows)


def require_sight(attachments: Sequence[PlanAttachment], roster: Roster) -> None:
    """Raise UsageError for an attachment that no seat can see in any form."""
    names = {seat.name for seat in roster.seats}
    for attachment in attachments:
        blind = {row["seat"] for row in attachment["unseen_by"]}
        if attachment["has_text"] or not names <= blind:
            continue
        key = "pdf" if attachment.get("pages") else "images"
        able = [seat.member for seat in roster.seats if seat.member.partition(":")[0] not in NO_ATTACHMENTS]
        setting = f', or set [members."{able[0]}"] {key} = true if it can' if able else ""
        raise UsageError(f'no seat of this council can see "{attachment["path"]}": use models that can{setting}')


def format_unseen(attachments: Iterable[PlanAttachment]) -> list[str]:
    """Return one line for each seat that cannot see an attachment, in seating order as far as the rows tell it."""
    paths_by_seat: dict[tuple[str, str], dict[str, list[str]]] = {}
    for attachment in sorted(attachments, key=lambda row: -len(row["unseen_by"])):
        limit = "sees the text but not the pages of" if attachment["has_text"] else "cannot see"
        for row in attachment["unseen_by"]:
            paths_by_limit = paths_by_seat.setdefault((row["seat"], row["model"]), {})
            paths_by_limit.setdefault(limit, []).append(attachment["path"])
    return [
        f"{seat} ({model}) " + " and ".join(f"{limit} {', '.join(paths)}" for limit, paths in paths_by_limit.items())
        for (seat, model), paths_by_limit in paths_by_seat.items()
    ]
