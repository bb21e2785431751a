"""What stands in a PDF, page by page. pypdf is an extra and imported when used; what it cannot read is not shown."""

from __future__ import annotations

import io
import logging

from council.packet.reading import Unreadable

LARGEST = 16 * 1024 * 1024  # bytes of the file
MOST_PAGES = 500


def pages_of(content: bytes) -> list[str]:
    """The text of each page, in order."""
    try:
        import pypdf
    except ImportError:
        raise Unreadable('a PDF, and those are read after pip install "council[pdf]"') from None
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # it remarks on every flaw of a file
    try:
        pages = pypdf.PdfReader(io.BytesIO(content)).pages
        return [pages[n].extract_text() for n in range(min(len(pages), MOST_PAGES))]
    except Exception as error:  # whatever a broken or locked file makes it raise
        raise Unreadable("a PDF that cannot be read") from error
