"""What judges print on standard output, and how they look while they work."""

from __future__ import annotations

import pytest

from council.render.markdown import answer, verbose

from .benches import bench_plan, debated, details, finding, judged, nothing_changed, split, validated
from .entries import Story, plan
from .test_live import drawn, row
from .test_plain import heard


@pytest.mark.behaviour("50-verdict-output")
def test_verdict_comes_first_then_findings_disputes_and_the_next_step() -> None:
    assert answer(validated().minutes).splitlines() == [
        "WARN  2 of 2 judges · confidence MEDIUM",
        "",
        "critical     src/auth.py:2                          tokens never expire  2 of 2  fix: compare exp",
        "minor        src/no.py:9 (not found in the packet)  no docstring  1 of 2  fix: compare exp",
        "disputed     the verdict: judge-1 WARN: Tokens live on. / judge-2 PASS: Fine.",
        "",
        "next step    Compare exp.",
    ]


@pytest.mark.behaviour("50-verdict-output", "20-report-disagree")
def test_disagreeing_families_stand_in_the_first_line() -> None:
    first, *_, dispute, _, last = answer(split().minutes).splitlines()
    assert first == "DISAGREE  anthropic PASS · openai FAIL   4 of 4 seats · confidence LOW"
    assert "anthropic PASS: All good.; Guarded. / openai FAIL: A bypass.; No alarm." in dispute
    assert "the decision is yours" in last


@pytest.mark.behaviour("50-verdict-output")
def test_what_is_missing_stands_below_the_verdict_and_above_the_findings() -> None:
    story = (
        Story(bench_plan()).phase("judge").said("judge-1", "x").asked("judge-2").absent("judge-2", "failed(size)", "")
    )
    story.closed("Go.", verdict="WARN", confidence="LOW", findings=[finding()], details=details())
    first, second, banner, blank, found, *_ = answer(story.minutes).splitlines()
    assert first == "WARN  1 of 2 judges · confidence LOW"
    assert second == (
        "! judge-2 did not answer in judge: the material did not fit it (failed(size)); the answer below is from 1 of 2 seats."
    )
    assert banner.startswith("! BELOW 80 %")
    assert (blank, found[:8]) == ("", "critical")


@pytest.mark.behaviour("50-verdict-output")
def test_shift_and_possible_anchoring_are_said() -> None:
    text = answer(debated().minutes)
    assert "! judge-2 went from PASS to FAIL and cites nothing for it: possible anchoring." in text
    assert "shifted      judge-2 PASS → FAIL: They are many." in text


@pytest.mark.behaviour("00-nothing-to-review")
@pytest.mark.parametrize("show", [answer, verbose])
def test_nothing_to_review_is_that_sentence_alone(show: object) -> None:
    assert show(nothing_changed().minutes) == "no changes to review\n"  # type: ignore[operator]


@pytest.mark.behaviour("20-incomplete-marker")
def test_interrupted_verdict_is_called_incomplete_and_says_how_to_go_on() -> None:
    story = (
        Story(bench_plan()).phase("judge").asked("judge-1", "judge-2").said("judge-1", "x", reply={"verdict": "PASS"})
    )
    lines = answer(story.closed("digest", status="incomplete", stopped="interrupted").minutes).splitlines()
    assert lines[0] == "INCOMPLETE  1 of 2 judges"
    assert lines[1].startswith("! INCOMPLETE: interrupted")
    assert lines[-1] == "next step    council resume r7k2 (1 opinion so far)"
    assert not any("BELOW 80 %" in line for line in lines)


@pytest.mark.behaviour("10-verbose-other-protocols")
def test_verbose_has_a_heading_for_each_round_and_each_judge() -> None:
    headings = [line for line in verbose(debated().minutes).splitlines() if line.startswith("#")]
    judges = ["#### Judge-1 (Judge)", "#### Judge-2 (Judge)"]
    assert headings == ["## Council — Judges", "### Round 1", *judges, "### Round 2", *judges, "### Verdict"]


# Explorers


def explored() -> Story:
    story = Story(bench_plan()).phase("judge")
    for name in ("judge-1", "judge-2"):
        story.phase(f"judge/{name}/questions").said(name, "1. where?").ended()
    story.phase("judge/judge-1/explore/judge-1-explorer-1/look-1").said("judge-1-explorer-1", "## Findings").ended()
    story.phase("judge/judge-1/explore/judge-1-explorer-2/look-1").asked("judge-1-explorer-2")
    return story


@pytest.mark.behaviour("50-explorers-secondary")
def test_explorers_share_a_line_below_their_judge() -> None:
    lines = drawn(explored())
    at = next(n for n, line in enumerate(lines) if " judge-1 " in line)
    assert lines[at + 1].split() == ["explorers", "at", "work", "1", "of", "2"]
    assert not any("explorer-1" in line for line in lines)
    assert not any("judge/" in line for line in lines)
    assert "exploring" in lines[at]


@pytest.mark.behaviour("50-explorers-secondary")
def test_plain_lines_put_explorers_behind_their_judge() -> None:
    lines = heard(explored())
    assert "council r7k2 judge judge-1 > questions ok 2 words 3.2s" in lines
    assert "council r7k2 judge judge-1 > explorer-1 look-1 ok 2 words 3.2s" in lines
    assert not any("begins" in line and "/" in line for line in lines)


@pytest.mark.behaviour("50-explorers-secondary")
def test_questions_to_explorers_are_no_statement_that_counts() -> None:
    assert explored().minutes.heard == 0


@pytest.mark.behaviour("50-live-table")
def test_judge_that_is_done_shows_verdict_confidence_and_findings() -> None:
    reply = {"verdict": "WARN", "confidence": "LOW", "findings": [1]}
    assert "ok WARN LOW 1 finding" in row(drawn(judged(judge_1=reply)), "judge-1")


@pytest.mark.behaviour("50-live-table")
def test_failed_seat_is_no_done_seat_in_the_phase_bar() -> None:
    story = Story(plan()).phase("draft").asked("alpha", "beta", "gamma").said("alpha", "a").absent("beta")
    assert drawn(story)[1].startswith("▸ draft ████░░░░░░░░ 1/3 ✗1 ")
    assert drawn(story.said("gamma", "c").ended())[1].startswith("! draft 2/3")
    lost = Story(plan()).phase("draft").asked("alpha").absent("alpha").ended()
    assert drawn(lost)[1].startswith("✗ draft 0/1")
