"""Safe file reading (no blocking, no links, size limits) and text decoding."""

from __future__ import annotations

import contextlib
import os
import re
import stat
from pathlib import Path

from council.errors import UsageError
from council.foreign import strip_invisible as strip_invisible
from council.packet.names import format_path
from council.types import repair_surrogates

SNIFF_BYTES = 8_192
CONTROL_BYTES = re.compile(rb"[\x01-\x08\x0e-\x1a\x1c-\x1f]")  # without ESC: terminal logs contain it
SPECIAL_FILES = (
    (stat.S_ISDIR, "a folder"), (stat.S_ISLNK, "a link"), (stat.S_ISFIFO, "a named pipe"), (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"), (stat.S_ISBLK, "a device"),
)  # fmt: skip


class Unreadable(Exception):
    """A file that cannot be read, with the reason. `is_special` marks files without text: binary files, folders, links, pipes, devices."""

    def __init__(self, why: str, *, is_special: bool = False, binary: bool = False) -> None:
        super().__init__(why)
        self.why = why
        self.is_special = is_special
        self.binary = binary


def relative_to_root(root: Path, path: str) -> str:
    """Return the path relative to the root, with forward slashes, or raise UsageError if it is outside."""
    if "\0" in path:
        raise UsageError("a path contains a NUL character: remove it")
    place = Path(os.path.normpath(root.resolve() / path))
    if not place.is_relative_to(root.resolve()):
        raise UsageError(
            f'"{format_path(path)}" is outside the folder council was started in: start it in a folder that contains both'
        )
    return place.relative_to(root.resolve()).as_posix()


def read_text_bytes(root: Path, path: str, max_bytes: int) -> bytes:
    """Return the bytes of a text file below the root, or raise Unreadable."""
    content, size = read_regular_file(root, path, max_bytes)
    if is_binary(content):
        raise Unreadable(
            f"binary, {_format_size(size)}" if size > max_bytes else "binary", is_special=True, binary=True
        )
    if size > max_bytes or len(content) > max_bytes:
        raise Unreadable(f"{_format_size(max(size, len(content)))}, over {_format_size(max_bytes)} a file")
    return content


def read_regular_file(root: Path, path: str, max_bytes: int) -> tuple[bytes, int]:
    """Return the bytes of a regular file below the root and its size; only the start if it is too large.

    Stat first, so that nothing that could block or never end is opened."""
    try:
        place = _resolve_parent(root.resolve(), path)
        _check_regular(os.lstat(place))
        # The file may have been replaced by a link (O_NOFOLLOW) or a pipe (O_NONBLOCK) since the stat.
        handle = os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(handle, "rb") as stream:
            size = _check_regular(os.fstat(handle))
            return stream.read(SNIFF_BYTES if size > max_bytes else max_bytes + 1), size
    except (OSError, ValueError, RuntimeError) as error:  # a link cycle raises RuntimeError up to Python 3.12
        raise Unreadable(f"cannot be read ({getattr(error, 'strerror', None) or 'no such name'})") from error


def _resolve_parent(root: Path, path: str) -> Path:
    place = root / path
    parent = place.parent.resolve()
    if not parent.is_relative_to(root):
        raise Unreadable("behind a link that points outside the root", is_special=True)
    return parent / place.name


def _check_regular(status: os.stat_result) -> int:
    for is_it, what in SPECIAL_FILES:
        if is_it(status.st_mode):
            raise Unreadable(what, is_special=True)
    return status.st_size


def is_binary(content: bytes) -> bool:
    return b"\0" in content[:SNIFF_BYTES]


def resolve_link(root: Path, path: str) -> str | None:
    """Return the target of a link relative to the root, None if it is not a link, or raise UsageError if it is outside."""
    place = root.resolve() / path
    if not place.is_symlink():
        return None
    try:
        target = place.resolve()
    except (OSError, RuntimeError) as error:
        raise UsageError(f'"{format_path(path)}" is a link that points to itself: name the file itself') from error
    if not target.is_relative_to(root.resolve()):
        raise UsageError(
            f'"{format_path(path)}" is a link that points outside the folder council was started in: name a file inside it'
        )
    if not target.exists():
        raise UsageError(f'"{format_path(path)}" is a broken link: name the file itself')
    return target.relative_to(root.resolve()).as_posix()


def decode_text(content: bytes) -> tuple[str, str]:
    """Return text without its byte order mark, and a remark if it is not valid UTF-8."""
    try:
        return content.decode("utf-8").removeprefix("\ufeff"), ""
    except UnicodeDecodeError:
        replaced = content.decode("utf-8", "replace").removeprefix("\ufeff")
    if re.search("[^\0-\x7f\ufffd]", replaced):  # most of it is valid UTF-8
        return replaced, "is not valid UTF-8: unreadable bytes were replaced"
    for encoding, name in (("cp1252", "Windows-1252"), ("latin-1", "Latin-1")):
        with contextlib.suppress(UnicodeDecodeError):
            return content.decode(encoding), f"is not UTF-8 and was read as {name}"
    raise AssertionError("Latin-1 decodes every byte")


def encode_text(text: str) -> bytes:
    """Return the original bytes of a text that was decoded with surrogateescape."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return repair_surrogates(text).encode()


def is_text(content: bytes) -> bool:
    """Return whether bytes without a file name are text: not binary, and valid UTF-8 or free of control bytes."""
    return not is_binary(content) and not (decode_text(content)[1] and CONTROL_BYTES.search(content))


def decode_visible(content: bytes) -> tuple[str, int]:
    """Return text without invisible characters, and how many were removed."""
    return strip_invisible(decode_text(content)[0])


def _format_size(size: int) -> str:
    for unit, name in ((1 << 30, "GB"), (1 << 20, "MB"), (1 << 10, "KB")):
        if size >= unit:
            return f"{size / unit:.1f}".removesuffix(".0") + f" {name}"
    return f"{size} bytes"
