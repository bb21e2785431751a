"""`council chat`: a conversation with a council. Each turn is a run that continues the turn before."""

from __future__ import annotations

import contextlib
import os
import re
import select
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Protocol

import click

from council.doors.cli import print_failure
from council.doors.cli.ask import build_request, question_options
from council.doors.cli.params import LONE_WORDS, MANAGEMENT_COMMANDS, RunRequest, complete_file, protocol_flags
from council.doors.cli.runner import Runner, make_plain_command
from council.doors.cli.views import write_status
from council.engine.layout import format_cost, format_count
from council.engine.minutes import Minutes
from council.engine.records import CostRow
from council.errors import CouncilError, UsageError
from council.money import format_usd
from council.protocols import get_protocol
from council.render.report import build_report
from council.runs.run_context import close_shared
from council.runs.service import Convener
from council.settings.config_files import data_folder
from council.settings.member_lookup import require_available
from council.settings.private_files import make_private_folder, open_private_file
from council.text_cleanup import single_line

PROMPT, MORE_PROMPT = "council> ", "     ... "
AUTOMATIC = "auto"  # argument of a command that returns to the choice by words or configuration
MAX_HISTORY = 1000  # lines of the history file that are read
SHOWN_QUESTION_CHARS = 60
# Flags of a single run, or of another use of standard input.
OTHER_FLAGS = ("dry_run", "detach", "priority", "json", "jsonl", "format", "output", "fail_on", "no_stdin")
COMMAND_LINE = re.compile(r"/([A-Za-z-]*)(?:\s+(.*))?", re.DOTALL)  # "/etc/hosts" is the start of a question
PLAIN_COMMANDS = {"exit": "quit", ":q": "quit", "?": "help"}  # a lone word that is no command, and the command it means


# Input


class LineSource(Protocol):
    """Where questions and commands come from."""

    is_terminal: bool

    def read(self) -> str | None:
        """Return the next question or command, or None at the end of the input."""


class PipedLines:
    """One question per line from standard input; a backslash at the end of a line continues it."""

    is_terminal = False

    def __init__(self, lines: Iterable[str]) -> None:
        self._lines = iter(lines)

    def read(self) -> str | None:
        parts: list[str] = []
        for line in self._lines:
            text = line.rstrip("\r\n")
            parts.append(text.removesuffix("\\"))
            if not text.endswith("\\") and any(part.strip() for part in parts):
                break
        return "\n".join(parts).strip() or None


class TerminalLines:
    """Questions typed at a terminal, with line editing and a history that is kept between conversations."""

    is_terminal = True

    def __init__(self, history: Path) -> None:
        self._history = history
        self._readline: Any = None
        if sys.stdout.isatty():  # else the prompt would be part of the output
            with contextlib.suppress(ImportError):
                import readline

                self._readline = readline
                self._set_up()

    def read(self) -> str | None:
        """Return the next question. Lines that are already waiting belong to it, because they were pasted with it."""
        parts: list[str] = []
        while True:
            line = self._read_line(MORE_PROMPT if parts else PROMPT)
            if line is None:
                click.echo("", err=True)
                return "\n".join(parts).strip() or None
            parts.append(line.removesuffix("\\"))
            is_command = len(parts) == 1 and parse_command(line) is not None
            if not line.endswith("\\") and (is_command or not _has_waiting_line()):
                break
        text = "\n".join(parts).strip()
        self._remember(text)
        return text

    def _read_line(self, prompt: str) -> str | None:
        if self._readline:
            with contextlib.suppress(EOFError):
                return input(prompt)
            return None
        click.echo(prompt, err=True, nl=False)
        line = sys.stdin.readline()
        return line.rstrip("\r\n") if line else None

    def _set_up(self) -> None:
        readline = self._readline
        readline.set_auto_history(False)
        readline.set_completer_delims(" ")
        readline.set_completer(_complete_command)
        is_libedit = "libedit" in (readline.__doc__ or "")
        readline.parse_and_bind("bind ^I rl_complete" if is_libedit else "tab: complete")
        with contextlib.suppress(OSError):
            for line in self._history.read_text(encoding="utf-8", errors="replace").splitlines()[-MAX_HISTORY:]:
                readline.add_history(line)

    def _remember(self, text: str) -> None:
        """Add the text to the history, as one line, in a file that only this user can read."""
        if not (self._readline and text):
            return
        line = " ".join(text.split())
        self._readline.add_history(line)
        with contextlib.suppress(OSError):
            make_private_folder(self._history.parent)
            with open_private_file(self._history, "a", encoding="utf-8", errors="replace") as file:
                file.write(f"{line}\n")


