"""Analysis files of judges, and their report object."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest

from council import events as ev
from council.protocols.judges.report import render_analysis
from council.render.markdown import render_document
from council.render.report import build_report
from tests.protocols.judges.runs import (
    bench_plan,
    debated,
    details,
    failed,
    interrupted,
    judged,
    nothing_changed,
    opinion,
    split,
    validated,
)  # fmt: skip
from tests.render.test_report import schema

# Each judge's file


@pytest.mark.behaviour("20-analysis-file")
def test_analysis_is_the_reply_as_json_and_then_the_text() -> None:
    minutes = judged(judge_1=opinion("FAIL", "LOW", "Mind the ```.", {"description": "x"})).minutes
    text = render_analysis(minutes, minutes.phases["judge"].said["judge-1"])
    fence, _, body = text.partition("json\n")
    assert json.loads(body.split(f"\n{fence}\n")[0])["key_insight"] == "Mind the ```."
    assert "\n# judge-1: FAIL LOW 1 finding\n" in text
    assert text.endswith("judge-1 says FAIL.\n")


# The report object


@pytest.mark.behaviour("00-report-object", "00-published-schemas")
@pytest.mark.parametrize("build", [validated, debated, split, interrupted, failed, nothing_changed])
def test_report_object_of_judges_matches_its_schema(build: Any) -> None:
    jsonschema.Draft202012Validator(schema("report")).validate(build_report(build().minutes))


@pytest.mark.behaviour("20-analysis-file")
def test_seat_points_to_the_analysis_of_its_last_round() -> None:
    builder = debated()
    for phase in ("r1", "r2"):
        builder.add(ev.Voted("judge-1", phase, "FAIL", "HIGH", f"judge-1-{phase}.md"))
    first, second = build_report(builder.minutes)["seats"]
    assert (first["file"], second["file"]) == ("judge-1-r2.md", None)


@pytest.mark.behaviour("20-coverage-hole-told")
def test_coverage_hole_of_a_validate_run_is_a_row_and_a_sentence() -> None:
    packet = {
        "skipped": [{"path": "big.py", "why": "over 256 KB"}, {"path": "a.png", "why": "binary"}],
        "holes": ["big.py"],
    }
    minutes = judged(bench_plan(packet=packet)).close("x", verdict="WARN", details=details(holes=["big.py"])).minutes
    rows = [row for row in build_report(minutes)["degraded"] if row["state"] == "coverage_hole"]
    assert rows == [{"seat": None, "phase": None, "state": "coverage_hole", "reason": "big.py: over 256 KB"}]
    assert "> Not shown to the judges: big.py: over 256 KB. The verdict can be no better than WARN." in render_document(
        minutes
    )


@pytest.mark.behaviour("20-coverage-hole-told")
def test_empty_packet_is_reported() -> None:
    rows = build_report(validated(details=details(empty=True)).minutes)["degraded"]
    assert rows[-1]["reason"].startswith("no material was shown to the judges")


@pytest.mark.behaviour("00-nothing-to-review")
def test_run_without_changes_asks_no_seat() -> None:
    value = build_report(nothing_changed().minutes)
    assert (value["status"], value["verdict"], value["quorum"]["asked"]) == ("complete", None, 0)
    assert {one["state"] for one in value["seats"]} == {"not_asked"}
