"""A real browser in front of a real server. Without one these tests are skipped, and say so."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.doors.web.conftest import make_project
from tests.doors.web.page.looking import Looking
from tests.doors.web.site import Site, environment

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """A browser for one module. Its driver keeps a loop running in this thread, so it may not outlive the module: other
    tests have loops of their own."""
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="playwright is not installed: pip install -e '.[dev]'"
    )
    path = next((found for name in NAMES if (found := shutil.which(name))), None)
    if path is None:
        pytest.skip("no Chromium on PATH: on Debian, apt-get install chromium")
    with playwright.sync_playwright() as driver:
        unboxed = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = driver.chromium.launch(executable_path=path, args=unboxed)
        yield browser
        browser.close()


@pytest.fixture
def look(chromium: Any) -> Iterator[Callable[..., Looking]]:
    """Opens pages, each in a context of its own; whatever a page asks for or complains about is written down."""
    opened: list[Looking] = []

    def open_(**how: Any) -> Looking:
        opened.append(Looking(chromium.new_context(**{"viewport": {"width": 1400, "height": 900}, **how})))
        return opened[-1]

    yield open_
    for one in opened:
        one.context.close()


@pytest.fixture
def server(chromium: Any, tmp_path: Path) -> Iterator[Site]:
    """A server of its own. The browser's driver keeps a loop in this thread, so the server is closed in another."""
    served = Site(make_project(tmp_path), environment(tmp_path))
    yield served
    aside(served.close)


@pytest.fixture(scope="module")
def gallery(chromium: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A server whose page is only looked at."""
    place = tmp_path_factory.mktemp("gallery")
    served = Site(make_project(place), environment(place))
    yield served
    aside(served.close)


def aside(work: Callable[..., Any], *given: Any, **named: Any) -> Any:
    """What uses a loop of its own, in a thread of its own."""
    told: list[Any] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            told.append(work(*given, **named))
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if failed:
        raise failed[0]
    return told[0]
