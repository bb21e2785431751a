"""What the benchmarks share: a room of their own, medians with their range, one way to print."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any


def arguments(description: str, **numbers: int) -> argparse.Namespace:
    """`--json`, and a flag for each number with its default."""
    options = argparse.ArgumentParser(description=description)
    options.add_argument("--json", action="store_true", help="print one object in place of the table")
    for name, default in numbers.items():
        options.add_argument(f"--{name}", type=int, default=default, help=f"(default: {default})")
    return options.parse_args()


@dataclass(frozen=True, slots=True)
class Spread:
    """Several measurements of one thing."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        return cls(statistics.median(values), min(values), max(values))

    def show(self, digits: int = 2) -> str:
        return f"{self.median:.{digits}f} ({self.low:.{digits}f}-{self.high:.{digits}f})"

    def as_json(self) -> dict[str, float]:
        return {"median": round(self.median, 4), "low": round(self.low, 4), "high": round(self.high, 4)}


@contextmanager
def room() -> Iterator[tuple[Path, dict[str, str]]]:
    """A folder and an environment in which nobody's keys, settings or runs are seen."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "work"
        folder.mkdir()
        env = {name: value for name, value in os.environ.items() if not _personal(name)}
        yield folder, {**env, "COUNCIL_DATA": f"{place}/data", "XDG_CONFIG_HOME": f"{place}/config"}


def _personal(name: str) -> bool:
    return name.startswith("COUNCIL_") or name.endswith("_API_KEY") or name == "OLLAMA_HOST"


def provider(folder: Path, base_url: str, model: str, connections: int = 16) -> None:
    """A council.toml that seats everyone at the endpoint."""
    seats = "".join(f'[seats.{name}]\nmodel = "sim:{model}"\n' for name in ("alpha", "beta", "gamma"))
    (folder / "council.toml").write_text(
        f'[providers.sim]\nwire = "openai"\nbase_url = "{base_url}"\nmax_connections = {connections}\n'
        f'{seats}[chair]\nmodel = "sim:{model}"\n',
        encoding="utf-8",
    )


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head))]
    for row in (head, *rows):
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def verdict(value: float, budget: float) -> str:
    return "ok" if value <= budget else "over"


def put(given: argparse.Namespace, result: dict[str, Any], head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    if given.json:
        print(json.dumps(result))
    else:
        table(head, rows)
