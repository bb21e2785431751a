"""Fixtures: a checkout with a bare origin, and judges at a fake endpoint."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.acceptance.judges.fake_judges import JudgesWorkspace
from tests.acceptance.judges.project import FILES
from tests.ci.runner import Runner
from tests.fake_provider import FakeProvider
from tests.packet.conftest import begin, commit, git


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """On the branch `feature`, one commit ahead of origin/main."""
    root = Path.cwd()
    begin(root, FILES, "begin")
    git(root, "init", "-q", "--bare", "-b", "main", str(tmp_path / "origin.git"))
    git(root, "remote", "add", "origin", str(tmp_path / "origin.git"))
    git(root, "push", "-q", "origin", "main")
    git(root, "switch", "-q", "-c", "feature")
    commit(root, {"src/auth/jwt.py": "def check(token, key):\n    return True\n"}, "simplify the check")
    return root


@pytest.fixture
def judges(checkout: Path, provider: FakeProvider, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> JudgesWorkspace:
    monkeypatch.setenv("COUNCIL_CONFIG", str(tmp_path / "council.toml"))  # restored after the test
    return JudgesWorkspace(checkout, provider, tmp_path / "council.toml")


@pytest.fixture
def runner(checkout: Path, tmp_path: Path) -> Runner:
    """A pull request from the repository itself."""
    temp = tmp_path / "runner"
    temp.mkdir()
    head = {"pull_request": {"head": {"repo": {"full_name": "shop/shop"}}}}
    return Runner(checkout, temp, base_ref="main", event=head)
