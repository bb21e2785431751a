"""Files, read so that nothing odd is waited for, followed or swallowed; and text, decoded without what nobody sees."""

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
CONTROL = re.compile(rb"[\x01-\x08\x0e-\x1a\x1c-\x1f]")  # escapes are left out: terminals' logs hold them
ODD = (
    (stat.S_ISDIR, "a folder"), (stat.S_ISLNK, "a link"), (stat.S_ISFIFO, "a named pipe"), (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"), (stat.S_ISBLK, "a device"),
)  # fmt: skip


class Unreadable(Exception):
    """A file that is not read, with the reason. `odd` ones are no text that anybody could have been shown."""

    def __init__(self, why: str, *, odd: bool = False) -> None:
        super().__init__(why)
        self.why = why
        self.odd = odd


def inside(root: Path, path: str) -> str:
    """The path relative to the root, as git would write it. One that leads out of it is refused."""
    if "\0" in path:
        raise UsageError("a path holds a NUL character: name a file that can exist")
    place = Path(os.path.normpath(root.resolve() / path))
    if not place.is_relative_to(root.resolve()):
        raise UsageError(
            f'"{shown(path)}" lies outside the folder council was started in: start it in a folder that holds both'
        )
    return place.relative_to(root.resolve()).as_posix()


def read(root: Path, path: str, largest: int) -> bytes:
    """The bytes of a text below the root."""
    content, size = opened(root, path, largest)
    if is_binary(content):
        raise Unreadable(f"binary, {_amount(size)}" if size > largest else "binary", odd=True)
    if size > largest or len(content) > largest:
        raise Unreadable(f"{_amount(max(size, len(content)))}, over {_amount(largest)} a file")
    return content


def opened(root: Path, path: str, largest: int) -> tuple[bytes, int]:
    """The bytes of a regular file below the root, and its size; of one that is too large only the start.

    Stat first: nothing that could block or never end is opened."""
    try:
        place = _place(root.resolve(), path)
        _regular(os.lstat(place))
        # Not following: the file may have been replaced by a link since. Not blocking: or by a pipe.
        handle = os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(handle, "rb") as stream:
            size = _regular(os.fstat(handle))
            return stream.read(SNIFFED if size > largest else largest + 1), size
    except (OSError, ValueError, RuntimeError) as error:  # a circle of links is a RuntimeError up to Python 3.12
        raise Unreadable(f"cannot be read ({getattr(error, 'strerror', None) or 'no such name'})") from error


def _place(root: Path, path: str) -> Path:
    place = root / path
    parent = place.parent.resolve()
    if not parent.is_relative_to(root):
        raise Unreadable("behind a link out of the root", odd=True)
    return parent / place.name


def _regular(status: os.stat_result) -> int:
    for is_it, what in ODD:
        if is_it(status.st_mode):
            raise Unreadable(what, odd=True)
    return status.st_size


def is_binary(content: bytes) -> bool:
    return b"\0" in content[:SNIFFED]


def link_target(root: Path, path: str) -> str | None:
    """Where a link that was named leads, relative to the root; None for what is no link. Out of the root is refused."""
    place = root.resolve() / path
    if not place.is_symlink():
        return None
    try:
        target = place.resolve()
    except (OSError, RuntimeError) as error:
        raise UsageError(f'"{shown(path)}" is a link that leads back to itself: name the file itself') from error
    if not target.is_relative_to(root.resolve()):
        raise UsageError(f'"{shown(path)}" is a link out of the folder council was started in, and is not followed')
    if not target.exists():
        raise UsageError(f'"{shown(path)}" is a link that leads nowhere: name the file itself')
    return target.relative_to(root.resolve()).as_posix()


def as_text(content: bytes) -> tuple[str, str]:
    """Text without its byte order mark, and what is to be said about how it was read."""
    try:
        return content.decode("utf-8").removeprefix("\ufeff"), ""
    except UnicodeDecodeError:
        replaced = content.decode("utf-8", "replace").removeprefix("\ufeff")
    if re.search("[^\0-\x7f\ufffd]", replaced):  # most of it is what it should be
        return replaced, "is not UTF-8 throughout: what could not be read was replaced"
    for encoding, name in (("cp1252", "Windows-1252"), ("latin-1", "Latin-1")):
        with contextlib.suppress(UnicodeDecodeError):
            return content.decode(encoding), f"is not UTF-8 and was read as {name}"
    raise AssertionError("every byte is a character of Latin-1")


def as_bytes(text: str) -> bytes:
    """What a text was before somebody decoded it with the bytes that are no UTF-8 kept as surrogates."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return sound(text).encode()


def is_text(content: bytes) -> bool:
    """For what has no name to go by: neither binary, nor both foreign to UTF-8 and full of controls."""
    return not is_binary(content) and not (as_text(content)[1] and CONTROL.search(content))


def decoded(content: bytes) -> tuple[str, int]:
    """Text, and how many characters that nobody sees were taken out of it."""
    return visible(as_text(content)[0])


def _amount(size: int) -> str:
    for unit, name in ((1 << 30, "GB"), (1 << 20, "MB"), (1 << 10, "KB")):
        if size >= unit:
            return f"{size / unit:.1f}".removesuffix(".0") + f" {name}"
    return f"{size} bytes"
