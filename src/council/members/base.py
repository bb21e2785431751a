"""The seam every member sits behind: dress an ask as bytes, send those bytes, hear the answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from council.errors import Fault
from council.types import Answer, Ask

Hear = Callable[[str], None]  # called with each piece of content as it streams in, and with "" for a thought
Progress = Callable[[str, int, int], None]  # what is being fetched, bytes done, bytes in all
UNCAPPED = 8192  # tokens an answer may have where nobody set a cap and the vendor wants one


class Member(Protocol):
    """One model behind one door. `prepare` is pure, so that a stored request can be sent again byte for byte."""

    name: str  # provider:model, as it stands in the plan
    vendor: str  # the family it counts as
    small: bool  # asks for the compact template
    free: bool  # costs nothing per call
    backoff: float  # seconds before the first retry of a fault that waits

    def prepare(self, ask: Ask) -> bytes: ...

    async def ready(self, progress: Progress) -> None:
        """Fetch or start what the first call needs. May raise LocalModelError."""

    async def send(self, body: bytes, hear: Hear) -> Answer:
        """Send the bytes; raise Fault(kind, detail) when no whole answer came back."""

    async def probe(self) -> str:
        """One line of proof that the endpoint answers, without a paid call; raises Fault."""

    async def close(self) -> None: ...


def sendable(key: str) -> str:
    """The key, if a request can carry it; half of one, or one with a line break in it, would be lost on the way."""
    if not (key.isascii() and key.isprintable()):
        raise Fault("auth", "the key holds a character that no key has, such as a line break: set it anew")
    return key
