"""Shared by the benchmarks: an isolated environment, medians with range, and output."""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any


def parse_arguments(description: str, **numbers: int) -> argparse.Namespace:
    """Parse `--json` and one integer flag per keyword."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--json", action="store_true", help="print JSON instead of the table")
    for name, default in numbers.items():
        parser.add_argument(f"--{name}", type=int, default=default, help=f"(default: {default})")
    return parser.parse_args()


@dataclass(frozen=True, slots=True)
class Spread:
    """Median and range of repeated measurements."""

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
def isolated_environment() -> Iterator[tuple[Path, dict[str, str]]]:
    """Yield a folder and an environment without keys, settings and runs of the user."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "work"
        folder.mkdir()
        env = {name: value for name, value in os.environ.items() if not _is_personal(name)}
        yield folder, {**env, "COUNCIL_DATA": f"{place}/data", "XDG_CONFIG_HOME": f"{place}/config"}


def _is_personal(name: str) -> bool:
    return name.startswith("COUNCIL_") or name.endswith("_API_KEY") or name == "OLLAMA_HOST"


def write_config(folder: Path, base_url: str, model: str, connections: int = 16) -> None:
    """Write the user's configuration, so that all seats use the endpoint."""
    seats = "".join(f'[seats.{name}]\nmodel = "sim:{model}"\n' for name in ("alpha", "beta", "gamma"))
    config = folder.parent / "config" / "council" / "config.toml"
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text(
        f'[providers.sim]\nwire = "openai"\nbase_url = "{base_url}"\nmax_connections = {connections}\n'
        f'{seats}[chair]\nmodel = "sim:{model}"\n',
        encoding="utf-8",
    )


def resident_mb() -> float:
    """Return the memory that this process has now; where that is unknown, the most it had."""
    return _read_memory("VmRSS") or peak_mb()


def peak_mb() -> float:
    """Return the most memory that this process had.

    Linux reports the peak of the parent in `ru_maxrss` if it is higher.
    """
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return _read_memory("VmHWM") or most / (1e6 if sys.platform == "darwin" else 1e3)


def _read_memory(name: str) -> float:
    """Return a line of the status of this process in MB, or 0 on systems without it."""
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii")
    except OSError:
        return 0.0
    return next((int(line.split()[1]) * 1.024 / 1000 for line in status.splitlines() if line.startswith(name)), 0.0)


def print_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head))]
    for row in (head, *rows):
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def check_budget(value: float, budget: float) -> str:
    return "ok" if value <= budget else "over"


def print_result(
    options: argparse.Namespace, result: dict[str, Any], head: Sequence[str], rows: Sequence[Sequence[str]]
) -> None:
    if options.json:
        print(json.dumps(result))
    else:
        print_table(head, rows)
