"""Command-line words and parameters: management words, how argv is split, and the types, checks and completions of
flags.
"""

from __future__ import annotations

import json
import math
import os
import re
import select
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from council.errors import UsageError
from council.extensions import FORMATS
from council.flags import AUTO_PROTOCOL, flag_table

if TYPE_CHECKING:  # the module needs pydantic
    from council.protocols.options import FlagRow

COMMAND_HELP = {
    "init": "Find your keys and logins, test them, and write the configuration.",
    "batch": "Run the questions of a JSON lines or CSV file; run it again to continue.",
    "eval": "Measure councils: compare them with one model on a data set, at equal cost. Run it again to continue.",
    "list": "List protocols, models, presets or rosters.",
    "chat": "Hold a conversation with a council: each turn continues the last.",
    "runs": "List, show, search, replay, export, remove, prune or check runs.",
    "resume": "Continue an interrupted run.",
    "watch": "Follow a run of this machine until it ends.",
    "cancel": "Cancel a queued or running run; its answers are kept.",
    "fork": "Run again from a phase with other members; unchanged statements are reused.",
    "advise": "Advise on the protocol: which one is worth its price for a question. No model is asked.",
    "outcome": "Record how decisions turned out: of one run, or of those without an outcome, one after another. Reports, follow-ups and track records use it.",
    "replay": "Play a past run again without calls.",
    "report": "Print a report, also as SARIF, JUnit, HTML or GitHub annotations; with --fail-on pass or fail a CI job.",
    "gate": "Pass or fail a finished run in CI without calls.",
    "packet": "Show what would be sent, why and how large it is, and what is left out.",
    "presets": "List the sets of perspectives for judges.",
    "rosters": "List the rosters: shipped ones and yours.",
    "protocols": "List the protocols: purpose, calls, price and an example.",
    "models": "List the models and whether they are available.",
    "doctor": "Check every member: configured, installed, key or login, answered; list search providers and extensions.",
    "keys": "Store API keys in the system keyring.",
    "trust": "Show the settings and accepted secrets of this project that need trust, and trust them; list or revoke trust.",
    "mcp": "Serve Council as tools for coding agents (Model Context Protocol).",
    "serve": "Serve the web page and the HTTP API on this machine; also tools for agents (mcp), detached runs (worker, workers, queue, migrate) and tokens.",
    "open": "Open a run in the web page.",
    "tokens": "Give other users access to the web page and the HTTP API: add, list or revoke their tokens.",
    "worker": "Process detached runs: of a shared store until stopped; otherwise until none is left, started automatically.",
    "config": "Show the settings and where each comes from; show, edit or create the file.",
    "skill": "Install, list, show or remove the skill for coding agents.",
    "completion": "Print the completion script for bash, zsh or fish.",
    "spend": "Show spending by day, member and protocol; also by folder, what stops saved, and the rest of today's budget.",
}
# Words of earlier versions and what to use instead. Each runs as before; help does not list it. All but the ones that
# are in too many scripts and configurations of agents say on standard error what to use.
OLD_WORDS = {
    "presets": "council list presets",
    "rosters": "council list rosters",
    "protocols": "council list protocols",
    "models": "council list models",
    "advise": 'council --dry-run "…"',
    "gate": "council report RUN --fail-on LEVEL",
    "replay": "council runs replay RUN",
    "worker": "council serve worker",
    "tokens": "council serve tokens",
    "mcp": "council serve mcp",
}
OLD_WORDS_WITHOUT_NOTICE = ("protocols", "models", "mcp")
MANAGEMENT_COMMANDS = tuple(COMMAND_HELP)
CURRENT_COMMANDS = tuple(word for word in COMMAND_HELP if word not in OLD_WORDS)
# `list` is a command only alone or with one of these words: "list three ways to …" is a question.
LIST_KINDS = ("protocols", "models", "presets", "rosters")
SERVE_COMMANDS = ("mcp", "worker", "workers", "queue", "migrate", "tokens")
# Words that look like commands. Alone they never start a run: they run a command, or suggest one.
WORD_COMMANDS = {
    "help": ["--help"], "version": ["--version"], "list": ["list"], "ls": ["runs"], "history": ["runs"], "usage": ["spend"], "cost": ["spend"],
    "settings": ["config"],
}  # fmt: skip
SET_UP_SUGGESTION = "set up your keys with `council init`, or store one with `council keys set NAME`"
LEAVE_SUGGESTION = "there is nothing to leave; stop a run with `council cancel RUN`"
REMOVE_SUGGESTION = "remove runs with `council runs rm RUN` or `council runs prune`"
UPGRADE_SUGGESTION = "install a newer version with `pip install --upgrade model-council`"
WORD_SUGGESTIONS = {
    **dict.fromkeys(("login", "auth", "setup", "install"), SET_UP_SUGGESTION),
    **dict.fromkeys(("quit", "exit"), LEAVE_SUGGESTION),
    **dict.fromkeys(("delete", "remove", "rm"), REMOVE_SUGGESTION),
    **dict.fromkeys(("update", "upgrade"), UPGRADE_SUGGESTION),
    "info": "check your models with `council doctor`, or see the settings with `council config`",
    "start": 'ask with `council "your question"`, or begin a conversation with `council chat`',
    "status": "list the runs with `council runs`, or check your models with `council doctor`",
    "logs": "show a run with `council runs show RUN`, or follow it with `council watch RUN`",
    "show": "show a run with `council runs show RUN`",
    "stop": "stop a run with `council cancel RUN`",
}
SHOWN_BY = ("logs", "list", "show", "status", "history", "cost")
RUN_SUGGESTIONS = {"stop": "council cancel {run}", **dict.fromkeys(SHOWN_BY, "council runs show {run}")}
LONE_WORDS = (*WORD_COMMANDS, *WORD_SUGGESTIONS)
# Of `runs`, `keys`, `skill`, `config` and `serve`.
SUBCOMMANDS = (
    "list", "show", "search", "replay", "export", "rm", "prune", "fsck", "set", "install", "path", "edit", "init", *SERVE_COMMANDS,
)  # fmt: skip
VERBS = ("ask", "validate", "brainstorm", "research")
HELP_FLAGS = frozenset(("-h", "--help", "--help-all"))

