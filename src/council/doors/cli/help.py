"""Help pages: `council --help` (short), `council --help-all` (every flag), and of each command and each task.

The pages come from the tables below and from data/commands.json, which scripts/make_flags.py generates: help imports no
command.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from council.doors.cli.params import (
    ALIASES,
    COMMAND_HELP,
    CURRENT_COMMANDS,
    HELP_FLAGS,
    OLD_WORDS,
    before_dashes,
    protocol_flags,
)
from council.flags import flag_table

COMMANDS_FILE = Path(__file__).parents[2] / "data" / "commands.json"
MAX_WIDTH = 100
MAX_COLUMN, MAX_EXAMPLE = 32, 48  # longer flags and examples have their text on the next line
MAX_UNGROUPED_FLAGS = 8  # a command with at most this many flags lists them in one section

# One group for each command. `council --help` shows the commands by group, in this order.
COMMAND_GROUPS: Mapping[str, tuple[str, ...]] = {
    "Start and continue": ("chat", "batch", "resume", "watch", "cancel", "fork"),
    "Results": ("runs", "report", "open", "spend", "outcome", "eval"),
    "Choose": ("list", "packet"),
    "Set up": ("init", "doctor", "config", "keys", "trust", "completion"),
    "Connect": ("serve", "skill"),
}
RARE_COMMANDS = ("trust", "completion")  # other pages and messages name them where they are needed
# One group for each flag of every run, by its name in COMMON_FLAGS. Flags of a protocol are grouped by protocol.
FLAG_GROUPS: Mapping[str, tuple[str, ...]] = {
    "Protocol and members": ("protocol", "mode", "models", "members", "cheap", "seat", "seat_count", "exclude_family", "effort", "strict"),
    "Material": ("attach", "spec", "decision", "base", "continued", "no_match", "no_stdin", "redact", "skip_secrets", "packet_tokens", "look"),
    "Cost and time": ("max_cost", "allow_unpriced", "yes", "timeout", "grace", "hedge", "check", "no_warm", "no_resend"),
    "Execution": ("dry_run", "detach", "priority", "no_input", "notify", "config", "trust"),
    "Output": (
        "output", "report_dir", "verbose", "answer_only", "show", "raw", "json", "jsonl", "format", "fail_on", "quiet", "no_color", "ascii",
    ),
    "Help": ("help", "help_all", "version"),
}  # fmt: skip
USUAL_FLAGS = (
    "protocol", "models", "cheap", "max_cost", "dry_run", "yes", "continued", "output", "verbose", "json",
)  # fmt: skip
# Flags that change the packet. `council packet` accepts the other flags of a question too, so that a line can be
# reused.
PACKET_FLAGS = (
    *FLAG_GROUPS["Material"][:-1], "protocol", "mode", "preset", "perspectives", "perspectives_file", "config", "trust", "json", "quiet",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Task:
    """The help page of a task, such as `council validate --help`: what it does, and the flags that matter for it."""

    about: str
    usage: str
    flags: tuple[str, ...]
    examples: tuple[tuple[str, str], ...]


MEMBER_FLAGS = ("models", "cheap")
LIMIT_FLAGS = ("max_cost", "dry_run", "yes", "output", "verbose", "json")
TASKS: Mapping[str, Task] = {
    "ask": Task(
        "Ask a question. Without the word ask the same happens, unless the words choose another task.",
        "council ask WORDS… [FLAGS]",
        ("protocol", *MEMBER_FLAGS, "seat_count", "effort", "attach", "continued", "check", "answer_only", *LIMIT_FLAGS),
        (
            ('council ask "Should we cache sessions?"', "deliberate and answer"),
            ('council ask "And with Redis?" -c', "continue the last run of this folder"),
        ),
    ),
    "validate": Task(
        "Review files or changes. Judges answer apart, and rules combine them into PASS, WARN, FAIL or DISAGREE.",
        "council validate [TARGET…] [FLAGS]",
        ("base", "spec", "preset", "perspectives", "quick", "deep", "mixed", "debate", "skip_secrets", "fail_on", "format", *MEMBER_FLAGS, *LIMIT_FLAGS),
        (
            ("council validate recent", "the files that changed in the last three commits"),
            ("council validate src/auth --preset security-audit", "a path, with one judge per perspective"),
            ("council validate --base main --fail-on warn", "the changes since main; exit 10 for a WARN or worse"),
        ),
    ),
    "brainstorm": Task(
        "Collect approaches. Judges propose apart, and the chair compares the proposals and recommends.",
        "council brainstorm WORDS… [FLAGS]",
        ("technique", "count", "perspectives", "quick", *MEMBER_FLAGS, *LIMIT_FLAGS),
        (
            ('council brainstorm "ways to shorten our builds"', "proposals and a recommendation"),
            ('council brainstorm "name the product" --technique scamper', "with a technique"),
        ),
    ),
    "research": Task(
        "Investigate a question. Judges study parts of it apart, with explorers if you want, and the chair merges them.",
        "council research WORDS… [FLAGS]",
        ("explorers", "explorer_model", "count", "perspectives", "attach", *MEMBER_FLAGS, *LIMIT_FLAGS),
        (
            ('council research "how our retries behave under load"', "findings, trade-offs and open questions"),
            ('council research "how our retries behave under load" --explorers 2', "each judge sends two explorers first"),
        ),
    ),
}  # fmt: skip

SUMMARY = "Ask several language models one question and get one answer that says how far to trust it."
USAGE = "council [FLAGS] [ask|validate|brainstorm|research] WORDS…"
EXAMPLES: Mapping[str, tuple[tuple[str, str], ...]] = {
    "": (
        ('council "Should we …?"', "deliberate and answer"),
        ('council "adversarial council: A or B?"', "stress-test an answer"),
        ("council validate recent", "review changes: PASS, WARN or FAIL"),
        ('cat plan.md | council "Is it sound?"', "ask about piped text"),
        ('council --dry-run "…"', "show plan and price, spend nothing"),
    ),
    "runs": (
        ("council runs", "list the newest runs, unfinished ones first"),
        ("council runs list --here --status failed", "failed runs of this folder"),
        ("council runs show", "the newest run of this folder"),
        ("council runs search cache redis", "runs that contain both words"),
        ("council runs replay r4k2p --speed 8", "play a past run again without calls"),
        ("council runs prune --older-than 90d --keep 50", "remove old runs"),
    ),
    "resume": (
        ("council resume", "continue the newest unfinished run of this folder"),
        ("council resume r4k2p --max-cost 2", "continue a run with a higher cost limit"),
    ),
    "batch": (
        ("council batch rows.jsonl -o out.jsonl", "one line per row in out.jsonl; again to continue"),
        ("council batch rows.csv -o out.jsonl --dry-run", "check every row and show the price, spend nothing"),
        ("council batch rows.jsonl -o out.jsonl --sample 20 --max-cost 5", "try 20 rows first, for at most $5"),
    ),
    "eval": (
        ("council eval questions.jsonl --arms single,collaborative", "compare at equal tokens; again to continue"),
        ("council eval open.jsonl --arms solo,refine --grader blind", "open questions: judges compare the texts blind"),
        ("council eval gym:basic_arithmetic --limit 100 --max-cost 5", "100 generated questions, for at most $5"),
        ("council eval bench:review --limit 12", "judges on programs with planted bugs"),
        ("council eval --replay answers.csv", "compare voting rules on recorded answers, without a model"),
    ),
    "list": (
        ("council list", "what can be listed, and how many there are"),
        ("council list protocols", "protocols with their price and an example"),
        ("council list models --price", "models with prices per million tokens"),
        ("council list presets --show security-audit", "the perspectives of one preset"),
    ),
    "outcome": (
        ("council outcome", "asks about the oldest decisions without an outcome"),
        ("council outcome r4k2p right", "the decision was right"),
        (
            'council outcome r4k2p 42 --note "counted in March"',
            "the value that was right; each seat is compared with it",
        ),
    ),
    "fork": (("council fork r4k2p --from improve --seat beta=openai:gpt-5.2", "another beta from that phase on"),),
    "packet": (
        ("council packet validate recent", "what a review of recent changes would send"),
        ('council packet --json "…" | jq .receipt', "list the files, and those left out"),
    ),
    "report": (
        ("council report --format sarif > council.sarif", "findings for a code-scanning service"),
        ("council report --fail-on warn", "exit 10 if the newest review has a WARN or worse"),
    ),
    "serve": (
        ("council serve", "the web page and the HTTP API, until Ctrl-C"),
        ("council serve mcp", "tools for a coding agent; the same as council mcp"),
        ("council serve worker", "execute detached runs of a shared store"),
        ("council serve tokens add ann", "give another user access"),
    ),
    "spend": (
        ("council spend --since 7d", "the last seven days"),
        ("council spend --by run", "every run with its cost"),
        ("council spend --by protocol", "the mean cost of a run, and what stops saved"),
    ),
    "trust": (
        ("council trust", "show what needs trust here, and trust it"),
        ("council trust --show --json", "the same as JSON, with its hash, without trusting it"),
        ("council trust --revoke", "trust this project no longer"),
    ),
}

_RANGE = re.compile(r"\b[\d.]+<=?x<=?[\d.]+|\bx[<>]=?[\d.]+")  # click's note on the range of a number
_CHOICES = re.compile(r"\[[^]]*\|[^]]*\]")
Rows = Sequence[tuple[str, str]]


# Pages


def short_help(rows: Mapping[str, tuple[str, str]]) -> str:
    """Return `council --help`. `rows` has the help row of every flag of a question, by name."""
    page = _Page()
    page.usage(USAGE, "council COMMAND [FLAGS]")
    page.text(SUMMARY)
    page.section("Examples", EXAMPLES[""])
    usual = [(_CHOICES.sub("NAME", rows[name][0]), rows[name][1]) for name in USUAL_FLAGS if name in rows]
    width = max(len(flag) for flag, _ in usual)
    page.section("Usual flags", [(f"{flag:<{width}}", _first_clause(text)) for flag, text in usual])
    for group, words in group_commands(word for word in CURRENT_COMMANDS if word not in RARE_COMMANDS):
        page.section(group, [(f"{word:<{width}}", _first_clause(COMMAND_HELP[word])) for word in words])
    page.text(
        "council COMMAND --help explains a command, council validate --help a task. council --help-all lists everything."
    )
    return page.content


def _first_clause(text: str) -> str:
    return re.split(r"[;:(]|\.(?= |$)", text)[0].strip()


def full_help(rows: Mapping[str, tuple[str, str]]) -> str:
    """Return `council --help-all`: the flags of a question by group and protocol, and every command with its flags."""
    page = _Page()
    page.usage(USAGE, "council COMMAND [FLAGS]")
    page.text(SUMMARY)
    page.section("Examples", EXAMPLES[""])
    _add_flag_sections(page, rows, rest="Other flags")
    page.section("Protocols that cannot be used", list(flag_table().problems.items()))
    page.section("Other names of flags", list(ALIASES.items()))
    commands = load_commands()
    for group, words in group_commands(CURRENT_COMMANDS):
        page.text(f"{group}: {', '.join(words)}")
        for path in (path for word in words for path in commands if path.split()[0] == word):
            page.section(f"council {path}", _flag_rows(commands[path]["flags"]), commands[path]["help"])
    page.section("Words of earlier versions", [(f"council {word}", now) for word, now in OLD_WORDS.items()])
    return page.content


def command_help(arguments: Sequence[str]) -> str | None:
    """Return the page of a management command if its arguments ask for help, else None.

    The first argument is the command.
    """
    given = before_dashes(arguments)
    commands = load_commands()
    if not HELP_FLAGS.intersection(given[1:]) or given[0] not in commands:
        return None
    path = given[0]
    for word in given[1:]:
        path = f"{path} {word}" if f"{path} {word}" in commands else path
    return _command_page(path, commands)


def task_help(name: str, rows: Mapping[str, tuple[str, str]]) -> str:
    """Return the page of a task. `rows` has the help row of every flag of a question, by name."""
    page, task = _Page(), TASKS[name]
    page.usage(task.usage)
    page.text(task.about)
    page.section("Examples", task.examples)
    page.section("Flags", [rows[flag] for flag in task.flags])
    page.text("A question accepts more flags: council --help-all lists them.")
    return page.content


def _command_page(path: str, commands: Mapping[str, Any]) -> str:
    command, page = commands[path], _Page()
    page.usage(command["usage"])
    page.text(command["help"])
    page.section("Examples", EXAMPLES.get(path, ()))
    page.section("Commands", [(name, commands[f"{path} {name}"]["help"]) for name in _list_inner(path, commands)])
    rows = {flag["name"]: (flag["flag"], flag["help"]) for flag in command["flags"]}
    if len(rows) <= MAX_UNGROUPED_FLAGS:
        page.section("Flags", list(rows.values()))
    else:
        _add_flag_sections(page, rows, rest="Flags")
    return page.content


def _list_inner(path: str, commands: Mapping[str, Any]) -> list[str]:
    """Return the names of the commands directly inside of a command."""
    names = (name.removeprefix(f"{path} ") for name in commands if name.startswith(f"{path} "))
    return [name for name in names if " " not in name]


def _add_flag_sections(page: _Page, rows: Mapping[str, tuple[str, str]], *, rest: str) -> None:
    """Add the flags by group, then those of protocols by protocol."""
    owned = {flag["name"]: flag["owners"][0] for flag in protocol_flags() if flag["name"] in rows}
    for group, names in group_flags((name for name in rows if name not in owned), rest):
        page.section(group, [rows[name] for name in names])
    for protocol in dict.fromkeys(owned.values()):
        page.section(f"Flags of {protocol}", [rows[name] for name, owner in owned.items() if owner == protocol])


# Groups


def group_commands(words: Iterable[str]) -> list[tuple[str, list[str]]]:
    """Return the groups in order with their commands; those without a group are last."""
    return _group(COMMAND_GROUPS, list(words), "Other commands", rest_first=False)


def group_flags(names: Iterable[str], rest: str = "Other flags") -> list[tuple[str, list[str]]]:
    """Return the groups in order with their flags. Flags without a group belong to one command and are first."""
    return _group(FLAG_GROUPS, list(names), rest, rest_first=True)


def _group(
    groups: Mapping[str, tuple[str, ...]], names: list[str], rest: str, *, rest_first: bool
) -> list[tuple[str, list[str]]]:
    known = {name for group in groups.values() for name in group}
    found = [(group, [name for name in members if name in names]) for group, members in groups.items()]
    others = [(rest, [name for name in names if name not in known])]
    return [row for row in (*others, *found) if row[1]] if rest_first else [row for row in (*found, *others) if row[1]]


# The generated table


def load_commands() -> dict[str, Any]:
    """Return the generated rows by path, such as "runs show": usage, help and flags."""
    rows: list[dict[str, Any]] = json.loads(COMMANDS_FILE.read_text(encoding="utf-8"))
    return {row["path"]: row for row in rows}


def describe_commands(commands: Mapping[str, click.Command], parent: str = "") -> list[dict[str, Any]]:
    """Return the rows of the commands and their subcommands for data/commands.json."""
    rows = []
    for name, command in commands.items():
        if command.hidden:
            continue
        path = f"{parent} {name}".strip()
        context = click.Context(command)
        arguments = [one.make_metavar(context) for one in command.params if isinstance(one, click.Argument)]
        inner = command.commands if isinstance(command, click.Group) else {}
        options = [one for one in command.params if isinstance(one, click.Option) and not one.hidden]
        words = ["council", path, *(["[COMMAND]"] if inner else []), *arguments, *(["[FLAGS]"] if options else [])]
        flags = [{"name": option.name, **flag_row(option, context)} for option in options]
        rows.append({"path": path, "usage": " ".join(words), "help": command.help or "", "flags": flags})
        rows += describe_commands(inner, path)
    return rows


def flag_row(option: click.Option, context: click.Context) -> dict[str, str]:
    flag, text = option.get_help_record(context) or ("", "")
    return {"flag": flag, "help": re.sub(r"; (?=\])|\s*\[\]", "", _RANGE.sub("", text))}


def _flag_rows(flags: Iterable[Mapping[str, str]]) -> Rows:
    return [(flag["flag"], flag["help"]) for flag in flags]


class _Page:
    """A help page of sections, as wide as the terminal but at most MAX_WIDTH."""

    def __init__(self) -> None:
        self._formatter = click.HelpFormatter(width=max(40, min(MAX_WIDTH, shutil.get_terminal_size().columns) - 1))

    def usage(self, *lines: str) -> None:
        for number, line in enumerate(lines):
            self._formatter.write(f"{'       ' if number else 'Usage: '}{line}\n")

    def text(self, text: str) -> None:
        self._formatter.write_paragraph()
        self._formatter.write_text(text)

    def section(self, title: str, rows: Rows, about: str = "") -> None:
        """Add a section; without rows and text it is left out."""
        if not (rows or about):
            return
        with self._formatter.section(title):
            if about:
                self._formatter.write_text(about)
            if rows:
                self._formatter.write_dl(list(rows), col_max=MAX_EXAMPLE if title == "Examples" else MAX_COLUMN)

    @property
    def content(self) -> str:
        return self._formatter.getvalue().rstrip("\n")
