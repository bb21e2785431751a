"""`council list rosters`: list rosters with seats and origin, and show one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from council.doors.cli import run

BOARD = """
[rosters.board]
about = "Those who sign."
seats = [{name = "cfo", lens = "cash", stance = "Who pays?", style = "dry", model = "scripted:"}, {name = "coo", lens = "people"}]
chair = {model = "scripted:"}
"""


@pytest.fixture(autouse=True)
def _board() -> None:
    Path("council.toml").write_text(BOARD, encoding="utf-8")


def own_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "config" / "council" / "rosters"
    folder.mkdir(parents=True)
    return folder


@pytest.mark.behaviour("00-rosters-command")
def test_every_roster_is_listed_with_its_seats_and_where_it_comes_from(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["list", "rosters"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["advisors", "executives", "generals", "board"]
    assert "pragmatist, visionary, skeptic" in lines[0] and lines[0].endswith("(built-in)")
    assert "cfo, coo" in lines[3] and lines[3].endswith("council.toml)")


@pytest.mark.behaviour("00-rosters-command")
def test_one_roster_is_shown_with_lenses_stances_and_members(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["list", "rosters", "--show", "board"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:-1] == [
        "board: Those who sign.",
        '  cfo (Cfo) [scripted:]: cash · "Who pays?" · dry',
        "  coo (Coo): people",
        "  chair: scripted:",
    ]
    assert lines[-1].startswith("from ") and lines[-1].endswith("council.toml")


@pytest.mark.behaviour("00-rosters-command")
def test_json_output_has_all_fields(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["list", "rosters", "--json"]) == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert rows["advisors"]["origin"] == "built-in" and rows["advisors"]["about"]
    assert rows["board"]["seats"][0] == {
        "name": "cfo", "role": "Cfo", "lens": "cash", "stance": "Who pays?", "style": "dry", "model": "scripted:",
        "fallback": None,
    }  # fmt: skip
    assert run(["list", "rosters", "--show", "board", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == rows["board"]


@pytest.mark.behaviour("00-rosters-command")
def test_a_roster_file_can_be_shown(capsys: pytest.CaptureFixture[str]) -> None:
    Path("mine.toml").write_text('[[seats]]\nname = "solo"\n')
    assert run(["list", "rosters", "--show", "mine.toml"]) == 0
    assert "solo (Solo)" in capsys.readouterr().out


@pytest.mark.behaviour("00-rosters-command")
def test_a_broken_roster_does_not_hide_the_others(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = own_folder(tmp_path) / "broken.toml"
    path.write_text("seats = [")
    assert run(["list", "rosters"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 5
    (broken,) = (line for line in lines if line.startswith("broken"))
    assert "is not valid TOML" in broken and str(path) in broken
    assert run(["list", "rosters", "--show", "broken"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("name", ["boards", "nope.toml", "."])
def test_a_missing_roster_is_a_one_line_error(capsys: pytest.CaptureFixture[str], name: str) -> None:
    assert run(["list", "rosters", "--show", name]) == 2
    captured = capsys.readouterr()
    assert (captured.out, captured.err.count("\n")) == ("", 1)
    assert "known are advisors, executives, generals, board" in captured.err
