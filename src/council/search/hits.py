"""Interface of search providers: hits, errors and the provider protocol."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

Admit = Callable[[Path], str | None]  # returns a file's text, or None if it must not be shown


@dataclass(frozen=True, slots=True)
class Hit:
    """One result. `at` is the position in the document if one document has several results."""

    title: str
    url: str
    snippet: str
    at: str = ""


class Trouble(Exception):
    """Failed search. `again`: a retry after `wait` seconds may succeed."""

    def __init__(self, why: str, *, again: bool = False, wait: float = 0.0) -> None:
        super().__init__(why)
        self.why = why
        self.again = again
        self.wait = wait


class Finder(Protocol):
    """Search provider. `remarks` lists limits of the last searches, such as skipped files."""

    name: str

    @property
    def remarks(self) -> Sequence[str]: ...

    async def find(self, query: str, most: int, freshness: str) -> list[Hit]: ...

    async def close(self) -> None: ...
