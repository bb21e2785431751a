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

from council.foreign import redact_line
from council.search.hits import Hit, ReadFile, SearchError
from council.search.passages import PassageIndex

T = TypeVar("T")
MAX_FILES = 2_000
MAX_TOTAL_BYTES = 50 * 1024 * 1024
MAX_LISTED_FILES = 50_000  # names
READ_TIMEOUT_S = 12.0  # for reading all files; later files are not searched
MAX_NAMED_FILES = 3  # skipped files listed by name
SKIPPED_FOLDERS = {"node_modules", "__pycache__", "venv", "site-packages"}
DOCUMENT_SUFFIXES = {"", ".md", ".markdown", ".mdx", ".txt", ".rst", ".adoc", ".org", ".tex", ".pdf", ".html", ".htm"}
BINARY_SUFFIXES = set(
    "png jpg jpeg gif webp bmp ico tif tiff psd heic mp3 mp4 m4a m4v wav ogg flac avi mov mkv webm woff woff2 ttf otf eot zip gz bz2 xz zst 7z rar tar tgz jar war "  # noqa: SIM905
    "whl so dll dylib exe bin o a obj lib class pyc pyd wasm db sqlite sqlite3 parquet npy npz pkl pt pth onnx gguf safetensors iso dmg deb rpm".split()
)


class LocalFiles:
    """Documents below a folder, indexed on the first search."""

    name = "files"

    def __init__(self, root: Path, folder: Path, read_file: ReadFile) -> None:
        self._root, self._folder, self._read_file = root, folder, read_file
        self._index_task: asyncio.Task[PassageIndex] | None = None
        self._stop = threading.Event()
        self._remarks: dict[str, None] = {}

    @property
    def remarks(self) -> Sequence[str]:
        return list(self._remarks)

    async def search(self, query: str, max_results: int, freshness: str) -> list[Hit]:
        if self._index_task is None:
            self._index_task = asyncio.ensure_future(run_in_daemon_thread(self._build_index))
        try:
            index = await asyncio.shield(self._index_task)  # a timeout does not cancel it, so a retry can use it
            found = await run_in_daemon_thread(lambda: index.search(query, max_results))
        except sqlite3.Error as error:  # SQLite may be built without full-text search
            raise SearchError(f"this Python's SQLite cannot search files: {redact_line(str(error))}") from None
        return [Hit(passage.title, passage.name, passage.text, str(n)) for n, passage in found]

    async def close(self) -> None:
        self._stop.set()
        if self._index_task is not None:
            self._index_task.cancel()
            [index] = await asyncio.gather(self._index_task, return_exceptions=True)
            if isinstance(index, PassageIndex):
                index.close()

    def _build_index(self) -> PassageIndex:
        index, root, end = PassageIndex(), self._root.resolve(), time.monotonic() + READ_TIMEOUT_S
        files = list_documents(root)
        left_out: list[Path] = []
        read = used = 0
        for path in files[:MAX_FILES]:
            used += _file_size(path)
            if used > MAX_TOTAL_BYTES or time.monotonic() > end or self._stop.is_set():
                break
            read += 1
            text = self._read_file(path)
            if text is None:
                left_out.append(path)
            elif text:
                index.add(self._display_name(path.relative_to(root)), text)
        self._add_remarks(files, read, left_out, len(index.passages))
        return index

    def _display_name(self, name: Path) -> str:
        """Return the path relative to the run's folder."""
        return Path(os.path.relpath(self._root / name, self._folder)).as_posix()

    def _add_remarks(self, files: Sequence[Path], read: int, left_out: Sequence[Path], found: int) -> None:
        pdfs = sum(path.suffix.lower() == ".pdf" for path in files[:read])
        if pdfs and find_spec("pypdf") is None:
            self._remarks[
                f'{_format_count(pdfs, "PDF")} not searched: run `pip install "council[pdf]"` to read them'
            ] = None
            left_out = [path for path in left_out if path.suffix.lower() != ".pdf"]
        if read < len(files):
            limits = f"{MAX_FILES:,} files, {MAX_TOTAL_BYTES // 2**20} MB, {READ_TIMEOUT_S:g} s"
            self._remarks[
                f"only {read:,} of {len(files):,} files were read (limits: {limits}): use a smaller folder"
            ] = None
        if left_out:
            why = "secret, not text, too large or not readable"
            self._remarks[f"{_format_count(len(left_out), 'file')} skipped ({_format_names(left_out)}): {why}"] = None
        if not found:
            self._remarks["that folder contains no searchable documents"] = None


def list_documents(root: Path) -> list[Path]:
    """Return the files below a folder that may be text, documents first, sorted by name."""
    found: list[Path] = []
    for place, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in SKIPPED_FOLDERS)
        found += filter(_may_be_text, (Path(place, name) for name in sorted(names)))
        if len(found) > MAX_LISTED_FILES:
            break
    return sorted(found, key=lambda path: (path.suffix.lower() not in DOCUMENT_SUFFIXES, path.as_posix()))


def _may_be_text(path: Path) -> bool:
    plain = path.name.isprintable() and not path.name.startswith(".")
    return plain and path.suffix.lower().removeprefix(".") not in BINARY_SUFFIXES


def _format_names(paths: Sequence[Path]) -> str:
    names = ", ".join(redact_line(path.name) for path in paths[:MAX_NAMED_FILES])
    return f"{names} and {len(paths) - MAX_NAMED_FILES:,} more" if len(paths) > MAX_NAMED_FILES else names


def _file_size(path: Path) -> int:
    try:
        return path.lstat().st_size
    except OSError:
        return 0


def _format_count(n: int, what: str) -> str:
    return f"{n:,} {what} was" if n == 1 else f"{n:,} {what}s were"


async def run_in_daemon_thread(work: Callable[[], T]) -> T:
    """Run work in a daemon thread, so that a hanging document parser cannot block the exit."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def deliver(set_outcome: Callable[[Any], None], outcome: Any) -> None:
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(lambda: None if done.done() else set_outcome(outcome))

    def run() -> None:
        try:
            result = work()
        except Exception as error:
            deliver(done.set_exception, error)
        else:
            deliver(done.set_result, result)

    threading.Thread(target=run, daemon=True).start()
    return await done
