"""Search provider for local documents: their passages are in a full-text index of SQLite in memory."""

from __future__ import annotations

import asyncio
import os
import re
import sqlite3
import threading
import time
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path, PurePosixPath

from council.search.provider import Hit, SearchError, SearchProvider, SearchSetup
from council.search.queries import QUERY_STOP_WORDS
from council.text_cleanup import redact_line
from council.threads import run_in_daemon_thread

PASSAGE_WORDS = 100  # per passage, about the size of a snippet
CHARS_PER_WORD = 6  # average characters of a word, for text without spaces
MAX_TERMS = 64
INDEX_SCHEMA = "CREATE VIRTUAL TABLE words USING fts5(name, heading, body, content='', tokenize='porter unicode61 remove_diacritics 2')"
MARKDOWN_SUFFIXES = {".md", ".markdown", ".mdx"}
HTML_SUFFIXES = {".html", ".htm", ".xhtml"}
HEADING = re.compile(r"#{1,6}\s+(.+?)[\s#]*")
CODE_FENCE = re.compile(r"\s*(?:```|~~~)")
UNSPACED_SCRIPT = re.compile(
    r"([\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\u0e00-\u0eff])"
)  # scripts without spaces
SCRIPT_BLOCK = re.compile(r"<(script|style)\b.*?(?:</\1>|\Z)", re.I | re.S)
HTML_TAG = re.compile(r"<!--[^<>]*-->|</?[a-zA-Z!][^<>]*>")

Lines = Iterable[tuple[int, str]]  # a number and a line


# Passages


@dataclass(frozen=True, slots=True)
class Passage:
    name: str
    heading: str
    location: str  # line 40, page 3
    text: str

    @property
    def title(self) -> str:
        return f"{self.name}{': ' if self.heading else ''}{self.heading} ({self.location})"


def split_passages(name: str, text: str) -> Iterator[Passage]:
    """Yield the passages of one document, each with its heading and its first line or page."""
    suffix = PurePosixPath(name.lower()).suffix
    if suffix == ".pdf":
        for n, page in enumerate(text.split("\f"), 1):
            yield from (Passage(name, "", f"page {n}", piece) for _, piece in _split_pieces(_number_lines(page)))
        return
    if suffix in HTML_SUFFIXES:
        text = HTML_TAG.sub("", SCRIPT_BLOCK.sub(lambda match: "\n" * match[0].count("\n"), text))
    for heading, lines in _split_sections(text) if suffix in MARKDOWN_SUFFIXES else [("", _number_lines(text))]:
        yield from (Passage(name, heading, f"line {line}", piece) for line, piece in _split_pieces(lines))


def _number_lines(text: str) -> Lines:
    return enumerate(text.split("\n"), 1)


def _split_sections(text: str) -> Iterator[tuple[str, Lines]]:
    heading, lines, in_code = "", list[tuple[int, str]](), False
    for number, line in _number_lines(text):
        in_code ^= bool(CODE_FENCE.match(line))
        if not in_code and (match := HEADING.fullmatch(line)):
            yield heading, lines
            heading, lines = match[1], []
        else:
            lines.append((number, line))
    yield heading, lines