def _has_waiting_line() -> bool:
    return bool(select.select([sys.stdin], [], [], 0)[0])


def _complete_command(text: str, place: int) -> str | None:
    found = [f"/{name} " for name in COMMANDS if f"/{name}".startswith(text)] if text.startswith("/") else []
    return found[place] if place < len(found) else None


def parse_command(line: str) -> tuple[str, str] | None:
    """Return the name and the argument of a command; None for a question."""
    word = line.strip().lower()
    if (name := PLAIN_COMMANDS.get(word, word)) in COMMANDS:
        return name, ""
    if found := COMMAND_LINE.fullmatch(line.strip()):
        return found[1].lower(), (found[2] or "").strip()
    return None


def reject_lone_word(line: str) -> None:
    """Raise UsageError for a word such as `status`, which looks like a command and is no question."""
    if (word := line.strip().rstrip("?!.").lower()) in (*LONE_WORDS, *MANAGEMENT_COMMANDS):
        raise UsageError(f'"{word}" alone is not a question, nothing was sent: /help lists the commands of this chat')


# The conversation


class EndOfChat(Exception):
    """Raised by /quit."""


@dataclass
class Chat:
    """State of a conversation: the answered turns, the turn that is not finished, and the costs."""

    runner: Runner
    request: RunRequest  # the flags of every turn
    answered: list[Minutes] = field(default_factory=list)  # oldest first; the next turn continues the last of them
    unfinished: Minutes | None = None  # the last turn, if it has no complete answer
    last_question: str = ""
    costs: dict[str, CostRow] = field(default_factory=dict)  # of every run, by id; a repeated turn was paid for too
    last_run: str = ""
    failure: int = 0  # exit code of the last turn that failed

    # Turns

    def ask(self, question: str) -> int:
        self.last_question, self.unfinished = question, None
        request = replace(
            self.request, words=[question], continue_from=self.answered[-1].run if self.answered else None
        )
        return self._take_turn(lambda runner: runner.convene(request, dry_run=False))

    def _take_turn(self, job: Callable[[Runner], int]) -> int:
        """Run one turn. An error, a failed run and Ctrl-C end the turn, not the conversation."""
        runner = replace(self.runner, flags=dict(self.runner.flags))
        if self.costs and not sys.stdout.isatty():
            click.echo("")  # between two answers
        try:
            code = job(runner)
        except KeyboardInterrupt:
            code = 130
            say_below_keys("stopped before it started, nothing was spent")
        except Exception as error:
            code = print_failure(error, [])
        if runner.finished:
            self._add_turn(runner.finished)
        self.failure = code or self.failure
        if sys.stderr.isatty():
            write_status("")
        return code

    def _add_turn(self, minutes: Minutes) -> None:
        self.last_run, self.costs[minutes.run] = minutes.run, build_report(minutes)["cost"]
        if minutes.status == "complete":
            self.answered.append(minutes)
            self.unfinished = None
            return
        self.unfinished = minutes
        write_status(f"turn not finished: /resume continues it, /retry asks again; {self._describe_next()}")

    def _describe_next(self) -> str:
        if not self.answered:
            return "the next question starts a new conversation"
        last = self.answered[-1]
        return f'the next question continues {last.run} "{_shorten(last)}"'

    # Commands

    def run_command(self, name: str, argument: str) -> None:
        command = COMMANDS.get(name)
        if command is None:
            near = get_close_matches(name, COMMANDS, n=1)
            hint = f"did you mean /{near[0]}? " if near else ""
            raise UsageError(f'unknown command "/{name}": {hint}/help lists the commands')
        if argument and not command.argument:
            raise UsageError(f'/{name} takes no argument, but it got "{single_line(argument, 40)}"')
        command.run(self, argument)

    def show_help(self, argument: str) -> None:
        width = max(len(command.usage(name)) for name, command in COMMANDS.items())
        for name, command in COMMANDS.items():
            write_status(f"  {command.usage(name):<{width}}  {command.help}")
        write_status("A line that ends with \\ continues on the next line. Ctrl-C stops a turn.")

    def set_protocol(self, argument: str) -> None:
        if argument and argument != AUTOMATIC:
            get_protocol(argument)
            kept = {flag["name"] for flag in protocol_flags() if argument in flag["owners"]}
            options = {name: value for name, value in self.request.options.items() if name in kept}
            self.request = replace(self.request, protocol=argument, options=options)
        elif argument:
            self.request = replace(self.request, protocol=None)
        write_status(f"protocol: {self.request.protocol or 'chosen by the words, else that of the turn before'}")

    def set_members(self, argument: str) -> None:
        if names := [] if argument == AUTOMATIC else [name for name in re.split(r"[,\s]+", argument) if name]:
            self.runner.with_convener(lambda convener: _require_members(convener, names))
        if argument:
            self.runner.flags |= {"models": names or None, "cheap": None}
        chosen = self.runner.flags.get("models")
        write_status(f"members: {', '.join(chosen) if chosen else 'chosen by the configuration'}")

    def show_cost(self, argument: str) -> None:
        last = format_cost(self.costs[self.last_run]) if self.last_run else "no cost"
        write_status(f"last turn: {last} · {self.describe_total()}")

    def describe_total(self) -> str:
        return f"{format_count(len(self.costs), 'turn')}, {format_total(list(self.costs.values()))}"

    def undo(self, argument: str) -> None:
        if not (self.unfinished or self.answered):
            raise UsageError("there is no turn to undo")
        if self.unfinished:
            self.unfinished = None
        else:
            self.answered.pop()
        write_status(self._describe_next())

    def retry(self, argument: str) -> None:
        if not self.last_question:
            raise UsageError("there is no question to ask again in this conversation")
        if not self.unfinished and self.answered and self.answered[-1].run == self.last_run:
            self.answered.pop()
        self.ask(self.last_question)

    def resume(self, argument: str) -> None:
        if not self.unfinished:
            raise UsageError("there is no unfinished turn to resume")
        run = self.unfinished.run
        self._take_turn(lambda runner: runner.resume(run, resend=True))

    def open_page(self, argument: str) -> None:
        if not self.last_run:
            raise UsageError("there is no turn to open")
        from council.doors.cli.service_commands import open_run  # only needed here

        write_status("Ctrl-C returns to the conversation")
        with contextlib.suppress(KeyboardInterrupt):
            open_run(self.last_run, config=self.runner.config)

    def start_new(self, argument: str) -> None:
        self.answered, self.unfinished = [], None
        write_status(self._describe_next())

    def quit(self, argument: str) -> None:
        raise EndOfChat

    # The loop

    def hold(self, source: LineSource, first: str) -> int:
        """Take turns until the input ends. Return 0 at a terminal, else the exit code of the last turn that failed."""
        has_input = False
        try:
            for line in self._read_lines(source, first):
                self._take_line(line)
                has_input = True
        except EndOfChat:
            pass
        if not (has_input or source.is_terminal):
            raise UsageError("standard input has no question: write one question per line")
        self._say_goodbye()
        return 0 if source.is_terminal else self.failure

    def _read_lines(self, source: LineSource, first: str) -> Iterator[str]:
        """Yield each question or command. Ctrl-C ends the input only if it is not typed at a terminal."""
        if first:
            yield first
        while source.is_terminal or self.failure != 130:
            try:
                line = source.read()
            except KeyboardInterrupt:
                if not source.is_terminal:
                    raise
                say_below_keys("/quit or Ctrl-D ends the conversation")
                continue
            if line is None:
                return
            if line:
                yield line

    def _take_line(self, line: str) -> None:
        """Ask a question or run a command."""
        try:
            if command := parse_command(line):
                self.run_command(*command)
            else:
                reject_lone_word(line)
                self.ask(line)
        except (CouncilError, click.ClickException) as error:
            self.failure = print_failure(error, [])

    def _say_goodbye(self) -> None:
        if not self.costs:
            return
        last = self.unfinished or (self.answered[-1] if self.answered else None)
        how = f" · continue: council chat -c {last.run}" if last else ""
        self.runner.print_status([f"{self.describe_total()}{how}"])

    def load(self, conversation: Sequence[Minutes]) -> None:
        """Continue a stored conversation, newest run first. Its last run may be unfinished."""
        newest, *_ = conversation
        self.answered = [minutes for minutes in reversed(conversation) if minutes.status == "complete"]
        self.unfinished = None if newest.status == "complete" else newest
        self.last_question, self.last_run = str(newest.plan.get("question") or ""), newest.run
        self.costs = {minutes.run: build_report(minutes)["cost"] for minutes in reversed(conversation)}
        lines = [f'continues {newest.run}, turn {len(conversation)}: "{_shorten(newest)}"']
        wrong = [minutes.run for minutes in conversation if (own := minutes.outcomes.own) and own["label"] == "wrong"]
        if wrong:
            lines.append(f"turned out wrong: {', '.join(wrong)}")
        if self.unfinished:
            lines.append(f"this turn is not finished: /resume continues it; {self._describe_next()}")
        self.runner.print_status(lines)


