"""Assign members to seats, spread over vendors, with fallbacks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from council.rules import reach
from council.rules.reach import Candidate, available, reached, resolve, seatable, vendor_of
from council.settings import SeatSetting, Settings, catalogue, split_member

__all__ = [
    "LOCAL", "Candidate", "Place", "Seating", "available", "lenses", "resolve", "seat_council", "tier_member", "vendor_of",
]  # fmt: skip

LOCAL = Candidate(reach.LOCAL, "local")
LOCAL_ONLY = (
    f"All seats use the embedded model {LOCAL.member}, which is a demonstration and too small for good answers."
)
BETTER = (
    "For better answers set a key (ANTHROPIC_API_KEY, OPENAI_API_KEY, GEMINI_API_KEY or OPENROUTER_API_KEY) or OLLAMA_HOST, "
    'or set a larger model in council.toml: [models] default = "local:/path/model.gguf"'
)
TABLE = ("alpha", "beta", "gamma")  # other seat names use these defaults in rotation
STAYS = ("local", "scripted", "human")  # no automatic fallback to another vendor's model
UNSAID = SeatSetting()
NOBODY: Mapping[str, SeatSetting] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Place:
    """Member, vendor and fallbacks of one seat."""

    name: str
    member: str
    vendor: str
    fallbacks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Seating:
    seats: tuple[Place, ...]
    chair: Place
    notices: tuple[str, ...] = ()  # for readers of the answer
    advice: tuple[str, ...] = ()  # for the user who starts the run


@dataclass(frozen=True, slots=True)
class _Wish:
    """Settings of a seat: `model` is configured; `wanted` and `listed` are the default member and its fallback."""

    name: str
    model: str | None
    fallback: tuple[str, ...] | None
    wanted: Candidate | None = None
    listed: Candidate | None = None


def seat_council(
    names: Sequence[str],
    settings: Settings,
    env: Mapping[str, str],
    *,
    spread: bool = True,
    members: Mapping[str, SeatSetting] = NOBODY,
    everyone: str | None = None,
    chair: SeatSetting = UNSAID,
) -> Seating:
    """Assign a member to each seat and to the chair.

    `members` comes from a roster or `--mixed`; [seats.X] and `--seat` override it. `everyone` replaces [models] default
    if the seats are not spread. `chair` overrides [chair], as for `--tier`.
    """
    table = _Table(settings, env, available(settings, env) or _local(settings, env))
    wishes = [table.wish(name, index, spread, members) for index, name in enumerate(names)]
    seated = table.spread(wishes) if spread else table.gather(wishes, everyone)
    head = table.chair(chair, everyone, spread, seated)
    places = tuple(table.place(wish, seated[wish.name], seated.values()) for wish in wishes)
    alone = table.notice((*places, head))
    shared = lenses((place.name, place.vendor) for place in places) if spread else ()
    return Seating(places, head, (*alone, *shared), (*([BETTER] if alone else []), *table.idle((*places, head))))


def _local(settings: Settings, env: Mapping[str, str]) -> list[Candidate]:
    """Return the embedded model, or raise if [models] names a member that is unavailable."""
    for member in settings.models.values():
        seatable(member, settings, env)
    return [LOCAL]


def tier_member(tier: str, settings: Settings, env: Mapping[str, str]) -> str:
    """Return the member of a tier: from [models], else the first available vendor's model of that tier."""
    if named := settings.models.get(tier) or settings.models.get("default"):
        return resolve(named, settings, env)
    first = (available(settings, env) or [LOCAL])[0]
    name = catalogue().tiers.get(first.vendor, {}).get(tier)
    return (name and reached(catalogue().models[name], settings, env)) or first.member


