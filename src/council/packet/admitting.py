"""Reading of local documents for search, through the same gate as named files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from council.errors import UsageError
from council.packet import pdfs, reading
from council.packet.gate import MAX_FILE_BYTES, Gate
from council.packet.names import has_secret_name, is_private
from council.packet.reading import Unreadable
from council.packet.secrets import find_secrets

PAGE_BREAK = "\f"


def make_document_reader(root: Path, redact: bool = True) -> Callable[[Path], str | None]:
    """Return a function that reads a file below the root with secrets masked, or returns None if it may not be shown.

    Without `redact`, a file with a secret is not shown. PDF pages are separated by form feeds."""
    root = root.resolve()

    def read_document(path: Path) -> str | None:
        try:
            return _read_allowed(root, reading.relative_to_root(root, str(path)), redact)
        except (UsageError, Unreadable):
            return None

    return read_document


def _read_allowed(root: Path, name: str, redact: bool) -> str | None:
    whole = (root / name).as_posix()
    if has_secret_name(whole) or is_private(whole) or find_secrets(name):  # a masked name would not match any file
        return None
    if not name.lower().endswith(".pdf"):
        return Gate(root, redact).read_file(name)
    parts = [Gate(root, redact).read_file(name, part) for part in _group_pages(_read_pages(root, name))]
    return PAGE_BREAK.join(part or "" for part in parts) if all(part is not None for part in parts) else None


def _read_pages(root: Path, name: str) -> list[str]:
    content, size = reading.read_regular_file(root, name, pdfs.MAX_PDF_BYTES)
    if size > pdfs.MAX_PDF_BYTES:
        raise Unreadable("too large for a PDF")
    return pdfs.extract_pages(content)


def _group_pages(pages: Sequence[str]) -> list[bytes]:
    """Group pages up to the gate's file limit, so that a key that spans two pages is still detected by its first line."""
    parts: list[bytes] = []
    for page in pages:
        text = reading.encode_text(page.replace(PAGE_BREAK, " ").replace("\0", " "))[: MAX_FILE_BYTES - 1]
        if parts and len(parts[-1]) + len(text) < MAX_FILE_BYTES:
            parts[-1] += PAGE_BREAK.encode() + text
        else:
            parts.append(text)
    return parts
