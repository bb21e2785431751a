"""Summary of spending rows."""

from __future__ import annotations

from typing import Any

from council.runs.history import summarize_spending

CENT = 10_000_000  # billionths of a dollar


def row(run: str, member: str = "sim:m1", day: str = "2026-11-15", **more: Any) -> dict[str, Any]:
    usual = {
        "run": run,
        "name": f"council-{run}",
        "key": "draft/alpha",
        "n": 1,
        "member": member,
        "at": 1.0,
        "day": day,
    }
    money = {
        "reserved": 5 * CENT,
        "charged": CENT,
        "estimated": 0,
        "answered": 1,
        "usage": {"in": 10, "out": 5, "cached": 2},
    }
    return usual | money | more


ROWS = [
    row("r1", day="2026-11-14"),
    row("r1", charged=2 * CENT, estimated=1),
    row("r2", member="sim:m2", charged=None, answered=0, usage=None),
    row("r2", member="odd:m9", reserved=None, charged=None),
]


def by(groups: list[dict[str, Any]], name: str) -> dict[str, Any]:
    return {group[name]: (group["usd"], group["calls"], group["unpriced"]) for group in groups}


def test_spending_is_summed_by_day_member_and_run() -> None:
    spent = summarize_spending(ROWS, "2026-11-01", "2026-11-15", None)
    assert by(spent["days"], "day") == {"2026-11-14": (0.01, 1, 0), "2026-11-15": (0.07, 3, 1)}
    assert by(spent["members"], "member") == {"sim:m2": (0.05, 1, 0), "sim:m1": (0.03, 2, 0), "odd:m9": (None, 1, 1)}
    assert by(spent["runs"], "run") == {"r1": (0.03, 2, 0), "r2": (0.05, 2, 1)}
    assert [group["name"] for group in spent["runs"]] == ["council-r1", "council-r2"]


def test_estimated_and_in_doubt_spending_are_separate() -> None:
    total = summarize_spending(ROWS, "", "2026-11-15", None)["total"]
    assert (total["usd"], total["estimated"], total["in_doubt"], total["unpriced"]) == (0.08, 0.07, 0.05, 1)
    assert total["tokens"] == {"in": 30, "out": 15, "cached": 6}


def test_the_rest_of_the_daily_cap_is_never_negative() -> None:
    assert summarize_spending(ROWS, "", "2026-11-15", 0.10)["today"] == {
        "day": "2026-11-15",
        "usd": 0.07,
        "cap": 0.1,
        "left": 0.03,
    }
    assert summarize_spending(ROWS, "", "2026-11-15", 0.05)["today"]["left"] == 0.0
    assert summarize_spending(ROWS, "", "2026-11-16", None)["today"] == {
        "day": "2026-11-16",
        "usd": 0.0,
        "cap": None,
        "left": None,
    }


def test_unpriced_spending_is_unknown_and_not_zero() -> None:
    spent = summarize_spending([ROWS[-1]], "", "2026-11-15", None)
    assert [group["usd"] for group in (spent["total"], *spent["days"], *spent["runs"])] == [None, None, None]
    assert summarize_spending([], "", "2026-11-15", None)["total"]["usd"] == 0.0


def test_unpriced_members_are_listed() -> None:
    assert summarize_spending(ROWS, "", "2026-11-15", None)["unpriced"] == ["odd:m9"]
