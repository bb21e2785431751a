"""Folder listings for the web and MCP interfaces: only names that may be used as material."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from council.errors import UsageError
from council.packet.names import format_path, has_secret_name, is_private
from council.packet.reading import relative_to_root
from council.types import Json

MAX_FOLDER_ENTRIES = 10_000  # per folder


def list_folder(root: Path, path: str) -> list[Json]:
    """List a folder below the root, folders first. Symlinks are followed if their target is inside the root."""
    root = root.resolve()
    place = _resolve_folder(root, path)
    rows = [row for entry in _scan_names(place, path) if (row := _describe_entry(root, place / entry))]
    return sorted(rows, key=lambda row: (row["kind"] == "file", row["name"].casefold()))


def _resolve_folder(root: Path, path: str) -> Path:
    name = relative_to_root(root, path or ".")
    place = _resolve_inside(root, root / name)
    if place is None or _is_hidden(root, place) or _is_hidden(root, root / name):
        raise UsageError(f'"{format_path(path)[:200]}" cannot be listed: choose a folder inside this root')
    if not place.is_dir():
        raise UsageError(f'"{format_path(path)[:200]}" is not a folder: choose an existing folder')
    return root / name


def _scan_names(place: Path, path: str) -> Iterator[str]:
    try:
        with os.scandir(place) as entries:
            for n, entry in enumerate(entries):
                if n == MAX_FOLDER_ENTRIES:
                    raise UsageError(
                        f'"{format_path(path)[:200] or "."}" has more than {MAX_FOLDER_ENTRIES:,} entries: choose a folder below it'
                    )
                yield entry.name
    except OSError as error:
        raise UsageError(
            f'"{format_path(path)[:200]}" cannot be read ({error.strerror}): choose another folder'
        ) from None


def _describe_entry(root: Path, place: Path) -> Json | None:
    """Describe one entry. Return None if it is private, leads outside the root, or is neither file nor folder."""
    target = _resolve_inside(root, place)
    if target is None or _is_hidden(root, place) or _is_hidden(root, target) or not _is_utf8(place.name):
        return None
    try:
        status = target.stat()
    except OSError:
        return None
    kind = "folder" if stat.S_ISDIR(status.st_mode) else "file" if stat.S_ISREG(status.st_mode) else ""
    size = status.st_size if kind == "file" else None
    return (
        {"name": place.name, "path": place.relative_to(root).as_posix(), "kind": kind, "bytes": size} if kind else None
    )


def _resolve_inside(root: Path, place: Path) -> Path | None:
    """Resolve a path with its symlinks. Return None if it does not exist or leads outside the root."""
    try:
        target = place.resolve(strict=True)
    except (OSError, RuntimeError, ValueError):
        return None
    return target if target.is_relative_to(root) else None


def _is_hidden(root: Path, place: Path) -> bool:
    """Return whether an entry is private, or is a folder in which every file would be denied."""
    name = place.relative_to(root).as_posix()
    return is_private(name) or has_secret_name(f"{name}/any" if place.is_dir() else name)


def _is_utf8(name: str) -> bool:
    """Return whether a name is valid UTF-8; any other name could not be sent back by a client."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
