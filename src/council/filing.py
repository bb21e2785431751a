"""Report files, with names that are safe on every system."""

from __future__ import annotations

import os
import re
import tempfile
import time
import unicodedata
from pathlib import Path

from council.errors import StoreError

MAX_SLUG_CHARS = 60


def slugify(text: str) -> str:
    """Return lower-case letters, digits and hyphens, at most 60 characters, cut at a word."""
    text = "stdin" if text.strip() == "-" else text
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    words = [word for word in re.split(r"[^a-z0-9]+", plain) if word]
    made = ""
    for word in words:
        if len(made) + len(word) + 1 > MAX_SLUG_CHARS:
            break
        made = f"{made}-{word}" if made else word
    return made or (words[0][:MAX_SLUG_CHARS] if words else "question")


def open_report_folder(root: Path, name: str) -> Path:
    """Create the report folder if it is missing, with a .gitignore so that findings are not committed by accident."""
    folder = root / name
    try:
        for part in (folder, *folder.parents):
            if part == root:
                break
            if part.is_symlink():
                raise StoreError(
                    f'"{part}" is a link, and reports are not written through links: make it a real folder'
                )
        folder.mkdir(parents=True, exist_ok=True)
        if not (ignore := folder / ".gitignore").exists():
            ignore.write_text("*\n", encoding="utf-8")
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise StoreError(
            f'the report folder "{folder}" cannot be written ({error.strerror}): make it writable, or start council in another folder'
        ) from error
    return folder


def reserve_report_path(folder: Path, kind: str, subject: str, at: float, run: str) -> Path:
    """Reserve an unused path: <date>-<kind>-<slug>.md, then -2, -3. A resumed run finds the one it reserved."""
    stem = f"{time.strftime('%Y-%m-%d', time.localtime(at))}-{slugify(kind)}-{slugify(subject)}"
    n = 1
    while True:
        path = folder / (f"{stem}.md" if n == 1 else f"{stem}-{n}.md")
        try:
            handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_WRONLY, 0o600)
        except FileExistsError:
            if _has_content(path, _placeholder_text(run)):
                return path
            n += 1
        else:
            with os.fdopen(handle, "wb") as out:
                out.write(_placeholder_text(run))
            return path


def is_unwritten(path: Path, run: str) -> bool:
    """Return whether the report of a run is missing, empty or only reserved."""
    return not path.exists() or _has_content(path, b"") or _has_content(path, _placeholder_text(run))


def _placeholder_text(run: str) -> bytes:
    return f"The report of run {run} will be written here.\n".encode()


def _has_content(path: Path, content: bytes) -> bool:
    if path.is_symlink() or not path.is_file() or path.stat().st_size != len(content):
        return False
    return path.read_bytes() == content


def write_atomically(path: Path, text: str) -> None:
    """Write a file atomically."""
    handle, draft = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as out:
            out.write(text)
        Path(draft).replace(path)
    except BaseException:
        Path(draft).unlink(missing_ok=True)
        raise
