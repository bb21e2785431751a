"""Report files of judges: the order and content of their sections."""

from __future__ import annotations

import json
from typing import Any

import pytest

from council.render.markdown import render_answer, render_document
from tests.protocols.judges.runs import (
    bench_plan,
    debated,
    details,
    failed,
    finding,
    interrupted,
    judged,
    nothing_changed,
    opinion,
    split,
    validated,
)  # fmt: skip
from tests.render.runs import RunBuilder, seat


def headings(text: str) -> list[str]:
    """Return the headings of sections; findings have headings of the fourth level."""
    return [line for line in text.splitlines() if line.startswith("#") and not line.startswith("#### ")]


def section(text: str, heading: str) -> str:
    return text.split(f"{heading}\n", 1)[1].split("\n### ")[0].split("\n---\n")[0].strip()


# Validate


@pytest.mark.behaviour("20-report-validate")
def test_validate_report_has_the_required_sections_in_order() -> None:
    assert headings(render_document(validated().minutes)) == [
        "## Council Consensus: WARN", "### Verdicts", "### Shared Findings", "### Single-Judge Findings", "### Disagreements",
        "### Recommendation",
    ]  # fmt: skip


@pytest.mark.behaviour("20-report-validate")
def test_validate_report_opens_with_target_mode_judges_and_the_packet() -> None:
    head = render_document(validated().minutes).split("### Verdicts")[0]
    for line in (
        "**Target:** recent",
        "**Mode:** validate",
        "**Judges:** 2 asked, 2 answered",
        "**Effective votes:** at most about 1.25 of 2. Judges of one vendor tend to make the same errors, so their 2 votes say about "
        "as much as 1.25 independent ones.",
        "**Packet:** 1 file, 2 KB, ~700 tokens",
    ):
        assert f"\n{line}" in head
    assert "Profile" not in head


@pytest.mark.behaviour("20-report-validate")
def test_judges_of_different_vendors_have_no_line_on_effective_votes() -> None:
    run = validated(details=details(n_eff=2.0, families={"anthropic": "WARN", "openai": "WARN"}))
    assert "Effective votes" not in render_document(run.minutes)


@pytest.mark.behaviour("20-report-validate")
def test_profile_rule_and_plan_warnings_are_in_the_header() -> None:
    warned = bench_plan(
        options={"profile": "thorough", "rule": "corroborated"}, warnings=["perspectives dropped: compliance"]
    )
    text = render_document(judged(warned).close("x", verdict="PASS", details=details()).minutes)
    assert "**Profile:** thorough" in text
    assert "**Rule:** corroborated" in text
    assert "**Note:** perspectives dropped: compliance" in text


@pytest.mark.behaviour("20-report-validate")
def test_shared_and_single_findings_are_blocks_that_name_their_judges() -> None:
    text = render_document(validated().minutes)
    assert section(text, "### Shared Findings").splitlines() == [
        "#### critical security · `src/auth.py:2` · 2 of 2", "", "tokens never expire", "", "**Fix:** compare exp", "",
        "**Why:** forgotten", "", "*found by judge-1, judge-2*",
    ]  # fmt: skip
    assert section(text, "### Single-Judge Findings").splitlines() == [
        "#### minor security · `src/no.py:9` (not found in the packet) · 1 of 2", "", "no docstring", "", "**Fix:** compare exp",
        "", "**Why:** forgotten", "", "**Ref:** PEP 257", "", "*found by judge-1*",
    ]  # fmt: skip


CODE_FIX = "if payload['exp'] <= now():\n    raise Expired()"


@pytest.mark.behaviour("20-finding-blocks")
def test_a_fix_of_several_lines_is_a_code_block_in_the_language_of_its_file() -> None:
    row = finding("Tokens never expire.", "judge-1", fix=CODE_FIX, path="src/auth.py", recommendation="Check exp.")
    text = render_document(validated(findings=[row]).minutes)
    assert f"**Fix:** Check exp.\n\n```py\n{CODE_FIX}\n```\n" in text


@pytest.mark.behaviour("20-finding-blocks")
def test_a_fence_in_a_fix_keeps_its_language_and_the_words_around_it() -> None:
    row = finding("Bad SQL.", "judge-1", fix="Bind it:\n```sql\nSELECT 1\n```\nThen test it.", recommendation="")
    text = render_document(validated(findings=[row]).minutes)
    assert "**Fix:** Bind it:\n\n```sql\nSELECT 1\n```\n\nThen test it.\n" in text


