"""Error pages in HTML: their visible text is the message."""

from __future__ import annotations

import pytest

from council.members.wires.error_responses import parse_error_body

HIDDEN = "<head><title>502</title></head><STYLE>p { color: red }</STYLE><script>track('x');</script>"


@pytest.mark.parametrize(
    "page",
    [
        f"<html>{HIDDEN}<h1>Bad gateway</h1></html>",
        f"<h1>Bad gateway</h1>{HIDDEN}",
        f"<h1>Bad{HIDDEN}gateway</h1>",
        "<h1>Bad</h1><script>if ('<style>') { track('x') }</script>gateway",
    ],
)
def test_scripts_and_styles_of_an_error_page_are_not_in_its_message(page: str) -> None:
    error = parse_error_body(page.encode())
    assert error.is_html
    assert error.message.split() == ["Bad", "gateway"]


def test_an_element_of_an_error_page_that_is_never_closed_hides_nothing() -> None:
    assert parse_error_body(b"<script><h1>Bad gateway</h1>").message.split() == ["Bad", "gateway"]
