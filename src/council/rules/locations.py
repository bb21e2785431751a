"""Parse file locations as models write them: `src/auth.py:12`, `auth.py#L12-L20`, `src/auth.py, line 12`."""

from __future__ import annotations

import re
from collections.abc import Collection

MAX_TEXT_CHARS = 1_000  # characters; the rest of a text is ignored
_NUMBER = r"(?P<line>[1-9]\d{0,6})(?!\d)"
_LINE_MARK = rf"(?::L?|#L|,?\s+\(?(?:at\s+|on\s+)?(?:lines?|L)\s*){_NUMBER}"
_QUOTED = re.compile(rf"(?P<path>[^:\n]{{1,300}}?){_LINE_MARK}(?:\D.{{0,40}})?", re.IGNORECASE)  # may contain spaces
_BARE = re.compile(rf"(?<![\w/:.\\-])(?P<path>[\w./\\@+~\[\]-]{{1,300}}){_LINE_MARK}", re.IGNORECASE)
_NAMED = re.compile(
    rf"\s*(?P<path>[A-Za-z]\w{{1,60}}){_LINE_MARK}\s*", re.IGNORECASE
)  # Makefile:3, with nothing around it
_TICKED = re.compile(r"`([^`\n]{1,400})`")
_LINE_BREAK = re.compile(r"\r\n|\r|\n")


def parse_location(text: str) -> tuple[str, int] | None:
    """Return the first file and line in the text, or None. URLs and times of day do not count."""
    short = text[:MAX_TEXT_CHARS]
    if alone := _NAMED.fullmatch(short):
        return alone["path"], int(alone["line"])
    return _find_quoted(short) or _find_bare(_TICKED.sub(r"\1", short))


def _find_quoted(text: str) -> tuple[str, int] | None:
    places = (_QUOTED.fullmatch(ticked[1]) for ticked in _TICKED.finditer(text))
    return next((_to_location(place) for place in places if place and _is_file_path(place["path"])), None)


def _find_bare(text: str) -> tuple[str, int] | None:
    return next((_to_location(place) for place in _BARE.finditer(text) if _is_file_path(place["path"])), None)


def _to_location(match: re.Match[str]) -> tuple[str, int]:
    return normalize_path(match["path"]), int(match["line"])


def _is_file_path(path: str) -> bool:
    return ("/" in path or "." in path or "\\" in path) and any(sign.isalpha() for sign in path) and "//" not in path


def normalize_path(path: str) -> str:
    """Return the path with forward slashes, without a leading `./` or `[`."""
    plain = path.strip().replace("\\", "/")
    plain = plain if "]" in plain else plain.lstrip("[")
    while plain.startswith("./"):
        plain = plain[2:]
    return plain


def match_file(path: str, paths: Collection[str]) -> str | None:
    """Return the packet file with this path, or the only one whose path ends with it."""
    if path in paths:
        return path
    wanted = path[2:] if path.startswith(("a/", "b/")) else path  # prefixes of a diff
    ends = [name for name in paths if name == wanted or name.endswith(f"/{wanted}") or _is_absolute_form(wanted, name)]
    return ends[0] if len(ends) == 1 else None


def _is_absolute_form(wanted: str, name: str) -> bool:
    """Return whether `wanted` is an absolute path that ends with `name`."""
    return wanted.startswith("/") and wanted.endswith(f"/{name}")


def split_lines(content: str) -> list[str]:
    """Split into lines as an editor numbers them; a final line break does not start a new line."""
    lines = _LINE_BREAK.split(content)
    return lines[:-1] if lines[-1] == "" else lines
