"""Rosters: seats of the user's own. A name stands in [rosters] or a file of that name; a path is a TOML file with the same table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from council.errors import UsageError
from council.panel import Where
from council.rules.bench import plain_name
from council.settings import SeatSetting, config_folder
from council.settings_files import read_config
from council.settings_keys import ROSTER, checked
from council.types import Seat

SHIPPED = Path(__file__).parents[1] / "data" / "rosters"
TAKEN = ("chair", "referee")  # names that mean something else at every table
LONGEST_NAME = 60


@dataclass(frozen=True, slots=True)
class Named:
    """A roster as it was read: who sits, what each wants to be, and what the chair is to be."""

    name: str
    seats: tuple[Seat, ...]
    members: Mapping[str, SeatSetting]
    chair: SeatSetting
    path: Path | None = None


def roster(said: str, where: Where, least: int = 2, most: int = 9) -> Named:
    """The roster of that name or in that file. Raises UsageError where it cannot sit."""
    name = said.strip()
    if name in where.settings.rosters:
        return _named(name, where.settings.rosters[name], f"[rosters.{name}]", least, most)
    path = _file(name, where)
    source = f'the roster "{path}"'
    try:
        table = read_config(path) if path.is_file() else None
    except UsageError as error:
        raise UsageError(f"{source} cannot be read: {error}") from None
    if table is None:
        raise UsageError(f"{source} does not exist: give a TOML file with a list of `seats`, or {_known(name, where)}")
    rows = {key: value for key, value in checked(table, source, ROSTER) if value is not None}
    nested = {"seats": rows.get("seats", []), "chair": {k.partition(".")[2]: v for k, v in rows.items() if "." in k}}
    return _named(name, nested, source, least, most, path)


def rosters(where: Where) -> dict[str, str]:
    """Every roster that has a name, and where it comes from."""
    files = {path.stem: str(path) for folder in _folders(where) for path in sorted(folder.glob("*.toml"))}
    return files | {name: where.settings.origins.get(f"rosters.{name}", "settings") for name in where.settings.rosters}


def _folders(where: Where) -> tuple[Path, ...]:
    return SHIPPED, config_folder(where.env) / "rosters"


def _file(name: str, where: Where) -> Path:
    """A name first, then a path as written; what looks like neither is taken for a name."""
    for folder in reversed(_folders(where)):
        if (folder / f"{name}.toml").is_file() and "/" not in name:
            return folder / f"{name}.toml"
    path = where.folder / name
    if path.exists() or "/" in name or "." in name:
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
        few = "a council needs" if len(rows) < least else "at the most"
        raise UsageError(f"{source} has {len(rows)} seats: {few} {least if len(rows) < least else most}")
    seats = tuple(_seat(row, n, source) for n, row in enumerate(rows, 1))
    names = [seat.name for seat in seats]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise UsageError(f'{source} names "{twice}" twice, and two seats cannot share a name: rename one')
    members = {seat.name: _setting(row) for seat, row in zip(seats, rows, strict=True)}
    return Named(name, seats, members, _setting(table.get("chair", {})), path)


def _seat(row: Mapping[str, Any], n: int, source: str) -> Seat:
    said = " ".join(str(row.get("name") or row.get("role") or "").split())
    name = plain_name(said)
    if not any(sign.isalpha() for sign in name):
        raise UsageError(f'{source} has no name with a letter for seat {n}: write name = "…"')
    if len(name) > LONGEST_NAME:
        raise UsageError(f'{source} has a name of {len(name)} letters, "{name[:30]}…": {LONGEST_NAME} are the most')
    if name in TAKEN:
        raise UsageError(f'{source} calls a seat "{name}", which is the chair\'s own name: rename it')
    words = {key: " ".join(str(row.get(key, "")).split()) for key in ("role", "lens", "stance", "style")}
    role = words["role"] or said.replace("_", " ").replace("-", " ").title()
    return Seat(name, role, words["lens"], words["stance"], words["style"])


def _setting(row: Mapping[str, Any]) -> SeatSetting:
    fallback = row.get("fallback")
    return SeatSetting(row.get("model"), None if fallback is None else tuple(fallback))
