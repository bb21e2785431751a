"""Groups of findings: join what several judges report, sort the groups, and build the rows of the report."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product
from typing import Any, Literal

from council.engine.records import FindingRow, FindingWords
from council.protocols.judges.findings import (
    LOCATION_STATES,
    QUOTE_PROBLEMS,
    SEVERITIES,
    Finding,
    is_in_one_scope,
    is_nearly_equal,
    is_possibly_same,
    is_same_problem,
    names_scope,
    shares_line,
    shares_subject,
)
from council.similarity import content_words, jaccard, stems

ALIKE_ACROSS_DEFINITIONS = 0.25  # share of common words
GroupedBy = Literal["", "clerk", "rule", "support"]  # empty: the findings of one judge


@dataclass(frozen=True, slots=True)
class ClerkGroup:
    """Ids of findings that report one defect by the word of the clerk, and the clerk's words for the defect."""

    findings: tuple[str, ...]
    defect: str = ""


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
    grouped_by: GroupedBy = ""
    defect: str = ""  # the clerk's words, if it named the group

    @property
    def lead(self) -> Finding:
        return self.members[0]

    @property
    def location_member(self) -> Finding:
        """Return the member whose location is shown: the best checked one."""
        return min(self.members, key=lambda member: LOCATION_STATES.index(member.state))

    @property
    def found_by(self) -> tuple[str, ...]:
        """Return the judges that found it and count, one for each model that answered by fallback; else its holders."""
        finders = {member.seat for member in self.members}
        return tuple(seat for seat in self.held_by if seat in finders) or self.held_by

    @property
    def held_by(self) -> tuple[str, ...]:
        """Return the judges that found it, and those that only support it."""
        seats = {*(member.seat for member in self.members), *self.supporters}.difference(self.uncounted)
        return tuple(sorted(seats, key=_seat_key))

    @property
    def severity(self) -> str:
        return min((member.severity for member in self.members), key=SEVERITIES.index)

    @property
    def support(self) -> str:
        found, held = len(self.found_by), len(self.held_by)
        if found == held:
            return f"found by {found} of {self.judge_count}"
        return f"found by {found}, held by {held} of {self.judge_count}"


def group_findings(
    findings: Iterable[Finding],
    judge_count: int,
    supporters: Mapping[str, Sequence[str]] | None = None,
    clerk: Sequence[ClerkGroup] = (),
) -> list[FindingGroup]:
    """Group the findings on the same problem: by rule, and by the groups of the clerk that pass a check.

    Two groups are joined only if every finding of one matches every finding of the other, so a finding that mentions
    two defects does not connect others. A support joins the judge to the group, and its own finding if it is close.
    """
    ranked = sorted(findings, key=_sort_key)
    known, judges = {finding.id for finding in ranked}, {finding.seat for finding in ranked}
    sizes = [len(known.intersection(one.findings)) for one in clerk]
    overfull = frozenset(n for n, size in enumerate(sizes) if size > len(judges) + 1)
    matcher = Matcher(supporters or {}, clerk, overfull)
    group_of = {n: [n] for n in range(len(ranked))}
    for a, b in _match_pairs(ranked, matcher):
        first, second = group_of[a], group_of[b]
        pairs = ((ranked[x], ranked[y]) for x, y in product(first, second))
        if first is not second and all(matcher.is_match(x, y) for x, y in pairs):
            joined = first + second
            group_of.update(dict.fromkeys(joined, joined))
    distinct = {id(members): sorted(members) for members in group_of.values()}
    groups = [_build_group([ranked[n] for n in members], judge_count, matcher) for members in distinct.values()]
    return _mark_possibly_same(sorted(groups, key=lambda one: _sort_key(one.lead)), matcher)


