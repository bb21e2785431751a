"""Command-line agents as members: `cli:claude`, `cli:codex:MODEL`, `cli:gemini`, with the user's existing login.

`prepare` serialises the prompt and the schema. `send` creates a temporary workspace, starts the agent there with the
flags it supports, writes the prompt to its standard input and parses its JSON output. The prompt contains the whole
packet, and the agent gets no tools.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from council.errors import ConfigError, Fault
from council.foreign import KEY_SHAPED, one_line, without
from council.members.base import Hear, Progress
from council.members.command_agents import AGENTS, Agent, Flag
from council.members.command_process import Clocks, Ended, converse, told
from council.members.command_reading import ESCAPES, READERS, Listener, Said, plain
from council.members.command_room import DEPTH, depth, has_login, own_key, room
from council.members.wires.faults import NO_KEY, NO_MODEL, NO_MONEY, TOO_LONG, complaint_in
from council.members.wires.member import with_schema
from council.settings import catalogue, command_path
from council.types import Answer, Ask, Json, Message

PROBING = Clocks(first_byte=10.0, idle=10.0)
COMPLAINT = 300  # characters
TRIES = 3  # per request; each retry drops a flag that the agent rejected
UNKNOWN_FLAG = re.compile(
    r"(?:unknown|unrecognized|unexpected|invalid)\s(?:option|argument|flag)s?[:\s]+\W*([\w-]+)", re.I
)
NOT_LOGGED_IN = re.compile(
    r"not logged in|/login|codex login|log ?in again|authenticat|unauthorized|\b401\b|auth method|oauth|invalid_grant|credentials", re.I
)  # fmt: skip
USED_UP = re.compile(r"(usage|session|weekly|daily|spending|hit your|reached your).{0,20}limit|out of credits", re.I)
TELLING = re.compile(r"error|fail|invalid|denied|unable|cannot|could not|not ", re.I)


@dataclass(slots=True)
class Known:
    """Version and help of an executable, cached until the file changes."""

    version: str
    help: str
    refused: set[str] = field(default_factory=set)  # flags it lists in --help but rejects

    def lists(self, flag: Flag) -> bool:
        """Return whether --help lists each word of a flag. Without readable help, every flag is tried."""
        words = [word for word in flag if re.fullmatch(r"-{0,2}[a-z][a-z-]*", word)]
        known = (not self.help or re.search(rf"(?<![\w-]){word}(?![\w-])", self.help) for word in words)
        return not self.refused.intersection(words) and all(known)


_known: dict[tuple[str, int], Known] = {}


class CommandMember:
    small = False
    free = False  # billed to a login or a key
    backoff = 0.5

    def __init__(
        self, name: str, *, env: Mapping[str, str], vendor: str, first_byte: float = 300.0, idle: float = 300.0
    ) -> None:
        kind, _, self.model = name.removeprefix("cli:").partition(":")
        self.name, self.vendor, self.env = name, vendor, dict(env)
        self.agent = _agent(kind, name)
        self.clocks = Clocks(first_byte, idle)
        self._asking = asyncio.Lock()
        if depth(env):
            raise ConfigError(
                f'"{name}" cannot be used inside another council ({DEPTH} is set): choose a member of a provider'
            )

    def prepare(self, ask: Ask) -> bytes:
        messages = with_schema(ask.messages, ask.schema) if ask.schema is not None else list(ask.messages)
        system, prompt = _spoken(messages)
        request = {"model": model_of(self.model), "system": system, "prompt": prompt, "schema": ask.schema}
        more = {"effort": ask.effort, "bare": ask.bare}
        return json.dumps(request | more, ensure_ascii=False, separators=(",", ":")).encode(errors="replace")

    async def ready(self, progress: Progress) -> None:
        """Do nothing: the first call probes the executable."""

    async def send(self, body: bytes, hear: Hear) -> Answer:
        request: Json = json.loads(body)
        path = self._path()
        known = await self._probed(path)
        for _ in range(TRIES):
            listener, ended = await self._asked(path, known, request, hear)
            flag = _refused_flag(ended, listener.said)
            if flag is None or flag in known.refused:
                break
            known.refused.add(flag)
        return self._answer(listener, ended, request)

    async def _asked(self, path: Path, known: Known, request: Json, hear: Hear) -> tuple[Listener, Ended]:
        with room(self.agent, self.env) as made:
            values = made.furnish(request)
            output = next(filter(known.lists, self.agent.outputs), ())
            flags = [*output, *self._flags(known, values)]
            has_system_file = "--system-prompt-file" in flags
            prompt = (
                request["prompt"]
                if has_system_file or not request["system"]
                else f"{request['system']}\n\n{request['prompt']}"
            )
            listener = Listener(READERS[self.agent.name] if output else None, hear)
            argv = [str(path), *self.agent.begin, *flags, *self.agent.end]
            try:
                ended = await converse(
                    argv, env=made.env, folder=made.work, prompt=prompt.encode(errors="replace"), clocks=self.clocks,
                    take=listener.take, complete=lambda: listener.read is not None and listener.said.done,
                )  # fmt: skip
            except Fault as fault:
                raise self._fault(fault.kind, f"{self.agent.name}: {fault.detail}", fault.said) from None
        listener.end()
        return listener, ended

    def _flags(self, known: Known, values: Mapping[str, str]) -> Iterator[str]:
        for flag in filter(known.lists, self.agent.flags):
            wanted = [name for word in flag for name in re.findall(r"{(\w+)}", word)]
            if all(name in values for name in wanted):
                yield from (_filled(word, values) for word in flag)

    def _answer(self, listener: Listener, ended: Ended, request: Json) -> Answer:
        said = listener.said
        sound = said.done and not said.failed and (listener.read is not None or ended.code == 0)
        if sound or (not listener.text and not ended.code):
            text = without_echo(ESCAPES.sub("", said.text), request)
            return Answer(text, said.finish, said.usage, said.model or self.agent.name, said.id)
        raise self._failure(said, listener, ended)

    def _failure(self, said: Said, listener: Listener, ended: Ended) -> Fault:
        """Return the Fault for a call without a usable answer."""
        reason = said.failed or _last_words(ended, said)
        tails = told(ended.out, ended.err)
        # Match only failures and short outputs: a real answer may mention logins and limits too.
        is_complaint = said.failed or ended.code or len(listener.text) <= COMPLAINT
        if is_complaint and (kind := _kind(f"{said.complaint} {reason}")):
            hint = f"; {self.agent.log_in}" if kind == "auth" else ""
            return self._fault(kind, f"{self.agent.name} reports: {reason}{hint}", tails)
        if said.failed:
            return self._fault("cli:error", f"{self.agent.name} reports an error: {reason}", tails)
        if ended.code:
            return self._fault("cli:exit", f"{self.agent.name} exited with code {ended.code}: {reason}", tails)
        printed = f"{self.agent.name} printed an incomplete answer: {listener.text[:COMPLAINT]}"
        return self._fault("cli:output", printed, tails)

    def _fault(self, kind: str, detail: str, said: str) -> Fault:
        keys = [self.env.get(name, "") for name in self.agent.keys]
        return Fault(kind, one_line(detail, keys), said=KEY_SHAPED.sub("***", without(ESCAPES.sub("", said), keys)))

    def _path(self) -> Path:
        path = command_path(self.agent.name, self.env)
        if path is None:
            raise Fault("cli:start", f"{self.agent.name} is not installed or not on PATH")
        return path

    async def probe(self) -> str:
        """Return the version and whether a login or key exists, without calling a model."""
        version = (await self._probed(self._path())).version
        if key := own_key(self.agent, self.env):
            return f"{version}, {key} is set"
        if has_login(self.agent, self.env):
            return f"{version}, logged in"
        if sys.platform == "darwin":  # the login may be in the keychain, which we do not read
            return f"{version}; login status unknown until the first call"
        raise Fault("auth", f"{version} is installed, but not logged in; {self.agent.log_in}")

    async def _probed(self, path: Path) -> Known:
        key = _stamp(path)
        async with self._asking:
            if key not in _known:
                _known[key] = await self._examine(path)
        return _known[key]

    async def _examine(self, path: Path) -> Known:
        version, listed = await asyncio.gather(
            self._output(path, "--version"), self._output(path, *self.agent.begin, "--help")
        )
        # `--x[-file]` means two flags.
        listed = re.sub(r"(--[\w-]+)\[(-\w+)\]", r"\1 \1\2", listed)
        return Known(one_line(version.partition("\n")[0]) or "an unknown version", listed if "--" in listed else "")

    async def _output(self, path: Path, *words: str) -> str:
        listener = Listener(None, lambda piece: None)
        with room(self.agent, self.env) as made:
            try:
                await converse(
                    [str(path), *words], env=made.env, folder=made.work, prompt=b"", clocks=PROBING, take=listener.take
                )
            except Fault:  # the call itself will report the problem
                return ""
        return listener.text

    async def close(self) -> None:
        """Do nothing: each call ends its process."""


def _stamp(path: Path) -> tuple[str, int]:
    return str(path.resolve()), path.stat().st_mtime_ns


def _agent(kind: str, name: str) -> Agent:
    if kind not in AGENTS:
        raise ConfigError(f'"{name}" is not a supported command-line agent: use one of {", ".join(AGENTS)}')
    return AGENTS[kind]


def model_of(name: str) -> str:
    """Return the vendor's model id; a name that is not in the catalogue is passed as written."""
    known = catalogue().find(name)
    return next(iter(known.ids.values()), name) if known else name


