"""Reading of local documents for search, through the same gate as named files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from council.errors import UsageError
from council.packet import pdfs, reading
from council.packet.gate import FILE_LIMIT, Gate
from council.packet.names import denied, is_private
from council.packet.reading import Unreadable
from council.packet.secrets import secrets_in

PAGE_BREAK = "\f"


def admitting(root: Path, redact: bool = True) -> Callable[[Path], str | None]:
    """Return a function that reads a file below the root with secrets masked, or returns None if it may not be shown.

    Without `redact`, a file with a secret is not shown. PDF pages are separated by form feeds."""
    root = root.resolve()

    def admit(path: Path) -> str | None:
        try:
            return _admitted(root, reading.inside(root, str(path)), redact)
        except (UsageError, Unreadable):
            return None

    return admit


def _admitted(root: Path, name: str, redact: bool) -> str | None:
    whole = (root / name).as_posix()
    if denied(whole) or is_private(whole) or secrets_in(name):  # a masked name would not match any file
        return None
    if not name.lower().endswith(".pdf"):
        return Gate(root, redact).read(name)
    parts = [Gate(root, redact).read(name, part) for part in _parts(_pages(root, name))]
    return PAGE_BREAK.join(part or "" for part in parts) if all(part is not None for part in parts) else None


def _pages(root: Path, name: str) -> list[str]:
    content, size = reading.opened(root, name, pdfs.LARGEST)
    if size > pdfs.LARGEST:
        raise Unreadable("too large for a PDF")
    return pdfs.pages_of(content)


def _parts(pages: Sequence[str]) -> list[bytes]:
    """Group pages up to the gate's file limit, so that a key that spans two pages is still detected by its first line."""
    parts: list[bytes] = []
    for page in pages:
        text = reading.as_bytes(page.replace(PAGE_BREAK, " ").replace("\0", " "))[: FILE_LIMIT - 1]
        if parts and len(parts[-1]) + len(text) < FILE_LIMIT:
            parts[-1] += PAGE_BREAK.encode() + text
        else:
            parts.append(text)
    return parts
