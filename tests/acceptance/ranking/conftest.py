"""Fixtures of the ranking tests."""

from __future__ import annotations

import pytest

from tests.acceptance.helpers import Workspace
from tests.acceptance.ranking.fake_readers import Readers, take_seats


@pytest.fixture
def answers(workspace: Workspace) -> Readers:
    return take_seats(workspace)
