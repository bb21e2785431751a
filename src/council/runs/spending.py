"""Spending of stored runs: sums by day, member, protocol, folder and run, and the rest of today's budget."""

from __future__ import annotations

import re
import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from typing import Literal, TypedDict, TypeVar

from council.errors import UsageError, option
from council.money import ZERO, Price, cache_saving, nanos_to_usd, usd_to_nanos
from council.settings.schema import quote_value
from council.store.interface import HOLD_KEY, Charge, SpentRequest
from council.types import Usage, UsageCounts

DAY_S = 86400


class SpendingSum(TypedDict):
    """Sum of requests. Amounts are in dollars."""

    usd: float | None  # what was spent, with `estimated`; None if all requests are unpriced
    estimated: float
    in_doubt: float  # the most that requests without an answer may have cost; not part of `usd`
    calls: int
    unpriced: int
    tokens: UsageCounts
    cached_saving: float


class RunCounts(TypedDict):
    """Counts of runs, the mean cost of the complete ones, and what stops saved."""

    runs: int
    complete: int
    mean: float | None
    stops: int
    saved: float | None


class SpendingTotal(SpendingSum, RunCounts):
    """Sum of all requests and their runs."""


class DaySpending(SpendingSum):
    """Spending of a day."""

    day: str


class MemberSpending(SpendingSum):
    """Spending of a member."""

    member: str


class ProtocolSpending(SpendingSum, RunCounts):
    """Spending of a protocol; "" for removed runs."""

    protocol: str


class FolderSpending(SpendingSum):
    """Spending of the runs of a folder; "" for removed runs."""

    folder: str


class RunSpending(SpendingSum):
    """Spending of a run."""

    run: str
    name: str | None


class TodaySpending(TypedDict):
    """What counts for the cap of a day, in dollars."""

    day: str
    usd: float  # includes `reserved` and `in_doubt`
    reserved: float
    in_doubt: float
    cap: float | None
    left: float | None


class SpendingObject(TypedDict):
    """The object `council.spend/1`."""

    schema: Literal["council.spend/1"]
    since: str
    total: SpendingTotal
    days: list[DaySpending]
    members: list[MemberSpending]
    protocols: list[ProtocolSpending]
    folders: list[FolderSpending]
    runs: list[RunSpending]
    unpriced: list[str]
    today: TodaySpending


Spending = TypeVar("Spending", bound=SpendingSum)


def parse_since(value: str, now: float) -> str:
    """Parse a date such as 2026-11-15, `today`, `7d` or `all`; return the first day, or "" for all."""
    if value == "all":
        return ""
    if value == "today" or re.fullmatch(r"\d{1,4}d", value):
        back = 0 if value == "today" else max(0, int(value[:-1]) - 1)
        return time.strftime("%Y-%m-%d", time.localtime(now - back * DAY_S))
    try:
        return time.strftime("%Y-%m-%d", time.strptime(value, "%Y-%m-%d"))
    except ValueError:
        raise UsageError(
            f"{option('since')} {quote_value(value)} is not a day: use a date such as 2026-11-15, today, 7d or all"
        ) from None


def summarize_spending(rows: Sequence[SpentRequest], since: str, today: str, day_cap: float | None) -> SpendingObject:
    """Return the `council.spend/1` object. What runs hold for requests still to be sent counts for today only."""
    of_today = [row for row in rows if row["day"] == today]
    rows = [row for row in rows if row["key"] != HOLD_KEY]
    protocols = _group_rows(rows, "protocol")
    return {
        "schema": "council.spend/1",
        "since": since,
        "total": {**_summarize_group(rows), **_summarize_runs(rows)},
        "days": [{"day": day, **_summarize_group(group)} for day, group in _group_rows(rows, "day")],
        "members": _sort_by_cost(
            {"member": one, **_summarize_group(group)} for one, group in _group_rows(rows, "member")
        ),
        "protocols": _sort_by_cost(
            {"protocol": name, **_summarize_runs(group), **_summarize_group(group)} for name, group in protocols
        ),
        "folders": _sort_by_cost(
            {"folder": one, **_summarize_group(group)} for one, group in _group_rows(rows, "folder")
        ),
        "runs": [
            {"run": run, "name": group[0]["name"], **_summarize_group(group)} for run, group in _group_rows(rows, "run")
        ],
        "unpriced": sorted({row["member"] for row in rows if row["reserved"] is None}),
        "today": _summarize_day(of_today, today, day_cap),
    }


