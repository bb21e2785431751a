"""Assign members to seats, spread over vendors, with fallbacks."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from council.engine.degraded import join_names
from council.engine.plan_object import PlanLine
from council.errors import ConfigError
from council.settings import SEAT_FLAG, Provider, SeatSetting, Settings
from council.settings.catalogue import catalogue, model_id, split_member
from council.settings.member_lookup import (
    DEFAULT_SEATS,
    LOCAL_CANDIDATE,
    Candidate,
    Retirement,
    available_members,
    fast_members,
    find_default_member,
    find_retirement,
    require_available,
    resolve_member,
    unavailable_reason,
    vendor_of,
)
from council.settings.model_lists import find_listing
from council.types import Roster, Seat

LOCAL_ONLY_NOTICE = f"All seats use the embedded model {LOCAL_CANDIDATE.member}, which is a demonstration and too small for good answers."
ADD_MODELS_ADVICE = (
    "For better answers set a key (ANTHROPIC_API_KEY, OPENAI_API_KEY, GEMINI_API_KEY or OPENROUTER_API_KEY) or OLLAMA_HOST, "
    'or set a larger model in council.toml: [models] default = "local:/path/model.gguf"'
)
SHARED_VENDOR = "{seats} use the same vendor ({vendor}), so their agreement means less."
NO_FALLBACK_PROVIDERS = ("local", "scripted", "human")  # no automatic fallback to another vendor's model
UNSET_SEAT = SeatSetting()
NO_MEMBERS: Mapping[str, SeatSetting] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class SeatAssignment:
    """Member, vendor and fallbacks of one seat."""

    name: str
    member: str
    vendor: str
    fallbacks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Seating:
    seats: tuple[SeatAssignment, ...]
    chair: SeatAssignment
    notices: tuple[str, ...] = ()  # for readers of the answer
    shared_vendors: tuple[str, ...] = ()  # those of the notices that another assignment of members may change
    hints: tuple[str, ...] = ()  # for the user who starts the run, once a day
    remarks: tuple[str, ...] = ()  # for a user who wants to know more
    lines: tuple[PlanLine, ...] = ()


@dataclass(frozen=True, slots=True)
class _SeatRequest:
    """Settings of a seat: `model` is configured; the defaults are the usual member of the seat and its fallback."""

    name: str
    model: str | None
    fallback: tuple[str, ...] | None
    default: Candidate | None = None
    default_fallback: Candidate | None = None


def seat_council(
    names: Sequence[str],
    settings: Settings,
    env: Mapping[str, str],
    *,
    spread: bool = True,
    members: Mapping[str, SeatSetting] = NO_MEMBERS,
    shared_member: str | None = None,
    chair: SeatSetting = UNSET_SEAT,
    chair_apart: bool = False,
) -> Seating:
    """Assign a member to each seat and to the chair.

    `members` comes from a roster or `--mixed`; [seats.X] overrides it, `-m` overrides both, and `--seat` overrides all.
    `shared_member` replaces [models] default if the seats are not spread. `chair` overrides [chair], as for `--tier`.
    `chair_apart`: the chair uses a member without a seat if there is a choice.
    """
    table = _Assigner(settings, env, _list_candidates(settings, env))
    requests = [table.build_request(name, index, spread, members) for index, name in enumerate(names)]
    seated = table.assign_spread(requests) if spread else table.assign_shared(requests, shared_member)
    head = table.assign_chair(chair, shared_member, spread, seated, apart=chair_apart)
    places = tuple(table.build_assignment(request, seated[request.name], seated.values()) for request in requests)
    everyone = (*places, head)
    asked = [place.member for place in everyone]
    fallbacks = dict.fromkeys(member for place in everyone for member in place.fallbacks)
    has_only_local = list(table.candidates) == [LOCAL_CANDIDATE] and LOCAL_CANDIDATE.member in asked
    alone = [LOCAL_ONLY_NOTICE] if has_only_local else []
    unavailable = filter(None, (unavailable_reason(member, settings, env) for member in fallbacks))
    lines = list_lines({*asked, *fallbacks}, settings, env)
    changes = format_model_changes(lines, asked, settings, env)
    shared = shared_vendor_notices((place.name, place.vendor) for place in places) if spread else ()
    return Seating(
        places,
        head,
        (*alone, *shared),
        tuple(shared),
        hints=(*alone, *([ADD_MODELS_ADVICE] if alone else []), *changes),
        remarks=(*shared, *(f"Fallback unavailable: {why}." for why in unavailable)),
        lines=lines,
    )


def _list_candidates(settings: Settings, env: Mapping[str, str]) -> Sequence[Candidate]:
    """Return the members of `-m`, else the fast ones for `--cheap`, else all that are available, best first."""
    if settings.named_members:
        named = dict.fromkeys(require_available(member, settings, env) for member in settings.named_members)
        return [Candidate(member, vendor_of(member, settings)) for member in named]
    if settings.cheap:
        return fast_members(settings, env)
    if found := available_members(settings, env):
        return found
    for member in settings.models.values():  # one that is unavailable is an error
        require_available(member, settings, env)
    return [LOCAL_CANDIDATE]


@dataclass(frozen=True, slots=True)
class _Assigner:
    settings: Settings
    env: Mapping[str, str]
    candidates: Sequence[Candidate]

    def build_request(self, name: str, index: int, spread: bool, members: Mapping[str, SeatSetting]) -> _SeatRequest:
        row = name if name in DEFAULT_SEATS else DEFAULT_SEATS[index % len(DEFAULT_SEATS)]
        if self.settings.named_members or self.settings.cheap:
            said = self.choose_setting(name, index, row if spread else "", members.get(name, UNSET_SEAT))
        else:
            elder = _merge_settings(members.get(name), self.settings.seats.get(row) if spread else None)
            said = _merge_settings(self.settings.seats.get(name), elder)
        listed = catalogue().seating.get(row, {}) if spread and not self.settings.named_members else {}
        return self.make_request(name, said, listed)

    def make_request(self, name: str, said: SeatSetting, listed: Mapping[str, str]) -> _SeatRequest:
        default, fallback = (self.find_default(listed.get(key)) for key in ("model", "fallback"))
        return _SeatRequest(name, said.model, said.fallback, default, fallback)

    def choose_setting(self, name: str, index: int, row: str, planned: SeatSetting) -> SeatSetting:
        """Return the setting of a seat by `--seat`, else by `-m`, else by `--cheap`. The models of files have no
        effect.

        A named member has no automatic fallback: the other named members have seats themselves.
        """
        named = self.settings.named_members
        for seat in (name, row if index < len(DEFAULT_SEATS) else ""):
            if self.is_set_by_hand(f"seats.{seat}.model"):
                own = self.settings.seats[seat]
                return replace(own, fallback=()) if named and own.fallback is None else own
        if named:  # in order, and again from the first one if there are more seats
            return SeatSetting(named[index % len(named)], ())
        return planned if planned.model in [candidate.member for candidate in self.candidates] else UNSET_SEAT

    def choose_chair_setting(self, decided: SeatSetting) -> SeatSetting:
        """Return the setting of the chair: `--seat`, a single `-m`, `--cheap`, its own member, the first `-m`."""
        named, configured = self.settings.named_members, _merge_settings(decided, self.settings.chair)
        if self.is_set_by_hand("chair.model"):
            return self.settings.chair
        if len(named) == 1:
            return SeatSetting(named[0])
        if self.settings.cheap:
            return SeatSetting(self.find_fast_member()) if named else UNSET_SEAT
        return configured if configured.model or not named else SeatSetting(named[0], configured.fallback)

    def find_fast_member(self) -> str:
        """Return a fast member for the chair of named members, else the first of them."""
        try:
            fast = [candidate for candidate in fast_members(self.settings, self.env) if candidate != LOCAL_CANDIDATE]
        except ConfigError:
            fast = []
        return fast[0].member if fast else self.settings.named_members[0]

    def is_set_by_hand(self, key: str) -> bool:
        return self.settings.is_set_by_flag(key, SEAT_FLAG)

    def require_candidate(self, member: str) -> Candidate:
        found = require_available(member, self.settings, self.env)
        return Candidate(found, vendor_of(found, self.settings))

    def find_default(self, name: str | None) -> Candidate | None:
        """Return the newest model of the default line if a provider offers it, else a candidate of the same vendor."""
        if name is None:
            return None
        vendor = catalogue().lines[name].vendor
        is_excluded = self.settings.cheap or not self.settings.may_choose(vendor)
        member = None if is_excluded else find_default_member(name, self.settings, self.env)
        if member:
            return Candidate(member, vendor)
        return next((candidate for candidate in self.candidates if candidate.vendor == vendor), None)

    def assign_spread(self, requests: Sequence[_SeatRequest]) -> dict[str, Candidate]:
        """Assign configured seats first, then seats whose default vendor is unused, then the rest in order."""
        seated = {request.name: self.require_candidate(request.model) for request in requests if request.model}
        for request in requests:
            if request.name not in seated and request.default and request.default.vendor not in _count_vendors(seated):
                seated[request.name] = request.default
        for request in requests:
            if request.name not in seated:
                seated[request.name] = self.choose_alternate(request, _count_vendors(seated))
        return seated

    def choose_alternate(self, request: _SeatRequest, sitting: Counter[str]) -> Candidate:
        """Return a candidate of an unused vendor, the default fallback first; share a vendor if none is left."""
        fallback = request.default_fallback
        if unused := _first_of_other_vendors(self.candidates, sitting):
            return fallback if fallback and fallback.vendor not in sitting else unused[0]
        return request.default or fallback or min(self.candidates, key=lambda candidate: sitting[candidate.vendor])

    def assign_shared(self, requests: Iterable[_SeatRequest], shared_member: str | None) -> dict[str, Candidate]:
        common = self.find_shared(shared_member)
        return {one.name: self.require_candidate(one.model) if one.model else common for one in requests}

    def find_shared(self, shared_member: str | None) -> Candidate:
        if self.settings.cheap or self.settings.named_members:
            return self.candidates[0]
        named = shared_member or self.settings.models.get("default")
        return self.require_candidate(named) if named else self.candidates[0]

    def assign_chair(
        self,
        decided: SeatSetting,
        shared_member: str | None,
        spread: bool,
        seated: Mapping[str, Candidate],
        *,
        apart: bool,
    ) -> SeatAssignment:
        """Assign the chair. Its default may share a vendor with a seat unless `apart`; its replacement should not."""
        said, row = self.choose_chair_setting(decided), catalogue().seating["chair"]
        if not spread or self.settings.named_members:
            row = {}
        request = self.make_request("chair", said, row)
        default = self.choose_chair(request, _count_vendors(seated)) if spread else self.find_shared(shared_member)
        if apart and spread and default in seated.values():
            default = self.find_unseated(seated) or default
        chosen = self.require_candidate(said.model) if said.model else default
        return self.build_assignment(request, chosen, seated.values())

    def choose_chair(self, request: _SeatRequest, sitting: Counter[str]) -> Candidate:
        """Return the default; else its fallback, or an unused vendor if there is one; else the best candidate."""
        if request.default or not request.default_fallback:
            return request.default or self.candidates[0]
        has_unused = _first_of_other_vendors(self.candidates, sitting)
        return self.choose_alternate(request, sitting) if has_unused else request.default_fallback

    def find_unseated(self, seated: Mapping[str, Candidate]) -> Candidate | None:
        """Return a candidate for the chair whose vendor has no seat, or None.

        A guessed model of a provider without a key, and the member of [models] fast, may be much weaker than the seats.
        """
        others = _first_of_other_vendors(filter(self.is_comparable, self.candidates), _count_vendors(seated))
        return others[0] if others else None

    def is_comparable(self, candidate: Candidate) -> bool:
        """Return whether a candidate is meant for the same work as the seats."""
        models = {name: resolve_member(one, self.settings, self.env) for name, one in self.settings.models.items()}
        fast = models.pop("fast", None)
        if candidate.member in models.values() or self.settings.cheap:
            return True
        provider = self.settings.providers.get(split_member(candidate.member)[0])
        return provider is not None and bool(provider.api_key_env) and candidate.member != fast

    def build_assignment(
        self, request: _SeatRequest, assigned: Candidate, sitting: Iterable[Candidate]
    ) -> SeatAssignment:
        chain = self.build_fallbacks(request, assigned, {candidate.vendor for candidate in sitting})
        return SeatAssignment(request.name, assigned.member, assigned.vendor, chain)

    def build_fallbacks(self, request: _SeatRequest, assigned: Candidate, sitting: set[str]) -> tuple[str, ...]:
        """Return the configured fallbacks, or one member of each other vendor, vendors without a seat first."""
        if request.fallback is not None:
            written = dict.fromkeys(resolve_member(member, self.settings, self.env) for member in request.fallback)
            return tuple(member for member in written if member != assigned.member)
        if split_member(assigned.member)[0] in NO_FALLBACK_PROVIDERS:
            return ()
        preferred = [request.default_fallback] if request.default_fallback else []
        others = _first_of_other_vendors([*preferred, *self.candidates], {assigned.vendor})
        others.sort(key=lambda candidate: candidate.vendor in sitting)
        return tuple(candidate.member for candidate in others if candidate != LOCAL_CANDIDATE)


def _merge_settings(own: SeatSetting | None, inherited: SeatSetting | None) -> SeatSetting:
    """Merge a seat's setting with the one it inherits. A fallback is not inherited apart from its model."""
    own, inherited = own or UNSET_SEAT, inherited or UNSET_SEAT
    if own.model:
        return own
    if own.fallback is None:
        return inherited
    return replace(inherited, fallback=own.fallback)


