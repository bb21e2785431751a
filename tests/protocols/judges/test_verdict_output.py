"""Standard output and progress of judges."""

from __future__ import annotations

import pytest

from council.engine.minutes import Minutes
from council.protocols.judges.finding_blocks import split_code
from council.protocols.judges.report import render_verdict_markdown
from council.render.markdown import render_answer, render_verbose
from tests.protocols.judges.runs import bench_plan, debated, details, finding, judged, nothing_changed, split, validated
from tests.render.runs import RunBuilder, plan
from tests.render.test_live import draw, row
from tests.render.test_plain import plain_lines


def answer_lines(minutes: Minutes) -> list[str]:
    """Return the lines of standard output without the tail."""
    return render_answer(minutes).partition("\n\n---\n")[0].splitlines()


@pytest.mark.behaviour("50-verdict-output", "20-opinions-shown")
def test_verdict_comes_first_then_findings_each_judge_and_the_next_step() -> None:
    assert render_answer(validated().minutes).splitlines()[:-4] == [
        "WARN  2 of 2 judges",
        "",
        "── 1 finding that several judges hold",
        "",
        "critical  src/auth.py:2  2 of 2",
        "  tokens never expire",
        "  Fix: compare exp",
        "  · found by judge-1, judge-2",
        "",
        "── 1 finding of one judge",
        "",
        "minor  src/no.py:9 (not found in the packet)  1 of 2",
        "  no docstring",
        "  Fix: compare exp",
        "  · found by judge-1",
        "",
        "judge-1      WARN: Tokens live on.  → Do it.",
        "judge-2      PASS: Fine.  → Do it.",
        "",
        "next step    Compare exp.",
    ]


@pytest.mark.behaviour("20-finding-blocks")
def test_the_words_of_the_clerk_are_the_title_of_a_finding_of_several_judges() -> None:
    row = finding(
        "`exp` is written and never read. It was forgotten.", "judge-1", "judge-2", defect="Tokens never expire."
    )
    lines = answer_lines(validated(findings=[row]).minutes)
    at = lines.index("  Tokens never expire.")
    assert lines[at + 1 : at + 3] == ["", "  `exp` is written and never read. It was forgotten."]
    alone = finding("No check.", "judge-1", defect="Tokens never expire.")
    assert "  Tokens never expire." not in answer_lines(validated(findings=[alone]).minutes)


@pytest.mark.behaviour("20-finding-blocks")
def test_a_long_list_ends_with_one_line_for_each_finding_of_several_judges() -> None:
    rows = [finding("tokens never expire", "judge-1", "judge-2"), *(finding(f"fault {n}", "judge-1") for n in range(6))]
    lines = answer_lines(validated(findings=rows).minutes)
    assert [line for line in lines if line.startswith("shared")] == [
        "shared       critical src/auth.py:2 (2 of 2): tokens never expire"
    ]


LONG = "The retry loop sleeps while it holds the row lock, so every other worker waits. " * 12


@pytest.mark.behaviour("20-finding-blocks")
def test_a_long_description_is_whole_and_a_fix_keeps_its_lines() -> None:
    fix = "for attempt in range(3):\n    with session.begin():\n        return charge(account)"
    row = finding(LONG.strip(), "judge-1", fix=fix, recommendation="Sleep outside of the transaction.")
    lines = answer_lines(validated(findings=[row]).minutes)
    at = lines.index(f"  {LONG.strip()}")
    assert lines[at + 1 : at + 7] == [
        "",
        "  Fix: Sleep outside of the transaction.",
        "      for attempt in range(3):",
        "          with session.begin():",
        "              return charge(account)",
        "  · found by judge-1",
    ]


@pytest.mark.behaviour("20-finding-blocks")
def test_a_finding_of_several_judges_is_above_a_worse_one_of_one_judge() -> None:
    rows = [finding("worse", "judge-1"), finding("shared", "judge-1", severity="minor", held_by=["judge-1", "judge-2"])]
    lines = answer_lines(validated(findings=rows).minutes)
    assert lines.index("  shared") < lines.index("  worse")


@pytest.mark.behaviour("20-finding-blocks")
def test_a_caveat_keeps_its_bracket() -> None:
    row = finding("no docstring", "judge-1", location="jwt.py:34", verified=False, location_note="quote not found")
    lines = answer_lines(validated(findings=[row]).minutes)
    assert "critical  jwt.py:34 (not found in the packet; quote not found)  1 of 2" in lines


@pytest.mark.behaviour("20-finding-blocks")
def test_minor_findings_of_a_long_list_are_counted_and_severe_ones_are_all_shown() -> None:
    severe = [finding(f"severe {n}", "judge-1", severity="significant") for n in range(9)]
    minor = [finding(f"minor {n}", "judge-1", severity="minor") for n in range(5)]
    lines = answer_lines(validated(findings=[*severe, *minor]).minutes)
    assert [line for line in lines if line.startswith("  minor")] == ["  minor 0"]
    assert sum(line.startswith("  severe") for line in lines) == 9
    assert "and 4 minor ones: council report r7k2" in lines
    assert "── 14 findings of one judge each" in lines


