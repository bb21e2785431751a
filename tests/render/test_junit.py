"""A run as JUnit XML."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree as Xml

import pytest
from hypothesis import given

from council.render.junit import render
from tests.render.reports import HOSTILE_FINDINGS, Json, finding, report, report_with_absent_seat


def suite(value: Any) -> Xml.Element:
    (only,) = Xml.fromstring(render(value))
    return only


def kinds(value: Json) -> list[tuple[str | None, str]]:
    """Return the name and result of each case."""
    return [(case.get("name"), case[0].tag if len(case) else "passed") for case in suite(value).iter("testcase")]


@pytest.mark.behaviour("50-junit")
def test_a_pass_is_all_passing_cases() -> None:
    assert kinds(report()) == [("verdict", "passed"), ("judge-1", "passed"), ("judge-2", "passed")]
    counts = suite(report()).attrib
    assert {name: counts[name] for name in ("tests", "failures", "errors", "skipped")} == {
        "tests": "3", "failures": "0", "errors": "0", "skipped": "0",
    }  # fmt: skip


@pytest.mark.behaviour("50-junit")
def test_a_finding_is_a_failure() -> None:
    value = report(finding(), verdict="WARN")
    assert kinds(value)[-1] == ("src/auth.py:12 The token is never checked.", "failure")
    (failure,) = suite(value).iter("failure")
    assert failure.get("type") == "critical"
    assert failure.get("message") == "critical: The token is never checked. (found by 2 of 3)"
    assert failure.text is not None
    assert "Fix: Call verify()." in failure.text


@pytest.mark.behaviour("50-junit")
def test_a_seat_that_failed_is_an_error_with_its_reason() -> None:
    value = report_with_absent_seat()
    assert kinds(value) == [("verdict", "passed"), ("judge-1", "passed"), ("judge-3", "error")]
    (error,) = suite(value).iter("error")
    assert (error.get("type"), error.get("message")) == ("timed_out", "no answer within 120 s")
    assert suite(value).get("errors") == "1"


@pytest.mark.parametrize(
    ("change", "result"),
    [
        ({"verdict": "WARN"}, "passed"),
        ({"verdict": "FAIL"}, "failure"),
        ({"verdict": "DISAGREE"}, "failure"),
        ({"verdict": None}, "skipped"),
        ({"verdict": None, "status": "failed"}, "error"),
        ({"status": "incomplete"}, "error"),
    ],
)
def test_verdict_is_a_separate_case(change: Json, result: str) -> None:
    assert kinds(report(**change))[0] == ("verdict", result)


@pytest.mark.behaviour("50-junit")
@given(HOSTILE_FINDINGS)
def test_model_text_cannot_change_the_structure(value: Any) -> None:
    assert [result for _, result in kinds(report(value))] == ["passed", "passed", "passed", "failure"]


@pytest.mark.behaviour("50-junit")
@pytest.mark.parametrize(
    "text",
    [
        "</failure></testcase><testcase name='fine'/>",
        '"/><testcase name="fine',
        "]]><!ENTITY x SYSTEM 'file:///etc/passwd'>",
        "<!DOCTYPE a><![CDATA[",
        "\x00\x01\x08\x0b\x1b[31m\ufffe\uffff\ud800",
    ],
)
def test_injected_xml_stays_text(text: str) -> None:
    assert len(kinds(report(finding(description=text, location=text, category=text, fix=text)))) == 4


def test_control_characters_are_removed_and_text_stays() -> None:
    (failure,) = suite(report(finding(description="a\x1b[31mred\x00 & <b>"))).iter("failure")
    assert failure.get("message") == "critical: ared & <b> (found by 2 of 3)"


def test_a_location_that_was_not_found_says_so() -> None:
    (failure,) = suite(report(finding(verified=False))).iter("failure")
    assert "The location was not found in the packet." in str(failure.text)


def test_only_a_finding_that_was_not_verified_has_a_caveat() -> None:
    texts = [next(suite(report(finding(verified=checked))).iter("failure")).text or "" for checked in (True, False)]
    assert [text.count("The location was not found in the packet.") for text in texts] == [0, 1]


def test_a_result_without_a_kind_has_no_type() -> None:
    (skipped,) = suite(report(verdict=None)).iter("skipped")
    assert skipped.attrib == {"message": "no verdict"}
