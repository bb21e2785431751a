"""Files with one secret each, and files that only resemble them, written by authors who had not seen the rules.

The files are compressed, so that this repository contains no key that a scanner reports. benchmarks/secret_filter.py
uses them too.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).parents[1] / "data" / "secret_cases"
SETS = ("one", "two", "three")


class Case(NamedTuple):
    """A file; `secret` is empty if it has none."""

    name: str
    path: str
    text: str
    secret: str = ""


def load_cases(name: str) -> tuple[list[Case], list[Case]]:
    """Return the files with secrets and the look-alikes of a set."""
    with gzip.open(FOLDER / f"{name}.json.gz", "rt", encoding="utf-8") as file:
        cases = json.load(file)
    return [Case(**row) for row in cases["secrets"]], [Case(**row) for row in cases["look_alikes"]]
