"""What was given to a command, checked, and how an object is given back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click


def seats_from(given: tuple[str, ...]) -> dict[str, str]:
    seats = {}
    for seat in given:
        name, equals, member = seat.partition("=")
        if not (name and equals and member):
            raise click.UsageError(f'--seat takes NAME=MEMBER, as in --seat alpha=openai:gpt-5.2, not "{seat}"')
        seats[name.strip()] = member.strip()
    return seats


def print_json(value: Any) -> None:
    click.echo(json.dumps(value, ensure_ascii=False, indent=2))


def writable(path: str | None) -> Path | None:
    """Where the answer goes; found out before anything is spent whether it can go there."""
    if path is None:
        return None
    target = Path(path)
    try:
        with target.open("a", encoding="utf-8"):
            pass
    except OSError as error:
        raise click.UsageError(
            f'cannot write to "{path}" ({error.strerror}), nothing was spent: name another file with -o'
        ) from error
    return target
