"""Rules for rounds of advice: stages, word limits, unanimity and changes of stance."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise

from council.types import Json

WORD_LIMITS = {"opening": (200, 400), "rebuttal": (200, 300), "final": (150, 250)}
ARTICLES = ("a", "an", "the", "The")  # the A of "vendor A" is not an article
# Words that negate or qualify a recommendation: with one more of them it is a different recommendation.
QUALIFIER_WORDS = frozenset(
    (
        "not", "no", "never", "nothing", "none", "nobody", "without", "instead", "against", "except", "but", "only",
        "unless", "until", "if", "when", "later", "dont", "doesnt", "cannot", "cant", "wont", "after", "before", "once",
        "then", "or", "and", "half", "part", "partly", "partially", "some", "most", "pilot", "trial",
    )
)  # fmt: skip
NO_EVIDENCE = re.compile(
    r"(?:none|nothing|no|nil|n/?a|not applicable|unchanged|no (?:change|evidence|new \w+)|empty)?", re.IGNORECASE
)
MAJORITY_APPEAL = re.compile(
    r"(?:because )?(?:(?:all|both|most|two) (?:of )?)?(?:the |my )?"
    r"(?:(?:other )?advisors|others?|majority|rest|everyone(?: else)?|everybody|all|both|group|council|consensus)"
    r"(?: (?:also|now|all|both|clearly))* (?:agrees?|holds?|sees?|thinks?|says?|said|prefers?|believes?|recommends?|wants?|favou?rs?|is|are)"
    r"(?: (?:it|so|this|that|same|the|otherwise|with|me|each|other|on|against|for|too|in|unanimous))*",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Stance:
    """A seat's stance after a round."""

    seat: str
    stance: str
    choice: str = ""
    confidence: str = ""
    evidence: str = ""


def stage(n: int, rounds: int) -> str:
    """Return the stage of a round; a single round is an opening."""
    return "opening" if n == 1 else "final" if n == rounds else "rebuttal"


def word_limits(n: int, rounds: int) -> tuple[int, int]:
    """Return the minimum and maximum words of a round."""
    return WORD_LIMITS[stage(n, rounds)]


def is_long(text: str, max_words: int) -> bool:
    """Return whether the text has over twice its word limit."""
    return len(text.split()) > 2 * max_words


def is_unanimous(stances: Sequence[Stance]) -> bool:
    """Return whether two or more seats have the same stance and choice, all with HIGH confidence."""
    if len(stances) < 2 or any(one.confidence != "HIGH" or one.stance == "undecided" for one in stances):
        return False
    return not any(_stances_differ(one, other) for one, other in combinations(stances, 2))


def _stances_differ(one: Stance, other: Stance) -> bool:
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


def stance_changes(rounds: Sequence[Mapping[str, Stance]]) -> list[Json]:
    """Return every change of stance between a seat's rounds, with its evidence or as a weak flip."""
    found = []
    for seat in dict.fromkeys(name for held in rounds for name in held):
        said = [(n, held[seat]) for n, held in enumerate(rounds, 1) if seat in held]
        found += [
            _change_json(n, before, after)
            for (_, before), (n, after) in pairwise(said)
            if _stances_differ(before, after)
        ]
    return found


def _change_json(n: int, before: Stance, after: Stance) -> Json:
    return {
        "seat": after.seat, "round": n, "from": _describe_stance(before), "to": _describe_stance(after), "changed": True,
        "reason": after.evidence, "weak": not cites_evidence(after.evidence),
    }  # fmt: skip


def describe_stances(stances: Mapping[str, Stance]) -> dict[str, str]:
    """Describe each seat's stance, with the same wording for equal stances."""
    told: dict[str, str] = {}
    for seat, one in stances.items():
        told[seat] = next(
            (told[name] for name in told if not _stances_differ(one, stances[name])), _describe_stance(one)
        )
    return told


def cites_evidence(evidence: str) -> bool:
    """Return whether a fact or an argument is named; agreement of the others is neither."""
    said = evidence.strip(" \t\n.-–—_*\"'()")
    return not (NO_EVIDENCE.fullmatch(said) or MAJORITY_APPEAL.fullmatch(said))


def _describe_stance(one: Stance) -> str:
    return f"{one.stance}: {one.choice}" if one.choice else one.stance