LISTED_FORMATS = f"[{'|'.join(name for name in FORMATS.names if name != 'json')}]"
# Flags with another name for the same, which help does not list.
ALIASES = {
    "--mode NAME": "--protocol NAME",
    "--members A,B,…": "-m A -m B …",
    "--format json": "--json",
    "--show transcript": "-v, with prompts, retries and absences",
}

# Common flags. The flags of single protocols are generated into data/flags.json from their options.
COMMON_FLAGS: list[dict[str, Any]] = [
    {"flag": "--protocol", "name": "protocol", "kind": "protocol", "help": "Use this protocol, whatever the words say; auto: the one that is worth its price."},
    {"flag": "--mode", "name": "mode", "hidden": True, "kind": "protocol", "metavar": "PROTOCOL", "help": "Alias of --protocol."},
    {"flag": "--model", "short": "-m", "name": "models", "kind": "many", "metavar": "MODEL", "help": "Use this model for every seat and the chair; two to eight fill as many seats in order."},
    {"flag": "--members", "name": "members", "hidden": True, "kind": "str", "metavar": "A,B,…", "help": "The same as one -m for each name."},
    {"flag": "--cheap", "name": "cheap", "kind": "bool", "help": "Use the fast models of the available vendors for the seats and the chair."},
    {"flag": "--seat", "name": "seat", "kind": "many", "metavar": "NAME=MEMBER", "help": "Assign a member to a seat; repeatable. --seat chair=… sets the chair."},
    {"flag": "--seats", "name": "seat_count", "kind": "int", "metavar": "N", "help": "Number of seats, 2 to 8: fewer cost less. Without it three, or as many as -m names."},
    {"flag": "--exclude-family", "name": "exclude_family", "kind": "many", "metavar": "VENDOR", "help": "Use no member of this vendor, also not as a fallback; repeatable."},
    {"flag": "--timeout", "name": "timeout", "kind": "float", "metavar": "SECONDS", "help": "Time limit of each member in every phase, including retries (120; 300 for models that think)."},
    {"flag": "--max-cost", "name": "max_cost", "kind": "float", "metavar": "DOLLARS", "help": "Hard limit of this run: it is fitted to it, or refused before it starts."},
    {"flag": "--allow-unpriced", "name": "allow_unpriced", "kind": "bool", "help": "Allow members without a known price, even with a budget."},
    {"flag": "--grace", "name": "grace", "kind": "float", "metavar": "SECONDS", "help": "Drop a seat with no output SECONDS after the rest of its phase finished."},
    {"flag": "--hedge", "name": "hedge", "kind": "bool", "help": "When a member takes longer than usual, ask the seat's fallback too; the first complete answer counts."},
    {"flag": "--check", "name": "check", "kind": "bool", "help": "Have two seats of other vendors look for errors in the answer, and its author correct what is right."},
    {"flag": "--no-warm", "name": "no_warm", "kind": "bool", "help": "Start all seats of a phase at once, also if one could fill the vendor's prompt cache for the others."},
    {"flag": "--no-resend", "name": "no_resend", "kind": "bool", "help": "Never repeat a request that may have been billed; interrupted ones stay in doubt."},
    {"flag": "--effort", "name": "effort", "kind": "choice", "choices": ["low", "medium", "high"], "help": "Reasoning effort of members that support it."},
    {"flag": "--config", "name": "config", "kind": "str", "metavar": "FILE", "help": "Use this file instead of the project's council.toml."},
    {"flag": "--trust", "name": "trust", "kind": "bool", "help": "Apply the settings of this project that need trust, for this run and its resumes; `council trust` shows them."},
    {"flag": "--spec", "name": "spec", "kind": "str", "metavar": "FILE", "help": "Add the specification of the work to the packet."},
    {"flag": "--decision", "name": "decision", "kind": "many", "metavar": "TEXT", "help": "Add a decision that was already made to the packet; repeatable."},
    {"flag": "--base", "name": "base", "kind": "str", "metavar": "REF", "help": "Review the changes since this revision."},
    {"flag": "--attach", "short": "-a", "name": "attach", "kind": "many", "metavar": "FILE", "help": "Attach an image, a PDF or a text file; repeatable. The plan names seats that cannot see it."},
    {"flag": "--no-match", "name": "no_match", "kind": "bool", "help": "Do not treat words of the question as names of files and folders."},
    {"flag": "--no-stdin", "name": "no_stdin", "kind": "bool", "help": "Ignore standard input."},
    {"flag": "--redact", "name": "redact", "kind": "bool", "help": "Mask secrets in the packet instead of refusing to send it."},
    {"flag": "--skip-secrets", "name": "skip_secrets", "kind": "bool", "help": "Leave files with secrets out of the packet; they count as not reviewed."},
    {"flag": "--packet-tokens", "name": "packet_tokens", "kind": "int", "metavar": "N", "help": "Budget of the packet of a review in tokens (30000): context that does not fit is left out and listed."},
    {"flag": "--look", "name": "look", "kind": "bool", "help": "Let each seat read files of the project before it answers; secrets and files outside the folder are refused."},
    {"flag": "--strict", "name": "strict", "kind": "bool", "help": "Fail instead of running with less than requested (--mixed without a second family)."},
    {"flag": "--fail-on", "name": "fail_on", "kind": "choice", "choices": ["fail", "warn", "critical", "significant", "never"], "help": "Exit 10 if the review result is this or worse."},
    {"flag": "--yes", "name": "yes", "kind": "bool", "help": "Start without a confirmation: the estimate may be above confirm_above, or nothing may be named."},
    {"flag": "--no-input", "name": "no_input", "kind": "bool", "help": "Ask no questions, even at a terminal: only the cost limit applies."},
    {"flag": "--detach", "name": "detach", "kind": "bool", "help": "Run in the background and return at once; `council watch` follows it."},
    {"flag": "--priority", "name": "priority", "kind": "int", "metavar": "N", "help": "Of a --detach run in a shared store: workers take runs with a higher number first (0)."},
    {"flag": "--continue", "short": "-c", "name": "continued", "kind": "str", "metavar": "[RUN]", "help": "Ask a follow-up: add the conversation up to this run (default: the last run of this folder) to the packet."},
    {"flag": "--notify", "name": "notify", "kind": "bool", "help": "Ring the terminal bell and show a desktop notification when the run is done."},
    {"flag": "--dry-run", "name": "dry_run", "kind": "bool", "help": "Print the plan and spend nothing."},
    {"flag": "--json", "name": "json", "kind": "bool", "help": "Print the plan, the report or the error as JSON."},
    {"flag": "--format", "name": "format", "kind": "choice", "choices": list(FORMATS.names), "metavar": LISTED_FORMATS, "help": "Print the finished run in this format; md is the whole report, html one file with every view of the page."},
    {"flag": "--jsonl", "name": "jsonl", "kind": "bool", "help": "Print events as JSON lines."},
    {"flag": "--verbose", "short": "-v", "name": "verbose", "kind": "bool", "help": "Print every statement in full; on standard error the plan, every event and more hints."},
    {"flag": "--answer-only", "name": "answer_only", "kind": "bool", "help": "Print the answer alone on standard output: no missing parts above it, no trust below it."},
    {"flag": "--show", "name": "show", "hidden": True, "kind": "choice", "choices": ["transcript"], "help": "transcript: like --verbose, with prompts, retries and absences."},
    {"flag": "--output", "short": "-o", "name": "output", "kind": "str", "metavar": "FILE", "help": "Write the answer to this file."},
    {"flag": "--report-dir", "name": "report_dir", "kind": "str", "metavar": "DIR", "help": "Write the report to this folder. Default: .agents/council for judges, else the data folder."},
    {"flag": "--quiet", "short": "-q", "name": "quiet", "kind": "bool", "help": "Print no progress on standard error."},
    {"flag": "--no-color", "name": "no_color", "kind": "bool", "help": "Print no colour."},
    {"flag": "--ascii", "name": "ascii", "kind": "bool", "help": "Print only ASCII characters."},
    {"flag": "--raw", "name": "raw", "kind": "bool", "help": "Print Markdown as it is, also at a terminal."},
]  # fmt: skip
COMPLETE_VARIABLE = "_COUNCIL_COMPLETE"  # set by click's completion scripts, for example to bash_complete


