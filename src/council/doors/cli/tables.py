"""Tables on standard output: aligned columns, short names of folders, and file sizes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TextIO

from council.render.text_layout import cut, terminal_size, text_width


def format_table(head: Sequence[str], rows: Iterable[Sequence[str]], *, right: Sequence[int] = ()) -> list[str]:
    """Return aligned lines under a header. `right` has the columns that are aligned to the right."""
    cells = [list(head), *map(list, rows)]
    widths = [max(text_width(row[column]) for row in cells) for column in range(len(head))]
    return ["  ".join(_pad(row[n], width, n in right) for n, width in enumerate(widths)).rstrip() for row in cells]


def _pad(cell: str, width: int, right: bool) -> str:
    space = " " * (width - text_width(cell))
    return space + cell if right else cell + space


def fit_table(lines: Iterable[str], stream: TextIO) -> list[str]:
    """Cut the lines at the width of the terminal behind a stream; without one, return them as they are."""
    return [cut(line, terminal_size(stream)[0]) for line in lines] if stream.isatty() else list(lines)


def format_folder(folder: str, width: int | None = None) -> str:
    """Return a short name of a folder: `.` for this one, `~` for the home folder, and its end at a narrow terminal."""
    path = Path(folder)
    if path == Path.cwd():
        return "."
    with suppress(ValueError, RuntimeError):  # not below the home folder, or no home folder
        folder = f"~/{path.relative_to(Path.home())}".removesuffix("/.")
    most = len(folder) if width is None else max(12, width // 6)
    return folder if len(folder) <= most else f"…{folder[1 - most :]}"


def format_bytes(size: int) -> str:
    return f"{size / 1_000_000:.1f} MB" if size >= 100_000 else f"{size / 1000:.0f} kB"
