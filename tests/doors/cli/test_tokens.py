"""`council tokens`: access of several users to one server."""

from __future__ import annotations

import json
import time

import pytest

from council.doors.cli import run


def out(capsys: pytest.CaptureFixture[str], *line: str) -> tuple[int, str, str]:
    code = run(["serve", "tokens", *line])
    shown = capsys.readouterr()
    return code, shown.out, shown.err


def test_a_token_is_printed_once_listed_and_revoked(capsys: pytest.CaptureFixture[str]) -> None:
    assert out(capsys) == (0, "no tokens: create one with `council serve tokens add NAME`\n", "")
    code, token, note = out(capsys, "add", "ann", "--max-cost", "2.5")
    assert (code, note) == (0, "council: give this token to the user; it is not shown again\n")
    assert len(token.strip()) > 20
    assert out(capsys, "add", "ben", "--scope", "chat")[0] == 0
    day = time.strftime("%Y-%m-%d")
    assert [line.split() for line in out(capsys, "list")[1].splitlines()] == [
        ["name", "scope", "per", "day", "created", "state"],
        ["ann", "runs", "$2.50", day, "active"],
        ["ben", "chat", "no", "limit", day, "active"],
    ]
    assert out(capsys, "revoke", "ann") == (0, "", 'council: revoked the token of "ann"; the runs are kept\n')
    assert out(capsys, "list")[1].splitlines()[1].split()[-1] == "revoked"


def test_with_json_nothing_else_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    code, printed, note = out(capsys, "add", "ann", "--max-cost", "2.5", "--json")
    added = json.loads(printed)
    assert (code, note, added.pop("token") != "") == (0, "", True)
    assert added == {"name": "ann", "scope": "runs", "max_cost_per_day": 2.5}
    (row,) = json.loads(out(capsys, "list", "--json")[1])
    assert (row["name"], row["scope"], row["max_cost_per_day"], row["revoked"]) == ("ann", "runs", 2.5, None)
    assert row["created"] == pytest.approx(time.time(), abs=60)
    assert json.loads(out(capsys, "revoke", "ann", "--json")[1]) == {"name": "ann", "revoked": True}
    assert json.loads(out(capsys, "--json")[1])[0]["revoked"] is not None
