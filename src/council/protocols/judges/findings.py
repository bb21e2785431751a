"""Findings of judges: parse and verify their locations, group those on the same problem, and compare the rounds."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from council.protocols.judges.rules import Vote
from council.similarity import content_words, is_similar, jaccard
from council.types import Json

MAX_TEXT_CHARS = 1_000  # characters; the rest of a text is ignored
_NUMBER = r"(?P<line>[1-9]\d{0,6})(?!\d)"
_LINE_MARK = rf"(?::L?|#L|,?\s+\(?(?:at\s+|on\s+)?(?:lines?|L)\s*){_NUMBER}"
_QUOTED = re.compile(rf"(?P<path>[^:\n]{{1,300}}?){_LINE_MARK}(?:\D.{{0,40}})?", re.IGNORECASE)  # may contain spaces
_BARE = re.compile(rf"(?<![\w/:.\\-])(?P<path>[\w./\\@+~\[\]-]{{1,300}}){_LINE_MARK}", re.IGNORECASE)
_NAMED = re.compile(
    rf"\s*(?P<path>[A-Za-z]\w{{1,60}}){_LINE_MARK}\s*", re.IGNORECASE
)  # Makefile:3, with nothing around it
_TICKED = re.compile(r"`([^`\n]{1,400})`")
_LINE_BREAK = re.compile(r"\r\n|\r|\n")


def parse_location(text: str) -> tuple[str, int] | None:
    """Return the first file and line in the text, or None. URLs and times of day do not count."""
    short = text[:MAX_TEXT_CHARS]
    if alone := _NAMED.fullmatch(short):
        return alone["path"], int(alone["line"])
    return _find_quoted(short) or _find_bare(_TICKED.sub(r"\1", short))


def _find_quoted(text: str) -> tuple[str, int] | None:
    places = (_QUOTED.fullmatch(ticked[1]) for ticked in _TICKED.finditer(text))
    return next((_to_location(place) for place in places if place and _is_file_path(place["path"])), None)


def _find_bare(text: str) -> tuple[str, int] | None:
    return next((_to_location(place) for place in _BARE.finditer(text) if _is_file_path(place["path"])), None)


def _to_location(match: re.Match[str]) -> tuple[str, int]:
    return normalize_path(match["path"]), int(match["line"])


def _is_file_path(path: str) -> bool:
    return ("/" in path or "." in path or "\\" in path) and any(sign.isalpha() for sign in path) and "//" not in path


def normalize_path(path: str) -> str:
    """Return the path with forward slashes, without a leading `./` or `[`."""
    plain = path.strip().replace("\\", "/")
    plain = plain if "]" in plain else plain.lstrip("[")
    while plain.startswith("./"):
        plain = plain[2:]
    return plain


def match_file(path: str, paths: Collection[str]) -> str | None:
    """Return the packet file with this path, or the only one whose path ends with it."""
    if path in paths:
        return path
    wanted = path[2:] if path.startswith(("a/", "b/")) else path  # prefixes of a diff
    ends = [name for name in paths if name == wanted or name.endswith(f"/{wanted}") or _is_absolute_form(wanted, name)]
    return ends[0] if len(ends) == 1 else None


def _is_absolute_form(wanted: str, name: str) -> bool:
    """Return whether `wanted` is an absolute path that ends with `name`."""
    return wanted.startswith("/") and wanted.endswith(f"/{name}")


def split_lines(content: str) -> list[str]:
    """Split into lines as an editor numbers them; a final line break does not start a new line."""
    lines = _LINE_BREAK.split(content)
    return lines[:-1] if lines[-1] == "" else lines


# Findings

SEVERITIES = ("critical", "significant", "minor")  # worst first
MAX_LINE_DISTANCE = 3  # lines; judges rarely name the exact same line
NO_FIX, NO_WHY, NO_REF = "No fix specified", "No root cause specified", "No reference"


@dataclass(frozen=True, slots=True)
class Finding:
    """One judge's finding. `verified` is None if it names no line; path, line and code are set if the line exists."""

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
class FindingGroup:
    """Findings of several judges on the same problem. `lead` represents the group; all members are kept."""

    members: tuple[Finding, ...]
    judge_count: int
    disputed: bool = False

    @property
    def lead(self) -> Finding:
        return self.members[0]

    @property
    def location_member(self) -> Finding:
        """Return the member whose location is shown: the first verified one, else the lead."""
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
    def support(self) -> str:
        return f"found by {len(self.found_by)} of {self.judge_count}"


