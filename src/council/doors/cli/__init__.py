"""The `council` command. argv is split once: a management word selects its command, anything else is a question."""

from __future__ import annotations

import codecs
import contextlib
import io
import json
import os
import shlex
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import click

from council.doors.cli.ci_log import guard_output
from council.doors.cli.params import (
    COMPLETE_VARIABLE,
    HELP_FLAGS,
    MANAGEMENT_COMMANDS,
    OLD_WORDS,
    OLD_WORDS_WITHOUT_NOTICE,
    VERBS,
    before_dashes,
    fill_optional_values,
    place_continued_run,
    split_command,
)
from council.errors import CouncilError, UnknownRun, UsageError, message_for


def main(argv: Sequence[str] | None = None) -> None:
    arguments = list(sys.argv[1:] if argv is None else argv)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by the parent process
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115
    if instruction := os.environ.get(COMPLETE_VARIABLE):
        from council.doors.cli.completion import complete

        sys.exit(complete(instruction))
    _accept_all_characters()
    guard_output()
    try:
        code = run(arguments)
    except KeyboardInterrupt:
        code = 130
    except BrokenPipeError:
        code = 0  # the reader of standard output has closed it
    _flush_output()
    sys.exit(code)


def _accept_all_characters() -> None:
    """Let both outputs replace the characters that their encoding lacks, so that no answer is lost to an encoding."""
    codecs.register_error("council.ascii", _replace_characters)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="council.ascii")


def _replace_characters(error: UnicodeError) -> tuple[str | bytes, int]:
    from council.render.text_layout import to_ascii

    if not isinstance(error, UnicodeEncodeError):
        raise error
    # A quote would end a string of JSON.
    return to_ascii(error.object[error.start : error.end]).replace('"', "'"), error.end


def _flush_output() -> None:
    """Write what is left, and drop it if the reader is gone: the interpreter would print a traceback at its exit."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            with contextlib.suppress(OSError, ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def run(arguments: list[str]) -> int:
    """Run one command line and return its exit code. Print errors as one line, or as one object with --json."""
    wants_json = _wants_json(before_dashes(arguments))
    try:
        word, rest = split_command(fill_optional_values(place_continued_run(arguments, _is_run)))
        _name_replacement(word, arguments)
        if page := _help_page(word, rest):
            click.echo(page)
            return 0
        if not HELP_FLAGS.intersection(arguments):  # help reads no folder
            _repair_folders()
        result = _load_command(word).main(rest, prog_name="council", standalone_mode=False)
        return result if isinstance(result, int) else 0
    except Exception as error:
        return print_failure(error, arguments, wants_json=wants_json)


def _repair_folders() -> None:
    """Make the folders private that an older version left open, and say so once."""
    from council.settings.config_files import repair_folders

    if lines := repair_folders(os.environ):
        from council.doors.cli.notices import select_new_notices
        from council.text_cleanup import clean

        for line in select_new_notices(lines, os.environ):
            print(clean(f"council: {line}"), file=sys.stderr)


def print_failure(error: Exception, arguments: list[str], *, wants_json: bool = False) -> int:
    """Print an error as one line, or as one object, and return the exit code."""
    if isinstance(error, click.ClickException):
        hint = _question_hint(arguments) or _dashes_hint(error, arguments)
        return _print_error(UsageError(_one_line(error.format_message()) + hint), wants_json)
    if isinstance(error, click.Abort):
        return 130
    if isinstance(error, UnknownRun):
        message = message_for(error, "cli")
        return _print_error(
            UnknownRun(f"{message}.{_question_hint(arguments)}" if len(arguments) > 1 else message), wants_json
        )
    if isinstance(error, CouncilError):
        return _print_error(error, wants_json)
    from council.settings.disk_space import explain_full_disk  # only needed for an error

    line = explain_full_disk(error)
    if not line and "COUNCIL_DEBUG" in os.environ:
        raise error
    what = f"{type(error).__name__}: {error}"
    internal = f"internal error ({what}): set COUNCIL_DEBUG=1 for a traceback, and report it"
    return _print_error(CouncilError(line or internal), wants_json)


def _is_run(word: str) -> bool:
    from council.runs.history import is_stored_run  # only needed after -c

    return is_stored_run(word, os.environ)


def _load_command(word: str) -> click.Command:
    """Load the command for the first word. Imports are local to keep startup fast."""
    if word in MANAGEMENT_COMMANDS:
        from council.doors.cli.management import management_group

        return management_group(word)
    from council.doors.cli.ask import ask_command

    return ask_command()


def _name_replacement(word: str, arguments: list[str]) -> None:
    """Say on standard error what to use instead of a word of an earlier version."""
    if word not in OLD_WORDS or word in OLD_WORDS_WITHOUT_NOTICE:
        return
    flags = set(before_dashes(arguments))
    if flags & {"-q", "--quiet"}:
        return
    from council.doors.cli.views import write_status  # only needed for this line

    is_plain = "--no-color" in flags or "NO_COLOR" in os.environ
    write_status(f"council {word} is now {OLD_WORDS[word]}", is_dim=not is_plain, ascii="--ascii" in flags)


def _help_page(word: str, arguments: list[str]) -> str | None:
    """Return the help page of a command or a task if the arguments ask for it; the modules of a command are not
    imported.
    """
    if not HELP_FLAGS.intersection(arguments):
        return None
    if word in MANAGEMENT_COMMANDS:
        from council.doors.cli.help import command_help

        return command_help(arguments)
    asked = HELP_FLAGS.intersection(before_dashes(arguments))
    if word.lower() in VERBS and asked and "--help-all" not in asked:
        from council.doors.cli.ask import task_page

        return task_page(word.lower())
    return None


def _question_hint(arguments: list[str]) -> str:
    """Return how to ask what was taken for a command as a question."""
    words = [argument for argument in arguments if not argument.startswith("-")]
    is_command = bool(words) and words[0] in MANAGEMENT_COMMANDS
    return f' To ask it as a question: council ask "{" ".join(words)}".' if is_command else ""


def _dashes_hint(error: click.ClickException, arguments: list[str]) -> str:
    """Return how to ask a question that begins with an unknown flag."""
    if not isinstance(error, click.NoSuchOption):
        return ""
    return f" To ask it as a question: council -- {shlex.quote(' '.join(arguments))}"


def _print_error(error: CouncilError, wants_json: bool) -> int:
    message = message_for(error, "cli")
    if wants_json:
        from council.text_cleanup import neutralize_commands

        value = {"schema": "council.error/1", "error": message, "exit": error.exit_code}
        value |= {"details": error.details} if error.details else {}
        print(neutralize_commands(json.dumps(value, ensure_ascii=False), "json"))
    else:
        from council.render.text_layout import fit_lines
        from council.text_cleanup import clean

        line = clean(message)
        print(fit_lines(line if line.startswith("Error: ") else f"council: {line}", sys.stderr), file=sys.stderr)
    return error.exit_code


def _one_line(message: str) -> str:
    line = " ".join(message.split()).rstrip(".")
    return line if line.endswith("?") else line + "."


def _wants_json(arguments: Sequence[str]) -> bool:
    return bool({"--json", "--format=json"} & set(arguments)) or ("--format", "json") in pairwise(arguments)
