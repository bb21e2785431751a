"""Rules that combine the votes of judges: consensus, corroborated, coverage cap, weak flips."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from council.types import OK_STATES, Agreement, OverallVerdict, VerdictWord

ConfidenceLevel = Literal["HIGH", "MEDIUM", "LOW"]
CONFIDENCE_ORDER: tuple[ConfidenceLevel, ...] = ("LOW", "MEDIUM", "HIGH")
FAMILY_CORRELATION = 0.6  # share of errors that two seats of one family have in common


@dataclass(frozen=True, slots=True)
class Vote:
    """One judge's verdict. `vendor` is the requested family, even if a fallback answered; only an ok `state` counts."""

    seat: str
    vendor: str
    verdict: VerdictWord
    confidence: ConfidenceLevel
    state: str = "ok"
    voice: str = ""  # the same for seats that share a member because of a fallback; empty: the seat itself


@dataclass(frozen=True, slots=True)
class Consensus:
    """Result of the vote. `verdict` is None without votes; `holders` are the seats that voted for it."""

    verdict: OverallVerdict | None = None
    confidence: ConfidenceLevel | None = None
    families: Mapping[str, VerdictWord] = field(default_factory=dict)
    holders: tuple[str, ...] = ()
    weakened: tuple[str, ...] = ()  # seats whose FAIL counted as WARN for lack of evidence


def decide_by_consensus(votes: Iterable[Vote], *, mixed: bool) -> Consensus:
    """All PASS gives PASS, any FAIL gives FAIL, anything else WARN; with `mixed`, families can DISAGREE."""
    counted = _countable_votes(votes)
    if not counted:
        return Consensus()
    families = {
        vendor: _combine_verdicts(vote.verdict for vote in counted if vote.vendor == vendor)
        for vendor in sorted({vote.vendor for vote in counted})
    }
    if mixed and {"PASS", "FAIL"} <= set(families.values()):
        holders = [vote for vote in counted if vote.verdict == families[vote.vendor] != "WARN"]
        return _build_consensus("DISAGREE", holders, families)
    verdict = _combine_verdicts(vote.verdict for vote in counted)
    return _build_consensus(verdict, [vote for vote in counted if vote.verdict == verdict], families)


def decide_by_corroboration(
    votes: Iterable[Vote], *, mixed: bool, verified: Collection[str] = (), survived: Collection[str] = ()
) -> Consensus:
    """Apply the consensus rule after every FAIL without evidence has become a WARN.

    A FAIL counts if judges of a second family say FAIL too (a fallback of the first family does not confirm it), or if
    its judge is in `verified` (has a finding at a verified location) or in `survived` (kept a critical finding that was
    challenged).
    """
    counted = _countable_votes(votes)
    failing = [vote for vote in counted if vote.verdict == "FAIL"]
    confirmed = len({vote.vendor for vote in failing}) > 1 and len({vote.voice or vote.seat for vote in failing}) > 1
    weak = [] if confirmed else [vote.seat for vote in failing if vote.seat not in {*verified, *survived}]
    softened = [replace(vote, verdict="WARN") if vote.seat in weak else vote for vote in counted]
    return replace(decide_by_consensus(softened, mixed=mixed), weakened=tuple(weak))


def cap_verdict(
    verdict: OverallVerdict | None, holes: Collection[object], empty: bool, critical: bool = False
) -> OverallVerdict | None:
    """Turn PASS into WARN if the judges did not see all material, or if a critical finding remains."""
    return "WARN" if verdict == "PASS" and (holes or empty or critical) else verdict


def merge_voices(votes: Iterable[Vote]) -> list[Vote]:
    """Return the votes, with the equal verdicts of one voice as one vote."""
    merged: dict[tuple[str, str], Vote] = {}
    for vote in _countable_votes(votes):
        merged.setdefault((vote.voice or vote.seat, vote.verdict), vote)
    return list(merged.values())


def measure_agreement(verdicts: Collection[str]) -> Agreement:
    """Return how far verdicts agree; a single one is not assessed."""
    if len(verdicts) < 2:
        return ""
    most = max(Counter(verdicts).values())
    return "full" if most == len(verdicts) else "partial" if most > 1 else "none"


def count_effective_votes(votes: Iterable[Vote]) -> float:
    """Estimate the number of independent votes.

    n seats of one family count as n / (1 + (n - 1) x 0.6), because their errors correlate. Families are added as if
    they were independent, so the result is an upper estimate.
    """
    seats = Counter(vote.vendor for vote in _countable_votes(votes))
    return round(sum(effective_votes(n, FAMILY_CORRELATION) for n in seats.values()), 2)


def effective_votes(n: int, correlation: float) -> float:
    """Return how many independent votes n votes are worth if the errors of two of them correlate so much."""
    return n / (1 + (n - 1) * correlation)


def has_converged(r1: Iterable[str], r2: Iterable[str]) -> bool:
    """Return whether a split first round became unanimous: a sign of possible anchoring."""
    return len(set(r1)) > 1 and len(set(r2)) == 1


def is_weak_flip(r1_verdict: str, r2_verdict: str, *cited: str) -> bool:
    """Return whether a verdict changed without citing a location, the judge's error, or a missed test or case."""
    return r1_verdict != r2_verdict and not any(cites_evidence(text) for text in cited)


def cites_evidence(text: str) -> bool:
    """Return whether the text cites something specific.

    A heuristic: it only sets a flag in the report, never a verdict.
    """
    return any(pattern.search(text[:20_000]) for pattern in (_LOCATION, _OWN_ERROR, _MISSED_CASE))


_LOCATION = re.compile(
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


def _countable_votes(votes: Iterable[Vote]) -> list[Vote]:
    """Return the votes that count, sorted by seat; a truncated answer counts with LOW confidence."""
    adjusted = [replace(vote, confidence="LOW") if vote.state == "truncated" else vote for vote in votes]
    return sorted((vote for vote in adjusted if vote.state in (*OK_STATES, "truncated")), key=lambda vote: vote.seat)


def _combine_verdicts(verdicts: Iterable[VerdictWord]) -> VerdictWord:
    words = set(verdicts)
    if "FAIL" in words:
        return "FAIL"
    return "PASS" if words == {"PASS"} else "WARN"


def _build_consensus(verdict: OverallVerdict, holders: list[Vote], families: Mapping[str, VerdictWord]) -> Consensus:
    lowest = min((vote.confidence for vote in holders), key=CONFIDENCE_ORDER.index)
    return Consensus(verdict, lowest, families, tuple(vote.seat for vote in holders))
