"""Labels under which the chair sees the drafts and the issues, so that no name tells it whose they are."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from council.engine.council import Council, make_labels
from council.protocols.adversarial.replies import Ruling
from council.protocols.common.issues import match_ids
from council.protocols.common.replies import ReplyPart
from council.types import Round, Seat

PartT = TypeVar("PartT", bound=ReplyPart)
ISSUE_LABEL = re.compile(r"\bissue[\s_#-]*(\d{1,3})\b", re.IGNORECASE)
ISSUE_ID = re.compile(r"\w+-\d+")
DRAFT_LABEL = re.compile(r"\b[Dd]raft ([A-Z])\b")


@dataclass(frozen=True, slots=True)
class ChairLabels:
    """What the labels in the chair's prompt stand for."""

    drafts: Mapping[str, str]  # label → seat: the drafts beside the leading one
    issues: Mapping[str, str]  # label → id, such as issue-1 → beta-1

    def restore_names(self, ruling: Ruling) -> Ruling:
        """Return the ruling with ids and seats in place of labels. Ids stay: earlier versions have them."""
        overturned = ruling.outcome == "OVERTURNED"
        return ruling.model_copy(
            update={
                "points": [self._restore(point, "issue", "same_as", text="why") for point in ruling.points],
                "changes": [self._restore(change, "issue", text="change") for change in ruling.changes],
                "replaced_by": self.find_seat(ruling.replaced_by) if overturned else "",
                "assessment": self.restore_text(ruling.assessment),
            }
        )

    def hide_ids(self, text: str) -> str:
        """Return a text for the chair with labels in place of the ids of issues."""
        labels = {name: label for label, name in self.issues.items()}
        return ISSUE_ID.sub(lambda found: labels.get(found[0], found[0]), text)

    def find_seat(self, label: str) -> str:
        """Return the seat of a draft by its label, or an empty string."""
        found = re.fullmatch(r"\W*(?:draft\W*)?([A-Za-z])\W*", label, re.IGNORECASE)
        return self.drafts.get(found[1].upper(), "") if found else ""

    def restore_text(self, text: str) -> str:
        """Return a text with the ids of issues and the names of seats in place of their labels."""
        text = ISSUE_LABEL.sub(lambda found: self.issues.get(f"issue-{found[1]}", found[0]), text)
        return DRAFT_LABEL.sub(
            lambda found: f"{seat}'s draft" if (seat := self.drafts.get(found[1])) else found[0], text
        )

    def _restore(self, row: PartT, *ids: str, text: str) -> PartT:
        given = {name: self._restore_ids(getattr(row, name)) for name in ids}
        return row.model_copy(update={**given, text: self.restore_text(getattr(row, text))})

    def _restore_ids(self, text: str) -> str:
        """Return the ids of the issues that a text names by their labels; a text without a label stays."""
        return ", ".join(self.issues[label] for label in match_ids(text, self.issues)) or text


def assign_chair_labels(
    council: Council, drafts: Round[None], leader: Seat, issues: Mapping[str, object]
) -> ChairLabels:
    """Label the other drafts and the issues in an order of their own, and record whose they are."""
    others = council.shuffled([one.seat.name for one in drafts.others(leader)], council.chair)
    shuffled = council.shuffled(list(issues), council.chair)
    labels = ChairLabels(
        dict(zip(make_labels(len(others)), others, strict=True)),
        {f"issue-{n}": name for n, name in enumerate(shuffled, 1)},
    )
    if others:
        council.record_labels(council.chair, {**labels.drafts, **labels.issues})
    return labels
