"""Attachments: recognise images, PDFs and texts by their content, check them, and make them fit what vendors accept.

Sizes and dimensions are read from headers, so nothing is decoded that may be too large. Pillow scales images down and
converts GIFs; pypdf reads PDFs. Both belong to the extra `attachments` and are imported when they are needed.
"""

from __future__ import annotations

import base64
import hashlib
import io
import logging
import os
import re
import stat
import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from council.errors import UsageError
from council.packet.files import format_path, is_text
from council.types import Attachment

MAX_ATTACHMENTS = 20  # more images make some vendors refuse large ones
MAX_TOTAL_BYTES = 15_000_000  # of all images and PDFs together: 20 MB of a request after base64 encoding
MAX_FILE_BYTES = 50_000_000  # of one file before it is scaled down
MAX_IMAGE_BYTES = 5 * 1024 * 1024 * 3 // 4  # vendors count the 5 MB after base64 encoding
MAX_EDGE = 8000  # pixels; vendors refuse larger images
MAX_PIXELS = 64_000_000  # a larger image is never decoded
SCALED_EDGE = 2048  # long edge of an image that is scaled down; vendors show no more to their models
MAX_PDF_BYTES = 10 * 1024 * 1024  # of the pages that are sent as a PDF
MAX_PDF_PAGES = 100
MAX_PDF_TEXT_BYTES = 200 * 1024
MAX_TEXT_BYTES = 256 * 1024  # as of any file of a packet
EXTRA = "pip install 'model-council[attachments]'"
IMAGE_SUFFIXES = (".png", ".jpg", ".jpeg", ".webp", ".gif")
SVG_START = re.compile(r"\s*(?:<\?xml[^>]*>|<!--.*?-->|<!DOCTYPE[^>]*>|\s)*<svg[\s>]", re.IGNORECASE | re.DOTALL)
OTHER_IMAGES = (
    (b"BM", "BMP"),
    (b"II*\0", "TIFF"),
    (b"MM\0*", "TIFF"),
    (b"\0\0\1\0", "ICO"),
    (b"8BPS", "Photoshop"),
)
HEIF_BRANDS = (b"heic", b"heix", b"hevc", b"mif1", b"msf1", b"avif", b"avis")
Content = tuple[str, bytes]  # the name of an attached file, and its bytes


@dataclass(frozen=True, slots=True)
class Prepared:
    """A file as it is sent: an image, the pages of a PDF, a text, or a text and pages.

    `remarks` state every reduction.
    """

    attachment: Attachment | None = None  # its path is the name of the file
    text: str | None = None
    remarks: tuple[str, ...] = ()


def read_attachments(paths: Iterable[str | os.PathLike[str]]) -> tuple[Content, ...]:
    """Read files of this machine: the name and the bytes of each. The door decides which paths may be named."""
    return tuple(_read_file(os.fspath(path)) for path in paths)


def collect_attachments(given: Any) -> tuple[Content, ...]:
    """Return the names and the bytes of paths and of pairs of a name and bytes. Raise TypeError for anything else."""
    if isinstance(given, str | os.PathLike):
        raise TypeError(f'attach is "{given}", which is not a list: use attach=["{given}"]')
    found: list[Content] = []
    for one in given:
        match one:
            case str() | os.PathLike():
                found += read_attachments([one])
            case (str() as name, bytes() as content):
                found.append((name, content))
            case _:
                raise TypeError(f"attach has {one!r:.80}: it takes paths, and pairs of a name and bytes")
    return tuple(found)


def _read_file(path: str) -> Content:
    shown = format_path(path)
    if re.match(r"(?i)https?://|data:", path):
        raise UsageError(f'attachment "{shown[:80]}" is an address and is not fetched: download it and name the file')
    try:
        status = Path(path).stat()
        if not stat.S_ISREG(status.st_mode):
            what = "a folder" if stat.S_ISDIR(status.st_mode) else "not a regular file"
            raise UsageError(f'attachment "{shown}" is {what}: name a file')
        _check_size(shown, status.st_size)
        return Path(path).name, Path(path).read_bytes()
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "invalid name"
        raise UsageError(f'attachment "{shown}" cannot be read ({why}): check the name') from None


