"""Plots of an evaluation: which are drawn, from the rows of its result."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from council.evals.plots import FORMATS, write_plots

SHARE = {"mean": 0.8, "low": 0.5, "high": 0.9, "n": 5}
UNKNOWN = {"mean": None, "low": None, "high": None, "n": 0}
ARM: dict[str, Any] = {"arm": "triad", "accuracy": SHARE, "reliability": [], "trust": {}}


@pytest.mark.parametrize(
    ("arm", "drawn"),
    [
        (ARM, {"accuracy"}),
        (ARM | {"accuracy": UNKNOWN}, set()),
        (ARM | {"reliability": [{"confidence": 0.7, "accuracy": SHARE}]}, {"accuracy", "reliability"}),
        (ARM | {"trust": {"HIGH": SHARE}}, {"accuracy"}),
        (ARM | {"trust": {"HIGH": SHARE, "LOW": SHARE}}, {"accuracy", "trust"}),
        (ARM | {"accuracy": UNKNOWN, "blind": {"preference": SHARE, "against": "single"}}, {"preference"}),
        (ARM | {"accuracy": UNKNOWN, "blind": {"preference": UNKNOWN, "against": "single"}}, set()),
    ],
)
def test_a_plot_is_drawn_where_there_is_something_to_compare(
    arm: dict[str, Any], drawn: set[str], tmp_path: Path
) -> None:
    result: Any = {"arms": [ARM | {"accuracy": UNKNOWN, "arm": "single"}, arm]}
    files = write_plots(result, tmp_path)
    assert set(files) == {tmp_path / f"{name}.{form}" for name in drawn for form in FORMATS}
    assert all(file.stat().st_size for file in files)
