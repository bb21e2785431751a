"""Findings of judges: parse them and their ids, check their places, and apply the changes of a second round."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from council.protocols.judges.defects import ASIDE_KINDS, WEAK_KINDS, find_first_kinds, find_kinds, find_new_names
from council.protocols.judges.locations import (
    LocationState,
    Material,
    Place,
    find_place,
    match_file,
    parse_location,
    parse_path,
)
from council.protocols.judges.replies import SecondOpinion, SettledSeverity
from council.protocols.judges.rules import Vote
from council.protocols.judges.scopes import Definition, find_code_names
from council.similarity import is_similar, jaccard, stems
from council.text_cleanup import squash, truncate
from council.types import Seat

SEVERITIES = ("critical", "significant", "minor")  # worst first
LOCATION_STATES = ("verified", "located", "unlocated")  # best first
NO_FIX, NO_WHY, NO_REF = "No fix specified", "No root cause specified", "No reference"
MIN_EQUAL_WORDS = 4  # shorter sentences at two places are equal by chance: "The function has no docstring."
NEARLY_EQUAL = 0.8  # share of common words
ENOUGH_EVIDENCE = 5  # of two findings on one line
OTHER_SUBJECT = 4  # evidence against: one is about something specific that the other does not mention
SIMILAR = 0.5  # share of common words of two findings on one line
ALIKE = 0.3  # share of common words of two findings of an unknown kind
RELATED = 0.08  # with less in common, a single shared word is chance
POSSIBLY_SAME = 0.3  # share of common words
MAX_LINES_APART = 5  # equal sentences further apart are about two places
# Words for things, for the absence of things, and for harm of any kind ("leaks a cursor", "leaks a password"). Two
# findings on one line share them in any case, so they do not show that both report the same defect.
COMMON_WORDS = (
    "no not never none without missing lack any every each all always also only other another same just again still even "
    "may might can could should must cannot will use used uses using make made makes get gets set sets put call called "
    "caller callers calling return returns returned pass passed passes check checked checks checking handle handled "
    "function method class module package file line code value values variable parameter argument field property user "
    "users client server request response input output data database query statement table column row record item list "
    "array map dict object string number text token session connection thread goroutine process job loop test result "
    "error exception message name key id path url page api system service program version type problem issue bug defect "
    "possible allows allow wrong bad good new old one two first last more less than too very much many few happens case "
    "leak leaks leaking fail fails failure lose loses lost unsafe incorrect invalid expose exposes exposed slow"
)
_COMMON_STEMS = stems(COMMON_WORDS)
FROM_MEMORY = re.compile(r"\bfrom (?:my )?memory\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Finding:
    """One judge's finding. `id` is the seat and a number: judge-1.F2."""

    severity: str
    category: str
    description: str
    location: str = ""
    recommendation: str = ""
    fix: str = NO_FIX
    why: str = NO_WHY
    ref: str = NO_REF
    seat: str = ""
    quote: str = ""
    id: str = ""
    place: Place = field(default_factory=Place)
    first_severity: str = ""  # severity of the first round, if the second one changed it
    scope: Definition | None = None  # the definition that encloses its place, if it is known
    new_names: frozenset[str] = frozenset()  # code names of its fix that its file does not have

    @property
    def is_from_memory(self) -> bool:
        """Whether it relies on knowledge that the packet does not have, by the judge's own word."""
        return FROM_MEMORY.search(self.ref) is not None

    @property
    def state(self) -> LocationState:
        """The state of its place; a finding from memory is at most located."""
        return "located" if self.is_from_memory and self.place.state == "verified" else self.place.state

    @property
    def is_verified(self) -> bool:
        return self.state == "verified"

    @property
    def file(self) -> str:
        """Return the file in the packet, else the file as stated."""
        stated = parse_location(self.location) or parse_location(self.ref)
        return self.place.path or (stated[0] if stated else parse_path(self.location))


