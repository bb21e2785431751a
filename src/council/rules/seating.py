"""Who sits where: the wanted member, spread over families, with those who may take its place."""

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
LOCAL_ONLY = f"The council sits on the embedded model {LOCAL.member}, which shows the machinery, not good judgement."
BETTER = (
    "For better answers set a key (ANTHROPIC_API_KEY, OPENAI_API_KEY, GEMINI_API_KEY or OPENROUTER_API_KEY) or OLLAMA_HOST, "
    'or name a larger model in council.toml: [models] default = "local:/path/model.gguf"'
)
TABLE = ("alpha", "beta", "gamma")  # general's and ranking's seats take after these, in turn
STAYS = ("local", "scripted", "human")  # chosen to stay with it: nobody else's model is put in its place
UNSAID = SeatSetting()
NOBODY: Mapping[str, SeatSetting] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Place:
    """One seat taken: by whom, of which family, and who comes next if it fails."""

    name: str
    member: str
    vendor: str
    fallbacks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Seating:
    seats: tuple[Place, ...]
    chair: Place
    notices: tuple[str, ...] = ()  # what a reader of the answer must know
    advice: tuple[str, ...] = ()  # what whoever convenes could do about it


@dataclass(frozen=True, slots=True)
class _Wish:
    """What is wanted at a seat. `model` was chosen by a person; `wanted` and `listed` are the default table's."""

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
    """Seat everyone and the chair.

    `members` is what a roster or `--mixed` says of single seats; [seats.X] and `--seat` are stronger. `everyone` is the
    member of a council that is not spread, in place of [models] default. `chair` decides over [chair], as `--tier` does.
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
    """The embedded model, where nobody was named: whoever was named is not replaced by it, but told what is missing."""
    for member in settings.models.values():
        seatable(member, settings, env)
    return [LOCAL]


def tier_member(tier: str, settings: Settings, env: Mapping[str, str]) -> str:
    """The member a tier speaks of: [models], else the best family's model of that tier."""
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
        """The model of the default table; where nobody offers it, whoever stands for its family."""
        if name is None:
            return None
        model = catalogue().models[name]
        member = reached(model, self.settings, self.env)
        return Candidate(member, model.vendor) if member else _of(model.vendor, self.candidates)

    def spread(self, wishes: Sequence[_Wish]) -> dict[str, Candidate]:
        """First those chosen by name, then everyone whose wanted family is still free, then the rest in order."""
        seated = {wish.name: self.candidate(wish.model) for wish in wishes if wish.model}
        for wish in wishes:
            if wish.name not in seated and wish.wanted and wish.wanted.vendor not in _families(seated):
                seated[wish.name] = wish.wanted
        for wish in wishes:
            if wish.name not in seated:
                seated[wish.name] = self.instead(wish, _families(seated))
        return seated

    def instead(self, wish: _Wish, sitting: Counter[str]) -> Candidate:
        """An unused family, the listed one first; when none is left, share."""
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
        """The chair may share a family with a seat, so it asks for the best; whoever stands in for it better does not."""
        said, row = _inherited(decided, self.settings.chair), catalogue().seating["chair"] if spread else {}
        model = said.model
        wish = _Wish("chair", model, said.fallback, self.family(row.get("model")), self.family(row.get("fallback")))
        default = self.head(wish, _families(seated)) if spread else self.common(everyone)
        return self.place(wish, self.candidate(model) if model else default, seated.values())

    def head(self, wish: _Wish, sitting: Counter[str]) -> Candidate:
        """The wanted one; else the listed one, unless its family sits while another is unused; else the best there is."""
        stands_in = self.instead(wish, sitting) if wish.listed and _but(self.candidates, sitting) else wish.listed
        return wish.wanted or stands_in or self.candidates[0]

    def place(self, wish: _Wish, sitter: Candidate, sitting: Iterable[Candidate]) -> Place:
        chain = self.chain(wish, sitter, {candidate.vendor for candidate in sitting})
        return Place(wish.name, sitter.member, sitter.vendor, chain)

    def chain(self, wish: _Wish, sitter: Candidate, sitting: set[str]) -> tuple[str, ...]:
        """Who comes next: the list somebody wrote, or one of each other family, those not at the table first."""
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
        """A line for each fallback that somebody wrote down and that cannot be called."""
        written = dict.fromkeys(member for place in places for member in place.fallbacks)
        return [
            f"No fallback: {why}." for member in written if (why := reach.hindrance(member, self.settings, self.env))
        ]

    def notice(self, places: Iterable[Place]) -> list[str]:
        alone = list(self.candidates) == [LOCAL] and any(place.member == LOCAL.member for place in places)
        return [LOCAL_ONLY] if alone else []


def _inherited(own: SeatSetting | None, elder: SeatSetting | None) -> SeatSetting:
    """What was said of this seat, else of the one it takes after; a fallback goes with the model it was written for."""
    own, elder = own or SeatSetting(), elder or SeatSetting()
    if own.model:
        return own
    return replace(elder, fallback=elder.fallback if own.fallback is None else own.fallback)


def _families(seated: Mapping[str, Candidate]) -> Counter[str]:
    return Counter(candidate.vendor for candidate in seated.values())


def _of(vendor: str, candidates: Iterable[Candidate]) -> Candidate | None:
    return next((candidate for candidate in candidates if candidate.vendor == vendor), None)


def _but(candidates: Iterable[Candidate], vendors: Iterable[str]) -> list[Candidate]:
    """The first of each family that is not among these."""
    first: dict[str, Candidate] = {}
    for candidate in candidates:
        first.setdefault(candidate.vendor, candidate)
    return [candidate for vendor, candidate in first.items() if vendor not in set(vendors)]


def lenses(seats: Iterable[tuple[str, str]]) -> list[str]:
    """A line for each family that several seats share; people are of one family and no lenses."""
    families: dict[str, list[str]] = {}
    for name, vendor in seats:
        families.setdefault(vendor, []).append(name)
    return [_lenses(names, vendor) for vendor, names in families.items() if len(names) > 1 and vendor != "human"]


def _lenses(names: Sequence[str], vendor: str) -> str:
    who = f"{', '.join(names[:-1])} and {names[-1]}"
    return f"{who} share the family {vendor}: they are lenses on one model, not independent minds."