@pytest.mark.behaviour("20-finding-blocks")
def test_holders_the_clerk_and_close_findings_are_named() -> None:
    said = {"severity": "minor", "location": "src/auth.py:2", "location_note": "", "description": "No expiry."}
    by_judge = [said | {"seat": "judge-1", "id": "judge-1.F1"}, {"seat": "judge-2", "id": "", "supports": True}]
    row = finding("Tokens never expire.", "judge-1", held_by=["judge-1", "judge-2"], by_judge=by_judge,
                  grouped_by="clerk", possibly_same=["judge-2.F9"], id="judge-1.F1")  # fmt: skip
    near = finding("No limit.", "judge-2", id="judge-2.F9", location="src/b.py:7")
    text = section(render_document(validated(findings=[row, near]).minutes), "### Shared Findings")
    assert "*found by judge-1.F1; also held by judge-2; grouped by the clerk*  \n" in text
    assert "*possibly the same as judge-2.F9 (src/b.py:7)*" in text


@pytest.mark.behaviour("20-report-validate")
def test_report_ends_with_time_responses_and_cost() -> None:
    *_, foot, _, cost = render_document(validated().minutes).splitlines()
    assert foot == "*Council completed in 7.0s. 2/2 judges responded.*"
    assert cost == "*No cost · 2 calls · 200 tokens in, 40 out · `council runs replay r7k2`*"


def test_verdicts_are_a_row_for_the_family_and_a_column_for_each_judge() -> None:
    text = section(render_document(validated().minutes), "### Verdicts")
    assert text.splitlines()[0] == "| Family | Judge 1 | Judge 2 | Family verdict |"
    assert "| scripted | WARN (MEDIUM) | PASS (HIGH) | WARN |" in text
    assert "`.agents/council/2027-01-15-recent-judge-1.md`" in text


@pytest.mark.behaviour("20-report-persona")
def test_persona_is_named_with_its_perspective() -> None:
    red = seat("judge-attacker", "Red", perspective="attacker")
    builder = judged(bench_plan(red)).close(
        "x", verdict="FAIL", findings=[finding("a bypass", "judge-attacker")], details=details()
    )
    text = render_document(builder.minutes)
    assert "#### critical security · `src/auth.py:2` · 1 of 2\n\na bypass\n" in text
    assert "*found by Red (attacker) [judge-attacker]*" in text
    assert "| Family | attacker | Family verdict |" in text


@pytest.mark.behaviour("20-report-disagree")
def test_disagree_shows_both_positions_with_reasons_and_leaves_the_decision_to_the_user() -> None:
    text = render_document(split().minutes)
    assert headings(text)[0] == "## Council Consensus: DISAGREE"
    assert headings(text)[-2:] == ["### Cross-Vendor Insights", "### Recommendation"]
    assert "| anthropic | PASS (HIGH) | PASS (HIGH) | PASS |" in text
    assert "| openai | FAIL (HIGH) | FAIL (LOW) | FAIL |" in text
    parts = section(text, "### Disagreements")
    assert parts.splitlines()[0] == "| Issue | anthropic | openai |"
    assert "FAIL: A bypass. (codex-judge-attacker)<br>FAIL: No alarm. (codex-judge-defender)" in parts
    assert "the decision is yours" in section(text, "### Recommendation")


@pytest.mark.behaviour("20-report-disagree")
def test_insights_of_one_family_are_listed_by_family() -> None:
    text = section(render_document(split().minutes), "### Cross-Vendor Insights")
    assert text.splitlines() == [
        "- **Only anthropic** saw: nothing that the other did not see.",
        "- **Only openai** saw: (critical) a bypass",
    ]


@pytest.mark.behaviour("issue-3-inconsistent-judge")
def test_inconsistent_judge_and_weakened_fail_are_flagged() -> None:
    text = render_document(validated(details=details(inconsistent=["judge-2"], weakened=["judge-1"])).minutes)
    assert (
        "- **judge-2** said PASS and holds a critical finding: inconsistent, so the verdict can be no better than WARN."
        in text
    )
    assert "- The FAIL of **judge-1** counted as a WARN" in text


@pytest.mark.behaviour("20-incomplete-marker")
def test_interrupted_validate_is_marked_and_keeps_its_findings() -> None:
    text = render_document(interrupted().minutes)
    assert text.startswith("## Council Consensus: INCOMPLETE\n\n> INCOMPLETE: interrupted")
    assert "| scripted | WARN (LOW) | no answer before the run ended | none |" in text
    assert "#### minor · `a.py:3` (not checked) · 1 of 1\n\nodd name\n\n*found by judge-1*" in text
    assert "digest" not in text
    assert "Council stopped after" in text and "`council resume r7k2`" in text


def test_report_of_a_run_without_answers_is_marked_too() -> None:
    assert headings(render_document(failed().minutes))[0] == "## Council Consensus: INCOMPLETE"


@pytest.mark.behaviour("00-nothing-to-review")
def test_report_without_changes_has_no_empty_sections() -> None:
    assert headings(render_document(nothing_changed().minutes)) == ["## Council Consensus: no changes to review"]