@dataclass(frozen=True, slots=True)
class Challenge:
    """A judge's challenge to a claim of another judge in the debate."""

    target: str
    claim: str
    seat: str = ""  # the judge that challenges
    response: str = ""  # its reason
    finding: str = ""  # the id of the finding, if it names one


def parse_finding(seat: str, row: Mapping[str, Any], finding_id: str = "") -> Finding:
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
        quote=str(row.get("quote") or "").strip("\r\n"),
        id=finding_id,
    )


def verify_finding(finding: Finding, material: Material) -> Finding:
    """Check the place and the quote against the packet."""
    place = find_place(finding.location, finding.ref, finding.quote, material)
    scope = material.find_definition(place, finding.quote)
    advice = f"{finding.fix}\n{finding.recommendation}" if finding.fix != NO_FIX else finding.recommendation
    return replace(finding, place=place, scope=scope, new_names=find_new_names(advice, material.words(place.path)))


QUOTE_PROBLEMS = {
    "not_found": "quote not found",
    "too_long": "quote too long to check",
    "ambiguous": "the quote occurs several times and no line is named",
}
MAX_QUOTE_CHARS = 400


def describe_position(reply: Any, findings: Sequence[Finding]) -> str:
    """Render a judge's position for the second round: key insight, checked findings with their ids, recommendation."""
    lines = [reply.key_insight]
    for one in findings:
        kind = " ".join(filter(None, [one.severity, one.category]))
        advice = one.recommendation or (one.fix if one.fix != NO_FIX else "")
        about = ", ".join(filter(None, [kind, _describe_place(one)]))
        lines.append(f"- {one.id} ({about}): {one.description}" + (f" Advice: {advice}" if advice else ""))
        if one.quote.strip():
            lines += [f"    > {line}" for line in truncate(one.quote, MAX_QUOTE_CHARS).splitlines()]
    return "\n".join([*lines, f"Recommendation: {reply.recommendation}"])


def _describe_place(finding: Finding) -> str:
    """Return the corrected place and what the check of it found."""
    place = finding.place
    where = f"{place.path}:{place.line}" if place.line else finding.location
    if not place.path:
        check = "no such file in the material"
    elif place.quote:
        check = QUOTE_PROBLEMS.get(place.quote, "quote verified")
    else:
        check = "line exists, no quote" if place.state == "located" else "no such line in the material"
    stated = parse_location(finding.location)
    moved = f", stated as line {stated[1]}" if place.line and stated and stated[1] != place.line else ""
    return f"{where}{moved}, {check}" if where else "no place"


# Comparison of two findings


def is_same_problem(a: Finding, b: Finding) -> bool:
    """Return whether two judges report the same defect.

    Either their verified quotes share a line and what they say about it fits together (see `weigh_evidence`), or they
    concern the same file and their wording is nearly equal. Lines that are only close prove nothing, and in doubt the
    answer is no: a duplicate is better than a false corroboration.
    """
    if a.file != b.file:
        return False
    if shares_line(a, b):
        return a.description.split() == b.description.split() or weigh_evidence(a, b) >= ENOUGH_EVIDENCE
    return is_nearly_equal(a, b)


