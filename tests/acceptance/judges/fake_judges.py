"""Test bench for judges: a repository, a fake endpoint with two families, and scripted replies."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tests.acceptance.helpers import VARIES, Json, Result, Workspace, wait_for_exit
from tests.fake_provider import FakeProvider, Gate, Reply, Seen
from tests.fork_server import Process

Instead = Reply | list[Reply] | Callable[[Seen], Reply | None]
JUDGES = tuple(f"judge-{n}" for n in range(1, 5))
MIXED = tuple(f"{family}-judge-{n}" for family in ("claude", "codex") for n in range(1, 4))
PHASE = {
    "Opinion": "judge", "Options": "judge", "Facets": "judge", "SecondOpinion": "r2", "SubQuestions": "questions", "Consolidation": "consolidate",
    "Lookups": "look", "Exploration": "look", "DefectGroups": "clerk", "SeatLookups": "read",
}  # fmt: skip


# Replies


def opinion(verdict: str = "PASS", *findings: Json, confidence: str = "HIGH", **more: Any) -> Json:
    said = {"key_insight": f"It is a {verdict}.", "recommendation": f"Act on the {verdict}.", "schema_version": 2}
    return {"verdict": verdict, "confidence": confidence, "findings": list(findings)} | said | more


def finding(severity: str, location: str, description: str, **more: str) -> Json:
    told = {
        "category": "security",
        "recommendation": f"Look at {location}.",
        "fix": f"Fix {location}.",
        "why": "It was not checked.",
        "ref": location,
    }
    return {"severity": severity, "location": location, "description": description} | told | more  # fmt: skip


def second(verdict: str = "PASS", *findings: Json, reason: str = "I am not persuaded.", **notes: Any) -> Json:
    """Return a second-round reply; `notes` are added to its debate notes."""
    told: Json = {
        "revised_from": None,
        "steel_man": "It may be worse than it looks.",
        "challenges": [],
        "acknowledgments": [],
    }
    changes = {name: notes.pop(name, []) for name in ("withdrawn", "supports", "settled", "blind_spots")}
    return opinion(verdict, *findings, **changes, reason=reason, debate_notes=told | notes)


def option(name: str) -> Json:
    return {"name": name, "what": "It caches.", "pros": ["fast"], "cons": ["stale"], "assessment": f"{name} is fine."}


def look(*paths: str, names: tuple[str, ...] = (), patterns: tuple[str, ...] = ()) -> Json:
    files = [{"path": path, "first": 0, "last": 0} for path in paths]
    return {"exploration": None, "files": files, "names": list(names), "patterns": list(patterns)}


def written_up(what: str) -> Json:
    told = {"findings": [f"found {what}"], "evidence": ["src/auth/jwt.py:1"], "assessment": f"assessed {what}"}
    return {"exploration": told, "files": [], "names": [], "patterns": []}


def name_of(seen: Seen) -> str:
    return str((seen.body.get("response_format") or {}).get("json_schema", {}).get("name", ""))


@dataclass
class JudgeAnswers:
    """Replies by `phase/seat`: judge, r2, questions, look, consolidate. Explorers are named after their question."""

    said: dict[str, Json] = field(default_factory=dict)
    instead: dict[str, Instead] = field(default_factory=dict)
    explorers: int = 2

    def __call__(self, seen: Seen) -> Reply:
        key = self.key(seen)
        other = self.instead.get(key) or self.instead.get(key.partition("/")[2])
        if isinstance(other, list):
            other = other.pop(0) if other else None
        elif callable(other):
            other = other(seen)
        return self.fitted(other or Reply(text=json.dumps(self.said.get(key) or self.usual(key, seen))), key, seen)

    def fitted(self, reply: Reply, key: str, seen: Seen) -> Reply:
        """Unwrap the report: after its last look-up an explorer is asked only for the report."""
        if name_of(seen) != "Exploration" or not reply.text:
            return reply
        said = json.loads(reply.text)
        told = (said["exploration"] or written_up(key)["exploration"]) if "exploration" in said else said
        return replace(reply, text=json.dumps(told))

    def key(self, seen: Seen) -> str:
        phase = PHASE[name_of(seen)]
        return f"{phase}/{self.subject(seen)}" if phase == "look" else f"{phase}/{seen.model}"

    def subject(self, seen: Seen) -> str:
        """Return the explorer's question: `judge-1-2` is the second question of judge-1."""
        prompt = seen.body["messages"][1]["content"]
        asked = [f"{seat}-{n}" for seat in (*JUDGES, *MIXED) for n in range(1, 6)]
        return next(name for name in asked if f"[{name}]" in prompt)

    def usual(self, key: str, seen: Seen) -> Json:
        phase, _, seat = key.partition("/")
        if phase == "questions":
            return {"questions": [f"[{seat}-{n}] where is it?" for n in range(1, self.explorers + 1)]}
        if phase == "look":
            return written_up(seat)
        if phase == "r2":
            return second()
        if phase == "read":
            has_read = any(turn["role"] == "assistant" for turn in seen.body["messages"])
            return {"files": [] if has_read else ["README.md"], "names": [], "patterns": []}
        if phase == "clerk":
            return {"groups": []}
        if phase == "consolidate":
            trade = {"option": "Cache it", "buys": "speed", "costs": "staleness"}
            theme = {"name": "Age", "findings": ["It is old."]}
            return {"trade_offs": [trade], "themes": [theme], "open_questions": ["When?"], "recommendation": "Take it."}
        asked = name_of(seen)
        if asked == "Options":
            return {"working": "", "options": [option("Cache it")], "recommendation": "Cache it."}
        if asked == "Facets":
            facet = {"name": "Age", "findings": ["It is old."]}
            return {"facets": [facet], "findings": ["It is old."], "open_questions": [], "recommendation": "Renew it."}
        return opinion()


