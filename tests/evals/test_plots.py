"""Plots of an evaluation: which are drawn, and that no text hides another one."""

from __future__ import annotations

import random
from itertools import combinations
from pathlib import Path
from typing import Any

import matplotlib
import pytest
from matplotlib.text import Text

from council.evals.dataset import Item
from council.evals.evaluation import ArmResults, EvalTable, Evaluation, Result, parse_arms
from council.evals.plots import FORMATS, STYLE, draw_plots, write_plots
from council.runs.eval_object import EvalObject

SHARE = {"mean": 0.8, "low": 0.5, "high": 0.9, "n": 5}
UNKNOWN = {"mean": None, "low": None, "high": None, "n": 0}
ARM: dict[str, Any] = {
    "arm": "triad",
    "protocol": "triad",
    "accuracy": SHARE,
    "against": None,
    "reliability": [],
    "trust": {},
}
BLIND = {"preference": SHARE, "against": "single", "won": 3, "ties": 1, "lost": 1, "p_value": 0.5, "decided": False}
AGAINST = {"arm": "self-consistency=triad", "difference": SHARE, "p_value": 0.5, "decided": False}
TWO_LEVELS = {"HIGH": SHARE, "LOW": SHARE}


@pytest.mark.behaviour("evidence-plots")
@pytest.mark.parametrize(
    ("arm", "drawn"),
    [
        (ARM, {"accuracy"}),
        (ARM | {"accuracy": UNKNOWN}, set()),
        (ARM | {"against": AGAINST}, {"differences"}),
        (ARM | {"reliability": [{"confidence": 0.7, "accuracy": SHARE}]}, {"accuracy", "reliability"}),
        (ARM | {"trust": {"HIGH": SHARE}}, {"accuracy"}),
        (ARM | {"trust": TWO_LEVELS}, {"accuracy", "trust"}),
        (ARM | {"trust": TWO_LEVELS, "protocol": "vote"}, {"accuracy"}),
        (ARM | {"accuracy": UNKNOWN, "blind": BLIND}, {"preference"}),
        (ARM | {"accuracy": UNKNOWN, "blind": BLIND | {"preference": UNKNOWN}}, set()),
    ],
)
def test_a_plot_is_drawn_where_there_is_something_to_compare(arm: dict[str, Any], drawn: set[str]) -> None:
    result: Any = {"equal": "tokens", "arms": [ARM | {"accuracy": UNKNOWN, "arm": "single"}, arm]}
    assert {name for name, _ in draw_plots(result)} == drawn


def test_each_plot_is_written_in_every_format(tmp_path: Path) -> None:
    result: Any = {"equal": "tokens", "arms": [ARM | {"against": AGAINST, "trust": TWO_LEVELS}]}
    files = write_plots(result, tmp_path)
    assert set(files) == {tmp_path / f"{name}.{form}" for name in ("differences", "trust") for form in FORMATS}
    assert all(file.stat().st_size for file in files)


def make_result(names: str, count: int, chance: float = 0.7) -> EvalObject:
    """A result in which every trust level and every share of votes occurs."""
    rng, items = random.Random(4), tuple(Item(str(n), "q", "1") for n in range(count))
    arms = parse_arms(names)

    def answer(n: int) -> Result:
        level = ("HIGH", "MEDIUM", "LOW", "CONTESTED")[n % 4]
        right = rng.random() < chance
        return Result(f"r{n}", "1", right, level, (1 / 3, 2 / 3, 1.0)[n % 3], {}, 900, 7, 0.01, 2.0)

    found = [ArmResults(arm, {item.id: answer(n) for n, item in enumerate(items)}) for arm in arms]
    return EvalTable(Evaluation(items, tuple(arms)), found).as_json()


@pytest.mark.behaviour("evidence-plots")
def test_a_row_says_what_is_not_decided_and_names_no_arm_by_a_sign() -> None:
    single = AGAINST | {"arm": "single", "decided": True}
    result: Any = {"equal": "tokens", "arms": [ARM | {"against": AGAINST, "against_single": single}]}
    ((_, figure),) = draw_plots(result)
    (axes,) = figure.axes
    names = [label.get_text() for label in axes.get_yticklabels()]
    assert names == ["triad\nagainst single", "triad\nagainst self-consistency\n(same tokens as triad)"]
    beside = [text.get_text().split("\n")[0] for text in axes.texts]
    assert beside[:2] == ["decided", "NOT DECIDED"]


def test_small_differences_have_one_axis() -> None:
    small, large = (SHARE | {"mean": 0.1, "low": low, "high": 0.2} for low in (0.05, -0.45))
    limits = []
    for difference in (small, large):
        result: Any = {"equal": "tokens", "arms": [ARM | {"against": AGAINST | {"difference": difference}}]}
        ((_, figure),) = draw_plots(result)
        limits.append(figure.axes[0].get_xlim())
    assert limits == [(-0.3, pytest.approx(0.3)), (-0.5, pytest.approx(0.5))]


MANY_ARMS = "single,collaborative,adversarial,triad,advisors:rounds=3,ranking,refine,general:no-search,solo"


@pytest.mark.behaviour("evidence-plots")
@pytest.mark.parametrize(
    ("names", "count", "chance"),
    [
        ("single,collaborative", 40, 1.0),
        pytest.param("triad", 200, 0.7, marks=pytest.mark.sweep),
        pytest.param("single,collaborative", 9, 0.7, marks=pytest.mark.sweep),
        pytest.param("single,collaborative,triad,refine,advisors:rounds=3", 300, 0.0, marks=pytest.mark.sweep),
        pytest.param(MANY_ARMS, 1200, 0.6, marks=pytest.mark.sweep),
    ],
)
def test_every_text_of_a_plot_is_inside_it_and_hides_no_other(names: str, count: int, chance: float) -> None:
    with matplotlib.rc_context(STYLE):
        figures = dict(draw_plots(make_result(names, count, chance)))
        assert list(figures) == ["differences", "reliability", "trust"]
        for name, figure in figures.items():
            figure.draw_without_rendering()
            shown = [one for one in figure.findobj(Text) if one.get_visible() and one.get_text().strip()]
            boxes = {one: one.get_window_extent() for one in shown}
            whole = figure.bbox.padded(2)
            outside = [
                one.get_text()
                for one, box in boxes.items()
                if not whole.contains(box.x0, box.y0) or not whole.contains(box.x1, box.y1)
            ]
            hidden = [
                (a.get_text(), b.get_text())
                for a, b in combinations(shown, 2)
                if boxes[a].padded(-1).overlaps(boxes[b].padded(-1))
            ]
            assert (name, outside, hidden) == (name, [], [])
            assert min(one.get_fontsize() for one in shown) >= 8.5