def weigh_evidence(a: Finding, b: Finding) -> int:
    """Weigh what two findings on one line have in common: the kind of defect, words for it, names and fixes.

    A kind that both name counts most, and it must be what one of them is about. If one is about a kind that the other
    does not mention, they probably report two defects.
    """
    kinds = (find_kinds(a.description), find_kinds(b.description))
    first = (find_first_kinds(a.description), find_first_kinds(b.description))
    shared = (kinds[0] & first[1]) | (kinds[1] & first[0])
    if (kinds[0] ^ kinds[1]) & ASIDE_KINDS:
        return 0
    agreed = first[0] & first[1]
    likeness = jaccard(stems(a.description), stems(b.description))
    strong = sum(_weigh_kind(kind, is_agreed=kind in agreed) for kind in shared - WEAK_KINDS)
    weak = sum(_weigh_kind(kind, is_agreed=kind in agreed) for kind in shared & WEAK_KINDS)
    weight = strong + min(weak, ENOUGH_EVIDENCE - 1)
    if not shared and first[0] and first[1]:
        weight -= 3
    if (first[0] - WEAK_KINDS - kinds[1]) or (first[1] - WEAK_KINDS - kinds[0]):
        weight -= OTHER_SUBJECT
    most = 3 if shared or likeness >= ALIKE else 2  # words alone are much less than a kind of defect
    names = find_code_names(a.description) & find_code_names(b.description)
    weight += min(len(_shared_defect_words(a, b)), most) + min(len(names), 1)
    weight += 2 * min(len(a.new_names & b.new_names), 1)
    has_same_category = bool(a.category) and a.category.lower() == b.category.lower()
    return weight + 3 * (likeness >= SIMILAR) + (likeness >= RELATED and has_same_category)


def _weigh_kind(kind: str, *, is_agreed: bool) -> int:
    """Weigh a kind of defect that both findings name; `is_agreed`: both are about it."""
    if kind in WEAK_KINDS:
        return 2 if is_agreed else 1
    return ENOUGH_EVIDENCE if is_agreed else 2


def shares_line(a: Finding, b: Finding) -> bool:
    """Return whether the verified quotes of both share a line of one file."""
    one, other = a.place, b.place
    is_one_file = one.state == other.state == "verified" and one.path == other.path
    return is_one_file and one.first <= other.last and other.first <= one.last


def is_in_one_scope(a: Finding, b: Finding) -> bool:
    """Return whether the places of both lie in one definition. An unknown one is never the same."""
    return a.scope is not None and b.scope is not None and a.scope.is_same(b.scope)


def names_scope(text: str, finding: Finding) -> bool:
    """Return whether a text names the definition in which a finding lies."""
    return finding.scope is not None and bool(finding.scope.name) and finding.scope.name in find_code_names(text)


def shares_subject(a: Finding, b: Finding) -> bool:
    """Return whether two findings name a kind of defect or a word for it in common."""
    return bool(find_kinds(a.description) & find_kinds(b.description)) or bool(_shared_defect_words(a, b))


def is_nearly_equal(a: Finding, b: Finding) -> bool:
    """Return whether the wording is nearly equal and the places do not contradict it."""
    one, other = stems(a.description), stems(b.description)
    is_short = min(len(one), len(other)) < MIN_EQUAL_WORDS
    if jaccard(one, other) < NEARLY_EQUAL or (is_short and not a.place.line == b.place.line != 0):
        return False
    if a.place.state == b.place.state == "verified":
        return shares_line(a, b)
    lines = [finding.place.line for finding in (a, b) if finding.place.line]
    return len(lines) < 2 or max(lines) - min(lines) <= MAX_LINES_APART


def is_possibly_same(a: Finding, b: Finding) -> bool:
    """Return whether two findings of one file are close enough to be shown as possibly the same."""
    if a.seat == b.seat or a.file != b.file:
        return False
    alike = jaccard(stems(a.description), stems(b.description)) >= POSSIBLY_SAME
    return shares_line(a, b) or (alike and not a.place.state == b.place.state == "verified")


def _shared_defect_words(a: Finding, b: Finding) -> frozenset[str]:
    """Return the shared words that name the defect: not the quoted code, not a common word, not a number."""
    code = f"{a.quote} {b.quote} {a.place.code} {b.place.code}"
    shared = (stems(a.description) & stems(b.description)) - stems(code) - _COMMON_STEMS
    return frozenset(word for word in shared if not word.isdigit())


# Ids in the words of a judge: `judge-2.F1`, `attacker.F1`, `Red F1`, `F1`

