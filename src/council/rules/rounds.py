"""Rounds of advice: what each is for, how long it may be, when a debate has nothing left to settle, who changed sides on what."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise

from council.types import Json

BUDGETS = {"opening": (200, 400), "rebuttal": (200, 300), "final": (150, 250)}
ARTICLES = ("a", "an", "the", "The")  # "vendor A" is no article
# Words that turn a recommendation round, or bind it to something: with one of them more it is another one.
TURNS = frozenset(
    (
        "not", "no", "never", "nothing", "none", "nobody", "without", "instead", "against", "except", "but", "only",
        "unless", "until", "if", "when", "later", "dont", "doesnt", "cannot", "cant", "wont", "after", "before", "once",
        "then", "or", "and", "half", "part", "partly", "partially", "some", "most", "pilot", "trial",
    )
)  # fmt: skip
NOTHING = re.compile(
    r"(?:none|nothing|no|nil|n/?a|not applicable|unchanged|no (?:change|evidence|new \w+)|empty)?", re.IGNORECASE
)
CROWD = re.compile(
    r"(?:because )?(?:(?:all|both|most|two) (?:of )?)?(?:the |my )?"
    r"(?:(?:other )?advisors|others?|majority|rest|everyone(?: else)?|everybody|all|both|group|council|consensus)"
    r"(?: (?:also|now|all|both|clearly))* (?:agrees?|holds?|sees?|thinks?|says?|said|prefers?|believes?|recommends?|wants?|favou?rs?|is|are)"
    r"(?: (?:it|so|this|that|same|the|otherwise|with|me|each|other|on|against|for|too|in|unanimous))*",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Stance:
    """Where a seat stands after a round."""

    seat: str
    stance: str
    choice: str = ""
    confidence: str = ""
    evidence: str = ""


def stage(n: int, rounds: int) -> str:
    """The first round opens, the last is final, what lies between rebuts. A single round is an opening."""
    return "opening" if n == 1 else "final" if n == rounds else "rebuttal"


def budget(n: int, rounds: int) -> tuple[int, int]:
    """From how many words to how many."""
    return BUDGETS[stage(n, rounds)]


def is_long(text: str, most: int) -> bool:
    """Over twice its budget: worth a flag."""
    return len(text.split()) > 2 * most


def unanimous(stances: Sequence[Stance]) -> bool:
    """All hold one stand, recommend one thing and are sure of it. One seat alone agrees with nobody."""
    if len(stances) < 2 or any(one.confidence != "HIGH" or one.stance == "undecided" for one in stances):
        return False
    return not any(_differ(one, other) for one, other in combinations(stances, 2))


def _differ(one: Stance, other: Stance) -> bool:
    return one.stance != other.stance or not _same_choice(one.choice, other.choice)


def _same_choice(a: str, b: str) -> bool:
    """The same words, or some more that turn nothing round. Shared words prove nothing: one word makes it another vendor."""
    one, other = _words(a), _words(b)
    if not one or not other:
        return one == other
    more = one ^ other
    return (one <= other or other <= one) and not more & TURNS and not any(map(str.isdigit, more))


def _words(choice: str) -> frozenset[str]:
    said = re.findall(r"\w+", re.sub(r"['’]", "", choice))
    return frozenset(word.lower() for word in said if word not in ARTICLES)


def changes(rounds: Sequence[Mapping[str, Stance]]) -> list[Json]:
    """Every change of stand from a seat's round to its next: on what evidence, or as a weak flip."""
    found = []
    for seat in dict.fromkeys(name for held in rounds for name in held):
        said = [(n, held[seat]) for n, held in enumerate(rounds, 1) if seat in held]
        found += [_change(n, before, after) for (_, before), (n, after) in pairwise(said) if _differ(before, after)]
    return found


def _change(n: int, before: Stance, after: Stance) -> Json:
    return {
        "seat": after.seat, "round": n, "from": _stand(before), "to": _stand(after), "changed": True,
        "reason": after.evidence, "weak": not cites(after.evidence),
    }  # fmt: skip


def held(stances: Mapping[str, Stance]) -> dict[str, str]:
    """What each seat holds, in one wording where several hold the same."""
    told: dict[str, str] = {}
    for seat, one in stances.items():
        told[seat] = next((told[name] for name in told if not _differ(one, stances[name])), _stand(one))
    return told


def cites(evidence: str) -> bool:
    """Whether a fact or an argument was named at all; that the others hold something is neither."""
    said = evidence.strip(" \t\n.-–—_*\"'()")
    return not (NOTHING.fullmatch(said) or CROWD.fullmatch(said))


def _stand(one: Stance) -> str:
    return f"{one.stance}: {one.choice}" if one.choice else one.stance
