"""Read-only look-ups for explorers: file slices, file names, matching lines.

Results pass the same gate as named files.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from council.errors import UsageError
from council.packet import files, git, grep
from council.packet.files import (
    Unreadable,
    format_path,
    has_secret_name,
    has_wildcard,
    is_lock_file,
    is_private,
    list_files,
    match_glob,
)
from council.packet.gate import MAX_FILE_BYTES, Gate
from council.packet.secret_filter import find_secrets
from council.text_cleanup import strip_invisible
from council.types import Json, LookupHit, LookupRow

MAX_REQUESTS = 10  # of each kind
MAX_SLICE_LINES = 400
MAX_SLICE_CHARS = 40_000
MAX_NAMES = 50
MAX_HITS = 40
MAX_HIT_CHARS = 300
MAX_SEARCHED_BYTES = 8_000_000
MAX_LISTED_FILES = 200_000
READ_TIMEOUT_S = 10.0  # for the files in which a pattern is searched
GREP_TIMEOUT_S = 3.0


def look(root: Path, requests: Json, *, redact: bool = False) -> list[LookupRow]:
    """Return one row per request: the result, or `why` it is not shown. Invalid requests become rows, not errors."""
    rows = [_read_slice(root, item, redact) for item in _list_requests(requests, "files")]
    names, why = _list_names(root) if requests.get("names") or requests.get("patterns") else ([], "")
    rows += [_find_names(item, names, why) for item in _list_requests(requests, "names")]
    patterns = _list_requests(requests, "patterns")
    texts, unread = _read_texts(root, names) if patterns else ({}, 0)
    return [*rows, *(_find_matches(root, item, texts, unread, why, redact) for item in patterns)]


def _list_requests(requests: Json, kind: str) -> list[Any]:
    items = requests.get(kind)
    return items[:MAX_REQUESTS] if isinstance(items, list) else []


def _list_names(root: Path) -> tuple[list[str], str]:
    """Return the files of the folder, or why they are not listed."""
    try:
        names = list_files(git.find_repo(root), root)
    except UsageError:
        return [], "the folder has too many files to search: ask for files by their path"
    if len(names) > MAX_LISTED_FILES:
        return [], f"the folder has more than {MAX_LISTED_FILES:,} files to search: ask for files by their path"
    return names, ""


# Files


def _read_slice(root: Path, item: Any, redact: bool) -> LookupRow:
    request = item if isinstance(item, dict) else {"path": item}
    path = request.get("path")
    row: LookupRow = {"look": "file", "path": _format_value(path)}
    try:
        if not isinstance(path, str) or not path.strip():
            raise Unreadable("a path is needed")
        text, invisible = _read_gated(root, files.relative_to_root(root, path), redact)
    except UsageError as error:
        return {**row, "why": str(error).rpartition(": ")[0]}  # what follows is advice for the person
    except Unreadable as error:
        return {**row, "why": error.why}
    lines = text.splitlines(keepends=True)
    start, end = _line_range(request, len(lines))
    if invisible:
        row["invisible_characters_removed"] = invisible
    return {
        **row,
        "from": start,
        "to": end,
        "lines": len(lines),
        "content": "".join(lines[start - 1 : end])[:MAX_SLICE_CHARS],
    }


def _line_range(request: Json, lines: int) -> tuple[int, int]:
    start, end = (value if isinstance(value := request.get(name), int) else None for name in ("from", "to"))
    first = min(max(1, start or 1), max(1, lines))
    return first, min(max(first, end or lines), lines, first + MAX_SLICE_LINES - 1)


def _read_gated(root: Path, path: str, redact: bool) -> tuple[str, int]:
    """Return a whole file, which shows the first line of a key, and the number of invisible characters removed."""
    gate = Gate(root, redact)
    text = gate.read_file(path)
    if text is not None:
        return text, gate.stripped
    if gate.secret_locations:
        raise Unreadable(f"secret found at {next(iter(gate.secret_locations))}")
    raise Unreadable(next((skipped.why for skipped in gate.skipped.values()), "not shown"))


# Names


def _find_names(item: Any, names: Sequence[str], why: str) -> LookupRow:
    text = item if isinstance(item, str) else ""
    row: LookupRow = {"look": "name", "name": _format_value(item)}
    if not text.strip():
        return {**row, "why": "a name is needed"}
    if why:
        return {**row, "why": why}
    try:
        matches = _match_names(text, names)
    except Unreadable as error:
        return {**row, "why": error.why}
    return {
        **row,
        "paths": list(map(format_path, matches[:MAX_NAMES])),
        "more": max(0, len(matches) - MAX_NAMES),
    }


def _match_names(text: str, names: Sequence[str]) -> list[str]:
    """Return the paths that contain the text or match it as a glob. A glob without a folder matches in all folders."""
    literal = [name for name in names if text.casefold() in name.casefold()]
    if literal or not has_wildcard(text):
        return literal
    if text.count("[") > text.count("]"):
        raise Unreadable("invalid glob, a bracket is not closed: write [[] for a bracket itself")
    pattern = text.removeprefix("./").removeprefix("/")
    try:
        return match_glob(pattern if "/" in pattern else f"**/{pattern}", names)
    except re.error as error:
        raise Unreadable(f"invalid glob ({error.msg}): ask for another one") from error


# Lines


def _read_texts(root: Path, names: Sequence[str]) -> tuple[dict[str, str], int]:
    """Return the texts in which lines are searched, by file, and how many files were not read because of the limits."""
    texts: dict[str, str] = {}
    remaining, deadline = MAX_SEARCHED_BYTES, time.monotonic() + READ_TIMEOUT_S
    for n, name in enumerate(names):
        if remaining <= 0 or time.monotonic() > deadline:
            return texts, len(names) - n
        if (text := _read_plain(root, name)) is not None:
            texts[name] = text
            remaining -= len(text)
    return texts, 0


def _read_plain(root: Path, name: str) -> str | None:
    if is_private(name) or is_lock_file(name) or has_secret_name(name):
        return None
    try:
        name.encode()
        text, _ = files.decode_text(files.read_text_bytes(root, name, MAX_FILE_BYTES))
        return strip_invisible(text)[0]
    except (Unreadable, UnicodeEncodeError):
        return None


def _find_matches(root: Path, item: Any, texts: dict[str, str], unread: int, why: str, redact: bool) -> LookupRow:
    row: LookupRow = {"look": "pattern", "pattern": _format_value(item)}
    if not isinstance(item, str) or not item:
        return {**row, "why": "a pattern is needed"}
    if why:
        return {**row, "why": why}
    try:
        matches, problem = _run_grep(item, texts)
    except Unreadable as error:
        return {**row, "why": error.why}
    if problem and not matches:
        return {**row, "why": f"invalid pattern ({problem}), and no line contains it as plain text: correct it"}
    hits = list(_format_hits(root, matches, redact))
    row["hits"] = [hit for hit in hits if "text" in hit]
    row["left_out"] = [hit for hit in hits if "why" in hit]
    if unread:
        row["unread"] = unread
    return row


def _format_hits(root: Path, matches: Sequence[tuple[str, int]], redact: bool) -> Iterator[LookupHit]:
    """Return the matching lines, taken from the gate's output and not from the searched text."""
    for path in dict.fromkeys(path for path, _ in matches):
        try:
            lines = _read_gated(root, path, redact)[0].split("\n")
        except Unreadable as error:
            yield {"path": format_path(path), "why": error.why}
            continue
        for number in (number for other, number in matches if other == path and number <= len(lines)):
            yield {"path": path, "line": number, "text": lines[number - 1][:MAX_HIT_CHARS]}


