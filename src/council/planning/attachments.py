"""Images and PDFs of a plan: their receipts, and the seats that cannot see them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from council.engine.plan_object import PlanAttachment, UnseenBy
from council.errors import UsageError
from council.members.base import Member, list_unseen
from council.planning.plan_object import make_attachment_receipt
from council.settings.schema import NO_ATTACHMENTS
from council.types import Attachment, Roster


def list_attachments(
    attachments: Sequence[Attachment], roster: Roster, member: Callable[[str], Member]
) -> tuple[PlanAttachment, ...]:
    """Return the receipt of each image and PDF, with the seats and the members that cannot see it."""
    unseen = {name: list_unseen(attachments, member(name)) for name in roster.member_names}
    rows: list[PlanAttachment] = []
    for attachment in attachments:
        seats: list[UnseenBy] = [
            {"seat": seat.name, "model": seat.member} for seat in roster.all_seats if attachment in unseen[seat.member]
        ]
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
