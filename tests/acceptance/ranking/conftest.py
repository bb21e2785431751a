"""Fixtures of the ranking tests."""

from __future__ import annotations

import pytest

from tests.acceptance.helpers import Table
from tests.acceptance.ranking.fake_readers import Readers, take_seats


@pytest.fixture
def cast(table: Table) -> Readers:
    return take_seats(table)
