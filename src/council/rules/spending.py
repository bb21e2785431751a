"""Spending of many runs, summed by day, by member and by run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from council.money import nanos_to_usd
from council.types import Json, Usage


def summarize_spending(rows: Sequence[Json], since: str, today: str, day_cap: float | None) -> Json:
    """Return the `council.spend/1` object."""
    return {
        "schema": "council.spend/1",
        "since": since,
        "total": _summarize_group(rows),
        "days": _group_rows(rows, "day"),
        "members": sorted(_group_rows(rows, "member"), key=lambda group: -(group["usd"] or 0.0)),
        "runs": _group_rows(rows, "run"),
        "unpriced": sorted({row["member"] for row in rows if row["reserved"] is None}),
        "today": _summarize_day([row for row in rows if row["day"] == today], today, day_cap),
    }


def _group_rows(rows: Iterable[Json], by: str) -> list[Json]:
    found: dict[str, list[Json]] = defaultdict(list)
    for row in rows:
        found[row[by]].append(row)
    names = {row["run"]: row["name"] for row in rows} if by == "run" else {}
    return [
        {by: key, **({"name": names[key]} if names else {}), **_summarize_group(group)} for key, group in found.items()
    ]


def _summarize_group(rows: Sequence[Json]) -> Json:
    """Sum the rows. `usd` includes `estimated` and `in_doubt`, but no unpriced request; it is None if all are unpriced."""
    usage = sum((Usage.from_json(row["usage"]) for row in rows if row["usage"]), Usage())
    unknown = sum(row["reserved"] is None for row in rows)
    return {
        "usd": None if rows and unknown == len(rows) else _sum_usd(rows),
        "estimated": _sum_usd(row for row in rows if row["estimated"] or row["charged"] is None),
        "in_doubt": _sum_usd(row for row in rows if not row["answered"]),
        "calls": len(rows),
        "unpriced": unknown,
        "tokens": usage.as_json(),
    }


def _sum_usd(rows: Iterable[Json]) -> float:
    counted = (row["reserved"] if row["charged"] is None else row["charged"] for row in rows)
    return nanos_to_usd(sum(amount or 0 for amount in counted))


def _summarize_day(rows: Sequence[Json], day: str, cap: float | None) -> Json:
    usd = _sum_usd(rows)
    return {"day": day, "usd": usd, "cap": cap, "left": None if cap is None else max(0.0, round(cap - usd, 9))}
