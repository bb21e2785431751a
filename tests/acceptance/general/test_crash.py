"""The general protocol killed at every event, resumed, and compared with an uninterrupted run."""

from __future__ import annotations

from multiprocessing.context import ForkServerContext

import pytest

from tests.acceptance.general.fake_general import FakeGeneral
from tests.acceptance.general.test_rounds import opposed
from tests.acceptance.test_crash_everywhere import GRAINS, processes, survives

__all__ = ["processes"]


@pytest.mark.behaviour("40-kill-resume-every-boundary", "40-kill-during-resume", "30-resumed-never-searches-again")
@pytest.mark.parametrize("every", GRAINS)
def test_killed_from_the_queries_to_a_synthesis_that_is_sent_back(
    processes: ForkServerContext, general: FakeGeneral, every: bool
) -> None:
    general.documents()
    opposed(general)
    good = general.says["synthesise"]
    silent = good | {"disagreements": []}
    general.says["synthesise"] = lambda seen: good if "was checked and has these problems" in seen.prompt else silent
    general.workspace.answers.who = lambda seen: (general.who(seen)[1], general.who(seen)[0])  # type: ignore[method-assign]
    survives(processes, general.workspace, "general", every=every, search="files:docs")
