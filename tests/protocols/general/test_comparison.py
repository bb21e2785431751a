"""Comparison of claims: hand-made pairs, groups of the clerk, conditions and markers. The pairs are in tests/data."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from council.protocols.general.claims import Claim, Dispute, Relation, SeatAnswer, find_consensus
from council.protocols.general.comparison import (
    ClerkGroup,
    Comparison,
    check_groups,
    compare_claims,
    disputing_seats,
    has_unlike_names,
    question_key,
    singularize,
)
from tests.paths import TESTS

SETS = ("claim_pairs", "claim_pairs_holdout")
PAIRS: dict[str, list[dict[str, Any]]] = {
    name: tomllib.loads((TESTS / "data" / f"{name}.toml").read_text(encoding="utf-8"))["pair"] for name in SETS
}
EVERY_PAIR = [pair for pairs in PAIRS.values() for pair in pairs]
OUTCOME = {"conflict": "dispute", "agree": "consensus", "depends": "qualified", "apart": "nothing"}


def pair_id(pair: dict[str, Any]) -> str:
    return f"{pair['truth']}: {pair['a'][0]} {pair['a'][1]} / {pair['b'][1]}"


def seats_of(*rows: Sequence[str], response: str = "") -> list[SeatAnswer]:
    """One seat per row of [question, answer, sentence, condition]."""
    return [
        SeatAnswer(f"seat{n}", response, (Claim(f"c{n}", f"seat{n}", *row, confidence=0.8),))
        for n, row in enumerate(rows, 1)
    ]


def clerk(relation: Relation, *ids: str) -> ClerkGroup:
    return ClerkGroup("", ids or ("c1", "c2"), relation)


def outcome(found: Comparison) -> str:
    if find_consensus(found.groups, {}, found.contested):
        assert not found.disputes
        return "consensus"
    if found.disputes:
        return "possible" if all(one.is_possible for one in found.disputes) else "dispute"
    return "qualified" if found.groups else "nothing"


def outcome_of(pair: dict[str, Any], relation: Relation | None) -> str:
    return outcome(compare_claims(seats_of(pair["a"], pair["b"]), [clerk(relation)] if relation else []))


# Pairs by hand


def test_the_pairs_are_enough_and_half_of_them_are_harmless() -> None:
    assert len(EVERY_PAIR) >= 60
    assert len(PAIRS["claim_pairs_holdout"]) * 3 >= len(EVERY_PAIR) - 3
    assert sum(pair["truth"] != "conflict" for pair in EVERY_PAIR) * 2 >= len(EVERY_PAIR)


ANSWER_PAIRS: list[dict[str, str]] = json.loads((TESTS / "data" / "answer_pairs.json").read_text(encoding="utf-8"))
WITHOUT_CLERK = {
    "conflict": ("dispute", "possible", "qualified"),
    "agree": ("consensus", "possible", "qualified", "nothing"),
    "open": ("possible",),  # only the subject decides: nothing is claimed, and nothing is silent
}


@pytest.mark.behaviour("30-never-silent", "30-values-decide")
@pytest.mark.parametrize("pair", ANSWER_PAIRS, ids=lambda pair: f"{pair['truth']}: {pair['a']} / {pair['b']}")
def test_answers_of_others_to_one_question_are_never_decided_wrongly_without_a_clerk(pair: dict[str, str]) -> None:
    rows = [[pair["question"], pair[name], pair[f"sentence_{name}"], ""] for name in "ab"]
    assert outcome(compare_claims(seats_of(*rows))) in WITHOUT_CLERK[pair["truth"]]


@pytest.mark.behaviour("30-claims-compared")
@pytest.mark.parametrize("pair", EVERY_PAIR, ids=pair_id)
def test_with_a_clerk_that_answers_right_every_pair_is_right(pair: dict[str, Any]) -> None:
    relation = None if pair["truth"] == "apart" else pair["truth"]
    assert outcome_of(pair, relation) == OUTCOME[pair["truth"]]


@pytest.mark.behaviour("30-uncompared-is-no-consensus")
@pytest.mark.parametrize("pair", [pair for pair in EVERY_PAIR if pair["truth"] != "agree"], ids=pair_id)
def test_without_a_clerk_only_claims_that_agree_are_a_consensus(pair: dict[str, Any]) -> None:
    assert outcome_of(pair, None) != "consensus"


@pytest.mark.behaviour("30-values-decide")
@pytest.mark.parametrize("name", SETS)
def test_without_a_clerk_most_contradictions_with_comparable_values_are_found(name: str) -> None:
    comparable = [pair for pair in PAIRS[name] if pair.get("comparable")]
    found = [pair for pair in comparable if outcome_of(pair, None) in ("dispute", "possible")]
    assert len(found) / len(comparable) >= 0.85


@pytest.mark.behaviour("30-values-decide")
@pytest.mark.parametrize("name", SETS)
def test_without_a_clerk_no_harmless_pair_is_a_dispute(name: str) -> None:
    harmless = [pair for pair in PAIRS[name] if pair["truth"] != "conflict"]
    assert [pair_id(pair) for pair in harmless if outcome_of(pair, None) == "dispute"] == []
    possible = [pair_id(pair) for pair in harmless if outcome_of(pair, None) == "possible"]
    assert len(possible) <= 0.1 * len(harmless)  # names that only a clerk can compare


@pytest.mark.behaviour("30-values-decide")
@pytest.mark.parametrize(
    "pair",
    [
        pair
        for pair in EVERY_PAIR
        if pair.get("comparable")
        and (pair["kind"] not in ("yes/no", "conditions") or question_key(pair["a"][0]) == question_key(pair["b"][0]))
    ],
    ids=pair_id,
)
def test_different_values_are_found_even_if_the_clerk_says_that_they_agree(pair: dict[str, Any]) -> None:
    expected = "possible" if pair["b"][3] else "dispute"
    assert outcome_of(pair, "agree") == expected


# Who decides

TPS = "How many tps does Postgres sustain here?"
LOAD = "What load can Postgres take?"


@pytest.mark.behaviour("30-values-decide")
@pytest.mark.parametrize(
    ("a", "b", "relation", "expected"),
    [
        ((TPS, "20k"), (TPS, "5k"), "depends", "dispute"),
        ((TPS, "20k"), (LOAD, "5k"), "depends", "qualified"),
        ((TPS, "20k"), (LOAD, "5k"), "agree", "dispute"),
        ((TPS, "20k"), (LOAD, "20,000"), "conflict", "consensus"),
        ((TPS, "20k"), (LOAD, "5k"), None, "nothing"),
        (("Is it safe?", "yes"), ("Is it risky?", "yes"), "conflict", "dispute"),
        (("Is it safe?", "yes"), ("Is it risky?", "no"), "agree", "consensus"),
        (("Is it safe?", "yes"), ("Is it safe?", "yes"), "conflict", "consensus"),
        (("Which store?", "Redis"), ("Which store?", "Postgres"), "conflict", "dispute"),
        (("Which store?", "Redis"), ("Which store?", "Postgres"), None, "possible"),
        (("Which store?", "Redis"), ("Which store?", "Valkey or Redis"), "agree", "consensus"),
        ((TPS, "it depends"), (TPS, "5k"), None, "nothing"),
    ],
)
def test_who_decides(a: tuple[str, str], b: tuple[str, str], relation: Relation | None, expected: str) -> None:
    rows = [(*one, f"{one[1]}.", "") for one in (a, b)]
    assert outcome(compare_claims(seats_of(*rows), [clerk(relation)] if relation else [])) == expected


@pytest.mark.behaviour("30-values-decide")
def test_an_override_is_noted() -> None:
    found = compare_claims(seats_of((TPS, "20k", "x", ""), (TPS, "5k", "y", "")), [clerk("agree")])
    assert found.overrides == ('c1 "20k" and c2 "5k": conflict by their values; the clerk said agree',)
    assert [one.how for one in found.disputes] == ["values"]


@pytest.mark.behaviour("30-conditions")
@pytest.mark.parametrize(
    ("answers", "conditions", "relation", "expected"),
    [
        (("20k", "5k"), ("on SSDs", "on disks"), None, "qualified"),
        (("20k", "5k"), ("on SSDs", "on disks"), "agree", "qualified"),
        (("20k", "20k"), ("on SSDs", "on disks"), None, "qualified"),
        (("20k", "5k"), ("on SSDs", "On SSDs."), None, "dispute"),
        (("20k", "5k"), ("on SSDs", ""), None, "possible"),
        (("20k", "5k"), ("on SSDs", ""), "agree", "possible"),
        (("20k", "5k"), ("on SSDs", ""), "conflict", "dispute"),
        (("20k", "5k"), ("on SSDs", ""), "depends", "qualified"),
        (("20k", "20k"), ("on SSDs", ""), None, "qualified"),
        (("20k", "20k"), ("on SSDs", ""), "agree", "consensus"),
        (("yes, if it grows", "no"), ("", ""), None, "possible"),
        (("yes, if it grows", "no, if it shrinks"), ("", ""), None, "qualified"),
    ],
)
def test_conditions(answers: tuple[str, str], conditions: tuple[str, str], relation: Relation | None, expected: str) -> None:  # fmt: skip
    rows = [(TPS, answer, f"{answer}!", when) for answer, when in zip(answers, conditions, strict=True)]
    assert outcome(compare_claims(seats_of(*rows), [clerk(relation)] if relation else [])) == expected


@pytest.mark.behaviour("30-claims-compared")
def test_a_dispute_has_the_question_and_each_seats_own_answer_sentence_and_evidence() -> None:
    voices = seats_of(
        (TPS, "20k", "It takes 20k.", ""), (TPS, "5k", "It takes 5k.", ""), (TPS, "about 20k", "So 20k.", "")
    )
    voices[1] = replace(voices[1], claims=(replace(voices[1].claims[0], sources=(3, 1)),))
    (dispute,) = compare_claims(voices).disputes
    assert dispute.question == TPS
    assert [(side.seat, side.answer, side.claim, side.evidence) for side in dispute.positions] == [
        ("seat1", "20k", "It takes 20k.", ()), ("seat2", "5k", "It takes 5k.", (1, 3)), ("seat3", "about 20k", "So 20k.", ()),
    ]  # fmt: skip
    assert [side.seat for side in dispute.against("seat2")] == ["seat1", "seat3"]
    assert [side.seat for side in dispute.against("seat1")] == ["seat2"]


@pytest.mark.behaviour("30-claims-compared")
def test_two_of_three_on_one_side_of_a_dispute_are_no_consensus() -> None:
    found = compare_claims(seats_of((TPS, "20k", "a", ""), (TPS, "20k", "b", ""), (TPS, "5k", "c", "")))
    assert find_consensus(found.groups, {}) == []


@pytest.mark.behaviour("30-uncompared-is-no-consensus")
def test_claims_that_were_only_compared_through_a_third_one_do_not_form_one_point() -> None:
    rows = [(f"Question {n}?", name, f"{name}.", "") for n, name in enumerate(("Redis", "a cache", "Valkey"))]
    found = compare_claims(seats_of(*rows), [clerk("agree", "c1", "c2"), clerk("agree", "c2", "c3")])
    assert [point["seats"] for point in find_consensus(found.groups, {})] == [["seat1", "seat2"], ["seat2", "seat3"]]


@pytest.mark.behaviour("30-claims-compared")
def test_of_two_relations_of_a_pair_the_more_cautious_one_counts() -> None:
    voices = seats_of(("Which store?", "Redis", "a", ""), ("What store?", "Postgres", "b", ""))
    assert outcome(compare_claims(voices, [clerk("agree"), clerk("conflict")])) == "dispute"
    assert outcome(compare_claims(voices, [clerk("depends"), clerk("agree")])) == "qualified"


@pytest.mark.behaviour("30-allies-are-no-opponents")
def test_claims_that_agree_inside_a_larger_conflict_group_are_no_opponents() -> None:
    voices = seats_of(
        ("Which store?", "Redis", "a", ""), ("What to use?", "a cache", "b", ""), ("Which one?", "disk", "c", "")
    )
    found = compare_claims(voices, [clerk("conflict", "c1", "c2", "c3"), clerk("agree", "c1", "c2")])
    (dispute,) = found.disputes
    assert [[side.seat for side in dispute.against(seat)] for seat in ("seat1", "seat2", "seat3")] == [
        ["seat3"],
        ["seat3"],
        ["seat1", "seat2"],
    ]
    assert find_consensus(found.groups, {}) == []


@pytest.mark.behaviour("30-round2-seats")
def test_only_seats_of_real_disputes_are_asked_again() -> None:
    rows = [
        (TPS, "20k", "a", ""),
        (TPS, "5k", "b", ""),
        ("Is it safe?", "yes", "c", ""),
        ("Is it safe?", "no", "d", "at night"),
    ]
    assert disputing_seats(compare_claims(seats_of(*rows)).disputes) == ("seat1", "seat2")


# The clerk's groups


@pytest.mark.behaviour("30-clerk-groups-only")
@pytest.mark.parametrize(
    ("ids", "why"),
    [
        (("c1", "c9"), "c9 is not in the list"),
        (("c8", "c9"), "c8, c9 are not in the list"),
        (("c1", "c2"), "c1, c2: all claims of one member"),
        (("c1",), "c1: all claims of one member"),
        ((), "an empty group: all claims of one member"),
        (("c1", "c3"), None),
    ],
)
def test_a_group_names_existing_claims_of_two_seats(ids: tuple[str, ...], why: str | None) -> None:
    voices = [
        SeatAnswer("a", "", (Claim("c1", "a", "Q?", "x", "x"), Claim("c2", "a", "R?", "x", "x"))),
        SeatAnswer("b", "", (Claim("c3", "b", "Q?", "x", "x"),)),
    ]
    group = ClerkGroup("Q?", ids, "agree")
    assert check_groups([group], voices) == ([(group, why)] if why else [])


@pytest.mark.behaviour("30-clerk-groups-only")
def test_unknown_ids_add_nothing() -> None:
    assert compare_claims(seats_of(("Q?", "x", "x", "")), [clerk("conflict", "c1", "c7", "c8")]).groups == ()


# Questions


@pytest.mark.behaviour("30-values-decide")
@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("Is sharding needed?", "Do we need sharding?"),
        ("How many tps does Postgres sustain here?", "how many TPS does postgres sustain"),
        ("What does the plan cost per month?", "How much does the plan cost per month?"),
        ("When was the rule adopted?", "In which year was the rule adopted?"),
        ("Should the archive move to cold storage?", "Should we move the archive to cold storage?"),
        ("What share of requests hits the cache?", "What share of the requests hit the cache?"),
        ("Braucht es Sharding?", "braucht es sharding"),
    ],
)
def test_equal_questions(a: str, b: str) -> None:
    assert question_key(a) == question_key(b)


@pytest.mark.behaviour("30-values-decide")
@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("Is Redis faster than Postgres?", "Is Postgres faster than Redis?"),
        ("Does Redis outperform Postgres?", "Does Postgres outperform Redis?"),
        ("Should we move from Redis to Postgres?", "Should we move from Postgres to Redis?"),
        ("Is it safe?", "Is it not safe?"),
        ("Is it safe?", "Isn't it safe?"),
        ("Can we shard?", "Should we shard?"),
        ("When does it start?", "Why does it start?"),
        ("Is C fast?", "Is C++ fast?"),
        ("What does plan A cost?", "What does plan B cost?"),
        ("What does plan A cost?", "What does a plan cost?"),
        ("How long before the failover?", "How long after the failover?"),
        ("?", "!"),
    ],
)
def test_different_questions(a: str, b: str) -> None:
    assert question_key(a) != question_key(b)


@pytest.mark.parametrize(
    ("many", "one"),
    [
        ("costs", "cost"), ("caches", "cache"), ("apis", "api"), ("ties", "tie"), ("flies", "fly"), ("boxes", "box"),
        ("classes", "class"), ("hashes", "hash"), ("class", "class"), ("bus", "bus"), ("https", "https"), ("news", "news"),
    ],
)  # fmt: skip
def test_singular(many: str, one: str) -> None:
    assert singularize(many) == one


# Markers

CLAIM = ("Is a cold archive cheaper?", "yes", "A cold archive is cheaper than disks.", "")


def marked(sentence: str, own: str = "") -> list[Dispute]:
    voices = seats_of(CLAIM, ("Who pays?", "the city", own or "The city pays.", ""))
    voices[1] = replace(voices[1], response=sentence)
    return list(compare_claims(voices).disputes)


@pytest.mark.behaviour("30-disputes-markers")
@pytest.mark.parametrize(
    "sentence",
    [
        "Contrary to the claim that a cold archive is cheaper, restores cost more.",
        "So be it. I disagree with the view that a cold archive is cheaper.",
        "I would push back on a cheaper cold archive.",
        "This clearly contradicts a cheaper cold archive.",
    ],
)
def test_a_marker_against_another_seats_claim_is_a_possible_dispute(sentence: str) -> None:
    (dispute,) = marked(sentence)
    assert (dispute.how, dispute.seats, disputing_seats([dispute])) == ("possible", ("seat1", "seat2"), ())
    assert dispute.question == CLAIM[0]


@pytest.mark.behaviour("30-disputes-markers")
def test_a_marker_in_a_claim_counts_too() -> None:
    assert [one.how for one in marked("", "Contrary to a cheaper cold archive, restores cost more.")] == ["possible"]


@pytest.mark.behaviour("30-disputes-markers")
@pytest.mark.parametrize(
    "sentence",
    [
        "Unlike a cold archive, disks are not cheaper.",
        "I do not disagree with a cheaper cold archive.",
        "Some say: `contrary to a cheaper cold archive`.",
        'They wrote "contrary to a cheaper cold archive" and left.',
        "Is this contrary to a cheaper cold archive?",
        "Contrary to popular belief, tapes last.",
        "> I disagree with a cheaper cold archive.",
        "If I disagree with a cheaper cold archive, tell me.",
        "In contrast to a cold archive, which is cheaper, disks are quick.",
    ],
)
def test_what_is_no_marker(sentence: str) -> None:
    assert marked(sentence) == []


@pytest.mark.behaviour("30-disputes-markers")
def test_a_marker_against_a_claim_that_the_seat_shares_is_none() -> None:
    voices = seats_of(CLAIM, CLAIM)
    voices[1] = replace(voices[1], response="Contrary to those who say that a cold archive is not cheaper, it is.")
    assert outcome(compare_claims(voices)) == "consensus"


@pytest.mark.behaviour("30-disputes-long-texts")
@pytest.mark.parametrize(
    "text",
    ["contrary to " * 80_000, "I disagree with " + "a " * 500_000, "`" * 1_000_000, ". " * 500_000, '"' * 999_999],
)
def test_a_megabyte_is_searched_for_markers_without_delay(text: str) -> None:
    voices = seats_of(CLAIM, ("Q?", "x", "x", ""))
    compare_claims([voices[0], replace(voices[1], response=text)])


@pytest.mark.behaviour("30-never-silent")
@pytest.mark.parametrize(
    ("question", "a", "b", "expected"),
    [
        # Phrases for yes and no, by what the question asks
        ("Is a licence required?", "yes", "not required", "dispute"),
        ("Is a licence required?", "mandatory", "optional", "dispute"),
        ("Is the field optional?", "mandatory", "no", "consensus"),
        ("Does it support IPv6?", "fully supported", "unsupported", "dispute"),
        ("Is Python 2 still supported?", "no longer", "no", "consensus"),
        ("Is it not supported?", "not supported", "yes", "possible"),
        ("How many CVEs remain?", "none", "0", "consensus"),
        ("How many CVEs remain?", "none", "three", "dispute"),
        ("What does it cost?", "free", "$10", "dispute"),
        ("Is a price rise due?", "yes", "no", "dispute"),
        ("Should we shard?", "not recommended", "yes", "dispute"),
        ("When was it released?", "03/25/2024", "25.3.2024", "consensus"),
        # Units and scales
        ("How fast is the link?", "1 Gbit/s", "125 MB/s", "consensus"),
        ("How fast is the link?", "1 Gbit/s", "1 GB/s", "dispute"),
        ("How hot is it?", "60 °C", "140 °F", "consensus"),
        ("How cold may it get?", "5 degrees Celsius", "50 °F", "dispute"),
        ("What does hosting cost?", "$1.5k a month", "40,000 dollars a year", "dispute"),
        ("What is the salary?", "6k a month", "72,000 a year", "consensus"),
        ("How much can it serve?", "500 rps", "1 million per day", "dispute"),
        ("What uptime is guaranteed?", "99.95 %", "fewer than three nines", "dispute"),
        ("What uptime is guaranteed?", "four nines", "99.99 %", "consensus"),
        ("What share is mobile?", "2/3", "40 %", "dispute"),
        # Code cannot tell
        ("Who bears the risk?", "the carrier", "the shipper", "possible"),
        ("How much faster is it?", "twice as fast", "10 %", "possible"),
        ("How many users fit?", "at least 5,000", "about 8k", "nothing"),
        ("Who bears the risk?", "the carrier", "unknown", "nothing"),
    ],
)  # fmt: skip
def test_equal_questions_are_decided_or_possible_without_a_clerk(question: str, a: str, b: str, expected: str) -> None:
    assert outcome(compare_claims(seats_of((question, a, a, ""), (question, b, b, "")))) == expected


@pytest.mark.behaviour("30-never-silent")
@pytest.mark.parametrize(
    ("question", "a", "b", "expected"),
    [
        ("How fast is the link?", "1 Gbit/s", "125 MB/s", "consensus"),
        ("How hot is it?", "60 °C", "140 °F", "consensus"),
        ("Is a licence required?", "yes", "not required", "dispute"),
        ("What uptime is guaranteed?", "99.95 %", "fewer than three nines", "dispute"),
    ],
)
def test_values_overrule_a_wrong_clerk_in_both_directions(question: str, a: str, b: str, expected: str) -> None:
    wrong: Relation = "conflict" if expected == "consensus" else "agree"
    found = compare_claims(seats_of((question, a, a, ""), (question, b, b, "")), [clerk(wrong)])
    assert outcome(found) == expected
    assert len(found.overrides) == 1


# Other languages


@pytest.mark.behaviour("30-values-decide")
@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        (("Brauchen wir Sharding?", "ja"), ("Brauchen wir Sharding?", "nein"), "dispute"),
        (("Wie lange dauert es?", "2 Stunden"), ("Wie lange dauert es?", "zwei Tage"), "possible"),
        (("需要分片吗？", "是"), ("需要分片吗？", "否"), "dispute"),
        (("Faut-il migrer ?", "oui"), ("Faut-il migrer ?", "oui, si le budget suit"), "qualified"),
        (("کش لازم است؟", "بله"), ("کش لازم است؟", "نه"), "possible"),
    ],
)
def test_claims_in_another_language_are_compared_or_left_alone(a: tuple[str, str], b: tuple[str, str], expected: str) -> None:  # fmt: skip
    assert outcome(compare_claims(seats_of(*[(*one, one[1], "") for one in (a, b)]))) == expected


# Order

QUESTIONS = ("How many?", "Is it safe?", "Which store?", "When?")
ANSWERS = ("yes", "no", "5", "about 5", "9", "at most 6", "2026", "May 2027", "Redis", "redis", "")
ROW = st.tuples(
    st.sampled_from("abc"), st.sampled_from(QUESTIONS), st.sampled_from(ANSWERS), st.sampled_from(("", "", "at night", "by day"))
)  # fmt: skip
RELATIONS = st.sampled_from(("agree", "conflict", "depends"))


def summary(rows: Sequence[tuple[int, tuple[str, ...]]], groups: Sequence[tuple[frozenset[int], Relation]], seats: str) -> Any:  # fmt: skip
    """Compare rows in this order; return disputes and consensus by the numbers of the rows."""
    name = {n: f"c{place}" for place, (n, _) in enumerate(rows, 1)}
    number = {one: n for n, one in name.items()}
    claims = [Claim(name[n], seat, question, answer, f"text {n}", when, 0.5, (n,)) for n, (seat, question, answer, when) in rows]  # fmt: skip
    voices = [SeatAnswer(seat, "", tuple(one for one in claims if one.seat == seat)) for seat in seats]
    found = compare_claims(voices, [ClerkGroup("Q?", tuple(name[n] for n in ids), how) for ids, how in groups])
    disputes = {(one.question, one.how, frozenset(number[side.id] for side in one.positions)) for one in found.disputes}
    points = find_consensus(found.groups, {}, found.contested)
    consensus = {
        (one["question"], one["weight"], frozenset(number[said["id"]] for said in one["statements"])) for one in points
    }
    return disputes, consensus


@pytest.mark.behaviour("30-disputes-any-order")
@settings(max_examples=300, deadline=None)
@given(st.data(), st.lists(ROW, min_size=2, max_size=8))
def test_the_order_of_seats_and_claims_changes_no_dispute_and_no_consensus(data: st.DataObject, rows: list[Any]) -> None:  # fmt: skip
    numbered = list(enumerate(rows))
    ids = st.frozensets(st.integers(0, len(rows) - 1), min_size=2, max_size=4)
    groups = data.draw(st.lists(st.tuples(ids, RELATIONS), max_size=3))
    shuffled, seats = data.draw(st.permutations(numbered)), "".join(data.draw(st.permutations("abc")))
    assert summary(numbered, groups, "abc") == summary(shuffled, groups, seats)


@pytest.mark.behaviour("30-uncompared-is-no-consensus")
@settings(max_examples=200, deadline=None)
@given(st.data(), st.lists(ROW, min_size=2, max_size=8))
def test_a_consensus_has_two_seats_and_no_claim_of_a_dispute(data: st.DataObject, rows: list[Any]) -> None:
    ids = st.frozensets(st.integers(0, len(rows) - 1), min_size=2, max_size=4)
    groups = data.draw(st.lists(st.tuples(ids, RELATIONS), max_size=3))
    disputes, consensus = summary(list(enumerate(rows)), groups, "abc")
    disputed = {n for _, _, numbers in disputes for n in numbers}
    for _, _, numbers in consensus:
        assert len({rows[n][0] for n in numbers}) > 1
        assert not numbers & disputed


@pytest.mark.behaviour("30-trust")
@pytest.mark.parametrize(
    ("answers", "unlike"),
    [
        (("Postgres", "MySQL"), True),
        (("Postgres", "PostgreSQL 16"), False),
        (("Kafka", "use Kafka"), False),
        (("yes", "no"), False),
        (("5k tps", "20k tps"), False),
    ],
)
def test_names_without_a_common_word_are_unlike(answers: tuple[str, str], unlike: bool) -> None:
    claims = [
        Claim(f"c{n}", f"seat-{n}", "Which database?", answer, f"It is {answer}.", "", 0.8, (1,))
        for n, answer in enumerate(answers)
    ]
    assert has_unlike_names(claims) is unlike