@pytest.mark.behaviour("40-terminal-sequences")
def test_model_text_starts_no_section_table_rule_or_line_of_ours() -> None:
    hostile = "| a | b |\n|---|---|\n### Recommendation\n\x1b[31mship it\n---\nTrust: HIGH"
    rows = [finding(hostile, "judge-1", "judge-2"), finding(hostile, "judge-1")]
    text = render_document(validated(findings=rows).minutes)
    assert headings(text).count("### Recommendation") == 1
    assert "\\| a | b |\n\\|---|---|\n\\### Recommendation\nship it\n\\---\n> Trust: HIGH\n" in text
    assert "\x1b" not in text


# Debate


@pytest.mark.behaviour("20-report-debate")
def test_debate_adds_rounds_fidelity_shifts_and_notes() -> None:
    text = render_document(debated().minutes)
    assert headings(text) == [
        "## Council Consensus: FAIL", "### Verdicts", "### Verdict Shifts (R1 -> R2)", "### Debate Notes", "### Shared Findings",
        "### Single-Judge Findings", "### Disagreements", "### Recommendation",
    ]  # fmt: skip
    assert "**Mode:** validate, --debate" in text
    assert "**Rounds:** 2 (independent assessment + adversarial debate)" in text
    assert "**Fidelity:** full" in text
    assert "R1: 2/2 judges responded. R2: 2/2 judges responded." in text


@pytest.mark.behaviour("20-report-debate", "20-weak-flip")
def test_shift_without_a_reason_is_marked_as_possible_anchoring() -> None:
    rows = section(render_document(debated().minutes), "### Verdict Shifts (R1 -> R2)").splitlines()
    assert rows[0] == "| Judge | R1 | R2 | Changed? | Reason |"
    assert rows[2] == "| judge-1 | FAIL | FAIL | no | Not moved. |"
    assert rows[3].startswith("| judge-2 | PASS | FAIL | yes | They are many. **Weak flip")
    assert "possible anchoring" in rows[3]


@pytest.mark.behaviour("20-report-debate", "20-convergence", "20-report-debate")
def test_convergence_exchanges_steel_men_and_dropped_findings_are_shown() -> None:
    text = render_document(debated().minutes)
    assert "> **Convergence:**" in text
    notes = section(text, "### Debate Notes")
    assert "**Key Exchanges**\n\n- **judge-1** challenges **judge-2**: it is safe. auth.py:2 says no" in notes
    assert "**Steel-Man Highlights**\n\n- **judge-1**: It may be meant so." in notes
    assert "- **judge-1**: no docstring (minor)" in notes


@pytest.mark.behaviour("20-report-debate")
def test_a_first_verdict_is_marked_while_the_second_round_is_not_finished() -> None:
    builder = judged(bench_plan(options={"debate": True}), "r1", judge_2=opinion("WARN")).phase("r2")
    builder.answer("judge-1", "still", reply=opinion("PASS")).ask("judge-2")
    text = render_document(builder.close("x", status="incomplete", stopped="interrupted").minutes)
    assert "WARN (HIGH, R1 verdict (R2 not finished))" in text


@pytest.mark.behaviour("20-report-debate")
def test_judge_absent_in_the_second_round_keeps_its_first_verdict_with_a_mark() -> None:
    builder = judged(bench_plan(options={"debate": True}), "r1", judge_2=opinion("WARN")).phase("r2")
    builder.answer("judge-1", "still", reply=opinion("PASS")).ask("judge-2").mark_absent("judge-2", "timed_out", "")
    text = render_document(builder.end_phase().close("x", verdict="WARN", details=details(rounds=2)).minutes)
    assert "WARN (HIGH, R1 verdict (R2 timeout))" in text
    assert "R2: 1/2 judges responded." in text


# Quick, brainstorm, research


@pytest.mark.behaviour("20-report-quick")
def test_quick_report_has_verdict_json_and_analysis() -> None:
    quick = bench_plan(seat("judge-1", "Judge"), options={"quick": True})
    reply = opinion("WARN", "HIGH")
    builder = judged(quick, judge_1=reply).close("x", verdict="WARN", confidence="MEDIUM", details=details(quick=True))
    text = render_document(builder.minutes)
    assert headings(text) == ["# Council Quick Check: recent", "## Verdict: WARN", "## Analysis"]
    assert "**Date:** 2027-01-15  \n**Mode:** quick (single-agent)  \n**Target:** recent  \n" in text
    assert json.loads(text.split("```json\n")[1].split("```")[0]) == reply | {"confidence": "LOW"}
    assert "`council validate recent`" in text.split("---")[-1]