@pytest.mark.behaviour("20-finding-blocks")
@pytest.mark.parametrize(
    ("fix", "is_code"),
    [
        ("if exp < now:\n    raise Expired()", True),
        ("SELECT id FROM users WHERE id = %s;", True),
        ("Object token = new Token();", True),
        ("cur.execute(sql, (name,))", True),
        ("Compare `exp` with the clock before you call decode(token).", False),
        ("compare exp", False),
        ("1. Read the file once.\n2. Close it in `finally`.", False),
    ],
)
def test_code_and_sentences_of_a_fix_are_told_apart(fix: str, is_code: bool) -> None:
    assert [block.is_code for block in split_code(fix, is_fix=True)] == [is_code]


@pytest.mark.behaviour("50-verdict-output", "20-report-disagree")
def test_disagreeing_families_are_in_the_first_line() -> None:
    first, *rest, last = answer_lines(split().minutes)
    (dispute,) = (line for line in rest if line.startswith("disputed"))
    assert first == "DISAGREE  anthropic PASS · openai FAIL   4 of 4 seats"
    assert "anthropic PASS: All good.; Guarded. / openai FAIL: A bypass.; No alarm." in dispute
    assert "the decision is yours" in last


@pytest.mark.behaviour("50-verdict-output")
def test_degradation_is_below_the_verdict_and_above_the_findings() -> None:
    builder = (
        RunBuilder(bench_plan())
        .phase("judge")
        .answer("judge-1", "x")
        .ask("judge-2")
        .mark_absent("judge-2", "failed(size)", "")
    )
    builder.close("Go.", verdict="WARN", confidence="LOW", findings=[finding()], details=details())
    first, second, blank, title, _, found, *_ = render_answer(builder.minutes).splitlines()
    assert first == "WARN  1 of 2 judges"
    assert second == (
        "! judge-2 did not answer (scripted:m1: the prompt did not fit the context window). "
        "What follows is from one of two seats, so weigh it accordingly."
    )
    assert (blank, title, found[:8]) == ("", "── 1 finding of one judge", "critical")


@pytest.mark.behaviour("20-group-shows-all", "20-possibly-same", "20-findings-stand")
def test_a_group_names_its_judges_and_close_or_withdrawn_findings() -> None:
    lead = {"seat": "judge-1", "id": "judge-1.F1", "severity": "critical", "description": "tokens never expire",
            "location": "src/auth.py:2", "location_note": "", "location_state": "verified"}  # fmt: skip
    second = lead | {"seat": "judge-2", "id": "judge-2.F3", "severity": "minor", "description": "no expiry",
                     "location": "src/auth.py:9", "location_note": "quote not found", "first_severity": "significant"}  # fmt: skip
    third = {"seat": "judge-3", "id": "", "supports": True}
    row = finding("tokens never expire", "judge-1", "judge-2", "judge-3", of=3, id="judge-1.F1", by_judge=[lead, second, third],
                  possibly_same=["judge-2.F1"], path="src/auth.py", line=2, location_state="verified", location_note="")  # fmt: skip
    gone = {"seat": "judge-1", "id": "judge-1.F2", "finding": "no docstring", "severity": "minor", "why": "It has one."}
    fields = details(withdrawn=[gone], problems=["judge-2 withdraws judge-1.F1, a finding of judge-1: it remains."])
    lines = render_answer(validated(findings=[row], details=fields).minutes).splitlines()
    assert lines[1:13] == [
        "! judge-2 withdraws judge-1.F1, a finding of judge-1: it remains.",
        "",
        "── 1 finding that several judges hold",
        "",
        "critical  src/auth.py:2  3 of 3",
        "  tokens never expire",
        "  Fix: compare exp",
        "  · found by judge-1.F1, judge-2.F3; also held by judge-3",
        "  · possibly the same as judge-2.F1",
        "",
        "withdrawn    judge-1.F2 (minor) no docstring Reason: It has one.",
        "",
    ]


@pytest.mark.behaviour("50-verdict-output")
def test_shift_and_possible_anchoring_are_shown() -> None:
    text = render_answer(debated().minutes)
    assert "! judge-2 changed from PASS to FAIL without citing evidence: possible anchoring." in text
    assert "shifted      judge-2 PASS → FAIL: They are many." in text


@pytest.mark.behaviour("00-nothing-to-review")
@pytest.mark.parametrize("show", [render_answer, render_verbose])
def test_nothing_to_review_is_that_sentence_alone(show: object) -> None:
    assert show(nothing_changed().minutes) == "no changes to review\n"  # type: ignore[operator]