def protocol_flags() -> list[FlagRow]:
    return flag_table().rows


RUN_ID = re.compile(r"r[2-9a-z]{5}(?:[2-9a-z]{3})?")  # a run id; those of earlier versions are shorter
RUN_WORD = re.compile(r"r(?=\S*\d)[2-9a-z]{1,8}|r[a-z]{3,8}|council-\d{8}-\S+")  # may be an id, its start or a name


def split_command(arguments: list[str]) -> tuple[str, list[str]]:
    """Return the deciding word, and the arguments in the order its command takes them."""
    places = _find_words(arguments)
    if not places or "--" in arguments[: places[0]]:
        return "", arguments
    place = places[0]
    word = arguments[place]
    if word in MANAGEMENT_COMMANDS and word != "list":
        end = place + (2 if word == "serve" and set(arguments[place + 1 : place + 2]) & set(SERVE_COMMANDS) else 1)
        return word, [*arguments[place:end], *arguments[:place], *arguments[end:]]
    words = [arguments[at] for at in places]
    flags = [argument for at, argument in enumerate(arguments) if at not in places]
    if command := _command_of_lone_word([text.strip() for text in words]):
        return "" if command[0].startswith("-") else command[0], [*command, *flags]
    _reject_misspelled_command(word, words)
    return "" if word in MANAGEMENT_COMMANDS else word, arguments


