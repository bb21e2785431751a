"""Councils of scripted members of several vendors, and everything that a reader gets of them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from council.doors.chat import ChatFold, PieceKind
from council.engine.minutes import Minutes
from council.engine.records import ReportObject
from council.errors import Fault
from council.events import Entry
from council.members.base import OnDelta, Progress
from council.render.markdown import render_answer, render_document, render_verbose
from council.render.report import build_report
from council.render.tail import add_tail
from council.runs.service import Convener
from council.types import Answer, Ask, Usage, encode_json

Json = dict[str, Any]
PIECE_CHARS = 11  # of a streamed answer, so that lines and fences are cut anywhere


@dataclass(frozen=True)
class Cut:
    """An answer that ended at its length limit."""

    reply: Any


@dataclass(frozen=True)
class Setup:
    """What a council needs to run: its seats with members and fallbacks, and the answer to each step by its key.

    An answer is a text, a typed reply, a list of these in turn, or a function of the request. `faults` holds the kind
    of failure of the requested member by step; `stop_at` is the step at which the run is interrupted.
    """

    protocol: str
    question: str
    members: Mapping[str, str]  # seat → member, the chair included
    script: Mapping[str, Any]
    options: Mapping[str, Any] = field(default_factory=dict)
    fallbacks: Mapping[str, str] = field(default_factory=dict)  # seat → member
    faults: Mapping[str, str] = field(default_factory=dict)
    prices: Mapping[str, float] = field(default_factory=dict)  # member → dollars per million tokens
    files: Mapping[str, str] = field(default_factory=dict)
    stop_at: str = ""
    chair: str = "chair"  # its name in the plan
    models: Sequence[str] = ()  # members by `-m`, for another number of seats
    check: bool = False  # by `--check`


class ScriptedVoice:
    """A member whose answers are those of the script for the seat that asks it."""

    small = False
    free = False
    backoff = 0.0

    def __init__(self, name: str, setup: Setup, turns: dict[str, int], stop: asyncio.Event) -> None:
        self.name = name
        self.vendor = name.partition(":")[0]
        self._setup = setup
        self._turns = turns  # answers that were given to each step
        self._stop = stop
        if name in setup.prices:
            self.price = {"input": setup.prices[name], "output": 5 * setup.prices[name]}

    def prepare(self, ask: Ask) -> bytes:
        return encode_json({"key": ask.key, "messages": ask.messages, "schema": ask.schema})

    async def ready(self, progress: Progress) -> None:
        pass

    async def send(self, body: bytes, on_delta: OnDelta) -> Answer:
        request = json.loads(body)
        key = request["key"]
        if key == self._setup.stop_at:
            self._stop.set()
            await asyncio.Event().wait()
        await asyncio.sleep(0)  # let the other seats start
        if key in self._setup.faults and self.name == self._requested_member(key):
            raise Fault(self._setup.faults[key], "scripted failure")
        line = self._next_line(key)
        said = line(request) if callable(line) else line
        finish = "length" if isinstance(said, Cut) else "stop"
        said = said.reply if isinstance(said, Cut) else said
        text = said if isinstance(said, str) else json.dumps(said, ensure_ascii=False)
        for start in range(0, len(text), PIECE_CHARS):
            on_delta(text[start : start + PIECE_CHARS])
        words = sum(len(message["content"].split()) for message in request["messages"])
        return Answer(text, finish=finish, usage=Usage(words, len(text.split())), model=self.name)

    def _requested_member(self, key: str) -> str:
        seat = key.rpartition("/")[2]
        return self._setup.members["chair" if seat == self._setup.chair else seat]

    def _next_line(self, key: str) -> Any:
        line = self._setup.script[key]
        if not isinstance(line, list):
            return line
        turn = self._turns.get(key, 0)
        self._turns[key] = turn + 1
        return line[min(turn, len(line) - 1)]

    async def probe(self) -> str:
        return "always answers"

    async def close(self) -> None:
        pass


@dataclass(frozen=True)
class Views:
    """A council as its readers get it."""

    minutes: Minutes
    report: ReportObject
    texts: Mapping[str, str]  # by door
    errors: tuple[str, ...]  # of the chat doors


async def hold_council(setup: Setup) -> tuple[Minutes, list[Entry]]:
    """Run a council and return its minutes with all its events."""
    _write_files(setup)
    stop = asyncio.Event()
    turns: dict[str, int] = {}
    names = dict.fromkeys([*setup.members.values(), *setup.fallbacks.values()])
    voices = [ScriptedVoice(name, setup, turns, stop) for name in names]
    flags = {"trust": True, "models": setup.models or None, "check": setup.check or None}
    convener = Convener(Path.cwd(), flags=flags, members=voices)
    entries: list[Entry] = []
    try:
        plan = await convener.plan([setup.question], setup.options, protocol=setup.protocol)
        return await convener.run(plan, entries.append, stop=stop), entries
    finally:
        await convener.close()


def _write_files(setup: Setup) -> None:
    lines = []
    for seat, member in setup.members.items():
        table = "chair" if seat == "chair" else f"seats.{seat}"
        fallback = [setup.fallbacks[seat]] if seat in setup.fallbacks else []
        lines += [f"[{table}]", f"model = {json.dumps(member)}", f"fallback = {json.dumps(fallback)}"]
    for name, text in {"council.toml": "\n".join(lines), **setup.files}.items():
        path = Path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def collect_views(minutes: Minutes, entries: Sequence[Entry]) -> Views:
    """Return the council as its readers get it: report, pipe, document, verbose layout, chat and MCP."""
    report = build_report(minutes)
    whole, broken = _read_chat(entries, is_streamed=False)
    streamed, broke_off = _read_chat(entries, is_streamed=True)
    texts = {
        "pipe": render_answer(minutes),
        "document": render_document(minutes, report),
        "verbose": render_verbose(minutes),
        "chat": whole,
        "chat streamed": streamed,
        "mcp": add_tail(report["answer"], report["tail"]),
    }
    return Views(minutes, report, texts, (*broken, *broke_off))


def _read_chat(entries: Sequence[Entry], *, is_streamed: bool) -> tuple[str, list[str]]:
    fold = ChatFold(is_streamed=is_streamed)
    pieces = [piece for entry in entries for piece in fold.read(entry)]
    content = "".join(piece.text for piece in pieces if piece.kind is PieceKind.CONTENT)
    return content, [piece.text for piece in pieces if piece.kind is PieceKind.ERROR]


Line = str | Json | list[Any] | Callable[[Json], Any] | Cut