# The table


class JudgesWorkspace(Workspace):
    """A folder to run judges in. Every judge uses a model of the same name, without fallbacks."""

    judge_answers: JudgeAnswers

    def __init__(self, folder: Path, provider: FakeProvider, config: Path) -> None:
        self.judge_answers = JudgeAnswers()
        self.config = config
        super().__init__(folder, provider)
        provider.answer = self.judge_answers

    def configure(  # type: ignore[override]
        self, *, base_url: str = "", more: str = "", second: bool = True, **fallbacks: Any
    ) -> None:
        """Write the configuration outside the folder, so that it does not count as a change."""
        url = base_url or self.provider.base_url
        families = {"sim": "anthropic", **({"simb": "openai"} if second else {})}
        lines = []
        for name, vendor in families.items():
            lines += [
                f"[providers.{name}]",
                'wire = "openai"',
                f'base_url = "{url}"',
                f'vendor = "{vendor}"',
                "backoff = 0.01",
            ]
        lines += ["[models]", 'default = "sim:default"', 'strong = "sim:strong"', 'fast = "sim:fast"']
        lines += ['other = "simb:other"'] if second else []
        for seat in (*JUDGES, *(MIXED if second else ())):
            member = f"{'simb' if seat.startswith('codex') else 'sim'}:{seat}"
            lines += [f"[seats.{seat}]", f'model = "{member}"', "fallback = []"]
        lines += ["[chair]", 'model = "sim:chair"', "fallback = []"]
        self.config.write_text("\n".join([*lines, more, ""]), encoding="utf-8")
        os.environ["COUNCIL_CONFIG"] = str(self.config)

    def hold_key(self, *keys: str) -> Gate:
        """Hold the requests with these keys; a bare phase means all its requests."""
        return self.provider.hold(
            lambda seen: self.judge_answers.key(seen) in keys or self.judge_answers.key(seen).partition("/")[0] in keys
        )

    def steps(self, since: int = 0) -> list[str]:
        return [self.judge_answers.key(seen) for seen in self.provider.log[since:]]

    def request(self, key: str) -> Seen:
        (seen,) = (seen for seen in self.provider.log if self.judge_answers.key(seen) == key)
        return seen

    def piped(self, text: str, *arguments: str) -> Result:
        """`… | council …`"""
        process = Process(arguments, self.folder, stdin=True)
        out, err = process.communicate(text, timeout=120)
        return Result(process.exit_code, out, err)


def comparable(report: Json) -> Json:
    """Return the parts that must be equal in two runs of one question: all but ids, times, attempts and calls."""
    kept = {key: value for key, value in report.items() if key not in VARIES}
    for many in ("seats",):
        kept[many] = [{key: value for key, value in seat.items() if key not in VARIES} for seat in report[many]]
    if report["chair"]:
        kept["chair"] = {key: value for key, value in report["chair"].items() if key not in VARIES}
    return kept


__all__ = [
    "JUDGES",
    "MIXED",
    "Json",
    "JudgeAnswers",
    "JudgesWorkspace",
    "Reply",
    "Result",
    "Seen",
    "comparable",
    "finding",
    "look",
    "opinion",
    "option",
    "second",
    "wait_for_exit",
    "written_up",
]  # fmt: skip
