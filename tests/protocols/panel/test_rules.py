"""Rules of the panel: how an answer ends, and the digest."""

from __future__ import annotations

import pytest

from council.language import LANGUAGES
from council.protocols.common.points import AgreedPoint, ComparedAnswers, UniquePoint
from council.protocols.panel.closings import Closing, read_closing
from council.protocols.panel.rules import (
    add_different_conclusions,
    build_sections,
    list_confidence_facts,
    nest_headings,
)
from council.types import Difference, Side, TrustFact
from council.wording import load_wording, read_table

ENGLISH = load_wording("en")


def close(conclusion: str | None = None, confidence: str | None = None) -> Closing:
    return {"conclusion": conclusion, "confidence": confidence}


@pytest.mark.parametrize(
    ("text", "closing"),
    [
        ("Go.\n\nConclusion: Go in May.\nConfidence: HIGH", ("Go in May.", "HIGH")),
        ("**Conclusion:** Go in May.\n\n**Confidence: medium**", ("Go in May.", "MEDIUM")),
        ("- Conclusion: Go.\n- Confidence: LOW, because the prices are guesses", ("Go.", "LOW")),
        ("## Conclusion: Go\n\n## Confidence: 90 %", ("Go", "HIGH")),
        ("Conclusion: Wait.\nMore thought.\nConclusion: Go.\nConfidence: High", ("Go.", "HIGH")),
        ("Schluss: Los.\nConclusion：Los.\nConfidence：HIGH", ("Los.", "HIGH")),
        ("Go.\nConfidence: 300 %", (None, None)),
        ("Go.\nConfidence: very", (None, None)),
        ("Conclusion:\nConfidence:", (None, None)),
        ("In conclusion: nothing", (None, None)),
        ("Go in May.", (None, None)),
        ("", (None, None)),
        ("Yes.\n\n## Conclusion\n\nUse it.\n\n## Confidence\n\nLOW", ("Use it.", "LOW")),
        ("**Conclusion**\n- Use it.\n\n**Confidence level:**\n**Medium**", ("Use it.", "MEDIUM")),
        ("### Conclusion\n\n### Confidence\n\nHIGH", (None, "HIGH")),
        ("## Confidence\n\nI have checked every step of this twice.", (None, None)),
        ("1. Conclusion: Go.\n2. My confidence: LOW", ("Go.", "LOW")),
        ("Conclusion — Go.\nConfidence = high", ("Go.", "HIGH")),
        ("Conclusion: HIGH is the price.\nConfidence: HIGH, but only for May", ("HIGH is the price.", None)),
        ("**Fazit:** Ja.\n**Zuversicht:** NIEDRIG", ("Ja.", "LOW")),
        ("Fazit: Ja.\nZuversicht: gering, weil die Preise geraten sind", ("Ja.", "LOW")),
        ("Fazit: Ja.\nZuversicht: HOCH, aber nur im Mai", ("Ja.", None)),
        ("Fazit: Ja.\nZuversicht: hoch (20 %)", ("Ja.", None)),
        ("Fazit: Ja.\nZuversicht: mittel bis hoch", ("Ja.", None)),
        ("Conclusión: Sí.\nNivel de confianza: alta", ("Sí.", "HIGH")),
        ("Conclusion : Oui.\nConfiance : MOYENNE", ("Oui.", "MEDIUM")),
        ("- Sicherheit: hoch\n- Preis: niedrig", (None, None)),
        ("结论：可以。\n置信度：低", ("可以。", "LOW")),
        ("## 結論\n\nはい。\n\n## 確信度\n\n高い", ("はい。", "HIGH")),
    ],
)
@pytest.mark.behaviour("10-panel-closing")
def test_the_last_lines_of_an_answer_are_read_and_never_guessed(
    text: str, closing: tuple[str | None, str | None]
) -> None:
    assert read_closing(text) == close(*closing)


@pytest.mark.behaviour("10-panel-closing")
def test_a_conclusion_in_the_middle_of_a_long_answer_is_not_its_conclusion() -> None:
    text = "Conclusion: an example of a bad one.\n" + "\n".join(f"Step {n}." for n in range(40))
    assert read_closing(text) == close()


