"""What a caller may reach: folders within the roots, files within them, members the owner configured, money up to the owner's cap."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from council.errors import UsageError
from council.settings import Settings, load_settings, quoted, split_member
from council.types import Json

NAMES_A_FILE = ("roster", "preset", "perspectives_file")
FREE_KINDS = ("", "cli", "human")  # no prefix: a short name, which only leads to what is configured
OWNERS = {"allow_unpriced": "--allow-unpriced", "config": "--config"}  # what only whoever starts the server can say


@dataclass(frozen=True, slots=True)
class Owner:
    """Whoever started the server: where, with which environment, and what may be spent."""

    folder: Path
    env: Mapping[str, str]
    config: Path | None = None
    max_cost: float | None = None
    allow_unpriced: bool = False

    def settings(self, folder: Path) -> Settings:
        """The settings of a folder as they are without anything a caller said."""
        return load_settings(folder, self.env, flags={"max_cost": self.max_cost}, config=self.config)


@dataclass(frozen=True, slots=True)
class Caps:
    """What the settings allowed where and when the server was started: no folder that a caller chooses allows more."""

    run: float | None
    day: float | None

    @classmethod
    def of(cls, settings: Settings) -> Caps:
        return cls(settings.budget.get("max_cost"), settings.budget.get("max_cost_per_day"))

    def cap(self, here: Caps, said: float | None) -> float | None:
        """The least of what the owner, the folder and the caller say. A caller who asks for more is told."""
        most = _least(self.run, here.run)
        if said is not None and most is not None and said > most:
            raise UsageError(
                f'max_cost "{said:g}" is more than the owner of this server allows, nothing was spent: ask for {most:g} at most, or leave it out'
            )
        if self.day is not None and (here.day is None or here.day > self.day):
            raise UsageError(
                f"the settings of this folder allow more a day than the {self.day:g} of the owner of this server, nothing was spent: "
                "choose another folder, or set [budget] max_cost_per_day there"
            )
        return _least(most, said)


def _least(*amounts: float | None) -> float | None:
    return min((amount for amount in amounts if amount is not None), default=None)


# Folders and files


def roots_from(addresses: Iterable[str]) -> tuple[Path, ...]:
    """The folders among the roots that a client declares. One that declares others only has none here."""
    places = (Path(unquote(urlsplit(address).path)) for address in addresses if address.startswith("file:///"))
    found = tuple(place.resolve() for place in places if place.is_dir())
    if not found:
        raise UsageError(
            "none of the roots that this client declares is a folder here, so nothing was done: declare one that is"
        )
    return found


def own_root(owner: Owner) -> tuple[Path, ...]:
    """Where a client stays that declares no roots."""
    if owner.folder == Path(owner.folder.anchor):
        raise UsageError(
            f"this server was started in {quoted(owner.folder)}, and this client declares no roots, so every file would be open to it: "
            "start it in a project's folder, or name one with --folder"
        )
    return (owner.folder,)


def folder_within(said: str | None, roots: Sequence[Path]) -> Path:
    """The folder a council belongs to: the first root, or one below any of them."""
    place = resolved(roots[0] / (said or "."))
    if not within(place, roots):
        raise UsageError(f"the folder {quoted(said)} lies outside of what this client may use: {_shown(roots)}")
    if not place.is_dir():
        raise UsageError(f"there is no folder {quoted(said)} here: name one below {_shown(roots)}, or leave it out")
    return place


def within(place: Path, roots: Sequence[Path]) -> bool:
    return any(place.is_relative_to(root) for root in roots)


def resolved(place: Path) -> Path:
    """Where a path leads, links followed. One that no file can have leads nowhere."""
    try:
        return place.resolve()
    except (OSError, RuntimeError, ValueError):
        raise UsageError(f"{quoted(place)} is no path that could be followed: name another one") from None


def check_files(options: Json, folder: Path, roots: Sequence[Path]) -> None:
    """Refuse options that name a file outside, before anybody reads it."""
    for name in NAMES_A_FILE:
        said = options.get(name)
        if isinstance(said, str) and not within(resolved(folder / said), roots):
            raise _outside(name, said, roots)


def check_search(search: Any, asked: Any, folder: Path, roots: Sequence[Path], settings: Settings) -> None:
    """What a plan would search: a folder inside, or an address that the owner wrote down."""
    kind, _, value = str(search or "").partition(":")
    if kind == "files" and not within(resolved(folder / value), roots):
        raise _outside("search", f"files:{value}", roots)
    own = str(settings.search.get("base_url") or "").rstrip("/").removesuffix("/search").rstrip("/")
    if kind == "searxng" and asked is not None and value != own:
        raise UsageError(
            f"the search {quoted(value)} is an address of the caller's own, and none is called: the owner can name it as base_url in [search]"
        )


def _outside(name: str, said: str, roots: Sequence[Path]) -> UsageError:
    return UsageError(
        f"{name} names {quoted(said)}, which lies outside of what this client may use: take one in {_shown(roots)}"
    )


def _shown(roots: Sequence[Path]) -> str:
    return ", ".join(map(str, roots))


# Members


def check_members(members: Iterable[str], settings: Settings) -> None:
    """Nobody sits whom the owner has not configured: neither another endpoint nor a file of the caller's choice."""
    named = set(_named(settings))
    for member in members:
        kind, name = split_member(member)
        plain = kind in (*FREE_KINDS, *settings.providers) or (kind == "local" and "/" not in name)
        if not plain and member not in named:
            raise UsageError(
                f"{quoted(member)} is not configured here, so a caller cannot seat it: the owner can name it in [models] or [seats]"
            )


def _named(settings: Settings) -> Iterator[str]:
    """Every member that the settings speak of."""
    yield from settings.models.values()
    yield from (value for name, value in settings.variables.items() if name.endswith("_MODEL"))
    for seat in (*settings.seats.values(), settings.chair):
        yield from filter(None, (seat.model, *(seat.fallback or ())))
    for roster in settings.rosters.values():
        for row in (*roster.get("seats", ()), roster.get("chair", {})):
            yield from filter(None, (row.get("model"), *(row.get("fallback") or ())))


# What a caller says


def refuse_owners(options: Json) -> None:
    for name, flag in OWNERS.items():
        if name in options:
            raise UsageError(
                f"{name} is for the owner of this server to say, nothing was spent: leave it out, or start the server with {flag}"
            )
