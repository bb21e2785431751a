"""Plots of an evaluation as PNG and SVG: accuracy with intervals, reliability, accuracy by trust level, preference."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any

from council.errors import UsageError
from council.evals.statistics import read_interval
from council.runs.eval_object import BlindArm, EvalArm, EvalObject, IntervalObject

FORMATS = ("png", "svg")
LEVEL_ORDER = ("HIGH", "MEDIUM", "LOW", "CONTESTED")
COLOURS = ("#2f6db3", "#c2571a", "#3d8a4e", "#8a4fa3", "#a3841f", "#5b6770", "#b3325f", "#1f8a8a")


def write_plots(result: EvalObject, folder: Path) -> list[Path]:
    """Write the plots of a `council.eval/1` object and return their files."""
    figure_class = _load_figure()
    arms = [arm for arm in result["arms"] if arm["accuracy"]["mean"] is not None]
    files = _save(_plot_accuracy(figure_class, arms), folder / "accuracy") if arms else []
    calibrated = [arm for arm in arms if arm["reliability"]]
    if calibrated:
        files += _save(_plot_reliability(figure_class, calibrated), folder / "reliability")
    trusted = [arm for arm in arms if len(arm["trust"]) > 1]
    if trusted:
        files += _save(_plot_trust(figure_class, trusted), folder / "trust")
    blind = {arm["arm"]: arm["blind"] for arm in result["arms"] if arm.get("blind")}
    compared = {name: found for name, found in blind.items() if found and found["preference"]["mean"] is not None}
    if compared:
        files += _save(_plot_preference(figure_class, compared), folder / "preference")
    return files


def _load_figure() -> Any:
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError:
        raise UsageError('plots need matplotlib, which is not installed: pip install "model-council[eval]"') from None
    matplotlib.rcParams["svg.hashsalt"] = "council"  # the same result gives the same file
    return Figure


def _save(figure: Any, stem: Path) -> list[Path]:
    files = [stem.with_suffix(f".{form}") for form in FORMATS]
    for file in files:
        dates = {"Date": None} if file.suffix == ".svg" else {}
        figure.savefig(file, dpi=150, bbox_inches="tight", metadata=dates)
    return files


def _draw_intervals(
    axes: Any,
    places: Sequence[float | None],
    shown: Iterable[IntervalObject],
    *,
    horizontal: bool = False,
    **style: Any,
) -> None:
    """Draw an interval at each place, which is a height if they are horizontal."""
    intervals = [interval for one in shown if (interval := read_interval(one))]
    means = [one.mean for one in intervals]
    errors = [[one.mean - one.low for one in intervals], [one.high - one.mean for one in intervals]]
    if horizontal:
        axes.errorbar(means, places, xerr=errors, **style)
    else:
        axes.errorbar(places, means, yerr=errors, **style)


def _plot_accuracy(figure_class: Any, arms: Sequence[EvalArm]) -> Any:
    figure, axes = _plot_shares(figure_class, {arm["arm"]: arm["accuracy"] for arm in arms})
    axes.set_xlabel("share of right answers, with 95 % interval")
    return figure


def _plot_preference(figure_class: Any, arms: Mapping[str, BlindArm]) -> Any:
    figure, axes = _plot_shares(figure_class, {name: arm["preference"] for name, arm in arms.items()})
    axes.axvline(0.5, color="#999999", linewidth=1)
    base = next(iter(arms.values()))["against"]
    axes.set_xlabel(f"share of comparisons that prefer it to {base}, ties half, with 95 % interval")
    return figure


def _plot_shares(figure_class: Any, rows: Mapping[str, IntervalObject]) -> tuple[Any, Any]:
    """Return a figure with one interval for each row, and its axes."""
    figure = figure_class(figsize=(7, 0.5 * len(rows) + 1.2))
    axes = figure.subplots()
    places = list(range(len(rows)))
    _draw_intervals(axes, places, rows.values(), horizontal=True, fmt="o", color=COLOURS[0], capsize=4)
    axes.set_yticks(places, list(rows))
    axes.invert_yaxis()
    axes.set_xlim(0, 1)
    axes.grid(axis="x", alpha=0.3)
    return figure, axes


def _plot_reliability(figure_class: Any, arms: Sequence[EvalArm]) -> Any:
    figure = figure_class(figsize=(5.5, 5))
    axes = figure.subplots()
    axes.plot([0, 1], [0, 1], color="#999999", linewidth=1)
    for arm, colour in zip(arms, cycle(COLOURS), strict=False):
        shares, shown = (
            [row["confidence"] for row in arm["reliability"]],
            [row["accuracy"] for row in arm["reliability"]],
        )
        _draw_intervals(axes, shares, shown, fmt="o-", color=colour, capsize=3, label=arm["arm"])
    axes.set_xlim(0, 1.02)
    axes.set_xlabel("share of the votes for the answer")
    _label_shares(axes)
    return figure


def _plot_trust(figure_class: Any, arms: Sequence[EvalArm]) -> Any:
    figure = figure_class(figsize=(7, 4))
    axes = figure.subplots()
    for n, (arm, colour) in enumerate(zip(arms, cycle(COLOURS), strict=False)):
        levels = [level for level in LEVEL_ORDER if level in arm["trust"]]
        places = [LEVEL_ORDER.index(level) + 0.08 * n for level in levels]
        shown = [arm["trust"][level] for level in levels]
        _draw_intervals(axes, places, shown, fmt="o", color=colour, capsize=3, label=arm["arm"])
    axes.set_xticks(range(len(LEVEL_ORDER)), LEVEL_ORDER)
    _label_shares(axes)
    return figure


def _label_shares(axes: Any) -> None:
    axes.set_ylim(0, 1.02)
    axes.set_ylabel("share of right answers")
    axes.legend(fontsize=8)
