"""Text extraction from PDFs. pypdf is an extra and imported on use."""

from __future__ import annotations

import io
import logging

from council.packet.reading import Unreadable

MAX_PDF_BYTES = 16 * 1024 * 1024  # bytes of the file
MAX_PDF_PAGES = 500


def extract_pages(content: bytes) -> list[str]:
    """Return the text of each page, in order."""
    try:
        import pypdf
    except ImportError:
        raise Unreadable('a PDF: install support with pip install "council[pdf]"') from None
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # it logs every flaw of a file
    try:
        pages = pypdf.PdfReader(io.BytesIO(content)).pages
        return [pages[n].extract_text() for n in range(min(len(pages), MAX_PDF_PAGES))]
    except Exception as error:  # broken or encrypted files raise many types
        raise Unreadable("a PDF that cannot be read") from error
