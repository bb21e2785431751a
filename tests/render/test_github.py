"""The findings as workflow commands: read here as the runner reads them."""

from __future__ import annotations

import re
from typing import NamedTuple

import pytest
from hypothesis import given

from council.render.github import render
from tests.render.findings import NASTY_FINDINGS, Json, finding, report, with_a_lost_seat


class Command(NamedTuple):
    kind: str
    properties: dict[str, str]
    message: str


def unescaped(text: str, *signs: str) -> str:
    for sign in (*signs, "%"):
        text = text.replace(f"%{ord(sign):02X}", sign)
    return text


def commands(text: str) -> list[Command]:
    """Every line as the runner takes it: a command where it begins with two colons, else words."""
    found = []
    for line in re.split(r"\r\n|\r|\n", text.rstrip("\n")):
        assert line.startswith("::"), line
        head, _, message = line[2:].partition("::")
        kind, _, rest = head.partition(" ")
        pairs = (pair.partition("=") for pair in rest.split(","))
        properties = {name: unescaped(value, "\r", "\n", ":", ",") for name, _, value in pairs}
        found.append(Command(kind, properties, unescaped(message, "\r", "\n")))
    return found


def annotation(value: Json) -> Command:
    _, only = commands(render(report(value)))
    return only


@pytest.mark.behaviour("50-github")
def test_a_verified_finding_is_an_annotation_at_its_line() -> None:
    assert annotation(finding()) == Command(
        "warning",
        {"file": "src/auth.py", "line": "12", "title": "Council: critical security, found by 2 of 3"},
        "The token is never checked.\nFix: Call verify().",
    )


@pytest.mark.behaviour("50-github")
def test_an_unverified_finding_is_shown_at_no_line() -> None:
    told = annotation(finding(verified=False, location="src/gone.py:3"))
    assert list(told.properties) == ["title"]
    assert "not found in the packet: src/gone.py:3" in told.message


@pytest.mark.parametrize(
    ("severity", "usual", "asked"),
    [("critical", "warning", "error"), ("significant", "warning", "warning"), ("minor", "notice", "notice")],
)
def test_errors_are_shown_only_where_they_were_asked_for(severity: str, usual: str, asked: str) -> None:
    value = report(finding(severity=severity))
    assert [commands(render(value, errors=errors))[1].kind for errors in (False, True)] == [usual, asked]


@pytest.mark.behaviour("50-github")
@pytest.mark.parametrize(
    "words",
    [
        "fine\n::set-output name=x::y",
        "fine\r\n::add-mask::x",
        "fine%0A::error::x",
        "fine%250A::error::x",
        "::stop-commands::x",
        "fine\u2028::error::x",
        "fine\x85::error::x",
        "a,line=1,file=x::y",
        "##[error]x",
        ":::error:::",
    ],
)
def test_no_injected_command_survives(words: str) -> None:
    text = render(report(finding(description=words, fix=words, category=words, location=f"{words}:3")))
    assert len(text.splitlines()) == 2
    first, second = commands(text)
    assert (first.kind, second.kind) == ("notice", "warning")
    assert list(second.properties) == ["file", "line", "title"]
    assert second.properties["line"] == "3"
    for line in text.splitlines():
        assert line.count("::") == 2
        assert "##[" not in line


@pytest.mark.behaviour("50-github")
@given(NASTY_FINDINGS)
def test_one_finding_is_one_command_whatever_it_says(value: Json) -> None:
    text = render(report(value))
    told = commands(text)
    assert len(told) == 2
    assert told[0].kind == "notice"
    assert set(told[1].properties) <= {"file", "line", "title"}
    assert text.count("::") == 4


def test_words_come_through_the_escaping() -> None:
    told = annotation(finding(description="100 % of a:b, c=d", location="dir,x/a:b.py:7", category="a,b:c"))
    assert told.message.startswith("100 % of a:b, c=d\n")
    assert (told.properties["file"], told.properties["line"]) == ("dir,x/a:b.py", "7")
    assert told.properties["title"] == "Council: critical a,b:c, found by 2 of 3"


def test_the_verdict_comes_first_and_missing_seats_after_it() -> None:
    verdict, missing = commands(render(with_a_lost_seat(verdict="WARN")))
    assert (verdict.kind, verdict.message) == ("warning", "WARN, confidence HIGH, 0 findings")
    assert missing.message == "judge-3 gave no verdict: timed_out. no answer within 120 s"


def test_a_run_without_a_verdict_says_so() -> None:
    (told,) = commands(render(report(verdict=None, confidence=None, status="failed")))
    assert told == Command("warning", {"title": "Council"}, "no verdict, the run is failed, 0 findings")
