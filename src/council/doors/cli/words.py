"""What the first word means: a management command, or the beginning of a question."""

from __future__ import annotations

import json
import re
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any

from council.doors.cli.formats import FORMATS
from council.errors import UsageError

BUILT = {
    "runs": "list, show, search, export, remove or check past runs",
    "resume": "take an unfinished run up where it stopped",
    "watch": "follow a run that is under way anywhere on this machine, to its end",
    "cancel": "stop a run that is queued or under way; what was answered is kept",
    "fork": "run it again from a phase on with other members; whatever is unchanged is taken over",
    "replay": "watch a past run again, without a call",
    "report": "print a run's report, also as SARIF, JUnit or GitHub annotations",
    "gate": "pass or fail a finished run for CI, without a call",
    "packet": "show exactly what would leave the machine, and what was left out",
    "presets": "the named sets of perspectives for judges",
    "rosters": "the named seats of councils, shipped and of your own",
    "models": "the members that can be seated, and whether they can be called",
    "doctor": "check every member: configured, installed, key or login, answered",
    "keys": "keep keys in the system's keyring instead of the environment",
    "mcp": "serve the council as tools of coding agents (Model Context Protocol)",
    "serve": "the page and the HTTP API on this machine: watch a council deliberate, and any past one again",
    "worker": "work on detached runs until none is left; called when one is queued",
    "config": "the settings in force and where each comes from",
    "skill": "the skill for coding agents: install, list, show or remove it",
    "completion": "print the completion script of bash, zsh or fish",
    "spend": "what was spent by day, member and run, and what is left of today",
}
PLANNED = (
    "outcome", "eval", "batch",
)  # fmt: skip
MANAGEMENT = (*BUILT, *PLANNED)
SUBCOMMANDS = ("list", "show", "search", "export", "rm", "fsck", "set", "install")  # of `runs`, `keys` and `skill`
VERBS = ("ask", "validate", "brainstorm", "research")
SHORT_WITH_VALUE = ("-o",)

# Flags of every council; those of single protocols are generated from their options into data/flags.json.
COMMON: list[dict[str, Any]] = [
    {"flag": "--protocol", "name": "protocol", "kind": "str", "help": "Deliberate by this protocol, whatever the words say."},
    {"flag": "--mode", "name": "mode", "kind": "str", "help": "Another name for --protocol."},
    {"flag": "--seat", "name": "seat", "kind": "many", "metavar": "NAME=MEMBER", "help": "Seat a member by name; repeatable. --seat chair=… seats the chair."},
    {"flag": "--timeout", "name": "timeout", "kind": "float", "metavar": "SECONDS", "help": "Time a seat has in a phase, retries and fallbacks together (120)."},
    {"flag": "--max-cost", "name": "max_cost", "kind": "float", "metavar": "DOLLARS", "help": "Stop before this run could cost more; `council resume --max-cost` goes on."},
    {"flag": "--allow-unpriced", "name": "allow_unpriced", "kind": "bool", "help": "Seat members whose price nobody knows, although there is a budget."},
    {"flag": "--grace", "name": "grace", "kind": "float", "metavar": "SECONDS", "help": "Leave a seat behind that has not said a word so long after the others of its phase are done."},
    {"flag": "--no-resend", "name": "no_resend", "kind": "bool", "help": "Send nothing again that may have been paid for: what was cut off stays in doubt."},
    {"flag": "--effort", "name": "effort", "kind": "choice", "choices": ["low", "medium", "high"], "help": "How hard members that can think should think."},
    {"flag": "--config", "name": "config", "kind": "str", "metavar": "FILE", "help": "Use this file in place of the project's council.toml."},
    {"flag": "--spec", "name": "spec", "kind": "str", "metavar": "FILE", "help": "What the work was meant to do; goes into the packet."},
    {"flag": "--decision", "name": "decision", "kind": "many", "metavar": "TEXT", "help": "A decision already taken, for the packet; repeatable."},
    {"flag": "--base", "name": "base", "kind": "str", "metavar": "REF", "help": "Review what changed since this revision."},
    {"flag": "--no-match", "name": "no_match", "kind": "bool", "help": "Do not take words of the question for names of files and folders."},
    {"flag": "--redact", "name": "redact", "kind": "bool", "help": "Mask secrets in the packet instead of refusing it."},
    {"flag": "--skip-secrets", "name": "skip_secrets", "kind": "bool", "help": "Leave files with secrets out of the packet; they count as not seen."},
    {"flag": "--strict", "name": "strict", "kind": "bool", "help": "Refuse to go on with less than was asked for (--mixed without a second family)."},
    {"flag": "--fail-on", "name": "fail_on", "kind": "choice", "choices": ["fail", "warn", "critical", "significant", "never"], "help": "Exit 10 when a review comes to this or worse."},
    {"flag": "--yes", "name": "yes", "kind": "bool", "help": "Do not ask before a council that is expected to cost more than confirm_above."},
    {"flag": "--no-input", "name": "no_input", "kind": "bool", "help": "Ask nothing, also at a terminal: only the cap holds."},
    {"flag": "--detach", "name": "detach", "kind": "bool", "help": "Leave the run to a worker in the background and return at once; `council watch` follows it."},
    {"flag": "--continue", "name": "continued", "kind": "str", "metavar": "RUN", "help": "Ask on: the question and the answer of this run go into the packet."},
    {"flag": "--dry-run", "name": "dry_run", "kind": "bool", "help": "Print the plan and spend nothing."},
    {"flag": "--json", "name": "json", "kind": "bool", "help": "Print one object: the plan, the report or the error."},
    {"flag": "--format", "name": "format", "kind": "choice", "choices": list(FORMATS), "help": "Print the finished run in this format; md is the whole report, html one file with every view of the page."},
    {"flag": "--jsonl", "name": "jsonl", "kind": "bool", "help": "Stream the events, one object a line."},
    {"flag": "--verbose", "name": "verbose", "kind": "bool", "help": "Print every statement in full, not the final answer alone."},
    {"flag": "--show", "name": "show", "kind": "choice", "choices": ["transcript"], "help": "transcript: verbose, with prompts, retries and absences."},
    {"flag": "--output", "short": "-o", "name": "output", "kind": "str", "metavar": "FILE", "help": "Write the answer to this file."},
    {"flag": "--quiet", "name": "quiet", "kind": "bool", "help": "No progress on standard error."},
    {"flag": "--no-color", "name": "no_color", "kind": "bool", "help": "No colour."},
    {"flag": "--ascii", "name": "ascii", "kind": "bool", "help": "Plain characters in the live table."},
]  # fmt: skip


