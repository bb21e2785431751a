"""What `council init`, `doctor`, `list models` and `cancel` print, as text."""

from __future__ import annotations

from typing import Any

import pytest

from council.doors.cli.info_commands import _format_doctor_rows, _format_roster, _format_seating, format_models
from council.doors.cli.run_commands import _format_cancelled
from council.doors.cli.setup_commands import format_price, format_sources
from council.store.interface import RunState, RunStatus


def make_source(**row: Any) -> Any:
    return {
        "name": "openai",
        "vendor": "openai",
        "found": "OPENAI_API_KEY",
        "state": "works",
        "detail": "",
        "models": 0,
    } | row


@pytest.mark.parametrize(
    ("row", "state"),
    [
        ({"state": "works", "detail": "9 models"}, "works: 9 models"),
        ({"state": "refused"}, "refused"),
        ({"state": "unreachable", "detail": "timeout"}, "unreachable: timeout"),
        ({"state": "untested"}, "not tested"),
        ({"state": "missing", "detail": "set a key"}, "set a key"),
        ({"name": "cli:claude", "state": "works", "detail": "login"}, "found, not tested: login"),
        ({"name": "cli:claude", "state": "refused"}, "refused"),
    ],
)
def test_a_vendor_has_its_state_and_the_detail(row: dict[str, Any], state: str) -> None:
    assert format_sources([make_source(**row)], 100)[1].endswith(f"  {state}")


def test_the_table_of_vendors_has_two_lines_each_at_a_narrow_terminal() -> None:
    rows = [make_source(), make_source(name="google", found="", state="missing", detail="set a key")]
    assert format_sources(rows, 48) == [
        "vendor  key or login    state",
        "openai  OPENAI_API_KEY  works",
        "google  -               set a key",
    ]
    assert format_sources(rows, 47) == ["openai  OPENAI_API_KEY", "  works", "google  set a key"]


def test_a_long_state_continues_below_its_column() -> None:
    _, first, second = format_sources([make_source(state="refused", detail="the key was revoked yesterday")], 50)
    assert first == "openai  OPENAI_API_KEY  refused: the key was"
    assert second == " " * 24 + "revoked yesterday"


def cost(expected: float, worst: float = 1.0) -> Any:
    return {"low": 0.0, "expected": expected, "worst": worst}


@pytest.mark.parametrize(
    ("plan", "cheap", "shown"),
    [
        ({"cost": None, "unpriced": []}, None, "The price of a question is unknown."),
        (
            {"cost": None, "unpriced": ["sim:a", "sim:b"]},
            None,
            'The price of a question is unknown: no price for sim:a, sim:b. Set [prices."sim:a"] to see one.',
        ),
        ({"cost": cost(0.0, 0.0), "unpriced": []}, None, "A question costs nothing: every member is free."),
        ({"cost": cost(0.4), "unpriced": []}, None, "A plain question costs about $0.40 (at most $1.00)."),
        ({"cost": cost(0.4), "unpriced": []}, cost(0.4), "A plain question costs about $0.40 (at most $1.00)."),
        (
            {"cost": cost(0.4), "unpriced": []},
            cost(0.04),
            "A plain question costs about $0.40 (at most $1.00); with --cheap about $0.040.",
        ),
    ],
)
def test_the_price_of_a_question_is_one_line(plan: Any, cheap: Any, shown: str) -> None:
    assert format_price(plan, cheap) == shown


def make_model(**row: Any) -> Any:
    return {
        "member": "sim:a", "vendor": "sim", "context": 128_000, "available": True, "needs": "SIM_KEY", "retired": None, "line": None,
    } | row  # fmt: skip


@pytest.mark.parametrize(
    ("row", "status"),
    [
        ({}, "available"),
        ({"available": False}, "needs SIM_KEY"),
        ({"line": "sim:big"}, "available (sim:big)"),
        (
            {"retired": {"date": "2026-01-31", "successor": "sim:b", "is_over": True}},
            "retired on 2026-01-31, use sim:b",
        ),
        ({"retired": {"date": "2027-01-31", "successor": None, "is_over": False}}, "available, retires on 2027-01-31"),
        ({"retired": {"date": None, "successor": None, "is_over": True}}, "not listed by its vendor"),
    ],
)
def test_a_model_has_its_status(row: dict[str, Any], status: str) -> None:
    assert format_models([make_model(**row)])[1] == f"sim:a   sim        128k  {status}"


