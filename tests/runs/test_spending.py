"""Summary of spending rows."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from council.doors.cli.report_commands import format_spending
from council.errors import UsageError
from council.runs.spending import DAY_S, parse_since, summarize_spending

CENT = 10_000_000  # billionths of a dollar


def row(run: str, member: str = "sim:m1", day: str = "2026-11-15", **more: Any) -> Any:
    usual = {
        "run": run,
        "name": f"council-{run}",
        "key": "draft/alpha",
        "n": 1,
        "member": member,
        "at": 1.0,
        "day": day,
        "folder": f"/srv/{run}",
        "protocol": "triad",
        "status": "complete",
        "cost": 0.03,
        "stops": None,
        "saved": None,
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


def by(groups: Sequence[Mapping[str, Any]], name: str) -> dict[str, Any]:
    return {group[name]: (group["usd"], group["calls"], group["unpriced"]) for group in groups}


def test_spending_is_summed_by_day_member_and_run() -> None:
    spent = summarize_spending(ROWS, "2026-11-01", "2026-11-15", None)
    assert by(spent["days"], "day") == {"2026-11-14": (0.01, 1, 0), "2026-11-15": (0.02, 3, 1)}
    assert by(spent["members"], "member") == {"sim:m1": (0.03, 2, 0), "sim:m2": (0.0, 1, 0), "odd:m9": (None, 1, 1)}
    assert by(spent["folders"], "folder") == {"/srv/r1": (0.03, 2, 0), "/srv/r2": (0.0, 2, 1)}
    assert by(spent["runs"], "run") == {"r1": (0.03, 2, 0), "r2": (0.0, 2, 1)}
    assert [group["name"] for group in spent["runs"]] == ["council-r1", "council-r2"]


@pytest.mark.behaviour("40-in-doubt-apart")
def test_what_is_in_doubt_is_not_part_of_what_was_spent() -> None:
    total = summarize_spending(ROWS, "", "2026-11-15", None)["total"]
    assert (total["usd"], total["estimated"], total["in_doubt"], total["unpriced"]) == (0.03, 0.02, 0.05, 1)
    doubtful = row("r3", charged=3 * CENT, estimated=2, answered=0, usage=None)
    total = summarize_spending([*ROWS, doubtful], "", "2026-11-15", None)["total"]
    assert (total["usd"], total["estimated"], total["in_doubt"]) == (0.03, 0.02, 0.08)
    today = summarize_spending([*ROWS, doubtful], "", "2026-11-15", 1.0)["today"]
    assert (today["usd"], today["in_doubt"], today["left"]) == (0.10, 0.03, 0.90)  # the cap counts it
    total = summarize_spending(ROWS, "", "2026-11-15", None)["total"]
    assert total["tokens"] == {"in": 30, "out": 15, "cached": 6}


def test_the_rest_of_the_daily_cap_is_never_negative() -> None:
    assert summarize_spending(ROWS, "", "2026-11-15", 0.10)["today"] == {
        "day": "2026-11-15",
        "usd": 0.07,
        "reserved": 0.05,
        "in_doubt": 0.0,
        "cap": 0.1,
        "left": 0.03,
    }
    assert summarize_spending(ROWS, "", "2026-11-15", 0.05)["today"]["left"] == 0.0
    assert summarize_spending(ROWS, "", "2026-11-16", None)["today"] == {
        "day": "2026-11-16",
        "usd": 0.0,
        "reserved": 0.0,
        "in_doubt": 0.0,
        "cap": None,
        "left": None,
    }


@pytest.mark.behaviour("40-cap-finishes-or-refuses")
def test_what_a_run_holds_for_later_requests_counts_for_the_day_only() -> None:
    held = row("r9", key="", n=0, member="", reserved=4 * CENT, charged=None, usage=None)
    spent = summarize_spending([*ROWS, held], "", "2026-11-15", 0.20)
    assert (spent["total"]["calls"], spent["total"]["in_doubt"]) == (4, 0.05)
    assert (spent["today"]["reserved"], spent["today"]["left"]) == (0.09, 0.09)


def test_unpriced_spending_is_unknown_and_not_zero() -> None:
    spent = summarize_spending([ROWS[-1]], "", "2026-11-15", None)
    assert [group["usd"] for group in (spent["total"], *spent["days"], *spent["runs"])] == [None, None, None]
    assert summarize_spending([], "", "2026-11-15", None)["total"]["usd"] == 0.0


def test_unpriced_members_are_listed() -> None:
    assert summarize_spending(ROWS, "", "2026-11-15", None)["unpriced"] == ["odd:m9"]


# Protocols and what stops saved


def removed(run: str, **more: Any) -> Any:
    """Return the row of a run that was removed: only its spending is left."""
    gone: dict[str, Any] = dict.fromkeys(("name", "folder", "protocol", "status", "cost", "stops", "saved"))
    return row(run, **gone) | more


@pytest.mark.behaviour("money-spend-protocols")
def test_runs_are_summed_by_protocol_with_the_mean_of_complete_ones_and_what_stops_saved() -> None:
    rows = [
        row("a1", protocol="adversarial", cost=0.30, stops=1, saved=0.09),
        row("a1", protocol="adversarial", cost=0.30, stops=1, saved=0.09),
        row("a2", protocol="adversarial", cost=0.10, stops=2, saved=0.05),
        row("a3", protocol="adversarial", cost=0.02, status="incomplete"),
        row("t1", charged=4 * CENT, protocol="gone-protocol", cost=0.04),
    ]
    spent = summarize_spending(rows, "", "2026-11-15", None)
    found: dict[str, Mapping[str, Any]] = {group["protocol"]: group for group in spent["protocols"]}
    total: Mapping[str, Any] = spent["total"]
    assert list(found) == ["adversarial", "gone-protocol"]
    counts = ("runs", "complete", "mean", "stops", "saved", "calls", "usd")
    assert [found["adversarial"][name] for name in counts] == [3, 2, 0.2, 3, 0.14, 4, 0.04]
    assert [found["gone-protocol"][name] for name in counts] == [1, 1, 0.04, 0, 0.0, 1, 0.04]
    assert [total[name] for name in counts] == [4, 3, pytest.approx(0.44 / 3), 3, 0.14, 5, 0.08]


@pytest.mark.behaviour("money-spend-protocols")
def test_a_saving_without_a_price_is_unknown_and_a_removed_run_has_no_protocol() -> None:
    unknown: dict[str, Any] = {"reserved": None, "charged": None, "cost": None}
    rows = [row("u1", protocol="refine", stops=1, saved=None, **unknown), removed("r9")]
    spent = summarize_spending(rows, "", "2026-11-15", None)
    found = {group["protocol"]: group for group in spent["protocols"]}
    assert (found["refine"]["stops"], found["refine"]["saved"], found["refine"]["mean"]) == (1, None, None)
    assert [found[""][name] for name in ("runs", "complete", "mean", "stops", "saved")] == [1, 0, None, 0, 0.0]
    known = summarize_spending([*rows, row("k1", stops=1, saved=0.02)], "", "2026-11-15", None)
    assert known["total"]["saved"] == 0.02, "stops without a price are left out, as in the cost"
    empty = summarize_spending([], "", "2026-11-15", None)
    assert (empty["protocols"], empty["total"]["runs"], empty["total"]["saved"]) == ([], 0, 0.0)


@pytest.mark.behaviour("money-spend-protocols")
def test_the_table_of_protocols_names_what_is_unknown() -> None:
    unknown: dict[str, Any] = {"reserved": None, "charged": None, "cost": None}
    rows = [
        row("a1", protocol="adversarial", cost=0.3, stops=1, saved=0.09),
        row("u1", protocol="refine", stops=1, **unknown),
        row("i1", protocol="solo", status="incomplete", cost=0.01),
        removed("r9"),
    ]
    lines = format_spending(summarize_spending(rows, "", "2026-11-15", None), ("protocol",))
    table = {line.split()[0]: line.split()[1:] for line in lines[1 : lines.index("")]}
    assert table["adversarial"] == ["1", "1", "$0.010", "$0.30", "1", "about", "$0.090"]
    assert table["refine"] == ["1", "1", "unknown", "unknown", "1", "unknown"]
    assert table["solo"] == ["1", "1", "$0.010"]
    assert table["(removed"] == ["runs)", "1", "1", "$0.010"]
    assert "2 stops saved about $0.090, by the estimates of the plans" in lines
    without = format_spending(summarize_spending([removed("r9")], "", "2026-11-15", None))
    assert not [line for line in without if "saved" in line and "stops saved" not in line]


# The text of `council spend`


@pytest.mark.behaviour("13-spend-grouped")
def test_groups_without_a_price_are_one_row_with_their_number() -> None:
    unpriced = [row(f"u{n}", f"odd:m{n}", f"2026-10-{n + 1:02}", reserved=None, charged=None) for n in range(30)]
    lines = format_spending(summarize_spending([*ROWS, *unpriced], "", "2026-11-15", None))
    assert len(lines) < 25
    text = "\n".join(lines)
    assert "30 days without a price" in text
    assert "30 members without a price" in text
    assert "30 folders without a price" in text
    (merged,) = [line.split() for line in lines if line.startswith("30 folders")]
    assert merged[-5:] == ["unknown", "30", "30", "300", "150"]
    assert "unpriced: odd:m0, odd:m1, odd:m10, odd:m11, odd:m12 and 25 more" in lines
    folders = [line.split()[0] for line in lines if line.startswith("/srv/")]
    assert folders == ["/srv/r1", "/srv/r2"], "the most expensive first"


@pytest.mark.behaviour("13-spend-grouped")
def test_one_group_without_a_price_keeps_its_name_and_removed_runs_have_a_row() -> None:
    lines = format_spending(summarize_spending([*ROWS, row("r9", folder=None, name=None)], "", "2026-11-15", None))
    assert any(line.split()[:2] == ["odd:m9", "unknown"] for line in lines)
    assert any(line.startswith("(removed runs)") for line in lines)
    by_run = format_spending(summarize_spending(ROWS, "", "2026-11-15", None), ("run",))
    assert [line.split()[0] for line in by_run[:3]] == ["by", "r1", "r2"]
    assert "by day" not in "\n".join(by_run)


def test_columns_are_aligned() -> None:
    lines = format_spending(summarize_spending(ROWS, "", "2026-11-15", None))
    table = lines[: lines.index("")]
    assert len({len(line) for line in table}) == 1


def test_each_group_has_its_own_labels() -> None:
    spent = summarize_spending(ROWS, "", "2026-11-15", None)
    for group, labels in (
        ("day", {"2026-11-14", "2026-11-15"}),
        ("member", {"sim:m1", "sim:m2", "odd:m9"}),
        ("folder", {"/srv/r1", "/srv/r2"}),
    ):
        lines = format_spending(spent, (group, group))
        table = lines[: lines.index("")]
        assert table[0].split()[:2] == ["by", group]
        assert {line.split()[0] for line in table[1:]} == labels
        assert lines.count(table[0]) == 1, "a group that is named twice is shown once"


def test_groups_with_a_price_add_no_row_without_one() -> None:
    lines = format_spending(summarize_spending(ROWS[:2], "", "2026-11-15", None), ("member",))
    assert len(lines[: lines.index("")]) == 2


def test_numbers_are_aligned_to_the_right() -> None:
    spent = summarize_spending([row("r1"), *(row("r2", member="sim:m2") for _ in range(12))], "", "2026-11-15", None)
    for group, column in (("member", "calls"), ("protocol", "runs")):
        head, *rows = format_spending(spent, (group,))[: 3 if group == "member" else 2]
        end = head.index(column) + len(column)
        assert all(line[end - 1].isdigit() and not line[end : end + 1].strip() for line in rows)


def test_nothing_spent_is_one_line_with_the_rest_of_the_day() -> None:
    assert format_spending(summarize_spending([], "", "2026-11-15", None)) == ["no paid calls"]
    assert format_spending(summarize_spending([], "2026-11-01", "2026-11-15", 2.0)) == [
        "no paid calls since 2026-11-01",
        "today $0.00 of $2.00, $2.00 left",
    ]


@pytest.mark.parametrize(
    ("since", "day"),
    [("all", ""), ("today", "2026-11-15"), ("1d", "2026-11-15"), ("2d", "2026-11-14"), ("0d", "2026-11-15"), ("2026-11-05", "2026-11-05")],
)  # fmt: skip
def test_days_are_counted_back_with_today(since: str, day: str) -> None:
    noon = time.mktime((2026, 11, 15, 12, 0, 0, 0, 0, -1))
    assert parse_since(since, noon) == day
    assert parse_since("8d", noon) == time.strftime("%Y-%m-%d", time.localtime(noon - 7 * DAY_S))


@pytest.mark.parametrize("since", ["yesterday", "2026-13-01", "-1d", "12345d", ""])
def test_another_word_is_no_day(since: str) -> None:
    with pytest.raises(UsageError, match="is not a day"):
        parse_since(since, 0.0)