def place_continued_run(arguments: list[str], is_run: Callable[[str], bool]) -> list[str]:
    """Return the arguments with `-c` and `--continue` as `--continue=RUN`; an empty RUN is the last run of the folder.

    The next word is RUN only if such a run exists; a start of an id needs a digit or four letters, else it is a word.
    """
    placed: list[str] = []
    rest = deque(arguments)
    skip = False
    valued = _valued_flags() - {"-c", "--continue"}
    while rest:
        argument = rest.popleft()
        if argument == "--":
            return [*placed, argument, *rest]
        if skip or argument not in ("-c", "--continue"):
            skip = not skip and argument in valued
            placed.append(argument)
            continue
        following = rest[0] if rest else ""
        if RUN_WORD.fullmatch(following) and is_run(following):
            placed.append(f"--continue={rest.popleft()}")
            continue
        if RUN_ID.fullmatch(following) and re.search(r"\d", following):
            raise UsageError(f'there is no run "{following}": `council runs` lists them')
        placed.append("--continue=")
    return placed


def fill_optional_values(arguments: list[str]) -> list[str]:
    """Return the arguments with the value "true" for a flag whose optional value is missing: --mixed is
    --mixed=true.
    """
    optional = {flag["flag"] for flag in protocol_flags() if "optional_value" in flag}
    given = before_dashes(arguments)
    flags = [f"{argument}=true" if argument in optional else argument for argument in given]
    return [*flags, *arguments[len(given) :]]