def test_models_have_prices_and_records_only_if_they_are_known() -> None:
    price = {"input": "3", "cached": "0.3", "output": "15", "tiers": []}
    rows = [
        make_model(price=price, record={"right": 2, "labelled": 3}, context=2_500_000),
        make_model(price=None, context=None),
        make_model(price=price | {"tiers": [1]}),
        make_model(price={"input": "0", "cached": "0", "output": "0", "tiers": []}, context=1_000_000),
        make_model(price={"input": "0", "cached": "0", "output": "1", "tiers": []}, context=999_999),
    ]
    assert [line.split() for line in format_models(rows)] == [
        ["MEMBER", "VENDOR", "CONTEXT", "IN", "CACHED", "OUT", "RIGHT", "STATUS"],
        ["sim:a", "sim", "2.5M", "$3", "$0.3", "$15", "2", "of", "3", "available"],
        ["sim:a", "sim", "unknown", "available"],
        ["sim:a", "sim", "128k", "$3+", "$0.3+", "$15+", "available"],
        ["sim:a", "sim", "1M", "free", "available"],
        ["sim:a", "sim", "999k", "$0", "$0", "$1", "available"],
    ]


def test_doctor_shows_each_step_and_what_to_do() -> None:
    row: Any = {
        "member": "sim:a",
        "context": 8000,
        "configured": True,
        "installed": True,
        "key": False,
        "answered": None,
        "detail": "no key",
        "next": "set SIM_KEY",
    }
    head, line = _format_doctor_rows([row])
    assert head.split() == ["configured", "installed", "key", "answered", "context"]
    assert line.split() == ["sim:a", "yes", "yes", "no", "-", "8k", "no", "key", "·", "set", "SIM_KEY"]
    assert line.index("no key") > head.index("context")
    assert _format_doctor_rows([row | {"detail": "", "next": ""}])[1].endswith("8k")


def test_doctor_names_the_member_that_answers_instead() -> None:
    seats: Any = [
        {"seat": "alpha", "member": "sim:a", "used": "sim:a"},
        {"seat": "beta", "member": "sim:b", "used": "sim:a"},
        {"seat": "chair", "member": "sim:c", "used": None},
    ]
    assert _format_seating({"protocol": "triad", "seats": seats, "families": 1, "notices": ["one family"]}) == [
        "seats of the next question (triad):",
        "alpha sim:a",
        "beta  sim:a (instead of sim:b, which failed the check above)",
        "chair sim:c (failed the check above, as did its fallbacks)",
        "families: 1",
        "! one family",
    ]
    assert _format_seating({"protocol": None, "seats": [], "families": 0, "notices": []}) == [
        "seats of the next question:",
        "families: 0",
    ]


def test_a_roster_has_its_seats_and_the_parts_that_they_have() -> None:
    seat: Any = {
        "name": "ann",
        "role": "advisor",
        "model": "sim:a",
        "lens": "cost",
        "stance": "spend less",
        "style": "",
    }
    bare: Any = {"name": "ben", "role": "advisor", "model": None, "lens": "speed", "stance": "", "style": "blunt"}
    row: Any = {
        "name": "two",
        "about": "Two seats",
        "seats": [seat, bare],
        "chair": {"model": "sim:c"},
        "origin": "shipped",
    }
    assert _format_roster(row) == [
        "two: Two seats",
        '  ann (advisor) [sim:a]: cost · "spend less"',
        "  ben (advisor): speed · blunt",
        "  chair: sim:c",
        "from shipped",
    ]
    for chair in (None, {"model": None}):
        assert _format_roster(row | {"about": "", "chair": chair, "seats": []}) == ["two", "from shipped"]


@pytest.mark.parametrize(
    ("status", "stopped", "shown"),
    [
        (RunStatus.FAILED, False, "run r2345 has already ended (failed): nothing to cancel"),
        (RunStatus.RUNNING, True, "run r2345 is still stopping: check with `council watch r2345`"),
        (RunStatus.COMPLETE, True, "run r2345 completed before it could be cancelled: use `council report r2345`"),
        (
            RunStatus.INCOMPLETE,
            True,
            "run r2345 is cancelled, its answers are kept: continue it with `council resume r2345`",
        ),
    ],
)
def test_cancel_says_what_became_of_the_run(status: RunStatus, stopped: bool, shown: str) -> None:
    assert _format_cancelled(RunState("r2345", status, is_detached=True, is_owned=True), stopped) == shown
