"""Command-line agents as members: `cli:claude`, `cli:codex:MODEL`, `cli:gemini`, with the user's existing login.

`prepare` serialises the prompt and the schema. `send` creates a temporary workspace, starts the agent there with the
flags it supports, writes the prompt to its standard input and parses its JSON output. The prompt contains the whole
packet. Tools are off as far as each agent allows it: see docs/members.md.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypedDict

from council.errors import ConfigError, Fault
from council.members.base import Member, MemberContext, OnDelta
from council.members.cli_output import CONTROL_SEQUENCES, READERS, AgentOutput, OutputParser, strip_escapes
from council.members.cli_process import AgentTimeouts, ProcessResult, format_tails, run_process
from council.members.cli_sandbox import (
    AGENTS,
    DEPTH_VARIABLE,
    AgentRequest,
    Flag,
    council_depth,
    find_key_variable,
    find_secrets,
    open_workspace,
)
from council.members.wires import error_responses
from council.members.wires.error_responses import ErrorResponse
from council.members.wires.wire import append_schema, split_system
from council.settings.catalogue import catalogue
from council.settings.config_files import cache_folder, find_command, store_cache
from council.text_cleanup import KEY_SHAPED, mask_values, redact_line
from council.types import Answer, Ask, Message, encode_json

HELP_FILE = "agent_help.json"  # in the cache folder: `gemini --help` takes longer than an answer
MAX_HELP_AGE_S = 24 * 3600.0
PROBE_TIMEOUTS = AgentTimeouts(first_byte=10.0, idle=10.0)
MAX_COMPLAINT_CHARS = 300  # characters
MAX_TRIES = 3  # per request; each retry drops a flag that the agent rejected
UNKNOWN_FLAG = re.compile(
    r"(?:unknown|unrecognized|unexpected|invalid)\s(?:option|argument|flag)s?[:\s]+\W*([\w-]+)", re.I
)
NOT_LOGGED_IN = re.compile(
    r"not logged in|/login|codex login|log ?in again|authenticat|unauthorized|\b401\b|auth method|oauth|invalid_grant|credentials",
    re.I,
)
QUOTA_EXCEEDED = re.compile(
    r"(usage|session|weekly|daily|spending|hit your|reached your).{0,20}limit|out of credits|(daily|your) quota", re.I
)
SERVER_FAILURE = re.compile(r"experiencing high demand|internal (server )?error", re.I)
# Kinds of failures without a status, in this order: messages about limits also name other ways to log in.
FAILURE_MESSAGES = (
    ("quota", error_responses.QUOTA_MESSAGE),
    ("rate", error_responses.THROTTLING_MESSAGE),
    ("auth", NOT_LOGGED_IN),
    ("auth", error_responses.INVALID_KEY_MESSAGE),
    ("size", error_responses.TOO_LONG_MESSAGE),
    ("model", error_responses.UNKNOWN_MODEL_MESSAGE),
    ("server", SERVER_FAILURE),
)
# A setting of ours that another version of codex reads differently: "Error loading config.toml: … in `agents`".
REJECTED_SETTING = re.compile(r"error loading config.*?\bin `([\w.-]+)`", re.I | re.S)
PLACEHOLDER = re.compile(r"{(\w+)}")
ERROR_LINE = re.compile(r"error|fail|invalid|denied|unable|cannot|could not|not ", re.I)


@dataclass(slots=True)
class ExecutableInfo:
    """Help of an executable, cached until the file changes."""

    help: str
    rejected_flags: set[str] = field(default_factory=set)  # flags and settings that it rejects

    def supports(self, flag: Flag) -> bool:
        """Return whether --help lists each word of a flag. Without readable help, every flag is tried."""
        if any(flag[-1].startswith(f"{name}.") for name in self.rejected_flags):
            return False
        parts = [part for part in flag if re.fullmatch(r"-{0,2}[a-z][a-z-]*", part)]
        listed = (not self.help or re.search(rf"(?<![\w-]){part}(?![\w-])", self.help) for part in parts)
        return not self.rejected_flags.intersection(parts) and all(listed)


FileVersion = tuple[str, int, int, int]  # path, times of the last change of its content and of the file, size
_executables: dict[FileVersion, ExecutableInfo] = {}


class CliAgentMember(Member):
    def __init__(
        self,
        name: str,
        *,
        env: Mapping[str, str],
        vendor: str,
        first_byte: float | None = None,
        idle: float | None = None,
        pass_env: Iterable[str] = (),
    ) -> None:
        kind, _, self.model = name.removeprefix("cli:").partition(":")
        self.name, self.vendor, self.env = name, vendor, dict(env)
        if kind not in AGENTS:
            raise ConfigError(f'"{name}" is not a supported command-line agent: use one of {", ".join(AGENTS)}')
        self.agent = AGENTS[kind]
        self.timeouts, self.pass_env = AgentTimeouts(first_byte, idle), tuple(pass_env)
        self._probe_lock = asyncio.Lock()
        if council_depth(env):
            raise ConfigError(
                f'"{name}" cannot be used inside another council ({DEPTH_VARIABLE} is set): choose a member of a provider'
            )

    def prepare(self, ask: Ask) -> bytes:
        messages = append_schema(ask.messages, ask.schema) if ask.schema is not None else list(ask.messages)
        system, prompt = _flatten_messages(messages)
        request: AgentRequest = {
            "model": vendor_model_id(self.model),
            "system": system,
            "prompt": prompt,
            "schema": ask.schema,
            "effort": ask.effort,
            "bare": ask.bare,
        }
        return encode_json(request)

    async def send(self, body: bytes, on_delta: OnDelta) -> Answer:
        request: AgentRequest = json.loads(body)
        path = self._executable_path()
        info = await self._executable_info(path)
        for _ in range(MAX_TRIES):
            parser, result = await self._run_agent(path, info, request, on_delta)
            flag = _find_rejected_flag(result, parser.output)
            if flag is None or flag in info.rejected_flags:
                break
            info.rejected_flags.add(flag)
            store_help(self.env, _file_version(path), "")  # it may be outdated: the next process asks again
        return self._to_answer(parser, result, request)

    async def _run_agent(
        self, path: Path, info: ExecutableInfo, request: AgentRequest, on_delta: OnDelta
    ) -> tuple[OutputParser, ProcessResult]:
        with open_workspace(self.agent, self.env, self.pass_env) as workspace:
            values = workspace.write_request(request)
            output = next(filter(info.supports, self.agent.output_flags), ())
            flags = [*output, *self._build_flags(info, values)]
            prompt = request["prompt"]
            if request["system"] and "--system-prompt-file" not in flags:
                prompt = f"{request['system']}\n\n{prompt}"
            parser = OutputParser(READERS[self.agent.name] if output else None, on_delta)
            argv = [str(path), *self.agent.args_before, *flags, *self.agent.args_after]
            try:
                result = await run_process(
                    argv,
                    env=workspace.env,
                    folder=workspace.work,
                    prompt=prompt.encode(errors="replace"),
                    timeouts=self.timeouts,
                    on_output=parser.feed,
                    on_error_output=parser.feed_error,
                    is_complete=lambda: parser.read_event is not None and parser.output.done,
                    is_hopeless=lambda: parser.output.is_hopeless,
                )
            except Fault as fault:
                detail = f"{self.agent.name}: {fault.detail}{_format_complaint(parser.output)}"
                raise self._redacted_fault(fault.kind, detail, fault.said) from None
            except asyncio.CancelledError as cancelled:  # the notes become part of the reason if the time is up
                said = "\n".join(getattr(cancelled, "__notes__", []))
                known = self._redacted_fault("stall", self.agent.name + _format_complaint(parser.output), said)
                cancelled.__notes__ = [known.detail if parser.output.warning else "", known.said]
                raise
        parser.finish()
        return parser, result

    def _build_flags(self, info: ExecutableInfo, values: Mapping[str, str]) -> Iterator[str]:
        for flag in filter(info.supports, self.agent.flags):
            with suppress(KeyError):  # the request does not have what this flag says
                yield from [PLACEHOLDER.sub(lambda found: values[found[1]], part) for part in flag]

    def _to_answer(self, parser: OutputParser, result: ProcessResult, request: AgentRequest) -> Answer:
        output = parser.output
        is_usable = output.done and not output.error and (parser.read_event is not None or result.exit_code == 0)
        if is_usable or (not parser.text and not result.exit_code and not output.retries):
            text = strip_echo(CONTROL_SEQUENCES.sub("", output.text), request)
            return Answer(text, output.finish, output.usage.validated(), output.model or self.agent.name, output.id)
        raise self._to_fault(output, parser, result)

    def _to_fault(self, output: AgentOutput, parser: OutputParser, result: ProcessResult) -> Fault:
        reason = output.error or (output.warning if output.retries else "") or _failure_line(result, output)
        tails = format_tails(result.stdout_tail, result.stderr_tail)
        # Match only failures and short outputs: a real answer may mention logins and limits too.
        is_complaint = output.error or output.retries or result.exit_code or len(parser.text) <= MAX_COMPLAINT_CHARS
        if is_complaint and (kind := _classify_failure(f"{output.warning} {reason}", output.status)):
            hint = f"; {self._login_hint()}" if kind == "auth" else ""
            return self._redacted_fault(kind, f"{self.agent.name} reports: {_shorten_reason(reason)}{hint}", tails)
        if output.error or output.retries:
            detail = f"{self.agent.name} reports an error: {_shorten_reason(reason)}"
            return self._redacted_fault("cli:error", detail, tails)
        if result.exit_code:
            detail = f"{self.agent.name} exited with code {result.exit_code}: {reason}"
            return self._redacted_fault("cli:exit", detail, tails)
        printed = f"{self.agent.name} printed an incomplete answer: {parser.text[:MAX_COMPLAINT_CHARS]}"
        return self._redacted_fault("cli:output", printed, tails)

    def _login_hint(self) -> str:
        key, hint = find_key_variable(self.agent, self.env), self.agent.login_hint
        return f"check {key}, or {hint.removeprefix(f'set {key}, or ')}" if key else hint

    def _redacted_fault(self, kind: str, detail: str, output: str) -> Fault:
        keys = find_secrets(self.env, self.pass_env)
        said = KEY_SHAPED.sub("***", mask_values(CONTROL_SEQUENCES.sub("", output), keys))
        return Fault(kind, redact_line(detail, keys), said=said)

    def _executable_path(self) -> Path:
        path = find_command(self.agent.name, self.env)
        if path is None:
            raise Fault("cli:start", f"{self.agent.name} is not installed or not on PATH")
        return path

    async def probe(self) -> str:
        """Return the version and whether a login or key exists, without calling a model."""
        printed = await self._run_for_output(self._executable_path(), "--version")
        version = redact_line(printed.partition("\n")[0]) or "an unknown version"
        if key := find_key_variable(self.agent, self.env):
            return f"{version}, {key} is set"
        login_folder = self.agent.config_folder(self.env)
        if any((login_folder / name).is_file() for name in self.agent.login_files):
            return f"{version}, logged in"
        if sys.platform == "darwin":  # the login may be in the keychain, which we do not read
            return f"{version}; login status unknown until the first call"
        raise Fault("auth", f"{version} is installed, but not logged in; {self.agent.login_hint}")

    async def _executable_info(self, path: Path) -> ExecutableInfo:
        key = _file_version(path)
        async with self._probe_lock:
            if key not in _executables:
                listed = load_help(self.env, key)
                if not listed:
                    printed = await self._run_for_output(path, *self.agent.args_before, "--help")
                    # `--x[-file]` means two flags.
                    listed = re.sub(r"(--[\w-]+)\[(-\w+)\]", r"\1 \1\2", printed) if "--" in printed else ""
                    store_help(self.env, key, listed)
                _executables[key] = ExecutableInfo(listed)
        return _executables[key]

    async def _run_for_output(self, path: Path, *args: str) -> str:
        parser = OutputParser(None, lambda piece: None)
        with open_workspace(self.agent, self.env, self.pass_env) as workspace:
            try:
                await run_process(
                    [str(path), *args],
                    env=workspace.env,
                    folder=workspace.work,
                    prompt=b"",
                    timeouts=PROBE_TIMEOUTS,
                    on_output=parser.feed,
                )
            except Fault:  # the call itself will report the problem
                return ""
        return parser.text


def _file_version(path: Path) -> FileVersion:
    """Return what changes when an agent is updated. Installers may keep the time and the size of a start script."""
    stat = path.stat()
    return str(path.resolve()), stat.st_mtime_ns, stat.st_ctime_ns, stat.st_size


class StoredHelp(TypedDict):
    """The stored help text of an executable, and its file's version without the path."""

    stat: list[int]
    time: float
    help: str


