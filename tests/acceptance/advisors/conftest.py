"""Fixtures of the advisors tests."""

from __future__ import annotations

import pytest

from tests.acceptance.advisors.fake_advisors import FakeAdvisors, take_seats
from tests.acceptance.helpers import Workspace


@pytest.fixture
def answers(workspace: Workspace) -> FakeAdvisors:
    return take_seats(workspace)
