"""Without configuration: the embedded model judges the changes that fit its window."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.acceptance.helpers import Terminal
from tests.packet.conftest import commit

pytest.importorskip("xllamacpp", reason="the embedded model needs model-council[local]")
LONG = "TABLE = [" + ", ".join(map(str, range(3000))) + "]\n"  # one line that does not fit a small window


@pytest.mark.behaviour("issue-3-embedded-model", "packet-fit")
def test_validate_recent_runs_on_the_embedded_model_and_reports_the_cut_as_a_hole(
    project: Path, council: Terminal
) -> None:
    for n in range(3):
        commit(project, {"src/app.py": f"print({n})\n" + (LONG if n == 2 else "")})
    plan = council("validate", "recent", "--count=1", "--dry-run", "--json").json
    assert {seat["model"] for seat in plan["seats"]} == {"local:smollm2"}
    assert plan["packet"]["tokens"] <= 1500
    assert plan["packet"]["holes"] == ["src/app.py"]
    done = council("validate", "recent", "--count=1", "--json")
    report = done.json
    assert (done.code, report["status"]) == (3, "complete"), report["degraded"]
    assert report["verdict"] in ("WARN", "FAIL")
    holes = [row["reason"] for row in report["degraded"] if row["state"] == "coverage_hole"]
    assert "src/app.py: the rest does not fit the member's window (1,500 tokens)" in holes
    assert report["cost"] == {"usd": 0.0, "estimated": False, "unpriced": []}
    text = (project / report["report_path"]).read_text(encoding="utf-8")
    assert text.startswith(f"## Council Consensus: {report['verdict']}")
    assert "Not shown to the judges: src/app.py: the rest does not fit the member's window" in text
    assert "All seats use the embedded model local:smollm2" in text
    assert council("runs", "fsck").code == 0