def before_dashes(arguments: Sequence[str]) -> Sequence[str]:
    """Return the arguments before `--`, after which only free text follows."""
    return arguments[: arguments.index("--")] if "--" in arguments else arguments


def _valued_flags() -> set[str]:
    valued = [flag for flag in (*COMMON_FLAGS, *protocol_flags()) if flag["kind"] != "bool"]
    return {name for flag in valued for name in (flag["flag"], flag.get("short")) if name}


def _command_of_lone_word(words: list[str]) -> list[str] | None:
    """Return the command for a lone word such as `history`. Raise UsageError with a suggestion if there is no single
    one.

    Only the word alone, `list KIND`, `help COMMAND` and such a word with a run id are meant: "list three ways to …" is
    a question.
    """
    first = words[0].lower().rstrip("?!.")
    if first == "help" and len(words) == 2 and words[1] in (*COMMAND_HELP, *VERBS):
        return [words[1], "--help"]
    if first == "list" and len(words) == 2:
        if words[1] in LIST_KINDS:
            return ["list", words[1]]
        _reject_misspelled_kind(words)
    if len(words) == 2 and first in RUN_SUGGESTIONS and RUN_ID.fullmatch(words[1]):
        raise _lone_word_error(words, f"run `{RUN_SUGGESTIONS[first].format(run=words[1])}`")
    if len(words) != 1:
        return None
    if first in WORD_SUGGESTIONS:
        raise _lone_word_error(words, WORD_SUGGESTIONS[first])
    return WORD_COMMANDS.get(first)


def _lone_word_error(words: list[str], suggestion: str) -> UsageError:
    text = " ".join(words)
    return UsageError(f'"{text}" is not a command, nothing was sent: {suggestion}. To ask it as a question: council ask "{text}"')  # fmt: skip


def _find_words(arguments: list[str]) -> list[int]:
    """Return the places of the words, without flags and their values."""
    places: list[int] = []
    valued, skip = _valued_flags(), False
    for place, argument in enumerate(arguments):
        if skip:
            skip = False
        elif argument == "--":
            return [*places, *range(place + 1, len(arguments))]
        elif argument.startswith("-") and argument != "-":
            skip = argument in valued
        else:
            places.append(place)
    return places


