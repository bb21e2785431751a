"""Topic normalisation."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from council.protocols.general.claims import content_stems, polarity, singularize, topic_key


@pytest.mark.behaviour("30-topics-aligned")
@pytest.mark.parametrize(
    ("many", "one"),
    [
        ("costs", "cost"), ("caches", "cache"), ("apis", "api"), ("databases", "database"), ("ties", "tie"), ("flies", "fly"),
        ("policies", "policy"), ("boxes", "box"), ("classes", "class"), ("hashes", "hash"), ("branches", "branch"),
        ("class", "class"), ("bus", "bus"), ("ios", "ios"), ("https", "https"), ("news", "news"), ("coûts", "coût"),
    ],
)  # fmt: skip
def test_singular(many: str, one: str) -> None:
    assert singularize(many) == one


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
def test_equal_topics_have_the_same_key(a: str, b: str) -> None:
    assert topic_key(a) == topic_key(b)


@pytest.mark.behaviour("30-topics-aligned")
@pytest.mark.parametrize(
    ("a", "b"), [("C", "C++"), ("C#", "C"), ("10%", "10"), ("x < 5", "x > 5"), ("?", "!"), ("plan A", "plan")]
)
def test_different_topics_have_different_keys(a: str, b: str) -> None:
    assert topic_key(a) != topic_key(b)


@given(st.text())
def test_the_key_is_idempotent_and_case_insensitive(topic: str) -> None:
    assert topic_key(topic) == topic_key(f" {topic}\n") == topic_key(topic.casefold())
    assert bool(topic_key(topic)) == bool(topic.strip())


def test_content_stems_leave_out_filler_words() -> None:
    assert content_stems("The caching of caches I think people never cached: a string, a bed, a ring") == {
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
def test_an_odd_number_of_negations_is_negative(text: str, expected: int) -> None:
    assert polarity(text) == expected
