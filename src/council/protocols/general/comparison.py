"""Comparison of claims: the clerk's groups, equal questions, comparable values, and markers of disagreement."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, islice

from council.final_answers.values import (
    compare_answers,
    condition_of,
    has_comparable_values,
    name_key,
    parse_answer,
)
from council.protocols.general.claims import Claim, Dispute, Group, Pair, Relation, SeatAnswer, Side, connected

MAX_DISPUTES = 10  # disputes put to the members; the rest are only reported


@dataclass(frozen=True, slots=True)
class ClerkGroup:
    """Claims of different seats that answer one question, and how they relate, as the clerk says."""

    question: str
    ids: tuple[str, ...]
    relation: Relation


@dataclass(frozen=True, slots=True)
class Comparison:
    """The groups of compared claims, the disputes among them, and where code overrode the clerk."""

    groups: tuple[Group, ...] = ()
    disputes: tuple[Dispute, ...] = ()
    overrides: tuple[str, ...] = ()

    @property
    def contested(self) -> frozenset[str]:
        """The ids of claims in a possible dispute."""
        return frozenset(side.id for one in self.disputes if one.is_possible for side in one.positions if side.id)


def compare_claims(answers: Sequence[SeatAnswer], clerk: Sequence[ClerkGroup] = ()) -> Comparison:
    """Compare the claims of different seats. Claims that no rule compares stay out of every group."""
    claims = {claim.id: claim for answer in answers for claim in answer.claims}
    said = _clerk_relations(clerk, claims)
    pairs = [_compare_pair(a, b, said) for a, b in combinations(claims.values(), 2) if a.seat != b.seat]
    decided = {one.pair: one for one in pairs if one is not None}
    groups = tuple(_build_groups(claims, decided, clerk))
    disputes = [dispute for group in groups for dispute in _build_disputes(group)]
    agreed = {pair for group in groups for pair in group.pairs("agree")}
    disputes += find_marked_disputes(answers, agreed)
    overrides = [line for one in decided.values() if (line := one.format_override())]
    return Comparison(groups, tuple(sorted(disputes, key=_sort_key)), tuple(overrides))


def disputing_seats(disputes: Iterable[Dispute]) -> tuple[str, ...]:
    """Return the seats of the second round; possible disputes do not count."""
    return tuple(dict.fromkeys(seat for one in disputes if not one.is_possible for seat in one.seats))


def check_groups(groups: Sequence[ClerkGroup], answers: Iterable[SeatAnswer]) -> list[tuple[ClerkGroup, str]]:
    """Return the groups that cannot be used, each with the reason, worded for the clerk."""
    seats = {claim.id: claim.seat for answer in answers for claim in answer.claims}
    found = []
    for group in groups:
        unknown = [one for one in group.ids if one not in seats]
        if unknown:
            found.append((group, f"{', '.join(unknown)} {'is' if len(unknown) == 1 else 'are'} not in the list"))
        elif len({seats[one] for one in group.ids}) < 2:
            found.append((group, f"{', '.join(group.ids) or 'an empty group'}: all claims of one member"))
    return found


# Pairs


@dataclass(frozen=True, slots=True)
class _PairResult:
    a: Claim
    b: Claim
    relation: Relation
    clerk: Relation | None
    coded: bool

    @property
    def pair(self) -> Pair:
        return frozenset((self.a.id, self.b.id))

    def format_override(self) -> str:
        if not self.coded or self.clerk in (None, self.relation):
            return ""
        return f'{self.a.id} "{self.a.answer}" and {self.b.id} "{self.b.answer}": {self.relation} by their values; the clerk said {self.clerk}'


def _clerk_relations(clerk: Iterable[ClerkGroup], claims: Mapping[str, Claim]) -> dict[Pair, Relation]:
    """Map each pair of the clerk's groups to its relation: that of the smallest group, then the most cautious one."""
    caution = ("agree", "depends", "conflict")
    found: dict[Pair, tuple[int, int, Relation]] = {}
    for group in clerk:
        ids = sorted(set(group.ids) & claims.keys())
        rank = (-len(ids), caution.index(group.relation), group.relation)
        for pair in map(frozenset, combinations(ids, 2)):
            found[pair] = max(rank, found.get(pair, rank))
    return {pair: rank[2] for pair, rank in found.items()}


