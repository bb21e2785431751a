"""Findings as SARIF 2.1.0, for code scanning."""

from __future__ import annotations

import json
import re
from functools import cache
from typing import Literal, NotRequired, TypedDict
from urllib.parse import quote

from council.engine.layout import (
    choose_level,
    format_absent_seat,
    format_disputed,
    format_fix,
    format_found_by,
    list_absent_seats,
    list_holders,
    list_location_notes,
    parse_location,
)
from council.engine.records import FindingRow, ReportObject
from council.render.report import FinishedRun
from council.text_cleanup import clean, neutralize_commands
from council.version import __version__

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
FINGERPRINT_KEY = "councilFinding/v1"
DISTRIBUTION = "model-council"
SECURITY_WORDS = frozenset(
    [
        "security",
        "vulnerability",
        "injection",
        "xss",
        "csrf",
        "ssrf",
        "auth",
        "authentication",
        "authorization",
        "cryptography",
        "crypto",
        "secrets",
    ]
)
SECURITY_SEVERITIES = {"critical": "9.1", "significant": "7.0", "minor": "3.0"}  # as scores of CVSS
LOWER_SEVERITIES = ("significant", "minor")
REPOSITORY_URI = "."  # code scanning rejects a result without a location; this is the repository root


class Text(TypedDict):
    text: str


SecurityProperties = TypedDict("SecurityProperties", {"tags": list[str], "security-severity": str})


class Rule(TypedDict):
    """A category of findings."""

    id: str
    shortDescription: Text
    properties: NotRequired[SecurityProperties]


class Driver(TypedDict):
    """The program and its rules."""

    name: str
    version: str
    semanticVersion: str
    informationUri: NotRequired[str]
    rules: NotRequired[list[Rule]]


class Notification(TypedDict):
    """A seat that gave no verdict."""

    level: Literal["warning"]
    message: Text


class Invocation(TypedDict):
    """The run."""

    executionSuccessful: bool
    toolExecutionNotifications: list[Notification]


class Artifact(TypedDict):
    """A file, relative to the root of the repository."""

    uri: str
    uriBaseId: NotRequired[str]


class Region(TypedDict):
    startLine: int


class PhysicalLocation(TypedDict):
    artifactLocation: Artifact
    region: Region


class Location(TypedDict):
    physicalLocation: PhysicalLocation


class ResultProperties(TypedDict):
    """What SARIF has no fields for."""

    severity: str
    foundBy: list[str]
    heldBy: list[str]
    fix: str
    of: int
    verified: bool
    disputed: bool
    id: NotRequired[str]
    location_state: NotRequired[str]


class Result(TypedDict):
    """A finding."""

    ruleId: str
    ruleIndex: int
    level: Literal["error", "warning", "note"]
    message: Text
    locations: list[Location]
    partialFingerprints: dict[str, str]
    properties: ResultProperties


def render(report: ReportObject) -> str:
    """Render one run with a rule per category."""
    rules = sorted({_rule_id(finding) for finding in report["findings"]})
    run = {
        "tool": {"driver": _describe_driver(rules)},
        "automationDetails": {"id": f"council/{clean(report['task'])}/"},
        "invocations": [_build_invocation(report)],
        "results": [_build_result(finding, rules) for finding in report["findings"]],
        "properties": {"verdict": report["verdict"], "confidence": report["confidence"], "run": report["run"]},
    }
    dumped = json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, ensure_ascii=False, indent=2)
    return neutralize_commands(dumped, "json") + "\n"


def _describe_driver(rules: list[str]) -> Driver:
    driver: Driver = {"name": "Council", "version": __version__, "semanticVersion": __version__}
    if address := find_homepage():
        driver["informationUri"] = address
    driver["rules"] = [_describe_rule(rule) for rule in rules]
    return driver


