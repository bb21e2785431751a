"""Servers of a small project with scripted seats: one per test, or one per module for tests that only read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.doors.web.server import SCRIPTED, WebServer, environment


def write_project(place: Path) -> Path:
    """Make a small project with public and private files."""
    folder = place / "project"
    for name, text in {
        "council.toml": SCRIPTED, "notes.md": "Cold storage is cheap.\n", "src/core.py": "def core():\n    return 1\n",
        ".env": "TOKEN=1\n", "secret.pem": "-\n", ".agents/council/old.md": "-\n",
    }.items():  # fmt: skip
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


@pytest.fixture
def site(tmp_path: Path) -> Iterator[WebServer]:
    served = WebServer(write_project(tmp_path), environment(tmp_path))
    yield served
    served.close()


@pytest.fixture(scope="module")
def shared_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebServer]:
    """Server for tests that only read."""
    place = tmp_path_factory.mktemp("shared")
    served = WebServer(write_project(place), environment(place))
    yield served
    served.close()
