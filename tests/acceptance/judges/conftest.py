"""Fixtures of the judges' acceptance tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.acceptance.judges.fake_judges import JudgesWorkspace
from tests.acceptance.judges.project import FILES
from tests.fake_provider import FakeProvider
from tests.packet.conftest import begin


@pytest.fixture
def project() -> Path:
    """A repository in the test folder, with the files named in the example lines."""
    root = Path.cwd()
    begin(root, FILES, "begin")
    return root


@pytest.fixture
def judges(project: Path, provider: FakeProvider, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> JudgesWorkspace:
    monkeypatch.setenv("COUNCIL_CONFIG", str(tmp_path / "council.toml"))  # restored after the test
    return JudgesWorkspace(project, provider, tmp_path / "council.toml")
