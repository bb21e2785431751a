"""`council keys`: keys in the system's keyring. A key comes in by standard input or unseen by hand, and is never printed."""

from __future__ import annotations

import os
import re
import sys
from getpass import getpass
from pathlib import Path
from typing import Any

import click

from council.doors.cli.commands import CONFIG, JSON, command
from council.doors.cli.given import print_json
from council.doors.cli.words import BUILT
from council.errors import UsageError
from council.settings import load_settings
from council.settings_keyring import forget, keep, kept, recalled
from council.types import Json

NAME = click.Argument(["name"])
VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]*")


def keys_command() -> click.Group:
    group = click.Group(
        "keys", invoke_without_command=True, params=[JSON, CONFIG], help=BUILT["keys"], callback=_default
    )
    group.add_command(command("list", list_keys, help="the variables whose keys are kept, never the keys"))
    group.add_command(command("set", set_key, NAME, help="keep a key: read from standard input, or typed unseen"))
    group.add_command(command("rm", remove_key, NAME, help="remove a key from the keyring"))
    return group


@click.pass_context
def _default(context: click.Context, /, **given: Any) -> int | None:
    return list_keys(**given) if context.invoked_subcommand is None else None


def list_keys(**given: Any) -> int:
    rows = [_row(name) for name in kept(os.environ)]
    if given["json"]:
        print_json(rows)
    elif not rows:
        click.echo("no keys are kept: council keys set ANTHROPIC_API_KEY keeps one in the system's keyring")
    else:
        click.echo("\n".join(f"{row['name']:<24} {row['used']}" for row in rows))
    return 0


def _row(name: str) -> Json:
    if os.environ.get(name, "").strip():
        return {"name": name, "used": "no: the environment has one, which comes first"}
    return {"name": name, "used": "yes" if recalled(name) else "no: the keyring does not give it now"}


def set_key(name: str, **given: Any) -> int:
    variable = _variable(name, given["config"])
    keep(variable, _read(variable), os.environ)
    first = f"; {variable} is set in the environment too, which comes first" if os.environ.get(variable) else ""
    click.echo(f"{variable} is kept in the system's keyring{first}", err=True)
    return 0


def remove_key(name: str, **given: Any) -> int:
    variable = _variable(name, given["config"])
    forget(variable, os.environ)
    click.echo(f"{variable} was removed from the system's keyring", err=True)
    return 0


def _variable(name: str, config: str | None) -> str:
    """The variable itself, or that of a provider. What is neither may be a key, so it is not repeated."""
    providers = load_settings(Path.cwd(), os.environ, config=Path(config) if config else None).providers
    if name in providers and providers[name].api_key_env:
        return providers[name].api_key_env
    if not VARIABLE.fullmatch(name):
        raise UsageError(
            "that is neither a variable such as ANTHROPIC_API_KEY nor a provider with a key, so nothing was done; "
            "a key is never given on the command line, where others can see it: council keys set NAME asks for it"
        )
    return name


def _read(variable: str) -> str:
    key = getpass(f"{variable}: ") if sys.stdin.isatty() else sys.stdin.read(100_000)
    if not key.strip() or len(key.split()) > 1:
        raise UsageError(
            f"one key is wanted on standard input and none that could be one came, so nothing was kept: council keys set {variable} < FILE"
        )
    return key.strip()
