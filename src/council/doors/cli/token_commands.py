"""The command tokens: access of several users to one server."""

from __future__ import annotations

import time
from functools import partial
from typing import Any, TypedDict

import click

from council.doors.cli.params import print_result
from council.doors.cli.runner import CONFIG_OPTION, JSON_OPTION, make_command, make_group, with_convener
from council.doors.cli.tables import format_table
from council.money import format_usd, nanos_to_usd
from council.runs.service import Convener
from council.runs.tokens import DEFAULT_SCOPE, SCOPES, Scope, add_token, revoke_token
from council.store.interface import TokenRow

HEAD = ("name", "scope", "per day", "created", "state")
NAME_ARGUMENT = click.Argument(["name"], metavar="NAME")
SCOPE_OPTION = click.Option(
    ["--scope"],
    type=click.Choice(tuple(SCOPES)),
    default=DEFAULT_SCOPE,
    help=f"What the token allows. {'; '.join(f'{scope}: {about}' for scope, about in SCOPES.items())}. Default: {DEFAULT_SCOPE}.",
)
MAX_COST = "Cost limit of all runs of the user, per day."
MAX_COST_OPTION = click.Option(["--max-cost"], type=click.FloatRange(min=0), metavar="DOLLARS", help=MAX_COST)


def tokens_command() -> click.Group:
    add = (NAME_ARGUMENT, SCOPE_OPTION, MAX_COST_OPTION)
    commands = (
        make_command("add", add_user, *add, help="Create a token for a user and print it once."),
        make_command("list", list_users, help="List the tokens, without their values."),
        make_command("revoke", revoke_user, NAME_ARGUMENT, help="Revoke the token of a user; open event streams end."),
    )
    return make_group("tokens", list_users, JSON_OPTION, CONFIG_OPTION, commands=commands)


@with_convener
async def add_user(
    convener: Convener, name: str, scope: Scope, max_cost: float | None, json: bool, **params: Any
) -> int:
    token = await add_token(convener.store, name, scope, max_cost)
    print_result(json, {"name": name, "scope": scope, "max_cost_per_day": max_cost, "token": token}, [token])
    if not json:
        click.echo("council: give this token to the user; it is not shown again", err=True)
    return 0


@with_convener
async def list_users(convener: Convener, json: bool, **params: Any) -> int:
    rows = await convener.store.list_tokens()
    none = ["no tokens: create one with `council serve tokens add NAME`"]
    lines = format_table(HEAD, map(_format, rows)) if rows else none
    return print_result(json, [_describe(row) for row in rows], lines)


@with_convener
async def revoke_user(convener: Convener, name: str, json: bool, **params: Any) -> int:
    await revoke_token(convener.store, name)
    line = f'council: revoked the token of "{name}"; the runs are kept'
    return print_result(json, {"name": name, "revoked": True}, [line], partial(click.echo, err=True))


class TokenObject(TypedDict):
    """A token without its secret part."""

    name: str
    scope: str
    max_cost_per_day: float | None
    created: float
    revoked: float | None


def _describe(row: TokenRow) -> TokenObject:
    cap = None if row.cap is None else nanos_to_usd(row.cap)
    return {
        "name": row.name,
        "scope": row.scope,
        "max_cost_per_day": cap,
        "created": row.created,
        "revoked": row.revoked,
    }


def _format(row: TokenRow) -> tuple[str, ...]:
    cap = "no limit" if row.cap is None else format_usd(nanos_to_usd(row.cap))
    created = time.strftime("%Y-%m-%d", time.localtime(row.created))
    return row.name, row.scope, cap, created, "active" if row.revoked is None else "revoked"
