"""Spending of stored runs: sums by day, member, protocol, folder and run, what stops saved, and the rest of today's budget."""

from __future__ import annotations

import re
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence

from council.errors import UsageError, option
from council.money import ZERO, Price, cache_saving, nanos_to_usd, usd_to_nanos
from council.settings.schema import quote_value
from council.store.interface import HOLD_KEY, Charge
from council.types import Json, Usage

DAY_S = 86400


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


def summarize_spending(rows: Sequence[Json], since: str, today: str, day_cap: float | None) -> Json:
    """Return the `council.spend/1` object. What runs hold for requests that are still to be sent counts for today only."""
    of_today = [row for row in rows if row["day"] == today]
    rows = [row for row in rows if row["key"] != HOLD_KEY]
    return {
        "schema": "council.spend/1",
        "since": since,
        "total": _summarize_group(rows) | _summarize_runs(rows),
        "days": _group_rows(rows, "day"),
        "members": sorted(_group_rows(rows, "member"), key=lambda group: -(group["usd"] or 0.0)),
        "protocols": sorted(_group_rows(rows, "protocol"), key=lambda group: -(group["usd"] or 0.0)),
        "folders": sorted(_group_rows(rows, "folder"), key=lambda group: -(group["usd"] or 0.0)),
        "runs": _group_rows(rows, "run"),
        "unpriced": sorted({row["member"] for row in rows if row["reserved"] is None}),
        "today": _summarize_day(of_today, today, day_cap),
    }


def _group_rows(rows: Iterable[Json], by: str) -> list[Json]:
    groups: dict[str, list[Json]] = defaultdict(list)
    for row in rows:
        groups[row.get(by) or ""].append(row)
    names = {row["run"]: row["name"] for row in rows} if by == "run" else {}
    return [
        {
            by: key,
            **({"name": names[key]} if names else {}),
            **(_summarize_runs(group) if by == "protocol" else {}),
            **_summarize_group(group),
        }
        for key, group in groups.items()
    ]


def _summarize_runs(rows: Iterable[Json]) -> Json:
    """Count the runs of the rows, with the mean cost of complete ones and what stops saved, by the estimates of their plans.

    `mean` and `saved` have no run without a known price; they are None if no run has one. A removed run counts, but its cost
    and its stops are not known.
    """
    runs = {row["run"]: row for row in rows}.values()
    costs = [run["cost"] for run in runs if run["status"] == "complete" and run["cost"] is not None]
    stopped = [run for run in runs if run["stops"]]
    saved = [run["saved"] for run in stopped if run["saved"] is not None]
    return {
        "runs": len(runs),
        "complete": sum(run["status"] == "complete" for run in runs),
        "mean": round(sum(costs) / len(costs), 9) if costs else None,
        "stops": sum(run["stops"] for run in stopped),
        "saved": round(sum(saved), 9) if saved or not stopped else None,
    }


def _summarize_group(rows: Sequence[Json]) -> Json:
    """Sum the rows. `usd` is what was spent, with `estimated`; it is None if all requests are unpriced.

    `in_doubt` is the most that requests without an answer may have cost. It is not part of `usd`.
    """
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


def _is_in_doubt(row: Json) -> bool:
    """Return whether a request has no answer and it is unknown whether it was billed, or it is still open."""
    return row["charged"] is None or row["estimated"] == Charge.IN_DOUBT


def _sum_savings(rows: Iterable[Json]) -> float:
    """Return the dollars that the vendors' prompt caches saved, from the answers with a known use and price."""
    savings = (
        cache_saving(Usage.from_json(row["usage"]), Price.from_json(row["price"]))
        for row in rows
        if row["usage"] and row.get("price") and row["charged"] is not None and not row["estimated"]
    )
    return nanos_to_usd(usd_to_nanos(sum(savings, ZERO)))


def _sum_usd(rows: Iterable[Json]) -> float:
    counted = (row["reserved"] if row["charged"] is None else row["charged"] for row in rows)
    return nanos_to_usd(sum(amount or 0 for amount in counted))


def _summarize_day(rows: Sequence[Json], day: str, cap: float | None) -> Json:
    """Sum what counts for the cap of a day: `usd` includes `reserved`, open requests and those still to be sent, and `in_doubt`."""
    usd = _sum_usd(rows)
    left = None if cap is None else max(0.0, round(cap - usd, 9))
    reserved = _sum_usd(row for row in rows if row["charged"] is None)
    in_doubt = _sum_usd(row for row in rows if row["charged"] is not None and _is_in_doubt(row))
    return {"day": day, "usd": usd, "reserved": reserved, "in_doubt": in_doubt, "cap": cap, "left": left}
