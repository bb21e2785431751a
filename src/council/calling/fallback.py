"""Fallback policy: prefer a member whose vendor no other seat uses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from council.calling.fault_table import FAULT_TABLE
from council.errors import Fault
from council.members.base import Member
from council.store.interface import Record
from council.types import STATES_OUT_FOR_RUN, FinalState


@dataclass(slots=True)
class FallbackPolicy:
    """Vendors and excluded members of a run. The chair may share a vendor with a seat, so it does not occupy one."""

    requested_vendors: Mapping[str, str] = field(default_factory=dict)  # seat → vendor of the requested member
    serving_vendors: dict[str, str] = field(default_factory=dict)  # seat → vendor that currently serves it
    down_vendors: set[str] = field(default_factory=set)  # vendors that failed and have not answered since
    excluded: dict[tuple[str, str], FinalState] = field(default_factory=dict)  # (seat, member) → state that excludes it
    missing_models: set[str] = field(default_factory=set)  # members whose model does not exist, for every seat
    last_member: dict[str, str] = field(default_factory=dict)  # seat → member that answered last

    def __post_init__(self) -> None:
        self.serving_vendors = dict(self.requested_vendors)

    @classmethod
    def from_record(cls, requested_vendors: Mapping[str, str], record: Record) -> FallbackPolicy:
        """Restore the policy of an interrupted run: fallbacks keep their seats, excluded members stay excluded."""
        policy = cls(requested_vendors)
        for key, outcome in record.results.items():
            seat = key.rpartition("/")[2]
            policy.last_member[seat] = outcome.served_by
            for attempt in record.attempts.get(key, ()):
                result = attempt.result
                if result and "fault" in result and result.get("passed_on"):
                    row = FAULT_TABLE.get(result["fault"])
                    if row and row.state in STATES_OUT_FOR_RUN:
                        policy.exclude(seat, attempt.member, row.state)
        return policy

    def choose(self, seat: str, members: Sequence[Member]) -> Member:
        """Return the member that served the seat before, else one with an unused vendor; vendors that are down last."""
        vendors_in_use = {vendor for other, vendor in self.serving_vendors.items() if other != seat}
        last_member = self.last_member.get(seat)
        return min(
            members,
            key=lambda member: (
                member.vendor in self.down_vendors,
                member.name != last_member,
                member.vendor in vendors_in_use,
            ),
        )

    def assign(self, seat: str, member: Member) -> None:
        if seat in self.requested_vendors:
            self.serving_vendors[seat] = member.vendor

    def release(self, seat: str) -> None:
        """Free the seat's vendor after all its members failed."""
        self.serving_vendors.pop(seat, None)

    def record_answer(self, seat: str, member: Member) -> None:
        self.down_vendors.discard(member.vendor)
        self.last_member[seat] = member.name

    def record_failure(self, seat: str, member: Member, fault: Fault) -> None:
        """Mark the vendor as down and exclude the member from this seat, as the fault table prescribes."""
        row = FAULT_TABLE[fault.kind]
        if row.is_vendor_wide:
            self.down_vendors.add(member.vendor)
        if row.state in STATES_OUT_FOR_RUN:
            self.exclude(seat, member.name, row.state)

    def exclude(self, seat: str, member: str, state: FinalState) -> None:
        """Exclude a member from a seat, or from all seats if its model does not exist."""
        self.excluded[seat, member] = state
        if state == "failed(model)":
            self.missing_models.add(member)

    def exclusion_state(self, seat: str, member: str) -> FinalState | None:
        """Return the state that excludes a member from this seat, or None."""
        # A model that answered exists.
        is_missing = member in self.missing_models and member not in self.last_member.values()
        return "failed(model)" if is_missing else self.excluded.get((seat, member))
