"""Without configuration: the embedded model runs a full debate, and the report says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.acceptance.helpers import Terminal

pytest.importorskip("xllamacpp", reason="the embedded model needs model-council[local]")


@pytest.mark.sweep
@pytest.mark.behaviour("issue-4-advisors-embedded")
def test_a_debate_completes_on_the_embedded_model(council: Terminal) -> None:
    Path("pair.toml").write_text(
        '[[seats]]\nname = "pragmatist"\nlens = "cost"\n[[seats]]\nname = "skeptic"\nlens = "risk"\n'
    )
    done = council("--json", "--flow", "debate", "--rounds", "2", "--roster", "pair.toml", "Should we open on Sundays?")
    report = done.json
    assert (done.code, report["status"], report["calls"]["made"] >= 5) == (0, "complete", True), report["degraded"]
    heads = ["## Verdict", "## Next Steps", "## Tensions", "## How Positions Moved", "## Perspectives"]
    assert [head for head in heads if head in report["answer"]] == heads
    assert report["cost"] == {"usd": 0.0, "estimated": False, "unpriced": []}
    assert "embedded model" in Path(report["report_path"]).read_text(encoding="utf-8")
    assert council("runs", "fsck").code == 0
