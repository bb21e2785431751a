"""`council spend`: spending by day, member and run, and the rest of today's budget."""

from __future__ import annotations

import re
import time
from typing import Any

import click

from council.doors.cli.commands import command, drive_from
from council.doors.cli.given import print_json
from council.money import shown
from council.types import Json

DAY = 86400
USUAL = "30d"


def spend_command() -> click.Command:
    since = click.Option(
        ["--since"],
        default=USUAL,
        show_default=True,
        metavar="WHEN",
        help="First day: a date such as 2026-11-15, today, 7d or all.",
    )

    def spend(since: str, **params: Any) -> int:
        day = first_day(since, time.time())

        async def job(convener: Any) -> int:
            spent = await convener.spending(day)
            if params["json"]:
                print_json(spent)
            else:
                click.echo("\n".join(lines(spent)))
            return 0

        return int(drive_from(params).with_convener(job))

    return command("spend", spend, since)


def first_day(value: str, now: float) -> str:
    """Parse the value of --since and return the first day, or "" for all."""
    if value == "all":
        return ""
    if value == "today" or re.fullmatch(r"\d{1,4}d", value):
        back = 0 if value == "today" else max(0, int(value[:-1]) - 1)
        return time.strftime("%Y-%m-%d", time.localtime(now - back * DAY))
    try:
        return time.strftime("%Y-%m-%d", time.strptime(value, "%Y-%m-%d"))
    except ValueError:
        raise click.UsageError(
            f'--since "{value}" is not a day: use a date such as 2026-11-15, today, 7d or all'
        ) from None


def lines(spent: Json) -> list[str]:
    if not spent["total"]["calls"]:
        since = f" since {spent['since']}" if spent["since"] else ""
        return [f"no paid calls{since}", *_today(spent["today"])]
    return [
        *_table("by day", spent["days"], "day"),
        *_table("by member", spent["members"], "member"),
        *_table("by run", spent["runs"], "run"),
        _total(spent["total"]),
        *([f"unpriced: {', '.join(spent['unpriced'])}"] if spent["unpriced"] else []),
        *_today(spent["today"]),
    ]


def _table(title: str, groups: list[Json], by: str) -> list[str]:
    width = max(len(group[by]) for group in groups)
    return [title, *(f"  {group[by]:<{width}}  {_group(group)}" for group in groups)]


def _group(group: Json) -> str:
    """Format a line such as `  $0.29  12 calls  41,203 in, 8,120 out  council-20261115-tabs`."""
    calls = f"{group['calls']:,} {'call' if group['calls'] == 1 else 'calls'}"
    unpriced = f" ({group['unpriced']} unpriced)" if group["unpriced"] else ""
    tokens = f"{group['tokens']['in']:,} in, {group['tokens']['out']:,} out"
    return "  ".join([f"{_usd(group):>7}", calls + unpriced, tokens, *([group["name"]] if group.get("name") else [])])


def _usd(group: Json) -> str:
    return "unknown" if group["unpriced"] == group["calls"] else shown(group["usd"])


def _total(total: Json) -> str:
    parts = [
        *([f"{shown(total['estimated'])} of it estimated"] if total["estimated"] else []),
        *([f"{shown(total['in_doubt'])} in doubt"] if total["in_doubt"] else []),
        *([f"{total['unpriced']:,} unpriced calls"] if total["unpriced"] else []),
    ]
    return ", ".join([f"total {_usd(total)}", *parts])


def _today(today: Json) -> list[str]:
    if today["cap"] is None:
        return []
    return [f"today {shown(today['usd'])} of {shown(today['cap'])}, {shown(today['left'])} left"]
