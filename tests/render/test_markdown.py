"""Markdown output: the answer, the verbose layouts, the report file and the diagram."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from council.engine import layout
from council.engine.layout import neutralize_html
from council.engine.minutes import Minutes
from council.render.markdown import (
    list_answer_parts,
    render_answer,
    render_document,
    render_document_parts,
    render_verbose,
)
from council.render.mermaid import render_mermaid
from council.render.report import build_report
from tests.render.runs import RunBuilder, adversarial, collaborative, consensus, drafts, one_absent, plan, triage


def layout_lines(text: str) -> list[str]:
    """Return the lines of the layout: headings and lines that start with a mark."""
    return [line for line in text.splitlines() if re.match(r"#|[^\w\s_>|`*-]", line)]


@pytest.mark.behaviour("000-verbose-adversarial")
def test_adversarial_layout_has_the_required_headings_and_marks() -> None:
    assert layout_lines(render_verbose(adversarial().minutes)) == [
        "## 🗡️ Council — Adversarial Mode",
        "### Phase 1: Independent Drafts",
        "📝 **Alpha** (Drafter & Red Teamer)",
        "✅ **Beta** (Fact-Checker & Validator)",
        "🔧 **Gamma** (Optimizer & Devil's Advocate)",
        "### Phase 2: Attack Round",
        "🎯 **Leading Position:** Alpha",
        "⚔️ **Beta attacks Alpha:**",
        "⚔️ **Gamma attacks Alpha:**",
        "### Phase 3: Verdict",
        "🏛️ **Orchestrated Verdict**",
        "### Points and Rulings",
    ]


@pytest.mark.behaviour("000-verbose-adversarial")
def test_an_attack_without_a_triage_of_the_chair_names_the_attacked_draft_if_it_is_known() -> None:
    """A rule has chosen the draft, and the chair did not rule: no statement says which one it was."""
    builder = drafts(RunBuilder(plan("adversarial"))).phase("attack").answer("beta", "beta hits hard.")
    assert "⚔️ **Beta attacks ?:**\nbeta hits hard.\n" in render_verbose(builder.minutes)
    builder.answer("gamma", "gamma hits harder.").end_phase()
    text = render_verbose(builder.minutes)
    assert "⚔️ **Beta attacks Alpha:**\nbeta hits hard.\n" in text
    assert "⚔️ **Gamma attacks Alpha:**\ngamma hits harder.\n" in text


@pytest.mark.behaviour("000-verbose-adversarial")
def test_adversarial_layout_puts_each_text_below_its_mark() -> None:
    text = render_verbose(adversarial().minutes)
    assert "📝 **Alpha** (Drafter & Red Teamer)\nalpha drafts this.\n\n✅" in text
    assert (
        "🎯 **Leading Position:** Alpha\nReason: best evidence\n\n⚔️ **Beta attacks Alpha:**\nbeta hits hard.\n" in text
    )
    assert "🏛️ **Orchestrated Verdict**\nStatus: MODIFIED\nConfidence: MEDIUM\n\nMostly spaces.\n" in text


@pytest.mark.behaviour("000-consensus-skip-said")
def test_consensus_is_shown_under_the_attack_heading() -> None:
    text = render_verbose(consensus().minutes)
    attack = text.split("### Phase 2: Attack Round")[1].split("### Phase 3: Verdict")[0]
    assert attack.strip().splitlines() == [
        "🎯 **Leading Position:** Alpha",
        "Reason: best evidence",
        "",
        "Consensus detected — no adversarial round needed",
    ]


def test_attack_skipped_for_lack_of_drafts_is_not_called_consensus() -> None:
    builder = RunBuilder(plan("adversarial")).phase("draft").answer("alpha", "a").end_phase()
    text = render_verbose(builder.note("attack skipped", "there is only one draft", ["attack"]).close("A.").minutes)
    assert "Consensus detected" not in text
    assert "_No attack was held: there is only one draft._" in text


@pytest.mark.behaviour("000-verbose-collaborative")
def test_collaborative_layout_has_the_required_headings_and_marks() -> None:
    text = render_verbose(collaborative().minutes)
    assert layout_lines(text) == [
        "## 🤝 Council — Collaborative Mode",
        "### Phase 1: Independent Explorations",
        "💡 **Alpha** (Deep Explorer)",
        "🔨 **Beta** (Practical Builder)",
        "✨ **Gamma** (Elegant Minimalist)",
        "### Phase 2: Cross-Pollinated Improvements",
        "📝 **Alpha** (improved after reading Beta & Gamma)",
        "📝 **Beta** (improved after reading Alpha & Gamma)",
        "📝 **Gamma** (improved after reading Alpha & Beta)",
        "### Phase 3: Final Synthesis",
        "🌟 **Orchestrated Synthesis**",
    ]
    assert "🌟 **Orchestrated Synthesis**\nSpaces.\n\n---\n\nTrust: MEDIUM — " in text


@pytest.mark.behaviour("000-verbose-triad")
def test_triad_layout_has_four_headings() -> None:
    builder = drafts(RunBuilder(plan("triad"))).phase("merge").answer("chair", "Merged.").end_phase().close("Merged.")
    assert layout_lines(render_verbose(builder.minutes)) == [
        "## 📝 Alpha (Draft + Self-Critique)",
        "## ✅ Beta (Fact-Check + Validation)",
        "## 🔧 Gamma (Optimized + Devil's Advocate)",
        "## 🏛️ Orchestrated Verdict",
    ]


@pytest.mark.behaviour("10-verbose-other-protocols")
def test_other_protocols_show_a_heading_per_round_and_seat_and_then_the_chair() -> None:
    builder = RunBuilder(plan("second-opinion", ("pragmatist", "skeptic")))
    for n in (1, 2):
        builder.phase(f"r{n}").answer("pragmatist", f"can do {n}").answer("skeptic", f"will break {n}").end_phase()
    builder.phase("close").answer("chair", "Do half.").end_phase().close("Do half.")
    headings = [line for line in render_verbose(builder.minutes).splitlines() if line.startswith("#")]
    seats = ["#### Pragmatist (Drafter & Red Teamer)", "#### Skeptic (Fact-Checker & Validator)"]
    assert headings == ["## Council — Second-opinion", "### Round 1", *seats, "### Round 2", *seats, "### Chair"]


def test_absent_seat_is_shown_in_its_place_with_its_reason() -> None:
    text = render_verbose(one_absent().minutes)
    assert "🔨 **Beta** (Practical Builder)\n_Absent: server error: 500 from the server._" in text
    assert "📝 **Beta** (no improved version)\n_Absent since draft: server error: 500 from the server._" in text
    assert "📝 **Alpha** (improved after reading Gamma)" in text


def test_absent_attacker_is_shown_in_its_place() -> None:
    builder = (
        triage(drafts(RunBuilder(plan("adversarial")))).phase("attack").ask("beta").mark_absent("beta", "timed_out", "")
    )
    builder.answer("gamma", "gamma hits.").end_phase()
    assert "⚔️ **Beta attacks Alpha:**\n_Absent: ran out of time._" in render_verbose(builder.close("x").minutes)


@pytest.mark.parametrize("protocol", ["collaborative", "adversarial", "triad", "advisors", "judges"])
def test_every_layout_can_show_a_run_that_has_just_started(protocol: str) -> None:
    builder = RunBuilder(plan(protocol)).phase("draft").ask("alpha", "beta")
    text = render_verbose(builder.minutes, show="transcript")
    assert "_No answer: the run stopped first._" in text
    assert "_There is no answer._" in text
    assert render_document(builder.minutes).startswith("# INCOMPLETE: Tabs or spaces?\n")


def test_degradation_is_above_the_verbose_layout() -> None:
    assert render_verbose(one_absent().minutes).startswith(
        "> beta did not answer (scripted:m1: server error: 500 from the server)."
    )


@pytest.mark.behaviour("10-show-transcript")
def test_transcript_adds_prompts_retries_and_absences() -> None:
    minutes = one_absent().minutes
    added = render_verbose(minutes, show="transcript").removeprefix(render_verbose(minutes))
    assert "### draft/alpha: alpha in draft" in added
    assert "**system**\n\n```text\nYou sit.\n```" in added
    assert "- attempt 1 on scripted:m1 failed: server: 500 from the server; next try after 2.0 s" in added
    assert "- attempt 2 on scripted:m1: after server: 500" in added
    assert "Absent: server error: 500 from the server (3 attempts)." in added


def test_prompt_cannot_close_its_fence() -> None:
    assert "````text\nSpeak, alpha.\n```\nx\n```\n````" in render_verbose(one_absent().minutes, show="transcript")


# The answer alone


@pytest.mark.behaviour("000-answer-alone")
def test_default_output_is_the_answer_and_its_tail() -> None:
    minutes = collaborative().minutes
    (answer,) = list_answer_parts(minutes, with_tail=False)
    assert answer.text == "Spaces.\n"
    assert render_answer(minutes) == (
        "Spaces.\n\n---\n\nTrust: MEDIUM — all answers are from one vendor (scripted); agreement was not assessed\n"
    )


@pytest.mark.parametrize("render", [render_answer, render_verbose, render_document])
def test_texts_have_the_tail_of_the_report_that_the_run_was_closed_with(render: Callable[[Minutes], str]) -> None:
    minutes = collaborative().minutes
    minutes.report = build_report(minutes) | {"tail": ["Trust: LOW — as reported"]}
    assert "---\n\nTrust: LOW — as reported\n" in render(minutes)


@pytest.mark.behaviour("40-missing-said-above-the-answer")
def test_degradation_is_above_the_answer() -> None:
    first, *_, blank, last = render_answer(one_absent().minutes).partition("\n\n---\n")[0].splitlines()
    assert first.startswith("! beta did not answer (scripted:m1: server error: 500 from the server).")
    assert (blank, last) == ("", "Spaces.")


@pytest.mark.behaviour("40-terminal-sequences")
def test_answer_cannot_control_the_terminal() -> None:
    assert (
        render_answer(RunBuilder().close("\x1b]0;owned\x07red \x1b[31malert\x9b0m\r\nend").minutes)
        == "red alert\nend\n"
    )


def test_run_without_an_answer_prints_only_why() -> None:
    text = render_answer(RunBuilder().phase("draft").close("", status="failed").minutes)
    assert text == "! FAILED: no seat answered; `council resume r7k2` asks again.\n"


# The report file


@pytest.mark.behaviour("50-report-file")
def test_report_file_has_question_facts_answer_statements_and_how_to_replay() -> None:
    text = render_document(adversarial().minutes)
    headings = [line for line in text.splitlines() if line.startswith("#")]
    assert headings == [
        "# Tabs or spaces?", "## Answer", "## Points and Rulings", "## Statements", "### Draft", "### Triage", "### Attack", "### Verdict",
    ]  # fmt: skip
    for row in (
        "| Protocol | adversarial: nothing in the words asks for another |",
        "| Status | complete |",
        "| Outcome | MODIFIED |",
        "| Cost | no cost |",
        "| Run | r7k2 |",
        "| alpha | Drafter & Red Teamer | scripted:m1 | scripted:m1 | ok |",
    ):
        assert row in text
    assert text.endswith("Replay: `council runs replay r7k2`\n")


def test_report_file_contains_every_statement_in_full() -> None:
    minutes = adversarial().minutes
    text = render_document(minutes)
    assert all(said.said in text for said in minutes.statements)
    assert text.count("<details>") == text.count("</details>") == len(minutes.statements)


@pytest.mark.behaviour("20-incomplete-marker")
def test_report_file_of_an_unfinished_run_is_marked_in_its_title_and_says_how_to_resume() -> None:
    builder = RunBuilder().phase("draft").answer("alpha", "a").close("", status="incomplete", stopped="interrupted")
    text = render_document(builder.minutes)
    assert text.startswith("# INCOMPLETE: ")
    assert "`council resume r7k2`" in text.splitlines()[-1]
    assert "| waiting |" not in text and "| not asked, because the run was stopped first |" in text


@pytest.mark.behaviour("40-report-same-bytes")
def test_report_file_is_a_pure_function_of_the_minutes() -> None:
    assert render_document(adversarial().minutes) == render_document(adversarial().minutes)


def test_report_file_lists_absences_and_notes() -> None:
    assert "## Absences\n\n- beta in draft: server error: 500 from the server (3 attempts)\n" in render_document(
        one_absent().minutes
    )
    assert "## Notes\n\n- attack skipped: consensus detected\n" in render_document(consensus().minutes)


def test_statement_cannot_close_its_block_in_the_report_file() -> None:
    hostile = "</details>\n\x1b[2Jgone\n```python\nnever closed"
    text = render_document(drafts(RunBuilder()).phase("improve").answer("alpha", hostile).close().minutes)
    assert "&lt;/details>\ngone\n```python\nnever closed\n```\n\n</details>" in text


@pytest.mark.parametrize(
    "said", ["</details>\n```python\nnever closed", "- a\n  - <b>\n\n      code", "> ~~~\n> <b>", "x"]
)
def test_a_large_document_has_parts_that_make_the_same_text(monkeypatch: pytest.MonkeyPatch, said: str) -> None:
    minutes = drafts(RunBuilder()).phase("improve").answer("alpha", said).answer("beta", "<i>b</i>").close().minutes
    whole = list(render_document_parts(minutes))
    monkeypatch.setattr(layout, "PART_CHARS", 0)
    parts = list(render_document_parts(minutes))
    assert (len(whole), len(parts)) == (1, 6)  # one part per statement, and the end
    assert "".join(parts) == whole[0]


def test_closed_code_block_is_unchanged() -> None:
    text = render_document(RunBuilder().phase("draft").answer("alpha", "~~~~\n```\n~~~~\ndone").close().minutes)
    assert "~~~~\n```\n~~~~\ndone\n\n</details>" in text


def test_question_with_pipes_and_newlines_keeps_the_table_intact() -> None:
    text = render_document(collaborative(plan(question="a | b\nc", why="x | y")).minutes)
    assert "> a | b\n> c" in text
    assert "| Protocol | collaborative: x \\| y |" in text


# The diagram


def test_diagram_shows_phases_seats_and_skipped_phases() -> None:
    text = render_mermaid(consensus().minutes)
    assert text.startswith("flowchart LR\n")
    assert 'subgraph p_draft["draft"]' in text
    assert 'p_draft_alpha["alpha<br/>Drafter & Red Teamer"]' in text
    assert 'subgraph p_attack["attack, not held: consensus detected"]' in text
    assert "p_triage -.-> p_attack\n    p_triage --> p_verdict\n    p_verdict --> answer" in text


def test_a_seat_of_the_diagram_without_a_role_has_only_its_name() -> None:
    text = render_mermaid(RunBuilder(plan("judges")).phase("judge").answer("explorer", "found it").minutes)
    assert 'p_judge_explorer["explorer"]' in text


def test_diagram_marks_absent_seats() -> None:
    assert 'p_draft_beta["beta<br/>Practical Builder<br/>failed(server)"]:::absent' in render_mermaid(
        one_absent().minutes
    )


# Markdown that another program renders


def list_elements(text: str) -> list[str]:
    """Return the HTML elements and images that a renderer would make."""
    tokens = MarkdownIt("commonmark", {"html": True}).enable("table").parse(text)
    inline = [child for token in tokens for child in token.children or ()]
    return [token.type for token in (*tokens, *inline) if token.type in ("html_block", "html_inline", "image")]


@pytest.mark.behaviour("40-report-html")
@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("<b>x</b>", "&lt;b>x&lt;/b>"), ("<!-- x -->", "&lt;!-- x -->"), ("<?php ?>", "&lt;?php ?>"), ("![x](https://e.example/x.png)", "\\![x](https://e.example/x.png)"),
        ("![x][y]\n\n[y]: https://e.example", "\\![x][y]\n\n[y]: https://e.example"), ("a <img\nsrc=x>", "a &lt;img\nsrc=x>"), ("# <b>", "# &lt;b>"),
        ("- <b>\n  - ![x](y)", "- &lt;b>\n  - \\![x](y)"), ("> <b>", "> &lt;b>"), ("| <b> |\n|---|\n| ![x](y) |", "| &lt;b> |\n|---|\n| \\![x](y) |"),
        ("\\\\<b>", "\\\\&lt;b>"), ("\\\\![x](y)", "\\\\\\![x](y)"), ("a ` b\nc ` <b> ` d", "a ` b\nc ` &lt;b> ` d"), ("\\`<b>`", "\\`&lt;b>`"), ("``<b>`", "``&lt;b>`"),
        ("| a ` b | ` <b> |\n|---|---|", "| a ` b | ` &lt;b> |\n|---|---|"), ("- ```\n<b>", "- ```\n&lt;b>"), ("[^1]: x\n\n    <img src=x>", "[^1]: x\n\n    &lt;img src=x>"),
        ("<div>\n```\n<b>\n```", "&lt;div>\n```\n<b>\n```"), ("<script>\n\nx", "&lt;script>\n\nx"),
        # Unchanged
        ("```html\n<b>![x](y)</b>\n```", None), ("~~~\n<b>\n~~~", None), ("```\n<b>", None), ("- a\n  ```\n  <b>\n  ```", None), ("> ```\n> <b>\n> ```", None),
        ("`<b>` and `` ` <i> ``", None), ("| `<b>` |\n|---|", None), ("a < b > c, x<5", None), ("\\<b> \\![x](y)", None), ("[x](y) wow![", None), ("it! [x](y)", None),
    ],
)  # fmt: skip
def test_html_and_images_of_models_are_neutralized(text: str, shown: str | None) -> None:
    assert neutralize_html(text) == (text if shown is None else shown).replace("wow![", "wow\\![")
    assert not list_elements(neutralize_html(text))
    assert neutralize_html(neutralize_html(text)) == neutralize_html(text)


@given(st.lists(st.sampled_from(
    ["<b>", "<img src=x>", "</details>", "<!--", "![x](y)", "!", "[", "`", "``", "```", "~~~", "\\", "\n", "\n\n", "|", "---", "- ", "> ", "    ", "1. ", "  ", "# ", "a", "\t"]
), max_size=30))  # fmt: skip
def test_no_markdown_renders_an_element_or_an_image_after_it_was_neutralized(pieces: list[str]) -> None:
    assert not list_elements(neutralize_html("".join(pieces)))


def test_neutralizing_takes_time_in_proportion_to_the_length() -> None:
    for piece in ("<b>", "`<b>", "\\`<b>", "![", "| <b> ` ", "``<b>`\n", "\\\\<b>", "\\``<b>"):
        assert "<b" not in neutralize_html(piece * 5_000).replace("\\<b", "") or "`" in piece
