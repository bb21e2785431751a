"""Page object for the browser tests, with the requests and errors of the page."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

POLL_MS = 30  # between two evaluations of a condition; the default is every frame, which slows the page itself down


class Browser:
    """One page in a separate browser context."""

    def __init__(self, context: Any) -> None:
        self.context = context
        self.page = context.new_page()
        self.asked: list[str] = []  # URL of every request
        self.errors: list[str] = []  # page errors and policy violations
        context.on("request", lambda request: self.asked.append(request.url))
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("console", self._on_console)
        self.page.on("dialog", self._on_dialog)

    def _on_console(self, message: Any) -> None:
        if message.type == "error":
            self.errors.append(message.text)

    def _on_dialog(self, dialog: Any) -> None:
        self.errors.append(f"a dialog: {dialog.message}")
        dialog.dismiss()

    def at(self, url: str, where: str = "") -> Browser:
        """Sign in with the printed URL, then go to a route."""
        self.page.goto(url)
        self.page.wait_for_selector("main > *")
        if where:
            self.go(where)
        return self

    def go(self, where: str) -> None:
        self.page.evaluate("where => { location.hash = where }", where)
        self.page.wait_for_selector(".run" if "/run/" in where else ".start")

    def run(self, url: str, run: str) -> Browser:
        """Open a finished run and wait for its answer."""
        self.at(url, f"/run/{run}")
        self.page.wait_for_selector(".answer:not([hidden])")
        return self

    def choose_protocol(self, name: str) -> None:
        """Choose a protocol in the menu of the composer."""
        self.page.click(".menu-button")
        self.page.click(f".protocol:has(#protocol-{name})")
        self.page.wait_for_selector(".protocol-menu", state="hidden")

    def open_options(self) -> None:
        """Open the options of the composer."""
        self.page.evaluate("() => { document.querySelector('.composer-options').open = true }")

    def text(self, selector: str) -> str:
        return str(self.page.locator(selector).first.inner_text())

    def texts(self, selector: str) -> list[str]:
        return [str(text) for text in self.page.locator(selector).all_inner_texts()]

    def wait(self, expression: str, argument: Any = None, within: float = 60.0) -> None:
        """Wait until an expression is true."""
        self.page.wait_for_function(expression, arg=argument, timeout=within * 1000, polling=POLL_MS)

    def wait_for_status(self, status: str) -> None:
        """Wait until the header shows a status."""
        self.wait("status => document.querySelector('.run-head .pill')?.innerText.startsWith(status)", status)

    def external_requests(self, host: str) -> list[str]:
        """Return the requests to other hosts."""
        return [
            url for url in self.asked if urlsplit(url).scheme not in ("data", "blob") and urlsplit(url).netloc != host
        ]