def _sort_by_cost(groups: Iterable[Spending]) -> list[Spending]:
    """Return the most expensive groups first."""
    return sorted(groups, key=lambda group: -(group["usd"] or 0.0))


def _group_rows(
    rows: Iterable[SpentRequest], by: Literal["day", "member", "protocol", "folder", "run"]
) -> Collection[tuple[str, list[SpentRequest]]]:
    groups: dict[str, list[SpentRequest]] = defaultdict(list)
    for row in rows:
        groups[row[by] or ""].append(row)
    return groups.items()


def _summarize_runs(rows: Iterable[SpentRequest]) -> RunCounts:
    """Count the runs of the rows. A removed run counts, but its cost and its stops are not known."""
    runs = {row["run"]: row for row in rows}.values()
    costs = [run["cost"] for run in runs if run["status"] == "complete" and run["cost"] is not None]
    stopped = [run for run in runs if run["stops"]]
    saved = [run["saved"] for run in stopped if run["saved"] is not None]
    return {
        "runs": len(runs),
        "complete": sum(run["status"] == "complete" for run in runs),
        "mean": round(sum(costs) / len(costs), 9) if costs else None,
        "stops": sum(run["stops"] or 0 for run in stopped),
        "saved": round(sum(saved), 9) if saved or not stopped else None,
    }


def _summarize_group(rows: Sequence[SpentRequest]) -> SpendingSum:
    usage = sum((Usage.from_json(row["usage"]) for row in rows if row["usage"]), Usage())
    unknown = sum(row["reserved"] is None for row in rows)
    return {
        "usd": None if rows and unknown == len(rows) else _sum_usd(row for row in rows if not _is_in_doubt(row)),
        "estimated": _sum_usd(row for row in rows if row["estimated"] and not _is_in_doubt(row)),
        "in_doubt": _sum_usd(row for row in rows if _is_in_doubt(row)),
        "calls": len(rows),
        "unpriced": unknown,
        "tokens": usage.as_json(),
        "cached_saving": _sum_savings(rows),
    }


def _is_in_doubt(row: SpentRequest) -> bool:
    """Return whether a request has no answer and it is unknown whether it was billed, or it is still open."""
    return row["charged"] is None or row["estimated"] == Charge.IN_DOUBT


def _sum_savings(rows: Iterable[SpentRequest]) -> float:
    """Return the dollars that the vendors' prompt caches saved, from the answers with a known use and price."""
    savings = (
        cache_saving(Usage.from_json(usage), Price.from_json(price))
        for row in rows
        if (usage := row["usage"])
        and (price := row.get("price"))
        and row["charged"] is not None
        and not row["estimated"]
    )
    return nanos_to_usd(usd_to_nanos(sum(savings, ZERO)))


def _sum_usd(rows: Iterable[SpentRequest]) -> float:
    counted = (row["reserved"] if row["charged"] is None else row["charged"] for row in rows)
    return nanos_to_usd(sum(amount or 0 for amount in counted))


def _summarize_day(rows: Sequence[SpentRequest], day: str, cap: float | None) -> TodaySpending:
    """Sum what counts for the cap of a day: `usd` includes `in_doubt`, and `reserved` with what is still to be sent."""
    usd = _sum_usd(rows)
    left = None if cap is None else max(0.0, round(cap - usd, 9))
    reserved = _sum_usd(row for row in rows if row["charged"] is None)
    in_doubt = _sum_usd(row for row in rows if row["charged"] is not None and _is_in_doubt(row))
    return {"day": day, "usd": usd, "reserved": reserved, "in_doubt": in_doubt, "cap": cap, "left": left}
