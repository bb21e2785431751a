"""Write the tables of coverage, false positives and power into docs/evidence.md.

It takes about five minutes. The seed is fixed, so the tables change only with the code.
"""

from __future__ import annotations

import re
from pathlib import Path

from error_rates import Rates, cover_calibration, cover_share, find_needed, simulate_judges, simulate_pairs

PAGE = Path(__file__).parents[2] / "docs" / "evidence.md"
START, END = "<!-- error rates -->", "<!-- /error rates -->"
SEED, REPEATS, FEW_REPEATS = 33, 2000, 500
SHARES = (0.5, 0.7, 0.8, 0.9, 0.95, 0.98)
UNEQUAL = (0.1, 0.3, 0.6)  # shares of the questions on which equal arms differ
EFFECTS = ((0.3, 0.1), (0.2, 0.1), (0.12, 0.05), (0.1, 0.0), (0.5, 0.3), (0.6, 0.4))
JUDGES, TIE = 3, 0.2
ERRORS = (0.0, 0.05, 0.1)


def format_shares() -> list[str]:
    rows = [[f"{n:,}", *(percent(cover_share(n, share)) for share in SHARES)] for n in (10, 30, 100, 200, 300, 1000)]
    return format_table(["questions", *(f"{share:g} right" for share in SHARES)], rows)


def format_pairs() -> list[str]:
    return format_table(
        ["questions", *(f"{share:g} unequal" for share in UNEQUAL)], [pair_row(n) for n in (30, 100, 300)]
    )


def pair_row(n: int) -> list[str]:
    rates = [simulate_pairs(n, share / 2, share / 2, REPEATS, SEED) for share in UNEQUAL]
    return [str(n), *(f"{percent(one.covered)} / {percent(one.decided)}" for one in rates)]


def format_power() -> list[str]:
    return format_table(["better on", "worse on", "questions", "decided"], [power_row(*effect) for effect in EFFECTS])


def power_row(up: float, down: float) -> list[str]:
    needed = find_needed(up, down)
    return [percent(up), percent(down), str(needed), percent(simulate_pairs(needed, up, down, REPEATS, SEED).decided)]


def format_judges() -> list[str]:
    rows = [
        [str(n), percent(lean), *both(simulate_judges(n, JUDGES, lean, TIE, FEW_REPEATS, SEED))]
        for n in (30, 100)
        for lean in (0.5, 0.6, 0.7)
    ]
    return format_table(["questions", "a judge prefers it in", "covered", "decided"], rows)


def format_calibration() -> list[str]:
    rows = [
        [str(n), *(" / ".join(both(cover_calibration(n, error, FEW_REPEATS, SEED))) for error in ERRORS)]
        for n in (100, 200, 500)
    ]
    return format_table(["answers", *(f"error {error:g}" for error in ERRORS)], rows)


def both(rates: Rates) -> tuple[str, str]:
    return percent(rates.covered), percent(rates.decided)


def percent(share: float) -> str:
    return f"{100 * share:.1f}"


def format_table(head: list[str], rows: list[list[str]]) -> list[str]:
    return [f"| {' | '.join(head)} |", "|---" * len(head) + "|", *(f"| {' | '.join(row)} |" for row in rows)]


def main() -> None:
    parts = [
        ("Share of right answers: how often the 95 % interval holds the true share (exact).", format_shares()),
        (
            f"Two equal arms: how often the interval of the difference holds 0 / how often a difference is decided, which "
            f"is false ({REPEATS:,} evaluations for each cell).",
            format_pairs(),
        ),
        (
            f"Power: with the number of questions that the result names for this difference, how often it is decided "
            f"({REPEATS:,} evaluations for each row; the last row is a blind comparison by one judge without ties).",
            format_power(),
        ),
        (
            f"Blind comparisons by {JUDGES} judges, {TIE:.0%} ties, preferences that differ by question: coverage of the "
            f"preference, and how often it is decided ({FEW_REPEATS:,} for each row).".replace("%", " %"),
            format_judges(),
        ),
        (
            f"Calibration error: how often its interval holds the true error / how often it leaves out 0 ({FEW_REPEATS:,} "
            "for each cell; shares between .4 and 1 that are too high by the error).",
            format_calibration(),
        ),
    ]
    lines = [line for about, table in parts for line in (about, "", *table, "")]
    block = "\n".join([START, "", *lines, END])
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(re.sub(f"{START}.*?{END}", lambda _: block, text, flags=re.DOTALL), encoding="utf-8")


if __name__ == "__main__":
    main()
