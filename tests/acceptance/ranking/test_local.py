"""Without configuration: the embedded model answers, ranks and synthesises."""

from __future__ import annotations

import pytest

from tests.acceptance.helpers import Terminal

pytest.importorskip("xllamacpp", reason="the embedded model needs model-council[local]")


@pytest.mark.sweep
@pytest.mark.behaviour("10-ranking-local")
def test_a_ranking_completes_on_the_embedded_model(council: Terminal) -> None:
    done = council("--json", "--protocol", "ranking", "Should we open on Sundays?")
    report = done.json
    assert (done.code, report["status"], report["calls"]["made"] >= 7) == (0, "complete", True), report["degraded"]
    assert report["answer"].strip()
    assert len(report["ranking"]["ballots"]) >= 1, report["degraded"]
    assert report["cost"] == {"usd": 0.0, "estimated": False, "unpriced": []}
    assert council("runs", "fsck").code == 0