def prepare(name: str, content: bytes) -> Prepared:
    """Return a file as it is sent, or raise UsageError with one line.

    This is the one way from bytes to an attachment for every door: pass `Material(attachments=((name, content),))`, for
    example with the bytes of a `data:` URL, and the gate of the packet calls it. The kind is recognised from the
    content. The name may be anything; it is shown to members and in the receipt.
    """
    if not content:
        raise UsageError(f'attachment "{format_path(name)}" is empty: attach a file with content')
    _check_size(format_path(name), len(content))
    if content[:1024].lstrip().startswith(b"%PDF-"):
        return _prepare_pdf(name, content)
    if image := _read_header(name, content):
        return _prepare_image(name, content, image)
    return _prepare_text(name, content)


def check_total(attachments: Sequence[Attachment]) -> None:
    """Raise UsageError if all images and PDFs together are more than vendors accept in a request."""
    total = sum(one.bytes for one in attachments)
    if len(attachments) > MAX_ATTACHMENTS:
        raise UsageError(f"more than {MAX_ATTACHMENTS} images and PDFs are attached: attach at most {MAX_ATTACHMENTS}")
    if total > MAX_TOTAL_BYTES:
        most = _format_bytes(MAX_TOTAL_BYTES)
        raise UsageError(f"the attachments have {_format_bytes(total)} together: attach at most {most}")


def _check_size(shown: str, size: int) -> None:
    if size > MAX_FILE_BYTES:
        raise UsageError(
            f'attachment "{shown}" has {_format_bytes(size)}: attach at most {_format_bytes(MAX_FILE_BYTES)}'
        )


def _make_attachment(name: str, media_type: str, content: bytes, **about: Any) -> Attachment:
    digest, data = hashlib.sha256(content).hexdigest(), base64.b64encode(content).decode()
    return Attachment(name, media_type, digest, len(content), data, **about)


def _format_bytes(size: int) -> str:
    return f"{size / 1_000_000:,.1f} MB" if size >= 100_000 else f"{size / 1000:,.1f} KB"


# Texts


def _prepare_text(name: str, content: bytes) -> Prepared:
    shown, suffix = format_path(name), Path(name).suffix.lower()
    if not is_text(content):
        raise UsageError(f'attachment "{shown}" is {_name_binary(content)}: attach PNG, JPEG, WebP, GIF, PDF or text')
    if suffix in (*IMAGE_SUFFIXES, ".pdf"):
        fix = f"rename it, or attach {'a PDF' if suffix == '.pdf' else 'an image'}"
        raise UsageError(f'attachment "{shown}" is text, although its name ends with {suffix}: {fix}')
    if len(content) > MAX_TEXT_BYTES:
        raise UsageError(
            f'attachment "{shown}" is text of {_format_bytes(len(content))}: attach at most {MAX_TEXT_BYTES // 1024} KB of it'
        )
    text = content.decode("utf-8", "surrogateescape")  # the gate decodes it
    svg = f"{shown} is sent as text: members read its source and see no picture"
    return Prepared(text=text, remarks=(svg,) if SVG_START.match(text[:10_000]) else ())


def _name_binary(content: bytes) -> str:
    if content[4:8] == b"ftyp" and content[8:12] in HEIF_BRANDS:
        return "an image of the format HEIC or AVIF"
    kind = next((kind for start, kind in OTHER_IMAGES if content.startswith(start)), "")
    return f"an image of the format {kind}" if kind else "neither an image nor a PDF nor text"


# Images


@dataclass(frozen=True, slots=True)
class ImageHeader:
    """What the header of an image says."""

    media_type: str
    width: int
    height: int
    frames: int = 1
    is_complete: bool = True


def _read_header(name: str, content: bytes) -> ImageHeader | None:
    """Return the header of an image, or None if the content is no image. Raise UsageError if the header is damaged."""
    for start, read in HEADERS:
        if content.startswith(start) and (read is not _read_webp or content[8:12] == b"WEBP"):
            try:
                return read(content)
            except (struct.error, IndexError, ValueError):
                raise _damaged(name) from None
    return None


def _read_png(content: bytes) -> ImageHeader:
    if content[12:16] != b"IHDR":
        raise ValueError("no header")
    width, height = struct.unpack_from(">II", content, 16)
    at, frames, is_complete = 8, 1, False
    while at + 12 <= len(content) and not is_complete:
        size, kind = struct.unpack_from(">I4s", content, at)
        if kind == b"acTL":
            (frames,) = struct.unpack_from(">I", content, at + 8)
        is_complete = kind == b"IEND"
        at += size + 12
    return ImageHeader("image/png", width, height, frames, is_complete)


