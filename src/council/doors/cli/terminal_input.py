"""What people type at the terminal: answers of human seats, confirmations and trust."""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import os
import re
import sys
import termios
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NotRequired, TypedDict

import click

from council.doors.cli.views import PipeSafeView, write_status
from council.engine.plan_object import CostEstimate
from council.errors import UsageError
from council.money import format_usd
from council.packet.accepted_secrets import AcceptedList, AcceptedSecret
from council.planning.intent import Inferred
from council.planning.plan import Plan
from council.render.text_layout import fit_lines, terminal_size, text_width
from council.runs.people import FormField, OpenQuestion, main_field
from council.runs.service import Convener
from council.settings import Settings
from council.settings.network import describe_key_leak
from council.settings.workspace_trust import TrustRequest
from council.text_cleanup import INVISIBLE_CHARS, clean
from council.types import Json

POLL_INTERVAL_S = 0.2  # how often to check for open questions
MAX_END_OF_INPUT = 3  # consecutive end-of-input reads that count as abstaining
STDIN = 0
SEPARATOR = "─" * 60
FREE_TEXT_HELP = (
    "Type your answer, on one or more lines. End it with a line that has a single dot; type a single - to abstain."
)
FIELDS_HELP = "Type your answer field by field. Type a single - to abstain."


class Abstained(Exception):
    """Raised when the person abstains."""


class TerminalReader:
    """Read typed lines without a thread, so that Ctrl-C still stops the run."""

    def __init__(self) -> None:
        self._buffer = b""

    @cached_property
    def fd(self) -> int:
        """The handle to read from, opened on first use."""
        return _open_nonblocking(STDIN)

    def close(self) -> None:
        """Close the opened handle, because a conversation has many runs."""
        if (opened := self.__dict__.pop("fd", STDIN)) != STDIN:
            os.close(opened)

    def discard_input(self) -> None:
        """Discard text typed before the question appeared."""
        self._buffer = b""
        with contextlib.suppress(termios.error):
            termios.tcflush(self.fd, termios.TCIFLUSH)

    async def read_line(self) -> str | None:
        """Return the next line, or None at end of input (Ctrl-D)."""
        while b"\n" not in self._buffer:
            await self._wait_readable()
            try:
                piece = os.read(self.fd, 65536)
            except BlockingIOError:  # Ctrl-C cleared the terminal's input buffer
                continue
            if not piece:
                rest, self._buffer = self._buffer, b""
                return rest.decode(errors="replace") or None
            self._buffer += piece
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line.decode(errors="replace").rstrip("\r")

    async def _wait_readable(self) -> None:
        loop = asyncio.get_running_loop()
        ready = asyncio.Event()
        loop.add_reader(self.fd, ready.set)
        try:
            await ready.wait()
        finally:
            loop.remove_reader(self.fd)


