"""The table of the acceptance tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.acceptance.helpers import Table, Terminal
from tests.fake_provider import FakeProvider


@pytest.fixture
def table(provider: FakeProvider) -> Table:
    """Alpha, beta, gamma and the chair, each on its own model of one fake endpoint, in the folder of the test."""
    return Table(Path.cwd(), provider)


@pytest.fixture
def council(capsys: pytest.CaptureFixture[str]) -> Terminal:
    """`council("runs", "--json")` in this process."""
    return Terminal(capsys.readouterr)