@cache
def find_homepage() -> str:
    """Return the address of the project in the metadata of the installed package, or ""."""
    from importlib import metadata  # only needed here

    try:
        listed = metadata.metadata(DISTRIBUTION).get_all("Project-URL") or []
    except metadata.PackageNotFoundError:
        return ""
    addresses = {name.strip(): address.strip() for name, _, address in (str(row).partition(",") for row in listed)}
    return addresses.get("Homepage", "")


def render_run(run: FinishedRun) -> str:
    return render(run.report)


def _rule_id(finding: FindingRow) -> str:
    """Return the rule of a finding: its category and, for security, its severity, a property of rules."""
    words = re.sub(r"\W+", "-", clean(finding["category"]).lower()).strip("-")
    grade = finding["severity"] if _is_security(words) and finding["severity"] in LOWER_SEVERITIES else ""
    return f"council/{'-'.join(filter(None, [words or 'other', grade]))}"


def _is_security(words: str) -> bool:
    return not SECURITY_WORDS.isdisjoint(words.split("-"))


def _describe_rule(rule: str) -> Rule:
    name = rule.removeprefix("council/")
    described: Rule = {"id": rule, "shortDescription": {"text": f"{name}, found by a council of models"}}
    if not _is_security(name):
        return described
    grade = next((one for one in LOWER_SEVERITIES if name.endswith(f"-{one}")), "critical")
    described["properties"] = {"tags": ["security"], "security-severity": SECURITY_SEVERITIES[grade]}
    return described


def _build_invocation(report: ReportObject) -> Invocation:
    absent = map(format_absent_seat, list_absent_seats(report))
    notifications: list[Notification] = [{"level": "warning", "message": {"text": _escape_text(one)}} for one in absent]
    return {"executionSuccessful": report["status"] == "complete", "toolExecutionNotifications": notifications}


def _build_result(finding: FindingRow, rules: list[str]) -> Result:
    rule = _rule_id(finding)
    properties: ResultProperties = {
        "severity": finding["severity"],
        "foundBy": [clean(seat) for seat in finding["found_by"]],
        "heldBy": [clean(seat) for seat in list_holders(finding)],
        "fix": clean(str(finding["fix"])),
        "of": finding["of"],
        "verified": finding["verified"],
        "disputed": finding["disputed"],
    }
    if finding.get("id"):
        properties["id"] = finding["id"]
    if finding.get("location_state"):
        properties["location_state"] = finding["location_state"]
    return {
        "ruleId": rule,
        "ruleIndex": rules.index(rule),
        "level": choose_level(finding),
        "message": {"text": _format_message(finding)},
        "locations": [{"physicalLocation": _build_location(finding)}],
        "partialFingerprints": {FINGERPRINT_KEY: finding["fingerprint"]},
        "properties": properties,
    }


def _format_message(finding: FindingRow) -> str:
    disputed = f", {format_disputed(finding)}" if finding["disputed"] else ""
    lines = [finding["description"], format_fix(finding), f"Why: {finding['why']}"]
    notes = list_location_notes(finding)
    return _escape_text("\n".join([*lines, *notes, f"({finding['severity']}, {format_found_by(finding)}{disputed})"]))


def _escape_text(text: str) -> str:
    """Escape SARIF links and placeholders in model text."""
    unlinked = re.sub(r"(?<!\\)\[(?=[^\]\n]*\]\()", r"\\[", clean(text))
    return re.sub(r"\{(\d+)\}", r"{{\1}}", unlinked).strip() or "no text"


def _build_location(finding: FindingRow) -> PhysicalLocation:
    """Return the file and a region. Tools need one; without a known line it is the first, and the message says so."""
    found = parse_location(finding)
    if not found:
        return {"artifactLocation": {"uri": REPOSITORY_URI}, "region": {"startLine": 1}}
    path, line = found
    location: Artifact = {"uri": quote(clean(path), safe="/"), "uriBaseId": "%SRCROOT%"}
    return {"artifactLocation": location, "region": {"startLine": line or 1}}