def _compare_pair(a: Claim, b: Claim, clerk: Mapping[Pair, Relation]) -> _PairResult | None:
    """Return the relation of two claims, or None if nothing compares them.

    Code decides where the questions are equal, and by numbers and dates inside the clerk's agree and conflict groups.
    Different answers to equal questions that code cannot judge are a possible dispute if there is no clerk.
    """
    said = clerk.get(frozenset((a.id, b.id)))
    equal = question_key(a.question) == question_key(b.question)
    if not equal and said in (None, "depends"):
        return _PairResult(a, b, "depends", said, False) if said else None
    kind, value = compare_answers(a.answer, b.answer, (a.question, b.question))
    decided: Relation | None = value if equal or kind in ("number", "date") else None
    conditions = [name_key(one.holds_when or condition_of(one.answer, one.question)) for one in (a, b)]
    if all(conditions) and conditions[0] != conditions[1]:
        # Members word one condition in different ways: where the values are equal too, the clerk has read both.
        agree = said == "agree" and value == "agree"
        return _PairResult(a, b, "agree" if agree else "depends", said, True)
    if any(conditions) and not all(conditions):
        decided = _with_one_condition(decided, said)
    relation = decided or said
    if relation is None and equal and not clerk and _are_different(a, b):
        relation = "possible"
    return _PairResult(a, b, relation, said, decided is not None) if relation else None


def _are_different(a: Claim, b: Claim) -> bool:
    """Return whether two answers to one question differ in a way that code cannot judge. "Unknown" is no answer."""
    if any(parse_answer(one.answer, one.question) is None for one in (a, b)):
        return False
    is_decidable = has_comparable_values(a.answer, b.answer, (a.question, b.question))
    return not is_decidable and name_key(a.answer) != name_key(b.answer)


def _with_one_condition(decided: Relation | None, clerk: Relation | None) -> Relation | None:
    """Return what code decides if only one claim has a condition. Otherwise the clerk's relation applies.

    Different values are never an agreement: they are a possible dispute, unless the clerk says more.
    """
    if decided == "conflict":
        return None if clerk in ("conflict", "depends") else "possible"
    return None if clerk or decided is None else "depends"


def has_unlike_names(claims: Sequence[Claim]) -> bool:
    """Return whether two seats answer a question by names without a common word: the clerk may be wrong about them."""
    for a, b in combinations(claims, 2):
        if a.seat != b.seat and question_key(a.question) == question_key(b.question):
            words = [{word[:5] for word in name_key(one.answer).split()} for one in (a, b)]
            is_unknown = compare_answers(a.answer, b.answer, (a.question, b.question)) == ("name", None)
            if is_unknown and words[0].isdisjoint(words[1]):
                return True
    return False


# Questions

_DROPPED = frozenset(
    re.findall(
        r"\w+",
        "a an the is are was were be been being am do does did has have had will would here there now currently today really actually "
        "exactly please this that these those our we us you your i my me it its of in on at for and so what which how much many number "
        "amount just then",
    )
)
_RELATIONAL = frozenset(
    re.findall(r"\w+", "than to from into over under before after by versus vs per or without not no against between")
)
_MODALS = frozenset(re.findall(r"\w+", "should can could must may might when why who where"))
_SAME_WORDS = (
    (re.compile(r"\b(?:in |at |on )?(?:which|what) (?:year|date|month|day)\b"), "when"),
    (re.compile(r"\b(?:can|do|does|is|are|was|were|should|must|could|did|has|have|wo|would|will)n['’]?t\b"), "not"),
    (re.compile(r"\bcannot\b"), "can not"),
    (re.compile(r"(?<=\w)ense(?=s?\b|d\b)"), "ence"),  # license, licence
    (re.compile(r"(?<=\w\w)iz(?=e\b|es\b|ed\b|ing\b|ation)"), "is"),  # organize, organise
    (re.compile(r"\b(behavi|col|fav|fl?av|harb|hon|lab|neighb)our"), r"\1or"),
)
NO_PLURAL = frozenset(("https", "news", "windows"))  # not plurals
_ES_PLURAL = re.compile(r"(?:ss|x|zz|sh|[tnr]ch)es\Z")


