"""Number of judges: defaults, flags, and the cap of 12 agents."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from council.errors import UsageError

MAX_AGENTS = 12
DEFAULT_JUDGES = 2
DEEP_JUDGES = 3
PROFILE_JUDGES = {"thorough": 3, "balanced": 2, "fast": 2}


@dataclass(frozen=True, slots=True)
class JudgeCounts:
    """Numbers of judges and explorers. `wanted` is the number per family before the cap."""

    per_family: int
    families: int = 1
    explorers: int = 0
    perspectives: tuple[str, ...] = ()
    dropped_perspectives: tuple[str, ...] = ()
    requested: int = 0

    @property
    def judges(self) -> int:
        return self.per_family * self.families

    @property
    def agents(self) -> int:
        return self.judges * (1 + self.explorers)

    @property
    def is_scaled_down(self) -> bool:
        return self.per_family < self.requested


def count_judges(
    *,
    perspectives: Sequence[str] = (),
    quick: bool = False,
    deep: bool = False,
    mixed: bool = False,
    debate: bool = False,
    count: int | None = None,
    explorers: int = 0,
    default_count: int = DEFAULT_JUDGES,
) -> JudgeCounts:
    """Compute the number of judges. `usual` applies when no flag sets a size."""
    if quick:
        return JudgeCounts(1, requested=1)
    families = 2 if mixed else 1
    wanted = count or max(DEEP_JUDGES if deep or mixed else default_count, len(perspectives))
    per_family = _apply_agent_cap(wanted, families, explorers, explicit=count is not None)
    if debate and per_family * families < 2:
        raise UsageError(
            f"--debate needs at least 2 judges, but there is {per_family}: raise --count, or drop --debate"
        )
    held, dropped = tuple(perspectives[:per_family]), tuple(perspectives[per_family:])
    return JudgeCounts(per_family, families, explorers, held, dropped, wanted)


def _apply_agent_cap(requested: int, families: int, explorers: int, *, explicit: bool) -> int:
    room = MAX_AGENTS // (families * (1 + explorers))
    if requested <= room:
        return requested
    if explicit:
        judges = requested * families
        raise UsageError(
            f"--count={requested} makes {judges} judges x (1 + {explorers} explorers) = {judges * (1 + explorers)} agents, "
            f"over the cap of {MAX_AGENTS}: lower --count to {room} or less, or lower --explorers"
        )
    return room


def slugify(name: str) -> str:
    """Return the name in lower case with hyphens: "Error paths" becomes "error-paths"."""
    return re.sub(r"\W+", "-", name.lower()).strip("-")