@dataclass(frozen=True, slots=True)
class Challenge:
    """A judge's challenge to a claim of another judge in the debate."""

    target: str
    claim: str


def parse_finding(seat: str, row: Mapping[str, Any]) -> Finding:
    """Parse a finding of a reply, with defaults for fields that older schemas do not have."""
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


def verify_finding(finding: Finding, files: Mapping[str, str]) -> Finding:
    """Look the line up in the packet and set `verified`: True if it exists, False if not, None if no line is named."""
    place = parse_location(finding.location) or parse_location(finding.ref)
    if place is None:
        return replace(finding, verified=None)
    path, line = match_file(place[0], files), place[1]
    lines = split_lines(files[path]) if path else []
    if not path or line > len(lines):
        return replace(finding, verified=False)
    return replace(finding, verified=True, path=path, line=line, code=lines[line - 1])


def group_findings(findings: Iterable[Finding], judge_count: int) -> list[FindingGroup]:
    """Group findings on the same problem: by verified location first, then by similar wording.

    The closest pairs are joined first and two findings of one judge are never joined by location alone, so the
    result depends neither on the order of the judges nor on chains of neighbouring lines.
    """
    ranked = sorted(findings, key=_sort_key)
    groups_of = {n: [n] for n in range(len(ranked))}
    for a, b, by_location in _match_pairs(ranked):
        first, second = groups_of[a], groups_of[b]
        if first is not second and _can_join([ranked[n] for n in first], [ranked[n] for n in second], by_location):
            joined = first + second
            groups_of.update(dict.fromkeys(joined, joined))
    distinct = {id(members): sorted(members) for members in groups_of.values()}
    groups = [FindingGroup(tuple(ranked[n] for n in members), judge_count) for members in distinct.values()]
    return sorted(groups, key=lambda one: _sort_key(one.lead))


def _sort_key(finding: Finding) -> tuple[Any, ...]:
    """Sort key: severity, then verified first; the rest makes the order deterministic."""
    place = (finding.path, finding.line, finding.description, finding.seat, finding.category, finding.location)
    rest = (finding.recommendation, finding.fix, finding.why, finding.ref)
    return (SEVERITIES.index(finding.severity), not finding.verified, *place, *rest)


def _match_pairs(findings: Sequence[Finding]) -> list[tuple[int, int, bool]]:
    """Return the pairs of findings that may be the same problem, the most certain first."""
    words = [content_words(finding.description) for finding in findings]
    pairs = []
    for a in range(len(findings)):
        for b in range(a + 1, len(findings)):
            likeness = jaccard(words[a], words[b])
            by_place = _is_same_location(findings[a], findings[b]) and findings[a].seat != findings[b].seat
            if by_place or is_similar(likeness):
                pairs.append((not by_place, -likeness, abs(findings[a].line - findings[b].line), a, b))
    return [(a, b, not by_words) for by_words, _, _, a, b in sorted(pairs)]


def _can_join(first: Sequence[Finding], second: Sequence[Finding], by_location: bool) -> bool:
    """Return whether two groups can be joined: no two verified locations differ, and by location no judge occurs twice."""
    both = [(a, b) for a in first for b in second]
    if any(a.verified and b.verified and not _is_same_location(a, b) for a, b in both):
        return False
    return not by_location or all(a.seat != b.seat for a, b in both)


def _is_same_location(a: Finding, b: Finding) -> bool:
    return bool(a.verified and b.verified and a.path == b.path and abs(a.line - b.line) <= MAX_LINE_DISTANCE)


