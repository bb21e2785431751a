"""Fake command-line agents on a separate PATH, and checks for their leftover processes."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from council.members.cli_agent import CliAgentMember

SCRIPTS = Path(__file__).with_name("executables")
WITHIN = 30.0  # seconds until no process of an agent may be left
OTHERS = {"OPENAI_API_KEY": "sk-other-0123456789", "TAVILY_API_KEY": "tvly-other-0123456789", "SECRET_PLAN": "attack"}
KEY = "sk-ant-own-0123456789"


class FakeAgents:
    """Folder with one executable and its log."""

    def __init__(self, folder: Path, script: str, name: str = "claude") -> None:
        self.bin, self.home = folder / "bin", folder / "home"
        for place in (self.bin, self.home):
            place.mkdir(exist_ok=True)
        (self.bin / name).symlink_to(SCRIPTS / f"{script}.py")
        folders = {"HOME": str(self.home), "COUNCIL_CACHE": str(folder / "cache")}
        self.env = {"PATH": f"{self.bin}:{os.environ['PATH']}", "LANG": "C.UTF-8", **folders, **OTHERS}

    def member(self, name: str = "cli:claude", *, key: bool = True, **clocks: Any) -> CliAgentMember:
        env = self.env | ({"ANTHROPIC_API_KEY": KEY} if key else {})
        member = CliAgentMember(name, env=env, vendor="anthropic", **clocks)
        member.backoff = 0.0
        return member

    @property
    def log(self) -> list[dict[str, Any]]:
        path = self.bin / "log.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    @property
    def started(self) -> list[dict[str, Any]]:
        return [row for row in self.log if "started" in row]

    def left(self) -> list[int]:
        """Return the running processes of the agents, found by process group or marker variable, without zombies."""
        groups = {row["group"] for row in self.log}
        marks = {f"COUNCIL_CALL={row['environ']['COUNCIL_CALL']}".encode() for row in self.log}
        return [int(place.name) for place in Path("/proc").glob("[0-9]*") if _runs(place, groups, marks)]


def _runs(place: Path, groups: set[int], marks: set[bytes]) -> bool:
    try:
        state, _, group = (place / "stat").read_text().rpartition(")")[2].split()[:3]
        marked = marks & set((place / "environ").read_bytes().split(b"\0"))
    except OSError:
        return False
    return state != "Z" and (int(group) in groups or bool(marked))


async def eventually(happened: Callable[[], bool], within: float = WITHIN) -> bool:
    """Return whether the condition becomes true before the deadline."""
    begun = time.monotonic()
    ends = begun + within
    while not happened():
        if time.monotonic() > ends:
            return False
        await asyncio.sleep(
            min(max(0.01, 5 * (time.monotonic() - begun)), 0.1)
        )  # looking at all processes is expensive
        begun = time.monotonic()
    return True
