"""Detection and resolution of disputes. The cases are in disputes.toml."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from council.protocols.general.claims import (
    Claim,
    Dispute,
    Move,
    SeatAnswer,
    Side,
    align_topics,
    resolve_disputes,
    starts_with_word,
)
from council.protocols.general.disputes import disputing_seats, find_disputes

CASES: list[dict[str, Any]] = tomllib.loads((Path(__file__).parent / "disputes.toml").read_text(encoding="utf-8"))[
    "case"
]
STANCES = {"+": "supports", "-": "opposes", "~": "qualifies"}


def seat_answer(seat: str, lines: Sequence[str]) -> SeatAnswer:
    claims, response = [], []
    for line in lines:
        if found := re.match(r"([-+~]) ([^:]*): (.*)", line, re.DOTALL):
            mark, topic, text = found.groups()
            numbers = tuple(int(n) for n in re.findall(r"\[(\d+)\]", text))
            claims.append(Claim(seat, topic.strip(), STANCES[mark], text, 0.8, numbers))
        else:
            response.append(line)
    return SeatAnswer(seat, "\n\n".join(response), tuple(claims))


def align_case(case: dict[str, Any]) -> list[SeatAnswer]:
    said = {seat: lines for seat, lines in case.items() if seat not in ("id", "same", "disputes")}
    return align_topics(
        [seat_answer(seat, lines) for seat, lines in said.items()], [(a, b) for a, b in case.get("same", [])]
    )


def summarise(disputes: Sequence[Dispute]) -> list[list[str]]:
    return [[one.topic, " ".join(one.seats), one.how] for one in disputes]


# Finding


@pytest.mark.behaviour("30-disputes-declared", "30-disputes-markers", "30-disputes-possible", "30-qualifies", "30-topics-aligned")  # fmt: skip
@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_cases_from_disputes_toml(case: dict[str, Any]) -> None:
    found = find_disputes(align_case(case))
    assert sorted(summarise(found)) == sorted(case["disputes"])
    assert all(len(one.seats) > 1 and all(side.claim for side in one.positions) for one in found)


@pytest.mark.behaviour("30-disputes-cap")
def test_declared_come_before_marked_and_marked_before_possible() -> None:
    voices = align_case(
        {
            "generalist": ["+ Redis: Sessions belong in Redis.", "+ zebras: Yes."],
            "skeptic": ["- zebras: No.", "I disagree with Redis."],
            "domain_expert": ["I recommend a small monolith in Python with one database."],
            "economist": ["The best approach is a queue with several workers and one store for events."],
        }
    )
    found = find_disputes(voices)
    assert [one.how for one in found] == ["declared", "marker", "possible"]
    assert [one.is_possible for one in found] == [False, False, True]


@pytest.mark.behaviour("30-disputes-cap")
def test_of_more_than_ten_the_declared_ones_are_kept() -> None:
    many = [f"t{n:02}" for n in range(12)]
    found = find_disputes(
        [
            *(seat_answer(name, [f"{mark} {topic}: x" for topic in many]) for name, mark in (("a", "+"), ("b", "-"))),
            *(SeatAnswer(f"v{n}", f"I recommend the {'xyz'[n] * 5} road to {n}{n}{n} people now.") for n in range(3)),
        ]
    )
    assert len(found) == 10
    assert {one.how for one in found} == {"declared"}


@pytest.mark.behaviour("30-disputes-declared")
def test_a_position_has_the_best_evidenced_claim_and_all_evidence_of_its_seat() -> None:
    claims = (
        Claim("generalist", "Redis", "supports", "It is fast.", 0.9, (3,)),
        Claim("generalist", "Redis", "supports", "It is used everywhere.", 0.4, (1, 2)),
        Claim("generalist", "Redis", "qualifies", "With a log.", 0.9, (4, 5, 6)),
    )
    (found,) = find_disputes(
        [SeatAnswer("generalist", "", claims), seat_answer("skeptic", ["- Redis: It forgets. [7]"])]
    )
    assert found.positions == (
        Side("generalist", "It is used everywhere.", "supports", (1, 2, 3)),
        Side("skeptic", "It forgets. [7]", "opposes", (7,)),
    )


@pytest.mark.behaviour("30-disputes-markers")
def test_the_sides_of_a_marker_are_its_sentence_and_the_claim_it_denies() -> None:
    (found,) = find_disputes(
        [
            seat_answer("generalist", ["+ Redis: Sessions belong in Redis. [2]", "+ cost: Redis is cheap."]),
            seat_answer("skeptic", ["+ cost: Yes.", "Well. I **disagree** with\nRedis for sessions [9]. It forgets."]),
        ]
    )
    assert found.positions == (
        Side("generalist", "Sessions belong in Redis. [2]", "supports", (2,)),
        Side("skeptic", "I **disagree** with Redis for sessions [9].", "opposes"),
    )


@pytest.mark.behaviour("30-disputes-markers")
def test_a_marker_matches_the_topic_with_most_shared_words() -> None:
    voices = [
        seat_answer("generalist", ["+ Redis: Redis is durable.", "+ Redis sessions: Sessions belong in Redis."]),
        seat_answer("skeptic", ["I disagree with Redis for user sessions."]),
    ]
    assert summarise(find_disputes(voices)) == [["Redis sessions", "generalist skeptic", "marker"]]


# Second round and resolution


def dispute(topic: str, *sides: str, how: str = "declared") -> Dispute:
    """Sides as "+generalist" and "-skeptic"."""
    return Dispute(topic, tuple(Side(side[1:], "x", STANCES.get(side[0], "")) for side in sides), how)


def moves(topic: str, **words: str) -> list[Move]:
    return [Move(seat, topic, word, f"{word} x") for seat, word in words.items()]


@pytest.mark.behaviour("30-round2-seats")
def test_only_seats_in_declared_or_marked_disputes_get_a_second_round() -> None:
    disputes = [
        dispute("a", "+skeptic", "-generalist"),
        dispute("b", "+domain_expert", "-skeptic", how="marker"),
        dispute("c", "?economist", "?lawyer", how="possible"),
    ]
    assert disputing_seats(disputes) == ("skeptic", "generalist", "domain_expert")
    assert disputing_seats(disputes[2:]) == ()


ENDS = {
    "no seat answers": (("+a", "-b"), {}, False),
    "both maintain": (("+a", "-b"), {"a": "MAINTAIN", "b": "MAINTAIN"}, False),
    "one concedes, the other maintains": (("+a", "-b"), {"a": "CONCEDE", "b": "MAINTAIN"}, True),
    "one concedes, the other is silent": (("+a", "-b"), {"a": "CONCEDE"}, True),
    "both concede": (("+a", "-b"), {"a": "CONCEDE", "b": "CONCEDE"}, True),
    "one nuances": (("+a", "-b"), {"a": "NUANCE", "b": "MAINTAIN"}, False),
    "one nuances, the other is silent": (("+a", "-b"), {"a": "NUANCE"}, False),
    "both nuance": (("+a", "-b"), {"a": "NUANCE", "b": "NUANCE"}, True),
    "one nuances, one concedes": (("+a", "-b"), {"a": "NUANCE", "b": "CONCEDE"}, True),
    "one of the two concedes to the one": (
        ("+a", "+b", "-c"),
        {"a": "CONCEDE", "b": "MAINTAIN", "c": "MAINTAIN"},
        False,
    ),
    "the one concedes to the two": (("+a", "+b", "-c"), {"c": "CONCEDE"}, True),
    "the two concede to the one": (("+a", "+b", "-c"), {"a": "CONCEDE", "b": "CONCEDE"}, True),
    "all three nuance": (("+a", "+b", "-c"), {"a": "NUANCE", "b": "NUANCE", "c": "NUANCE"}, True),
    "two of three nuance": (("+a", "+b", "-c"), {"a": "NUANCE", "c": "NUANCE"}, False),
    "another seat concedes": (("+a", "-b"), {"z": "CONCEDE"}, False),
    "an unknown word": (("+a", "-b"), {"a": "AGREE", "b": "NUANCE"}, False),
}


@pytest.mark.behaviour("30-settled-by-words")
@pytest.mark.parametrize(("sides", "words", "ended"), ENDS.values(), ids=list(ENDS))
def test_a_dispute_is_resolved_by_concession_or_when_no_seat_maintains(sides: tuple[str, ...], words: dict[str, str], ended: bool) -> None:  # fmt: skip
    one = dispute("Redis", *sides)
    assert resolve_disputes([one], moves("Redis", **words)) == (([one], []) if ended else ([], [one]))


@pytest.mark.behaviour("30-settled-by-words")
def test_a_word_on_one_topic_resolves_no_other() -> None:
    one, other = dispute("Redis", "+a", "-b"), dispute("cost", "+a", "-b")
    assert resolve_disputes([one, other], moves("the REDIS!", a="CONCEDE")) == ([one], [other])


@pytest.mark.behaviour("30-settled-by-words")
def test_a_seat_that_concedes_and_maintains_counts_as_maintaining() -> None:
    one = dispute("Redis", "+a", "-b")
    for words in (("CONCEDE", "MAINTAIN"), ("MAINTAIN", "CONCEDE")):
        assert resolve_disputes([one], [Move("a", "Redis", word, "") for word in words]) == ([], [one])


@pytest.mark.behaviour("30-disputes-possible")
def test_a_possible_dispute_stays_possible() -> None:
    one = dispute("Redis", "?a", "?b", how="possible")
    assert resolve_disputes([one], moves("Redis", a="CONCEDE", b="CONCEDE")) == ([], [one])


@pytest.mark.behaviour("30-settled-by-words")
def test_words_inside_a_paragraph_resolve_nothing() -> None:
    one = dispute("Redis", "+a", "-b")
    assert resolve_disputes([one], [Move("a", "Redis", "MAINTAIN", "CONCEDE? I concede nothing.")]) == ([], [one])


@pytest.mark.behaviour("30-settled-by-words")
@pytest.mark.parametrize(
    ("word", "text", "agrees"),
    [
        ("CONCEDE", "CONCEDE. Source 2 shows it.", True),
        ("CONCEDE", "concede: I was wrong.", True),
        ("NUANCE", "**NUANCE** — below 50 users.", True),
        ("NUANCE", "- _Nuance_, below 50 users.", True),
        ("MAINTAIN", "“MAINTAIN”: it holds.", True),
        ("MAINTAIN", "## 1. [MAINTAIN] It holds.", True),
        ("MAINTAIN", "\n\n> `MAINTAIN` it holds.", True),
        ("concede ", "CONCEDE.", True),
        ("CONCEDE", "I will not concede.", False),
        ("CONCEDE", "I concede.", False),
        ("CONCEDE", "MAINTAIN. I will not concede.", False),
        ("MAINTAIN", "MAINTAINING it is hard.", False),
        ("CONCEDE", "Not CONCEDE.", False),
        ("CONCEDE", "CONCEDED.", False),
        ("CONCEDE", "", False),
        ("", "", False),
        ("", "CONCEDE", False),
    ],
)
def test_a_paragraph_starts_with_its_word(word: str, text: str, agrees: bool) -> None:
    assert starts_with_word(word, text) is agrees


# Properties

SEATS = ("a", "b", "c", "d")
PIECES = (
    "I disagree with ", "contrary to ", "unlike ", "This contradicts ", "that is wrong", "I recommend ", "not ", "Redis", "cost",
    "“", "”", '"', "'", "`", "```", "> ", ". ", "? ", ", ", "\n", "\n\n", "- ", "**", "\0", "é", "if ", "because ", "the best approach ",
)  # fmt: skip
TEXT = st.one_of(st.text(max_size=60), st.lists(st.sampled_from(PIECES), max_size=20).map("".join))
TOPIC = st.one_of(st.sampled_from(["Redis", "redis", "the cost", "costs", "", "?", "C++"]), TEXT)


@st.composite
def tables(draw: st.DrawFn) -> list[SeatAnswer]:
    voices = []
    for seat in draw(st.lists(st.sampled_from(SEATS), unique=True)):
        claim = st.builds(
            Claim,
            st.just(seat), TOPIC, st.sampled_from(["supports", "opposes", "qualifies", "?"]), TEXT, st.floats(),
            st.lists(st.integers(1, 9), max_size=3).map(tuple),
        )  # fmt: skip
        voices.append(SeatAnswer(seat, draw(TEXT), tuple(draw(st.lists(claim, max_size=5)))))
    return voices


PAIRS = st.lists(st.tuples(TOPIC, TOPIC), max_size=4)


def as_set(disputes: Sequence[Dispute]) -> set[tuple[str, frozenset[str], str]]:
    return {(one.topic, frozenset(one.seats), one.how) for one in disputes}


@pytest.mark.behaviour("30-disputes-any-order")
@settings(max_examples=150, deadline=None)
@given(tables(), PAIRS, st.randoms())
def test_the_order_of_the_seats_changes_no_dispute(
    voices: list[SeatAnswer], same: list[tuple[str, str]], chance: Any
) -> None:
    voices = align_topics(voices, same)
    mixed = chance.sample(voices, len(voices))
    found = find_disputes(voices)
    assert as_set(find_disputes(mixed)) == as_set(found)
    assert len(found) <= 10
    seats = [one.seat for one in voices]
    for one in found:
        assert len(one.seats) > 1
        assert len(one.positions) == len(one.seats)
        assert one.how == "possible" or list(one.seats) == sorted(one.seats, key=seats.index)
    resolved, persisting = resolve_disputes(found, [])
    assert (resolved, persisting) == ([], found)


@settings(max_examples=100, deadline=None)
@given(TEXT, TEXT)
def test_any_word_and_text_can_be_compared(word: str, text: str) -> None:
    assert starts_with_word(word, text) in (True, False)


LONG = 300_000  # for each of three seats
NASTY = {
    "one long word": "x" * LONG,
    "markers": "I disagree with Redis sessions in this and that place. " * (LONG // 55),
    "one sentence of markers": "I disagree with Redis and " * (LONG // 26),
    "adverbs": "I " + "really " * (LONG // 7) + "disagree with Redis",
    "open quotes": "“" * LONG,
    "open single quotes": " ‘a’b" * (LONG // 5),
    "straight quotes": ' "a' * (LONG // 3),
    "backticks": "`\n" * (LONG // 2),
    "fences": "```a" * (LONG // 4),
    "white space": " " * LONG,
    "line ends": "\n" * LONG,
    "full stops": ". " * (LONG // 2),
    "dots without an end": "." * LONG,
    "quoted lines": "> I disagree with Redis\n" * (LONG // 24),
    "negations": "not n't no never " * (LONG // 17),
    "clauses": "contrary to Redis, and, but, so, " * (LONG // 33),
}


@pytest.mark.behaviour("30-disputes-long-texts")
@pytest.mark.parametrize("text", NASTY.values(), ids=list(NASTY))
def test_a_megabyte_is_read_in_linear_time(text: str) -> None:
    """Guard against quadratic run time."""
    claims = tuple(Claim("a", f"Redis {n}", "supports", "Sessions belong in Redis.", 0.5) for n in range(30))
    voices = align_topics([SeatAnswer("a", text, claims), SeatAnswer("b", text), SeatAnswer("c", text)], [])
    assert all(one.how in ("marker", "possible") for one in find_disputes(voices))


@pytest.mark.behaviour("30-disputes-long-texts")
def test_thousands_of_claims_are_compared() -> None:
    claims = [[Claim(seat, f"topic {n}", stance, "x" * 40, 0.5) for n in range(1_500)] for seat, stance in (("a", "supports"), ("b", "opposes"))]  # fmt: skip
    same = [(f"topic {n}", f"topic {n + 1}") for n in range(1_499)]
    text = "I disagree with topic 7. " * 100
    voices = [SeatAnswer("a", "", tuple(claims[0])), SeatAnswer("b", "", tuple(claims[1])), SeatAnswer("c", text)]
    assert len(find_disputes(voices)) == 10
    assert [one.topic for one in find_disputes(align_topics(voices, same))] == ["topic 0"]
