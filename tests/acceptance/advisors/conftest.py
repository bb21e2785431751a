"""Fixtures of the advisors tests."""

from __future__ import annotations

import pytest

from tests.acceptance.advisors.fake_advisors import Advice, take_seats
from tests.acceptance.helpers import Table


@pytest.fixture
def cast(table: Table) -> Advice:
    return take_seats(table)
