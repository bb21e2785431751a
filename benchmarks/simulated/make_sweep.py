"""Write docs/evidence-sweep.svg and .png: the protocols with simulated members, by truth-pull and by error correlation.

It needs the extra `eval` and about 20 seconds. The seed is fixed, so the files change only with the code.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.figure import Figure

from council.evals.plots import FORMATS
from council.types import Json
from simulation import Members, sweep

ROOT = Path(__file__).parents[2]
QUESTIONS, SEED = 3000, 60
MEMBERS = Members((0.65,) * 3, correlation=0.3, conformity=0.3)
COLOURS = ("#2f6db3", "#c2571a", "#3d8a4e", "#8a4fa3", "#a3841f", "#5b6770")
SHOWN = ("vote", "self-consistency", "collaborative", "advisors:rounds=3", "adversarial", "ranking")


def draw(axes: Any, rows: list[Json], label: str) -> None:
    values = [row["value"] for row in rows]
    for name, colour in zip(SHOWN, COLOURS, strict=False):
        found = [next(one["accuracy"] for one in row["protocols"] if one["protocol"] == name) for row in rows]
        axes.plot(values, [one["mean"] for one in found], "o-", color=colour, label=name, markersize=3)
        axes.fill_between(
            values, [one["low"] for one in found], [one["high"] for one in found], color=colour, alpha=0.1
        )
    axes.set_xlabel(label)
    axes.grid(alpha=0.3)


def main() -> None:
    matplotlib.rcParams["svg.hashsalt"] = "council"
    figure = Figure(figsize=(9, 4))
    left, right = figure.subplots(1, 2, sharey=True)
    draw(left, sweep(MEMBERS, "truth_pull", (0.0, 0.1, 0.2, 0.3, 0.4), QUESTIONS, SEED), "truth-pull")
    draw(
        right,
        sweep(MEMBERS, "correlation", (0.0, 0.15, 0.3, 0.45, 0.6), QUESTIONS, SEED),
        "error correlation, without truth-pull",
    )
    left.set_ylabel("share of right answers")
    figure.legend(
        *left.get_legend_handles_labels(), loc="lower center", bbox_to_anchor=(0.5, -0.06), ncols=len(SHOWN), fontsize=8
    )
    for form in FORMATS:
        metadata = {"Date": None} if form == "svg" else {}
        figure.savefig(ROOT / "docs" / f"evidence-sweep.{form}", dpi=110, bbox_inches="tight", metadata=metadata)


if __name__ == "__main__":
    main()
