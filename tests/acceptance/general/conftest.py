"""Fixtures of the general protocol tests."""

from __future__ import annotations

import pytest

from tests.acceptance.general.fake_general import FakeGeneral
from tests.acceptance.helpers import Terminal, Workspace


@pytest.fixture
def general(workspace: Workspace, council: Terminal) -> FakeGeneral:
    return FakeGeneral(workspace, council)
