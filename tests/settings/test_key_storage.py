"""Keys in the system keyring: stored, used if the environment has none, never shown."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from council.doors.cli import run
from council.runs.doctor import list_warnings
from council.runs.service import Convener
from council.settings import key_storage
from council.settings.config_files import config_folder
from tests.settings.memory_keyring import Ring, use_ring

keyring = pytest.importorskip("keyring", reason="the extra keys is not installed: pip install 'model-council[keys]'")
KEY = "-".join(["sk", "ant", "kept", "0123456789abcdef"])


@pytest.fixture
def ring() -> Iterator[Ring]:
    with use_ring() as ring:
        yield ring


def piped(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))


@pytest.mark.behaviour("issue-5-keys")
@pytest.mark.parametrize("name", ["ANTHROPIC_API_KEY", "anthropic"])
def test_stored_key_is_used_if_the_environment_has_none(name: str, ring: Ring, monkeypatch: pytest.MonkeyPatch) -> None:
    piped(monkeypatch, f"{KEY}\n")
    assert run(["keys", "set", name]) == 0
    assert Convener().env["ANTHROPIC_API_KEY"] == KEY
    monkeypatch.setenv("ANTHROPIC_API_KEY", "from-the-environment")
    assert Convener().env["ANTHROPIC_API_KEY"] == "from-the-environment"


@pytest.mark.behaviour("issue-5-keys", "40-security-keys")
def test_key_is_neither_printed_nor_written_to_a_file(
    ring: Ring, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    piped(monkeypatch, KEY)
    assert run(["keys", "set", "OPENAI_API_KEY"]) == 0
    for command in (["keys"], ["keys", "list"], ["keys", "list", "--json"], ["config"], ["models"]):
        assert run(command) == 0
    shown = capsys.readouterr()
    assert "OPENAI_API_KEY" in shown.out
    assert KEY not in shown.out + shown.err
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert files
    assert not [path for path in files if KEY in path.read_text(errors="replace")]


@pytest.mark.behaviour("issue-5-keys")
def test_removed_key_is_gone(ring: Ring, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    piped(monkeypatch, KEY)
    run(["keys", "set", "OPENAI_API_KEY"])
    assert run(["keys", "rm", "OPENAI_API_KEY"]) == 0
    assert ring.held == {}
    assert "OPENAI_API_KEY" not in Convener().env
    assert run(["keys", "rm", "OPENAI_API_KEY"]) == 2
    assert 'no key is stored for "OPENAI_API_KEY"' in capsys.readouterr().err


@pytest.mark.behaviour("40-security-keys")
def test_a_key_on_the_command_line_is_refused_and_not_repeated(ring: Ring, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["keys", "set", KEY]) == 2
    told = capsys.readouterr().err
    assert "never on the command line" in told
    assert KEY not in told


@pytest.mark.parametrize("text", ["", "\n", "two words", "one\nanother\n"])
def test_invalid_key_is_not_stored(
    text: str, ring: Ring, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    piped(monkeypatch, text)
    assert run(["keys", "set", "OPENAI_API_KEY"]) == 2
    assert "nothing was stored" in capsys.readouterr().err
    assert ring.held == {}


@pytest.mark.behaviour("issue-5-keys-none")
def test_missing_system_keyring_is_reported(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = keyring.get_keyring()
    keyring.set_keyring(keyring.backends.fail.Keyring())
    piped(monkeypatch, KEY)
    try:
        assert run(["keys", "set", "OPENAI_API_KEY"]) == 2
    finally:
        keyring.set_keyring(before)
    assert "this system has no usable keyring" in capsys.readouterr().err


@pytest.mark.behaviour("issue-5-keys-none")
def test_missing_extra_is_named_in_the_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "keyring", None)  # simulate a missing package
    piped(monkeypatch, KEY)
    assert run(["keys", "set", "OPENAI_API_KEY"]) == 2
    assert "pip install 'model-council[keys]'" in capsys.readouterr().err
    assert run(["keys"]) == 0


def test_locked_keyring_is_ignored_and_reported_by_the_doctor(
    ring: Ring, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    piped(monkeypatch, KEY)
    run(["keys", "set", "SIM_API_KEY"])
    ring.locked = True
    convener = Convener()
    assert "SIM_API_KEY" not in convener.env
    assert list_warnings(convener) == [
        "SIM_API_KEY is stored in the system's keyring, which does not return it: unlock the keyring, or set SIM_API_KEY"
    ]
    piped(monkeypatch, KEY)
    assert run(["keys", "set", "SIM_API_KEY", "--json"]) == 2
    told = json.loads(capsys.readouterr().out)["error"]
    assert "unlock it" in told
    assert KEY not in told


# A command that prints keys


@pytest.fixture
def key_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A command that has one key, and writes a line to a log for each use."""
    script, user = tmp_path / "bin" / "print-key", config_folder(os.environ)
    script.parent.mkdir()
    script.write_text(
        f'#!/bin/sh\necho "$@" >> "{tmp_path}/asked"\n[ "$2" = ANTHROPIC_API_KEY ] && echo {KEY} || exit 1\n'
    )
    script.chmod(0o755)
    user.mkdir(parents=True, exist_ok=True, mode=0o700)
    (user / "config.toml").write_text(f"[keys]\ncommand = \"'{script}' --vault\"\n")
    return script


