"""Parse file locations as models write them: `src/auth.py:12`, `auth.py#L12-L20`, `src/auth.py, line 12`."""

from __future__ import annotations

import re
from collections.abc import Collection

LONGEST = 1_000  # characters; the rest of a text is ignored
_NUMBER = r"(?P<line>[1-9]\d{0,6})(?!\d)"
_MARK = rf"(?::L?|#L|,?\s+\(?(?:at\s+|on\s+)?(?:lines?|L)\s*){_NUMBER}"
_QUOTED = re.compile(rf"(?P<path>[^:\n]{{1,300}}?){_MARK}(?:\D.{{0,40}})?", re.IGNORECASE)  # may contain spaces
_BARE = re.compile(rf"(?<![\w/:.\\-])(?P<path>[\w./\\@+~\[\]-]{{1,300}}){_MARK}", re.IGNORECASE)
_NAMED = re.compile(rf"\s*(?P<path>[A-Za-z]\w{{1,60}}){_MARK}\s*", re.IGNORECASE)  # Makefile:3, with nothing around it
_TICKED = re.compile(r"`([^`\n]{1,400})`")
_BREAK = re.compile(r"\r\n|\r|\n")


def read_location(text: str) -> tuple[str, int] | None:
    """Return the first file and line in the text, or None. URLs and times of day do not count."""
    short = text[:LONGEST]
    if alone := _NAMED.fullmatch(short):
        return alone["path"], int(alone["line"])
    return _quoted(short) or _bare(_TICKED.sub(r"\1", short))


def _quoted(text: str) -> tuple[str, int] | None:
    places = (_QUOTED.fullmatch(ticked[1]) for ticked in _TICKED.finditer(text))
    return next((_place(place) for place in places if place and _is_file(place["path"])), None)


def _bare(text: str) -> tuple[str, int] | None:
    return next((_place(place) for place in _BARE.finditer(text) if _is_file(place["path"])), None)


def _place(found: re.Match[str]) -> tuple[str, int]:
    return plain_path(found["path"]), int(found["line"])


def _is_file(path: str) -> bool:
    return ("/" in path or "." in path or "\\" in path) and any(sign.isalpha() for sign in path) and "//" not in path


def plain_path(path: str) -> str:
    """Return the path with forward slashes, without a leading `./` or `[`."""
    plain = path.strip().replace("\\", "/")
    plain = plain if "]" in plain else plain.lstrip("[")
    while plain.startswith("./"):
        plain = plain[2:]
    return plain


def find_file(path: str, files: Collection[str]) -> str | None:
    """Return the packet file with this path, or the only one whose path ends with it."""
    if path in files:
        return path
    wanted = path[2:] if path.startswith(("a/", "b/")) else path  # prefixes of a diff
    ends = [name for name in files if name == wanted or name.endswith(f"/{wanted}") or _is_rooted(wanted, name)]
    return ends[0] if len(ends) == 1 else None


def _is_rooted(wanted: str, name: str) -> bool:
    """Return whether `wanted` is an absolute path that ends with `name`."""
    return wanted.startswith("/") and wanted.endswith(f"/{name}")


def lines_of(content: str) -> list[str]:
    """Split into lines as an editor numbers them; a final line break does not start a new line."""
    lines = _BREAK.split(content)
    return lines[:-1] if lines[-1] == "" else lines
