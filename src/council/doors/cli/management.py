"""The table of management commands. Only the command that runs is imported, so that the others cost no time."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import click

from council.doors.cli.params import RESERVED_COMMANDS
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
    "mcp": "service_commands:mcp_command",
    "worker": "service_commands:worker_command",
    "completion": "completion:completion_command",
}


def load_command(name: str) -> click.Command:
    if name in RESERVED_COMMANDS:
        return _reserved_command(name)
    module, _, make = COMMANDS[name].partition(":")
    command: click.Command = getattr(import_module(f"council.doors.cli.{module}"), make)()
    return command


def management_group(*names: str) -> click.Group:
    """Return a group with the named commands, or with all."""
    group = click.Group("council", context_settings={"help_option_names": ["-h", "--help"]})
    for name in names or (*COMMANDS, *RESERVED_COMMANDS):
        group.add_command(load_command(name))
    return group


def _reserved_command(word: str) -> click.Command:
    """Create a hidden command for a reserved word. It never starts a run and reports that it is not available yet."""

    def refuse(**params: Any) -> int:
        raise UsageError(
            f'command "{word}" is planned but not available yet, nothing was done. To ask it as a question: council ask "{word} …"'
        )

    arguments = click.Argument(["rest"], nargs=-1, type=click.UNPROCESSED)
    settings = {"ignore_unknown_options": True, "allow_extra_args": True}
    return click.Command(
        word, callback=refuse, params=[arguments], hidden=True, context_settings=settings, add_help_option=False
    )
