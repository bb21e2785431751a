"""The command tokens: access of several users to one server."""

from __future__ import annotations

import time
from typing import Any, TypedDict

import click

from council.doors.cli.params import print_json
from council.doors.cli.runner import CONFIG_OPTION, JSON_OPTION, make_command, make_group, make_runner
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
MAX_COST_OPTION = click.Option(
    ["--max-cost"], type=click.FloatRange(min=0), metavar="DOLLARS", help="Cost limit of all runs of the user, per day."
)


def tokens_command() -> click.Group:
    group = make_group("tokens", _tokens_default, JSON_OPTION, CONFIG_OPTION)
    group.add_command(
        make_command(
            "add",
            add_user,
            NAME_ARGUMENT,
            SCOPE_OPTION,
            MAX_COST_OPTION,
            help="Create a token for a user and print it once.",
        )
    )
    group.add_command(make_command("list", list_users, help="List the tokens, without their values."))
    group.add_command(
        make_command("revoke", revoke_user, NAME_ARGUMENT, help="Revoke the token of a user; open event streams end.")
    )
    return group


@click.pass_context
def _tokens_default(context: click.Context, /, **params: Any) -> int | None:
    return list_users(**params) if context.invoked_subcommand is None else None


def add_user(name: str, scope: Scope, max_cost: float | None, json: bool, **params: Any) -> int:
    async def job(convener: Convener) -> int:
        token = await add_token(convener.store, name, scope, max_cost)
        if json:
            print_json({"name": name, "scope": scope, "max_cost_per_day": max_cost, "token": token})
        else:
            click.echo(token)
            click.echo("council: give this token to the user; it is not shown again", err=True)
        return 0

    return make_runner(params).with_convener(job)


def list_users(json: bool, **params: Any) -> int:
    async def job(convener: Convener) -> int:
        rows = await convener.store.list_tokens()
        if json:
            print_json([_describe(row) for row in rows])
        elif rows:
            click.echo("\n".join(format_table(HEAD, map(_format, rows))))
        else:
            click.echo("no tokens: create one with `council serve tokens add NAME`")
        return 0

    return make_runner(params).with_convener(job)


def revoke_user(name: str, json: bool, **params: Any) -> int:
    async def job(convener: Convener) -> int:
        await revoke_token(convener.store, name)
        if json:
            print_json({"name": name, "revoked": True})
        else:
            click.echo(f'council: revoked the token of "{name}"; the runs are kept', err=True)
        return 0

    return make_runner(params).with_convener(job)


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
