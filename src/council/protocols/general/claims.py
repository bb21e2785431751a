"""Claims of the general protocol: topics, second-round moves, consensus and the ledger of claims."""

from __future__ import annotations

import math
import re
import unicodedata
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from council.similarity import content_words
from council.types import Json

MIN_GROUNDS_WORDS = 5  # minimum words of a concession with grounds, including the word CONCEDE


@dataclass(frozen=True, slots=True)
class Claim:
    """One claim of a seat. `sources` are verified numbers in the RESEARCH CONTEXT."""

    seat: str
    topic: str
    stance: str
    text: str
    confidence: float
    sources: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class SeatAnswer:
    """One seat's answer in a round."""

    seat: str
    response: str
    claims: tuple[Claim, ...] = ()
    confidence: float = 0.5


@dataclass(frozen=True, slots=True)
class Side:
    """One seat's position in a dispute. `evidence` are numbers in the RESEARCH CONTEXT."""

    seat: str
    claim: str
    stance: str = ""
    evidence: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Dispute:
    """A topic on which seats differ. `how` is declared, marker or possible."""

    topic: str
    positions: tuple[Side, ...]
    how: str

    @property
    def seats(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(side.seat for side in self.positions))

    @property
    def is_possible(self) -> bool:
        return self.how == "possible"

    def format_positions(self) -> str:
        """Return each seat's stance on one line."""
        return ", ".join(f"{side.seat} {side.stance}" for side in self.positions)

    def against(self, seat: str) -> tuple[Side, ...]:
        """Return the sides whose stance differs from the seat's."""
        own = {side.stance for side in self.positions if side.seat == seat}
        return tuple(side for side in self.positions if side.seat != seat and side.stance not in own)


@dataclass(frozen=True, slots=True)
class Move:
    """A seat's second-round answer to a dispute: its typed word and its paragraph."""

    seat: str
    topic: str
    word: str
    text: str
    confidence: float = 0.5  # in its current claim

    @property
    def is_weak(self) -> bool:
        """Whether it is a concession without grounds."""
        return self.word == "CONCEDE" and len(self.text.split()) < MIN_GROUNDS_WORDS


# Topics

ARTICLES = frozenset(("a", "an", "the"))
NO_PLURAL = frozenset(("https", "news", "windows"))  # not plurals
_ES_PLURAL = re.compile(r"(?:ss|x|zz|sh|[tnr]ch)es\Z")
_FILLER_WORDS = frozenset(  # words that say nothing about the topic
    re.findall(
        r"\w+",
        "all always any anyone argument assertion avoid belief believe cannot case claim common commonly d did do don "
        "everyone he here how i idea just ll m many me more most my never no nobody none nor not nothing notion often "
        "opinion others our people point popular position re recommendation s said say says she simply some statement "
        "suggestion t them they think thought us use used uses using ve very view we what who without you your",
    )
)
_NEGATION = re.compile(
    r"\bnot\b(?!\s+(?:only|just|merely|least)\b)|\bno\b(?!\s+(?:doubt|matter)\b)|n't\b"
    r"|\b(?:never|cannot|neither|nor|none|nobody|nothing|without)\b"
    r"|\b(?:avoid|reject|refus|oppos|delay|postpon|abandon)(?:e?s|ed?|ing)?\b",
    re.IGNORECASE,
)


def topic_key(topic: str) -> str:
    """Return a comparison key that ignores case, punctuation, articles and plural; C, C++ and C# stay different."""
    text = unicodedata.normalize("NFKC", topic).casefold()
    words = [word for word in "".join(map(_normalize_char, text)).split() if word.strip("#")]
    named = [word for word in words[:-1] if word not in ARTICLES] + words[-1:]  # keep the A of "vitamin A"
    return " ".join(map(singularize, named)) or topic.strip().casefold()


def singularize(word: str) -> str:
    if len(word) < 4 or not word.endswith("s") or word.endswith("ss") or word in NO_PLURAL:
        return word
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    return word[:-2] if _ES_PLURAL.search(word) else word[:-1]


def content_stems(text: str) -> frozenset[str]:
    """Return the stems of the content words; "caching" and "caches" have the same stem."""
    return frozenset(map(_stem, content_words(text) - _FILLER_WORDS))


def polarity(text: str) -> int:
    """Return -1 for an odd number of negations, else 1."""
    return -1 if len(_NEGATION.findall(text.replace("’", "'"))) % 2 else 1