@dataclass(frozen=True, slots=True)
class _Table:
    settings: Settings
    env: Mapping[str, str]
    candidates: Sequence[Candidate]

    def wish(self, name: str, index: int, spread: bool, members: Mapping[str, SeatSetting]) -> _Wish:
        row = name if name in TABLE else TABLE[index % len(TABLE)]
        elder = _inherited(members.get(name), self.settings.seats.get(row) if spread else None)
        said = _inherited(self.settings.seats.get(name), elder)
        listed = catalogue().seating.get(row, {}) if spread else {}
        return _Wish(
            name, said.model, said.fallback, self.family(listed.get("model")), self.family(listed.get("fallback"))
        )

    def candidate(self, member: str) -> Candidate:
        found = seatable(member, self.settings, self.env)
        return Candidate(found, vendor_of(found, self.settings))

    def family(self, name: str | None) -> Candidate | None:
        """Return the default model if a provider offers it, else a candidate of the same vendor."""
        if name is None:
            return None
        model = catalogue().models[name]
        member = reached(model, self.settings, self.env)
        return Candidate(member, model.vendor) if member else _of(model.vendor, self.candidates)

    def spread(self, wishes: Sequence[_Wish]) -> dict[str, Candidate]:
        """Assign configured seats first, then seats whose default vendor is unused, then the rest in order."""
        seated = {wish.name: self.candidate(wish.model) for wish in wishes if wish.model}
        for wish in wishes:
            if wish.name not in seated and wish.wanted and wish.wanted.vendor not in _families(seated):
                seated[wish.name] = wish.wanted
        for wish in wishes:
            if wish.name not in seated:
                seated[wish.name] = self.instead(wish, _families(seated))
        return seated

    def instead(self, wish: _Wish, sitting: Counter[str]) -> Candidate:
        """Return a candidate of an unused vendor, the default fallback first; share a vendor if none is left."""
        unused = _but(self.candidates, sitting)
        if unused:
            return wish.listed if wish.listed and wish.listed.vendor not in sitting else unused[0]
        return wish.wanted or wish.listed or min(self.candidates, key=lambda candidate: sitting[candidate.vendor])

    def gather(self, wishes: Iterable[_Wish], everyone: str | None) -> dict[str, Candidate]:
        common = self.common(everyone)
        return {wish.name: self.candidate(wish.model) if wish.model else common for wish in wishes}

    def common(self, everyone: str | None) -> Candidate:
        named = everyone or self.settings.models.get("default")
        return self.candidate(named) if named else self.candidates[0]

    def chair(self, decided: SeatSetting, everyone: str | None, spread: bool, seated: Mapping[str, Candidate]) -> Place:
        """Assign the chair. Its default may share a vendor with a seat; its replacement should not."""
        said, row = _inherited(decided, self.settings.chair), catalogue().seating["chair"] if spread else {}
        model = said.model
        wish = _Wish("chair", model, said.fallback, self.family(row.get("model")), self.family(row.get("fallback")))
        default = self.head(wish, _families(seated)) if spread else self.common(everyone)
        return self.place(wish, self.candidate(model) if model else default, seated.values())

    def head(self, wish: _Wish, sitting: Counter[str]) -> Candidate:
        """Return the default; else its fallback, or an unused vendor if there is one; else the best candidate."""
        stands_in = self.instead(wish, sitting) if wish.listed and _but(self.candidates, sitting) else wish.listed
        return wish.wanted or stands_in or self.candidates[0]

    def place(self, wish: _Wish, sitter: Candidate, sitting: Iterable[Candidate]) -> Place:
        chain = self.chain(wish, sitter, {candidate.vendor for candidate in sitting})
        return Place(wish.name, sitter.member, sitter.vendor, chain)

    def chain(self, wish: _Wish, sitter: Candidate, sitting: set[str]) -> tuple[str, ...]:
        """Return the configured fallbacks, or one member of each other vendor, vendors without a seat first."""
        if wish.fallback is not None:
            written = dict.fromkeys(resolve(member, self.settings, self.env) for member in wish.fallback)
            return tuple(member for member in written if member != sitter.member)
        if split_member(sitter.member)[0] in STAYS:
            return ()
        others = _but([wish.listed, *self.candidates] if wish.listed else self.candidates, {sitter.vendor})
        return tuple(
            candidate.member
            for candidate in sorted(others, key=lambda candidate: candidate.vendor in sitting)
            if candidate != LOCAL
        )

    def idle(self, places: Iterable[Place]) -> list[str]:
        """Return one line for each unavailable fallback."""
        written = dict.fromkeys(member for place in places for member in place.fallbacks)
        return [
            f"Fallback unavailable: {why}."
            for member in written
            if (why := reach.hindrance(member, self.settings, self.env))
        ]

    def notice(self, places: Iterable[Place]) -> list[str]:
        alone = list(self.candidates) == [LOCAL] and any(place.member == LOCAL.member for place in places)
        return [LOCAL_ONLY] if alone else []


def _inherited(own: SeatSetting | None, elder: SeatSetting | None) -> SeatSetting:
    """Merge a seat's setting with the one it inherits. A fallback is not inherited apart from its model."""
    own, elder = own or SeatSetting(), elder or SeatSetting()
    if own.model:
        return own
    return replace(elder, fallback=elder.fallback if own.fallback is None else own.fallback)


def _families(seated: Mapping[str, Candidate]) -> Counter[str]:
    return Counter(candidate.vendor for candidate in seated.values())


def _of(vendor: str, candidates: Iterable[Candidate]) -> Candidate | None:
    return next((candidate for candidate in candidates if candidate.vendor == vendor), None)


def _but(candidates: Iterable[Candidate], vendors: Iterable[str]) -> list[Candidate]:
    """Return the first candidate of each vendor that is not listed."""
    first: dict[str, Candidate] = {}
    for candidate in candidates:
        first.setdefault(candidate.vendor, candidate)
    return [candidate for vendor, candidate in first.items() if vendor not in set(vendors)]


def lenses(seats: Iterable[tuple[str, str]]) -> list[str]:
    """Return a line for each vendor that several seats share. Human seats do not count."""
    families: dict[str, list[str]] = {}
    for name, vendor in seats:
        families.setdefault(vendor, []).append(name)
    return [_lenses(names, vendor) for vendor, names in families.items() if len(names) > 1 and vendor != "human"]


def _lenses(names: Sequence[str], vendor: str) -> str:
    who = f"{', '.join(names[:-1])} and {names[-1]}"
    return f"{who} use the same vendor ({vendor}), so their agreement means less."