def _count_vendors(seated: Mapping[str, Candidate]) -> Counter[str]:
    return Counter(candidate.vendor for candidate in seated.values())


def add_fallback_vendors(roster: Roster, settings: Settings) -> Roster:
    """Return the roster with the vendors of fallbacks that are not their providers, such as those of a router."""

    def add_vendors(seat: Seat) -> Seat:
        vendors = {member: vendor_of(member, settings) for member in seat.fallbacks}
        told = tuple((member, vendor) for member, vendor in vendors.items() if vendor != member.partition(":")[0])
        return replace(seat, fallback_vendors=told) if told else seat

    return roster.map_seats(add_vendors)


def _first_of_other_vendors(candidates: Iterable[Candidate], vendors: Container[str]) -> list[Candidate]:
    """Return the first candidate of each vendor that is not listed."""
    first: dict[str, Candidate] = {}
    for candidate in candidates:
        first.setdefault(candidate.vendor, candidate)
    return [candidate for vendor, candidate in first.items() if vendor not in vendors]


def shared_vendor_notices(
    seats: Iterable[tuple[str, str]], wording: str = SHARED_VENDOR, most_names: int = 5
) -> list[str]:
    """Return a line for each vendor of several seats; more than `most_names` are counted. People do not count."""
    families: dict[str, list[str]] = {}
    for name, vendor in seats:
        families.setdefault(vendor, []).append(name)
    return [
        wording.format(seats=join_names(names) if len(names) <= most_names else f"{len(names)} seats", vendor=vendor)
        for vendor, names in families.items()
        if len(names) > 1 and vendor != "human"
    ]


