"""Somebody who looks at a page: what they see, and what the page asked for meanwhile."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit


class Browser:
    """One page in a browser context of its own."""

    def __init__(self, context: Any) -> None:
        self.context = context
        self.page = context.new_page()
        self.asked: list[str] = []  # the address of every request
        self.complaints: list[str] = []  # errors of the page, and what its policy refused
        context.on("request", lambda request: self.asked.append(request.url))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("console", lambda said: said.type == "error" and self.complaints.append(said.text))
        self.page.on("dialog", lambda dialog: (self.complaints.append(f"a dialog: {dialog.message}"), dialog.dismiss()))

    def at(self, url: str, where: str = "") -> Browser:
        """Sign in with the printed address, then go to a place of the page."""
        self.page.goto(url)
        self.page.wait_for_selector("main > *")
        if where:
            self.go(where)
        return self

    def go(self, where: str) -> None:
        self.page.evaluate("where => { location.hash = where }", where)
        self.page.wait_for_selector(".run" if "/run/" in where else ".start")

    def run(self, url: str, run: str) -> Browser:
        """At a run that has ended, with its answer or what there is of it."""
        self.at(url, f"/run/{run}")
        self.page.wait_for_selector(".answer:not([hidden])")
        return self

    def text(self, selector: str) -> str:
        return str(self.page.locator(selector).first.inner_text())

    def texts(self, selector: str) -> list[str]:
        return [str(said) for said in self.page.locator(selector).all_inner_texts()]

    def wait(self, expression: str, argument: Any = None, within: float = 60.0) -> None:
        """Until something is true of the page."""
        self.page.wait_for_function(expression, arg=argument, timeout=within * 1000)

    def stands(self, status: str) -> None:
        """Until the head of the run says so."""
        self.wait("status => document.querySelector('.run-head .pill')?.innerText.startsWith(status)", status)

    def strangers(self, host: str) -> list[str]:
        """Requests that left for anywhere but the server."""
        return [
            url for url in self.asked if urlsplit(url).scheme not in ("data", "blob") and urlsplit(url).netloc != host
        ]
