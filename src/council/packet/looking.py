"""Read-only look-ups for explorers: file slices, file names, matching lines. Results pass the same gate as named files."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from council.errors import UsageError
from council.packet import git, grepping, reading
from council.packet.gate import FILE_LIMIT, Gate
from council.packet.names import denied, is_lock, is_private, shown
from council.packet.reading import Unreadable
from council.packet.trees import globbed, is_glob, listing
from council.types import Json

MOST_ASKED = 10  # of each kind
SLICE_LINES = 400
SLICE_CHARS = 40_000
NAMES_SHOWN = 50
HITS_SHOWN = 40
LINE_SHOWN = 300
SEARCHED_BYTES = 8_000_000
SECONDS = 3.0


def look(root: Path, wanted: Json, *, redact: bool = False) -> list[Json]:
    """Return one row per request: the result, or `why` it is not shown. Invalid requests become rows, not errors."""
    rows = [_slice(root, item, redact) for item in _asked(wanted, "files")]
    names = _names(root) if wanted.get("names") or wanted.get("patterns") else []
    rows += [_named(item, names) for item in _asked(wanted, "names")]
    patterns = _asked(wanted, "patterns")
    texts = _texts(root, names) if patterns else {}
    return [*rows, *(_matching(root, item, texts, redact) for item in patterns)]


def _asked(wanted: Json, kind: str) -> list[Any]:
    items = wanted.get(kind)
    return items[:MOST_ASKED] if isinstance(items, list) else []


def _names(root: Path) -> list[str]:
    try:
        return listing(git.find(root), root)
    except UsageError:
        return []  # too many files to search; they can still be requested by name


# Files.


def _slice(root: Path, item: Any, redact: bool) -> Json:
    asked = item if isinstance(item, dict) else {"path": item}
    row: Json = {"look": "file", "path": _said(asked.get("path"))}
    try:
        text = _shown(root, inside_of(root, asked.get("path")), redact)
    except (UsageError, Unreadable) as error:
        return row | {"why": str(error)}
    lines = text.splitlines(keepends=True)
    start, end = _span(asked, len(lines))
    return row | {
        "from": start,
        "to": end,
        "lines": len(lines),
        "content": "".join(lines[start - 1 : end])[:SLICE_CHARS],
    }


def inside_of(root: Path, path: Any) -> str:
    if not isinstance(path, str) or not path.strip():
        raise Unreadable("a path is needed")
    return reading.inside(root, path)


def _span(asked: Json, lines: int) -> tuple[int, int]:
    start, end = (value if isinstance(value := asked.get(name), int) else None for name in ("from", "to"))
    first = min(max(1, start or 1), max(1, lines))
    return first, min(max(first, end or lines), lines, first + SLICE_LINES - 1)


def _shown(root: Path, path: str, redact: bool) -> str:
    """Return a whole file through the gate, even for a slice: a key is detected by its first line."""
    gate = Gate(root, redact)
    text = gate.read(path)
    if text is not None:
        return text
    if gate.places:
        raise Unreadable(f"not shown, secret found at {next(iter(gate.places))}")
    raise Unreadable(next((skipped.why for skipped in gate.skipped.values()), "not shown"))


# Names.


def _named(item: Any, names: Sequence[str]) -> Json:
    text = item if isinstance(item, str) else ""
    row: Json = {"look": "name", "name": _said(item)}
    if not text.strip():
        return row | {"why": "a name is needed"}
    found = globbed(text, names) if is_glob(text) else [name for name in names if text.casefold() in name.casefold()]
    return row | {"paths": [_said(name) for name in found[:NAMES_SHOWN]], "more": max(0, len(found) - NAMES_SHOWN)}


# Lines.


def _texts(root: Path, names: Sequence[str]) -> dict[str, str]:
    texts, left = {}, SEARCHED_BYTES
    for name in names:
        if left <= 0:
            break
        if (text := _plain(root, name)) is not None:
            texts[name] = text
            left -= len(text)
    return texts


def _plain(root: Path, name: str) -> str | None:
    if is_private(name) or is_lock(name) or denied(name):
        return None
    try:
        name.encode()
        return reading.decoded(reading.read(root, name, FILE_LIMIT))[0]
    except (Unreadable, UnicodeEncodeError):
        return None


def _matching(root: Path, item: Any, texts: dict[str, str], redact: bool) -> Json:
    row: Json = {"look": "pattern", "pattern": _said(item)}
    if not isinstance(item, str) or not item:
        return row | {"why": "a pattern is needed"}
    try:
        found = _grep(item, texts)
    except Unreadable as error:
        return row | {"why": error.why}
    hits = list(_hits(root, found, redact))
    return row | {"hits": [hit for hit in hits if "text" in hit], "left_out": [hit for hit in hits if "why" in hit]}


def _hits(root: Path, found: Sequence[tuple[str, int]], redact: bool) -> Iterator[Json]:
    """Return the matching lines, taken from the gate's output and not from the searched text."""
    for path in dict.fromkeys(path for path, _ in found):
        try:
            lines = _shown(root, path, redact).split("\n")
        except Unreadable as error:
            yield {"path": _said(path), "why": error.why}
            continue
        for number in (number for other, number in found if other == path and number <= len(lines)):
            yield {"path": path, "line": number, "text": lines[number - 1][:LINE_SHOWN]}


def _grep(pattern: str, texts: dict[str, str]) -> list[tuple[str, int]]:
    if not _is_regex(pattern):
        return grepping.grep(re.escape(pattern), texts, HITS_SHOWN)
    asked = json.dumps({"pattern": pattern, "texts": texts, "most": HITS_SHOWN}).encode()
    with tempfile.TemporaryFile() as fed:
        fed.write(asked)
        fed.seek(0)
        argv = [sys.executable, "-I", "-S", str(Path(grepping.__file__))]
        try:
            done = subprocess.run(argv, stdin=fed, capture_output=True, timeout=SECONDS, check=True)
        except subprocess.TimeoutExpired as error:
            raise Unreadable(f"the pattern took longer than {SECONDS:.0f} s: ask for something simpler") from error
        except (OSError, subprocess.CalledProcessError) as error:
            raise Unreadable("the pattern could not be searched for") from error
    return [(str(path), int(line)) for path, line in json.loads(done.stdout)]


def _is_regex(pattern: str) -> bool:
    """Return whether a pattern must be compiled as a regex; an invalid one is searched for literally."""
    try:
        re.compile(pattern)
    except (re.error, RecursionError, OverflowError):
        return False
    return re.escape(pattern) != pattern


def _said(value: Any) -> str:
    return shown(value)[:200] if isinstance(value, str) else ""