@dataclass(frozen=True, slots=True)
class Matcher:
    """Decides which findings may be one: by rule, by a support, or by the clerk and a check of its word."""

    supported: Mapping[str, Sequence[str]]  # finding id → judges that support it
    clerk: Sequence[ClerkGroup]
    overfull: frozenset[int]  # numbers of the clerk's groups that name several defects, by their number of findings

    def find_clerk_groups(self, a: Finding, b: Finding) -> frozenset[int]:
        """Return the numbers of the clerk's groups that hold both findings."""
        return frozenset(n for n, one in enumerate(self.clerk) if a.id in one.findings and b.id in one.findings)

    def is_match(self, a: Finding, b: Finding) -> bool:
        if a.seat == b.seat:
            return a.file == b.file and is_nearly_equal(a, b)  # a judge that says the same twice
        if is_same_problem(a, b) or self.is_joined_by_support(a, b):
            return True
        return bool(self.find_clerk_groups(a, b)) and self.is_confirmed(a, b)

    def is_confirmed(self, a: Finding, b: Finding) -> bool:
        """Check a pair of the clerk: one file, and a line, a definition or a support in common.

        Without one, the descriptions must be alike, and one names the definition of the other finding or a definition
        is not known; or one finding has no line and names the definition of the other.
        """
        if not a.file or a.file != b.file:
            return False
        if shares_line(a, b) or is_in_one_scope(a, b) or self.is_supported(a, b):
            return True
        is_named = names_scope(a.description, b) or names_scope(b.description, a)
        if _likeness(a, b) >= ALIKE_ACROSS_DEFINITIONS:
            return is_named or a.scope is None or b.scope is None
        return is_named and not (a.place.line and b.place.line)

    def is_supported(self, a: Finding, b: Finding) -> bool:
        """Return whether one of two judges supports the finding of the other."""
        return a.seat in self.supported.get(b.id, ()) or b.seat in self.supported.get(a.id, ())

    def is_joined_by_support(self, a: Finding, b: Finding) -> bool:
        both = {a.seat, b.seat}
        if not self.is_supported(a, b) and not any(both.issubset(seats) for seats in self.supported.values()):
            return False
        return (shares_line(a, b) and _likeness(a, b) > 0) or (is_in_one_scope(a, b) and shares_subject(a, b))


def _match_pairs(findings: Sequence[Finding], matcher: Matcher) -> list[tuple[int, int]]:
    """Return the pairs that match, the most certain first."""
    pairs = []
    for a, b in combinations(range(len(findings)), 2):
        one, other = findings[a], findings[b]
        if matcher.is_match(one, other):
            by_clerk = one.seat != other.seat and bool(matcher.find_clerk_groups(one, other))
            pairs.append((not by_clerk, not shares_line(one, other), -_likeness(one, other), a, b))
    return [(a, b) for *_, a, b in sorted(pairs)]


def _likeness(a: Finding, b: Finding) -> float:
    return jaccard(stems(a.description), stems(b.description))


def _build_group(members: Sequence[Finding], judge_count: int, matcher: Matcher) -> FindingGroup:
    own = {member.seat for member in members}
    seats = dict.fromkeys(seat for member in members for seat in matcher.supported.get(member.id, ()))
    by, defect = _find_origin(members, matcher)
    return FindingGroup(
        tuple(members),
        judge_count,
        supporters=tuple(seat for seat in seats if seat not in own),
        grouped_by=by,
        defect=defect,
    )


def _find_origin(members: Sequence[Finding], matcher: Matcher) -> tuple[GroupedBy, str]:
    """Return what joined the findings, and the clerk's words for them."""
    pairs = [(a, b) for a, b in combinations(members, 2) if a.seat != b.seat]
    if not pairs:
        return "", ""
    named = Counter(n for a, b in pairs for n in matcher.find_clerk_groups(a, b))
    if named:
        best = min(named, key=lambda n: (-named[n], n))
        return "clerk", "" if best in matcher.overfull else matcher.clerk[best].defect
    return ("rule", "") if all(is_same_problem(a, b) for a, b in pairs) else ("support", "")


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


def _mark_possibly_same(groups: Sequence[FindingGroup], matcher: Matcher) -> list[FindingGroup]:
    close = [[two.lead.id for two in groups if two is not one and _is_close(one, two, matcher)] for one in groups]
    return [replace(one, possibly_same=tuple(ids)) for one, ids in zip(groups, close, strict=True)]