@dataclass(frozen=True)
class Command:
    run: Callable[[Chat, str], None]
    help: str
    argument: str = ""

    def usage(self, name: str) -> str:
        return f"/{name} {self.argument}".rstrip()


COMMANDS = {
    "protocol": Command(Chat.set_protocol, "Use this protocol from now on; auto: let the words choose.", "NAME"),
    "members": Command(Chat.set_members, "Use these members from now on; auto: as configured.", "A,B,C"),
    "cost": Command(Chat.show_cost, "Show the cost of the last turn and of this conversation."),
    "undo": Command(Chat.undo, "Take back the last turn; continue with the turn before."),
    "retry": Command(Chat.retry, "Ask the last question again in place of the last turn."),
    "resume": Command(Chat.resume, "Continue a turn that was stopped or failed."),
    "open": Command(Chat.open_page, "Open the last turn in the web page."),
    "new": Command(Chat.start_new, "Start a new conversation."),
    "help": Command(Chat.show_help, "Show this list."),
    "quit": Command(Chat.quit, "End the conversation; so does Ctrl-D."),
}


def format_total(costs: Sequence[CostRow]) -> str:
    """Format the sum of the costs of several runs; an unknown price is never shown as no cost."""
    unpriced = list(dict.fromkeys(name for cost in costs if cost["usd"] is None for name in cost["unpriced"]))
    usd = sum(cost["usd"] or 0.0 for cost in costs)
    if not unpriced:
        return f"cost {format_usd(usd)}" if usd else "no cost"
    known = f"at least {format_usd(usd)}" if usd else "unknown"
    return f"cost {known} ({', '.join(unpriced)} unpriced)"


