"""What the machine-readable reports share: how grave a finding is to them, and where it stands."""

from __future__ import annotations

from council.types import OK_STATES, Json


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
