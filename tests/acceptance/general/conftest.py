"""Fixtures of the general protocol tests."""

from __future__ import annotations

import pytest

from tests.acceptance.general.fake_general import Parley
from tests.acceptance.helpers import Table, Terminal


@pytest.fixture
def parley(table: Table, council: Terminal) -> Parley:
    return Parley(table, council)
