"""How verdicts become one: the table, the split between families, and what a verdict may rest on."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from council.types import OK_STATES

Word = Literal["PASS", "WARN", "FAIL"]
Level = Literal["HIGH", "MEDIUM", "LOW"]
Overall = Literal["PASS", "WARN", "FAIL", "DISAGREE"]

SCALE: tuple[Overall, ...] = ("PASS", "WARN", "DISAGREE", "FAIL")  # from best to worst
LEVELS: tuple[Level, ...] = ("LOW", "MEDIUM", "HIGH")
SAME_MIND = 0.6  # how often two seats of one family err alike (spec 60: the same wrong answer 60 % of the time)


@dataclass(frozen=True, slots=True)
class Vote:
    """One judge's verdict. `vendor` is the family that was requested, whoever served; only an ok `state` counts."""

    seat: str
    vendor: str
    verdict: Word
    confidence: Level
    state: str = "ok"


@dataclass(frozen=True, slots=True)
class Consensus:
    """What the votes come to. `verdict` is None when nobody voted; `holders` are the seats that hold it."""

    verdict: Overall | None = None
    confidence: Level | None = None
    families: Mapping[str, Word] = field(default_factory=dict)
    holders: tuple[str, ...] = ()
    weakened: tuple[str, ...] = ()  # seats whose FAIL counted as WARN for want of evidence


def consensus(votes: Iterable[Vote], *, mixed: bool) -> Consensus:
    """All PASS is PASS, any FAIL is FAIL, anything else WARN; `mixed` lets two families disagree."""
    counted = _counted(votes)
    if not counted:
        return Consensus()
    families = {vendor: _table(vote.verdict for vote in counted if vote.vendor == vendor) for vendor in _vendors(counted)}  # fmt: skip
    if mixed and {"PASS", "FAIL"} <= set(families.values()):
        holders = [vote for vote in counted if vote.verdict == families[vote.vendor] != "WARN"]
        return _ruled("DISAGREE", holders, families)
    verdict = _table(vote.verdict for vote in counted)
    return _ruled(verdict, [vote for vote in counted if vote.verdict == verdict], families)


def corroborated(
    votes: Iterable[Vote], *, mixed: bool, verified: Collection[str] = (), survived: Collection[str] = ()
) -> Consensus:
    """The same table after every FAIL that rests on nothing has become a WARN.

    A FAIL stands when judges of a second family say FAIL too, when its judge is in `verified` (has a finding at a
    verified location) or in `survived` (has a critical finding that was challenged and stayed).
    """
    counted = _counted(votes)
    failing = {vote.vendor for vote in counted if vote.verdict == "FAIL"}
    borne_out = len(failing) > 1
    weak = [
        vote.seat
        for vote in counted
        if vote.verdict == "FAIL" and not borne_out and vote.seat not in verified and vote.seat not in survived
    ]
    softened = [replace(vote, verdict="WARN") if vote.seat in weak else vote for vote in counted]
    return replace(consensus(softened, mixed=mixed), weakened=tuple(weak))


def capped(verdict: Overall | None, holes: Collection[object], empty: bool) -> Overall | None:
    """What was not seen cannot pass: with a coverage hole or an empty packet PASS becomes WARN."""
    return "WARN" if verdict == "PASS" and (holes or empty) else verdict


def effective_votes(votes: Iterable[Vote]) -> float:
    """An estimate of how many independent votes these are worth.

    n seats of one family count as n / (1 + (n - 1) x 0.6), since they tend to err alike; families are added up as if
    they were independent, which they are not quite: read it as "at most about".
    """
    seats = Counter(vote.vendor for vote in _counted(votes))
    return round(sum(n / (1 + (n - 1) * SAME_MIND) for n in seats.values()), 2)


def converged(r1: Iterable[str], r2: Iterable[str]) -> bool:
    """The first round had at least two verdicts and the second has one: a reader should check for anchoring."""
    return len(set(r1)) > 1 and len(set(r2)) == 1


def is_weak_flip(r1_verdict: str, r2_verdict: str, *cited: str) -> bool:
    """A changed verdict whose reasons name no place in the code, no error of the judge's own and no missed test or case."""
    return r1_verdict != r2_verdict and not any(names_something(text) for text in cited)


def names_something(text: str) -> bool:
    """A reading of words, so it can be fooled: it decides on a flag for the reader, never on a verdict."""
    return any(pattern.search(text[:20_000]) for pattern in (_PLACE, _OWN_ERROR, _MISSED_CASE))


_PLACE = re.compile(
    r"[\w/.-]{1,200}\.\w{1,8}(?::|#L)\d+"  # src/auth.py:12, auth.py#L12
    r"|\b(?:lines?|ll?\.)\s*\d+"  # line 12
    r"|`[\w./:-]{1,200}\.\w{1,8}`"  # `src/auth.py`
    r"|\b\w{1,100}\(\)",  # parse()
    re.IGNORECASE,
)
_OWN_ERROR = re.compile(
    r"\bI (?:had )?(?:misread|miscounted|misunderstood|mistook)\b"
    r"|\bfactual(?:ly)? (?:error|mistake|wrong|incorrect)"
    r"|\bmy (?:r1|first|own|earlier|original|previous)\b[^.\n]{0,80}\b(?:wrong|error|mistake|mistaken|incorrect|false)\b"
    r"|\bI (?:wrongly|incorrectly|mistakenly|falsely) \w+",
    re.IGNORECASE,
)
_MISSED_CASE = re.compile(
    r"\b(?:edge|corner|boundary|test)[ -]cases?\b"
    r"|\b(?:missing|missed|overlooked|failing|absent|untested)\b[^.\n]{0,40}\b(?:tests?|case|branch|path|input)\b"
    r"|\b(?:no|lacks? an?y?|without an?y?) tests?\b|\btest_\w+",
    re.IGNORECASE,
)


def _counted(votes: Iterable[Vote]) -> list[Vote]:
    """Those that count, in an order of their own; an answer that was cut off counts with the least confidence."""
    heard = [replace(vote, confidence="LOW") if vote.state == "truncated" else vote for vote in votes]
    return sorted((vote for vote in heard if vote.state in (*OK_STATES, "truncated")), key=lambda vote: vote.seat)


def _vendors(votes: Iterable[Vote]) -> list[str]:
    return sorted({vote.vendor for vote in votes})


def _table(verdicts: Iterable[Word]) -> Word:
    said = set(verdicts)
    if "FAIL" in said:
        return "FAIL"
    return "PASS" if said == {"PASS"} else "WARN"


def _ruled(verdict: Overall, holders: list[Vote], families: Mapping[str, Word]) -> Consensus:
    lowest = min((vote.confidence for vote in holders), key=LEVELS.index)
    return Consensus(verdict, lowest, families, tuple(vote.seat for vote in holders))
