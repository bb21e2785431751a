"""`council spend`: spending by day, member and run, and the rest of today's budget."""

from __future__ import annotations

import re
import time
from typing import Any

import click

from council.doors.cli.commands import make_command, make_runner
from council.doors.cli.given import print_json
from council.money import format_usd
from council.types import Json

DAY_S = 86400
DEFAULT_SINCE = "30d"


def spend_command() -> click.Command:
    since = click.Option(
        ["--since"],
        default=DEFAULT_SINCE,
        show_default=True,
        metavar="WHEN",
        help="First day: a date such as 2026-11-15, today, 7d or all.",
    )

    def spend(since: str, **params: Any) -> int:
        day = parse_since(since, time.time())

        async def job(convener: Any) -> int:
            spent = await convener.spending(day)
            if params["json"]:
                print_json(spent)
            else:
                click.echo("\n".join(format_spending(spent)))
            return 0

        return int(make_runner(params).with_convener(job))

    return make_command("spend", spend, since)


def parse_since(value: str, now: float) -> str:
    """Parse the value of --since and return the first day, or "" for all."""
    if value == "all":
        return ""
    if value == "today" or re.fullmatch(r"\d{1,4}d", value):
        back = 0 if value == "today" else max(0, int(value[:-1]) - 1)
        return time.strftime("%Y-%m-%d", time.localtime(now - back * DAY_S))
    try:
        return time.strftime("%Y-%m-%d", time.strptime(value, "%Y-%m-%d"))
    except ValueError:
        raise click.UsageError(
            f'--since "{value}" is not a day: use a date such as 2026-11-15, today, 7d or all'
        ) from None


def format_spending(spent: Json) -> list[str]:
    if not spent["total"]["calls"]:
        since = f" since {spent['since']}" if spent["since"] else ""
        return [f"no paid calls{since}", *_format_today(spent["today"])]
    return [
        *_format_table("by day", spent["days"], "day"),
        *_format_table("by member", spent["members"], "member"),
        *_format_table("by run", spent["runs"], "run"),
        _format_total(spent["total"]),
        *([f"unpriced: {', '.join(spent['unpriced'])}"] if spent["unpriced"] else []),
        *_format_today(spent["today"]),
    ]


def _format_table(title: str, groups: list[Json], by: str) -> list[str]:
    width = max(len(group[by]) for group in groups)
    return [title, *(f"  {group[by]:<{width}}  {_format_group(group)}" for group in groups)]


def _format_group(group: Json) -> str:
    """Format a line such as `  $0.29  12 calls  41,203 in, 8,120 out  council-20261115-tabs`."""
    calls = f"{group['calls']:,} {'call' if group['calls'] == 1 else 'calls'}"
    unpriced = f" ({group['unpriced']} unpriced)" if group["unpriced"] else ""
    tokens = f"{group['tokens']['in']:,} in, {group['tokens']['out']:,} out"
    return "  ".join(
        [f"{_format_usd(group):>7}", calls + unpriced, tokens, *([group["name"]] if group.get("name") else [])]
    )


def _format_usd(group: Json) -> str:
    return "unknown" if group["unpriced"] == group["calls"] else format_usd(group["usd"])


def _format_total(total: Json) -> str:
    parts = [
        *([f"{format_usd(total['estimated'])} of it estimated"] if total["estimated"] else []),
        *([f"{format_usd(total['in_doubt'])} in doubt"] if total["in_doubt"] else []),
        *([f"{total['unpriced']:,} unpriced calls"] if total["unpriced"] else []),
    ]
    return ", ".join([f"total {_format_usd(total)}", *parts])


def _format_today(today: Json) -> list[str]:
    if today["cap"] is None:
        return []
    return [f"today {format_usd(today['usd'])} of {format_usd(today['cap'])}, {format_usd(today['left'])} left"]
