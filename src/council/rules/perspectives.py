"""Perspectives of judges: presets, names on the command line, user files."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from council.errors import UsageError
from council.rules.bench import plain_name

SHIPPED = Path(__file__).parents[1] / "data" / "presets"
ORDER = (
    "security-audit", "architecture", "research", "ops", "code-review", "plan-review", "doc-review", "retrospective",
    "product", "developer-experience",
)  # fmt: skip
KEYS = ("name", "persona", "focus")
LARGEST = 256_000  # bytes
LONGEST_NAME = 60  # used in seat names and file names


@dataclass(frozen=True, slots=True)
class Perspective:
    """A judge's perspective: `persona` is its display name, `focus` its instructions."""

    name: str
    persona: str
    focus: str


@dataclass(frozen=True, slots=True)
class Preset:
    """A named set of perspectives and the file it was read from."""

    name: str
    about: str
    perspectives: tuple[Perspective, ...]
    path: Path

    @property
    def own(self) -> bool:
        """Return whether the preset comes from the user's folder."""
        return self.path.parent != SHIPPED


def presets(folder: Path | None = None) -> tuple[str, ...]:
    """Return the names of all presets: shipped ones first, then those in `folder`."""
    return tuple(_preset_files(folder))


def preset(name: str, folder: Path | None = None) -> Preset:
    """Load a preset; a file of the same name in `folder` overrides the shipped one."""
    files = _preset_files(folder)
    wanted = name.strip().lower()
    if wanted not in files:
        near = get_close_matches(wanted, files, n=1)
        hint = f'did you mean "{near[0]}"? ' if near else ""
        raise UsageError(f'unknown preset "{name}": {hint}known are {", ".join(files)}')
    tables = _toml(files[wanted])
    return Preset(wanted, str(tables.get("about", "")), _perspectives(tables, _file(files[wanted])), files[wanted])


def _preset_files(folder: Path | None) -> dict[str, Path]:
    shipped = {name: SHIPPED / f"{name}.toml" for name in ORDER}
    from_folder = {path.stem.lower(): path for path in sorted(folder.glob("*.toml"))} if folder else {}
    return shipped | from_folder


def perspectives_named(names: str | Iterable[str]) -> tuple[Perspective, ...]:
    """Return perspectives from names, given as a list or separated by commas. The name is also the focus."""
    listed = names.split(",") if isinstance(names, str) else list(names)
    return _perspectives({"perspectives": [name.strip() for name in listed]}, "--perspectives")


def perspectives_file(path: Path) -> tuple[Perspective, ...]:
    """Load perspectives from a file: TOML if the suffix is `.toml`, else YAML."""
    tables = _toml(path) if path.suffix.lower() == ".toml" else _yaml(path)
    return _perspectives(tables, _file(path))


def _file(path: Path) -> str:
    return f'the perspectives file "{path}"'


def _text(path: Path) -> str:
    try:
        if not path.is_file():  # reading a pipe would block
            raise UsageError(
                f"{_file(path)} {'is not a file' if path.exists() else 'does not exist'}: give the path of a file"
            )
        if path.stat().st_size > LARGEST:
            raise UsageError(f"{_file(path)} is larger than {LARGEST // 1000} kB: shorten it")
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError, ValueError) as error:
        raise UsageError(f"{_file(path)} cannot be read ({_first_line(error)}): save it as UTF-8 text") from None


def _toml(path: Path) -> Any:
    try:
        return tomllib.loads(_text(path))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise UsageError(f"{_file(path)} is not valid TOML ({_first_line(error)}): fix the syntax") from None


def _yaml(path: Path) -> Any:
    import yaml  # type: ignore[import-untyped]  # slow to import, and few runs need it

    text = _text(path)
    try:
        return yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise UsageError(f"{_file(path)} is not valid YAML ({_first_line(error)}): fix the syntax") from None


def _first_line(error: Exception) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = str(getattr(error, "problem", None) or error).partition("\n")[0]
    return f"{problem}, line {mark.line + 1}" if mark else problem


def _perspectives(tables: Any, source: str) -> tuple[Perspective, ...]:
    listed = tables.get("perspectives") if isinstance(tables, Mapping) else tables
    if not isinstance(listed, Sequence) or isinstance(listed, str) or not listed:
        raise UsageError(
            f"{source} contains no perspectives: list them under `perspectives`, each with a name and a focus"
        )
    perspectives = tuple(_perspective(row, n, source) for n, row in enumerate(listed, 1))
    slugs = [plain_name(one.name) for one in perspectives]
    if twice := next((one.name for one, name in zip(perspectives, slugs, strict=True) if slugs.count(name) > 1), None):
        raise UsageError(f'{source} names "{twice}" twice: drop one')
    return perspectives


def _perspective(row: Any, n: int, source: str) -> Perspective:
    fields = {"name": row} if isinstance(row, str) else row
    if not isinstance(fields, Mapping) or not isinstance(fields.get("name"), str):
        raise UsageError(f"{source} has no name for perspective {n}: write `name: …`")
    name = _name(fields["name"], source)
    for key, value in fields.items():
        _check(key, value, name, source)
    texts = {key: " ".join(fields.get(key, "").split()) for key in ("persona", "focus")}
    return Perspective(name, texts["persona"] or f"Council Member {n}", texts["focus"] or name.replace("-", " "))


def _name(said: str, source: str) -> str:
    name = " ".join(said.split())
    if not any(sign.isalpha() for sign in plain_name(name)):
        raise UsageError(f'{source}: name "{name}" has no letter: use at least one letter')
    if len(name) > LONGEST_NAME:
        raise UsageError(f'{source}: name "{name[:30]}…" has {len(name)} characters: use at most {LONGEST_NAME}')
    return name


def _check(key: Any, value: Any, name: str, source: str) -> None:
    if key not in KEYS:
        near = get_close_matches(str(key), KEYS, n=1)
        hint = f'did you mean "{near[0]}"? ' if near else ""
        raise UsageError(f'{source} has an unknown key "{key}" in "{name}": {hint}known are {", ".join(KEYS)}')
    if not isinstance(value, str):
        raise UsageError(f'{source}: {key} of "{name}" is not a string: write it as text')
