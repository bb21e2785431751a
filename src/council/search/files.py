"""Local documents: read a folder through the packet's gate, split it into passages and search them on this machine."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

from council.foreign import one_line
from council.search.hits import Admit, Hit, Trouble
from council.search.passages import Index

T = TypeVar("T")
MOST_FILES = 2_000
MOST_BYTES = 50 * 1024 * 1024
MOST_SEEN = 50_000  # names
SECONDS = 12.0  # for reading all files; later files are not searched
NAMED = 3  # skipped files listed by name
NOT_WALKED = {"node_modules", "__pycache__", "venv", "site-packages"}
DOCUMENTS = {"", ".md", ".markdown", ".mdx", ".txt", ".rst", ".adoc", ".org", ".tex", ".pdf", ".html", ".htm"}
NO_TEXT = set(
    "png jpg jpeg gif webp bmp ico tif tiff psd heic mp3 mp4 m4a m4v wav ogg flac avi mov mkv webm woff woff2 ttf otf eot zip gz bz2 xz zst 7z rar tar tgz jar war "  # noqa: SIM905
    "whl so dll dylib exe bin o a obj lib class pyc pyd wasm db sqlite sqlite3 parquet npy npz pkl pt pth onnx gguf safetensors iso dmg deb rpm".split()
)


class Files:
    """Documents below a folder, indexed on the first search."""

    name = "files"

    def __init__(self, place: Path, folder: Path, admit: Admit) -> None:
        self._place, self._folder, self._admit = place, folder, admit
        self._reading: asyncio.Task[Index] | None = None
        self._stop = threading.Event()
        self._told: dict[str, None] = {}

    @property
    def remarks(self) -> Sequence[str]:
        return list(self._told)

    async def find(self, query: str, most: int, freshness: str) -> list[Hit]:
        if self._reading is None:
            self._reading = asyncio.ensure_future(apart(self._read))
        try:
            index = await asyncio.shield(self._reading)  # a timeout does not cancel it, so a retry can use it
            found = await apart(lambda: index.find(query, most))
        except sqlite3.Error as error:  # SQLite may be built without full-text search
            raise Trouble(f"this Python's SQLite cannot search files: {one_line(str(error))}") from None
        return [Hit(passage.title, passage.name, passage.text, str(n)) for n, passage in found]

    async def close(self) -> None:
        self._stop.set()
        if self._reading is not None:
            self._reading.cancel()
            [index] = await asyncio.gather(self._reading, return_exceptions=True)
            if isinstance(index, Index):
                index.close()

    def _read(self) -> Index:
        index, root, end = Index(), self._place.resolve(), time.monotonic() + SECONDS
        files = documents(root)
        left_out: list[Path] = []
        read = used = 0
        for path in files[:MOST_FILES]:
            used += _size(path)
            if used > MOST_BYTES or time.monotonic() > end or self._stop.is_set():
                break
            read += 1
            text = self._admit(path)
            if text is None:
                left_out.append(path)
            elif text:
                index.add(self._shown(path.relative_to(root)), text)
        self._tell(files, read, left_out, len(index.passages))
        return index

    def _shown(self, name: Path) -> str:
        """Return the path relative to the run's folder."""
        return Path(os.path.relpath(self._place / name, self._folder)).as_posix()

    def _tell(self, files: Sequence[Path], read: int, left_out: Sequence[Path], found: int) -> None:
        pdfs = sum(path.suffix.lower() == ".pdf" for path in files[:read])
        if pdfs and find_spec("pypdf") is None:
            self._told[f'{_count(pdfs, "PDF")} not searched: run `pip install "council[pdf]"` to read them'] = None
            left_out = [path for path in left_out if path.suffix.lower() != ".pdf"]
        if read < len(files):
            limits = f"{MOST_FILES:,} files, {MOST_BYTES // 2**20} MB, {SECONDS:g} s"
            self._told[f"only {read:,} of {len(files):,} files were read (limits: {limits}): use a smaller folder"] = (
                None
            )
        if left_out:
            why = "secret, not text, too large or not readable"
            self._told[f"{_count(len(left_out), 'file')} skipped ({_some(left_out)}): {why}"] = None
        if not found:
            self._told["that folder contains no searchable documents"] = None


def documents(root: Path) -> list[Path]:
    """Return the files below a folder that may be text, documents first, sorted by name."""
    found: list[Path] = []
    for place, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in NOT_WALKED)
        found += filter(_may_be_text, (Path(place, name) for name in sorted(names)))
        if len(found) > MOST_SEEN:
            break
    return sorted(found, key=lambda path: (path.suffix.lower() not in DOCUMENTS, path.as_posix()))


def _may_be_text(path: Path) -> bool:
    plain = path.name.isprintable() and not path.name.startswith(".")
    return plain and path.suffix.lower().removeprefix(".") not in NO_TEXT


def _some(paths: Sequence[Path]) -> str:
    names = ", ".join(one_line(path.name) for path in paths[:NAMED])
    return f"{names} and {len(paths) - NAMED:,} more" if len(paths) > NAMED else names


def _size(path: Path) -> int:
    try:
        return path.lstat().st_size
    except OSError:
        return 0


def _count(n: int, what: str) -> str:
    return f"{n:,} {what} was" if n == 1 else f"{n:,} {what}s were"


async def apart(work: Callable[[], T]) -> T:
    """Run work in a daemon thread, so that a hanging document parser cannot block the exit."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def say(tell: Callable[[Any], None], what: Any) -> None:
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(lambda: None if done.done() else tell(what))

    def run() -> None:
        try:
            result = work()
        except Exception as error:
            say(done.set_exception, error)
        else:
            say(done.set_result, result)

    threading.Thread(target=run, daemon=True).start()
    return await done