def _open_nonblocking(handle: int) -> int:
    """Open the terminal again in non-blocking mode. The given handle is shared with other processes."""
    try:
        return os.open(os.ttyname(handle), os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
    except OSError:
        return handle


@dataclass(slots=True)
class HumanPrompter:
    """Ask the open questions of the shown run, one at a time."""

    convener: Convener
    view: PipeSafeView
    reader: TerminalReader = field(default_factory=TerminalReader)

    async def run(self) -> None:
        with contextlib.closing(self.reader):
            while True:
                questions = await self.convener.open_asks(self.view.run) if self.view.run else []
                for question in questions:
                    with self.view.suspend():
                        await self._ask_until_closed(question)
                await asyncio.sleep(POLL_INTERVAL_S)

    async def _ask_until_closed(self, question: OpenQuestion) -> None:
        """Ask until the question is answered here or closed elsewhere."""
        typing = asyncio.ensure_future(self._ask(question))
        gone = asyncio.ensure_future(self._wait_until_closed(question))
        try:
            await asyncio.wait({typing, gone}, return_when=asyncio.FIRST_COMPLETED)
            if not typing.done():
                write_status("\nThis question is closed: it was answered elsewhere or timed out.")
            else:
                typing.result()
        finally:
            for task in (typing, gone):
                task.cancel()
            await asyncio.gather(typing, gone, return_exceptions=True)

    async def _wait_until_closed(self, question: OpenQuestion) -> None:
        while True:
            await asyncio.sleep(POLL_INTERVAL_S)
            if question["key"] not in {row["key"] for row in await self.convener.open_asks(question["run"])}:
                return

    async def _ask(self, question: OpenQuestion) -> None:
        self.reader.discard_input()
        write_status(f"\n{SEPARATOR}\n{clean(question['prompt']).strip()}\n{SEPARATOR}")
        write_status(f"Your seat is {clean(question['seat'])}. {FIELDS_HELP if question['fields'] else FREE_TEXT_HELP}")
        try:
            answer = await FieldPrompter(self.reader).read_answer(question)
        except Abstained:
            answer = ""
        try:
            await self.convener.answer(question["run"], question["key"], answer)
        except UsageError as error:
            write_status(str(error))
        else:
            write_status("You abstained." if not answer.strip() else "Thank you.")


@dataclass(slots=True)
class FieldPrompter:
    """Ask for fields one by one, and repeat a field whose value is invalid."""

    reader: TerminalReader
    end_of_input_count: int = 0  # consecutive end-of-input reads

    async def read_answer(self, question: OpenQuestion) -> str:
        if not question["fields"]:
            return await self._read_text()
        main = main_field(question["schema"])
        value = {spec["name"]: await self._ask_value(spec, spec["name"] == main) for spec in question["fields"]}
        return json.dumps(value, ensure_ascii=False)

    async def _ask_value(self, spec: FormField, main: bool = False, *, first: bool = False) -> Any:
        """Ask for one value. With `first`, an empty line means that there are no more rows."""
        if spec["kind"] in ("rows", "group", "list"):
            return await self._ask_values(spec)
        if spec["kind"] == "text" and main:
            write_status(f"{_format_label(spec)} (end with a line that has a single dot)")
            return await self._read_text()
        while True:
            line = await self._read_line(f"{_format_label(spec)}{_format_choices(spec)}: ")
            if not line and (first or spec.get("optional")):
                return None
            try:
                return FIELD_PARSERS[spec["kind"]](spec, line)
            except ValueError as error:
                write_status(f"  {error}")

    async def _ask_values(self, spec: FormField) -> Any:
        if spec["kind"] == "group":
            write_status(f"{_format_label(spec)}:")
            return {inner["name"]: await self._ask_value(inner) for inner in spec["fields"]}
        write_status(f"{_format_label(spec)} (one per line{_format_count(spec)}; an empty line ends the list)")
        values: list[Any] = []
        while len(values) < spec.get("maxItems", 100):
            value = await (self._ask_row(spec) if spec["kind"] == "rows" else self._ask_item(spec))
            if value is not None:
                values.append(value)
            elif len(values) >= spec.get("minItems", 0):
                break
            else:
                write_status(f"  at least {spec.get('minItems')} required")
        return values

    async def _ask_row(self, spec: FormField) -> Json | None:
        head, *rest = spec["fields"]
        value = await self._ask_value(head, first=True)
        if value is None:
            return None
        return {head["name"]: value} | {inner["name"]: await self._ask_value(inner) for inner in rest}

    async def _ask_item(self, spec: FormField) -> Any:
        inner: FormField = {"name": "", "help": "", "kind": "choice" if "choices" in spec else "text"}
        if "choices" in spec:
            inner["choices"] = spec["choices"]
        return await self._ask_value(inner, first=True)

    async def _read_text(self) -> str:
        lines: list[str] = []
        while True:
            line = await self.reader.read_line()
            if line is None or line.strip() == ".":
                return "\n".join(lines).strip()
            if line.strip() == "-" and not any(lines):
                raise Abstained
            lines.append(line)

    async def _read_line(self, prompt: str) -> str:
        sys.stderr.write(prompt)
        sys.stderr.flush()
        line = await self.reader.read_line()
        self.end_of_input_count = self.end_of_input_count + 1 if line is None else 0
        if self.end_of_input_count >= MAX_END_OF_INPUT or (line or "").strip() == "-":
            raise Abstained
        return (line or "").strip()


def _format_label(spec: FormField) -> str:
    """Format a label such as `verdict, your decision`. List items have no name."""
    return clean(", ".join(filter(None, [spec["name"], spec["help"]]))) or "  "


def _format_choices(spec: FormField) -> str:
    if spec["kind"] == "boolean":
        return " (yes or no)"
    return f" ({', '.join(map(str, spec['choices']))})" if "choices" in spec else ""


def _format_count(spec: FormField) -> str:
    least, most = spec.get("minItems"), spec.get("maxItems")
    return f", {least}" if least and least == most else f", {least} or more" if least else ""


def _parse_choice(spec: FormField, line: str) -> Any:
    """Parse a choice, ignoring case and accepting an unambiguous prefix."""
    matches = [choice for choice in spec["choices"] if str(choice).casefold() == line.casefold()]
    matches = matches or [
        choice for choice in spec["choices"] if line and str(choice).casefold().startswith(line.casefold())
    ]
    if len(matches) != 1:
        raise ValueError(f"choose one of {', '.join(map(str, spec['choices']))}")
    return matches[0]


def _parse_yes_no(spec: FormField, line: str) -> bool:
    answer = line.casefold()
    if not answer or not ("yes".startswith(answer) or "no".startswith(answer)):
        raise ValueError("answer yes or no")
    return "yes".startswith(answer)


NUMBER_LABELS = {"integer": "a whole number", "number": "a number"}


def _parse_number(spec: FormField, line: str) -> int | float:
    label, low, high = NUMBER_LABELS[spec["kind"]], spec.get("minimum"), spec.get("maximum")
    try:
        number = int(line) if spec["kind"] == "integer" else float(line.replace(",", "."))
    except ValueError:
        raise ValueError(f"enter {label}") from None
    if not -math.inf < number < math.inf:
        raise ValueError(f"enter {label}")
    if (low is not None and number < low) or (high is not None and number > high):
        bounds = f"up to {high}" if low is None else f"from {low} on" if high is None else f"from {low} to {high}"
        raise ValueError(f"enter {label} {bounds}")
    return number


FIELD_PARSERS: dict[str, Callable[[FormField, str], Any]] = {
    "choice": _parse_choice,
    "boolean": _parse_yes_no,
    "integer": _parse_number,
    "number": _parse_number,
    "text": lambda spec, line: line,
}


async def ask_yes_no(question: str) -> bool:
    with contextlib.closing(TerminalReader()) as reader:
        return await confirm(f"{question} [y/N]: ", reader)


async def confirm_start(why: str, on_line: Callable[[str], None] = lambda line: None) -> bool:
    """Ask whether to start a run; return whether it may start. `on_line` gets the lines on the screen."""
    prompt = "Continue? [y/N]: "
    if text_width(f"{why} {prompt}") < terminal_size(sys.stderr)[0]:
        prompt = f"{why} {prompt}"
    else:
        for line in fit_lines(why, sys.stderr).split("\n"):
            write_status(line)
            on_line(line)
    with contextlib.closing(TerminalReader()) as reader:
        return await confirm(prompt, reader, on_line)


def format_trust_request(request: TrustRequest) -> list[str]:
    """Return what a project's file would send, read and write where, in full. Its texts are foreign."""
    lines = [f"{request.file} has settings that need your trust:", *(f"  - {line}" for line in request.describe())]
    rows = [request.providers[name] for name in request.provider_names]
    leaks = (describe_key_leak(str(request.file), row.get("base_url", ""), row.get("api_key_env", "")) for row in rows)
    lines += [f"  ! {line}" for line in leaks if line]
    return _escape_lines(lines)


def format_accepted_secrets(listed: AcceptedList, trusted: Iterable[AcceptedSecret]) -> list[str]:
    """Return what a project's file of accepted secrets accepts. Its texts are foreign."""
    head = f"{listed.file} accepts values that look like secrets, so that they are sent:"
    return _escape_lines([head, *(f"  - {line}" for line in listed.describe(trusted))])


def _escape_lines(lines: Iterable[str]) -> list[str]:
    """Return foreign lines so that none of them can hide or add a line."""
    return [INVISIBLE_CHARS.sub(_escape, " ".join(clean(line).split("\n"))) for line in lines]


def _escape(found: re.Match[str]) -> str:
    return found[0].encode("ascii", "backslashreplace").decode()


async def ask_trust(request: TrustRequest) -> bool:
    """Show what would be sent where, and ask whether the file is trusted. It is trusted until these settings change."""
    return await confirm_trust(format_trust_request(request), "settings")


async def confirm_trust(lines: Sequence[str], what: str) -> bool:
    """Show lines, and ask whether the settings or the accepted secrets that they describe are trusted."""
    with contextlib.closing(TerminalReader()) as reader:
        reader.discard_input()
        write_status("\n".join(lines))
        return await confirm(f"Trust these {what} in this folder? [y/N]: ", reader)


def start_reason(plan: Plan, settings: Settings) -> str:
    """Return why a run needs a confirmation: its task or target was inferred, or its estimate is high; else ""."""
    inferred = plan.inferred is not Inferred.NOTHING
    cost = cost_reason(plan.as_json(), settings)
    what = f"Nothing was named: this would {plan.question.task} {describe_material(plan)}." if inferred else ""
    return " ".join(filter(None, [what, cost]))


class PricedPlan(TypedDict):
    """The price of a plan or of a batch."""

    cost: CostEstimate | None
    unpriced: NotRequired[list[str]]


def cost_reason(plan: PricedPlan, settings: Settings) -> str:
    """Return why the cost of a plan needs a confirmation by the settings, or ""."""
    limit = settings.budget.get("confirm_above")
    return confirmation_reason(
        plan, None if limit is False else limit, unpriced=settings.is_set("budget.confirm_above")
    )


def describe_material(plan: Plan) -> str:
    """Describe the target and the size of the packet, such as `the changes in the work tree (3 files)`."""
    count = len(plan.packet.files)
    return f"{plan.question.target or plan.question.text} ({count} file{'' if count == 1 else 's'})"


async def confirm(prompt: str, reader: TerminalReader, on_line: Callable[[str], None] = lambda line: None) -> bool:
    """Ask until the answer is yes or no. An empty line and the end of input mean no; Ctrl-C cancels the task."""
    while True:
        click.echo(prompt, err=True, nl=False)
        typed = await reader.read_line() or "no"
        on_line(prompt + typed)
        answer = typed.strip().casefold()
        if answer in ("y", "yes", "n", "no", ""):
            return answer.startswith("y")
        on_line("Error: answer y or n")
        click.echo("Error: answer y or n", err=True)


def confirmation_reason(plan: PricedPlan, limit: float | None, *, unpriced: bool = True) -> str:
    """Return the reason to ask for confirmation, or "". With `unpriced`, an unknown price needs one too."""
    if limit is None:
        return ""
    if plan["unpriced"]:
        names = ", ".join(plan["unpriced"])
        return f"No price for {names} (confirm_above is {format_usd(limit)})." if unpriced else ""
    cost: CostEstimate = plan["cost"] or {"low": 0.0, "expected": 0.0, "worst": 0.0}
    if cost["expected"] <= limit:
        return ""
    return f"Estimated {format_usd(cost['expected'])} (at most {format_usd(cost['worst'])})."