async def _require_members(convener: Convener, names: Sequence[str]) -> int:
    """Raise UsageError if one of the members is unknown or not available."""
    for name in names:
        require_available(name, convener.settings, convener.env)
    return 0


def _shorten(minutes: Minutes) -> str:
    return single_line(str(minutes.plan.get("question") or ""), SHOWN_QUESTION_CHARS)


def say_below_keys(line: str) -> None:
    """Print a line below the typed keys; Ctrl-C leaves the cursor behind them."""
    if sys.stderr.isatty():
        write_status("")
    write_status(line)


# The command


def chat_command() -> click.Command:
    words = click.Argument(["words"], nargs=-1, shell_complete=complete_file)
    options = [option for option in question_options() if option.name not in OTHER_FLAGS]
    return make_plain_command("chat", chat, words, *options)


def chat(words: tuple[str, ...], **params: Any) -> int:
    params = dict.fromkeys(OTHER_FLAGS) | params | {"no_stdin": True}
    request = build_request((), params)
    runner = replace(Runner.from_flags(params), keeps_open=True, shows_hints=False)
    conversation = Chat(runner, request)
    try:
        return _converse(conversation, " ".join(words).strip())
    finally:
        close_shared()


def _converse(conversation: Chat, first: str) -> int:
    runner, request = conversation.runner, conversation.request
    if request.continue_from is not None:
        runner.with_convener(lambda convener: _load(conversation, convener))
    source: LineSource = PipedLines(sys.stdin)
    if sys.stdin.isatty():
        source = TerminalLines(data_folder(os.environ) / "chat_history")
        runner.print_status(["council chat: /help lists the commands, Ctrl-D ends the conversation"])
    return conversation.hold(source, first)


async def _load(conversation: Chat, convener: Convener) -> int:
    run = await convener.find_continued_run(conversation.request.continue_from)
    conversation.load(await convener.conversation(run or ""))
    return 0
