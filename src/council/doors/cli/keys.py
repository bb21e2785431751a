"""`council keys`: API keys in the system keyring. Keys are read from standard input or a hidden prompt and never printed."""

from __future__ import annotations

import os
import re
import sys
from getpass import getpass
from pathlib import Path
from typing import Any

import click

from council.doors.cli.commands import CONFIG_OPTION, JSON_OPTION, make_command
from council.doors.cli.given import print_json
from council.doors.cli.words import COMMAND_HELP
from council.errors import UsageError
from council.settings import load_settings
from council.settings_keyring import delete_key, load_key, store_key, stored_key_names
from council.types import Json

NAME_ARGUMENT = click.Argument(["name"])
VARIABLE_NAME = re.compile(r"[A-Z_][A-Z0-9_]*")


def keys_command() -> click.Group:
    group = click.Group(
        "keys",
        invoke_without_command=True,
        params=[JSON_OPTION, CONFIG_OPTION],
        help=COMMAND_HELP["keys"],
        callback=_keys_default,
    )
    group.add_command(make_command("list", list_keys, help="List the variables with a stored key, without the keys."))
    group.add_command(
        make_command("set", set_key, NAME_ARGUMENT, help="Store a key, read from standard input or a hidden prompt.")
    )
    group.add_command(make_command("rm", remove_key, NAME_ARGUMENT, help="Remove a key from the keyring."))
    return group


@click.pass_context
def _keys_default(context: click.Context, /, **params: Any) -> int | None:
    return list_keys(**params) if context.invoked_subcommand is None else None


def list_keys(**params: Any) -> int:
    rows = [_key_status(name) for name in stored_key_names(os.environ)]
    if params["json"]:
        print_json(rows)
    elif not rows:
        click.echo("no keys stored: store one with `council keys set ANTHROPIC_API_KEY`")
    else:
        click.echo("\n".join(f"{row['name']:<24} {row['used']}" for row in rows))
    return 0


def _key_status(name: str) -> Json:
    if os.environ.get(name, "").strip():
        return {"name": name, "used": "no: the environment variable takes precedence"}
    return {"name": name, "used": "yes" if load_key(name) else "no: the keyring did not return it"}


def set_key(name: str, **params: Any) -> int:
    variable = _resolve_variable(name, params["config"])
    store_key(variable, _read_key(variable), os.environ)
    first = f"; the environment variable {variable} takes precedence" if os.environ.get(variable) else ""
    click.echo(f"stored {variable} in the system keyring{first}", err=True)
    return 0


def remove_key(name: str, **params: Any) -> int:
    variable = _resolve_variable(name, params["config"])
    delete_key(variable, os.environ)
    click.echo(f"removed {variable} from the system keyring", err=True)
    return 0


def _resolve_variable(name: str, config: str | None) -> str:
    """Return the variable for a variable or provider name. Do not echo an invalid name, because it may be a key."""
    providers = load_settings(Path.cwd(), os.environ, config=Path(config) if config else None).providers
    if name in providers and providers[name].api_key_env:
        return providers[name].api_key_env
    if not VARIABLE_NAME.fullmatch(name):
        raise UsageError(
            "the argument is neither a variable such as ANTHROPIC_API_KEY nor a provider with a key, nothing was done: "
            "run `council keys set NAME` and enter the key at the prompt, never on the command line"
        )
    return name


def _read_key(variable: str) -> str:
    key = getpass(f"{variable}: ") if sys.stdin.isatty() else sys.stdin.read(100_000)
    if not key.strip() or len(key.split()) > 1:
        raise UsageError(
            f"expected one key on standard input, nothing was stored: use `council keys set {variable} < FILE`"
        )
    return key.strip()