def question_key(question: str) -> tuple[str, ...]:
    """Return a question for comparison: its stems in order, without question words, articles and auxiliary verbs.

    The order of at most two content words is ignored ("is sharding needed", "do we need sharding"); with more of them
    it may tell the subject from the object.
    """
    text = unicodedata.normalize("NFKC", question)
    text = re.sub(r"(?<=\w )A\b", "label_a", text).casefold()  # the A of "plan A" is no article
    for pattern, word in _SAME_WORDS:
        text = pattern.sub(word, text)
    stems = [stem(word) for word in re.findall(r"[\w+#%]+", text.replace("'s", "")) if word not in _DROPPED]
    if not stems:
        return (question.strip().casefold(),)
    lead = [word for word in stems if word in _MODALS]
    rest = [word for word in stems if word not in _MODALS]
    cut = next((n for n, word in enumerate(rest) if word in _RELATIONAL), len(rest))
    head = sorted(rest[:cut]) if cut <= 2 else rest[:cut]
    return (*sorted(lead), *head, *rest[cut:])


def stem(word: str) -> str:
    """Return the stem of an English word; "caching" and "caches" have the same stem."""
    word = singularize(word)
    for ending in ("ing", "ed", "e"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word


def singularize(word: str) -> str:
    if len(word) < 4 or not word.endswith("s") or word.endswith("ss") or word in NO_PLURAL:
        return word
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    return word[:-2] if _ES_PLURAL.search(word) else word[:-1]


# Groups and disputes


def _build_groups(
    claims: Mapping[str, Claim], decided: Mapping[Pair, _PairResult], clerk: Sequence[ClerkGroup]
) -> Iterator[Group]:
    """Yield the connected claims, in the order of their questions."""
    groups = []
    for part in connected(decided):
        mine = {pair: one for pair, one in decided.items() if pair <= part}
        members = tuple(claim for claim in claims.values() if claim.id in part)
        named = [group.question for group in clerk if group.question.strip() and part.issuperset(group.ids)]
        question = min(named or [claim.question for claim in members])
        relations = {pair: one.relation for pair, one in mine.items()}
        coded = frozenset(pair for pair, one in mine.items() if one.coded)
        groups.append(Group(question, members, relations, coded))
    yield from sorted(groups, key=lambda group: (group.question, sorted(claim.text for claim in group.claims)))


def _build_disputes(group: Group) -> Iterator[Dispute]:
    relation: Relation = "conflict" if group.pairs("conflict") else "possible"
    pairs = group.pairs(relation)
    if not pairs:
        return
    how = "possible" if relation == "possible" else "values" if pairs & group.coded else "clerk"
    sides = [_side(claim) for claim in group.claims if any(claim.id in pair for pair in pairs)]
    yield Dispute(group.question, tuple(sides), how, pairs)


def _side(claim: Claim) -> Side:
    return Side(claim.seat, claim.text, claim.answer, tuple(sorted(set(claim.sources))), claim.id)


def _sort_key(dispute: Dispute) -> tuple[bool, int, int, str, list[str]]:
    evidence = {number for side in dispute.positions for number in side.evidence}
    texts = sorted(side.claim for side in dispute.positions)
    return dispute.is_possible, -len(dispute.seats), -len(evidence), dispute.question, texts


# Markers of disagreement

MAX_MARKERS = 50  # per seat
MAX_SCANNED = 500  # markers read in one text
MAX_MARKED_CHARS = 300  # read after a marker
MIN_OVERLAP = 0.6  # of the smaller word set: the denied words or those of the claim
_MARKER = re.compile(
    r"(?<![\w'])(?:contrary to|I (?:\w+ly |would |must |have to ){0,2}(?:disagree with|push back on|dispute)|(?:this|that|which) (?:\w+ly )?contradicts)\b",
    re.IGNORECASE,
)
_QUOTED_OR_CODE = re.compile(
    r"```.*?(?:```|\Z)|`[^`\n]*`|^[ \t]*>[^\n]*|“[^“”\n]*”|\"[^\"\n]*\"", re.DOTALL | re.MULTILINE
)
_SENTENCE_START = re.compile(r"[.!?…。！？]\s|\n")
_OBJECT_END = re.compile(
    r"[,;:.!?—–\n]| - |\b(?:but|yet|however|because|since|while|whereas|although)\b", re.IGNORECASE
)
_NEGATED = re.compile(r"\b(?:not|never|no|nothing|cannot|hardly|if|whether|would)\b|n't\b", re.IGNORECASE)
_FILLER = frozenset(
    re.findall(
        r"\w+",
        "claim idea view notion belief popular common often say claimed argument opinion position other member people think all any some",
    )
)


def find_marked_disputes(answers: Sequence[SeatAnswer], agreed: set[Pair]) -> Iterator[Dispute]:
    """Yield a possible dispute for each claim that another seat explicitly denies, unless their claims agree."""
    claims = [claim for answer in answers for claim in answer.claims]
    for answer in answers:
        denied = {
            (sentence, words)
            for text in (answer.response, *(claim.text for claim in answer.claims))
            for sentence, words in _find_denials(text)
        }
        own = [claim.id for claim in answer.claims]
        for sentence, words in sorted(denied, key=lambda one: one[0])[:MAX_MARKERS]:
            for claim in claims:
                agrees = any({claim.id, one} in agreed for one in own)
                if claim.seat != answer.seat and not agrees and _is_about(words, claim):
                    sides = sorted((Side(answer.seat, sentence), _side(claim)), key=lambda side: side.seat)
                    yield Dispute(claim.question, tuple(sides), "possible")


def _find_denials(text: str) -> Iterator[tuple[str, frozenset[str]]]:
    """Yield the sentences with a marker, each with the stems of the words it denies."""
    plain = _QUOTED_OR_CODE.sub(lambda found: " " * len(found[0]), text)
    for found in islice(_MARKER.finditer(plain), MAX_SCANNED):
        begin = max(
            (one.end() for one in _SENTENCE_START.finditer(plain, max(0, found.start() - 400), found.start())),
            default=max(0, found.start() - 400),
        )
        if _NEGATED.search(plain, begin, found.start()):
            continue
        after = plain[found.end() : found.end() + MAX_MARKED_CHARS]
        end = _SENTENCE_START.search(after)
        sentence = " ".join(text[begin : found.end() + (end.start() + 1 if end else len(after))].split())
        stop = _OBJECT_END.search(after)
        words = _content_stems(after[: stop.start()] if stop else after)
        if words and not sentence.endswith("?"):
            yield sentence, words


def _content_stems(text: str) -> frozenset[str]:
    return frozenset(stem(word) for word in re.findall(r"\w+", text.casefold()) if word not in _DROPPED | _FILLER)


def _is_about(words: frozenset[str], claim: Claim) -> bool:
    said = _content_stems(f"{claim.question} {claim.answer} {claim.text}")
    shared = words & said
    return len(shared) >= 2 and len(shared) >= MIN_OVERLAP * min(len(words), len(said))
