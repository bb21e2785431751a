"""Rules of the panel: how an answer ends, and the digest."""

from __future__ import annotations

import pytest

from council.protocols.common.points import AgreedPoint, ComparedAnswers, UniquePoint
from council.protocols.panel.rules import (
    Closing,
    build_sections,
    format_digest,
    list_confidence_facts,
    nest_headings,
    read_closing,
)
from council.types import Difference, Side, TrustFact
from council.wording import load_wording

ENGLISH = load_wording("en")


@pytest.mark.parametrize(
    ("text", "closing"),
    [
        ("Go.\n\nConclusion: Go in May.\nConfidence: HIGH", Closing("Go in May.", "HIGH")),
        ("**Conclusion:** Go in May.\n\n**Confidence: medium**", Closing("Go in May.", "MEDIUM")),
        ("- Conclusion: Go.\n- Confidence: LOW, because the prices are guesses", Closing("Go.", "LOW")),
        ("## Conclusion: Go\n\n## Confidence: 90 %", Closing("Go", "HIGH")),
        ("Conclusion: Wait.\nMore thought.\nConclusion: Go.\nConfidence: High", Closing("Go.", "HIGH")),
        ("Schluss: Los.\nConclusion：Los.\nConfidence：HIGH", Closing("Los.", "HIGH")),
        ("Go.\nConfidence: 300 %", Closing(None, None)),
        ("Go.\nConfidence: very", Closing(None, None)),
        ("Conclusion:\nConfidence:", Closing(None, None)),
        ("In conclusion: nothing", Closing(None, None)),
        ("Go in May.", Closing(None, None)),
        ("", Closing(None, None)),
    ],
)
@pytest.mark.behaviour("10-panel-closing")
def test_the_last_lines_of_an_answer_are_read_and_never_guessed(text: str, closing: Closing) -> None:
    assert read_closing(text) == closing


@pytest.mark.behaviour("10-panel-closing")
def test_a_conclusion_in_the_middle_of_a_long_answer_is_not_its_conclusion() -> None:
    text = "Conclusion: an example of a bad one.\n" + "\n".join(f"Step {n}." for n in range(40))
    assert read_closing(text) == Closing()


def test_low_confidence_of_a_seat_is_a_fact_against_trust() -> None:
    closings = {"alpha": Closing("a", "HIGH"), "beta": Closing("b", "LOW"), "gamma": Closing()}
    assert list_confidence_facts(closings) == [TrustFact("unsure", "", ("beta",), 1, 3)]
    assert list_confidence_facts({"alpha": Closing("a", "MEDIUM")}) == []


def digest(points: ComparedAnswers, answers: dict[str, str]) -> str:
    return format_digest(build_sections(points, answers, ENGLISH))


POINTS = ComparedAnswers(
    "answered",
    (AgreedPoint("The sea is near.", ("alpha", "beta", "gamma")), AgreedPoint("Trains are full.", ("alpha", "gamma"))),
    (Difference("When to go", (Side(("alpha", "gamma"), "May", "no rain"), Side(("beta",), "June"))),),
    (UniquePoint("beta", "Book early."),),
    ("alpha", "gamma"),
)


@pytest.mark.behaviour("10-panel-digest")
def test_the_digest_has_the_points_first_and_then_every_whole_answer() -> None:
    text = digest(POINTS, {"alpha": "May.", "beta": "# June\n\nIt is dry.", "gamma": "May!"})
    assert (
        text
        == """\
## Where they agree

- The sea is near.
- Trains are full. (Alpha and Gamma)

## Where they differ, and on which assumption

- When to go
  - Alpha and Gamma: May (assumes: no rain)
  - Beta: June

## What only one saw

- Beta: Book early.

## Alpha

May.

## Beta

### June

It is dry.

## Gamma

May!"""
    )


@pytest.mark.behaviour("10-panel-digest")
def test_a_comparison_that_found_nothing_says_so() -> None:
    text = digest(ComparedAnswers("answered", shared_by=()), {"alpha": "a", "beta": "b"})
    assert text.startswith(
        "## Where they agree\n\nNone.\n\n## Where they differ, and on which assumption\n\nNone.\n\n## Alpha"
    )


@pytest.mark.behaviour("10-panel-digest")
@pytest.mark.parametrize("state", ["absent", "unavailable", "unneeded"])
def test_without_a_comparison_the_digest_has_only_the_answers(state: str) -> None:
    assert digest(ComparedAnswers(state), {"alpha": "a"}) == "## Alpha\n\na"  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "nested"),
    [
        ("# A\ntext\n## B", "### A\ntext\n#### B"),
        ("### A\n#### B", "### A\n#### B"),
        ("# A\n##### B", "### A\n###### B"),
        ("no heading", "no heading"),
        ("# A\n```sh\n# a comment\n```\n## B", "### A\n```sh\n# a comment\n```\n#### B"),
        ("## A\n```py\nx = 1", "### A\n```py\nx = 1\n```"),
        ("#hashtag\n## A", "#hashtag\n### A"),
    ],
)
def test_headings_of_an_answer_are_below_the_name_of_its_seat(text: str, nested: str) -> None:
    assert nest_headings(text, 2) == nested
