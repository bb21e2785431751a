"""Notification at the end of a run: bell, terminal and desktop."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from council.doors.cli.notification import desktop_command
from tests.acceptance.helpers import QUESTION, Terminal, Workspace
from tests.acceptance.pseudo_terminal import PseudoTerminal

TRIAD = ("--protocol", "triad")


@pytest.fixture
def sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the file with the arguments of each desktop notification. Every notification then fails."""
    log = tmp_path / "notifications"
    command = tmp_path / "bin" / "notify-send"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\necho "$@" >> "{log}"\nexit 1\n', encoding="utf-8")
    command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{command.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("DISPLAY", ":0")
    return log


@pytest.mark.behaviour("50-notify")
def test_a_flag_rings_the_bell_at_a_terminal_and_tells_the_desktop(workspace: Workspace, sent: Path) -> None:
    terminal = PseudoTerminal(workspace.folder, "--notify", *TRIAD, "Is <b>tape</b> cheaper?")
    done = terminal.wait_for_exit()
    assert done.code == 0
    assert done.err.endswith("\x1b]9;Council: complete: Is <b>tape</b> cheaper?\a\a")
    assert sent.read_text() == "--app-name=Council -- Council complete: Is &lt;b&gt;tape&lt;/b&gt; cheaper?\n"


@pytest.mark.behaviour("50-notify")
def test_the_setting_applies_to_every_run_and_to_watch_and_resume(
    workspace: Workspace, council: Terminal, sent: Path
) -> None:
    assert council(*TRIAD, QUESTION).code == 0
    assert not sent.exists()
    (run,) = workspace.runs()
    for arguments in (("watch", run, "--notify"), ("resume", run, "--notify")):
        done = council(*arguments)
        assert (done.code, "\a" in done.err) == (0, False)
    settings = workspace.folder / "council.toml"
    settings.write_text(f"notify = true\n{settings.read_text()}", encoding="utf-8")
    assert council(*TRIAD, QUESTION).code == 0
    assert sent.read_text().count("complete: Should the archive") == 3
    refused = council("--detach", "--notify", *TRIAD, QUESTION)
    assert (refused.code, "use `council watch RUN --notify`" in refused.err) == (2, True)


@pytest.mark.parametrize(
    ("platform", "command", "variables", "parts"),
    [
        ("linux", "notify-send", {"DISPLAY": ":0"}, ["--app-name=Council", "--", "Council", "done &amp; well"]),
        ("linux", "notify-send", {}, None),
        ("linux", "osascript", {"WAYLAND_DISPLAY": "wayland-0"}, None),
        ("darwin", "osascript", {}, ["done & well", "Council"]),
        ("darwin", "notify-send", {}, None),
    ],
)
def test_a_desktop_notification_needs_a_desktop_and_its_command(
    tmp_path: Path, platform: str, command: str, variables: dict[str, str], parts: list[str] | None
) -> None:
    path = tmp_path / command
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    found = list(desktop_command("done & well", {"PATH": str(tmp_path), **variables}, platform))
    assert found == [] if parts is None else (found[0], found[-len(parts) :]) == (str(path), parts)
