"""Rosters: custom seats, found by name in [rosters] or a rosters folder, or by the path of a TOML file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from council.errors import UsageError
from council.panel import Where
from council.rules.bench import plain_name
from council.settings import BUILT_IN, SeatSetting, config_folder
from council.settings_files import read_config
from council.settings_keys import ROSTER, checked
from council.types import Json, Seat

SHIPPED = Path(__file__).parents[1] / "data" / "rosters"
TAKEN = ("chair", "referee")  # reserved for the chair
LONGEST_NAME = 60
MOST_LISTED = 1_000  # listing accepts rosters that are too long for some protocols


@dataclass(frozen=True, slots=True)
class Named:
    """A parsed roster: seats and settings of each seat and of the chair."""

    name: str
    seats: tuple[Seat, ...]
    members: Mapping[str, SeatSetting]
    chair: SeatSetting
    path: Path | None = None
    about: str = ""

    def as_json(self) -> Json:
        return {
            "name": self.name, "about": self.about, "seats": [_shown(seat, self.members[seat.name]) for seat in self.seats],
            "chair": {"model": self.chair.model, "fallback": self.chair.fallback},
        }  # fmt: skip


def _shown(seat: Seat, setting: SeatSetting) -> Json:
    texts = {"role": seat.role, "lens": seat.perspective, "stance": seat.focus, "style": seat.style}
    return {"name": seat.name, **texts, "model": setting.model, "fallback": setting.fallback}


def roster(said: str, where: Where, least: int = 2, most: int = 9) -> Named:
    """Load a roster by name or path, or raise UsageError."""
    name = said.strip()
    if name in where.settings.rosters:
        return _named(name, where.settings.rosters[name], f"[rosters.{name}]", least, most)
    path = _file(name, where)
    source = f'the roster "{path}"'
    if not path.is_file():
        problem = "is not a file" if path.exists() else "does not exist"
        raise UsageError(
            f"{source} {problem}: give a TOML file with a list of `seats`, or a name; {_known(name, where)}"
        )
    rows = {key: value for key, value in checked(read_config(path), source, ROSTER) if value is not None}
    chair = {key.partition(".")[2]: value for key, value in rows.items() if "." in key}
    nested = {"about": rows.get("about", ""), "seats": rows.get("seats", []), "chair": chair}
    return _named(name, nested, source, least, most, path)


def rosters(where: Where) -> dict[str, str]:
    """Return the origin of every named roster by name."""
    shipped = {path.stem: BUILT_IN for path in sorted(SHIPPED.glob("*.toml"))}
    files = {path.stem: str(path) for path in sorted(_own_folder(where).glob("*.toml"))}
    return (
        shipped
        | files
        | {name: where.settings.origins.get(f"rosters.{name}", "settings") for name in where.settings.rosters}
    )


def described(where: Where, name: str | None = None) -> list[Json]:
    """Return every named roster, or the requested one, with its seats and origin."""
    origins = rosters(where)
    return (
        [_described(one, where, origins) for one in origins] if name is None else [_with_origin(name, where, origins)]
    )


def _described(name: str, where: Where, origins: Mapping[str, str]) -> Json:
    """Describe a roster; one that cannot be read gets a row with its error."""
    try:
        return _with_origin(name, where, origins)
    except UsageError as error:
        return {"name": name, "about": "", "seats": [], "chair": None, "origin": origins[name], "error": str(error)}


def _with_origin(name: str, where: Where, origins: Mapping[str, str]) -> Json:
    named = roster(name, where, 1, MOST_LISTED)
    return named.as_json() | {"origin": origins.get(named.name, str(named.path)), "error": None}


def _own_folder(where: Where) -> Path:
    return config_folder(where.env) / "rosters"


def _file(name: str, where: Where) -> Path:
    """Return the file of a roster: first as a name, then as a path."""
    for folder in (_own_folder(where), SHIPPED):
        if (folder / f"{name}.toml").is_file() and "/" not in name:
            return folder / f"{name}.toml"
    path = where.folder / name
    if name and (path.exists() or "/" in name or "." in name):
        return path
    raise UsageError(f'unknown roster "{name}": {_known(name, where)}')


def _known(name: str, where: Where) -> str:
    known = list(rosters(where))
    near = get_close_matches(name, known, n=1)
    hint = f'did you mean "{near[0]}"? ' if near else ""
    return f"{hint}known are {', '.join(known)}"


def _named(name: str, table: Mapping[str, Any], source: str, least: int, most: int, path: Path | None = None) -> Named:
    rows = list(table.get("seats", []))
    if not least <= len(rows) <= most:
        has = f"{source} has {len(rows)} seat{'' if len(rows) == 1 else 's'}"
        few = f"but at least {least} are needed: add {least - len(rows)}"
        many = f"but at most {most} are allowed: remove {len(rows) - most}"
        raise UsageError(f"{has}, {few if len(rows) < least else many}")
    seats = tuple(_seat(row, n, source) for n, row in enumerate(rows, 1))
    names = [seat.name for seat in seats]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise UsageError(f'{source} names "{twice}" twice: rename one')
    seats = tuple(_apart(seat, seats) for seat in seats)
    members = {seat.name: _setting(row) for seat, row in zip(seats, rows, strict=True)}
    return Named(name, seats, members, _setting(table.get("chair", {})), path, str(table.get("about", "")))


def _seat(row: Mapping[str, Any], n: int, source: str) -> Seat:
    text = " ".join(str(row.get("name") or row.get("role") or "").split())
    name = plain_name(text)
    if not any(sign.isalpha() for sign in name):
        raise UsageError(f'{source}: seat {n} has no name with a letter: write name = "…"')
    if len(name) > LONGEST_NAME:
        raise UsageError(f'{source}: name "{name[:30]}…" has {len(name)} characters: use at most {LONGEST_NAME}')
    if name in TAKEN:
        raise UsageError(f'{source} calls a seat "{name}", which is reserved for the chair: rename it')
    texts = {key: " ".join(str(row.get(key, "")).split()) for key in ("role", "lens", "stance", "style")}
    role = texts["role"] or _titled(text.replace("_", " ").replace("-", " "))
    return Seat(name, role, texts["lens"], texts["stance"], texts["style"])


def _titled(words: str) -> str:
    """Capitalise words written in lower case; "COO" is kept."""
    return words.title() if words.islower() else words


def _apart(seat: Seat, seats: Sequence[Seat]) -> Seat:
    """Add the name to a role that several seats share."""
    shared = [other.role.casefold() for other in seats].count(seat.role.casefold()) > 1
    return replace(seat, role=f"{seat.role} ({seat.name})") if shared else seat


def _setting(row: Mapping[str, Any]) -> SeatSetting:
    fallback = row.get("fallback")
    return SeatSetting(row.get("model"), None if fallback is None else tuple(fallback))
