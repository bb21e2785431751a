"""The `council` command. argv is split once: a management word selects its command, anything else is a question."""

from __future__ import annotations

import errno
import json
import os
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import click

from council.doors.cli.params import COMPLETE_VARIABLE, MANAGEMENT_COMMANDS, split_command
from council.errors import CouncilError, UnknownRun, UsageError, message_for


def main(argv: Sequence[str] | None = None) -> None:
    arguments = list(sys.argv[1:] if argv is None else argv)
    if sys.stderr is None:  # closed by the parent process
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
    if instruction := os.environ.get(COMPLETE_VARIABLE):
        from council.doors.cli.completion import complete

        sys.exit(complete(instruction))
    try:
        code = run(arguments)
    except KeyboardInterrupt:
        code = 130
    except BrokenPipeError:
        code = _close_broken_pipe()
    sys.exit(code)


def run(arguments: list[str]) -> int:
    """Run one command line and return its exit code. Print errors as one line, or as one object with --json."""
    wants_json = _wants_json(_arguments_before_dashes(arguments))
    try:
        word, rest = split_command(arguments)
        if word in MANAGEMENT_COMMANDS and (page := _help_page(rest)):
            click.echo(page)
            return 0
        result = _load_command(word).main(rest, prog_name="council", standalone_mode=False)
        return result if isinstance(result, int) else 0
    except click.ClickException as error:
        return _print_error(UsageError(_one_line(error.format_message()) + _question_hint(arguments)), wants_json)
    except click.Abort:
        return 130
    except UnknownRun as error:
        return _print_error(
            UnknownRun(f"{error}.{_question_hint(arguments)}" if len(arguments) > 1 else str(error)), wants_json
        )
    except CouncilError as error:
        return _print_error(error, wants_json)
    except Exception as error:
        if isinstance(error, OSError) and error.errno == errno.ENOSPC:
            return _print_error(
                CouncilError(f"cannot write the output ({error.strerror}): free some disk space and try again"),
                wants_json,
            )
        if "COUNCIL_DEBUG" in os.environ:
            raise
        what = f"{type(error).__name__}: {error}"
        return _print_error(
            CouncilError(f"internal error ({what}): set COUNCIL_DEBUG=1 for a traceback, and report it"),
            wants_json,
        )


def _load_command(word: str) -> click.Command:
    """Load the command for the first word. Imports are local to keep startup fast."""
    if word in MANAGEMENT_COMMANDS:
        from council.doors.cli.management import management_group

        return management_group(word)
    from council.doors.cli.ask import ask_command

    return ask_command()


def _help_page(arguments: list[str]) -> str | None:
    """Return the help page of a management command if the arguments ask for it; its modules are not imported."""
    if not any(flag.startswith(("-h", "--help")) for flag in arguments):
        return None
    from council.doors.cli.help import command_help

    return command_help(arguments)


def _question_hint(arguments: list[str]) -> str:
    words = [argument for argument in arguments if not argument.startswith("-")]
    return (
        f' To ask it as a question: council ask "{" ".join(words)}".'
        if words and words[0] in MANAGEMENT_COMMANDS
        else ""
    )


def _print_error(error: CouncilError, wants_json: bool) -> int:
    message = message_for(error, "cli")
    if wants_json:
        print(json.dumps({"schema": "council.error/1", "error": message, "exit": error.exit_code}, ensure_ascii=False))
    else:
        from council.text_cleanup import clean

        line = clean(message)
        print(line if line.startswith("Error: ") else f"council: {line}", file=sys.stderr)
    return error.exit_code


def _one_line(message: str) -> str:
    line = " ".join(message.split()).rstrip(".")
    return line if line.endswith("?") else line + "."


def _wants_json(arguments: list[str]) -> bool:
    return bool({"--json", "--format=json"} & set(arguments)) or ("--format", "json") in pairwise(arguments)


def _arguments_before_dashes(arguments: list[str]) -> list[str]:
    return arguments[: arguments.index("--")] if "--" in arguments else arguments


def _close_broken_pipe() -> int:
    """Exit quietly after the reader of standard output has closed it."""
    sys.stderr.close()
    return 0