def load_help(env: Mapping[str, str], version: FileVersion) -> str:
    """Return the stored help text of an executable, or "". A damaged file counts as none."""
    path, *stat = version
    row = _load_help_rows(env).get(path)
    return str(row["help"]) if row and row.get("stat") == stat else ""


def store_help(env: Mapping[str, str], version: FileVersion, text: str) -> None:
    """Store the help text of an executable; an empty text removes it."""
    path, *stat = version
    rows = {name: row for name, row in _load_help_rows(env).items() if name != path}
    if text:
        rows[path] = {"stat": stat, "time": time.time(), "help": text}
    store_cache(cache_folder(env) / HELP_FILE, rows)


def _load_help_rows(env: Mapping[str, str]) -> dict[str, StoredHelp]:
    now = time.time()
    try:
        rows: dict[str, StoredHelp] = json.loads((cache_folder(env) / HELP_FILE).read_bytes())
        return {path: row for path, row in rows.items() if row["help"] and 0 <= now - row["time"] < MAX_HELP_AGE_S}
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return {}


def vendor_model_id(name: str) -> str:
    """Return the vendor's model id; a name that is not in the catalogue is passed as written."""
    model = catalogue().find(name)
    return next(iter(model.ids.values()), name) if model else name


def _flatten_messages(messages: list[Message]) -> tuple[str, str]:
    """Return the system prompt and the conversation, each as one text."""
    system, turns = split_system(messages)
    headings = {"assistant": "--- Your answer ---\n", "user": "--- Next message ---\n"}
    parts = [(headings[turn["role"]] if n else "") + turn["content"] for n, turn in enumerate(turns)]
    return system, "\n\n".join(parts)


