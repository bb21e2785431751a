"""The table of management commands. Only the command that runs is imported, so that the others cost no time.

The command mcp is here, because it has to answer its client soon: the other modules take longer to import.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

import click

from council.doors.cli.params import COMMAND_HELP, OLD_WORDS, common_options, make_flag
from council.errors import UsageError

COMMANDS = {
    "runs": "history_commands:runs_command",
    "replay": "report_commands:replay_command",
    "report": "report_commands:report_command",
    "gate": "report_commands:gate_command",
    "spend": "report_commands:spend_command",
    "resume": "run_commands:resume_command",
    "watch": "run_commands:watch_command",
    "cancel": "run_commands:cancel_command",
    "fork": "run_commands:fork_command",
    "chat": "chat:chat_command",
    "batch": "batch_command:batch_command",
    "eval": "eval_command:eval_command",
    "outcome": "outcome_command:outcome_command",
    "advise": "eval_command:advise_command",
    "list": "info_commands:list_command",
    "packet": "ask:packet_command",
    "presets": "info_commands:presets_command",
    "rosters": "info_commands:rosters_command",
    "protocols": "info_commands:protocols_command",
    "models": "info_commands:models_command",
    "doctor": "info_commands:doctor_command",
    "keys": "info_commands:keys_command",
    "init": "setup_commands:init_command",
    "config": "setup_commands:config_command",
    "trust": "setup_commands:trust_command",
    "skill": "service_commands:skill_command",
    "serve": "service_commands:serve_command",
    "open": "service_commands:open_command",
    "tokens": "token_commands:tokens_command",
    "mcp": "management:mcp_command",
    "worker": "service_commands:worker_command",
    "completion": "completion:completion_command",
}


def load_command(name: str) -> click.Command:
    module, _, make = COMMANDS[name].partition(":")
    command: click.Command = getattr(import_module(f"council.doors.cli.{module}"), make)()
    if name in OLD_WORDS:
        _accept_quiet(command)
    return command


def _accept_quiet(command: click.Command) -> None:
    """Let an old word accept -q, which silences its notice."""
    if all(parameter.name != "quiet" for parameter in command.params):
        command.params.append(click.Option(["-q", "--quiet"], is_flag=True, hidden=True, expose_value=False))
    if isinstance(command, click.Group):
        for inner in command.commands.values():
            _accept_quiet(inner)


def management_group(*names: str) -> click.Group:
    """Return a group with the named commands, or with all."""
    group = click.Group("council", context_settings={"help_option_names": ["-h", "--help"]})
    for name in names or COMMANDS:
        group.add_command(load_command(name))
    return group


def no_worker_option() -> click.Option:
    return make_flag("--no-worker", help="Do not execute runs of a shared store; `council serve worker` does.")


def mcp_command() -> click.Command:
    folder = "Folder for clients that declare no roots. Default: the current folder."
    port = "Port for --http; 0 picks a free one."
    limit = "Cost limit per run; callers cannot raise it."
    flags: list[click.Parameter] = [
        make_flag("--http", help="Serve over local HTTP with a token instead of standard input and output."),
        click.Option(["--port"], type=click.IntRange(0, 65535), default=0, metavar="N", help=port),
        click.Option(["--folder"], type=click.Path(), metavar="DIR", help=folder),
        click.Option(["--max-cost"], type=float, metavar="DOLLARS", help=limit),
        no_worker_option(),
        *common_options("allow_unpriced", "config"),
    ]

    def mcp(folder: str | None, http: bool, port: int, **params: Any) -> int:
        if find_spec("mcp") is None:
            raise UsageError(
                "`council mcp` needs the MCP SDK, which is not installed: pip install 'model-council[mcp]'"
            )
        from council.doors.mcp.handshake import begin

        place, handshake = begin(folder, http, port)
        from council.doors.mcp.server import serve  # the SDK import is slow

        return serve(place, handshake, http=http, port=port, **params)

    return click.Command("mcp", callback=mcp, params=flags, help=COMMAND_HELP["mcp"])
