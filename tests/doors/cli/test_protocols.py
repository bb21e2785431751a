"""`council list protocols`: purpose, seats, calls, price and an example of each protocol."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from council.doors.cli import run
from council.protocols import SHIPPED_PROTOCOLS, get_protocol
from tests.packet.conftest import begin

PRICED = '[models]\ndefault = "openai:gpt-5.2"\n'


@pytest.mark.behaviour("00-protocols-listed")
def test_every_protocol_is_listed_with_purpose_calls_price_and_example(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    Path("council.toml").write_text(PRICED)
    assert run(["list", "protocols", "--json"]) == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert set(SHIPPED_PROTOCOLS) <= set(rows)
    assert run(["list", "protocols"]) == 0
    shown = capsys.readouterr().out
    for name in SHIPPED_PROTOCOLS:
        row = rows[name]
        assert row["purpose"] and row["summary"]
        assert row["example"] in shown
        assert row["note"] or row["cost"]["expected"] > 0
    assert rows["collaborative"]["calls"] == {"min": 7, "max": 7}
    assert rows["refine"]["calls"] == {"min": 6, "max": 16}
    assert rows["solo"]["calls"] == {"min": 2, "max": 5}
    assert rows["adaptive"]["calls"]["max"] == 7
    assert list(rows["adaptive"]["options"]["properties"]) == ["cheap_first"]  # without what the plan fills in
    assert [phase["name"] for phase in rows["refine"]["phases"]] == [
        "draft", "attack", "rewrite", "synthesise", "check", "fix",
    ]  # fmt: skip
    assert "3 seats, 7 calls, about $0." in shown


@pytest.mark.behaviour("00-protocols-listed")
@pytest.mark.parametrize("name", SHIPPED_PROTOCOLS)
def test_the_example_of_a_protocol_chooses_it(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TAVILY_API_KEY", "k")  # a protocol that searches is refused without a search provider
    begin(Path.cwd(), {"a.py": "x = 1\n"}, "begin")
    program, *arguments = shlex.split(get_protocol(name).example)
    assert program == "council"
    Path("council.toml").write_text('[models]\ndefault = "scripted:"\n')
    assert run(["--dry-run", "--json", *arguments]) == 0, capsys.readouterr().err
    assert json.loads(capsys.readouterr().out)["protocol"] == name