MAX_ID_WORDS = 6  # a longer text is a sentence that mentions an id
MAX_NAME_WORDS = 4
_NUMBER = re.compile(r"(?<![A-Za-z0-9])F(?:inding)?[ #-]{0,2}(?P<number>\d{1,4})\b", re.IGNORECASE)
_AFTER = re.compile(r"\W{0,3}(?:(?:of|by|from)\s+)?(?P<name>[\w-]+(?: [\w-]+){0,2})")
_SEPARATOR = re.compile(r"\s*(?:[,;]|\band\b|&)\s*")
_NO_NAME = frozenset(
    ("finding", "findings", "id", "ids", "the", "my", "own", "mine", "see", "also", "as", "in", "with")
)


@dataclass(frozen=True, slots=True)
class Reference:
    """An id as a judge wrote it, after its names were looked up.

    `id` is empty if it names no finding, or more than one. `is_bare`: it names no judge.
    """

    id: str = ""
    is_bare: bool = False


def list_judge_names(seats: Iterable[Seat]) -> dict[str, tuple[str, ...]]:
    """Return the seats by every name that a judge may use for them: seat, perspective and role."""
    names: dict[str, tuple[str, ...]] = {}
    for seat in seats:
        short = seat.name.partition("judge-")[2]
        for name in dict.fromkeys(squash(one) for one in (seat.name, short, seat.perspective, seat.role)):
            if name and not name.isdigit():
                names[name] = (*names.get(name, ()), seat.name)
    return names


def split_ids(text: str) -> list[str]:
    """Return the ids of a text that lists several: "judge-1.F1, judge-2.F2"."""
    parts = [part for part in _SEPARATOR.split(text.strip()) if part]
    return parts if len(parts) > 1 and all(_NUMBER.search(part) for part in parts) else [text]


def resolve_reference(
    text: str, known: Collection[str], names: Mapping[str, tuple[str, ...]], not_by: str = "", *, is_prose: bool = False
) -> Reference:
    """Look up the finding that a text names. `not_by` is a judge that is not meant if several have the name.

    Words beside the number are an unknown judge, unless the text is prose that mentions an id.
    """
    plain = text.strip().strip("[]()`\"'*. ")
    by_id = {one.lower(): one for one in known}
    if plain.lower() in by_id:
        return Reference(by_id[plain.lower()])
    found = _NUMBER.search(plain)
    if not found:
        return Reference()
    is_id = not is_prose and len(plain.split()) <= MAX_ID_WORDS
    named = _find_judges(plain[: found.start()], plain[found.end() :], names, is_id=is_id)
    if named is None:
        return Reference()
    if not named:
        return Reference(f"F{int(found['number'])}", is_bare=True)
    ids = [by_id.get(f"{seat}.F{int(found['number'])}".lower(), "") for seat in named]
    ids = [one for one, seat in zip(ids, named, strict=True) if len(named) == 1 or seat != not_by]
    return Reference(ids[0] if len(ids) == 1 else "")


def _find_judges(
    before: str, after: str, names: Mapping[str, tuple[str, ...]], *, is_id: bool
) -> tuple[str, ...] | None:
    """Return the judges that stand beside the number of a finding; empty if none is named, None if it is unknown."""
    words = re.sub(r"['’]s\b", "", before).split()
    for count in range(min(MAX_NAME_WORDS, len(words)), 0, -1):
        if seats := names.get(squash(" ".join(words[-count:]))):
            return seats
    later = _AFTER.match(after)
    following = later["name"].split() if later else []
    for count in range(len(following), 0, -1):
        if seats := names.get(squash(" ".join(following[:count]))):
            return seats
    is_attached = bool(before) and not before[-1].isspace() and before[-1] not in "([\"'`"
    rest = [word for word in words if squash(word) not in _NO_NAME]
    return None if rest and (is_attached or is_id) else ()


# Second round


