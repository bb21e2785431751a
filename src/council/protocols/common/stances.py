"""Stances of seats: whether they agree, and whether two of them differ."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from council.types import Statement

REHEARSED_CHOICE = "unanimous"  # two equal choices of this word are the same for every question
ARTICLES = ("a", "an", "the", "The")  # the A of "vendor A" is not an article
# Words that negate or qualify a recommendation: with one more of them it is a different recommendation.
QUALIFIER_WORDS = frozenset(
    (
        "not", "no", "never", "nothing", "none", "nobody", "without", "instead", "against", "except", "but", "only",
        "unless", "until", "if", "when", "later", "dont", "doesnt", "cannot", "cant", "wont", "after", "before", "once",
        "then", "or", "and", "half", "part", "partly", "partially", "some", "most", "pilot", "trial",
    )
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Stance:
    """A seat's stance after a round."""

    seat: str
    stance: str
    choice: str = ""
    confidence: str = ""
    evidence: str = ""


def is_unanimous(stances: Sequence[Stance], question: str = "") -> bool:
    """Return whether two or more seats have the same stance and choice, all with HIGH confidence.

    Choices are the same only if code can tell that they are: more words may mean another action.
    """
    if len(stances) < 2 or any(one.confidence != "HIGH" or one.stance == "undecided" for one in stances):
        return False
    if len({one.stance for one in stances}) > 1:
        return False
    choices = [one.choice.strip() for one in stances]
    if not any(choices):
        return True
    from council.final_answers.comparison import compare_all  # not loaded for verdicts without a choice

    return compare_all(choices, question) == "same"


def has_two_members(statements: Iterable[Statement[Any]]) -> bool:
    """Return whether two members or more answered: seats of one member are one voice."""
    return len({said.outcome.served_by or said.seat.member for said in statements}) > 1


def describe_vendor(statements: Iterable[Statement[Any]]) -> str:
    """Return a remark for statements that are all of one vendor, whose agreement means less; else an empty string."""
    vendors = {said.vendor for said in statements}
    return ", all of one vendor" if len(vendors) == 1 else ""


def stances_differ(one: Stance, other: Stance) -> bool:
    """Return whether two stances or choices differ."""
    return one.stance != other.stance or not _same_choice(one.choice, other.choice)


def _same_choice(a: str, b: str) -> bool:
    """Return whether one choice contains the other's words and adds no qualifier or number.

    Similarity is not enough: a single word can be another vendor.
    """
    one, other = _choice_words(a), _choice_words(b)
    if not one or not other:
        return one == other
    more = one ^ other
    return (one <= other or other <= one) and not more & QUALIFIER_WORDS and not any(map(str.isdigit, more))


def _choice_words(choice: str) -> frozenset[str]:
    said = re.findall(r"\w+", re.sub(r"['’]", "", choice))
    return frozenset(word.lower() for word in said if word not in ARTICLES)