def _reject_misspelled_command(word: str, words: list[str]) -> None:
    """Raise UsageError for a misspelled command. A longer sentence is a question unless it continues like a command."""
    if word in MANAGEMENT_COMMANDS:  # of a question, such as "list three ways to …"
        return
    is_continued = len(words) > 1 and (
        words[1] in SUBCOMMANDS or (len(words) == 2 and RUN_ID.fullmatch(words[1]) is not None)
    )
    cutoff = (
        0.8 if len(words) == 2 and not is_continued else 0.75 if len(word) > 3 else 0.66
    )  # two words may be a short question
    near = get_close_matches(word.lower(), MANAGEMENT_COMMANDS, n=1, cutoff=cutoff)
    near = near or (get_close_matches(word.lower(), LONE_WORDS, n=1, cutoff=0.75) if len(words) == 1 else [])
    plain = re.fullmatch(r"[A-Za-z-]+", word) is not None
    command = plain and (len(words) <= 2 or is_continued)
    if near and command and word not in VERBS and not Path(word).exists():
        raise UsageError(
            f'unknown command "{word}", did you mean `council {near[0]}`? To ask it as a question: council ask "{" ".join(words)}"'
        )


def _reject_misspelled_kind(words: list[str]) -> None:
    """Raise UsageError for `list` and a word that is nearly one of its kinds."""
    suggestions = {kind: f"council list {kind}" for kind in LIST_KINDS} | {"runs": "council runs"}
    near = get_close_matches(words[1].lower(), suggestions, n=1, cutoff=0.8)
    if near:
        raise UsageError(
            f'"{" ".join(words)}" is not a command, did you mean `{suggestions[near[0]]}`? '
            f'To ask it as a question: council ask "{" ".join(words)}"'
        )


MAX_STDIN_BYTES = 4_000_000  # the packet gate has a smaller limit
STDIN_NOTICE_S = 2.0
STDIN_NOTICE = "council: waiting for standard input; end it with Ctrl-D, or use --no-stdin"


