"""Interface of search providers: hits, errors and the provider protocol."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

ReadFile = Callable[[Path], str | None]  # returns a file's text, or None if it must not be shown


@dataclass(frozen=True, slots=True)
class Hit:
    """One result. `at` is the position in the document if one document has several results."""

    title: str
    url: str
    snippet: str
    position: str = ""


class SearchError(Exception):
    """Failed search. `again`: a retry after `wait` seconds may succeed."""

    def __init__(self, reason: str, *, retryable: bool = False, retry_after: float = 0.0) -> None:
        super().__init__(reason)
        self.reason = reason
        self.retryable = retryable
        self.retry_after = retry_after


class SearchProvider(Protocol):
    """Search provider. `remarks` lists limits of the last searches, such as skipped files."""

    name: str

    @property
    def remarks(self) -> Sequence[str]: ...

    async def search(self, query: str, max_results: int, freshness: str) -> list[Hit]: ...

    async def close(self) -> None: ...
