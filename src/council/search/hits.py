"""What a search gives: hits, or trouble in our own words. And what a provider of either is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

Admit = Callable[[Path], str | None]  # a file's text as it may be shown; None where it may not


@dataclass(frozen=True, slots=True)
class Hit:
    """One result. `at` is the place within the page, where several places of one page are results of their own."""

    title: str
    url: str
    snippet: str
    at: str = ""


class Trouble(Exception):
    """A search that failed. `again`: a second try may help, after `wait` seconds."""

    def __init__(self, why: str, *, again: bool = False, wait: float = 0.0) -> None:
        super().__init__(why)
        self.why = why
        self.again = again
        self.wait = wait


class Finder(Protocol):
    """A search provider. `remarks` tell, once something was looked for, what could not be looked through."""

    name: str

    @property
    def remarks(self) -> Sequence[str]: ...

    async def find(self, query: str, most: int, freshness: str) -> list[Hit]: ...

    async def close(self) -> None: ...
