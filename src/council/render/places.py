"""Helpers shared by the machine-readable reports: severity levels and locations of findings."""

from __future__ import annotations

import re

from council.types import OK_STATES, Json

LINE_REFERENCE = re.compile(
    r"\w(?::L?|#L|,? lines? )\d", re.IGNORECASE
)  # a file and a line number, in the forms models write


def parse_location(finding: Json) -> tuple[str, int] | None:
    """Return file and line of a finding if they were found in the packet, else None."""
    path, _, line = str(finding["location"]).rpartition(":")
    return (path, int(line)) if finding["verified"] and path and line.isascii() and line.isdigit() else None


def is_error(finding: Json, errors: bool) -> bool:
    """Return whether a finding has the level error: only a critical one, and only with `errors`."""
    return errors and finding["severity"] == "critical"


def format_found_by(finding: Json) -> str:
    return f"found by {len(finding['found_by'])} of {finding['of']}"


def list_absent_seats(report: Json) -> list[Json]:
    """Return the seats without a verdict that failed, with the reason of their last absence."""
    reasons = {row["seat"]: row["reason"] for row in report["degraded"] if row["seat"]}
    lost = [seat for seat in report["seats"] if seat["state"] not in OK_STATES and not seat["verdict"]]
    return [{"name": seat["name"], "state": seat["state"], "reason": reasons.get(seat["name"], "")} for seat in lost]


def format_location(finding: Json) -> str:
    """Format location and reference of a finding, marking a line that the packet does not contain."""
    location, ref = str(finding["location"] or ""), str(finding["ref"] or "")
    parts = [f"{location}{format_location_caveat(finding)}" if location else ""]
    if ref not in ("", location, "No reference"):
        parts.append(ref if location else f"{ref}{format_location_caveat(finding)}")
    return "; ".join(filter(None, parts)) or "No reference"


def format_location_caveat(finding: Json) -> str:
    """Return the caveat after a location whose line was not verified; else empty."""
    if finding["verified"] or not LINE_REFERENCE.search(str(finding["location"] or finding["ref"])):
        return ""
    return " (not checked)" if finding.get("unchecked") else " (not found in the packet)"
