"""List entry of a run, shared by all interfaces."""

from __future__ import annotations

from council.types import Json


def run_summary(run: Json) -> Json:
    """Return the fields of a run that lists show."""
    setup = run["setup"]
    return {
        "run": run["id"], "name": run["name"], "status": effective_status(run), "protocol": setup["protocol"], "task": setup["question"]["task"],
        "question": setup["question"]["text"], "folder": run["folder"], "created": run["created"],
    }  # fmt: skip


def effective_status(run: Json) -> str:
    """Return the status of a run; "stopped" if it is marked running but no process owns it."""
    return "stopped" if run["status"] == "running" and not run["running"] else str(run["status"])
