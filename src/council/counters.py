"""Counters of this process, for its metrics."""

from __future__ import annotations

from collections import Counter

_counts: Counter[tuple[str, str]] = Counter()


def count(name: str, label: str = "", value: float = 1) -> None:
    """Add to a counter. `label` tells its parts apart, such as providers."""
    _counts[name, label] += value  # type: ignore[assignment]


def read_counts(name: str) -> dict[str, float]:
    """Return the parts of a counter by their label."""
    return {label: value for (found, label), value in _counts.items() if found == name}
