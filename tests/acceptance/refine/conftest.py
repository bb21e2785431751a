"""Fixtures of the refine tests."""

from __future__ import annotations

import pytest

from tests.acceptance.helpers import Workspace
from tests.acceptance.refine.fake_authors import Authors, take_seats


@pytest.fixture
def answers(workspace: Workspace) -> Authors:
    return take_seats(workspace)
