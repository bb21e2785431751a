"""Acceptance test helpers: the real command, a fake endpoint, and fixed answers."""

from __future__ import annotations

import json
import os
import re
import signal
import sqlite3
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from council.doors.cli import run as command
from tests.fake_provider import FakeProvider, Gate, Reply, Seen
from tests.fork_server import Process
from tests.stored_rows import open_for
from tests.trusted_project import trust_project

Json = dict[str, Any]
SEATS = ("alpha", "beta", "gamma")
EVERYONE = (*SEATS, "chair")
PHASES = {
    "collaborative": {"draft": SEATS, "improve": SEATS, "synthesise": ("chair",)},
    "adversarial": {"draft": SEATS, "triage": ("chair",), "attack": ("beta", "gamma"), "verdict": ("chair",)},
    "triad": {"draft": SEATS, "merge": ("chair",)},
}
QUESTION = "Should the archive move to cold storage?"
Instead = Reply | list[Reply] | Callable[[Seen], Reply | None]
TYPED = {"Triage": "triage", "Attack": "attack", "Ruling": "verdict", "SeatLookups": "look"}


# Answers


def mark(seat: str, phase: str) -> str:
    """Return a token that occurs in one statement only."""
    return f"mark-{seat}-{phase}-mark"


@dataclass
class FixedAnswers:
    """Fixed answers by seat and phase. `instead` overrides them by model ("beta", "beta/attack") with one reply,
    several in turn, or a function of the request (None: the fixed answer).
    """

    seat_of: dict[str, str] = field(default_factory=lambda: {seat: seat for seat in EVERYONE})
    leader: str = "alpha"
    consensus: bool = False
    instead: dict[str, Instead] = field(default_factory=dict)

    def __call__(self, seen: Seen) -> Reply:
        seat, phase = self.who(seen)
        for name in (f"{seen.model}/{phase}", seen.model):
            other = self.instead.get(name)
            if isinstance(other, list):
                other = other.pop(0) if other else None
            elif callable(other):
                other = other(seen)
            if other is not None:
                return other
        return Reply(text=self.words(seat, phase, seen))

    def who(self, seen: Seen) -> tuple[str, str]:
        seat = self.seat_of.get(seen.model, seen.model)
        wanted = (seen.body.get("response_format") or {}).get("json_schema", {}).get("name", "")
        if wanted:
            return seat, TYPED[wanted]
        if seat == "chair":
            return seat, "synthesise" if any(mark(name, "improve") in seen.prompt for name in SEATS) else "merge"
        return seat, "improve" if any(mark(name, "draft") in seen.prompt for name in SEATS) else "draft"

    def words(self, seat: str, phase: str, seen: Seen) -> str:
        typed = {"triage": self.triage, "attack": self.attack, "verdict": self.verdict, "look": self.look}
        if phase in typed and seen.schema is not None:
            return json.dumps(typed[phase](seat, seen.schema))
        return f"The {phase} of {seat}: {mark(seat, phase)}."

    def triage(self, seat: str, schema: Json) -> Json:
        criteria = ("same_conclusion", "no_critical_flag", "no_contradiction", "mostly_high")
        told = {"leader": self.leader, "reason": mark(seat, "triage"), "agreed": ["it costs"]}
        return told | {"contested": [] if self.consensus else ["when"]} | dict.fromkeys(criteria, self.consensus)

    def look(self, seat: str, schema: Json) -> Json:
        return {"files": [], "names": [], "patterns": []}

    def attack(self, seat: str, schema: Json) -> Json:
        issue = {"severity": "MAJOR", "hits": "the cost", "flaw": mark(seat, "attack"), "correction": "count it"}
        return {"issues": [issue], "case": "", "verdict": "MODIFIED"}

    def verdict(self, seat: str, schema: Json) -> Json:
        issues = schema["properties"]["points"]["items"]["properties"]["issue"].get("enum", [])
        points = [{"issue": issue, "landed": True, "why": "it is so"} for issue in issues]
        told = {"answer": f"The answer: {mark(seat, 'verdict')}.", "assessment": "Little is left open."}
        return {"points": points, "outcome": "MODIFIED" if points else "SURVIVED", **told}


# Command and endpoint


@dataclass
class Result:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Json:
        value: Json = json.loads(self.out)
        return value


