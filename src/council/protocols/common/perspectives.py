"""Perspectives of judges: presets, names on the command line, user files."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from council.errors import UsageError, option
from council.text_cleanup import slugify

SHIPPED_PRESETS = Path(__file__).parents[2] / "data" / "presets"
PRESET_ORDER = (
    "security-audit",
    "architecture",
    "research",
    "ops",
    "code-review",
    "plan-review",
    "doc-review",
    "retrospective",
    "product",
    "developer-experience",
)
PERSPECTIVE_KEYS = ("name", "persona", "focus")
MAX_FILE_BYTES = 64_000  # bytes; YAML is slow to read
MAX_MERGED_KEYS = 1_000  # keys of a YAML mapping
MAX_BRACKETS = 300  # in a YAML file; nested ones take quadratic time
MAX_NAME_LENGTH = 60  # used in seat names and file names


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
    def is_user_defined(self) -> bool:
        """Return whether the preset comes from the user's folder."""
        return self.path.parent != SHIPPED_PRESETS


def list_presets(folder: Path | None = None) -> tuple[str, ...]:
    """Return the names of all presets: shipped ones first, then those in `folder`."""
    return tuple(_find_preset_files(folder))


def load_preset(name: str, folder: Path | None = None) -> Preset:
    """Load a preset; a file of the same name in `folder` overrides the shipped one."""
    files = _find_preset_files(folder)
    wanted = name.strip().lower()
    if wanted not in files:
        raise UsageError(f'unknown preset "{name}": {list_known(wanted, list(files))}')
    path = files[wanted]
    tables = _read_toml(path)
    perspectives = _parse_perspectives(tables, _format_source(path))
    return Preset(wanted, str(tables.get("about", "")), perspectives, path)


def list_known(name: str, known: Sequence[str]) -> str:
    """Return the names that there are, after the one that an unknown name resembles."""
    near = get_close_matches(name, known, n=1)
    hint = f'did you mean "{near[0]}"? ' if near else ""
    return f"{hint}known are {', '.join(known)}"


def _find_preset_files(folder: Path | None) -> dict[str, Path]:
    shipped = {name: SHIPPED_PRESETS / f"{name}.toml" for name in PRESET_ORDER}
    from_folder = {path.stem.lower(): path for path in sorted(folder.glob("*.toml"))} if folder else {}
    return shipped | from_folder


def perspectives_from_names(names: Sequence[str]) -> tuple[Perspective, ...]:
    """Return perspectives from names. The focus is made from the name."""
    return _parse_perspectives(names, option("perspectives"))


def perspectives_from_file(path: Path) -> tuple[Perspective, ...]:
    """Load perspectives from a file: TOML if the suffix is `.toml`, else YAML."""
    tables = _read_toml(path) if path.suffix.lower() == ".toml" else _read_yaml(path)
    return _parse_perspectives(tables, _format_source(path))


def _format_source(path: Path) -> str:
    return f'the perspectives file "{path}"'


def _read_text(path: Path) -> str:
    try:
        if not path.is_file():  # reading a pipe would block
            raise UsageError(
                f"{_format_source(path)} {'is not a file' if path.exists() else 'does not exist'}: give the path of a file"
            )
        if path.stat().st_size > MAX_FILE_BYTES:
            raise UsageError(f"{_format_source(path)} is larger than {MAX_FILE_BYTES // 1000} kB: shorten it")
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError, ValueError) as error:
        raise UsageError(
            f"{_format_source(path)} cannot be read ({_format_error(error)}): save it as UTF-8 text"
        ) from None


def _read_toml(path: Path) -> Any:
    try:
        return tomllib.loads(_read_text(path))
    except (ValueError, RecursionError) as error:  # also an integer of thousands of digits
        raise UsageError(f"{_format_source(path)} is not valid TOML ({_format_error(error)}): fix the syntax") from None


def _read_yaml(path: Path) -> Any:
    import yaml  # slow to import, and few runs need it

    class Loader(yaml.SafeLoader):  # type: ignore[misc]  # the loader in C crashes on deep nesting
        """Safe loader with a limit for merged mappings: ten lines of them can have a billion keys."""

        def flatten_mapping(self, node: Any) -> None:
            super().flatten_mapping(node)
            if len(node.value) > MAX_MERGED_KEYS:
                raise yaml.constructor.ConstructorError(None, None, "too many merged keys", node.start_mark)

    text = _read_text(path)
    if text.count("[") + text.count("{") > MAX_BRACKETS:
        raise UsageError(
            f"{_format_source(path)} is not valid YAML (it has more than {MAX_BRACKETS} brackets): write lists with dashes"
        )
    try:
        return yaml.load(text, Loader)
    # A tag such as "!!int" alone raises errors of Python.
    except (yaml.YAMLError, RecursionError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise UsageError(f"{_format_source(path)} is not valid YAML ({_format_error(error)}): fix the syntax") from None


def _format_error(error: Exception) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = str(getattr(error, "problem", None) or error).partition("\n")[0]
    return f"{problem}, line {mark.line + 1}" if mark else problem


def _parse_perspectives(tables: Any, source: str) -> tuple[Perspective, ...]:
    listed = tables.get("perspectives") if isinstance(tables, Mapping) else tables
    if not isinstance(listed, Sequence) or isinstance(listed, str) or not listed:
        raise UsageError(
            f"{source} contains no perspectives: list them under `perspectives`, each with a name and a focus"
        )
    perspectives = tuple(_parse_perspective(row, n, source) for n, row in enumerate(listed, 1))
    counts = Counter(slugify(one.name) for one in perspectives)
    if twice := next((one.name for one in perspectives if counts[slugify(one.name)] > 1), None):
        raise UsageError(f'{source} names "{twice}" twice: drop one')
    return perspectives


def _parse_perspective(row: Any, n: int, source: str) -> Perspective:
    fields = {"name": row} if isinstance(row, str) else row
    if not isinstance(fields, Mapping) or not isinstance(fields.get("name"), str):
        raise UsageError(f"{source} has no name for perspective {n}: write `name: …`")
    name = _parse_name(fields["name"], source)
    for key, value in fields.items():
        _check_entry(key, value, name, source)
    texts = {key: " ".join(fields.get(key, "").split()) for key in ("persona", "focus")}
    return Perspective(name, texts["persona"] or f"Council Member {n}", texts["focus"] or describe_role(name))


def describe_role(name: str) -> str:
    """Return the focus of a perspective that only has a name: review as that role."""
    role = name.replace("-", " ").replace("_", " ")
    article = "an" if role[:1].lower() in "aeiou" else "a"
    return f"review as {article} {role}: look first for what that role answers for"


def _parse_name(text: str, source: str) -> str:
    name = " ".join(text.split())
    if not any(sign.isalpha() for sign in slugify(name)):
        raise UsageError(f'{source}: name "{name}" has no letter: use at least one letter')
    if len(name) > MAX_NAME_LENGTH:
        raise UsageError(f'{source}: name "{name[:30]}…" has {len(name)} characters: use at most {MAX_NAME_LENGTH}')
    return name


def _check_entry(key: Any, value: Any, name: str, source: str) -> None:
    if key not in PERSPECTIVE_KEYS:
        known = list_known(str(key), PERSPECTIVE_KEYS)
        raise UsageError(f'{source} has an unknown key "{key}" in "{name}": {known}')
    if not isinstance(value, str):
        raise UsageError(f'{source}: {key} of "{name}" is not a string: write it as text')