def _is_close(one: FindingGroup, other: FindingGroup, matcher: Matcher) -> bool:
    """Return whether two groups may be one: a pair is close, or the clerk named it and the check did not confirm it.

    Places alone do not make two groups close if one judge reports both.
    """
    pairs = list(product(one.members, other.members))
    if any(matcher.find_clerk_groups(a, b) - matcher.overfull for a, b in pairs):
        return True
    has_common_judge = any(a.seat == b.seat for a, b in pairs)
    return not has_common_judge and any(is_possibly_same(a, b) for a, b in pairs)


def list_split_groups(groups: Iterable[FindingGroup], clerk: Iterable[ClerkGroup]) -> list[tuple[ClerkGroup, int]]:
    """Return the clerk's groups that the check did not confirm as a whole, each with the number of rows it became."""
    row_of = {member.id: n for n, one in enumerate(groups) for member in one.members}
    rows = [(one, len({row_of[finding] for finding in one.findings if finding in row_of})) for one in clerk]
    return [(one, count) for one, count in rows if count > 1]


def _seat_key(name: str) -> list[Any]:
    """Sort key that puts judge-2 before judge-10."""
    return [int(part) if part.isdecimal() else part for part in re.split(r"(\d+)", name)]


def _sort_key(finding: Finding) -> tuple[Any, ...]:
    """Sort key: severity, then the best checked place first; the rest makes the order deterministic."""
    place = finding.place
    state = LOCATION_STATES.index(finding.state)
    texts = (finding.description, finding.seat, finding.category, finding.location, finding.recommendation, finding.fix)
    rest = (finding.why, finding.ref, finding.quote, finding.id)
    return (SEVERITIES.index(finding.severity), state, place.path, place.line, *texts, *rest)


def sort_groups(groups: Iterable[FindingGroup], failing: Collection[str]) -> list[FindingGroup]:
    """Sort groups: security findings behind a FAIL first, then by severity, then by number of judges."""

    def sort_key(one: FindingGroup) -> tuple[Any, ...]:
        is_security = any(member.category.lower() == "security" for member in one.members)
        supports = is_security and one.severity != "minor" and not set(one.held_by).isdisjoint(failing)
        return (not supports, SEVERITIES.index(one.severity), -len(one.held_by), *_sort_key(one.lead))

    return sorted(groups, key=sort_key)


# Rows of the report


def compute_fingerprint(one: FindingGroup) -> str:
    """Return a hash that does not change when lines are added above: it uses the code text, not the line number."""
    words = " ".join(sorted(word for word in content_words(one.lead.description) if not word.isdigit()))
    code = "".join(one.location_member.place.code.split())
    path = one.location_member.place.path or re.sub(r"\d+", "", one.lead.location).strip().lower()
    return hashlib.sha256("\x1f".join((path, words, code)).encode("utf-8", "replace")).hexdigest()[:32]


def build_rows(groups: Iterable[FindingGroup]) -> list[FindingRow]:
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


def _build_row(one: FindingGroup, fingerprint: str) -> FindingRow:
    lead, shown = one.lead, one.location_member
    location = format_place(shown) or lead.location
    supporters: list[FindingWords] = [{"seat": seat, "id": "", "supports": True} for seat in one.supporters]
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
        "path": shown.place.path if shown.place.is_file else "",
        "line": shown.place.line if shown.place.is_file else 0,
        "location_state": shown.state,
        "location_note": _describe_quote(shown),
        "by_judge": [*map(_build_judge_row, one.members), *supporters],
        "possibly_same": list(one.possibly_same),
        "held_by": list(one.held_by),
        "grouped_by": one.grouped_by,
        "defect": one.defect,
    }


def format_place(finding: Finding) -> str:
    """Return `path:line` of a line that exists, else the location as stated."""
    place = finding.place
    return f"{place.path}:{place.line}" if place.line else finding.location


def _describe_quote(finding: Finding) -> str:
    return QUOTE_PROBLEMS.get(finding.place.quote) or ("from memory" if finding.is_from_memory else "")


def _build_judge_row(finding: Finding) -> FindingWords:
    row: FindingWords = {
        "seat": finding.seat,
        "id": finding.id,
        "severity": finding.severity,
        "category": finding.category,
        "description": finding.description,
        "location": format_place(finding),
        "location_state": finding.state,
        "location_note": _describe_quote(finding),
        "fix": finding.fix,
    }
    if finding.first_severity:
        row["first_severity"] = finding.first_severity
    return row
