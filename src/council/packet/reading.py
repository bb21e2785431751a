"""Safe file reading (no blocking, no links, size limits) and text decoding."""

from __future__ import annotations

import contextlib
import os
import re
import stat
from pathlib import Path

from council.errors import UsageError
from council.foreign import visible as visible
from council.packet.names import shown
from council.types import sound

SNIFFED = 8_192
CONTROL = re.compile(rb"[\x01-\x08\x0e-\x1a\x1c-\x1f]")  # without ESC: terminal logs contain it
ODD = (
    (stat.S_ISDIR, "a folder"), (stat.S_ISLNK, "a link"), (stat.S_ISFIFO, "a named pipe"), (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"), (stat.S_ISBLK, "a device"),
)  # fmt: skip


class Unreadable(Exception):
    """A file that cannot be read, with the reason. `is_special` marks files without text: binary files, folders, links, pipes, devices."""

    def __init__(self, why: str, *, odd: bool = False, binary: bool = False) -> None:
        super().__init__(why)
        self.why = why
        self.odd = odd
        self.binary = binary


def inside(root: Path, path: str) -> str:
    """Return the path relative to the root, with forward slashes, or raise UsageError if it is outside."""
    if "\0" in path:
        raise UsageError("a path contains a NUL character: remove it")
    place = Path(os.path.normpath(root.resolve() / path))
    if not place.is_relative_to(root.resolve()):
        raise UsageError(
            f'"{shown(path)}" is outside the folder council was started in: start it in a folder that contains both'
        )
    return place.relative_to(root.resolve()).as_posix()


def read(root: Path, path: str, largest: int) -> bytes:
    """Return the bytes of a text file below the root, or raise Unreadable."""
    content, size = opened(root, path, largest)
    if is_binary(content):
        raise Unreadable(f"binary, {_amount(size)}" if size > largest else "binary", odd=True, binary=True)
    if size > largest or len(content) > largest:
        raise Unreadable(f"{_amount(max(size, len(content)))}, over {_amount(largest)} a file")
    return content


def opened(root: Path, path: str, largest: int) -> tuple[bytes, int]:
    """Return the bytes of a regular file below the root and its size; only the start if it is too large.

    Stat first, so that nothing that could block or never end is opened."""
    try:
        place = _place(root.resolve(), path)
        _regular(os.lstat(place))
        # The file may have been replaced by a link (O_NOFOLLOW) or a pipe (O_NONBLOCK) since the stat.
        handle = os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(handle, "rb") as stream:
            size = _regular(os.fstat(handle))
            return stream.read(SNIFFED if size > largest else largest + 1), size
    except (OSError, ValueError, RuntimeError) as error:  # a link cycle raises RuntimeError up to Python 3.12
        raise Unreadable(f"cannot be read ({getattr(error, 'strerror', None) or 'no such name'})") from error


def _place(root: Path, path: str) -> Path:
    place = root / path
    parent = place.parent.resolve()
    if not parent.is_relative_to(root):
        raise Unreadable("behind a link that points outside the root", odd=True)
    return parent / place.name


def _regular(status: os.stat_result) -> int:
    for is_it, what in ODD:
        if is_it(status.st_mode):
            raise Unreadable(what, odd=True)
    return status.st_size


def is_binary(content: bytes) -> bool:
    return b"\0" in content[:SNIFFED]


def link_target(root: Path, path: str) -> str | None:
    """Return the target of a link relative to the root, None if it is not a link, or raise UsageError if it is outside."""
    place = root.resolve() / path
    if not place.is_symlink():
        return None
    try:
        target = place.resolve()
    except (OSError, RuntimeError) as error:
        raise UsageError(f'"{shown(path)}" is a link that points to itself: name the file itself') from error
    if not target.is_relative_to(root.resolve()):
        raise UsageError(
            f'"{shown(path)}" is a link that points outside the folder council was started in: name a file inside it'
        )
    if not target.exists():
        raise UsageError(f'"{shown(path)}" is a broken link: name the file itself')
    return target.relative_to(root.resolve()).as_posix()


def as_text(content: bytes) -> tuple[str, str]:
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


def as_bytes(text: str) -> bytes:
    """Return the original bytes of a text that was decoded with surrogateescape."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return sound(text).encode()


def is_text(content: bytes) -> bool:
    """Return whether bytes without a file name are text: not binary, and valid UTF-8 or free of control bytes."""
    return not is_binary(content) and not (as_text(content)[1] and CONTROL.search(content))


def decoded(content: bytes) -> tuple[str, int]:
    """Return text without invisible characters, and how many were removed."""
    return visible(as_text(content)[0])


def _amount(size: int) -> str:
    for unit, name in ((1 << 30, "GB"), (1 << 20, "MB"), (1 << 10, "KB")):
        if size >= unit:
            return f"{size / unit:.1f}".removesuffix(".0") + f" {name}"
    return f"{size} bytes"
