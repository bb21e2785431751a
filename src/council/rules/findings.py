"""What judges found: read, checked against the packet, grouped across judges, put in order."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from council.rules.consensus import Vote
from council.rules.likeness import alike, close, tokens
from council.rules.locations import find_file, lines_of, read_location
from council.types import Json

__all__ = [
    "Challenge", "Finding", "Group", "dropped", "fingerprint", "group", "inconsistent", "is_challenged", "ordered",
    "read_finding", "read_location", "rows", "survivors", "verified_seats", "verify",
]  # fmt: skip

SEVERITIES = ("critical", "significant", "minor")  # the worst first
NEAR = 3  # lines: judges rarely point at the same one
NO_FIX, NO_WHY, NO_REF = "No fix specified", "No root cause specified", "No reference"


@dataclass(frozen=True, slots=True)
class Finding:
    """One judge's finding. `verified` is None while it names no line; path, line and code are set where the line exists."""

    severity: str
    category: str
    description: str
    location: str = ""
    recommendation: str = ""
    fix: str = NO_FIX
    why: str = NO_WHY
    ref: str = NO_REF
    seat: str = ""
    verified: bool | None = None
    path: str = ""
    line: int = 0
    code: str = ""


@dataclass(frozen=True, slots=True)
class Group:
    """One matter, with every judge's own finding of it. `lead` speaks for the group; nothing is merged away."""

    members: tuple[Finding, ...]
    of: int
    disputed: bool = False

    @property
    def lead(self) -> Finding:
        return self.members[0]

    @property
    def shown(self) -> Finding:
        """The member whose place is shown: one that points at a line which exists, if any does."""
        return next((member for member in self.members if member.verified), self.lead)

    @property
    def found_by(self) -> tuple[str, ...]:
        return tuple(sorted({member.seat for member in self.members}))

    @property
    def severity(self) -> str:
        return min((member.severity for member in self.members), key=SEVERITIES.index)

    @property
    def is_security(self) -> bool:
        return any(member.category.strip().lower() == "security" for member in self.members)

    @property
    def said(self) -> str:
        return f"found by {len(self.found_by)} of {self.of}"


@dataclass(frozen=True, slots=True)
class Challenge:
    """What a judge held against a claim of another in the debate."""

    target: str
    claim: str


def read_finding(seat: str, row: Mapping[str, Any]) -> Finding:
    """A row of a reply, with the fallbacks for what older schemas did not ask for."""
    location, recommendation = str(row.get("location") or "").strip(), str(row.get("recommendation") or "").strip()
    return Finding(
        severity=str(row["severity"]),
        category=str(row.get("category") or "").strip(),
        description=str(row.get("description") or "").strip(),
        location=location,
        recommendation=recommendation,
        fix=row.get("fix") or recommendation or NO_FIX,
        why=row.get("why") or NO_WHY,
        ref=row.get("ref") or location or NO_REF,
        seat=seat,
    )


def verify(finding: Finding, files: Mapping[str, str]) -> Finding:
    """The finding with its line looked up in the packet: True if it is there, False if not, None if it names none."""
    place = read_location(finding.location) or read_location(finding.ref)
    if place is None:
        return replace(finding, verified=None)
    path, line = find_file(place[0], files), place[1]
    lines = lines_of(files[path]) if path else []
    if not path or line > len(lines):
        return replace(finding, verified=False)
    return replace(finding, verified=True, path=path, line=line, code=lines[line - 1])


def group(findings: Iterable[Finding], of: int) -> list[Group]:
    """The findings by what they are about: those at one verified place first, then those in near-equal words.

    The closest pairs are joined first and two matters of one judge are never joined by their place alone, so that the
    result depends neither on the order of the judges nor on chains of neighbours.
    """
    every = sorted(findings, key=_rank)
    home = {n: [n] for n in range(len(every))}
    for a, b, by_place in _pairs(every):
        if home[a] is not home[b] and _may_join([every[n] for n in home[a]], [every[n] for n in home[b]], by_place):
            joined = home[a] + home[b]
            home.update(dict.fromkeys(joined, joined))
    whole = {id(members): sorted(members) for members in home.values()}
    groups = [Group(tuple(every[n] for n in members), of) for members in whole.values()]
    return sorted(groups, key=lambda one: _rank(one.lead))


def _rank(finding: Finding) -> tuple[Any, ...]:
    """Who speaks first: the worst, then what could be verified; the rest only makes the order certain."""
    place = (finding.path, finding.line, finding.description, finding.seat, finding.category, finding.location)
    rest = (finding.recommendation, finding.fix, finding.why, finding.ref)
    return (SEVERITIES.index(finding.severity), not finding.verified, *place, *rest)


def _pairs(every: Sequence[Finding]) -> list[tuple[int, int, bool]]:
    """Every two findings that may be about one matter, the surest first."""
    words = [tokens(finding.description) for finding in every]
    found = []
    for a in range(len(every)):
        for b in range(a + 1, len(every)):
            likeness = alike(words[a], words[b])
            by_place = _same_place(every[a], every[b]) and every[a].seat != every[b].seat
            if by_place or close(likeness):
                found.append((not by_place, -likeness, abs(every[a].line - every[b].line), a, b))
    return [(a, b, not by_words) for by_words, _, _, a, b in sorted(found)]


