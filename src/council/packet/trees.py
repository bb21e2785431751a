"""File listing, and matching of files by glob or by word."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath

from council.errors import UsageError
from council.packet.git import GitFailed, Repo
from council.packet.names import format_path, is_private

MAX_WALKED_FILES = 50_000  # walked without git
MAX_MATCHES = 20  # a word with more matches is ignored
SKIPPED_FOLDERS = {
    ".git",
    ".hg",
    ".svn",
    "node_modules",
    "__pycache__",
    ".venv",
    "venv",
    ".tox",
    ".mypy_cache",
    ".ruff_cache",
}
GLOB_CHARS = re.compile(r"[*?\[]")
STOP_WORDS = set(
    "the this that these those and but for with our your its his her their from into about over not are was were how why what which who when "  # noqa: SIM905
    "where all any new use using can should could would does did has have had will more than then them they there here out off".split()
)


def list_files(repo: Repo | None, root: Path, folder: str = "") -> list[str]:
    """Return the files below a folder, sorted: those git does not ignore, or all but the folders of tools."""
    found: list[str] = []
    if repo:
        try:
            found = [name for name in repo.list_files(folder) if os.path.lexists(root / name)]
        except GitFailed:
            found = []
    # A folder that git ignores can still be named.
    return [name for name in found or _walk_files(root, folder) if not is_private(name)]


def _walk_files(root: Path, folder: str) -> list[str]:
    found: list[str] = []
    for place, folders, names in os.walk(root / folder, followlinks=False):
        folders[:] = sorted(name for name in folders if name not in SKIPPED_FOLDERS)
        found += ((Path(place) / name).relative_to(root).as_posix() for name in names)
        if len(found) > MAX_WALKED_FILES:
            raise UsageError(
                f'"{format_path(folder) or "."}" contains more than {MAX_WALKED_FILES:,} files: name a smaller folder'
            )
    return sorted(found)


def is_glob(text: str) -> bool:
    return bool(GLOB_CHARS.search(text)) and bool(re.search(r"[./]", text))


def match_glob(pattern: str, names: Iterable[str]) -> list[str]:
    """Return the names that match a glob; `*` stays within a folder, `**` does not."""
    matcher = re.compile(_glob_to_regex(pattern.removeprefix("./")), re.DOTALL)
    return [name for name in names if matcher.fullmatch(name)]


def _glob_to_regex(pattern: str) -> str:
    # Merge repeated stars: many of them would make matching slow.
    pieces = re.findall(r"\*\*/+|\*+|\?|\[[!^]?\]?[^\]/]*\]|.", pattern, re.DOTALL)
    return "".join(_glob_piece_to_regex(piece) for piece in pieces)


def _glob_piece_to_regex(piece: str) -> str:
    if piece.startswith("**"):
        return "(?:[^/]+/)*" if piece.endswith("/") else ".*"
    if piece in ("*", "?"):
        return "[^/]*" if piece == "*" else "[^/]"
    if len(piece) > 2 and piece[0] == "[":
        inside = piece[1:-1].replace("\\", r"\\").replace("[", r"\[")
        return f"[{'^' + inside[1:] if inside[0] in '!^' else inside}]"
    return re.escape(piece)


def match_words(words: str, names: Sequence[str]) -> dict[str, list[str]]:
    """Return the words that equal a part of a path or its stem, with the paths they match: `auth` → src/auth/."""
    said = dict.fromkeys(word for word in _normalize_words(words) if len(word) > 2 and word not in STOP_WORDS)
    found: dict[str, dict[str, None]] = {word: {} for word in said}
    for name in names:
        for key, place in _iter_path_parts(name):
            if key in found:
                found[key][place] = None
    outermost = {word: _keep_outermost(list(places)) for word, places in found.items()}
    return {word: places for word, places in outermost.items() if 0 < len(places) <= MAX_MATCHES}


def _normalize_words(words: str) -> Iterator[str]:
    return (word.strip("\"'`()[]<>.,;:!?").casefold() for word in words.split())


def _iter_path_parts(name: str) -> Iterator[tuple[str, str]]:
    path = PurePosixPath(name)
    for depth, part in enumerate(path.parts[:-1], 1):
        yield part.casefold(), "/".join(path.parts[:depth]) + "/"
    yield path.name.casefold(), name
    yield path.stem.casefold(), name


def _keep_outermost(places: Sequence[str]) -> list[str]:
    folders = {place for place in places if place.endswith("/")}
    return [place for place in places if not any(f"{parent}/" in folders for parent in PurePosixPath(place).parents)]