@pytest.mark.behaviour("20-incomplete-marker")
def test_interrupted_verdict_is_incomplete_and_says_how_to_continue() -> None:
    builder = (
        RunBuilder(bench_plan())
        .phase("judge")
        .ask("judge-1", "judge-2")
        .answer("judge-1", "x", reply={"verdict": "PASS"})
    )
    lines = answer_lines(builder.close("digest", status="incomplete", stopped="interrupted").minutes)
    assert lines[0] == "INCOMPLETE  1 of 2 judges"
    assert lines[1].startswith("! INCOMPLETE: interrupted")
    assert lines[-1] == "next step    council resume r7k2 (1 opinion so far)"
    assert not any("weigh it accordingly" in line for line in lines)


@pytest.mark.behaviour("10-verbose-other-protocols")
def test_verbose_has_a_heading_for_each_round_and_each_judge() -> None:
    headings = [line for line in render_verbose(debated().minutes).splitlines() if line.startswith("#")]
    judges = ["#### Judge-1 (Judge)", "#### Judge-2 (Judge)"]
    assert headings == ["## Council — Judges", "### Round 1", *judges, "### Round 2", *judges, "### Verdict"]


# Explorers


def explored() -> RunBuilder:
    builder = RunBuilder(bench_plan()).phase("judge")
    for name in ("judge-1", "judge-2"):
        builder.phase(f"judge/{name}/questions").answer(name, "1. where?").end_phase()
    builder.phase("judge/judge-1/explore/judge-1-explorer-1/look-1").answer(
        "judge-1-explorer-1", "## Findings"
    ).end_phase()
    builder.phase("judge/judge-1/explore/judge-1-explorer-2/look-1").ask("judge-1-explorer-2")
    return builder


@pytest.mark.behaviour("50-explorers-secondary")
def test_explorers_share_a_line_below_their_judge() -> None:
    lines = draw(explored())
    at = next(n for n, line in enumerate(lines) if " judge-1 " in line)
    assert lines[at + 1].split() == ["explorers", "working", "1", "of", "2"]
    assert not any("explorer-1" in line for line in lines)
    assert not any("judge/" in line for line in lines)
    assert "exploring" in lines[at]


@pytest.mark.behaviour("50-explorers-secondary")
def test_only_a_judge_whose_last_statement_went_to_its_explorers_is_exploring() -> None:
    def first_words(builder: RunBuilder) -> list[str]:
        symbol, _, _, state = next(line.split()[:4] for line in draw(builder) if " judge-1 " in line)
        return [symbol, state]

    ended, broken = explored(), RunBuilder(bench_plan()).phase("judge")
    ended.phase("judge").answer("judge-1", "The verdict.")
    broken.phase("judge/judge-1/questions").mark_absent("judge-1", "failed(net)").end_phase()
    assert first_words(explored()) == ["▸", "exploring"]
    assert first_words(ended) == ["✓", "ok"]
    assert first_words(broken) == ["✗", "failed"]


@pytest.mark.behaviour("50-explorers-secondary")
def test_plain_lines_show_explorers_after_their_judge() -> None:
    lines = plain_lines(explored())
    assert "council r7k2 judge judge-1 > questions ok 2 words 3.2s" in lines
    assert "council r7k2 judge judge-1 > explorer-1 look-1 ok 2 words 3.2s" in lines
    assert not any("begins" in line and "/" in line for line in lines)


@pytest.mark.behaviour("50-explorers-secondary")
def test_questions_to_explorers_do_not_count_as_statements() -> None:
    assert explored().minutes.answered_count == 0


@pytest.mark.behaviour("50-live-table")
def test_judge_that_is_done_shows_verdict_confidence_and_findings() -> None:
    reply = {"verdict": "WARN", "confidence": "LOW", "findings": [1]}
    assert "ok WARN LOW 1 finding" in row(draw(judged(judge_1=reply)), "judge-1")
    again = reply | {"findings": [], "withdrawn": []}
    assert "ok WARN LOW 0 new findings" in row(draw(judged(judge_1=again)), "judge-1")


@pytest.mark.behaviour("50-live-table")
def test_failed_seat_is_not_done_in_the_phase_bar() -> None:
    builder = RunBuilder(plan()).phase("draft").ask("alpha", "beta", "gamma").answer("alpha", "a").mark_absent("beta")
    assert draw(builder)[1].startswith("▸ draft ████░░░░░░░░ 1/3 ✗1 ")
    assert draw(builder.answer("gamma", "c").end_phase())[1].startswith("! draft 2/3")
    lost = RunBuilder(plan()).phase("draft").ask("alpha").mark_absent("alpha").end_phase()
    assert draw(lost)[1].startswith("✗ draft 0/1")


def test_a_verdict_as_markdown_has_no_empty_section() -> None:
    text = render_verdict_markdown(validated().minutes)
    assert text.startswith("**WARN")
    assert all(block.strip() for block in text.split("\n\n"))
