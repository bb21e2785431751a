"""Text extraction from PDFs. pypdf is an extra and imported on use."""

from __future__ import annotations

import io
import logging

from council.packet.reading import Unreadable

LARGEST = 16 * 1024 * 1024  # bytes of the file
MOST_PAGES = 500


def pages_of(content: bytes) -> list[str]:
    """Return the text of each page, in order."""
    try:
        import pypdf
    except ImportError:
        raise Unreadable('a PDF: install support with pip install "council[pdf]"') from None
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # it logs every flaw of a file
    try:
        pages = pypdf.PdfReader(io.BytesIO(content)).pages
        return [pages[n].extract_text() for n in range(min(len(pages), MOST_PAGES))]
    except Exception as error:  # broken or encrypted files raise many types
        raise Unreadable("a PDF that cannot be read") from error
