"""The README, followed by a script: from a clone, with one key and a fake endpoint, to a rendered answer."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import sysconfig
import termios
from pathlib import Path

import pytest

from make_terminal import Screen
from tests.fake_provider import FakeProvider, Reply, Seen
from tests.paths import ROOT

FENCE = re.compile(r"^```(?:sh|bash)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
QUESTION = re.compile(r"(\[[^\]\n]*\]:?|[?:]) $")
COLUMNS = 100
ANSWER = "## Recommendation\n\nMove the **cold half** of the archive.\n\n- It is cheap.\n- It is slow.\n"


def quick_start(readme: str) -> list[str]:
    """Return the command lines of the section Quick start, in order."""
    section = readme.partition("\n## Quick start\n")[2].partition("\n## ")[0]
    return [line for block in FENCE.findall(section) for line in block.splitlines()]


@pytest.fixture
def home(tmp_path: Path, provider: FakeProvider) -> Path:
    """A new user: a home folder with nothing but the address of the fake endpoint."""
    folder = tmp_path / "home"
    folder.mkdir()
    # The checkout may belong to another user.
    (folder / ".gitconfig").write_text("[safe]\ndirectory = *\n", encoding="utf-8")
    (folder / "endpoint.toml").write_text(
        f'[providers.anthropic]\nbase_url = "{provider.base("anthropic")}"\n', encoding="utf-8"
    )
    return folder


def make_environment(place: Path, home: Path) -> dict[str, str]:
    """Make a fresh virtual environment that sees the installed dependencies. pip installs into it and downloads
    nothing.
    """
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(place)], check=True)
    (packages,) = place.glob("lib/python3*/site-packages")
    (packages / "installed.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    folders = [str(place / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]]
    return {
        "PATH": os.pathsep.join(folders), "HOME": str(home), "TERM": "xterm-256color", "LANG": "C.UTF-8", "ANTHROPIC_API_KEY": "fake-key", "COUNCIL_CONFIG": str(home / "endpoint.toml"),
        "PIP_PYTHON": str(place / "bin" / "python"), "PIP_NO_DEPS": "1", "PIP_NO_INDEX": "1",
        "PIP_QUIET": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1", "GIT_CONFIG_NOSYSTEM": "1",
    }  # fmt: skip


def run_in_terminal(script: str, folder: Path, env: dict[str, str]) -> tuple[int, Screen]:
    """Run a shell script with all streams at a terminal of 40 lines and 100 columns; say yes, or press Enter, at
    every question.
    """
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, COLUMNS, 0, 0))
    process = subprocess.Popen(
        ["bash", "-c", script], cwd=folder, env=env, stdin=slave, stdout=slave, stderr=slave,
        start_new_session=True,
    )  # fmt: skip
    os.close(slave)
    screen, asked = "", 0
    while True:
        try:
            piece = os.read(master, 65536)
        except OSError:  # the terminal is closed
            break
        if not piece:
            break
        screen += piece.decode(errors="replace")
        if found := QUESTION.search(screen, asked):
            asked = len(screen)
            os.write(master, b"y\n" if found[0].startswith("[y/") else b"\n")
    os.close(master)
    shown = Screen(COLUMNS)
    shown.feed(screen)
    return process.wait(60), shown


@pytest.mark.behaviour("13-docs-readme")
def test_the_readme_leads_from_a_clone_to_a_rendered_answer(tmp_path: Path, home: Path, provider: FakeProvider) -> None:
    pytest.importorskip("editables", reason="pip needs it to install the clone without network")
    if not (ROOT / ".git").exists():
        pytest.skip("this is no git checkout")
    lines = quick_start((ROOT / "README.md").read_text(encoding="utf-8"))
    assert [line.split()[:2] for line in lines][:2] == [["git", "clone"], ["pip", "install"]]
    assert any(line.startswith("export ANTHROPIC_API_KEY=") for line in lines)

    def answer(seen: Seen) -> Reply | None:
        return None if seen.schema else Reply(text=ANSWER)

    provider.answer = answer
    provider.models = ("claude-opus-4-6", "claude-sonnet-4-6", "claude-haiku-4-5")
    script = "".join(f"{{ {line}; }} || exit\n" for line in lines).replace("…", "fake-key")
    script = re.sub(r"git clone \S+", f"git clone --quiet file://{ROOT} council", script)
    script = script.replace("pip install ", "pip install --no-build-isolation ")
    env = make_environment(tmp_path / "venv", home)
    code, screen = run_in_terminal(script, tmp_path, env)
    plain = "\n".join(line.plain for line in screen.lines())
    assert code == 0, plain
    assert "cold half" in plain and "Trust: " in plain
    assert "**" not in plain and "## Recommendation" not in plain, "the answer is not rendered"
    assert {seen.headers.get("x-api-key") for seen in provider.log} == {"fake-key"}
    assert (home / ".config" / "council" / "config.toml").is_file(), "council init wrote no file"
