"""Forks: new runs that reuse another run's answers up to a phase."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from council import events as ev
from council import protocols
from council.engine.ledger import ForkSource
from council.engine.minutes import read_plan
from council.engine.plan_object import PlanObject
from council.errors import UsageError, option
from council.planning.exclusion import require_allowed
from council.planning.plan import list_prices
from council.planning.plan_object import format_unseen, list_attachments, make_plan_seat, require_sight
from council.planning.seating import shared_vendor_notices
from council.planning.setup import ForkOrigin, RunSetup
from council.runs.run_context import RunContext
from council.settings.member_lookup import require_available, vendor_of
from council.settings.schema import quote_value
from council.store.interface import Record
from council.types import Roster, Seat

CHAIR_NAMES = ("chair", "referee")
SHARED_VENDOR_0_1 = (
    "{seats} share the family {vendor}: they are lenses on one model, not independent minds."  # in runs of 0.1
)


def plan_fork(
    parent: Record, phase: str | None, seats: Mapping[str, str], run_context: RunContext
) -> tuple[RunSetup, PlanObject]:
    """Return the setup and the plan of a fork from a phase on; the default is the first phase."""
    phases = list_phases(parent)
    if not phases:
        raise UsageError(f"run {parent.run} has not started, so it cannot be forked: wait for it, or start a new run")
    start = phase or phases[0]
    if start not in phases:
        raise UsageError(f"run {parent.run} has no phase {quote_value(start)} to fork from: it has {', '.join(phases)}")
    parent_plan = _find_plan(parent)
    for member in seats.values():
        require_allowed(member, parent_plan.get("exclude_family") or (), run_context.settings, run_context.env)
    parent_setup = RunSetup.of(parent)
    roster = _assign_members(parent_setup.roster, seats, run_context)
    earlier = phases[: phases.index(start)]
    unasked = _warn_unasked_seats(parent, roster, phases[phases.index(start) :])
    fork: ForkOrigin = {
        "run": parent.run,
        "from": start,
        "others": _phases_by_other_members(parent_setup, roster, earlier),
        "warnings": unasked,
        "earlier": earlier,
    }
    spread = protocols.get_protocol(parent_plan["protocol"]).spread
    shared = shared_vendor_notices([(seat.name, seat.vendor) for seat in roster.seats]) if spread else []
    plan = _replace_notices(parent_plan, _list_member_notices(parent), shared)
    attached = list_attachments(parent_setup.packet.attachments, roster, run_context.members)
    require_sight(attached, roster)
    spending = parent_setup.spending
    setup = replace(
        parent_setup,
        roster=roster,
        fork=fork,
        shared_vendors=tuple(shared),
        # Phases that reuse answers cost nothing.
        spending=replace(spending, phases=tuple((name, usd) for name, usd in spending.phases if name not in earlier)),
        cache_points={} if seats else parent_setup.cache_points,  # of the members that the parent's plan rehearsed
    )
    prices = list_prices(roster, run_context.price)
    plan.pop("trusted", None)
    plan.pop("prices", None)
    if run_context.settings.trusted:
        plan["trusted"] = run_context.settings.trusted.destinations
    plan["warnings"] = [*plan["warnings"], *format_unseen(attached), *unasked]
    if attached:
        plan["attachments"] = list(attached)
    plan["why"] = f"a fork of {parent.run} from {start} on"
    plan["fork"] = {"run": parent.run, "from": start}
    plan["seats"] = [make_plan_seat(seat, run_context.settings.member_timeout) for seat in roster.seats]
    plan["chair"] = make_plan_seat(roster.chair, run_context.settings.member_timeout) if roster.chair else None
    plan["calls"] = {"min": 0, "max": parent_plan["calls"]["max"] if "calls" in parent_plan else 0}
    plan["cap"] = run_context.caps.run
    plan["unpriced"] = [name for name in roster.member_names if run_context.price(name) is None]
    if prices:
        plan["prices"] = prices
    return setup, plan


def _phases_by_other_members(parent: RunSetup, now: Roster, before: list[str]) -> dict[str, list[str]]:
    """Return, by seat, the earlier phases in which another member had the seat, also by the parent's own fork."""
    members = {seat.name: seat.member for seat in parent.roster.all_seats}
    found = {}
    for seat in now.all_seats:
        has_changed = members[seat.name] != seat.member
        found[seat.name] = [one for one in before if has_changed or one in parent.changed_seats.get(seat.name, ())]
    return {seat: phases for seat, phases in found.items() if phases}


