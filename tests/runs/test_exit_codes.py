"""Exit codes."""

from __future__ import annotations

import pytest

from council.runs.outcome import exit_code

AUTH, QUOTA, SERVER = "failed(auth)", "failed(quota)", "failed(server)"


@pytest.mark.behaviour("00-exit-codes")
@pytest.mark.parametrize(
    ("status", "stopped", "absences", "code"),
    [
        ("complete", "", [], 0),
        ("complete", "", [SERVER, AUTH], 0),  # absences do not matter
        ("incomplete", "chair", [SERVER], 3),
        ("incomplete", "chair", [AUTH], 3),
        ("incomplete", "quorum", [SERVER], 3),
        ("incomplete", "", [], 3),  # only one draft
        ("failed", "quorum", [SERVER] * 3, 1),
        ("failed", "quorum", [AUTH, QUOTA, AUTH], 4),
        ("failed", "quorum", [AUTH, SERVER, AUTH], 1),
        ("failed", "quorum", [], 1),
        ("incomplete", "budget", [], 5),
        ("failed", "budget", [], 5),
        ("incomplete", "interrupted", [AUTH], 130),
        ("failed", "interrupted", [AUTH], 130),
    ],
)
def test_each_ending_has_its_code(status: str, stopped: str, absences: list[str], code: int) -> None:
    assert exit_code(status, stopped, absences) == code