def _read_jpeg(content: bytes) -> ImageHeader:
    at = 2
    while True:
        if content[at] != 0xFF:
            raise ValueError("no marker")
        kind = content[at + 1]
        if kind == 0xFF:  # a fill byte
            at += 1
        elif kind in (0x01, *range(0xD0, 0xD8)):
            at += 2
        elif 0xC0 <= kind <= 0xCF and kind not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack_from(">HH", content, at + 5)
            return ImageHeader("image/jpeg", width, height, is_complete=b"\xff\xd9" in content[at:])
        else:
            at += 2 + struct.unpack_from(">H", content, at + 2)[0]


def _read_gif(content: bytes) -> ImageHeader:
    width, height = struct.unpack_from("<HH", content, 6)
    at = 13 + (3 * 2 ** ((content[10] & 7) + 1) if content[10] & 0x80 else 0)
    frames, is_complete = 0, False
    while at < len(content) and not is_complete:
        block = content[at]
        is_complete = block == 0x3B
        if block == 0x2C:  # an image
            frames += 1
            flags = content[at + 9] if at + 9 < len(content) else 0
            at = _skip_blocks(content, at + 11 + (3 * 2 ** ((flags & 7) + 1) if flags & 0x80 else 0))
        elif block == 0x21:
            at = _skip_blocks(content, at + 2)
        else:
            break
    return ImageHeader("image/gif", width, height, frames, is_complete and frames > 0)


def _skip_blocks(content: bytes, at: int) -> int:
    while at < len(content) and content[at]:
        at += content[at] + 1
    return at + 1


def _read_webp(content: bytes) -> ImageHeader:
    (size,) = struct.unpack_from("<I", content, 4)
    kind, is_complete = content[12:16], len(content) >= size + 8
    if kind == b"VP8X":
        width, height = (1 + int.from_bytes(content[at : at + 3], "little") for at in (24, 27))
        frames = content.count(b"ANMF") if content[20] & 2 else 1
        return ImageHeader("image/webp", width, height, frames, is_complete)
    if kind == b"VP8L":
        (bits,) = struct.unpack_from("<I", content, 21)
        return ImageHeader("image/webp", 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF), is_complete=is_complete)
    if kind != b"VP8 ":
        raise ValueError("unknown chunk")
    width, height = struct.unpack_from("<HH", content, 26)
    return ImageHeader("image/webp", width & 0x3FFF, height & 0x3FFF, is_complete=is_complete)


HEADERS: Sequence[tuple[bytes, Callable[[bytes], ImageHeader]]] = (
    (b"\x89PNG\r\n\x1a\n", _read_png),
    (b"\xff\xd8\xff", _read_jpeg),
    (b"GIF87a", _read_gif),
    (b"GIF89a", _read_gif),
    (b"RIFF", _read_webp),
)


def _damaged(name: str) -> UsageError:
    return UsageError(f'attachment "{format_path(name)}" is a damaged or truncated image: save it again')


def _prepare_image(name: str, content: bytes, image: ImageHeader) -> Prepared:
    shown = format_path(name)
    if not (image.width and image.height and image.is_complete):
        raise _damaged(name)
    if image.width * image.height > MAX_PIXELS:
        raise UsageError(
            f'attachment "{shown}" has {image.width:,} × {image.height:,} pixels, more than {MAX_PIXELS // 1_000_000} million: '
            "make it smaller"
        )
    remarks = [f"{shown} has {image.frames:,} frames: members see the first one"] if image.frames > 1 else []
    is_too_large = len(content) > MAX_IMAGE_BYTES or max(image.width, image.height) > MAX_EDGE
    if not is_too_large and image.media_type != "image/gif" and (image.frames == 1 or image.media_type == "image/png"):
        size = {"width": image.width, "height": image.height}
        return Prepared(_make_attachment(name, image.media_type, content, **size), remarks=tuple(remarks))
    attachment = _convert_image(name, content, image, scale=is_too_large)
    if is_too_large:
        before, after = (
            f"{one.width:,} × {one.height:,} pixels ({_format_bytes(size)})"
            for one, size in ((image, len(content)), (attachment, attachment.bytes))
        )
        remarks.append(f"{shown} was scaled down from {before} to {after}")
    return Prepared(attachment, remarks=tuple(remarks))


