"""Findings as SARIF 2.1.0."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from hypothesis import given
from jsonschema import Draft7Validator

from council.render.sarif import find_homepage, render
from council.version import __version__
from tests.paths import DATA
from tests.render.reports import HOSTILE_FINDINGS, Json, finding, report, report_with_absent_seat

SCHEMA = DATA / "sarif-schema-2.1.0.json"


@cache
def validator() -> Draft7Validator:
    return Draft7Validator(json.loads(SCHEMA.read_text(encoding="utf-8")))


def run(value: Any) -> Json:
    log = json.loads(render(value))
    validator().validate(log)
    (only,) = log["runs"]
    assert isinstance(only, dict)
    return only


def result(value: Json) -> Json:
    (only,) = run(report(value))["results"]
    assert isinstance(only, dict)
    return only


@pytest.mark.behaviour("50-sarif")
@pytest.mark.parametrize("value", [report(), report(finding()), report_with_absent_seat(), report(status="failed", verdict=None, confidence=None)])  # fmt: skip
def test_every_report_fits_the_schema(value: Any) -> None:
    run(value)


@pytest.mark.behaviour("50-sarif")
@given(HOSTILE_FINDINGS)
def test_any_model_text_fits_the_schema_as_one_result(value: Any) -> None:
    assert len(run(report(value))["results"]) == 1


@pytest.mark.behaviour("issue-18-sarif-fields")
@pytest.mark.parametrize(
    ("rows", "address"),
    [
        ([], None),
        (["Issues, https://council.example/issues"], None),
        (["Issues, https://council.example/issues", "Homepage, https://council.example/a,b"], "https://council.example/a,b"),
    ],
)  # fmt: skip
def test_the_driver_has_its_version_and_the_address_of_the_package(
    rows: list[str], address: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / f"model_council-{__version__}.dist-info"
    package.mkdir()
    urls = "".join(f"Project-URL: {row}\n" for row in rows)
    (package / "METADATA").write_text(f"Metadata-Version: 2.4\nName: model-council\nVersion: {__version__}\n{urls}")
    monkeypatch.syspath_prepend(tmp_path)
    find_homepage.cache_clear()
    driver = run(report(finding()))["tool"]["driver"]
    find_homepage.cache_clear()
    assert (driver["version"], driver["semanticVersion"]) == (__version__, __version__)
    assert driver.get("informationUri") == address


@pytest.mark.behaviour("50-sarif")
def test_a_result_carries_its_fingerprint_and_who_found_it() -> None:
    found = result(finding())
    assert found["partialFingerprints"] == {"councilFinding/v1": "5f0e"}
    assert found["properties"] == {
        "severity": "critical", "foundBy": ["judge-1", "judge-2"], "heldBy": ["judge-1", "judge-2"], "fix": "Call verify().", "of": 3, "verified": True, "disputed": False,
    }  # fmt: skip
    assert found["message"]["text"].splitlines() == [
        "The token is never checked.",
        "Fix: Call verify().",
        "Why: It was forgotten.",
        "(critical, found by 2 of 3)",
    ]


@pytest.mark.behaviour("50-sarif", "20-critical-is-error")
@pytest.mark.parametrize(("severity", "level"), [("critical", "error"), ("significant", "warning"), ("minor", "note")])
def test_the_level_is_the_severity(severity: str, level: str) -> None:
    assert result(finding(severity=severity))["level"] == level


@pytest.mark.behaviour("50-sarif", "20-file-kept")
def test_a_finding_whose_line_does_not_exist_keeps_its_file() -> None:
    row = finding(
        verified=False, location="src/auth.py:4000", path="src/auth.py", line=0, location_note="quote not found"
    )
    found = result(row)
    (place,) = found["locations"]
    assert place["physicalLocation"] == {
        "artifactLocation": {"uri": "src/auth.py", "uriBaseId": "%SRCROOT%"},
        "region": {"startLine": 1},
    }
    assert "not found in the packet: src/auth.py:4000" in found["message"]["text"]
    assert "Evidence: quote not found." in found["message"]["text"]


@pytest.mark.behaviour("50-sarif")
def test_an_unknown_location_is_the_first_line_and_the_message_says_so() -> None:
    place = result(finding())["locations"][0]["physicalLocation"]
    assert (place["artifactLocation"]["uri"], place["region"]) == ("src/auth.py", {"startLine": 12})
    unverified = result(finding(verified=False, location="src/gone.py:3"))
    assert unverified["locations"] == [
        {"physicalLocation": {"artifactLocation": {"uri": "."}, "region": {"startLine": 1}}}
    ]
    assert "Location as stated, not found in the packet: src/gone.py:3" in unverified["message"]["text"]


@pytest.mark.behaviour("50-sarif")
@pytest.mark.parametrize(
    "path", ["a b.py", "100%.py", "what?.py", "c:d.py", "#1.py", "ü/日本.py", "a&b;c=d.py", "[x].py"]
)
def test_an_address_is_percent_encoded(path: str) -> None:
    uri = result(finding(location=f"{path}:3"))["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert unquote(uri) == path
    assert uri.isascii()
    assert not set(uri) & set(" ?#:;[]&=")


@pytest.mark.behaviour("50-sarif")
def test_each_category_is_a_rule_and_each_result_points_at_its_own() -> None:
    log = run(report(finding(), finding(category="Style & form"), finding(category=""), finding()))
    rules = [rule["id"] for rule in log["tool"]["driver"]["rules"]]
    assert rules == ["council/other", "council/security", "council/style-form"]
    assert [rules[one["ruleIndex"]] for one in log["results"]] == [one["ruleId"] for one in log["results"]]


@pytest.mark.behaviour("50-sarif-security")
def test_security_rules_have_a_score_by_severity_and_others_have_none() -> None:
    grades = ("critical", "significant", "minor")
    rows = [*(finding(severity=grade) for grade in grades), finding(category="Auth bypass"), finding(category="style")]
    rules = run(report(*rows))["tool"]["driver"]["rules"]
    assert {rule["id"]: rule.get("properties", {}).get("security-severity") for rule in rules} == {
        "council/auth-bypass": "9.1", "council/security": "9.1", "council/security-significant": "7.0",
        "council/security-minor": "3.0", "council/style": None,
    }  # fmt: skip
    assert all("security" in rule["properties"]["tags"] for rule in rules if "properties" in rule)


@pytest.mark.behaviour("50-sarif")
def test_a_fix_keeps_its_lines() -> None:
    fix = "if expired(token):\n    raise Expired()"
    found = result(finding(fix=fix, held_by=["judge-1", "judge-2", "judge-3"]))
    assert f"\nFix:\n{fix}\n" in found["message"]["text"]
    assert found["properties"]["fix"] == fix
    assert found["properties"]["heldBy"] == ["judge-1", "judge-2", "judge-3"]
    assert "(critical, found by 2, held by 3 of 3)" in found["message"]["text"]


@pytest.mark.behaviour("50-sarif")
def test_model_text_cannot_contain_links_or_placeholders() -> None:
    text = result(finding(description="See [here](https://evil.example) and {0}, a[0] and {x}."))["message"]["text"]
    assert text.startswith("See \\[here](https://evil.example) and {{0}}, a[0] and {x}.")


def test_absent_seat_is_a_notification_and_an_incomplete_run_is_no_success() -> None:
    invocation = run(report_with_absent_seat())["invocations"][0]
    assert invocation["executionSuccessful"] is True
    assert [one["message"]["text"] for one in invocation["toolExecutionNotifications"]] == [
        "judge-3 gave no verdict: timed_out. no answer within 120 s"
    ]
    assert run(report(status="incomplete"))["invocations"][0]["executionSuccessful"] is False


def test_the_same_report_is_the_same_bytes() -> None:
    assert render(report(finding())) == render(report(finding()))


def test_a_result_says_whether_its_line_exists_and_who_disputes_it() -> None:
    located = result(finding(location_state="located", disputed=True, disputed_by=["judge-3"]))
    assert located["properties"]["location_state"] == "located"
    assert located["message"]["text"].endswith("(critical, found by 2 of 3, disputed by judge-3)")
    plain = result(finding())
    assert "location_state" not in plain["properties"]
    assert plain["message"]["text"].endswith("(critical, found by 2 of 3)")
