"""What was given to a command, checked, and how an object is given back."""

from __future__ import annotations

import json
import math
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from council.doors.cli.words import VERBS
from council.errors import UsageError

MOST_PIPED = 4_000_000  # bytes; the packet gate has its own, smaller limits


class OneOf(click.Choice):  # type: ignore[type-arg]  # older releases know no argument
    """One of a few words, in any case; another one is answered as everywhere, with the nearest."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        try:
            return str(super().convert(value, param, ctx))
        except click.BadParameter:
            from council.protocols.options import unknown_choice  # only on the way to an error

            raise UsageError(unknown_choice(str(param.name if param else "word"), str(value), self.choices)) from None


class Whole(click.ParamType):  # type: ignore[type-arg]
    """A whole number; whether it is too small or too large is said by the protocol it is for."""

    name = "integer"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            return int(value)
        except ValueError:
            flag = param.opts[-1] if param else "this flag"
            said = f'{flag} "{value}" cannot be used, nothing was spent: give a whole number, as in {flag} 2'
            raise UsageError(said) from None


@dataclass(frozen=True, slots=True)
class Wish:
    """What somebody asked for on the command line, before it is understood."""

    words: list[str]
    owned: dict[str, Any]  # flags that belong to single protocols
    protocol: str | None
    verbose: bool
    strict: bool
    fail_on: str | None
    material: dict[str, Any]  # what was said about the packet
    continued: str | None = None  # the run that is asked on from


def piped(words: tuple[str, ...]) -> str | None:
    """What came in on standard input, if the words ask for it."""
    said = " ".join(words).split()
    asked = said[1:] if said and said[0].lower() in VERBS else said
    if "-" not in (*words, *asked[:1], *asked[-1:]):
        return None
    if sys.stdin is None or sys.stdin.isatty():
        raise click.UsageError('"-" means standard input, and nothing is piped in: council validate - < FILE')
    return sys.stdin.buffer.read(MOST_PIPED).decode("utf-8", "surrogateescape")  # the gate tells what it is


def seats_from(given: tuple[str, ...]) -> dict[str, str]:
    seats = {}
    for seat in given:
        name, equals, member = seat.partition("=")
        if not (name and equals and member):
            raise click.UsageError(f'--seat takes NAME=MEMBER, as in --seat alpha=openai:gpt-5.2, not "{seat}"')
        seats[name.strip()] = member.strip()
    return seats


def patience(seconds: float | None) -> float | None:
    if seconds is not None and not 0 <= seconds < math.inf:
        raise click.UsageError(f'--grace takes a number of seconds, 0 or more, not "{seconds:g}"')
    return seconds


def print_json(value: Any) -> None:
    click.echo(json.dumps(value, ensure_ascii=False, indent=2))


def writable(path: str | None) -> Path | None:
    """Where the answer goes; found out before anything is spent whether it can go there."""
    if path is None:
        return None
    target = Path(path)
    possible = os.access(target, os.W_OK) if target.exists() else os.access(target.absolute().parent, os.W_OK)
    if target.is_dir() or not possible:
        raise click.UsageError(f'cannot write to "{path}", nothing was spent: name another file with -o')
    return target
