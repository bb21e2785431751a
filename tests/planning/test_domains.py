"""The domain of a question: the kind of work it asks for."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from council.planning.domains import detect_domain, focus_line
from council.planning.intent import parse_intent
from tests.paths import DATA

ROWS: list[dict[str, Any]] = tomllib.loads((DATA / "domains.toml").read_text(encoding="utf-8"))["rows"]
DOMAINS = ("code", "architecture", "writing", "research")


@pytest.mark.behaviour("10-domain-detected", "10-domain-artefact-forces-code", "10-domain-is-the-work")
@pytest.mark.parametrize("row", ROWS, ids=[row["words"][:60] for row in ROWS])
def test_the_domain_is_the_kind_of_work_that_the_question_asks_for(row: dict[str, Any]) -> None:
    assert detect_domain(row["words"]) == row["domain"]


def test_the_table_of_questions_has_every_domain() -> None:
    assert len(ROWS) >= 30 and {row["domain"] for row in ROWS} == {*DOMAINS, "general"}


@pytest.mark.behaviour("10-domain-is-the-work")
@pytest.mark.parametrize("place", ["start", "end"])
def test_the_request_of_a_long_text_is_at_its_start_or_its_end(place: str) -> None:
    request, material = "Write a press release about this.", "We sold nine boats in May. " * 2000
    text = f"{request}\n{material}" if place == "start" else f"{material}\n{request}"
    assert detect_domain(text) == "writing"


@pytest.mark.behaviour("10-domain-is-the-work")
@pytest.mark.parametrize(("chars", "domain"), [(70, "writing"), (71, "general")])
def test_an_object_counts_only_in_the_70_characters_after_its_verb(chars: int, domain: str) -> None:
    after = " a " + "long and winding " * 4
    assert (
        detect_domain(f"Can you write{after[: chars - len(' letter')].ljust(chars - len(' letter'), 'y')} letter")
        == domain
    )


def test_the_intent_has_the_domain_of_the_question() -> None:
    assert (
        parse_intent(["Draft", "a", "letter"], {}, protocol=None, folder=Path(), known=("collaborative",)).domain
        == "writing"
    )


@pytest.mark.behaviour("10-domain-focus")
def test_each_seat_has_a_focus_in_each_domain_but_general() -> None:
    lines = {focus_line(domain, seat) for domain in DOMAINS for seat in ("alpha", "beta", "gamma")}
    assert len(lines) == 12 and "" not in lines
    assert focus_line("general", "alpha") == focus_line("code", "delta") == ""