class ChoiceParam(click.Choice):  # type: ignore[type-arg]  # older releases are not generic
    """Case-insensitive choice whose error suggests the nearest value."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        try:
            return str(super().convert(value, param, ctx))
        except click.BadParameter:
            from council.protocols.options import format_unknown_choice  # only needed for the error

            raise UsageError(
                format_unknown_choice(str(param.name if param else "word"), str(value), self.choices)
            ) from None


class ParsedParam(click.ParamType):  # type: ignore[type-arg]
    """Option whose value a function parses; it raises ValueError. `hint` says what is expected, with {flag}."""

    def __init__(self, name: str, parse: Callable[[Any], Any], hint: str) -> None:
        self.name, self._parse, self._hint = name, parse, hint

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return self._parse(value)
        except ValueError:
            flag = param.opts[-1] if param else "this flag"
            raise UsageError(f'{flag} "{value}" is not {self._hint.format(flag=flag)}') from None


# The settings or the protocol check the range.
INTEGER = ParsedParam("integer", int, "a whole number, nothing was spent: use for example {flag} 2")
NUMBER = ParsedParam("float", float, "a number, nothing was spent: use for example {flag} 60")


def _parse_age(text: Any) -> timedelta:
    """Return an age such as 90d or 12w."""
    if isinstance(text, timedelta):  # a default
        return text
    if found := re.fullmatch(r"(\d{1,5})([dw])", text.strip()):
        return timedelta(**{"weeks" if found[2] == "w" else "days": int(found[1])})
    raise ValueError


AGE = ParsedParam("age", _parse_age, "an age: use days or weeks, for example {flag} 90d or 12w")


class ProtocolParam(click.ParamType):  # type: ignore[type-arg]
    """Name of a shipped or installed protocol."""

    name = "protocol"

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        from council.protocols import protocol_names  # only needed for help

        return f"[{'|'.join([*protocol_names(), AUTO_PROTOCOL])}]"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        from council.protocols import protocol_names

        name = str(value).strip().lower()
        if name not in (known := (*protocol_names(), AUTO_PROTOCOL)):
            from council.protocols.options import format_unknown_choice  # only needed for the error

            raise UsageError(format_unknown_choice("protocol", str(value), known))
        return name


@dataclass(frozen=True, slots=True)
class RunRequest:
    """A question and its flags as given on the command line, before planning."""

    words: list[str]
    options: dict[str, Any]  # flags of single protocols
    protocol: str | None
    verbose: bool
    strict: bool
    fail_on: str | None
    material: dict[str, Any]  # packet flags
    continue_from: str | None = None  # the run to continue; "" is the last run of this folder


def read_stdin(words: tuple[str, ...], *, ignore: bool = False) -> str | None:
    """Return the piped text; None if standard input is a terminal, or empty without a `-` at an edge of the words."""
    tokens = " ".join(words).split()
    text = tokens[1:] if tokens and tokens[0].lower() in VERBS else tokens
    requested = "-" in (*words, *text[:1], *text[-1:])
    if requested and ignore:
        raise click.UsageError('"-" reads standard input and --no-stdin ignores it: drop one of the two')
    if ignore or sys.stdin is None or sys.stdin.isatty():
        if requested:
            raise click.UsageError(
                '"-" reads standard input, but nothing is piped in: use for example council validate - < FILE'
            )
        return None
    try:
        piped = _read_pipe(sys.stdin.buffer)
    except OSError as error:
        raise click.UsageError(
            f"standard input cannot be read ({error.strerror}): pipe text, or use --no-stdin"
        ) from None
    if len(piped) > MAX_STDIN_BYTES:
        raise click.UsageError(
            f"standard input is over {MAX_STDIN_BYTES // 1_000_000} MB, nothing was spent: pipe less, or name the files"
        )
    return piped.decode("utf-8", "surrogateescape") if piped.strip() or requested else None  # the gate decodes it


def _read_pipe(stream: Any) -> bytes:
    """Read to the end, or a little over the limit."""
    try:
        handle = stream.fileno()
    except (OSError, ValueError):  # an object without a file
        return bytes(stream.read(MAX_STDIN_BYTES + 1))
    piped = bytearray()
    for chunk in read_chunks(handle, STDIN_NOTICE):
        piped += chunk
        if len(piped) > MAX_STDIN_BYTES:
            break
    return bytes(piped)


def read_chunks(handle: int, notice: str) -> Iterator[bytes]:
    """Yield what arrives in a pipe, to its end. Print the notice if no byte arrives for a while."""
    if not select.select([handle], [], [], STDIN_NOTICE_S)[0]:
        click.echo(notice, err=True)
    while True:
        select.select([handle], [], [])  # the pipe may be non-blocking
        if not (chunk := os.read(handle, 1 << 16)):
            return
        yield chunk


def parse_seats(values: tuple[str, ...]) -> dict[str, str]:
    seats = {}
    for seat in values:
        name, equals, member = seat.partition("=")
        if not (name and equals and member):
            raise click.UsageError(f'--seat "{seat}" is not NAME=MEMBER: use for example --seat alpha=openai:gpt-5.2')
        seats[name.strip()] = member.strip()
    return seats


def parse_members(models: tuple[str, ...], members: str | None) -> list[str] | None:
    """Return the members of `-m` or `--members`; None if neither is given."""
    if members is None:
        return list(models) or None
    if models:
        raise click.UsageError(f'-m "{models[0]}" and --members "{members}" both name the members: use one of the two')
    named = [name.strip() for name in members.split(",")]
    if not all(named):
        raise click.UsageError(f'--members "{members}" has an empty name: use for example --members sonnet,gpt-5.2')
    return named


def check_grace(seconds: float | None) -> float | None:
    if seconds is not None and not 0 <= seconds < math.inf:
        raise click.UsageError(f'--grace "{seconds:g}" is out of range: use 0 or more seconds')
    return seconds


def print_json(value: Any) -> None:
    from council.text_cleanup import neutralize_commands

    click.echo(neutralize_commands(json.dumps(value, ensure_ascii=False, indent=2), "json"))


def print_result(as_json: bool, value: Any, lines: Iterable[str], write: Callable[[str], None] = click.echo) -> int:
    """Print a value as JSON, or the lines that show it. Return the exit code of success."""
    if as_json:
        print_json(value)
    else:
        write("\n".join(lines))
    return 0


def check_output_path(path: str | None) -> Path | None:
    """Return the output path. Raise an error before anything is spent if it is not writable."""
    if path is None:
        return None
    target = Path(path)
    if target.is_dir() or not os.access(target if target.exists() else target.absolute().parent, os.W_OK):
        raise click.UsageError(f'cannot write to "{path}", nothing was spent: choose another file with -o')
    return target


# Shell completion of values


def complete_file(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(incomplete, type="file")]


def complete_protocol(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from council.protocols import protocol_names

    return _matching(protocol_names(), incomplete)


def complete_member(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from council.settings.catalogue import catalogue

    return _matching([*catalogue().lines, *catalogue().models], incomplete)


def complete_preset(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from council.protocols.common.perspectives import list_presets

    return _matching(list_presets(user_presets_folder()), incomplete)


def complete_roster(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from council.protocols.common.rosters import SHIPPED_ROSTERS

    return _matching([path.stem for path in sorted(SHIPPED_ROSTERS.glob("*.toml"))], incomplete)


def complete_run(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Suggest runs with their titles or questions: unfinished first, then newest."""
    from council.runs.history import list_run_titles

    titles = list_run_titles(os.environ, incomplete)
    return [CompletionItem(run, help=title, is_run=True) for run, title in titles.items()]


