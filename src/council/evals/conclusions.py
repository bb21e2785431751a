"""What a comparison means for a decision: what to do, how sure that is, what it costs, and what would change it.

Each answer is a few short sentences for a reader who decides and knows no statistics. The figures behind them are in
the table.
"""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
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

LABELS = ("what to do", "how sure", "what it costs", "what would change it")  # the questions of every conclusion
EQUAL, MEMBERS, TRUST = "at equal use", "each member alone", "when to trust it"  # of a council, where they are known
LINE_WIDTH = 100
NO_BREAK = "\N{NO-BREAK SPACE}"
INSEPARABLE = re.compile(r" (?=%)|(?<=\bp) (?=[<=>])|(?<=[<=>]) (?=\.)")
STRONG = 0.01  # p-value, from which on a repeat with as many questions decides in three of four cases or fewer
ABOUT_EQUAL = 0.05  # share by which two prices may differ
MANY_TIMES = 2  # ratio, below which a difference is told in percent
SELF_CONSISTENCY = "self-consistency"
NO_PRICE = "no price"


@dataclass(frozen=True, slots=True)
class Conclusion:
    """The answers to the four questions of LABELS about one arm, and what else is known of a council."""

    arm: str
    subject: str  # the arm and what it is compared with
    what_to_do: str
    how_sure: str
    cost: str
    what_would_change_it: str
    equal: str = ""  # what self-consistency did with the same tokens
    members: str = ""
    trust: str = ""

    @property
    def answers(self) -> list[tuple[str, str]]:
        texts = (self.what_to_do, self.how_sure, self.cost, self.what_would_change_it)
        first, sure, *rest = zip(LABELS, texts, strict=True)
        more = ((EQUAL, self.equal), (MEMBERS, self.members), (TRUST, self.trust))
        return [first, sure, *((label, text) for label, text in more if text), *rest]

    def as_lines(self) -> list[str]:
        """Return each answer as a line that can stand alone."""
        return [f"{self.arm}, {label}: {text}" for label, text in self.answers]

    def format(self) -> str:
        """Return the answers below the subject, in columns."""
        return "\n".join([self.subject, *format_columns(self.answers)])


def format_columns(rows: Sequence[tuple[str, str]]) -> list[str]:
    """Return labels and texts as indented columns of lines that are not too long."""
    margin = max((len(label) for label, _ in rows), default=0) + 4
    return [wrap_text(text, f"  {label}".ljust(margin), " " * margin) for label, text in rows]


def wrap_text(text: str, first: str, other: str) -> str:
    """Return a text in lines that begin so; "70 %" and "p < .001" are not broken."""
    joined = INSEPARABLE.sub(NO_BREAK, text)
    lines = textwrap.fill(
        joined,
        LINE_WIDTH,
        initial_indent=first,
        subsequent_indent=other,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return lines.replace(NO_BREAK, " ")


def format_report(
    conclusions: Iterable[Conclusion],
    notes: Iterable[str],
    tables: Iterable[str],
    legend: Sequence[tuple[str, str]] = (),
) -> str:
    """Return what a reader needs first: the conclusions, then the notes, then the tables with their terms."""
    lines = [wrap_text(line, "- ", "  ") for line in notes]
    terms = ["\n".join(["terms", *format_columns(legend)])] if legend else []
    return "\n\n".join([*(one.format() for one in conclusions), "\n".join(["notes", *lines]), *tables, *terms])


def format_arm(name: str, equal: str = "tokens") -> str:
    """Return the name of an arm for a reader: "self-consistency=triad" has the same tokens as triad."""
    first, mark, council = name.partition("=")
    return f"{first} (same {equal} as {council})" if first == SELF_CONSISTENCY and mark else name


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


def describe_certainty(is_decided: bool, p_value: float, count: int) -> str:
    """Return how sure the better arm is, after `count` questions."""
    if not is_decided:
        return "The two cannot be told apart yet."
    these = f"for these {format_count(count, 'question')} and these models"
    return f"Sure {these}." if p_value < STRONG else f"Fairly sure {these}: a repeat with as many may leave it open."


def format_chance(p_value: float) -> str:
    """Return what the p-value says: how often chance alone shows as much."""
    if p_value < 0.001:
        count = "fewer than 1 of 1,000"
    elif p_value < 0.0995:
        count = f"about {1000 * p_value:.0f} of 1,000"
    else:
        count = f"about {100 * p_value:.0f} of 100" if p_value < 0.9995 else "all"
    return f"Chance alone would show one this large in {count} evaluations (p {format_p(p_value)})"


# What it costs


def format_price(usd: float | None) -> str:
    return NO_PRICE if usd is None else format_usd(usd)


def find_ratio(mine: float | None, other: float | None) -> float | None:
    """Return how many times as much one is; None if that is not known."""
    return None if mine is None or not other else mine / other


def word_ratio(ratio: float) -> str:
    """Return how one price compares with another one that follows, as in "costs 13 times as much as"."""
    if abs(ratio - 1) <= ABOUT_EQUAL:
        return "about the same as"
    if ratio >= MANY_TIMES:
        return f"{ratio:.2g} times as much as"
    return f"{100 * abs(1 - ratio):.0f} % {'less' if ratio < 1 else 'more'} than"


def compare_prices(mine: str, usd: float | None, other: str, other_usd: float | None) -> str:
    """Return what two arms cost, and the ratio if both have a price."""
    if usd is None and other_usd is None:
        return f"{NO_PRICE} is known for {mine} and {other}"
    ratio = find_ratio(usd, other_usd)
    compared = "" if ratio is None else f": {word_ratio(ratio)} {other}"
    return f"{mine} {_format_spent(usd)} and {other} {_format_spent(other_usd)}{compared}"


def _format_spent(usd: float | None) -> str:
    return f"has {NO_PRICE}" if usd is None else f"cost {format_usd(usd)}"


def find_cheapest(prices: Mapping[str, float | None]) -> str | None:
    """Return the name that costs clearly less than all others; None if there is none or a price is unknown."""
    known = sorted((usd, name) for name, usd in prices.items() if usd is not None)
    if len(known) < max(2, len(prices)) or math.isclose(known[0][0], known[1][0], rel_tol=ABOUT_EQUAL):
        return None
    return known[0][1]


# What would change it


def format_needed(needed: NeededQuestions, count: int, observed: str, usd: float | None = None) -> str:
    """Return how many more questions would decide. `observed` is the difference after `count` questions, `usd` what
    one more of them costs.
    """
    power = f"a 4 in 5 chance of a clear answer ({POWER:.0%} power)".replace("%", " %")
    if needed.observed is None:
        return "More questions. No difference was seen, so it cannot be said how many."
    more = round_count(max(1, needed.observed - count))
    price = "" if usd is None else f", which cost about {format_usd(usd * more)}"
    return (
        f"About {more:,} more questions{price}: if the true difference is the one seen here ({observed}), they give "
        f"{power}. A smaller difference needs more."
    )


def describe_few(count: int) -> str:
    """Return why nothing is decided with so many questions."""
    return f"Decide nothing yet. {format_count(count, 'question')}: too few. Ask at least {MIN_QUESTIONS}."