def _filled(word: str, values: Mapping[str, str]) -> str:
    for name, value in values.items():
        word = word.replace(f"{{{name}}}", value)
    return word


def _spoken(messages: list[Message]) -> tuple[str, str]:
    """Return the system prompt and the conversation, each as one text."""
    system = "\n\n".join(message["content"] for message in messages if message["role"] == "system")
    turns = [message for message in messages if message["role"] != "system"]
    headings = {"assistant": "--- Your answer ---\n", "user": "--- Next message ---\n"}
    parts = [(headings[turn["role"]] if n else "") + turn["content"] for n, turn in enumerate(turns)]
    return system, "\n\n".join(parts)


def without_echo(text: str, request: Json) -> str:
    """Remove the prompt from the start of an answer that repeats it."""
    for part in (f"{request['system']}\n\n{request['prompt']}", request["prompt"]):
        text = text.strip().removeprefix(part.strip())
    return text.strip()


def _refused_flag(ended: Ended, said: Said) -> str | None:
    """Return the flag that the agent rejected, if any."""
    if not ended.code or said.done:
        return None
    found = UNKNOWN_FLAG.search(plain(ended.err) + "\n" + plain(ended.out))
    return "--" + found[1].lstrip("-") if found else None


def _last_words(ended: Ended, said: Said) -> str:
    """Return the most useful line about a failure, from standard error or else standard output, skipping JSON."""
    for stream in (ended.err, ended.out):
        text = plain(stream).strip()
        if found := re.search(r"^[\[{]", text, re.MULTILINE):
            text = text[: found.start()] + _message(text[found.start() :])
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        if lines:
            return next(filter(TELLING.search, lines), lines[-1])
    return said.complaint or "no reason given"


def _message(text: str) -> str:
    """Return the error message inside a JSON object, or ""."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return ""
    return complaint_in(found).message if isinstance(found, dict) and found.get("error") else ""


def _kind(words: str) -> str:
    """Return the fault kind of a vendor error, or "" for other failures."""
    if NOT_LOGGED_IN.search(words) or NO_KEY.search(words):
        return "auth"
    if USED_UP.search(words) or NO_MONEY.search(words):
        return "quota"
    if TOO_LONG.search(words):
        return "size"
    return "model" if NO_MODEL.search(words) else ""
