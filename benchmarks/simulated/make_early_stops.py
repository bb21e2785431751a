"""Write the tables of `adaptive` into docs/evidence.md: simulated members, and with --replay recorded answers.

    python benchmarks/simulated/make_early_stops.py                       # the simulation, about a minute
    python benchmarks/simulated/make_early_stops.py --replay answers.csv  # recorded answers, about two minutes
    python benchmarks/simulated/make_early_stops.py --json                # print the figures, and write nothing

The seed is fixed, so the tables change only with the code. scripts/make_answer_matrix.py writes answers.csv.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from council.evals.matrix import Matrix, read_matrix
from council.evals.statistics import Interval, error_correlation
from council.types import Json
from early_stops import (  # fmt: skip
    BASE,
    SAMPLES_OF_EQUAL_TOKENS,
    SEATS,
    ArmTokens,
    StopTable,
    estimate_arm_tokens,
    list_councils,
    replay_stops,
    simulate_stops,
)
from simulation import STOPS, Members

PAGE = Path(__file__).parents[2] / "docs" / "evidence.md"
COMPETENCES = (0.55, 0.65, 0.75, 0.85, 0.9)
CORRELATIONS = (0.0, 0.2, 0.4, 0.6)
QUESTIONS, SEED = 10_000, 29
VARIED_QUESTIONS = 4_000
SAMPLED = ("self-consistency:samples=3", *SAMPLES_OF_EQUAL_TOKENS)
WORDS = (None, 900, 600, 300, 150, 60)  # maximum length of every answer; None: as its prompt asks
SHORT_ANSWER = 300
MIN_ACCURACY = 0.5  # of a recorded model in the table
# What each row of the second table changes in the base.
VARIATIONS: Mapping[str, Json] = {
    "the base": {},
    "confidence says nothing: firm .8 and .8": {"firm_if_wrong": 0.8},
    "confidence says more: firm .9 and .4": {"firm_if_right": 0.9, "firm_if_wrong": 0.4},
    "members seldom firm: .5 and .3": {"firm_if_right": 0.5, "firm_if_wrong": 0.3},
    "members never firm": {"firm_if_right": 0.0, "firm_if_wrong": 0.0},
    "members always firm": {"firm_if_right": 1.0, "firm_if_wrong": 1.0},
    "the check never objects": {"catch": 0.0, "false_alarm": 0.0},
    "the check objects at random: .1 and .1": {"catch": 0.1},
    "many false alarms: .2 and .3": {"false_alarm": 0.3},
    "a good reader: .5 and .05": {"catch": 0.5, "false_alarm": 0.05},
    "instability 0": {"instability": 0.0},
    "instability .6": {"instability": 0.6},
    "conformity 0": {"conformity": 0.0},
    "conformity .6": {"conformity": 0.6},
    "truth-pull .3": {"truth_pull": 0.3},
}
Grid = dict[tuple[float, float], StopTable]


def simulate_grid(base: Members, questions: int, tokens: ArmTokens, *, with_samples: bool) -> Grid:
    return {
        (competence, correlation): simulate_stops(
            replace(base, competence=(competence,) * SEATS, correlation=correlation),
            questions,
            tokens,
            SEED,
            with_samples=with_samples,
        )
        for competence in COMPETENCES
        for correlation in CORRELATIONS
    }


# Tables


def format_grid(grid: Grid) -> list[str]:
    rows = [
        "| competence | correlation | adaptive | triad | collaborative | self-consistency | stops after 3 / 5 calls | wrong stops | tokens | to triad | holds |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for (competence, correlation), table in grid.items():
        cells = (
            f"{competence:g}",
            f"{correlation:g}",
            format_interval(table.accuracy("adaptive")),
            format_interval(table.accuracy("triad")),
            format_interval(table.accuracy("collaborative")),
            " / ".join(f"{100 * table.accuracy(arm).mean:.1f}" for arm in SAMPLED),
            f"{percent(table.share('stopped'))} / {percent(table.share('shared'))}",
            f"{100 * table.wrong_stops.mean:.1f}",
            percent(table.token_share),
            format_difference(table),
            format_condition(table),
        )
        rows.append(f"| {' | '.join(cells)} |")
    behind = [table.against("collaborative") for table in grid.values()]
    lower = [-100 * one.difference.mean for one in behind if one.difference.high < 0]
    widest = max(table.accuracy(arm).high - table.accuracy(arm).low for table in grid.values() for arm in SAMPLED)
    cheaper = sum(table.saves_on_triad for table in grid.values())
    tokens = next(iter(grid.values())).tokens
    return [
        *rows,
        "",
        f"Triad uses {percent(tokens.triad / tokens.collaborative)} % of collaborative's tokens; adaptive uses fewer than that "
        f"in {cheaper} of {len(grid)} cells. "
        f"Collaborative is right more often, beyond the interval of the difference, in {len(lower)} of {len(grid)} cells"
        + (f", by {format_range(lower, '.1f')} points. " if lower else ". ")
        + f"The intervals of self-consistency reach at most {50 * widest:.1f} points to each side.",
    ]


def format_variations(grids: Mapping[str, Grid]) -> list[str]:
    rows = [
        "| what differs | holds | fails at competence/correlation | tokens | stops | wrong stops | to triad |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, grid in grids.items():
        tables = list(grid.values())
        points = [100 * table.against("triad").difference.mean for table in tables]
        cells = (
            name,
            f"{sum(table.holds for table in tables)} of {len(tables)}",
            format_failures(grid),
            format_range([100 * table.token_share for table in tables]),
            format_range([100 * table.share(*STOPS) for table in tables]),
            format_range([100 * table.wrong_stops.mean for table in tables if table.share(*STOPS)], ".1f"),
            f"{min(points):+.1f} to {max(points):+.1f}",
        )
        rows.append(f"| {' | '.join(cells)} |")
    return rows


def format_lengths(grid: Grid, tokens: Mapping[int | None, ArmTokens]) -> list[str]:
    rows = [
        "| no answer is longer than | stop after 3 calls | dispute | triad | cells with at most 50 % | cells below triad | tokens of the cells |",
        "|---|---|---|---|---|---|---|",
    ]
    for words, one in tokens.items():
        tables = [replace(table, tokens=one) for table in grid.values()]
        whole = one.collaborative
        cells = (
            f"{words} words" if words else "its prompt asks",
            percent(one.paths["stopped"] / whole),
            percent(one.paths["disputed"] / whole),
            percent(one.triad / whole),
            f"{sum(table.saves_enough for table in tables)} of {len(tables)}",
            f"{sum(table.saves_on_triad for table in tables)} of {len(tables)}",
            format_range([100 * table.token_share for table in tables]),
        )
        rows.append(f"| {' | '.join(cells)} |")
    return rows


def format_replay(matrix: Matrix, tokens: ArmTokens, short: ArmTokens) -> list[str]:
    """Return a row for each council of the models in the table, and sentences about all vendors and short answers."""
    shown: list[tuple[StopTable, StopTable]] = []
    rows = [
        "| first two | third | adaptive | triad | best model | stops | wrong stops | tokens | holds |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for council in list_councils(matrix, MIN_ACCURACY):
        every, modelled = replay_both(matrix, council, tokens)
        both = (every, modelled)
        shown.append(both)
        best = max(every.accuracy(model).mean for model in council)
        names = [model.partition("/")[2] for model in council]
        cells = (
            f"{names[0]}, {names[1]}",
            names[2],
            " / ".join(f"{100 * one.accuracy('adaptive').mean:.1f}" for one in both),
            format_interval(every.accuracy("triad")),
            f"{100 * best:.1f}",
            " / ".join(percent(one.share(*STOPS)) for one in both),
            " / ".join(f"{100 * one.wrong_stops.mean:.1f}" for one in both),
            " / ".join(percent(one.token_share) for one in both),
            " / ".join(map(format_condition, both)),
        )
        rows.append(f"| {' | '.join(cells)} |")
    everyone = [replay_both(matrix, council, tokens) for council in list_councils(matrix)]
    counts = [sum(pair[n].holds for pair in everyone) for n in (0, 1)]
    accurate = [sum(pair[n].is_accurate for pair in everyone) for n in (0, 1)]
    shares = [format_range([100 * pair[n].token_share for pair in everyone]) for n in (0, 1)]
    shortened = [[replace(pair[n], tokens=short).token_share for pair in shown] for n in (0, 1)]
    ranges = " / ".join(format_range([100 * share for share in found]) for found in shortened)
    models = sorted({model for council in list_councils(matrix, MIN_ACCURACY) for model in council})
    errors = {model: [not one for one in matrix.right(model)] for model in models}
    return [
        *rows,
        "",
        f"The errors of these {len(models)} models correlate with {error_correlation(errors):.2f}. With the best model of "
        f"each of the {len(list_vendors(matrix))} vendors, however weak, there are {len(everyone)} such councils: the "
        f"condition holds for {counts[0]} / {counts[1]}, the accuracy alone for {accurate[0]} / {accurate[1]}, and the "
        f"tokens are {shares[0]} / {shares[1]} %. If no answer is longer than {SHORT_ANSWER} words, the tokens of the "
        f"councils in the table are {ranges} %.",
    ]


def replay_both(matrix: Matrix, council: tuple[str, str, str], tokens: ArmTokens) -> tuple[StopTable, StopTable]:
    """Return the replay in which every equal pair stops, and the one with the confidence and the check of the base."""
    return replay_stops(matrix, council, tokens), replay_stops(matrix, council, tokens, BASE, SEED)


def list_vendors(matrix: Matrix) -> set[str]:
    return {matrix.families.get(model, model) for model in matrix.models}


# Cells


def percent(share: float) -> str:
    return f"{100 * share:.0f}"


def format_interval(interval: Interval) -> str:
    return f"{100 * interval.mean:.1f} ({100 * interval.low:.1f}-{100 * interval.high:.1f})"


def format_difference(table: StopTable) -> str:
    found = table.against("triad").difference
    return f"{100 * found.mean:+.1f} ({100 * found.low:+.1f} to {100 * found.high:+.1f})"


def format_condition(table: StopTable) -> str:
    missed = [*([] if table.saves_enough else ["tokens"]), *([] if table.is_accurate else ["accuracy"])]
    return f"no: {' and '.join(missed)}" if missed else "yes"


def format_failures(grid: Grid) -> str:
    """Return the cells in which the condition does not hold, by what fails."""
    failed = {
        "tokens": [key for key, table in grid.items() if not table.saves_enough],
        "accuracy": [key for key, table in grid.items() if not table.is_accurate],
    }
    return "; ".join(
        f"{what}: {', '.join(f'{competence:g}/{correlation:g}' for competence, correlation in cells)}"
        for what, cells in failed.items()
        if cells
    )


def format_range(values: Sequence[float], form: str = ".0f") -> str:
    ends = dict.fromkeys(f"{end(values):{form}}" for end in (min, max)) if values else ["–"]
    return "-".join(ends)


# Page


def write_part(name: str, lines: Sequence[str]) -> None:
    """Write lines between the marks of a part of the page."""
    start, end = f"<!-- {name} -->", f"<!-- /{name} -->"
    page = PAGE.read_text(encoding="utf-8")
    body = "\n".join((start, "", *lines, "", end))
    page = re.sub(f"{re.escape(start)}.*?{re.escape(end)}", lambda _: body, page, flags=re.DOTALL)
    PAGE.write_text(page, encoding="utf-8")


async def estimate_lengths() -> dict[int | None, ArmTokens]:
    return {words: await estimate_arm_tokens(words) for words in WORDS}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--replay", type=Path, help="CSV file of recorded answers, instead of simulated members")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON, and write nothing")
    chosen = parser.parse_args()
    tokens = asyncio.run(estimate_lengths())
    if chosen.replay:
        matrix = read_matrix([chosen.replay])
        if chosen.json:
            found = {", ".join(one): replay_stops(matrix, one, tokens[None]).as_json() for one in list_councils(matrix)}
            print(json.dumps(found, indent=1))
        else:
            write_part("replayed stops", format_replay(matrix, tokens[None], tokens[SHORT_ANSWER]))
        return
    grid = simulate_grid(BASE, QUESTIONS, tokens[None], with_samples=True)
    if chosen.json:
        rows = [{"competence": key[0], "correlation": key[1]} | table.as_json() for key, table in grid.items()]
        print(json.dumps({"tokens": tokens[None].as_json(), "cells": rows}, indent=1))
        return
    varied = {
        name: simulate_grid(replace(BASE, **changed), VARIED_QUESTIONS, tokens[None], with_samples=False)
        for name, changed in VARIATIONS.items()
    }
    write_part("early stops", format_grid(grid))
    write_part("varied stops", format_variations(varied))
    write_part("lengths of answers", format_lengths(grid, tokens))


if __name__ == "__main__":
    main()
