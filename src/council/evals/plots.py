"""Plots of an evaluation as PNG and SVG: paired differences, reliability, accuracy by trust level, preference.

They are made for a report of seven inches: text of nine points or more, and nothing that only a colour tells.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from council.engine.layout import format_count
from council.errors import UsageError
from council.evals import sampling
from council.evals.conclusions import format_arm
from council.evals.statistics import Interval, format_p, read_interval
from council.runs.eval_object import BlindArm, EvalArm, EvalObject

FORMATS = ("png", "svg")
LEVEL_ORDER = ("HIGH", "MEDIUM", "LOW", "CONTESTED")
INK, GREY, PALE = "#1b1b1b", "#6b6b6b", "#d9d9d9"
STYLE: dict[Any, Any] = {
    "font.size": 10,
    "axes.titlesize": 10,
    "xtick.labelsize": 9,
    "ytick.labelsize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": GREY,
    "svg.hashsalt": "council",  # the same result gives the same file
}
WIDTH, NARROW_WIDTH = 7.0, 5.2  # inches of a figure, and of one with a single panel
LINE_HEIGHT, ROW_GAP = 0.16, 0.14  # inches of a line of text, and between two rows
MAX_COLUMNS, MANY_PANELS = 3, 9  # of small multiples; with more panels there is one column more
NAME_WIDTH, PANEL_NAME_WIDTH = 26, 21  # characters of a line of the name of an arm, beside a row and above a panel
MIN_SPAN, SPAN_STEP = 0.3, 0.1  # of the axis of differences: the same one for most results


def write_plots(result: EvalObject, folder: Path) -> list[Path]:
    """Write the plots of a `council.eval/1` object and return their files."""
    drawing = _load_matplotlib()
    with drawing.rc_context(STYLE):
        return [file for name, figure in draw_plots(result) for file in _save(figure, folder / name)]


def draw_plots(result: EvalObject) -> Iterable[tuple[str, Any]]:
    """Yield the figure of each plot that the result has something for, with its name."""
    arms = [arm for arm in result["arms"] if arm["accuracy"]["mean"] is not None]
    if rows := [row for arm in arms for row in _compare(arm, arms, result)]:
        yield "differences", _draw_forest(rows, DIFFERENCES)
    elif arms:
        rows = [
            Row(format_arm(arm["arm"], result["equal"]), interval, f"n = {interval.n}", False)
            for arm in arms
            if (interval := read_interval(arm["accuracy"]))
        ]
        yield "accuracy", _draw_forest(rows, ACCURACY)
    if calibrated := [arm for arm in arms if arm["reliability"]]:
        yield "reliability", _draw_reliability(calibrated, result["equal"])
    if trusted := [arm for arm in arms if len(arm["trust"]) > 1 and arm["protocol"] != sampling.NAME]:
        yield "trust", _draw_trust(trusted)
    blind = {arm["arm"]: found for arm in result["arms"] if (found := arm.get("blind"))}
    if rows := [row for name, found in blind.items() if (row := _prefer(name, found))]:
        yield "preference", _draw_forest(rows, PREFERENCE)


def _load_matplotlib() -> Any:
    try:
        import matplotlib
    except ImportError:
        raise UsageError('plots need matplotlib, which is not installed: pip install "model-council[eval]"') from None
    return matplotlib


def _make_figure(width: float, height: float, **subplots: Any) -> tuple[Any, Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(**subplots)


def _set_title(figure: Any, title: str) -> None:
    figure.suptitle(title, fontsize=12, x=0.01, ha="left")


def _save(figure: Any, stem: Path) -> list[Path]:
    files = [stem.with_suffix(f".{form}") for form in FORMATS]
    for file in files:
        dates = {"Date": None} if file.suffix == ".svg" else {}
        figure.savefig(file, dpi=150, metadata=dates)
    return files


# Forest plots: a row for each arm, with its interval and its figures as text


@dataclass(frozen=True, slots=True)
class Row:
    """An interval with its name on the left and its text on the right."""

    name: str
    interval: Interval
    text: str
    is_decided: bool


@dataclass(frozen=True, slots=True)
class Forest:
    """The words and the scale of a forest plot. `zero` is the place of no difference."""

    title: str
    label: str  # with a place for the number of questions
    zero: float | None
    sides: tuple[str, str] = ("", "")  # what is on both sides of it


DIFFERENCES = Forest(
    "Is the first of the two right more often?",
    "difference in points, on the same {}, with 95 % interval",
    0.0,
    ("right less often", "right more often"),
)
ACCURACY = Forest("How often is the arm right?", "right answers in percent of {}, with 95 % interval", None)
PREFERENCE = Forest(
    "Do the judges prefer the arm to the one it is compared with?",
    "preferred, in percent of the comparisons on {}, ties half, with 95 % interval",
    0.5,
    ("preferred less", "preferred more"),
)


def _compare(arm: EvalArm, arms: Sequence[EvalArm], result: EvalObject) -> Iterable[Row]:
    """Yield the rows of the paired differences of an arm: to one answer of one model first, then at equal use."""
    equal = result["equal"]
    shares = {one["arm"]: _percent(one["accuracy"]["mean"]) for one in arms}
    compared = {one["arm"]: one for one in (arm.get("against_single"), arm["against"]) if one}
    for rival, found in compared.items():
        if interval := read_interval(found["difference"]):
            both = " against ".join(shares[name] for name in (arm["arm"], rival) if name in shares)
            points = f"{100 * interval.mean:+.1f} points, p {format_p(found['p_value'])}"
            name = f"{format_arm(arm['arm'], equal)}\nagainst {format_arm(rival, equal)}"
            yield Row(name, interval, f"{_word_decided(found['decided'])}\n{both}\n{points}", found["decided"])


def _word_decided(is_decided: bool) -> str:
    return "decided" if is_decided else "NOT DECIDED"


def _prefer(name: str, found: BlindArm) -> Row | None:
    interval = read_interval(found["preference"])
    if interval is None:
        return None
    counts = f"{found['won']} won, {found['ties']} tied, {found['lost']} lost"
    text = f"{_word_decided(found['decided'])}\n{counts}\n{_percent(interval.mean)}, p {format_p(found['p_value'])}"
    return Row(f"{name}\nagainst {found['against']}", interval, text, found["decided"])


def _draw_forest(rows: Sequence[Row], forest: Forest) -> Any:
    names = [_wrap(row.name, NAME_WIDTH) for row in rows]
    lines = max(text.count("\n") + 1 for text in (*names, *(row.text for row in rows)))
    figure, axes = _make_figure(WIDTH, 1.35 + (LINE_HEIGHT * lines + ROW_GAP) * len(rows))
    low, high = _find_limits([row.interval for row in rows], forest.zero)
    for place, row in enumerate(rows):
        _draw_interval(axes, row.interval, place, is_filled=row.is_decided or forest.zero is None)
        axes.text(1.03, place, row.text, transform=axes.get_yaxis_transform(), va="center", fontsize=9)
    if forest.zero is not None:
        axes.axvline(forest.zero, color=INK, linewidth=1)
        ends = zip(forest.sides, ((0.0, "left"), (1.0, "right")), ("← {}", "{} →"), strict=True)
        for side, (at, align), arrow in ends:
            axes.text(
                at, 1.01, arrow.format(side), transform=axes.transAxes, ha=align, va="bottom", fontsize=9, color=GREY
            )
    axes.set_xlim(low, high)
    axes.set_yticks(range(len(rows)), names)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x", color=PALE, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.xaxis.set_major_formatter(_format_points if forest is DIFFERENCES else _format_percent)
    label = forest.label.format(_count_questions(rows))
    axes.set_xlabel(label)
    _set_title(figure, forest.title)
    return figure


def _count_questions(rows: Sequence[Row]) -> str:
    counts = sorted({row.interval.n for row in rows})
    few = f"{counts[0]:,} to " if len(counts) > 1 else ""
    return few + format_count(counts[-1], "question")


def _find_limits(intervals: Sequence[Interval], zero: float | None) -> tuple[float, float]:
    """Return the ends of the axis: all shares, or around no difference as far as the intervals reach."""
    if zero is None:
        return -0.02, 1.02
    farthest = max(abs(end - zero) for one in intervals for end in (one.low, one.high))
    reach = max(MIN_SPAN, SPAN_STEP * math.ceil(farthest / SPAN_STEP))
    return zero - reach, zero + reach


def _draw_interval(axes: Any, interval: Interval, place: float, *, is_filled: bool = True) -> None:
    axes.plot([interval.low, interval.high], [place, place], color=INK, linewidth=1.4, zorder=2, clip_on=False)
    face = INK if is_filled else "white"
    axes.plot([interval.mean], [place], "s", color=INK, markerfacecolor=face, markersize=6, zorder=3, clip_on=False)


# Small multiples: a panel for each arm


def _draw_reliability(arms: Sequence[EvalArm], equal: str) -> Any:
    figure, panels = _make_panels(len(arms), height=2.6)
    for axes, arm in zip(panels, arms, strict=False):
        axes.plot([0, 1], [0, 1], color=GREY, linewidth=1, linestyle="--", zorder=1)
        for row in arm["reliability"]:
            if (interval := read_interval(row["accuracy"])) and (share := row["confidence"]) is not None:
                axes.plot([share, share], [interval.low, interval.high], color=INK, linewidth=1.4, zorder=3)
                axes.plot([share], [interval.mean], "s", color=INK, markersize=5.5, zorder=4)
                axes.annotate(f"{interval.n}", (share, interval.mean), **BESIDE)
        _set_panel_title(axes, format_arm(arm["arm"], equal), len(arms), _describe_calibration(arm))
        axes.set_xlim(-0.04, 1.24)  # room for the number beside the last point
        axes.set_ylim(-0.04, 1.06)
        axes.set_xticks([0, 0.5, 1])
        axes.set_yticks([0, 0.25, 0.5, 0.75, 1])
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(_format_percent)
        axes.grid(axis="y", color=PALE, linewidth=0.6)
    figure.supylabel("percent right", fontsize=10)
    figure.supxlabel(
        "share of the votes for the answer, in percent\n"
        "(dashed: where the share of votes equals the share right;\n"
        "beside a mark: number of answers; lines: 95 % intervals)",
        fontsize=10,
    )
    _set_title(figure, RELIABILITY_TITLE)
    return figure


RELIABILITY_TITLE = (
    "Is an answer right as often as its share of the votes says?\n"
    "This is about trust in the votes, not which is right more often."
)
BESIDE: Mapping[str, Any] = {
    "xytext": (6, 0),
    "textcoords": "offset points",
    "va": "center",
    "fontsize": 8.5,
    "zorder": 2,
    "bbox": {"facecolor": "white", "edgecolor": "none", "pad": 0.6},
}


def _describe_calibration(arm: EvalArm) -> str:
    found = arm.get("calibration")
    if not found or found["ece"] is None:
        return "ECE: too few answers"
    return f"ECE {found['ece']:.2f} ({found['low']:.2f} to {found['high']:.2f})"


def _draw_trust(arms: Sequence[EvalArm]) -> Any:
    figure, panels = _make_panels(len(arms), height=1.45)
    for axes, arm in zip(panels, arms, strict=False):
        for place, level in enumerate(LEVEL_ORDER):
            interval = read_interval(arm["trust"][level]) if level in arm["trust"] else None
            if interval:
                _draw_interval(axes, interval, place)
            count = str(interval.n) if interval else "none"
            axes.text(1.07, place, count, transform=axes.get_yaxis_transform(), va="center", fontsize=9)
        axes.set_yticks(range(len(LEVEL_ORDER)), LEVEL_ORDER)
        axes.set_ylim(len(LEVEL_ORDER) - 0.5, -0.5)
        axes.set_xlim(-0.02, 1.02)
        axes.set_xticks([0, 0.5, 1])
        axes.xaxis.set_major_formatter(_format_percent)
        axes.grid(axis="x", color=PALE, linewidth=0.6)
        _set_panel_title(axes, arm["arm"], len(arms))
    figure.supxlabel("percent right, with 95 % interval (on the right: number of answers)", fontsize=10)
    _set_title(figure, "Are answers with more trust right more often?")
    return figure


def _make_panels(count: int, height: float) -> tuple[Any, list[Any]]:
    """Return a figure with a panel for each arm. `height` is that of a panel, in inches."""
    columns = min(count, MAX_COLUMNS + (count > MANY_PANELS))
    rows = math.ceil(count / columns)
    width = NARROW_WIDTH if count == 1 else WIDTH
    figure, grid = _make_figure(
        width, 1 + height * rows, nrows=rows, ncols=columns, sharex=True, sharey=True, squeeze=False
    )
    panels = [axes for line in grid for axes in line]
    for axes in panels[count:]:
        axes.set_axis_off()
    for axes in panels[:count]:
        axes.set_axisbelow(True)
        axes.tick_params(labelbottom=True)
    return figure, panels


def _set_panel_title(axes: Any, name: str, count: int, more: str = "") -> None:
    lines = [_wrap(name, PANEL_NAME_WIDTH), *filter(None, [more])]
    axes.set_title("\n".join(lines), fontsize=8.5 if count > MANY_PANELS else 10)


# Words


def _wrap(name: str, width: int) -> str:
    """Return a name in lines, broken behind the signs that join its parts."""
    parts = name.replace("=", "= ").replace(":", ": ").split("\n")
    lines = [line for part in parts for line in textwrap.wrap(part, width, break_on_hyphens=False)]
    return "\n".join(line.replace("= ", "=").replace(": ", ":") for line in lines)


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.0f} %"


def _format_points(share: float, place: int | None = None) -> str:
    return f"{100 * share:+.0f}" if round(100 * share) else "0"


def _format_percent(share: float, place: int | None = None) -> str:
    return f"{100 * share:.0f}"
