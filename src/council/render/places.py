"""What the machine-readable reports share: how grave a finding is to them, and where it stands."""

from __future__ import annotations

import re

from council.types import OK_STATES, Json

LINE = re.compile(r"\w(?::L?|#L|,? lines? )\d", re.IGNORECASE)  # a file and a line of it, as models write them


def place(finding: Json) -> tuple[str, int] | None:
    """The file and line of a finding, only where they were found in the packet."""
    path, _, line = str(finding["location"]).rpartition(":")
    return (path, int(line)) if finding["verified"] and path and line.isascii() and line.isdigit() else None


def is_loud(finding: Json, errors: bool) -> bool:
    """A model's word stops nobody's build unless it was asked to: `errors` makes a critical finding an error."""
    return errors and finding["severity"] == "critical"


def found_by(finding: Json) -> str:
    return f"found by {len(finding['found_by'])} of {finding['of']}"


def absent(report: Json) -> list[Json]:
    """The seats that gave no verdict and ended in no good state, with the reason of the last absence."""
    why = {row["seat"]: row["reason"] for row in report["degraded"] if row["seat"]}
    lost = [seat for seat in report["seats"] if seat["state"] not in OK_STATES and not seat["verdict"]]
    return [{"name": seat["name"], "state": seat["state"], "reason": why.get(seat["name"], "")} for seat in lost]


def where(finding: Json) -> str:
    """Where it stands and what it rests on; a line that the packet does not have is called so."""
    location, ref = str(finding["location"] or ""), str(finding["ref"] or "")
    parts = [f"{location}{doubt(finding)}" if location else ""]
    if ref not in ("", location, "No reference"):
        parts.append(ref if location else f"{ref}{doubt(finding)}")
    return "; ".join(filter(None, parts)) or "No reference"


def doubt(finding: Json) -> str:
    """What to say behind a place that names a line, where nobody has found it."""
    if finding["verified"] or not LINE.search(str(finding["location"] or finding["ref"])):
        return ""
    return " (not checked)" if finding.get("unchecked") else " (not found in the packet)"