def strip_echo(text: str, request: AgentRequest) -> str:
    """Remove the prompt from the start of an answer that repeats it."""
    for part in (f"{request['system']}\n\n{request['prompt']}", request["prompt"]):
        text = text.strip().removeprefix(part.strip())
    return text.strip()


def _find_rejected_flag(result: ProcessResult, output: AgentOutput) -> str | None:
    if not result.exit_code or output.done:
        return None
    printed = strip_escapes(result.stderr_tail) + "\n" + strip_escapes(result.stdout_tail)
    if match := REJECTED_SETTING.search(printed):
        return match[1].partition(".")[0]
    return "--" + match[1].lstrip("-") if (match := UNKNOWN_FLAG.search(printed)) else None


def _failure_line(result: ProcessResult, output: AgentOutput) -> str:
    """Return the most useful line about a failure, from standard error or else standard output, skipping JSON."""
    for stream in (result.stderr_tail, result.stdout_tail):
        text = strip_escapes(stream).strip()
        if match := re.search(r"^[\[{]", text, re.MULTILINE):
            error = _parse_error(text[match.start() :])
            text = text[: match.start()] + (error.message if error else "")
        lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("WARNING")]
        if lines:
            return next(filter(ERROR_LINE.search, lines), lines[-1])
    return output.warning or "no reason given"