@cache
def owned_flags() -> list[dict[str, Any]]:
    path = Path(__file__).parents[2] / "data" / "flags.json"
    flags: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
    return flags


RUN = re.compile(r"r[2-9a-z]{5}")  # how a run is called


def split(arguments: list[str]) -> tuple[str, list[str]]:
    """The word that decides, and the arguments in the order its command takes them."""
    place = _first_word(arguments)
    if place is None:
        return "", arguments
    word = arguments[place]
    if word in MANAGEMENT:
        return word, [word, *arguments[:place], *arguments[place + 1 :]]
    _refuse_misspelt(word, [one for one in arguments[place:] if one == "-" or not one.startswith("-")])
    return word, arguments


def _first_word(arguments: list[str]) -> int | None:
    valued = {flag["flag"] for flag in (*COMMON, *owned_flags()) if flag["kind"] != "bool"} | set(SHORT_WITH_VALUE)
    skip = False
    for place, argument in enumerate(arguments):
        if skip:
            skip = False
        elif argument == "--":
            return None
        elif argument.startswith("-") and argument != "-":
            skip = argument in valued
        else:
            return place
    return None


def _refuse_misspelt(word: str, words: list[str]) -> None:
    """No misspelt command ever starts a run. A longer sentence is a question, unless it goes on as a command does."""
    goes_on = len(words) > 1 and (words[1] in SUBCOMMANDS or (len(words) == 2 and RUN.fullmatch(words[1]) is not None))
    alike = (
        0.8 if len(words) == 2 and not goes_on else 0.75 if len(word) > 3 else 0.66
    )  # two words may be a short question
    near = get_close_matches(word.lower(), MANAGEMENT, n=1, cutoff=alike)
    plain = re.fullmatch(r"[A-Za-z-]+", word) is not None
    command = plain and (len(words) <= 2 or goes_on)
    if near and command and word not in VERBS and not Path(word).exists():
        raise UsageError(
            f'"{word}" is no command, did you mean `council {near[0]}`? To ask it as a question: council ask "{" ".join(words)}"'
        )