class Workspace:
    """One working folder, one data folder, one endpoint."""

    def __init__(self, folder: Path, provider: FakeProvider) -> None:
        self.folder = folder
        self.provider = provider
        self.answers = FixedAnswers()
        provider.answer = self.answers
        self.configure()

    @property
    def data(self) -> Path:
        return Path(os.environ["COUNCIL_DATA"])

    def configure(self, *, base_url: str = "", more: str = "", **fallbacks: Sequence[str]) -> None:
        """Write council.toml: each seat uses a model of the same name, with the given fallbacks only."""
        url = base_url or self.provider.base_url
        lines = ["[providers.sim]", 'wire = "openai"', f'base_url = "{url}"', "backoff = 0.01", ""]
        for seat in EVERYONE:
            lines += [f"[seats.{seat}]" if seat in SEATS else "[chair]", f'model = "sim:{seat}"']
            lines += [f"fallback = {json.dumps(list(fallbacks.get(seat, ())))}", ""]
        (self.folder / "council.toml").write_text("\n".join([*lines, more]), encoding="utf-8")
        trust_project(self.folder)

    # Run the command

    def process(self, *arguments: str) -> Process:
        """Start `council …` as a process in a new process group."""
        return Process(arguments, self.folder)

    def council(self, *arguments: str) -> Result:
        return wait_for_exit(self.process(*arguments))

    # Read the endpoint and the ledger

    def hold(self, phase: str, *seats: str) -> Gate:
        """Hold the requests of a phase open, for the named seats or all."""
        return self.provider.hold(
            lambda seen: self.answers.who(seen)[1] == phase and (not seats or self.answers.who(seen)[0] in seats)
        )

    def asked(self, since: int = 0) -> list[str]:
        """Return `phase/seat` of every request after the first `since`, in order."""
        return ["/".join(reversed(self.answers.who(seen))) for seen in self.provider.log[since:]]

    def prompt(self, key: str) -> str:
        phase, _, seat = key.partition("/")
        (seen,) = (seen for seen in self.provider.log if self.answers.who(seen) == (seat, phase))
        return seen.prompt

    def rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        if not os.environ.get("COUNCIL_DATABASE") and not (self.data / "council.db").exists():
            return []
        with closing(open_for(query, self.data / "council.db")) as db:
            return db.execute(query, values).fetchall()

    def status(self, run: str) -> str:
        if url := os.environ.get("COUNCIL_DATABASE"):
            from tests.databases import read_status

            return read_status(url, run)
        return str(self.rows("SELECT status FROM runs WHERE id = ?", run)[0][0])

    def wait_until_finished(self, *runs: str) -> None:
        wait_until(lambda: all(self.status(run) == "complete" for run in runs), "the workers finished the runs")

    def runs(self) -> list[str]:
        """Return the ids of this folder's runs, oldest first."""
        try:
            return [
                run for (run,) in self.rows("SELECT id FROM runs WHERE folder = ? ORDER BY rowid", str(self.folder))
            ]
        except sqlite3.DatabaseError:
            return []

    def reports(self) -> list[Path]:
        """Return the report files of judges, then those of other protocols."""
        folders = (self.folder / ".agents" / "council", self.data / "reports")
        return [path for folder in folders for path in sorted(folder.glob("*.md"))]


class Terminal:
    """The command in this process: the same function that `council` calls. The project's settings are trusted first."""

    def __init__(self, read: Callable[[], Any], *, trusts: bool = True) -> None:
        self._read = read
        self._trusts = trusts

    def __call__(self, *arguments: str) -> Result:
        if self._trusts:
            trust_project()
        self._read()
        code = command(list(arguments))
        said = self._read()
        return Result(code, said.out, said.err)


def wait_for_exit(process: Process | subprocess.Popen[str]) -> Result:
    out, err = process.communicate(timeout=120)
    assert process.returncode is not None
    return Result(process.returncode, out, err)


def kill(process: Process) -> None:
    """Send kill -9 and wait for the exit."""
    os.killpg(process.pid, signal.SIGKILL)
    assert wait_for_exit(process).code == -signal.SIGKILL


def check_store(council: Terminal) -> None:
    done = council("runs", "fsck")
    assert done.code == 0, done.out


def wait_until(true: Callable[[], object], what: str, within: float = 60.0) -> None:
    """Poll a condition until it holds.

    An expensive one is polled less often, to leave the cores to what it waits for.
    """
    pause, end = threading.Event(), time.monotonic() + within
    begun = time.monotonic()
    while not true():
        if time.monotonic() > end:
            raise TimeoutError(f"{what}: not within {within} s")
        pause.wait(min(max(0.005, 5 * (time.monotonic() - begun)), 0.1))
        begun = time.monotonic()


# Comparing reports

VARIES = ("run", "calls", "seconds", "attempts")


DATE = re.compile(r"\d{4}-?\d\d-?\d\d")  # the second run may be made after midnight


def comparable(report: Json) -> Json:
    """Return the report without run id, dates, times, attempts and calls, for comparing two runs of one question."""
    kept = {key: value for key, value in report.items() if key not in VARIES}
    if Path(kept["report_path"] or "").is_absolute():  # in a data folder, which differs
        kept["report_path"] = Path(kept["report_path"]).name
    kept |= {key: DATE.sub("DATE", kept[key]) for key in ("name", "report_path") if kept.get(key)}
    kept["seats"] = [{key: value for key, value in seat.items() if key not in VARIES} for seat in report["seats"]]
    if report["chair"]:
        kept["chair"] = {key: value for key, value in report["chair"].items() if key not in VARIES}
    return kept