@pytest.mark.behaviour("16-keys-command", "40-security-keys")
def test_a_command_prints_the_keys_that_the_environment_does_not_have(
    key_command: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    env = Convener().env
    assert not (tmp_path / "asked").exists()  # a command that needs no key does not run it
    assert (env.get("ANTHROPIC_API_KEY"), env.get("OPENAI_API_KEY", "")) == (KEY, "")
    assert "ANTHROPIC_API_KEY" not in dict(env)  # what is sent to other processes
    asked = (tmp_path / "asked").read_text().splitlines()
    assert "--vault ANTHROPIC_API_KEY" in asked
    assert len(asked) == len(set(asked))
    monkeypatch.setenv("ANTHROPIC_API_KEY", "from-the-environment")
    assert Convener().env.get("ANTHROPIC_API_KEY") == "from-the-environment"
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    for command in (["models"], ["config"], ["--dry-run", "--json", "Should the archive move?"]):
        run(command)
    shown = capsys.readouterr()
    assert "anthropic" in shown.out
    assert KEY not in shown.out + shown.err
    kept = [path for path in tmp_path.rglob("*") if path.is_file() and path != key_command]
    assert not [path for path in kept if KEY in path.read_text(errors="replace")]


@pytest.mark.behaviour("16-keys-command")
@pytest.mark.parametrize(
    ("script", "problem"),
    [
        ("#!/bin/sh\nexec sleep 60", "printed no key for ANTHROPIC_API_KEY within 0.2 s"),
        (f"#!/bin/sh\necho {KEY}; echo {KEY}", "printed no valid key for ANTHROPIC_API_KEY"),
        ("#!/no/such/program", "cannot be started (No such file or directory)"),
        ("", "was not found: write its path"),
    ],
)
def test_a_failing_command_is_one_line_without_its_output(
    key_command: Path, script: str, problem: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(key_storage, "COMMAND_TIMEOUT_S", 0.2)
    monkeypatch.setattr(key_storage, "_printed", {})
    key_command.write_text(script)
    if not script:
        key_command.unlink()
    assert run(["-m", "anthropic:claude-opus-4.6", "Should the archive move?"]) == 2
    shown = capsys.readouterr().err.strip().splitlines()
    assert len(shown) == 1
    assert "[keys]" in shown[0]
    assert problem in shown[0]
    assert KEY not in shown[0]


@pytest.mark.behaviour("16-keys-command")
def test_the_file_of_a_project_cannot_name_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("council.toml").write_text('[keys]\ncommand = "/bin/echo"\n')
    assert run(["--dry-run", "--trust", "Should the archive move?"]) == 2
    assert '"keys.command" is not allowed in the file of a project' in capsys.readouterr().err


@pytest.mark.parametrize(("code", "key"), [(0, KEY), (1, ""), (2, "")])
def test_what_a_command_prints_counts_only_if_it_succeeds(tmp_path: Path, code: int, key: str) -> None:
    command = tmp_path / "keys"
    command.write_text(f"#!/bin/sh\necho {KEY}\nexit {code}\n")
    command.chmod(0o700)
    assert key_storage.read_keys(str(command), ["A_KEY"], {}) == {"A_KEY": key}


def test_a_key_that_a_command_did_not_have_is_asked_for_again_after_a_while() -> None:
    ages = (0.0, key_storage.RETRY_S, key_storage.RETRY_S + 1)
    assert [key_storage._is_current(("", 0.0), now) for now in ages] == [True, False, False]
    assert [key_storage._is_current((KEY, 0.0), now) for now in ages] == [True, True, True]
    assert not key_storage._is_current(None, 0.0)
