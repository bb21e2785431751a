"""Spending of many runs, summed by day, by member and by run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from council.money import dollars
from council.types import Json, Usage


def summed(rows: Sequence[Json], since: str, today: str, day_cap: float | None) -> Json:
    """Return the `council.spend/1` object."""
    return {
        "schema": "council.spend/1",
        "since": since,
        "total": _group(rows),
        "days": _groups(rows, "day"),
        "members": sorted(_groups(rows, "member"), key=lambda group: -(group["usd"] or 0.0)),
        "runs": _groups(rows, "run"),
        "unpriced": sorted({row["member"] for row in rows if row["reserved"] is None}),
        "today": _today([row for row in rows if row["day"] == today], today, day_cap),
    }


def _groups(rows: Iterable[Json], by: str) -> list[Json]:
    found: dict[str, list[Json]] = defaultdict(list)
    for row in rows:
        found[row[by]].append(row)
    names = {row["run"]: row["name"] for row in rows} if by == "run" else {}
    return [{by: key, **({"name": names[key]} if names else {}), **_group(group)} for key, group in found.items()]


def _group(rows: Sequence[Json]) -> Json:
    """Sum the rows. `usd` includes `estimated` and `in_doubt`, but no unpriced request; it is None if all are unpriced."""
    usage = sum((Usage.from_json(row["usage"]) for row in rows if row["usage"]), Usage())
    unknown = sum(row["reserved"] is None for row in rows)
    return {
        "usd": None if rows and unknown == len(rows) else _sum(rows),
        "estimated": _sum(row for row in rows if row["estimated"] or row["charged"] is None),
        "in_doubt": _sum(row for row in rows if not row["answered"]),
        "calls": len(rows),
        "unpriced": unknown,
        "tokens": usage.as_json(),
    }


def _sum(rows: Iterable[Json]) -> float:
    counted = (row["reserved"] if row["charged"] is None else row["charged"] for row in rows)
    return dollars(sum(amount or 0 for amount in counted))


def _today(rows: Sequence[Json], day: str, cap: float | None) -> Json:
    usd = _sum(rows)
    return {"day": day, "usd": usd, "cap": cap, "left": None if cap is None else max(0.0, round(cap - usd, 9))}
