"""`council config`: values as TOML, and the subcommands path, edit and init."""

from __future__ import annotations

import json
import os
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from council.doors.cli.setup_commands import TEMPLATE_FILE
from council.settings.schema import CONFIG_KEYS, validate_table
from tests.acceptance.helpers import Terminal
from tests.trusted_project import trust_project, user_file


@pytest.mark.behaviour("00-config-prints-toml")
@pytest.mark.parametrize("flags", [[], ["--origin"]])
def test_the_settings_are_printed_as_toml(council: Terminal, flags: list[str]) -> None:
    Path("council.toml").write_text(
        '[seats.alpha]\nmodel = "sim:m1"\nfallback = []\n[providers.sim]\nbase_url = "http://127.0.0.1:9/v1"\n[prices."sim:*"]\ninput = 1\n'
        'output = 2.5\n[rosters.board]\nseats = [{name = "cfo", lens = "cash"}, {name = "coo", lens = "people"}]\n'
    )
    trust_project()
    done = council("config", *flags)
    shown = tomllib.loads(done.out)
    assert shown["seats"]["alpha"] == {"model": "sim:m1", "fallback": []}
    assert shown["prices"]["sim:*"] == {"input": 1, "output": 2.5}
    assert shown["rosters"]["board"]["seats"][1]["name"] == "coo"
    assert shown["general"]["deliberate"] is True
    assert shown["budget"]["confirm_above"] == 0.5
    assert ("council.toml" in done.out) is bool(flags)


@pytest.mark.behaviour("00-config-path")
def test_path_shows_the_files_in_force_and_where_the_others_would_be(council: Terminal) -> None:
    rows = {row["what"]: row for row in json.loads(council("config", "path", "--json").out)}
    assert (rows["user"]["path"], rows["user"]["exists"]) == (str(user_file()), False)
    assert rows["project"]["path"] == str(Path.cwd() / "council.toml")
    assert rows["data"]["path"] == os.environ["COUNCIL_DATA"]
    Path("council.toml").write_text("not valid = = toml")
    done = council("config", "path")
    assert re.search(r"project +\S+council\.toml +in force", done.out)
    assert re.search(r"user +\S+config\.toml +not there: `council config init` writes it", done.out)


@pytest.mark.behaviour("13-config-outside-git")
@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a file to another user")
def test_the_plan_and_path_name_a_project_file_of_another_user(council: Terminal) -> None:
    file = Path("council.toml").absolute()
    file.write_text("timeout = 5\n")
    os.chown(file, 12345, -1)
    assert (
        "council.toml  " in (shown := council("config", "path").out) and "ignored: it belongs to another user" in shown
    )
    seats = [word for name in ("alpha", "beta", "gamma", "chair") for word in ("--seat", f"{name}=scripted:")]
    plan = council("--dry-run", "--json", *seats, "Tabs or spaces?").json
    assert any(line.startswith(f"{file} is ignored because") for line in plan["warnings"])


@pytest.mark.behaviour("00-config-init")
def test_init_writes_a_commented_file_once(council: Terminal) -> None:
    assert council("config", "init").code == 0
    assert user_file().stat().st_mode & 0o777 == 0o600
    assert tomllib.loads(user_file().read_text()) == {}
    user_file().write_text("timeout = 5\n")
    again = council("config", "init")
    assert (again.code, "nothing was written" in again.err) == (2, True)
    assert user_file().read_text() == "timeout = 5\n"
    assert council("config", "init", "--project").code == 0
    assert Path("council.toml").is_file()


@pytest.mark.behaviour("00-config-init")
def test_every_setting_of_the_commented_file_is_valid_and_none_is_missing() -> None:
    lines = TEMPLATE_FILE.read_text().splitlines()
    assert not [line for line in lines if line and not line.startswith("#")]
    text = "\n".join(line[1:] for line in lines if re.match(r"#[\w\[]", line))
    keys = [key for key, _ in validate_table(tomllib.loads(text), "the template")]
    missing = [name for name in _all_keys(CONFIG_KEYS) if not any(re.fullmatch(name, key) for key in keys)]
    assert not missing


def _all_keys(keys: Any, prefix: str = "") -> list[str]:
    """Return patterns of all keys; of several tables with the same keys, any one counts."""
    found = []
    for key, rule in keys.items():
        name = prefix + ("[^.]+" if key == "*" or prefix == "commands." else key)
        if key == "chair" and prefix:
            continue
        found += _all_keys(rule, name + ".") if isinstance(rule, dict) else [name]
    return found


@pytest.mark.behaviour("00-config-edit")
def test_edit_creates_the_file_opens_the_editor_and_checks_the_result(
    council: Terminal, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    editor = tmp_path / "an editor"
    editor.write_text('#!/bin/sh\nprintf "%s\\n" "$LINE" >> "$1"\n')
    editor.chmod(0o755)
    monkeypatch.setenv("VISUAL", f"'{editor}'")
    monkeypatch.setenv("LINE", "timeout = 30")
    done = council("config", "edit")
    assert (done.code, "is valid" in done.err) == (0, True), done.err
    assert user_file().read_text().startswith(TEMPLATE_FILE.read_text())
    assert tomllib.loads(user_file().read_text()) == {"timeout": 30}
    monkeypatch.setenv("LINE", "tiemout = 30")
    done = council("config", "edit")
    assert done.code == 2
    assert 'unknown key "tiemout"' in done.err
    assert done.err.count("\n") == 1
    monkeypatch.setenv("LINE", "# a broken file can be opened again")
    assert council("config", "edit").code == 2


@pytest.mark.behaviour("00-config-edit")
def test_edit_without_an_editor_and_a_terminal_is_refused(council: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.delenv("EDITOR", raising=False)
    done = council("config", "edit")
    assert (done.code, "set EDITOR" in done.err) == (2, True)
    assert not user_file().exists()
