"""Parse, check and complete command-line parameters, and print JSON."""

from __future__ import annotations

import json
import math
import os
import select
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from council.doors.cli.grammar import VERBS
from council.errors import UsageError
from council.settings.config_files import config_folder

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


class IntegerParam(click.ParamType):  # type: ignore[type-arg]
    """Integer option. The protocol checks its range."""

    name = "integer"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            return int(value)
        except ValueError:
            flag = param.opts[-1] if param else "this flag"
            raise UsageError(
                f'{flag} "{value}" is not a whole number, nothing was spent: use for example {flag} 2'
            ) from None


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
    continue_from: str | None = None  # the run to continue


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
    """Read to the end or one byte over the limit. Say so if no byte arrives for a while."""
    try:
        handle = stream.fileno()
    except (OSError, ValueError):  # an object without a file
        return bytes(stream.read(MAX_STDIN_BYTES + 1))
    if not select.select([handle], [], [], STDIN_NOTICE_S)[0]:
        click.echo(STDIN_NOTICE, err=True)
    chunks, size = [], 0
    while size <= MAX_STDIN_BYTES:
        select.select([handle], [], [])  # the pipe may be non-blocking
        chunk = os.read(handle, min(65536, MAX_STDIN_BYTES + 1 - size))
        if not chunk:
            break
        chunks.append(chunk)
        size += len(chunk)
    return b"".join(chunks)


def parse_seats(values: tuple[str, ...]) -> dict[str, str]:
    seats = {}
    for seat in values:
        name, equals, member = seat.partition("=")
        if not (name and equals and member):
            raise click.UsageError(f'--seat "{seat}" is not NAME=MEMBER: use for example --seat alpha=openai:gpt-5.2')
        seats[name.strip()] = member.strip()
    return seats


def check_grace(seconds: float | None) -> float | None:
    if seconds is not None and not 0 <= seconds < math.inf:
        raise click.UsageError(f'--grace "{seconds:g}" is out of range: use 0 or more seconds')
    return seconds


def print_json(value: Any) -> None:
    click.echo(json.dumps(value, ensure_ascii=False, indent=2))


def check_output_path(path: str | None) -> Path | None:
    """Return the output path. Raise an error before anything is spent if it is not writable."""
    if path is None:
        return None
    target = Path(path)
    possible = os.access(target, os.W_OK) if target.exists() else os.access(target.absolute().parent, os.W_OK)
    if target.is_dir() or not possible:
        raise click.UsageError(f'cannot write to "{path}", nothing was spent: choose another file with -o')
    return target


# Shell completion of values


def complete_file(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(incomplete, type="file")]


def complete_protocol(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from council.protocols import protocol_names

    return _matching(protocol_names(), incomplete)


def complete_preset(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from council.protocols.common.perspectives import list_presets

    return _matching(list_presets(user_presets_folder()), incomplete)


def complete_roster(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from council.protocols.common.rosters import SHIPPED_ROSTERS

    return _matching([path.stem for path in sorted(SHIPPED_ROSTERS.glob("*.toml"))], incomplete)


def complete_run(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Suggest the runs, newest first, with their questions."""
    from council.runs.history import list_run_questions

    found = list_run_questions(os.environ)
    return [CompletionItem(run, help=question) for run, question in found.items() if run.startswith(incomplete)]


def _matching(names: Iterable[str], incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


def run_argument(*, required: bool = False) -> click.Argument:
    return click.Argument(["run"], required=required, shell_complete=complete_run)


def user_presets_folder() -> Path:
    return config_folder(dict(os.environ)) / "presets"