# Lines of models, such as opus, and members that were retired

VENDOR_PREFIXES = ("anthropic:", "openai:", "google:", "openrouter:")  # providers whose models change


def list_lines(members: Collection[str], settings: Settings, env: Mapping[str, str]) -> tuple[PlanLine, ...]:
    """Return the lines that these members are the newest models of, with the names that they stand for."""
    if not any(member.startswith(VENDOR_PREFIXES) for member in members):
        return ()
    rows: list[PlanLine] = []
    for line in catalogue().lines.values():
        member = find_default_member(line.name, settings, env)
        if member and member in members:
            provider = settings.providers[split_member(member)[0]]
            row: PlanLine = {
                "line": line.name,
                "model": member,
                "documented": line.documented or None,
                "source": "snapshot",
                "date": catalogue().snapshot,
            }
            _add_listing(row, f"{provider.name}:{line.snapshot}", provider, settings, env)
            rows.append(row)
    return tuple(rows)


def _add_listing(row: PlanLine, usual: str, provider: Provider, settings: Settings, env: Mapping[str, str]) -> None:
    """Add what the list of the provider says about a line. `usual` is the member that this version knows."""
    listing = find_listing(provider, settings, env)
    if listing is None:
        return
    row["source"] = "list"
    row["date"] = time.strftime("%Y-%m-%d", time.gmtime(listing.fetched))
    if row["model"] != usual:
        row["replaces"] = usual
        row["change"] = "unlisted" if listing.lacks(model_id(usual)) else "newer"