def _may_join(ours: Sequence[Finding], theirs: Sequence[Finding], by_place: bool) -> bool:
    """No two members may stand at different places, and by place alone no judge may come to have two."""
    both = [(a, b) for a in ours for b in theirs]
    if any(a.verified and b.verified and not _same_place(a, b) for a, b in both):
        return False
    return not by_place or all(a.seat != b.seat for a, b in both)


def _same_place(a: Finding, b: Finding) -> bool:
    return bool(a.verified and b.verified and a.path == b.path and abs(a.line - b.line) <= NEAR)


def ordered(groups: Iterable[Group], failing: Collection[str]) -> list[Group]:
    """A security matter that a FAIL rests on comes first; then the worst, then what most judges found."""

    def place(one: Group) -> tuple[Any, ...]:
        supports = one.is_security and one.severity != "minor" and not set(one.found_by).isdisjoint(failing)
        return (not supports, SEVERITIES.index(one.severity), -len(one.found_by), *_rank(one.lead))

    return sorted(groups, key=place)


def fingerprint(one: Group) -> str:
    """The same for the same matter when lines were added above it: the code's text counts, its number does not."""
    words = " ".join(sorted(word for word in tokens(one.lead.description) if not word.isdigit()))
    code = "".join(one.shown.code.split())
    path = one.shown.path or re.sub(r"\d+", "", one.lead.location).strip().lower()
    return hashlib.sha256("\x1f".join((path, words, code)).encode("utf-8", "replace")).hexdigest()[:32]


def rows(groups: Iterable[Group]) -> list[Json]:
    """The findings as they stand in the report; equal fingerprints are told apart by their order in the file."""
    listed = list(groups)
    marks: dict[int, str] = {}
    seen: Counter[str] = Counter()
    for n in sorted(range(len(listed)), key=lambda n: (listed[n].shown.path, listed[n].shown.line, n)):
        mark = fingerprint(listed[n])
        seen[mark] += 1
        marks[n] = mark if seen[mark] == 1 else f"{mark}:{seen[mark]}"
    return [_row(one, marks[n]) for n, one in enumerate(listed)]


def _row(one: Group, mark: str) -> Json:
    lead, shown = one.lead, one.shown
    return {
        "severity": one.severity,
        "category": lead.category,
        "description": lead.description,
        "location": f"{shown.path}:{shown.line}" if shown.verified else lead.location,
        "fix": lead.fix,
        "why": lead.why,
        "ref": lead.ref,
        "recommendation": lead.recommendation,
        "found_by": list(one.found_by),
        "of": one.of,
        "verified": bool(shown.verified),
        "fingerprint": mark,
        "disputed": one.disputed,
    }


def inconsistent(votes: Iterable[Vote], findings: Iterable[Finding]) -> tuple[str, ...]:
    """The judges that said PASS and listed a critical finding. They are flagged; nobody guesses what they meant."""
    critical = {finding.seat for finding in findings if finding.severity == "critical"}
    return tuple(vote.seat for vote in votes if vote.verdict == "PASS" and vote.seat in critical)


def dropped(earlier: Iterable[Finding], later: Iterable[Finding]) -> list[Finding]:
    """What a judge found in the first round and does not speak of in the second."""
    still = list(later)
    return [finding for finding in earlier if not any(_same_matter(finding, other) for other in still)]


def _same_matter(a: Finding, b: Finding) -> bool:
    return a.seat == b.seat and (_same_place(a, b) or close(alike(tokens(a.description), tokens(b.description))))


def is_challenged(finding: Finding, challenges: Iterable[Challenge]) -> bool:
    """Whether another judge spoke against it: by its words, or by its place."""
    words = tokens(finding.description)
    return any(
        challenge.target == finding.seat and (_at(finding, challenge.claim) or close(alike(words, tokens(challenge.claim))))
        for challenge in challenges
    )  # fmt: skip


def _at(finding: Finding, claim: str) -> bool:
    place = read_location(claim)
    if place is None or not finding.verified:
        return False
    return find_file(place[0], {finding.path: ""}) is not None and abs(place[1] - finding.line) <= NEAR


def survivors(earlier: Iterable[Finding], later: Iterable[Finding], challenges: Iterable[Challenge]) -> frozenset[str]:
    """The judges with a critical finding that was challenged in the debate and that they still hold after it."""
    against, still = list(challenges), [finding for finding in later if finding.severity == "critical"]
    held = (old for old in earlier if old.severity == "critical" and any(_same_matter(old, new) for new in still))
    return frozenset(finding.seat for finding in held if is_challenged(finding, against))


def verified_seats(findings: Iterable[Finding]) -> frozenset[str]:
    """The judges that point at a line which exists."""
    return frozenset(finding.seat for finding in findings if finding.verified)