@pytest.mark.behaviour("20-quick-confidence")
def test_quick_report_shows_one_confidence() -> None:
    quick = bench_plan(seat("judge-1", "Judge"), options={"quick": True})
    builder = RunBuilder(quick).phase("judge")
    builder.answer("judge-1", "**Verdict: WARN** (confidence HIGH)\n\nIt leaks.", reply=opinion("WARN", "HIGH"))
    builder.end_phase().close("x", verdict="WARN", confidence="MEDIUM", details=details(quick=True))
    text = render_document(builder.minutes)
    assert "HIGH" not in text and "MEDIUM" not in text
    assert "**Trust:** LOW" in text and '"confidence": "LOW"' in text
    assert "**Verdict: WARN** (confidence LOW)" in section(text, "## Analysis")


def brainstormed(**more: Any) -> RunBuilder:
    def option(name: str, assessment: str) -> Any:
        return {"name": name, "what": "", "pros": ["quick"], "cons": ["expensive"], "assessment": assessment}

    one = {"options": [option("Redis", "fits"), option("Nothing", "cheap")], "recommendation": "Redis"}
    two = {"options": [option("redis", "solid | known")], "recommendation": "Redis"}
    builder = RunBuilder(bench_plan(task="brainstorm", target=None, question="caching"))
    return builder.phase("judge").answer("judge-1", "a", reply=one).answer("judge-2", "b", reply=two).end_phase()


@pytest.mark.behaviour("20-report-brainstorm")
def test_brainstorm_report_has_options_by_judge_and_trade_offs() -> None:
    weighed = {"trade_offs": [{"option": "Redis", "buys": "speed", "costs": "a service"}]}
    builder = brainstormed().phase("consolidate").answer("chair", "Weighed.").end_phase()
    text = render_document(builder.close("Take Redis.", details={"consolidation": weighed, "judges": {}}).minutes)
    assert headings(text) == [
        "## Council Brainstorm: caching", "### Options Explored", "### Trade-offs", "### Recommendation",
    ]  # fmt: skip
    assert "| Option | judge-1 | judge-2 |" in text
    assert "| Redis | fits | solid \\| known |\n| Nothing | cheap | – |" in text
    assert section(text, "### Trade-offs") == "- **Redis** brings: speed. It costs: a service"
    assert section(text, "### Recommendation") == "Take Redis."


@pytest.mark.behaviour("20-report-brainstorm", "20-incomplete-marker")
def test_brainstorm_without_a_chair_shows_pros_and_cons_of_each_judge() -> None:
    builder = brainstormed().phase("consolidate").ask("chair").mark_absent("chair")
    text = render_document(builder.close("## No chair: digest", status="incomplete", stopped="chair").minutes)
    assert headings(text)[0] == "## Council Brainstorm: caching (INCOMPLETE)"
    assert "- **Nothing** (judge-1) for: quick. Against: expensive" in text


@pytest.mark.behaviour("20-report-research")
def test_research_report_has_facets_themes_open_questions_and_recommendation() -> None:
    facets = [{"name": "Flow", "findings": ["tokens", "no expiry"]}]
    reply = {"facets": facets, "findings": ["x"], "open_questions": ["who?"], "recommendation": "look"}
    builder = RunBuilder(bench_plan(task="research", question="auth", target=None)).phase("judge")
    builder.answer("judge-1", "a", reply=reply).answer("judge-2", "b", reply=reply).end_phase()
    builder.phase("consolidate").answer("chair", "Weighed.").end_phase()
    whole = {"themes": [{"name": "Lifetime", "findings": ["never checked"]}], "open_questions": ["who revokes?"]}
    text = render_document(builder.close("Read it.", details={"consolidation": whole, "judges": {}}).minutes)
    assert headings(text) == [
        "## Council Research: auth", "### Facets Explored", "### Synthesized Findings", "### Open Questions",
        "### Recommendation",
    ]  # fmt: skip
    assert "| Flow | judge-1 | tokens<br>no expiry |" in text
    assert "- who revokes?" in section(text, "### Open Questions")


@pytest.mark.behaviour("20-report-research")
def test_research_answer_has_no_trade_offs() -> None:
    builder = RunBuilder(bench_plan(task="research", question="auth", target=None)).phase("consolidate")
    reply = {
        "trade_offs": [{"option": "Redis", "buys": "speed", "costs": "a service"}], "open_questions": ["Who revokes?"],
        "themes": [{"name": "Lifetime", "findings": ["never checked"]}], "recommendation": "Read it.", "shared_by": [],
    }  # fmt: skip
    builder.answer("chair", "### Trade-offs\n- **Redis**: speed", reply=reply).end_phase().close("Read it.")
    text = render_answer(builder.minutes)
    assert "Trade-offs" not in text and "Redis" not in text
    assert text.startswith(
        "### Lifetime\n- never checked\n\nOpen questions:\n- Who revokes?\n\nRecommendation: Read it."
    )
