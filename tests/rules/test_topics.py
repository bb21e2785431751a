"""Topics as people write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from council.rules.topics import gist, sign, singular, topic_key


@pytest.mark.behaviour("30-topics-aligned")
@pytest.mark.parametrize(
    ("many", "one"),
    [
        ("costs", "cost"), ("caches", "cache"), ("apis", "api"), ("databases", "database"), ("ties", "tie"), ("flies", "fly"),
        ("policies", "policy"), ("boxes", "box"), ("classes", "class"), ("hashes", "hash"), ("branches", "branch"),
        ("class", "class"), ("bus", "bus"), ("ios", "ios"), ("https", "https"), ("news", "news"), ("coûts", "coût"),
    ],
)  # fmt: skip
def test_the_plural_is_taken_off(many: str, one: str) -> None:
    assert singular(many) == one


@pytest.mark.behaviour("30-topics-aligned")
@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("The cost of a migration", "cost of Migrations"),
        ("CI/CD", "ci cd"),
        ("Node.js", "node js"),
        ("user\u200bs", "user"),
        ("ﬁnance", "finance"),
        ("R & D", "R and D"),
        ("  cost ", "«Cost»"),
    ],
)
def test_two_ways_to_write_a_topic(a: str, b: str) -> None:
    assert topic_key(a) == topic_key(b)


@pytest.mark.behaviour("30-topics-aligned")
@pytest.mark.parametrize(
    ("a", "b"), [("C", "C++"), ("C#", "C"), ("10%", "10"), ("x < 5", "x > 5"), ("?", "!"), ("plan A", "plan")]
)
def test_two_topics_that_look_alike(a: str, b: str) -> None:
    assert topic_key(a) != topic_key(b)


@given(st.text())
def test_a_key_is_its_own_key_in_any_case(topic: str) -> None:
    assert topic_key(topic) == topic_key(f" {topic}\n") == topic_key(topic.casefold())
    assert bool(topic_key(topic)) == bool(topic.strip())


def test_the_gist_is_stems_without_the_words_of_talk() -> None:
    assert gist("The caching of caches I think people never cached: a string, a bed, a ring") == {
        "cach",
        "str",
        "bed",
        "ring",
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Use it.", 1),
        ("Do not use it.", -1),
        ("Don’t use it.", -1),
        ("Never say no.", 1),
        ("Nobody can not use it without harm.", -1),
        ("Not only fast.", 1),
        ("No doubt it works.", 1),
        ("Avoid it.", -1),
        ("Rejecting it is wise.", -1),
        ("Notable knots annoy.", 1),
    ],
)
def test_a_sentence_denies_by_an_odd_number_of_negations(text: str, expected: int) -> None:
    assert sign(text) == expected
