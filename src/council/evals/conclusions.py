"""What a comparison means for a decision: what to do, how sure that is, what it costs, and what would change it.

Each answer is a few short sentences for a reader who decides and knows no statistics. The figures behind them are in
the table.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from council.engine.layout import format_count
from council.evals.statistics import (
    LEVEL,
    MIN_QUESTIONS,
    POWER,
    Interval,
    NeededQuestions,
    format_p,
    round_count,
)
from council.money import format_usd

LABELS = ("what to do", "how sure", "what it costs", "what would change it")
LINE_WIDTH = 100
STRONG = 0.01  # p-value, from which on a repeat with as many questions decides in three of four cases or fewer
ABOUT_EQUAL = 0.05  # share by which two prices may differ
NO_PRICE = "no price"


@dataclass(frozen=True, slots=True)
class Conclusion:
    """The answers to the four questions of LABELS about one arm."""

    arm: str
    subject: str  # the arm and what it is compared with
    what_to_do: str
    how_sure: str
    cost: str
    what_would_change_it: str

    @property
    def answers(self) -> list[tuple[str, str]]:
        texts = (self.what_to_do, self.how_sure, self.cost, self.what_would_change_it)
        return list(zip(LABELS, texts, strict=True))

    def as_lines(self) -> list[str]:
        """Return each answer as a line that can stand alone."""
        return [f"{self.arm}, {label}: {text}" for label, text in self.answers]

    def format(self) -> str:
        """Return the answers below the subject, in columns."""
        margin = max(map(len, LABELS)) + 4
        parts = [
            textwrap.fill(
                text,
                LINE_WIDTH,
                initial_indent=f"  {label}".ljust(margin),
                subsequent_indent=" " * margin,
                break_long_words=False,
                break_on_hyphens=False,
            )
            for label, text in self.answers
        ]
        return "\n".join([self.subject, *parts])


def format_report(table: Iterable[str], notes: Iterable[str], conclusions: Iterable[Conclusion]) -> str:
    """Return the parts of a table, its notes and its conclusions, which are what a reader sees last."""
    notes = "\n".join(["notes", *(f"- {line}" for line in notes)])
    return "\n\n".join([*table, notes, *(one.format() for one in conclusions)])


# How sure


def format_difference(difference: Interval) -> str:
    """Return the interval of a difference of shares, in points."""
    low, high = (f"{100 * abs(end):.1f}" for end in (difference.low, difference.high))
    sure = f"with {LEVEL:.0%} confidence".replace("%", " %")
    if difference.low > 0:
        return f"The true difference is {low} to {high} points more, {sure}"
    if difference.high < 0:
        return f"The true difference is {high} to {low} points less, {sure}"
    return f"The true difference is between {low} points less and {high} points more, {sure}"


def describe_certainty(is_decided: bool, p_value: float) -> str:
    """Return how sure the better arm is."""
    if not is_decided:
        return "Not sure: the two cannot be told apart."
    if p_value < STRONG:
        return "Sure."
    return "Fairly sure: a repeat with as many questions may leave it open."


def format_chance(p_value: float) -> str:
    """Return what the p-value says: how often chance alone shows as much."""
    if p_value < 0.001:
        count = "fewer than 1 of 1,000"
    elif p_value < 0.0995:
        count = f"about {1000 * p_value:.0f} of 1,000"
    else:
        count = f"about {100 * p_value:.0f} of 100" if p_value < 0.9995 else "all"
    return (
        f"If there were no difference, chance would show one this large in {count} evaluations (p {format_p(p_value)})"
    )


# What it costs


def format_price(usd: float | None) -> str:
    return NO_PRICE if usd is None else format_usd(usd)


def find_ratio(mine: float | None, other: float | None) -> float | None:
    """Return how many times as much one is; None if that is not known."""
    return None if mine is None or not other else mine / other


def format_ratio(ratio: float | None, words: str = "as much") -> str:
    """Return a ratio as the end of a sentence; empty if it is not known."""
    if ratio is None:
        return ""
    if abs(ratio - 1) <= ABOUT_EQUAL:
        return ", about the same"
    return f", {ratio:.2g} times {words}"


def compare_prices(mine: str, usd: float | None, other: str, other_usd: float | None) -> str:
    """Return what two arms cost, and the ratio if both have a price."""
    if usd is None and other_usd is None:
        return f"{NO_PRICE} is known for {mine} and {other}"
    ratio = format_ratio(find_ratio(usd, other_usd))
    return f"{mine} {_format_spent(usd)} and {other} {_format_spent(other_usd)}{ratio}"


def _format_spent(usd: float | None) -> str:
    return f"has {NO_PRICE}" if usd is None else f"cost {format_usd(usd)}"


def find_cheapest(prices: Mapping[str, float | None]) -> str | None:
    """Return the name that costs clearly less than all others; None if there is none or a price is unknown."""
    known = sorted((usd, name) for name, usd in prices.items() if usd is not None)
    if len(known) < max(2, len(prices)) or math.isclose(known[0][0], known[1][0], rel_tol=ABOUT_EQUAL):
        return None
    return known[0][1]


# What would change it


def format_needed(needed: NeededQuestions, observed: str) -> str:
    """Return how many questions would decide, and how much that can be off. `observed` is the difference seen here."""
    power = f"with {POWER:.0%} power, which means in four of five such evaluations".replace("%", " %")
    least = "" if needed.least is None else f"{round_count(needed.least):,}"
    if needed.observed is None:
        return f"More questions. No difference was seen; one that fits these answers takes at least {least} {power}."
    about = f"More questions. If the true difference is the one seen here ({observed}), about {round_count(needed.observed):,} questions decide it {power}."
    return f"{about} If it is smaller, it takes more. It takes at least {least}."


def describe_few(count: int) -> str:
    """Return why nothing is decided with so many questions."""
    return f"Decide nothing yet. {format_count(count, 'question')}: too few. Ask at least {MIN_QUESTIONS}."
