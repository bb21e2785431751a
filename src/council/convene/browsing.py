"""What a door may show of a folder: names inside it that could be named as material, and no others."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from council.errors import UsageError
from council.packet.names import denied, is_private, shown
from council.packet.reading import inside
from council.types import Json

MOST = 10_000  # names in one folder


def listed(root: Path, path: str) -> list[Json]:
    """The folders, then the files of a folder below the root. Links count as what they lead to, if that is inside too."""
    root = root.resolve()
    place = _folder(root, path)
    rows = [row for entry in _entries(place, path) if (row := _row(root, place / entry))]
    return sorted(rows, key=lambda row: (row["kind"] == "file", row["name"].casefold()))


def _folder(root: Path, path: str) -> Path:
    name = inside(root, path or ".")
    place = _leads_to(root, root / name)
    if place is None or _is_hidden(root, place) or _is_hidden(root, root / name):
        raise UsageError(f'"{shown(path)[:200]}" is not shown here: name a folder inside this root')
    if not place.is_dir():
        raise UsageError(f'"{shown(path)[:200]}" is no folder: name one that is there')
    return root / name


def _entries(place: Path, path: str) -> Iterator[str]:
    try:
        with os.scandir(place) as entries:
            for n, entry in enumerate(entries):
                if n == MOST:
                    raise UsageError(
                        f'"{shown(path)[:200] or "."}" holds more than {MOST:,} names: name a folder below it'
                    )
                yield entry.name
    except OSError as error:
        raise UsageError(f'"{shown(path)[:200]}" cannot be read ({error.strerror}): name another folder') from None


def _row(root: Path, place: Path) -> Json | None:
    """What is told of a name; nothing of one that must not leave, leads out, or is neither file nor folder."""
    target = _leads_to(root, place)
    if target is None or _is_hidden(root, place) or _is_hidden(root, target) or not _is_sayable(place.name):
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


def _leads_to(root: Path, place: Path) -> Path | None:
    """Where a path ends, links followed; None if that is outside, or nowhere."""
    try:
        target = place.resolve(strict=True)
    except (OSError, RuntimeError, ValueError):
        return None
    return target if target.is_relative_to(root) else None


def _is_hidden(root: Path, place: Path) -> bool:
    """Of a folder its name says nothing; one of whose files none may leave is not shown either."""
    name = place.relative_to(root).as_posix()
    return is_private(name) or denied(f"{name}/any" if place.is_dir() else name)


def _is_sayable(name: str) -> bool:
    """A name that is no UTF-8 could be shown, but not be named again."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
