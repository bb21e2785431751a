"""Uploaded attachments: kept privately for a day, so that a draft of a question survives a reload of the page.

Each sender has its own. The first line of a file is its description in JSON; what follows is its content. The time of
the file is that of the upload.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import secrets
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TypedDict

from council.errors import UsageError
from council.packet.attachments import Content, prepare
from council.settings.private_files import make_private_folder, open_private_file
from council.settings.schema import quote_value

FOLDER = "uploads"  # in the data folder
KEEP_S = 86_400.0  # seconds that an upload is kept if no run takes it
SWEEP_S = 3600.0  # seconds between removals of what has expired
MAX_UPLOADS, MAX_UPLOAD_BYTES = 100, 200_000_000  # of one sender at a time
ID_BYTES = 16
ID_PATTERN = r"^[0-9a-f]{32}$"


class UnknownUpload(UsageError):
    """The sender has no uploaded attachment with this id."""


class Upload(TypedDict):
    """An uploaded attachment."""

    id: str
    name: str
    media_type: str
    bytes: int
    expires: float  # Unix time


class Uploads:
    def __init__(self, data_folder: Path) -> None:
        self._folder = data_folder / FOLDER

    def save(self, owner: str, name: str, content: bytes) -> Upload:
        """Check a file as any attachment is checked, and keep it."""
        media_type = _check_media_type(name, content)
        others = self.find_all(owner)
        if len(others) >= MAX_UPLOADS or sum(one["bytes"] for one in others) + len(content) > MAX_UPLOAD_BYTES:
            raise UsageError(
                f"attachment {quote_value(name)} was not kept: {len(others)} uploaded attachments wait for a run, "
                f"at most {MAX_UPLOADS} with {MAX_UPLOAD_BYTES // 1_000_000} MB in all may; remove some of them",
                field="attachments",
            )
        id_ = secrets.token_hex(ID_BYTES)
        place = self._place(owner)
        make_private_folder(place)
        draft = place / f".{id_}"
        with open_private_file(draft, "wb") as file:
            file.write(json.dumps({"name": name, "media_type": media_type}).encode() + b"\n" + content)
        draft.replace(place / id_)
        return {
            "id": id_,
            "name": name,
            "media_type": media_type,
            "bytes": len(content),
            "expires": (place / id_).stat().st_mtime + KEEP_S,
        }

    def find_all(self, owner: str) -> list[Upload]:
        """Return the uploads of a sender, oldest first."""
        found = [upload for file in self._files(owner) if (upload := _describe(file))]
        return sorted(found, key=lambda upload: upload["expires"])

    def read(self, owner: str, id_: str) -> tuple[Upload, bytes]:
        """Return an upload with its content. Raise UnknownUpload if the sender has none with this id."""
        file = self._place(owner) / id_
        upload = _describe(file)
        try:
            content = file.read_bytes() if upload else b""
        except OSError:
            upload = None
        if upload is None:
            raise UnknownUpload(f"no uploaded attachment {quote_value(id_)}: attach the file again")
        return upload, content.partition(b"\n")[2]

    def read_contents(self, owner: str, ids: Iterable[str]) -> list[Content]:
        """Return the names and the bytes of uploads for a run."""
        try:
            return [(upload["name"], content) for upload, content in (self.read(owner, id_) for id_ in ids)]
        except UnknownUpload as error:
            raise UsageError(str(error), field="uploads") from None

    def remove(self, owner: str, ids: Iterable[str]) -> None:
        for id_ in ids:
            (self._place(owner) / id_).unlink(missing_ok=True)

    def remove_expired(self) -> None:
        """Remove what no run took within a day, of all senders."""
        for place in self._folder.glob("*"):
            for file in place.iterdir():
                with suppress(OSError):
                    if file.stat().st_mtime + KEEP_S <= time.time():
                        file.unlink()

    async def keep_removing(self) -> None:
        """Remove what has expired, now and every hour."""
        while True:
            with suppress(OSError):
                await asyncio.to_thread(self.remove_expired)
            await asyncio.sleep(SWEEP_S)

    def _place(self, owner: str) -> Path:
        return self._folder / hashlib.sha256(owner.encode()).hexdigest()[:32]

    def _files(self, owner: str) -> Iterator[Path]:
        place = self._place(owner)
        return (file for file in (place.iterdir() if place.is_dir() else ()) if not file.name.startswith("."))


def _check_media_type(name: str, content: bytes) -> str:
    """Return the media type of a file that can be attached. Raise UsageError for any other."""
    prepared = prepare(name, content)
    if prepared.attachment:
        return prepared.attachment.media_type
    return "application/pdf" if content[:1024].lstrip().startswith(b"%PDF-") else "text/plain"


def _describe(file: Path) -> Upload | None:
    """Return the description of a stored upload, or None if there is none or it has expired."""
    try:
        status = file.stat()
        with file.open("rb") as stored:
            head = stored.readline()
        about = json.loads(head)
    except (OSError, ValueError):
        return None
    expires = status.st_mtime + KEEP_S
    if expires <= time.time():
        return None
    return {
        "id": file.name,
        "name": about["name"],
        "media_type": about["media_type"],
        "bytes": status.st_size - len(head),
        "expires": expires,
    }
