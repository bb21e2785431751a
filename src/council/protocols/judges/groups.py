"""Groups of findings: join what several judges report, sort the groups, and build the rows of the report."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product
from typing import Any

from council.protocols.judges.findings import (
    LOCATION_STATES,
    SEVERITIES,
    Finding,
    is_nearly_equal,
    is_possibly_same,
    is_same_problem,
    shares_line,
)
from council.similarity import content_words, jaccard, stems
from council.types import Json

QUOTE_NOTES = {
    "not_found": "quote not found",
    "too_long": "quote too long to check",
    "ambiguous": "the quote occurs several times and no line is named",
}


@dataclass(frozen=True, slots=True)
class FindingGroup:
    """Findings of several judges on the same problem. `lead` represents the group; all members are kept."""

    members: tuple[Finding, ...]
    judge_count: int
    disputed: bool = False
    supporters: tuple[str, ...] = ()  # judges that only support a finding of the group
    possibly_same: tuple[str, ...] = ()  # ids of findings in other groups
    uncounted: tuple[str, ...] = ()  # judges that withdrew their finding, or whose model is already counted
    disputes: tuple[tuple[str, str], ...] = ()  # the judges that oppose it, each with its reason

    @property
    def lead(self) -> Finding:
        return self.members[0]

    @property
    def location_member(self) -> Finding:
        """Return the member whose location is shown: the best checked one."""
        return min(self.members, key=lambda member: LOCATION_STATES.index(member.place.state))

    @property
    def found_by(self) -> tuple[str, ...]:
        """Return the judges that count as holders of the finding, one for each model that answered by fallback."""
        seats = {*(member.seat for member in self.members), *self.supporters}.difference(self.uncounted)
        return tuple(sorted(seats, key=_seat_key))

    @property
    def severity(self) -> str:
        return min((member.severity for member in self.members), key=SEVERITIES.index)

    @property
    def is_security(self) -> bool:
        return any(member.category.strip().lower() == "security" for member in self.members)

    @property
    def support(self) -> str:
        return f"found by {len(self.found_by)} of {self.judge_count}"


def group_findings(
    findings: Iterable[Finding], judge_count: int, supporters: Mapping[str, Sequence[str]] | None = None
) -> list[FindingGroup]:
    """Group the findings on the same problem.

    Two groups are joined only if every finding of one matches every finding of the other, so a finding that mentions
    two defects does not connect others. A support joins the judge to the group, and its own finding if it is close.
    """
    ranked = sorted(findings, key=_sort_key)
    supported = {finding_id: tuple(seats) for finding_id, seats in (supporters or {}).items()}
    group_of = {n: [n] for n in range(len(ranked))}
    for a, b in _match_pairs(ranked, supported):
        first, second = group_of[a], group_of[b]
        pairs = ((ranked[x], ranked[y]) for x, y in product(first, second))
        if first is not second and all(_is_match(x, y, supported) for x, y in pairs):
            joined = first + second
            group_of.update(dict.fromkeys(joined, joined))
    distinct = {id(members): sorted(members) for members in group_of.values()}
    groups = [_build_group([ranked[n] for n in members], judge_count, supported) for members in distinct.values()]
    return _mark_possibly_same(sorted(groups, key=lambda one: _sort_key(one.lead)))


def _match_pairs(findings: Sequence[Finding], supported: Mapping[str, tuple[str, ...]]) -> list[tuple[int, int]]:
    """Return the pairs that match, the most certain first."""
    pairs = [
        (not shares_line(findings[a], findings[b]), -_likeness(findings[a], findings[b]), a, b)
        for a, b in combinations(range(len(findings)), 2)
        if _is_match(findings[a], findings[b], supported)
    ]
    return [(a, b) for *_, a, b in sorted(pairs)]


def _likeness(a: Finding, b: Finding) -> float:
    return jaccard(stems(a.description), stems(b.description))


def _is_match(a: Finding, b: Finding, supported: Mapping[str, tuple[str, ...]]) -> bool:
    if a.seat == b.seat:
        return a.file == b.file and is_nearly_equal(a, b)  # a judge that says the same twice
    is_supported = a.seat in supported.get(b.id, ()) or b.seat in supported.get(a.id, ())
    return is_same_problem(a, b) or (is_supported and shares_line(a, b) and _likeness(a, b) > 0)


def _build_group(
    members: Sequence[Finding], judge_count: int, supported: Mapping[str, tuple[str, ...]]
) -> FindingGroup:
    own = {member.seat for member in members}
    seats = dict.fromkeys(seat for member in members for seat in supported.get(member.id, ()))
    return FindingGroup(tuple(members), judge_count, supporters=tuple(seat for seat in seats if seat not in own))


def find_uncounted(one: FindingGroup, withdrawn: Collection[str], voices: Mapping[str, str]) -> tuple[str, ...]:
    """Return the judges of a group that do not count: those that withdrew the finding, and further seats of one voice.

    `voices` maps finding ids, and seats that only support, to the voice behind them; a missing one is its own voice.
    """
    held = [(member.seat, voices.get(member.id, member.seat)) for member in one.members if member.id not in withdrawn]
    held += [(seat, voices.get(seat, seat)) for seat in one.supporters]
    first: dict[str, str] = {}  # voice → the seat that counts for it
    for seat, voice in held:
        first.setdefault(voice, seat)
    everyone = {*(member.seat for member in one.members), *one.supporters}
    return tuple(sorted(everyone.difference(first.values())))


def _mark_possibly_same(groups: Sequence[FindingGroup]) -> list[FindingGroup]:
    return [
        replace(
            one, possibly_same=tuple(other.lead.id for other in groups if other is not one and _is_close(one, other))
        )
        for one in groups
    ]


def _is_close(one: FindingGroup, other: FindingGroup) -> bool:
    return any(is_possibly_same(a, b) for a, b in product(one.members, other.members))


def _seat_key(name: str) -> list[Any]:
    """Sort key that puts judge-2 before judge-10."""
    return [int(part) if part.isdecimal() else part for part in re.split(r"(\d+)", name)]


def _sort_key(finding: Finding) -> tuple[Any, ...]:
    """Sort key: severity, then the best checked place first; the rest makes the order deterministic."""
    place = finding.place
    state = LOCATION_STATES.index(place.state)
    texts = (finding.description, finding.seat, finding.category, finding.location, finding.recommendation, finding.fix)
    rest = (finding.why, finding.ref, finding.quote, finding.id)
    return (SEVERITIES.index(finding.severity), state, place.path, place.line, *texts, *rest)


def sort_groups(groups: Iterable[FindingGroup], failing: Collection[str]) -> list[FindingGroup]:
    """Sort groups: security findings behind a FAIL first, then by severity, then by number of judges."""

    def sort_key(one: FindingGroup) -> tuple[Any, ...]:
        supports = one.is_security and one.severity != "minor" and not set(one.found_by).isdisjoint(failing)
        return (not supports, SEVERITIES.index(one.severity), -len(one.found_by), *_sort_key(one.lead))

    return sorted(groups, key=sort_key)


# Rows of the report


def compute_fingerprint(one: FindingGroup) -> str:
    """Return a hash that does not change when lines are added above: it uses the code text, not the line number."""
    words = " ".join(sorted(word for word in content_words(one.lead.description) if not word.isdigit()))
    code = "".join(one.location_member.place.code.split())
    path = one.location_member.place.path or re.sub(r"\d+", "", one.lead.location).strip().lower()
    return hashlib.sha256("\x1f".join((path, words, code)).encode("utf-8", "replace")).hexdigest()[:32]


def build_rows(groups: Iterable[FindingGroup]) -> list[Json]:
    """Return the findings as report rows; equal fingerprints get a counter by their order in the file."""
    listed = list(groups)
    marks: dict[int, str] = {}
    seen: Counter[str] = Counter()
    places = [one.location_member.place for one in listed]
    for n in sorted(range(len(listed)), key=lambda n: (places[n].path, places[n].line, n)):
        mark = compute_fingerprint(listed[n])
        seen[mark] += 1
        marks[n] = mark if seen[mark] == 1 else f"{mark}:{seen[mark]}"
    return [_build_row(one, marks[n]) for n, one in enumerate(listed)]


def _build_row(one: FindingGroup, fingerprint: str) -> Json:
    lead, shown = one.lead, one.location_member
    location = format_place(shown) or lead.location
    return {
        "severity": one.severity,
        "category": lead.category,
        "description": lead.description,
        "location": location,
        "fix": lead.fix,
        "why": lead.why,
        "ref": location if lead.ref == lead.location else lead.ref,
        "recommendation": lead.recommendation,
        "found_by": list(one.found_by),
        "of": one.judge_count,
        "verified": shown.is_verified,
        "fingerprint": fingerprint,
        "disputed": one.disputed,
        "disputed_by": [seat for seat, _ in one.disputes],
        "disputes": [{"seat": seat, "why": why} for seat, why in one.disputes],
        "id": lead.id,
        "quote": shown.quote,
        "path": shown.place.path,
        "line": shown.place.line,
        "location_state": shown.place.state,
        "location_note": _describe_quote(shown),
        "by_judge": [*map(_build_judge_row, one.members), *map(_build_supporter_row, one.supporters)],
        "possibly_same": list(one.possibly_same),
    }


def format_place(finding: Finding) -> str:
    """Return `path:line` of a line that exists, else the location as stated."""
    place = finding.place
    return f"{place.path}:{place.line}" if place.line else finding.location


def _describe_quote(finding: Finding) -> str:
    return QUOTE_NOTES.get(finding.place.quote, "")


def _build_judge_row(finding: Finding) -> Json:
    row = {
        "seat": finding.seat,
        "id": finding.id,
        "severity": finding.severity,
        "category": finding.category,
        "description": finding.description,
        "location": format_place(finding),
        "location_state": finding.place.state,
        "location_note": _describe_quote(finding),
        "fix": finding.fix,
    }
    return row | ({"first_severity": finding.first_severity} if finding.first_severity else {})


def _build_supporter_row(seat: str) -> Json:
    return {"seat": seat, "id": "", "supports": True}
