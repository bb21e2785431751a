"""Findings as workflow commands, parsed as the GitHub runner parses them."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import pytest
from hypothesis import given

from council.render.github import render
from tests.render.reports import HOSTILE_FINDINGS, finding, report, report_with_absent_seat


class Command(NamedTuple):
    kind: str
    properties: dict[str, str]
    message: str


def unescape(text: str, *signs: str) -> str:
    for sign in (*signs, "%"):
        text = text.replace(f"%{ord(sign):02X}", sign)
    return text


def commands(text: str) -> list[Command]:
    """Parse every line as a workflow command."""
    found = []
    for line in re.split(r"\r\n|\r|\n", text.rstrip("\n")):
        assert line.startswith("::"), line
        head, _, message = line[2:].partition("::")
        kind, _, rest = head.partition(" ")
        pairs = (pair.partition("=") for pair in rest.split(","))
        properties = {name: unescape(value, "\r", "\n", ":", ",") for name, _, value in pairs}
        found.append(Command(kind, properties, unescape(message, "\r", "\n")))
    return found


def annotation(value: Any) -> Command:
    _, only = commands(render(report(value)))
    return only


@pytest.mark.behaviour("50-github")
def test_a_verified_finding_is_an_annotation_at_its_line() -> None:
    assert annotation(finding()) == Command(
        "error",
        {"file": "src/auth.py", "line": "12", "title": "Council: critical security, found by 2 of 3"},
        "The token is never checked.\nFix: Call verify().",
    )


@pytest.mark.behaviour("50-github")
def test_an_unverified_finding_has_no_line() -> None:
    command = annotation(finding(verified=False, location="src/gone.py:3"))
    assert list(command.properties) == ["title"]
    assert "not found in the packet: src/gone.py:3" in command.message


@pytest.mark.behaviour("50-github", "20-file-kept")
def test_a_finding_whose_line_does_not_exist_keeps_its_file() -> None:
    row = finding(
        verified=False, location="src/auth.py:4000", path="src/auth.py", line=0, location_note="quote not found"
    )
    command = annotation(row)
    assert list(command.properties) == ["file", "title"]
    assert "Location as stated, not found in the packet: src/auth.py:4000" in command.message
    assert "Evidence: quote not found." in command.message


@pytest.mark.behaviour("20-critical-is-error")
@pytest.mark.parametrize(("severity", "kind"), [("critical", "error"), ("significant", "warning"), ("minor", "notice")])
def test_the_level_is_the_severity(severity: str, kind: str) -> None:
    assert annotation(finding(severity=severity)).kind == kind


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
    assert (first.kind, second.kind) == ("notice", "error")
    assert list(second.properties) == ["file", "line", "title"]
    assert second.properties["line"] == "3"
    for line in text.splitlines():
        assert line.count("::") == 2
        assert "##[" not in line


@pytest.mark.behaviour("50-github")
@given(HOSTILE_FINDINGS)
def test_one_finding_is_one_command_for_any_text(value: Any) -> None:
    text = render(report(value))
    found = commands(text)
    assert len(found) == 2
    assert found[0].kind == "notice"
    assert set(found[1].properties) <= {"file", "line", "title"}
    assert text.count("::") == 4


def test_escaped_text_is_restored_by_the_runner() -> None:
    command = annotation(finding(description="100 % of a:b, c=d", location="dir,x/a:b.py:7", category="a,b:c"))
    assert command.message.startswith("100 % of a:b, c=d\n")
    assert (command.properties["file"], command.properties["line"]) == ("dir,x/a:b.py", "7")
    assert command.properties["title"] == "Council: critical a,b:c, found by 2 of 3"


def test_verdict_comes_first_and_then_absent_seats() -> None:
    verdict, missing = commands(render(report_with_absent_seat(verdict="WARN")))
    assert (verdict.kind, verdict.message) == ("warning", "WARN, confidence HIGH, 0 findings")
    assert missing.message == "judge-3 gave no verdict: timed_out. no answer within 120 s"


@pytest.mark.behaviour("50-github")
@pytest.mark.parametrize(
    ("verdict", "kind"), [("PASS", "notice"), ("WARN", "warning"), ("DISAGREE", "warning"), ("FAIL", "error")]
)
def test_the_level_of_the_summary_is_the_verdict(verdict: str, kind: str) -> None:
    assert commands(render(report(verdict=verdict)))[0].kind == kind


@pytest.mark.behaviour("50-github")
def test_a_fix_keeps_its_lines() -> None:
    assert annotation(finding(fix="a = 1\n\nb = 2")).message.endswith("\nFix:\na = 1\n\nb = 2")


def test_a_run_without_a_verdict_says_so() -> None:
    (command,) = commands(render(report(verdict=None, confidence=None, status="failed")))
    assert command == Command("warning", {"title": "Council"}, "no verdict, the run is failed, 0 findings")


def test_a_disputed_finding_ends_with_its_opponents() -> None:
    assert annotation(finding(disputed=True, disputed_by=["judge-3"])).message.endswith("\nDisputed by judge-3.")
    assert "isputed" not in annotation(finding()).message
