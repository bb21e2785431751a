"""Real repositories for the packet tests."""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

Files = dict[str, str]


def git(root: Path, *args: str) -> str:
    """Run git in the repository without user configuration, sample hooks and maintenance."""
    env = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "PATH": os.environ["PATH"], "HOME": str(root)}
    env["GIT_TEMPLATE_DIR"] = ""
    who = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "commit.gpgsign=false", "-c", "gc.auto=0"]
    who += ["-c", "maintenance.auto=false"]
    done = subprocess.run(["git", *who, *args], cwd=root, env=env, capture_output=True, text=True, check=True)
    return done.stdout


def write(root: Path, files: Files) -> None:
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content, encoding="utf-8")


def commit(root: Path, files: Files, message: str = "change") -> None:
    write(root, files)
    git(root, "add", "-A")
    git(root, "commit", "-q", "--allow-empty", "-m", message)


def begin(root: Path, files: Files, message: str = "change") -> None:
    """Make the folder a repository with one commit. The same commit is made once and then copied."""
    shutil.copytree(_first_commit(tuple(files.items()), message), root, dirs_exist_ok=True)


@cache
def _first_commit(files: tuple[tuple[str, str], ...], message: str) -> Path:
    place = Path(tempfile.mkdtemp(prefix="repository-"))
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    git(place, "init", "-q", "-b", "main")
    commit(place, dict(files), message)
    return place


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a folder outside any repository."""
    place = tmp_path / "project"
    place.mkdir()
    return place


@pytest.fixture
def repo(root: Path) -> Path:
    """Return a repository with one commit."""
    begin(
        root,
        {"README.md": "# Project\n", "src/auth/jwt.py": "def check():\n    return True\n", "src/app.py": "x = 1\n"},
    )
    return root


@pytest.fixture
def history(repo: Path) -> Callable[[int], Path]:
    """Return a function that adds commits to the repository, each with a new file."""

    def add_commits(commits: int) -> Path:
        for n in range(commits):
            commit(repo, {f"src/step{n}.py": f"step = {n}\n"})
        return repo

    return add_commits
