"""The page /docs: the description of the HTTP API for people."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.doors.web.page.browser import Browser
from tests.doors.web.server import WebServer
from tests.doors.web.test_schema import OPERATIONS


@pytest.mark.behaviour("50-web-docs", "50-web-code")
def test_the_description_lists_and_explains_every_operation(server: WebServer, look: Callable[..., Browser]) -> None:
    seen = look(viewport={"width": 390, "height": 800}, color_scheme="dark")
    seen.page.goto(f"http://{server.host}/#code={server.server.guard.codes.create()}")
    seen.page.wait_for_selector("main > *")
    assert "code" not in seen.page.url
    seen.page.goto(f"http://{server.host}/docs")
    seen.page.wait_for_selector(".operation")
    assert seen.page.locator(".operation").count() == len(OPERATIONS)
    seen.page.fill("input[type=search]", "fork")
    assert seen.page.locator(".operation:visible .path").all_inner_texts() == ["/api/runs/{run}/fork"]
    seen.page.click("#fork_run > summary")
    inside = seen.text("#fork_run .inside")
    assert "First phase to run again." in inside
    assert "409" in inside
    assert "Idempotency-Key" in inside
    assert seen.page.evaluate("document.documentElement.scrollWidth") <= 390
    assert (seen.external_requests(server.host), seen.errors) == ([], [])
    seen.page.evaluate("sessionStorage.clear()")
    seen.page.reload()
    assert "token" in seen.page.wait_for_selector("[role=alert]").inner_text()