def _parse_error(text: str) -> ErrorResponse | None:
    """Return the vendor's error object inside a text, if there is one."""
    start = text.find("{")
    try:
        value, _ = json.JSONDecoder().raw_decode(text[start:]) if start >= 0 else ({}, 0)
    except (ValueError, RecursionError):
        return None
    return error_responses.parse_error_json(value) if isinstance(value, dict) and value.get("error") else None


def _shorten_reason(reason: str) -> str:
    """Replace a vendor's error object inside a reason by its message."""
    if (error := _parse_error(reason)) is None:
        return reason
    status = next((f"{code}: " for code in sorted(error.codes) if code.isdigit()), "")
    return f"{status}{error.message}"


def _format_complaint(output: AgentOutput) -> str:
    return f" reports: {_shorten_reason(output.warning)}" if output.warning else ""


def _classify_failure(text: str, status: int) -> str:
    """Return the fault kind of a vendor error, or "" for other failures."""
    if status in (0, 400, 402, 403, 429) and QUOTA_EXCEEDED.search(text):
        return "quota"
    if status:
        return error_responses.classify_error(status, _parse_error(text) or ErrorResponse(frozenset(), text), None)
    return next((kind for kind, pattern in FAILURE_MESSAGES if pattern.search(text)), "")


def make_cli_member(name: str, context: MemberContext) -> CliAgentMember:
    agent = name.split(":")[1]
    options = context.settings.commands.get(agent, {})
    return CliAgentMember(name, env=context.env, vendor=catalogue().commands.get(agent, agent), **options)