def _run_grep(pattern: str, texts: dict[str, str]) -> tuple[list[tuple[str, int]], str]:
    """Return the matching lines, and why the pattern is no regex if it was searched for as plain text, such as
    `check(`.

    A regex is compiled and searched for in another process, which can be stopped.
    """
    if re.escape(pattern) == pattern:
        return grep.grep(pattern, texts, MAX_HITS), ""
    request = json.dumps({"pattern": pattern, "texts": texts, "limit": MAX_HITS}).encode()
    with tempfile.TemporaryFile() as stdin_file:
        stdin_file.write(request)
        stdin_file.seek(0)
        argv = [sys.executable, "-I", "-S", str(Path(grep.__file__))]
        try:
            process = subprocess.run(argv, stdin=stdin_file, capture_output=True, timeout=GREP_TIMEOUT_S, check=True)
        except subprocess.TimeoutExpired as error:
            raise Unreadable(
                f"the pattern took longer than {GREP_TIMEOUT_S:.0f} s: ask for something simpler"
            ) from error
        except (OSError, subprocess.CalledProcessError) as error:
            raise Unreadable("the pattern could not be searched for") from error
    found: Json = json.loads(process.stdout)
    return [(str(path), int(line)) for path, line in found["matches"]], str(found["problem"])


def _format_value(value: Any) -> str:
    """Return a value of a request as it is repeated in its result."""
    return format_path(value)[:200] if isinstance(value, str) else ""


# Documents for a search

PAGE_BREAK = "\f"


def make_document_reader(root: Path) -> Callable[[Path], str | None]:
    """Return a function that reads a file below the root with secrets masked, or returns None if it may not be shown.

    PDF pages are separated by form feeds."""
    root = root.resolve()

    def read_document(path: Path) -> str | None:
        try:
            return _read_allowed(root, files.relative_to_root(root, str(path)))
        except (UsageError, Unreadable):
            return None

    return read_document


def _read_allowed(root: Path, name: str) -> str | None:
    full_path = (root / name).as_posix()
    # A masked name would not match any file.
    if has_secret_name(full_path) or is_private(full_path) or find_secrets(name):
        return None
    if not name.lower().endswith(".pdf"):
        return Gate(root, redact=True).read_file(name)
    parts = [Gate(root, redact=True).read_file(name, part) for part in _group_pages(_read_pages(root, name))]
    return PAGE_BREAK.join(part or "" for part in parts)


def _read_pages(root: Path, name: str) -> list[str]:
    content, size = files.read_regular_file(root, name, files.MAX_PDF_BYTES)
    if size > files.MAX_PDF_BYTES:
        raise Unreadable("too large for a PDF")
    return files.extract_pages(content)


def _group_pages(pages: Sequence[str]) -> list[bytes]:
    """Group pages up to the gate's file limit, so that a key on two pages is still detected by its first line."""
    parts: list[bytes] = []
    for page in pages:
        text = files.encode_text(page.replace(PAGE_BREAK, " ").replace("\0", " "))[: MAX_FILE_BYTES - 1]
        if parts and len(parts[-1]) + len(text) < MAX_FILE_BYTES:
            parts[-1] += PAGE_BREAK.encode() + text
        else:
            parts.append(text)
    return parts