@pytest.mark.behaviour("10-panel-closing")
@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("level", ["HIGH", "MEDIUM", "LOW"])
def test_the_words_of_every_language_are_read(language: str, level: str) -> None:
    word = read_table(language)["levels"][level]
    assert read_closing(f"Confidence: {word}") == close(None, level)


@pytest.mark.behaviour("10-panel-closing")
def test_confidence_that_no_seat_states_is_a_fact_against_trust() -> None:
    assert list_confidence_facts({"alpha": close("a"), "beta": close("b")}) == [TrustFact("no_confidence")]
    assert list_confidence_facts({"alpha": close("a"), "beta": close("b", "HIGH")}) == []
    assert list_confidence_facts({}) == []


def test_low_confidence_of_a_seat_is_a_fact_against_trust() -> None:
    closings = {"alpha": close("a", "HIGH"), "beta": close("b", "LOW"), "gamma": close()}
    assert list_confidence_facts(closings) == [TrustFact("unsure", "", ("beta",), 1, 3)]
    assert list_confidence_facts({"alpha": close("a", "MEDIUM")}) == []


# Conclusions

SHARED = ComparedAnswers("answered", shared_by=("alpha", "beta", "gamma"))


def conclude(points: ComparedAnswers, *conclusions: str | None, question: str = "What is 17 * 24?") -> ComparedAnswers:
    names = ("alpha", "beta", "gamma", "delta")
    closings = {name: close(text, "HIGH") for name, text in zip(names, conclusions, strict=False)}
    return add_different_conclusions(points, closings, question, "The conclusion")


@pytest.mark.behaviour("10-panel-conclusions")
def test_conclusions_that_differ_are_a_dispute_whatever_the_clerk_says() -> None:
    found = conclude(SHARED, "408", "418", "Do not use 408")
    assert found.shared_by == ()
    assert found.disputed[0].point == "The conclusion"
    assert {side.position for side in found.disputed[0].sides} >= {"408", "418"}


@pytest.mark.behaviour("10-panel-conclusions")
def test_seats_whose_conclusions_are_the_same_still_share_theirs() -> None:
    found = conclude(SHARED, "408", "418", "408")
    assert found.shared_by == ("alpha", "gamma")
    assert found.disputed == (Difference("The conclusion", (Side(("alpha", "gamma"), "408"), Side(("beta",), "418"))),)


@pytest.mark.behaviour("10-panel-conclusions")
@pytest.mark.parametrize("conclusions", [("408", "408.0", "408"), ("Lima", "Rome, perhaps", None), (None, None, None)])
def test_conclusions_that_code_cannot_tell_apart_leave_the_points_as_they_are(
    conclusions: tuple[str | None, ...],
) -> None:
    assert conclude(SHARED, *conclusions) == SHARED


@pytest.mark.behaviour("10-panel-conclusions")
def test_a_difference_that_the_clerk_named_is_not_repeated() -> None:
    dispute = Difference("the product", (Side(("alpha", "gamma"), "408"), Side(("beta",), "418")))
    points = ComparedAnswers("answered", disputed=(dispute,), shared_by=("alpha", "gamma"))
    assert conclude(points, "408", "418", "408") == points
    wrong = ComparedAnswers("answered", disputed=(dispute,), shared_by=("alpha", "beta", "gamma"))
    assert conclude(wrong, "408", "418", "408").shared_by == ("alpha", "gamma")


def test_answers_that_were_not_compared_get_no_dispute() -> None:
    points = ComparedAnswers("absent")
    assert conclude(points, "408", "418") == points


def digest(points: ComparedAnswers, answers: dict[str, str]) -> str:
    return "\n\n".join(section.text for section in build_sections(points, answers, ENGLISH))


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
@pytest.mark.parametrize("state", ["absent", "unavailable", "unneeded", "stopped"])
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


def test_code_within_a_line_opens_no_block_and_a_heading_in_a_block_stays() -> None:
    assert nest_headings("```x``` is code.\n# Title", 2).startswith("```x``` is code.\n### Title")
    assert nest_headings("# Title\n~~~\n# a comment\n~~~", 2) == "### Title\n~~~\n# a comment\n~~~"
