"""Limits on MCP and HTTP callers: allowed folders, files, members and cost."""

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
FREE_KINDS = ("", "cli", "human")  # "": a short name, which resolves only to configured members
OWNERS = {"allow_unpriced": "--allow-unpriced", "config": "--config"}  # options that only the server owner may set


@dataclass(frozen=True, slots=True)
class Owner:
    """The user who started the server: folder, environment and cost limit."""

    folder: Path
    env: Mapping[str, str]
    config: Path | None = None
    max_cost: float | None = None
    allow_unpriced: bool = False

    def settings(self, folder: Path) -> Settings:
        """Load the settings of a folder without caller options."""
        return load_settings(folder, self.env, flags={"max_cost": self.max_cost}, config=self.config)


@dataclass(frozen=True, slots=True)
class Caps:
    """Cost caps at server start. A folder chosen by a caller cannot raise them."""

    run: float | None
    day: float | None

    @classmethod
    def of(cls, settings: Settings) -> Caps:
        return cls(settings.budget.get("max_cost"), settings.budget.get("max_cost_per_day"))

    def cap(self, here: Caps, requested: float | None) -> float | None:
        """Return the lowest cap of owner, folder and caller. Raise UsageError if the caller asks for more than allowed."""
        limit = _least(self.run, here.run)
        if requested is not None and limit is not None and requested > limit:
            raise UsageError(
                f'max_cost "{requested:g}" exceeds the limit of this server, nothing was spent: use {limit:g} or less, or omit it'
            )
        if self.day is not None and (here.day is None or here.day > self.day):
            raise UsageError(
                f'max_cost_per_day of this folder exceeds the limit of this server "{self.day:g}", nothing was spent: '
                "choose another folder, or lower [budget] max_cost_per_day there"
            )
        return _least(limit, requested)


def _least(*amounts: float | None) -> float | None:
    return min((amount for amount in amounts if amount is not None), default=None)


# Folders and files


def roots_from(addresses: Iterable[str]) -> tuple[Path, ...]:
    """Return the local folders among the roots a client declares. Raise UsageError if there are none."""
    places = (Path(unquote(urlsplit(address).path)) for address in addresses if address.startswith("file:///"))
    found = tuple(place.resolve() for place in places if place.is_dir())
    if not found:
        raise UsageError(
            "none of the roots declared by this client is a folder on this machine, nothing was done: declare an existing folder"
        )
    return found


def own_root(owner: Owner) -> tuple[Path, ...]:
    """Return the root for a client that declares none."""
    if owner.folder == Path(owner.folder.anchor):
        raise UsageError(
            f"this server was started in {quoted(owner.folder)} and this client declares no roots, so it could read every file: "
            "start the server in a project folder, or pass --folder"
        )
    return (owner.folder,)


def folder_within(requested: str | None, roots: Sequence[Path]) -> Path:
    """Resolve the folder of a run: the first root by default, or a folder below any root."""
    place = resolved(roots[0] / (requested or "."))
    if not within(place, roots):
        raise UsageError(f"folder {quoted(requested)} is outside the allowed roots: use a folder below {_shown(roots)}")
    if not place.is_dir():
        raise UsageError(f"folder {quoted(requested)} does not exist: use a folder below {_shown(roots)}, or omit it")
    return place


def within(place: Path, roots: Sequence[Path]) -> bool:
    return any(place.is_relative_to(root) for root in roots)


def resolved(place: Path) -> Path:
    """Resolve a path and its links. Raise UsageError if it is not a valid path."""
    try:
        return place.resolve()
    except (OSError, RuntimeError, ValueError):
        raise UsageError(f"{quoted(place)} is not a valid path: use another one") from None


def check_files(options: Json, folder: Path, roots: Sequence[Path]) -> None:
    """Raise UsageError for options that name a file outside the roots, before the file is read."""
    for name in NAMES_A_FILE:
        requested = options.get(name)
        if isinstance(requested, str) and not within(resolved(folder / requested), roots):
            raise _outside(name, requested, roots)


def check_search(search: Any, asked: Any, folder: Path, roots: Sequence[Path], settings: Settings) -> None:
    """Raise UsageError unless the search uses a folder inside the roots or an address configured by the owner."""
    kind, _, value = str(search or "").partition(":")
    if kind == "files" and not within(resolved(folder / value), roots):
        raise _outside("search", f"files:{value}", roots)
    own = str(settings.search.get("base_url") or "").rstrip("/").removesuffix("/search").rstrip("/")
    if kind == "searxng" and asked is not None and value != own:
        raise UsageError(
            f"search address {quoted(value)} is not configured on this server: the owner can set it as base_url in [search]"
        )


def _outside(name: str, requested: str, roots: Sequence[Path]) -> UsageError:
    return UsageError(f"{name} {quoted(requested)} is outside the allowed roots: use a path below {_shown(roots)}")


def _shown(roots: Sequence[Path]) -> str:
    return ", ".join(map(str, roots))


# Members


def check_members(members: Iterable[str], settings: Settings) -> None:
    """Raise UsageError for members the owner has not configured, such as other endpoints or model files."""
    named = set(_named(settings))
    for member in members:
        kind, name = split_member(member)
        plain = kind in (*FREE_KINDS, *settings.providers) or (kind == "local" and "/" not in name)
        if not plain and member not in named:
            raise UsageError(
                f"member {quoted(member)} is not configured on this server: the owner can add it to [models] or [seats]"
            )


def _named(settings: Settings) -> Iterator[str]:
    """Yield every member named in the settings."""
    yield from settings.models.values()
    yield from (value for name, value in settings.variables.items() if name.endswith("_MODEL"))
    for seat in (*settings.seats.values(), settings.chair):
        yield from filter(None, (seat.model, *(seat.fallback or ())))
    for roster in settings.rosters.values():
        for row in (*roster.get("seats", ()), roster.get("chair", {})):
            yield from filter(None, (row.get("model"), *(row.get("fallback") or ())))


# Caller options


def refuse_owners(options: Json) -> None:
    """Raise UsageError for options that only the server owner may set."""
    for name, flag in OWNERS.items():
        if name in options:
            raise UsageError(
                f"{name} can only be set by the owner of this server, nothing was spent: omit it, or start the server with {flag}"
            )
