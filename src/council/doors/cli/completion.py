"""Shell completion by click: `council completion SHELL` prints its script, which calls `council` for every
suggestion.
"""

from __future__ import annotations

import os

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    FishComplete,
    ShellComplete,
    ZshComplete,
    add_completion_class,
    shell_complete,
)

from council.doors.cli.ask import ask_command
from council.doors.cli.params import COMMAND_HELP, COMPLETE_VARIABLE, CURRENT_COMMANDS, MANAGEMENT_COMMANDS, VERBS

DASHES_SEEN = "council.dashes"  # key in the context: "--" was given, so only free text follows


LISTING_TYPES = ("33", "63", "64")  # COMP_TYPE when Bash lists the suggestions, instead of inserting one


class BashWithEquals(BashComplete):
    """Bash completion of `--flag=value`, which Bash splits into three words.

    A list of several runs has the title behind each of them.
    """

    source_template = BashComplete.source_template.replace(
        "env COMP_WORDS", "env COMP_TYPE=$COMP_TYPE COMP_WORDS"
    ).replace("COMPREPLY+=($value)", 'COMPREPLY+=("$value")')

    def get_completion_args(self) -> tuple[list[str], str]:
        args, incomplete = super().get_completion_args()
        return [word for word in args if word != "="], "" if incomplete == "=" else incomplete

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem]:
        items = super().get_completions(args, incomplete)
        if os.environ.get("COMP_TYPE") not in LISTING_TYPES or len(items) < 2:
            return items
        width = max(len(item.value) for item in items)
        return [_add_title(item, width) for item in items]


def _add_title(item: CompletionItem, width: int) -> CompletionItem:
    return CompletionItem(f"{item.value:<{width}}  {item.help}") if item.is_run and item.help else item


class WholeWord(ShellComplete):
    """Completion of `--flag=value` in a shell that keeps it as one word: the suggestion replaces the word."""

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem]:
        items = super().get_completions(args, incomplete)
        flag, equals, _ = incomplete.partition("=")
        if not (equals and flag.startswith("-")):
            return items
        return [CompletionItem(f"{flag}={item.value}", type=item.type, help=item.help) for item in items]


class ZshWholeWord(WholeWord, ZshComplete):
    pass


class FishWholeWord(WholeWord, FishComplete):
    source_template = FishComplete.source_template.replace("string split", "string split --max 1")  # titles have commas


COMPLETERS: dict[str, type[ShellComplete]] = {"bash": BashWithEquals, "zsh": ZshWholeWord, "fish": FishWholeWord}


class CommandLine(click.Group):
    """The whole command line: management words, verbs, and a question with its flags."""

    def __init__(self) -> None:
        settings = {"help_option_names": ["-h", "--help"]}
        flags = [parameter for parameter in ask_command().params if isinstance(parameter, click.Option)]
        super().__init__("council", params=flags, context_settings=settings)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.meta[DASHES_SEEN] = "--" in args
        return super().parse_args(ctx, args)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str, click.Command, list[str]]:
        word, *rest = args
        if word in MANAGEMENT_COMMANDS:
            from council.doors.cli.management import load_command

            return word, load_command(word), rest
        return word, ask_command(), rest if word in VERBS else args

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        words = [
            CompletionItem(word, help=COMMAND_HELP.get(word))
            for word in (*VERBS, *CURRENT_COMMANDS)
            if word.startswith(incomplete) and not ctx.meta[DASHES_SEEN]
        ]
        return [*words, *click.Command.shell_complete(self, ctx, incomplete)]


def complete(instruction: str) -> int:
    """Answer one call of a completion script: `bash_complete` prints suggestions, `bash_source` the script."""
    for shell, completer in COMPLETERS.items():
        add_completion_class(completer, shell)
    return shell_complete(CommandLine(), {}, "council", COMPLETE_VARIABLE, instruction)


def completion_command() -> click.Command:
    def completion(shell: str) -> int:
        return complete(f"{shell}_source")

    shell = click.Argument(["shell"], type=click.Choice(tuple(COMPLETERS)))
    return click.Command("completion", callback=completion, params=[shell], help=COMMAND_HELP["completion"])
