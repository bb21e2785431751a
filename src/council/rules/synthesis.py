"""Whether a synthesis keeps its rules: what it cites, what it tells of each disagreement, and what it may not be."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from council.rules.voices import Dispute


def cited(text: str, sources: Mapping[int, Mapping[str, str]] | None = None) -> list[int]:
    raise NotImplementedError


def strange_addresses(text: str, known_urls: Collection[str]) -> list[str]:
    raise NotImplementedError


def problems_of(
    answer: str,
    told: Mapping[str, Sequence[str]],
    sources: Mapping[int, Mapping[str, str]],
    persisting: Sequence[Dispute],
) -> list[str]:
    raise NotImplementedError


def disagreement_text(dispute: Dispute, because: str, sides: Sequence[tuple[str, str]]) -> str:
    raise NotImplementedError
