"""Prompt cache of a run: where the vendors are told to cache its requests."""

from __future__ import annotations

import hmac
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from council.types import Ask

KEY_LABEL = b"prompt cache"


@dataclass(frozen=True, slots=True)
class PromptCache:
    """Cache points of each step, and a key that all requests of the run have. A resumed run has the same."""

    points: Mapping[str, Sequence[int]] = field(default_factory=dict)
    key: str = ""

    @classmethod
    def for_run(cls, seed: str, points: Mapping[str, Sequence[int]]) -> PromptCache:
        """Return the cache of a run. The key is derived from its random seed, so it says nothing about its content."""
        digest = hmac.new(seed.encode(), KEY_LABEL, "sha256").hexdigest()
        return cls(points, f"council-{digest[:16]}")

    def mark(self, ask: Ask) -> Ask:
        """Return the request of a step with its cache points."""
        points = tuple(self.points.get(ask.key, ())) if ask.shared else ()
        return replace(ask, cache_points=points, cache_key=self.key) if points or self.key else ask


NO_PROMPT_CACHE = PromptCache()