def _stem(word: str) -> str:
    word = singularize(word)
    for ending in ("ing", "ed", "e"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word


@cache
def _normalize_char(char: str) -> str:
    """Replace punctuation by a space and drop apostrophes; keep currency and comparison symbols."""
    kind = unicodedata.category(char)
    if char in "'’ʼ" or kind == "Cf":
        return ""
    if char == "&":
        return " and "
    parts = kind[0] in "PZC" or kind == "Sk" or char in "|~"
    return " " if parts and char not in "#%" else char


# Second round

ANSWER_WORDS = ("CONCEDE", "NUANCE", "MAINTAIN")  # by precedence: the last one counts if a seat typed several
_FIRST_WORD = re.compile(r"\A[\W\d_]*([^\W\d_]+)")


def resolve_disputes(disputes: Sequence[Dispute], moves: Sequence[Move]) -> tuple[list[Dispute], list[Dispute]]:
    """Split into resolved and open disputes. A missing answer counts as MAINTAIN; possible disputes stay open."""
    resolved = [
        one for one in disputes if not one.is_possible and _is_resolved(one, words_by_seat(moves, topic_key(one.topic)))
    ]
    return resolved, [one for one in disputes if one not in resolved]


def words_by_seat(moves: Iterable[Move], key: str) -> dict[str, str]:
    """Map each seat to its word on a topic; any other word counts as MAINTAIN."""
    found: dict[str, str] = {}
    for move in moves:
        if topic_key(move.topic) == key:
            word = move.word if move.word in ANSWER_WORDS else "MAINTAIN"
            found[move.seat] = max(word, found.get(move.seat, word), key=ANSWER_WORDS.index)
    return found


def _is_resolved(dispute: Dispute, words: Mapping[str, str]) -> bool:
    """Return whether the seats that did not concede agree, or all seats answered CONCEDE or NUANCE."""
    said = [words.get(seat, "MAINTAIN") for seat in dispute.seats]
    left = {side.stance for side in dispute.positions if words.get(side.seat) != "CONCEDE"}
    return ("CONCEDE" in said and len(left) <= 1) or (bool(said) and "MAINTAIN" not in said)


def starts_with_word(word: str, text: str) -> bool:
    """Return whether the paragraph starts with the word; later occurrences ("I will not concede") do not count."""
    first = _FIRST_WORD.match(text)
    return first is not None and first[1].casefold() == word.strip().casefold()


# Consensus and ledger

OPPOSITE_STANCE = {"supports": "opposes", "opposes": "supports"}
MIN_CONSENSUS_WEIGHT = 0.6  # share of the members' total confidence


def align_topics(answers: Sequence[SeatAnswer], same: Sequence[tuple[str, str]]) -> list[SeatAnswer]:
    """Rename each topic to the first one of its group. `same` are the clerk's pairs of existing topics."""
    written: dict[str, str] = {}
    for claim in _iter_claims(answers):
        written.setdefault(topic_key(claim.topic), claim.topic)
    home = _group_topics(list(written), [(topic_key(a), topic_key(b)) for a, b in same])
    return [
        replace(answer, claims=tuple(replace(one, topic=written[home[topic_key(one.topic)]]) for one in answer.claims))
        for answer in answers
    ]


def _group_topics(keys: Sequence[str], pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Map each topic to the first one of its group; ignore pairs with an unknown or empty topic."""
    members = {key: [key] for key in keys}
    for a, b in pairs:
        if a and b and a in members and b in members and members[a] is not members[b]:
            less, more = sorted((members[a], members[b]), key=len)
            more += less
            members.update(dict.fromkeys(less, more))
    place = {key: n for n, key in enumerate(keys)}
    first = {id(group): min(group, key=place.__getitem__) for group in members.values()}
    return {key: first[id(group)] for key, group in members.items()}


def claims_by_topic(answers: Iterable[SeatAnswer]) -> dict[str, list[Claim]]:
    """Group the claims that have a topic."""
    found: dict[str, list[Claim]] = defaultdict(list)
    for claim in _iter_claims(answers):
        if key := topic_key(claim.topic):
            found[key].append(claim)
    return dict(found)


def stances_by_seat(claims: Iterable[Claim]) -> dict[str, str]:
    """Map each seat to its stance; omit seats that declare both stances or neither."""
    held: dict[str, set[str]] = defaultdict(set)
    for claim in claims:
        if claim.stance in OPPOSITE_STANCE:
            held[claim.seat].add(claim.stance)
    return {seat: stances.pop() for seat, stances in held.items() if len(stances) == 1}


def strongest_claim(claims: Iterable[Claim]) -> Claim:
    """Return the claim with the most sources, then the highest confidence, then the first."""
    return max(claims, key=lambda claim: (len(set(claim.sources)), _clamp_confidence(claim)))


def find_consensus(answers: Sequence[SeatAnswer], members: int) -> list[Json]:
    """Return the claims that at least two seats make with enough confidence, best evidence first."""
    points = [
        point
        for claims in claims_by_topic(answers).values()
        for stance in dict.fromkeys(claim.stance for claim in claims)
        if (point := _consensus_point(_claims_with_stance(claims, stance), members))
    ]
    return sorted(points, key=lambda point: (-len(point["sources"]), -point["weight"]))


def _claims_with_stance(claims: Sequence[Claim], stance: str) -> list[Claim]:
    stand = stances_by_seat(claims)
    return [one for one in claims if one.stance == stance and (stance not in OPPOSITE_STANCE or one.seat in stand)]


def _consensus_point(claims: Sequence[Claim], members: int) -> Json | None:
    sure: dict[str, float] = defaultdict(float)
    for claim in claims:
        sure[claim.seat] = max(sure[claim.seat], _clamp_confidence(claim))
    weight = round(math.fsum(sure.values()) / max(members, 1), 3)
    if len(sure) < 2 or weight < MIN_CONSENSUS_WEIGHT:
        return None
    best = strongest_claim(claims)
    return {
        "topic": best.topic,
        "stance": best.stance,
        "claim": best.text,
        "seats": list(sure),
        "weight": weight,
        "sources": _source_numbers(claims),
    }


def claim_ledger(
    answers: Sequence[SeatAnswer],
    disputes: Sequence[Dispute],
    resolved_topics: Collection[str],
    moves: Sequence[Move] = (),
) -> list[Json]:
    """Return one row per topic and stance with its status; `moves` say who conceded or narrowed it."""
    resolved = {topic_key(topic) for topic in resolved_topics}
    fights = {topic_key(one.topic): one for one in disputes if not one.is_possible}
    rows = _group_claims(answers)
    qualified = {key for key, stance, _ in rows if stance == "qualifies"}
    return [
        _ledger_row(claims, fights.get(key), words_by_seat(moves, key), key in resolved, key in qualified)
        for (key, _, _), claims in rows.items()
    ]


def _group_claims(answers: Iterable[SeatAnswer]) -> dict[tuple[str, str, str], list[Claim]]:
    found: dict[tuple[str, str, str], list[Claim]] = defaultdict(list)
    for claim in _iter_claims(answers):
        key = topic_key(claim.topic)
        found[key, claim.stance, "" if key else topic_key(claim.text)].append(claim)
    return found


def _ledger_row(
    claims: Sequence[Claim], fight: Dispute | None, words: Mapping[str, str], resolved: bool, qualified: bool
) -> Json:
    """Build a row. A claim that all its seats conceded counts as contradicted, even in a resolved dispute."""
    best, by = strongest_claim(claims), list(dict.fromkeys(claim.seat for claim in claims))
    sides = fight.positions if fight and best.stance in OPPOSITE_STANCE else ()
    other = [side.seat for side in sides if side.stance != best.stance]
    conceded = [side.seat for side in sides if side.stance == best.stance and words.get(side.seat) == "CONCEDE"]
    holding, given_up = [seat for seat in by if seat not in conceded], set(by) <= set(conceded)
    against = [seat for seat in other if words.get(seat) != "CONCEDE"] or (other if given_up else [])
    narrowed = bool(sides) and any(words.get(seat) == "NUANCE" for seat in by)
    row = {"claim": best.text, "topic": best.topic, "by": by, "sources": _source_numbers(claims), "conceded": conceded}
    row["against"] = against if given_up or not resolved else []
    row["status"] = (
        "contradicted" if row["against"]
        else "qualified" if best.stance in OPPOSITE_STANCE and (qualified or narrowed)
        else "supported" if row["sources"] or len(holding) > 1
        else "unverified"
    )  # fmt: skip
    return row


def _iter_claims(answers: Iterable[SeatAnswer]) -> Iterable[Claim]:
    return (claim for answer in answers for claim in answer.claims)


def _source_numbers(claims: Iterable[Claim]) -> list[int]:
    return sorted({number for claim in claims for number in claim.sources})


def _clamp_confidence(claim: Claim) -> float:
    return min(1.0, max(0.0, claim.confidence))


def compute_general_confidence(
    consensus: Sequence[Any], persisting: Sequence[Dispute], answered: int, asked: int, sourced: bool
) -> str:
    """Return the confidence of a general answer: open disputes decide first, then consensus, then sources."""
    if any(not one.is_possible for one in persisting):
        return "CONTESTED"
    if not consensus or answered < 2:
        return "LOW"
    return "HIGH" if sourced and answered == asked and not persisting else "MEDIUM"
