"""Rules for rounds of advice: stages, word limits and changes of stance."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise

from council.engine.records import Shift
from council.protocols.common.stances import Stance, stances_differ

WORD_LIMITS = {"opening": (200, 400), "rebuttal": (200, 300), "final": (150, 250)}
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


def stage(n: int, rounds: int) -> str:
    """Return the stage of a round; a single round is an opening."""
    return "opening" if n == 1 else "final" if n == rounds else "rebuttal"


def word_limits(n: int, rounds: int) -> tuple[int, int]:
    return WORD_LIMITS[stage(n, rounds)]


def is_long(text: str, max_words: int) -> bool:
    """Return whether the text has over twice its word limit."""
    return len(text.split()) > 2 * max_words


def stance_changes(rounds: Sequence[Mapping[str, Stance]]) -> list[Shift]:
    """Return every change of stance between a seat's rounds, with its evidence or as a weak flip."""
    found = []
    for seat in dict.fromkeys(name for held in rounds for name in held):
        said = [(n, held[seat]) for n, held in enumerate(rounds, 1) if seat in held]
        found += [
            _change_json(n, before, after)
            for (_, before), (n, after) in pairwise(said)
            if stances_differ(before, after)
        ]
    return found


def _change_json(n: int, before: Stance, after: Stance) -> Shift:
    return {
        "seat": after.seat,
        "round": n,
        "from": _describe_stance(before),
        "to": _describe_stance(after),
        "changed": True,
        "reason": after.evidence,
        "weak": not cites_evidence(after.evidence),
    }


def describe_stances(stances: Mapping[str, Stance]) -> dict[str, str]:
    """Describe each seat's stance, with the same wording for equal stances."""
    told: dict[str, str] = {}
    for seat, one in stances.items():
        told[seat] = next(
            (told[name] for name in told if not stances_differ(one, stances[name])), _describe_stance(one)
        )
    return told


def cites_evidence(evidence: str) -> bool:
    """Return whether a fact or an argument is named; agreement of the others is neither."""
    said = evidence.strip(" \t\n.-–—_*\"'()")
    return not (NO_EVIDENCE.fullmatch(said) or MAJORITY_APPEAL.fullmatch(said))


def _describe_stance(one: Stance) -> str:
    return f"{one.stance}: {one.choice}" if one.choice else one.stance
