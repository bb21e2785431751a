"""Rosters: custom seats, found by name in [rosters] or a rosters folder, or by the path of a TOML file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypedDict

from council.errors import UsageError
from council.protocols.common.perspectives import list_known
from council.protocols.seats import PanelContext
from council.settings import BUILT_IN, SeatSetting
from council.settings.config_files import config_folder, read_config
from council.settings.schema import ROSTER_KEYS, validate_table
from council.settings.workspace_trust import TrustRequest, find_trusted_rows, is_trusted
from council.text_cleanup import slugify
from council.types import Seat

SHIPPED_ROSTERS = Path(__file__).parents[2] / "data" / "rosters"
RESERVED_NAMES = ("chair", "referee")  # reserved for the chair
MAX_NAME_LENGTH = 60
MAX_LISTED_SEATS = 1_000  # listing accepts rosters that are too long for some protocols


class RosterMember(TypedDict):
    """The member of a seat; null if the settings choose it."""

    model: str | None
    fallback: Sequence[str] | None


class RosterSeat(RosterMember):
    """A seat of a roster."""

    name: str
    role: str
    lens: str
    stance: str
    style: str


class DescribedRoster(TypedDict):
    """A roster, and its file or table; one that cannot be read has no chair, and the reason."""

    name: str
    about: str
    seats: list[RosterSeat]
    chair: RosterMember | None
    origin: str
    error: str | None


@dataclass(frozen=True, slots=True)
class NamedRoster:
    """A parsed roster: seats and settings of each seat and of the chair."""

    name: str
    seats: tuple[Seat, ...]
    members: Mapping[str, SeatSetting]
    chair: SeatSetting
    path: Path | None = None
    about: str = ""


def _format_seat(seat: Seat, setting: SeatSetting) -> RosterSeat:
    return {
        "name": seat.name,
        "role": seat.role,
        "lens": seat.perspective,
        "stance": seat.focus,
        "style": seat.style,
        "model": setting.model,
        "fallback": setting.fallback,
    }


def load_roster(name_or_path: str, context: PanelContext, min_seats: int = 2, max_seats: int = 9) -> NamedRoster:
    """Load a roster by name or path, or raise UsageError. Members of a file need trust as in council.toml."""
    roster = _read_roster(name_or_path, context, min_seats, max_seats)
    request, has_trust = _make_trust_request(roster, context)
    if request and not has_trust:
        raise request.error()
    return roster


def find_trust_request(name_or_path: str, context: PanelContext) -> tuple[TrustRequest | None, bool]:
    """Return what needs trust in a roster file, or None, and whether it is trusted."""
    return _make_trust_request(_read_roster(name_or_path, context, 1, MAX_LISTED_SEATS), context)


def _make_trust_request(roster: NamedRoster, context: PanelContext) -> tuple[TrustRequest | None, bool]:
    if roster.path is None or roster.path.parent in (_user_folder(context), SHIPPED_ROSTERS):
        return None, True
    settings = {**{f"seats.{name}": setting for name, setting in roster.members.items()}, "chair": roster.chair}
    rows = [
        (f"{place}.{key}", value)
        for place, setting in settings.items()
        for key, value in (("model", setting.model), ("fallback", list(setting.fallback or ())))
    ]
    needed = find_trusted_rows(rows, context.settings.providers)
    if not needed:
        return None, True
    request = TrustRequest(roster.path, context.folder, needed, context.folder)
    return request, is_trusted(request, context.env, context.settings.trust_flags)


def _read_roster(name_or_path: str, context: PanelContext, min_seats: int, max_seats: int) -> NamedRoster:
    name = name_or_path.strip()
    if name in context.settings.rosters:
        return _parse_roster(name, context.settings.rosters[name], f"[rosters.{name}]", min_seats, max_seats)
    path = _find_file(name, context)
    source = f'the roster "{path}"'
    if not path.is_file():
        problem = "is not a file" if path.exists() else "does not exist"
        raise UsageError(
            f"{source} {problem}: give a TOML file with a list of `seats`, or a name; {_format_known_rosters(name, context)}"
        )
    rows = {key: value for key, value in validate_table(read_config(path), source, ROSTER_KEYS) if value is not None}
    chair = {key.partition(".")[2]: value for key, value in rows.items() if "." in key}
    nested = {"about": rows.get("about", ""), "seats": rows.get("seats", []), "chair": chair}
    return _parse_roster(name, nested, source, min_seats, max_seats, path)


def list_rosters(context: PanelContext) -> dict[str, str]:
    """Return the origin of every named roster by name."""
    shipped = {path.stem: str(BUILT_IN) for path in sorted(SHIPPED_ROSTERS.glob("*.toml"))}
    files = {path.stem: str(path) for path in sorted(_user_folder(context).glob("*.toml"))}
    settings = context.settings
    return shipped | files | {name: str(settings.origins[f"rosters.{name}"]) for name in settings.rosters}


def describe_rosters(context: PanelContext, name: str | None = None) -> list[DescribedRoster]:
    """Return every named roster, or the requested one, with its seats and origin."""
    origins = list_rosters(context)
    if name is not None:
        return [_describe_roster(name, context, origins)]
    return [_describe_or_error(one, context, origins) for one in origins]


def _describe_or_error(name: str, context: PanelContext, origins: Mapping[str, str]) -> DescribedRoster:
    """Describe a roster; one that cannot be read gets a row with its error."""
    try:
        return _describe_roster(name, context, origins)
    except UsageError as error:
        return {"name": name, "about": "", "seats": [], "chair": None, "origin": origins[name], "error": str(error)}


def _describe_roster(name: str, context: PanelContext, origins: Mapping[str, str]) -> DescribedRoster:
    named = _read_roster(name, context, 1, MAX_LISTED_SEATS)
    return {
        "name": named.name,
        "about": named.about,
        "seats": [_format_seat(seat, named.members[seat.name]) for seat in named.seats],
        "chair": {"model": named.chair.model, "fallback": named.chair.fallback},
        "origin": origins.get(named.name, str(named.path)),
        "error": None,
    }


def _user_folder(context: PanelContext) -> Path:
    return config_folder(context.env) / "rosters"


def _find_file(name: str, context: PanelContext) -> Path:
    """Return the file of a roster: first as a name, then as a path."""
    for folder in (_user_folder(context), SHIPPED_ROSTERS):
        if (folder / f"{name}.toml").is_file() and "/" not in name:
            return folder / f"{name}.toml"
    path = context.folder / name
    if name and (path.exists() or "/" in name or "." in name):
        return path
    raise UsageError(f'unknown roster "{name}": {_format_known_rosters(name, context)}')


def _format_known_rosters(name: str, context: PanelContext) -> str:
    return list_known(name, list(list_rosters(context)))


def _parse_roster(
    name: str, table: Mapping[str, Any], source: str, min_seats: int, max_seats: int, path: Path | None = None
) -> NamedRoster:
    rows = list(table.get("seats", []))
    if not min_seats <= len(rows) <= max_seats:
        has = f"{source} has {len(rows)} seat{'' if len(rows) == 1 else 's'}"
        few = f"but at least {min_seats} are needed: add {min_seats - len(rows)}"
        many = f"but at most {max_seats} are allowed: remove {len(rows) - max_seats}"
        raise UsageError(f"{has}, {few if len(rows) < min_seats else many}")
    seats = tuple(_parse_seat(row, n, source) for n, row in enumerate(rows, 1))
    names = [seat.name for seat in seats]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise UsageError(f'{source} names "{twice}" twice: rename one')
    seats = tuple(_disambiguate_role(seat, seats) for seat in seats)
    members = {seat.name: _parse_setting(row) for seat, row in zip(seats, rows, strict=True)}
    return NamedRoster(name, seats, members, _parse_setting(table.get("chair", {})), path, str(table.get("about", "")))


def _parse_seat(row: Mapping[str, Any], n: int, source: str) -> Seat:
    text = " ".join(str(row.get("name") or row.get("role") or "").split())
    name = slugify(text)
    if not any(sign.isalpha() for sign in name):
        raise UsageError(f'{source}: seat {n} has no name with a letter: write name = "…"')
    if len(name) > MAX_NAME_LENGTH:
        raise UsageError(f'{source}: name "{name[:30]}…" has {len(name)} characters: use at most {MAX_NAME_LENGTH}')
    if name in RESERVED_NAMES:
        raise UsageError(f'{source} calls a seat "{name}", which is reserved for the chair: rename it')
    texts = {key: " ".join(str(row.get(key, "")).split()) for key in ("role", "lens", "stance", "style")}
    spaced = text.replace("_", " ").replace("-", " ")
    role = texts["role"] or (spaced.title() if spaced.islower() else spaced)  # "COO" is kept
    return Seat(name, role, texts["lens"], texts["stance"], texts["style"])


def _disambiguate_role(seat: Seat, seats: Sequence[Seat]) -> Seat:
    """Add the name to a role that several seats share."""
    shared = [other.role.casefold() for other in seats].count(seat.role.casefold()) > 1
    return replace(seat, role=f"{seat.role} ({seat.name})") if shared else seat


def _parse_setting(row: Mapping[str, Any]) -> SeatSetting:
    fallback = row.get("fallback")
    return SeatSetting(row.get("model"), None if fallback is None else tuple(fallback))