def sort_groups(groups: Iterable[FindingGroup], failing: Collection[str]) -> list[FindingGroup]:
    """Sort groups: security findings behind a FAIL first, then by severity, then by number of judges."""

    def sort_key(one: FindingGroup) -> tuple[Any, ...]:
        supports = one.is_security and one.severity != "minor" and not set(one.found_by).isdisjoint(failing)
        return (not supports, SEVERITIES.index(one.severity), -len(one.found_by), *_sort_key(one.lead))

    return sorted(groups, key=sort_key)


def compute_fingerprint(one: FindingGroup) -> str:
    """Return a hash that does not change when lines are added above: it uses the code text, not the line number."""
    words = " ".join(sorted(word for word in content_words(one.lead.description) if not word.isdigit()))
    code = "".join(one.location_member.code.split())
    path = one.location_member.path or re.sub(r"\d+", "", one.lead.location).strip().lower()
    return hashlib.sha256("\x1f".join((path, words, code)).encode("utf-8", "replace")).hexdigest()[:32]


def build_rows(groups: Iterable[FindingGroup]) -> list[Json]:
    """Return the findings as report rows; equal fingerprints get a counter by their order in the file."""
    listed = list(groups)
    marks: dict[int, str] = {}
    seen: Counter[str] = Counter()
    for n in sorted(
        range(len(listed)), key=lambda n: (listed[n].location_member.path, listed[n].location_member.line, n)
    ):
        mark = compute_fingerprint(listed[n])
        seen[mark] += 1
        marks[n] = mark if seen[mark] == 1 else f"{mark}:{seen[mark]}"
    return [_build_row(one, marks[n]) for n, one in enumerate(listed)]


def _build_row(one: FindingGroup, fingerprint: str) -> Json:
    lead, shown = one.lead, one.location_member
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
        "of": one.judge_count,
        "verified": bool(shown.verified),
        "fingerprint": fingerprint,
        "disputed": one.disputed,
    }


def find_inconsistent_judges(votes: Iterable[Vote], findings: Iterable[Finding]) -> tuple[str, ...]:
    """Return the judges that said PASS and listed a critical finding. They are flagged, not changed."""
    critical = {finding.seat for finding in findings if finding.severity == "critical"}
    return tuple(vote.seat for vote in votes if vote.verdict == "PASS" and vote.seat in critical)


def find_dropped(earlier: Iterable[Finding], later: Iterable[Finding]) -> list[Finding]:
    """Return first-round findings that their judge does not repeat in the second round."""
    still = list(later)
    return [finding for finding in earlier if not any(_is_same_finding(finding, other) for other in still)]


def _is_same_finding(a: Finding, b: Finding) -> bool:
    return a.seat == b.seat and (
        _is_same_location(a, b) or is_similar(jaccard(content_words(a.description), content_words(b.description)))
    )


def is_challenged(finding: Finding, challenges: Iterable[Challenge]) -> bool:
    """Return whether a challenge targets the finding, by its wording or its location."""
    words = content_words(finding.description)
    return any(
        challenge.target == finding.seat and (_is_at(finding, challenge.claim) or is_similar(jaccard(words, content_words(challenge.claim))))
        for challenge in challenges
    )  # fmt: skip


def _is_at(finding: Finding, claim: str) -> bool:
    place = parse_location(claim)
    if place is None or not finding.verified:
        return False
    return match_file(place[0], {finding.path: ""}) is not None and abs(place[1] - finding.line) <= MAX_LINE_DISTANCE


def find_survivors(
    earlier: Iterable[Finding], later: Iterable[Finding], challenges: Iterable[Challenge]
) -> frozenset[str]:
    """Return the judges that kept a challenged critical finding after the debate."""
    against, still = list(challenges), [finding for finding in later if finding.severity == "critical"]
    held = (old for old in earlier if old.severity == "critical" and any(_is_same_finding(old, new) for new in still))
    return frozenset(finding.seat for finding in held if is_challenged(finding, against))


def find_verified_seats(findings: Iterable[Finding]) -> frozenset[str]:
    """Return the judges with at least one verified finding."""
    return frozenset(finding.seat for finding in findings if finding.verified)
