"""Fixtures with a real browser and a real server. Without Chromium the tests are skipped."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.doors.web.conftest import write_project
from tests.doors.web.page.browser import Browser
from tests.doors.web.server import WebServer, environment

NAMES = (
    "chromium-headless-shell",
    "chromium",
    "chromium-browser",
    "google-chrome",
    "chrome",
)  # the first is the fastest


@contextmanager
def launch_browser() -> Iterator[Any]:
    """Run Chromium. Its driver has an event loop in this thread, so no other may run until it is closed."""
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="playwright is not installed: pip install -e '.[dev]'"
    )
    path = next((found for name in NAMES if (found := shutil.which(name))), None)
    if path is None:
        pytest.skip("no Chromium on PATH: on Debian, apt-get install chromium-headless-shell")
    with playwright.sync_playwright() as driver:
        flags = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = driver.chromium.launch(executable_path=path, args=flags)
        yield browser
        browser.close()


@pytest.fixture(scope="package")
def chromium() -> Iterator[Any]:
    """Browser of the tests in this folder. Their event loops run in other threads."""
    with launch_browser() as browser:
        yield browser


@pytest.fixture
def look(chromium: Any) -> Iterator[Callable[..., Browser]]:
    """Open pages in separate contexts, and record their requests and errors."""
    opened: list[Browser] = []

    def open_(**options: Any) -> Browser:
        opened.append(
            Browser(
                chromium.new_context(
                    **{"viewport": {"width": 1400, "height": 900}, "reduced_motion": "reduce", **options}
                )
            )
        )
        return opened[-1]

    yield open_
    for one in opened:
        one.context.close()


@pytest.fixture
def server(chromium: Any, tmp_path: Path) -> Iterator[WebServer]:
    """Server of one test, closed in another thread because the browser driver has a loop in this one."""
    served = WebServer(write_project(tmp_path), environment(tmp_path))
    yield served
    run_in_thread(served.close)


@pytest.fixture(scope="module")
def module_page(chromium: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """One open page for tests that only call JavaScript modules."""
    place = tmp_path_factory.mktemp("module_page")
    served = WebServer(write_project(place), environment(place))
    page = chromium.new_page()
    page.goto(served.url)
    yield page
    page.close()
    run_in_thread(served.close)


def run_in_thread(work: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Run a function that needs an event loop in another thread."""
    results: list[Any] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            results.append(work(*args, **kwargs))
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if failed:
        raise failed[0]
    return results[0]
