"""The command line with an output that the parent process has closed."""

from __future__ import annotations

import sys

import pytest

from council.doors.cli import main


@pytest.mark.parametrize("name", ["stdout", "stderr"])
@pytest.mark.parametrize(
    ("line", "code"), [(["runs"], 0), (["list"], 0), (["report", "--format", "github"], 2), (["models", "-q"], 0)]
)
def test_a_closed_output_is_no_error(name: str, line: list[str], code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, name, None)
    with pytest.raises(SystemExit) as ended:
        main(line)
    assert ended.value.code == code
