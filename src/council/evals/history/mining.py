"""Mining of a history: the commits that introduced bugs which later commits fixed, and controls."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from council.evals.history.cases import Mined


def find_cases(
    repository: Path,
    *,
    since: str = "1 year ago",
    limit: int = 30,
    seed: int = 0,
    controls: int | None = None,
    on_progress: Callable[[str], None] | None = None,
) -> Mined:
    """Return the commits of a repository that introduced bugs, and controls, in a seeded order."""
    raise NotImplementedError