@dataclass(frozen=True, slots=True)
class StandingFindings:
    """Findings that remain in effect, and what the second round changed."""

    findings: tuple[Finding, ...] = ()
    withdrawn: tuple[tuple[Finding, str], ...] = ()  # with the reason
    settled: tuple[tuple[Finding, str], ...] = ()
    supporters: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # finding id → judges
    problems: tuple[str, ...] = ()  # changes that could not be applied, one sentence each


def apply_changes(
    first: Sequence[Finding],
    added: Sequence[Finding],
    replies: Mapping[str, SecondOpinion],
    names: Mapping[str, tuple[str, ...]],
) -> StandingFindings:
    """Return the findings after the second round. A finding remains unless its judge withdraws it with a reason.

    A judge that withdraws a finding and reports the same defect again corrects it: the new text replaces the old one.
    `replies` are those of the second round by judge, `names` the judges by the names that the others may use for them.
    """
    known = KnownFindings({finding.id: finding for finding in (*first, *added)}, names)
    problems: list[str] = []
    gone = _accept_withdrawals(replies, known, problems)
    corrected = {old.id: new for old in first if old.id in gone for new in added if is_repeated(old, new)}
    gone = {finding_id: why for finding_id, why in gone.items() if finding_id not in corrected}
    settled = _accept_settlements(replies, known, problems)
    supporters = _accept_supports(replies, known, problems)
    # A correction keeps the id of the first finding, by which others refer to it.
    kept = [replace(corrected.get(one.id, one), id=one.id) for one in first]
    standing = [
        _settle(finding, settled.get(finding.id))
        for finding in (*kept, *(new for new in added if not any(is_repeated(old, new) for old in first)))
        if finding.id not in gone or finding.id in supporters
    ]
    return StandingFindings(
        tuple(standing),
        tuple((known[finding_id], why) for finding_id, why in gone.items()),
        tuple((_settle(known[finding_id], one), one.why) for finding_id, one in settled.items()),
        supporters,
        tuple(problems),
    )


@dataclass(frozen=True, slots=True)
class KnownFindings:
    """The findings by id, and the judges by the names that others use for them."""

    by_id: Mapping[str, Finding]
    names: Mapping[str, tuple[str, ...]]

    def __getitem__(self, finding_id: str) -> Finding:
        return self.by_id[finding_id]

    def find(self, text: str, *, not_by: str = "", own: str = "", is_prose: bool = False) -> Finding | None:
        """Return the finding that a text names. A number without a judge is one of `own`; without `own` it is none."""
        named = resolve_reference(text, self.by_id, self.all_names, not_by, is_prose=is_prose)
        return self.by_id.get(f"{own}.{named.id}" if named.is_bare else named.id)

    def is_bare(self, text: str) -> bool:
        return resolve_reference(text, self.by_id, self.all_names).is_bare

    @property
    def all_names(self) -> Mapping[str, tuple[str, ...]]:
        seats = dict.fromkeys(finding.seat for finding in self.by_id.values())
        return {squash(seat): (seat,) for seat in seats} | dict(self.names)


def _accept_withdrawals(
    replies: Mapping[str, SecondOpinion], known: KnownFindings, problems: list[str]
) -> dict[str, str]:
    gone = {}
    for seat, one in ((seat, one) for seat, reply in replies.items() for one in reply.withdrawn):
        finding = known.find(one.id, own=seat)
        if finding is None:
            problems.append(f'{seat} withdraws "{one.id}", which is no finding: nothing is withdrawn.')
        elif finding.seat != seat:
            problems.append(f"{seat} withdraws {finding.id}, a finding of {finding.seat}: it remains.")
        elif not one.why.strip():
            problems.append(f"{seat} withdraws {finding.id} without a reason: it remains.")
        else:
            gone[finding.id] = one.why.strip()
    return gone


