"""Who stands in for whom: a member of a family that nobody else at the table speaks through, while there is one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from council.calling.table import TABLE
from council.errors import Fault
from council.members.base import Member
from council.record import Record
from council.types import OUT_FOR_THE_RUN


@dataclass(slots=True)
class Families:
    """What a run has learnt about its table by now. The chair may share a family with a seat, so it takes none away."""

    voters: Mapping[str, str] = field(default_factory=dict)  # seat → the family it asked for
    sitting: dict[str, str] = field(default_factory=dict)  # seat → the family that speaks for it
    down: set[str] = field(default_factory=set)  # families that were given up and have not answered since
    out: dict[tuple[str, str], str] = field(default_factory=dict)  # (seat, member) → why it is not asked again
    spoke: dict[str, str] = field(default_factory=dict)  # seat → the member that spoke for it last

    def __post_init__(self) -> None:
        self.sitting = dict(self.voters)

    @classmethod
    def recalled(cls, voters: Mapping[str, str], record: Record) -> Families:
        """As the table was when the run stopped: whoever stood in goes on, and whoever gave way stays away."""
        families = cls(voters)
        for key, outcome in record.results.items():
            seat = key.rpartition("/")[2]
            families.spoke[seat] = outcome.served_by
            for attempt in record.attempts.get(key, ()):
                kept = attempt.result or {}
                row = TABLE.get(kept.get("fault", "")) if kept.get("passed_on") else None
                if row and row.state in OUT_FOR_THE_RUN:
                    families.out[seat, attempt.member] = row.state
        return families

    def choose(self, seat: str, members: Sequence[Member]) -> Member:
        """Who spoke for the seat before; else the first that is of no other seat's family; those that are down come last."""
        taken = {family for other, family in self.sitting.items() if other != seat}
        known = self.spoke.get(seat)
        return min(members, key=lambda one: (one.vendor in self.down, one.name != known, one.vendor in taken))

    def sits(self, seat: str, member: Member) -> None:
        if seat in self.voters:
            self.sitting[seat] = member.vendor

    def leaves(self, seat: str) -> None:
        """Nobody could be had for it: its family is free for others."""
        self.sitting.pop(seat, None)

    def answered(self, seat: str, member: Member) -> None:
        self.down.discard(member.vendor)
        self.spoke[seat] = member.name

    def gave_up(self, seat: str, member: Member, fault: Fault) -> None:
        """Whoever was silent is not awaited twice, and whoever could not be called is not called again by this seat."""
        row = TABLE[fault.kind]
        if row.vendors:
            self.down.add(member.vendor)
        if row.state in OUT_FOR_THE_RUN:
            self.out[seat, member.name] = row.state

    def gone(self, seat: str, member: str) -> str:
        """The state by which a member is out for this seat; nothing if it is not."""
        return self.out.get((seat, member), "")
