"""Fixtures of the tests of the adaptive protocol."""

from __future__ import annotations

import pytest

from tests.acceptance.adaptive.fake_solvers import Solvers, take_seats
from tests.acceptance.helpers import Workspace


@pytest.fixture
def answers(workspace: Workspace) -> Solvers:
    return take_seats(workspace)