def _accept_settlements(
    replies: Mapping[str, SecondOpinion], known: KnownFindings, problems: list[str]
) -> dict[str, SettledSeverity]:
    settled = {}
    for seat, one in ((seat, one) for seat, reply in replies.items() for one in reply.settled):
        finding = known.find(one.id, own=seat)
        if finding is None or finding.seat != seat:
            problems.append(f'{seat} rates "{one.id}" as {one.severity}, which is not its own finding: no change.')
        elif not one.why.strip():
            problems.append(f"{seat} rates {finding.id} as {one.severity} without a reason: no change.")
        elif finding.severity != one.severity:
            settled[finding.id] = one
    return settled


def _accept_supports(
    replies: Mapping[str, SecondOpinion], known: KnownFindings, problems: list[str]
) -> dict[str, tuple[str, ...]]:
    supporters: dict[str, tuple[str, ...]] = {}
    for seat, listed in ((seat, listed) for seat, reply in replies.items() for listed in reply.supports):
        for text in split_ids(listed):
            finding = known.find(text, not_by=seat)
            if finding is None and known.is_bare(text):
                problems.append(f'{seat} supports "{text}" without naming its judge: the support does not count.')
            elif finding is None:
                problems.append(f'{seat} supports "{text}", which is no finding: the support does not count.')
            elif finding.seat != seat:
                supporters[finding.id] = tuple(dict.fromkeys((*supporters.get(finding.id, ()), seat)))
    return supporters


def _settle(finding: Finding, settlement: SettledSeverity | None) -> Finding:
    if settlement is None:
        return finding
    return replace(finding, severity=settlement.severity, first_severity=finding.severity)


def is_repeated(old: Finding, new: Finding) -> bool:
    """Return whether a judge repeats its own finding."""
    if old.seat != new.seat:
        return False
    alike = is_similar(jaccard(stems(old.description), stems(new.description)))
    is_elsewhere = old.place.state == new.place.state == "verified" and not shares_line(old, new)
    return is_same_problem(old, new) or (alike and not is_elsewhere)


# Checks of votes and challenges


def find_inconsistent_judges(votes: Iterable[Vote], findings: Iterable[Finding]) -> tuple[str, ...]:
    """Return the judges that said PASS and hold a critical finding."""
    critical = {finding.seat for finding in findings if finding.severity == "critical"}
    return tuple(vote.seat for vote in votes if vote.verdict == "PASS" and vote.seat in critical)


def find_challenges(finding: Finding, challenges: Iterable[Challenge]) -> list[Challenge]:
    """Return the challenges of other judges that target the finding: by its id, its wording or its line."""
    words = stems(finding.description)

    def is_target(one: Challenge) -> bool:
        is_described = _is_at(finding, one.claim) or is_similar(jaccard(words, stems(one.claim)))
        return _names(finding, one) or (one.target == finding.seat and is_described)

    return [one for one in challenges if one.seat != finding.seat and is_target(one)]


def _names(finding: Finding, challenge: Challenge) -> bool:
    """Return whether the challenge names the id: `judge-2.F1`, or `F1` in a challenge to judge-2."""
    known = KnownFindings({finding.id: finding}, {squash(challenge.target): (challenge.target,)})
    texts = (challenge.finding, challenge.target, challenge.claim)
    return bool(finding.id) and any(
        known.find(text, own=challenge.target, is_prose=True) is finding for text in texts if text
    )


def _is_at(finding: Finding, claim: str) -> bool:
    stated, place = parse_location(claim), finding.place
    if stated is None or not place.line or match_file(stated[0], {place.path}) is None:
        return False
    return (place.first or place.line) <= stated[1] <= (place.last or place.line)


def find_survivors(
    standing: Iterable[Finding], challenges: Sequence[Challenge], answered: Collection[str]
) -> frozenset[str]:
    """Return the judges that answered the second round and kept a challenged critical finding."""
    held = (one for one in standing if one.severity == "critical" and one.seat in answered)
    return frozenset(finding.seat for finding in held if find_challenges(finding, challenges))
