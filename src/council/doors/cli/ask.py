"""The main command: `council [FLAGS] [ask|validate|brainstorm|research] WORDS…`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click

from council.doors.cli import help
from council.doors.cli.params import (
    COMMAND_HELP,
    COMMON_FLAGS,
    RunRequest,
    complete_file,
    make_option,
    protocol_flags,
    read_stdin,
)
from council.errors import UsageError
from council.version import __version__


def ask_command() -> AskCommand:
    eager: dict[str, Any] = {"is_flag": True, "is_eager": True, "expose_value": False}
    parameters = [
        click.Argument(["words"], nargs=-1, shell_complete=complete_file),
        *question_options(),
        click.Option(["--version"], callback=_print_version, help="Print the version.", **eager),
        click.Option(["--help-all"], callback=_print_full_help, help="Show every flag and command.", **eager),
    ]
    return AskCommand(
        "council",
        params=parameters,
        callback=convene,
        help=help.SUMMARY,
        context_settings={"help_option_names": ["-h", "--help"]},
    )


def question_options(listed: Sequence[str] | None = None) -> list[click.Option]:
    """Return the flags of a question. Help lists only those in `listed`; the others are accepted too."""
    options = [make_option(flag) for flag in (*COMMON_FLAGS, *protocol_flags())]
    for option in options:
        option.hidden |= listed is not None and option.name not in listed
    return options


class AskCommand(click.Command):
    """Command whose help is the short page."""

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write(help.short_help(self.flag_rows(ctx)))

    def flag_rows(self, ctx: click.Context) -> dict[str, tuple[str, str]]:
        """Return the help row of each flag, by name."""
        options = (parameter for parameter in self.get_params(ctx) if isinstance(parameter, click.Option))
        rows = ((option, option.get_help_record(ctx)) for option in options)
        return {"help" if "--help" in option.opts else str(option.name): row for option, row in rows if row}


def task_page(task: str) -> str:
    """Return the help page of a task, such as `council validate --help`."""
    command = ask_command()
    return help.task_help(task, command.flag_rows(click.Context(command)))


def _print_full_help(context: click.Context, parameter: click.Parameter, value: bool) -> None:
    if value and isinstance(context.command, AskCommand):
        click.echo(help.full_help(context.command.flag_rows(context)))
        context.exit()


def _print_version(context: click.Context, parameter: click.Parameter, value: bool) -> None:
    if value:
        click.echo(f"council {__version__}")
        context.exit()


def convene(words: tuple[str, ...], **params: Any) -> int:
    from council.doors.cli.runner import Runner

    request = build_request(words, params)
    runner = Runner.from_flags(params)
    if params["priority"] is not None and not params["detach"]:
        raise click.UsageError(
            f"--priority {params['priority']} is for runs that workers execute, nothing was started: add --detach"
        )
    if params["detach"] and not params["dry_run"]:
        from council.doors.cli.run_commands import detach

        return detach(runner, request)
    return runner.convene(request, dry_run=params["dry_run"], detach=params["detach"])


ACCEPT_SECRET_HELP = "Accept the values for which this packet is refused, in these files only: write their hashes to .council-secrets.toml."


def show_packet(words: tuple[str, ...], **params: Any) -> int:
    from council.doors.cli.runner import Runner

    request = build_request(words, params)
    runner = Runner.from_flags(params)
    reason = params["accept_secret"]
    return runner.show_packet(request) if reason is None else runner.accept_secrets(request, reason)


def packet_command() -> click.Command:
    """Build `council packet`, which accepts the flags of a question and lists those that change the packet."""
    options = question_options(help.PACKET_FLAGS)
    accept = click.Option(["--accept-secret"], metavar="REASON", help=ACCEPT_SECRET_HELP)
    words = click.Argument(["words"], nargs=-1, metavar="WORDS…", shell_complete=complete_file)
    return click.Command("packet", params=[words, accept, *options], callback=show_packet, help=COMMAND_HELP["packet"])


def build_request(words: tuple[str, ...], params: dict[str, Any]) -> RunRequest:
    material = {
        "spec": params["spec"],
        "decisions": tuple(params["decision"]),
        "base": params["base"],
        "match": not params["no_match"],
        "redact": params["redact"],
        "skip_secrets": params["skip_secrets"],
        "look": params["look"],
        "stdin": read_stdin(words, ignore=params["no_stdin"]),
    }
    if params["attach"]:
        from council.packet.attachments import read_attachments  # only needed for attachments

        material["attachments"] = read_attachments(params["attach"])
    return RunRequest(
        list(words),
        read_protocol_options(params),
        choose_protocol(params["protocol"], params["mode"]),
        params["verbose"],
        params["strict"],
        params["fail_on"],
        material,
        params["continued"],
    )


def read_protocol_options(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of protocols that were given; a flag that is off was not, unless it can be turned off."""
    return {
        flag["name"]: value
        for flag in protocol_flags()
        if (value := params[flag["name"]]) is not None and (value is not False or flag.get("negatable"))  # keep 0
    }


def choose_protocol(protocol: str | None, mode: str | None) -> str | None:
    if protocol and mode and protocol != mode:
        raise UsageError(
            f'--protocol "{protocol}" and --mode "{mode}" conflict: --mode is an alias of --protocol, give one of them'
        )
    return protocol or mode
