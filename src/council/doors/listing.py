"""A run in a list: what every door tells of it."""

from __future__ import annotations

from council.types import Json


def row(run: Json) -> Json:
    setup = run["setup"]
    return {
        "run": run["id"], "name": run["name"], "status": status_of(run), "protocol": setup["protocol"], "task": setup["question"]["task"],
        "question": setup["question"]["text"], "folder": run["folder"], "created": run["created"],
    }  # fmt: skip


def status_of(run: Json) -> str:
    """A run that nobody is at work on and that never ended was stopped by something that did not ask."""
    return "stopped" if run["status"] == "running" and not run["running"] else str(run["status"])