def _warn_unasked_seats(parent: Record, now: Roster, after: list[str]) -> list[str]:
    """Warn about changed seats that the complete parent run never asked from the fork on."""
    events = [entry.event for entry in parent.entries if isinstance(entry.event, ev.Asked | ev.Stated)]
    asked = {event.seat for event in events if event.phase.partition("/")[0] in after}
    members = {seat.name: seat.member for seat in RunSetup.of(parent).roster.all_seats}
    return [
        f"{seat.name} was not asked from {after[0]} on in run {parent.run}, so {seat.member} may never be: fork from an earlier phase."
        for seat in now.all_seats
        if parent.status == "complete" and members[seat.name] != seat.member and seat.name not in asked
    ]


def _list_member_notices(parent: Record) -> list[str]:
    """Return the lines of the parent's plan that depend on its members."""
    setup = RunSetup.of(parent)
    shared: Collection[str] | None = setup.shared_vendors
    if shared is None:  # 0.1 did not store them
        before = [(seat.name, seat.vendor) for seat in setup.roster.seats]
        shared = shared_vendor_notices(before, SHARED_VENDOR_0_1, most_names=99)
    unseen = format_unseen(_find_plan(parent).get("attachments", []))
    return [*shared, *unseen, *(setup.fork.get("warnings", []) if setup.fork else [])]


def _replace_notices(plan: PlanObject, stale: Collection[str], fresh: list[str]) -> PlanObject:
    """Return a copy of the plan with other lines about its members."""

    def refresh(lines: Iterable[str]) -> list[str]:
        return [*fresh, *(line for line in lines if line not in stale)]

    return {
        **plan,
        "notices": refresh(plan.get("notices", [])),
        "warnings": refresh(plan.get("warnings", [])),
        "remarks": refresh(plan.get("remarks", [])),
    }


def make_inheritance(parent: Record, fork: ForkOrigin) -> ForkSource:
    """Return the answers that a fork may reuse."""
    phases = list_phases(parent)
    return ForkSource(parent, frozenset(phases[: phases.index(fork["from"])] if fork["from"] in phases else ()))


def list_phases(record: Record) -> list[str]:
    """Return the top-level phases of a run in starting order."""
    started = [entry.event.phase for entry in record.entries if isinstance(entry.event, ev.PhaseStarted)]
    return list(dict.fromkeys(phase.partition("/")[0] for phase in started))


def _find_plan(parent: Record) -> PlanObject:
    plans = [entry.event.plan for entry in parent.entries if isinstance(entry.event, ev.Convened)]
    return read_plan(plans[0] if plans else {})


def _assign_members(roster: Roster, seats: Mapping[str, str], run_context: RunContext) -> Roster:
    names = [seat.name for seat in roster.seats]
    for name in seats:
        if name not in (*names, *(CHAIR_NAMES if roster.chair else ())):
            listed = ", ".join([*names, *(["chair"] if roster.chair else [])])
            raise UsageError(
                f"{option('seats')} sets {quote_value(name)}, but this run has no such seat: its seats are {listed}"
            )
    chair = next((seats[name] for name in CHAIR_NAMES if name in seats), None)
    return replace(
        roster,
        seats=tuple(_assign_member(seat, seats.get(seat.name), run_context) for seat in roster.seats),
        chair=roster.chair and _assign_member(roster.chair, chair, run_context),
    )


def _assign_member(seat: Seat, member: str | None, run_context: RunContext) -> Seat:
    if member is None:
        return seat
    resolved = require_available(member, run_context.settings, run_context.env)
    small = run_context.members(resolved).small
    return replace(seat, member=resolved, vendor=vendor_of(resolved, run_context.settings), fallbacks=(), small=small)