def format_model_changes(
    lines: Sequence[PlanLine], asked: Iterable[str], settings: Settings, env: Mapping[str, str]
) -> list[str]:
    """Return a text for each new or retired model among the members that are asked first."""
    asked = list(dict.fromkeys(asked))
    changes = [_format_change(row) for row in lines if "replaces" in row and row["model"] in asked]
    if any(member.startswith(VENDOR_PREFIXES) for member in asked):
        retirements = {member: find_retirement(member, settings, env) for member in asked}
        changes += [_format_retirement(member, why) for member, why in retirements.items() if why]
    return changes


def _format_change(row: PlanLine) -> str:
    vendor = split_member(row["replaces"])[0]
    if row["change"] == "unlisted":
        return f"{row['line']}: {vendor} does not list {row['replaces']}, so {row['model']} is used."
    return f"{row['line']}: {row['model']} is used, which is newer than {row['replaces']}."


def _format_retirement(member: str, retirement: Retirement) -> str:
    """Return one line about a model that was retired, will be, or is not listed by its vendor."""
    if not retirement.date:
        state = f"{member} is not listed by {split_member(member)[0]}"
    else:
        state = f"{member} {'was' if retirement.is_over else 'will be'} retired on {retirement.date}"
    return f"{state}: use {retirement.successor}." if retirement.successor else f"{state}."