def _matching(names: Iterable[str], incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


COMPLETERS: dict[str, Any] = {  # by flag; flags with the metavar FILE or DIR complete files
    "protocol": complete_protocol,
    "mode": complete_protocol,
    "preset": complete_preset,
    "roster": complete_roster,
    "continued": complete_run,
    "models": complete_member,
    "perspectives_file": complete_file,
}
PARAM_TYPES: dict[str, Any] = {"int": INTEGER, "float": NUMBER, "str": str, "protocol": ProtocolParam()}


class OptionalValue(click.Option):
    """Flag that may have a value after an equals sign; see `fill_optional_values`."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str]:
        return self.opts[0], self.help or ""


def make_option(flag: Mapping[str, Any]) -> click.Option:
    """Return the option of a row of COMMON_FLAGS or of the flags of protocols."""
    name, kind, metavar = flag["name"], flag["kind"], flag.get("metavar")
    names = [*([flag["short"]] if "short" in flag else []), flag["flag"], name]
    how: dict[str, Any] = {"help": flag["help"], "hidden": flag.get("hidden", False)}
    if flag.get("negatable"):
        return click.Option([f"{flag['flag']}/--no-{flag['flag'][2:]}", name], is_flag=True, default=None, **how)
    if "optional_value" in flag:
        return OptionalValue(names, metavar="[=N]", **how)
    if kind == "bool":
        return click.Option(names, is_flag=True, **how)
    how |= {"metavar": metavar}
    how["shell_complete"] = complete_file if metavar in ("FILE", "DIR") else COMPLETERS.get(name)
    if kind == "many":
        return click.Option(names, multiple=True, **how)
    choice = ChoiceParam(flag["choices"], case_sensitive=False) if kind == "choice" else None
    return click.Option(names, type=choice or PARAM_TYPES[kind], **how)


def common_options(*names: str) -> list[click.Option]:
    """Return these flags of a question as options of another command."""
    rows = {flag["name"]: flag for flag in COMMON_FLAGS}
    return [make_option(rows[name]) for name in names]


def make_flag(*names: str, help: str) -> click.Option:
    """Return an option without a value."""
    return click.Option(names, is_flag=True, help=help)


def run_argument(*, required: bool = False) -> click.Argument:
    return click.Argument(["run"], required=required, shell_complete=complete_run)


def user_presets_folder() -> Path:
    from council.settings.config_files import config_folder  # not needed for help

    return config_folder(dict(os.environ)) / "presets"
