"""A served folder whose seats are scripted; one for each test, or one for all the tests of a module that only look."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.doors.web.server import SCRIPTED, WebServer, environment


def write_project(place: Path) -> Path:
    """A small project with what may be shown and what may not."""
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
def server(tmp_path: Path) -> Iterator[WebServer]:
    served = WebServer(write_project(tmp_path), environment(tmp_path))
    yield served
    served.close()


@pytest.fixture(scope="module")
def shared_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebServer]:
    """A server that is only looked at."""
    place = tmp_path_factory.mktemp("past")
    served = WebServer(write_project(place), environment(place))
    yield served
    served.close()