def _split_pieces(lines: Lines) -> Iterator[tuple[int, str]]:
    """Group whole lines into passages; after half a passage, split at an empty line."""
    start, piece, size = 0, list[str](), 0
    for number, line in _split_long_lines(lines):
        weight = _count_words(line)
        if piece and (size + weight > PASSAGE_WORDS or (not weight and size > PASSAGE_WORDS // 2)):
            yield start, "\n".join(piece)
            piece, size = [], 0
        if weight:
            start = start if piece else number
            piece.append(line)
            size += weight
    if piece:
        yield start, "\n".join(piece)


def _count_words(line: str) -> int:
    return max(len(line.split()), len(line.strip()) // CHARS_PER_WORD) or bool(line.strip())


def _split_long_lines(lines: Lines) -> Iterator[tuple[int, str]]:
    """Split lines that are longer than a passage."""
    longest = PASSAGE_WORDS * CHARS_PER_WORD
    for number, line in lines:
        while len(line) > longest:
            at = line.rfind(" ", longest // 2, longest) + 1 or longest
            yield number, line[:at]
            line = line[at:]
        yield number, line


# Index


class PassageIndex:
    """Thread-safe full-text index of passages."""

    def __init__(self) -> None:
        self.passages: list[Passage] = []
        self._lock = threading.Lock()
        self._db = sqlite3.connect(":memory:", check_same_thread=False)
        self._db.execute(INDEX_SCHEMA)

    def add(self, name: str, text: str) -> None:
        passages = list(split_passages(name, text))
        rows = [
            (n, *map(_separate_characters, (passage.name, passage.heading, passage.text)))
            for n, passage in enumerate(passages, len(self.passages))
        ]
        with self._lock:
            self.passages += passages
            self._db.executemany("INSERT INTO words (rowid, name, heading, body) VALUES (?, ?, ?, ?)", rows)

    def search(self, query: str, max_results: int) -> list[tuple[int, Passage]]:
        """Return the best matching passages with their numbers; ties keep document order."""
        terms = match_expression(query)
        if not terms:
            return []
        sql = "SELECT rowid FROM words WHERE words MATCH ? ORDER BY bm25(words, 2.0, 3.0, 1.0), rowid LIMIT ?"
        with self._lock:
            rows = self._db.execute(sql, (terms, max_results)).fetchall()
        return [(n, self.passages[n]) for (n,) in rows]

    def close(self) -> None:
        with self._lock:
            self._db.close()


def match_expression(query: str) -> str:
    """Return an FTS5 expression that matches any word. Words are quoted, so they cannot contain query syntax."""
    words = re.findall(r"[^\W_]+", _separate_characters(unicodedata.normalize("NFC", query)).lower())
    keywords = [word for word in words if word not in QUERY_STOP_WORDS] or words
    return " OR ".join(f'"{word}"' for word in list(dict.fromkeys(keywords))[:MAX_TERMS])


def _separate_characters(text: str) -> str:
    """Separate each character of scripts without spaces, so that it is indexed as a word."""
    return UNSPACED_SCRIPT.sub(r" \1 ", text)


# Provider

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


class LocalFiles(SearchProvider):
    """Documents below a folder, indexed on the first search."""

    name = "files"
    argument = "FOLDER"

    def __init__(self, setup: SearchSetup) -> None:
        self._root, self._folder, self._read_file = Path(setup.argument), setup.folder, setup.read_file
        self._index_task: asyncio.Task[PassageIndex] | None = None
        self._stop = threading.Event()
        self._remarks: list[str] = []

    @property
    def remarks(self) -> Sequence[str]:
        return self._remarks

    async def search(self, query: str, max_results: int, freshness: str) -> list[Hit]:
        if self._index_task is None:
            self._index_task = asyncio.ensure_future(run_in_daemon_thread(self._build_index))
        try:
            index = await asyncio.shield(self._index_task)  # a timeout does not cancel it, so a retry can use it
            passages = await run_in_daemon_thread(lambda: index.search(query, max_results))
        except sqlite3.Error as error:  # SQLite may be built without full-text search
            raise SearchError(f"this Python's SQLite cannot search files: {redact_line(str(error))}") from None
        return [Hit(passage.title, passage.name, passage.text, str(n)) for n, passage in passages]

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
                shown = os.path.relpath(self._root / path.relative_to(root), self._folder)
                index.add(Path(shown).as_posix(), text)
        self._add_remarks(files, read, left_out, len(index.passages))
        return index

    def _add_remarks(self, files: Sequence[Path], read: int, left_out: Sequence[Path], passages: int) -> None:
        pdfs = sum(path.suffix.lower() == ".pdf" for path in files[:read])
        if pdfs and find_spec("pypdf") is None:
            fix = 'run `pip install "model-council[pdf]"` to read them'
            self._remarks.append(f"{_format_count(pdfs, 'PDF')} not searched: {fix}")
            left_out = [path for path in left_out if path.suffix.lower() != ".pdf"]
        if read < len(files):
            limits = f"{MAX_FILES:,} files, {MAX_TOTAL_BYTES // 2**20} MB, {READ_TIMEOUT_S:g} s"
            read_files = f"only {read:,} of {len(files):,} files were read"
            self._remarks.append(f"{read_files} (limits: {limits}): use a smaller folder")
        if left_out:
            why = "secret, not text, too large or not readable"
            self._remarks.append(f"{_format_count(len(left_out), 'file')} skipped ({_format_names(left_out)}): {why}")
        if not passages:
            self._remarks.append("that folder contains no searchable documents")


def list_documents(root: Path) -> list[Path]:
    """Return the files below a folder that may be text, documents first, sorted by name."""
    paths: list[Path] = []
    for place, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in SKIPPED_FOLDERS)
        paths += filter(_may_be_text, (Path(place, name) for name in sorted(names)))
        if len(paths) > MAX_LISTED_FILES:
            break
    return sorted(paths, key=lambda path: (path.suffix.lower() not in DOCUMENT_SUFFIXES, path.as_posix()))


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
