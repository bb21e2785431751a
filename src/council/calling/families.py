"""Fallback policy: prefer a member whose vendor no other seat uses."""

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
    """State of the run's vendors and exclusions. The chair may share a vendor with a seat, so it does not occupy one."""

    voters: Mapping[str, str] = field(default_factory=dict)  # seat → vendor of the requested member
    sitting: dict[str, str] = field(default_factory=dict)  # seat → vendor that currently serves it
    down: set[str] = field(default_factory=set)  # vendors that failed and have not answered since
    out: dict[tuple[str, str], str] = field(default_factory=dict)  # (seat, member) → state that excludes it
    spoke: dict[str, str] = field(default_factory=dict)  # seat → member that answered last

    def __post_init__(self) -> None:
        self.sitting = dict(self.voters)

    @classmethod
    def recalled(cls, voters: Mapping[str, str], record: Record) -> Families:
        """Restore the policy of an interrupted run: fallbacks keep their seats, excluded members stay excluded."""
        families = cls(voters)
        for key, outcome in record.results.items():
            seat = key.rpartition("/")[2]
            families.spoke[seat] = outcome.served_by
            for attempt in record.attempts.get(key, ()):
                result = attempt.result or {}
                row = TABLE.get(result.get("fault", "")) if result.get("passed_on") else None
                if row and row.state in OUT_FOR_THE_RUN:
                    families.out[seat, attempt.member] = row.state
        return families

    def choose(self, seat: str, members: Sequence[Member]) -> Member:
        """Return the member that served the seat before, else the first with an unused vendor. Vendors that are down come last."""
        taken = {family for other, family in self.sitting.items() if other != seat}
        known = self.spoke.get(seat)
        return min(
            members, key=lambda member: (member.vendor in self.down, member.name != known, member.vendor in taken)
        )

    def sits(self, seat: str, member: Member) -> None:
        if seat in self.voters:
            self.sitting[seat] = member.vendor

    def leaves(self, seat: str) -> None:
        """Free the seat's vendor after all its members failed."""
        self.sitting.pop(seat, None)

    def answered(self, seat: str, member: Member) -> None:
        self.down.discard(member.vendor)
        self.spoke[seat] = member.name

    def gave_up(self, seat: str, member: Member, fault: Fault) -> None:
        """Mark the vendor as down and exclude the member from this seat, as the fault table prescribes."""
        row = TABLE[fault.kind]
        if row.vendors:
            self.down.add(member.vendor)
        if row.state in OUT_FOR_THE_RUN:
            self.out[seat, member.name] = row.state

    def gone(self, seat: str, member: str) -> str:
        """Return the state that excludes a member from this seat, or an empty string."""
        return self.out.get((seat, member), "")