@lru_cache(maxsize=4)  # an estimate and the run that follows it convert the same file
def _convert_image(name: str, content: bytes, image: ImageHeader, *, scale: bool) -> Attachment:
    """Return the first frame as PNG or JPEG, at most SCALED_EDGE pixels long if it is scaled down."""
    what = "scaling it down" if scale else "converting it"
    try:
        from PIL import Image, ImageOps
    except ImportError:
        raise UsageError(f'attachment "{format_path(name)}": {what} needs Pillow: run `{EXTRA}`') from None
    try:
        with Image.open(io.BytesIO(content), formats=["PNG", "JPEG", "GIF", "WEBP"]) as opened:
            opened.draft("RGB", (SCALED_EDGE, SCALED_EDGE)) if scale else None
            frame: Any = ImageOps.exif_transpose(opened)
            has_alpha = frame.has_transparency_data
            if scale:
                frame = frame.convert("RGBA" if has_alpha else "RGB")
                frame.thumbnail((SCALED_EDGE, SCALED_EDGE))
            return _encode_image(name, frame, as_png=has_alpha or not scale)
    except (OSError, ValueError, SyntaxError, EOFError, struct.error, Image.DecompressionBombError):
        raise _damaged(name) from None


def _encode_image(name: str, frame: Any, *, as_png: bool) -> Attachment:
    size = {"width": frame.width, "height": frame.height}
    if as_png:
        encoded = io.BytesIO()
        frame.convert("RGBA" if frame.has_transparency_data else "RGB").save(encoded, "PNG", optimize=False)
        if encoded.tell() <= MAX_IMAGE_BYTES:
            return _make_attachment(name, "image/png", encoded.getvalue(), **size)
    from PIL import Image

    flat = Image.new("RGB", frame.size, "white")
    flat.paste(frame.convert("RGB"), mask=frame.convert("RGBA").getchannel("A"))
    encoded = io.BytesIO()
    flat.save(encoded, "JPEG", quality=85)
    return _make_attachment(name, "image/jpeg", encoded.getvalue(), **size)


# PDFs


@lru_cache(maxsize=4)
def _prepare_pdf(name: str, content: bytes) -> Prepared:
    shown = format_path(name)
    try:
        import pypdf
    except ImportError:
        raise UsageError(f'attachment "{shown}": reading a PDF needs pypdf: run `{EXTRA}`') from None
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # it logs every flaw of a file
    try:
        reader = pypdf.PdfReader(io.BytesIO(content))
        if reader.is_encrypted and not reader.decrypt(""):
            raise UsageError(f'attachment "{shown}" is a PDF with a password: save it without one')
        count = len(reader.pages)
        if not count:
            raise UsageError(f'attachment "{shown}" is a PDF without pages: attach another file')
        text, read = _extract_text(reader, count)
        pages, kept = _cut_pages(reader, content, count)
    except UsageError:
        raise
    except Exception:  # broken files raise many types
        raise UsageError(f'attachment "{shown}" is a damaged PDF: save it again') from None
    remarks = [] if read == count else [f"{shown}: the text of the first {read} of {count} pages is sent"]
    remarks += [] if text else [f"{shown} has no text that can be extracted: only members that take PDFs can read it"]
    if not pages:
        remarks.append(f"{shown} is sent as text alone: as a PDF it has over {_format_bytes(MAX_PDF_BYTES)}")
    elif kept < count:
        remarks.append(f"{shown}: the first {kept} of {count} pages are sent as a PDF")
    if not (text or pages):
        raise UsageError(f'attachment "{shown}" has no text and is too large to send as a PDF: attach a part of it')
    about = {"pages": kept, "has_text": bool(text)}
    attachment = _make_attachment(name, "application/pdf", pages, **about) if pages else None
    return Prepared(attachment, text or None, tuple(remarks))


def _extract_text(reader: Any, count: int) -> tuple[str, int]:
    """Return the text of the pages up to the limit, and how many pages that are; "" if none of them has text."""
    parts, size, has_text = list[str](), 0, False
    for n in range(count):
        page = reader.pages[n].extract_text().replace("\0", " ").strip()
        part = f"[page {n + 1} of {count}]\n{page}\n"
        size += len(part.encode(errors="replace"))
        if size > MAX_PDF_TEXT_BYTES and parts:
            break
        has_text = has_text or bool(page)
        parts.append(part)
    return ("\n".join(parts) if has_text else ""), len(parts)


def _cut_pages(reader: Any, content: bytes, count: int) -> tuple[bytes, int]:
    """Return the PDF, or its first pages if it has too many, and their number; b"" if it is too large."""
    if count <= MAX_PDF_PAGES and not reader.is_encrypted:
        return (content if len(content) <= MAX_PDF_BYTES else b""), count
    import pypdf

    kept, cut = min(count, MAX_PDF_PAGES), io.BytesIO()
    writer = pypdf.PdfWriter()
    for n in range(kept):
        writer.add_page(reader.pages[n])
    writer.write(cut)
    return (cut.getvalue() if cut.tell() <= MAX_PDF_BYTES else b""), kept
