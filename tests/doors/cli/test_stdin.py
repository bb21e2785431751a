"""A `-` among the words reads standard input."""

from __future__ import annotations

import io
import sys

import click
import pytest

from council.doors.cli.params import read_stdin


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    "words", [("-",), ("validate", "-"), ("explain -",), ("- explain",), ("validate", "-", "now"), ("validate - now",), ("ask", "explain this: -")]
)  # fmt: skip
def test_a_dash_at_an_edge_reads_standard_input(words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("caf\xe9".encode("latin-1"))))
    assert read_stdin(words) == "caf\udce9"
    monkeypatch.setattr(sys, "stdin", Terminal())
    with pytest.raises(click.UsageError, match="nothing is piped in"):
        read_stdin(words)


@pytest.mark.parametrize("words", [(), ("validate", "recent"), ("red - or blue?",), ("a-b",), ("--",)])
def test_a_dash_between_words_does_not_read_standard_input(
    words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal())
    assert read_stdin(words) is None
