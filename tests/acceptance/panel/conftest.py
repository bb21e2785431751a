"""Fixtures of the panel tests."""

from __future__ import annotations

import pytest

from tests.acceptance.helpers import Workspace
from tests.acceptance.panel.fake_clerk import PanelAnswers, take_seats


@pytest.fixture
def answers(workspace: Workspace) -> PanelAnswers:
    return take_seats(workspace)
