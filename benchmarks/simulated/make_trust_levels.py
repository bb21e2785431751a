"""Write the table of trust levels into docs/evidence.md: how often answers of each level are right, with simulated
members.

It takes about ten seconds. The seed is fixed, so the table changes only with the code.
"""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

from simulation import Members
from trust_levels import SIMULATED_PROTOCOLS, STRONG_CORRELATION, LevelMeter, LevelTable

PAGE = Path(__file__).parents[2] / "docs" / "evidence.md"
CORRELATIONS = (0.0, 0.2, 0.4, 0.6, 0.8, STRONG_CORRELATION)
COMPETENCE, CONFORMITY = 0.7, 0.3
QUESTIONS, SEED = 2000, 19
LEVELS = ("HIGH", "MEDIUM", "LOW")
START, END = "<!-- trust levels -->", "<!-- /trust levels -->"


async def measure() -> dict[str, list[LevelTable]]:
    meter = LevelMeter()
    panels = [Members((COMPETENCE,) * 3, correlation, conformity=CONFORMITY) for correlation in CORRELATIONS]
    return {
        name: [await meter.measure(name, panel, QUESTIONS, SEED) for panel in panels] for name in SIMULATED_PROTOCOLS
    }


def format_rows(tables: dict[str, list[LevelTable]]) -> list[str]:
    """Return one row for each different result, with all protocols that have it."""
    names: dict[tuple[str, ...], list[str]] = {}
    for name, measured in tables.items():
        names.setdefault(tuple(map(format_levels, measured)), []).append(name)
    return [f"| {', '.join(found)} | {' | '.join(cells)} |" for cells, found in names.items()]


def format_levels(table: LevelTable) -> str:
    """Return the share of right answers at each level, in percent."""
    shares = [
        f"{100 * sum(right) / len(right):.0f}" if (right := table.right.get(level, ())) else "–" for level in LEVELS
    ]
    return " / ".join(shares)


def main() -> None:
    tables = asyncio.run(measure())
    head = ["protocol", *(f"{correlation:g}" for correlation in CORRELATIONS)]
    rows = [f"| {' | '.join(head)} |", "|---" * len(head) + "|", *format_rows(tables)]
    text = PAGE.read_text(encoding="utf-8")
    block = "\n".join([START, "", *rows, "", END])
    PAGE.write_text(re.sub(f"{START}.*?{END}", lambda _: block, text, flags=re.DOTALL), encoding="utf-8")


if __name__ == "__main__":
    main()
