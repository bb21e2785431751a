"""Findings as GitHub Actions workflow commands. Model text is escaped so that it cannot inject a command."""

from __future__ import annotations

import re

from council.engine.layout import (
    choose_level,
    format_absent_seat,
    format_count,
    format_disputed,
    format_fix,
    format_found_by,
    list_absent_seats,
    list_location_notes,
    parse_location,
)
from council.engine.records import FindingRow, ReportObject
from council.render.report import FinishedRun
from council.text_cleanup import clean, neutralize_commands

DATA_ESCAPES = {"%": "%25", "\r": "%0D", "\n": "%0A"}  # unescaped by the runner in a message
PROPERTY_ESCAPES = DATA_ESCAPES | {":": "%3A", ",": "%2C"}  # unescaped in a property

VERDICT_KINDS = {"PASS": "notice", "FAIL": "error"}


def render(report: ReportObject) -> str:
    """Render the verdict, the absent seats and one annotation per finding."""
    absent = map(format_absent_seat, list_absent_seats(report))
    warnings = [_format_command("warning", text, title="Council: a seat is missing") for text in absent]
    lines = [_format_verdict(report), *warnings, *map(_format_finding, report["findings"])]
    return "".join(f"{line}\n" for line in lines)


def render_run(run: FinishedRun) -> str:
    return render(run.report)


def _format_verdict(report: ReportObject) -> str:
    verdict = report["verdict"] or f"no verdict, the run is {report['status']}"
    kind = VERDICT_KINDS.get(verdict, "warning")
    confidence = f", confidence {report['confidence']}" if report["confidence"] else ""
    count = format_count(len(report["findings"]), "finding")
    outcome = report.get("decision_outcome")
    turned_out = f", turned out {outcome['label']}" if outcome else ""
    return _format_command(kind, f"{verdict}{confidence}{turned_out}, {count}", title="Council")


def _format_finding(finding: FindingRow) -> str:
    kind = choose_level(finding).replace("note", "notice")
    found = parse_location(finding)
    where = {"file": found[0], **({"line": str(found[1])} if found[1] else {})} if found else {}
    title = f"Council: {finding['severity']} {finding['category']}, {format_found_by(finding)}"
    said = [finding["description"], format_fix(finding), *list_location_notes(finding)]
    if finding["disputed"]:
        said.append(f"{format_disputed(finding).capitalize()}.")
    return _format_command(kind, "\n".join(said), **where, title=title)


def _format_command(kind: str, message: str, **properties: str) -> str:
    formatted = ",".join(f"{name}={_escape(value, PROPERTY_ESCAPES)}" for name, value in properties.items())
    return f"::{kind} {formatted}::{_escape(message, DATA_ESCAPES)}"


def _escape(text: str, table: dict[str, str]) -> str:
    """Escape a text so that it is one part of a command, with no other command and no mark between parts in it."""
    parts = re.sub(":(?=:)", ": ", neutralize_commands(clean(text).strip()))
    return "".join(table.get(sign, sign) for sign in parts)
