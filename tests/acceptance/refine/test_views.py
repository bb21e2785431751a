"""What the report of a refined or checked answer shows: rulings, notes, differences, phases that were not held."""

from __future__ import annotations

from dataclasses import replace

import pytest

from council.engine.minutes import Minutes
from council.render.markdown import render_document, render_verbose
from council.render.mermaid import render_mermaid
from council.render.report import read_report
from tests.acceptance.reader_cases import Case, Point, refine, solo
from tests.acceptance.reader_council import Json, hold_council
from tests.acceptance.reader_table import CHECKED

pytestmark = pytest.mark.anyio
WHEN = Point("whether to start now", {"alpha": ("start now", ""), "beta": ("wait for the audit", "")})
WHO = Point("who pays for it", {"alpha": ("the team", ""), "beta": ("the company", "")})


async def hold(case: Case) -> Minutes:
    minutes, _ = await hold_council(case.setup)
    assert minutes.status == "complete"
    return minutes


@pytest.mark.behaviour("10-check-reported")
async def test_the_report_lists_every_error_with_its_state() -> None:
    errors = [{"beta": "M", "gamma": "M"}]
    minutes = await hold(refine("", "", "", errors=errors, check_rulings=[{"beta-1": "-"}]))
    for text in (render_document(minutes), render_verbose(minutes)):
        assert "Result of the Check\n\nRead by beta and gamma." in text
        assert '- beta-1 (MAJOR) dismissed: "Start with one node": The claim is wrong' in text
        assert '- gamma-1 (MAJOR) corrected: "Measure the load for a week": The claim is wrong' in text
    document = render_document(minutes)
    assert "**Beta's draft:**\n\n- alpha-1 (MAJOR) right" in document
    assert "| chair | Orchestrator | dune:d | dune:d | ok |" in document


@pytest.mark.behaviour("10-check-reported")
async def test_the_chart_shows_a_second_check_and_the_phases_that_were_not_held() -> None:
    twice = await hold(refine("", "", "", errors=[{"beta": "F", "gamma": ""}, {"beta": "", "gamma": ""}]))
    assert "p_fix --> p_check_again\n" in render_mermaid(twice)
    settled = await hold(refine("", "", "", is_settled=True))
    assert 'subgraph p_rewrite["rewrite, not held: the drafts agree and no attack found harm"]' in render_mermaid(
        settled
    )
    early = await hold(solo("", "", errors=("",)))
    assert 'subgraph p_rewrite["rewrite, not held: its author found no error in it"]' in render_mermaid(early)


async def test_every_difference_that_the_tail_counts_is_in_the_report() -> None:
    minutes = await hold(refine("", "", "", points=[WHEN, WHO]))
    assert "1 more point in the report" in read_report(minutes)["tail"][1]
    assert WHO.text in render_document(minutes)
    assert WHO.text in str(read_report(minutes))


async def test_a_corrected_answer_of_general_cites_only_known_sources() -> None:
    case = next(case for case in CHECKED if case.name == "general: checked, a severe error")
    usual = case.setup.script["fix/chair"]

    def cite_unknown(request: Json) -> Json:
        reply: Json = usual(request)
        edits = [edit | {"replace": f"{edit['replace']} [9]"} for edit in reply["edits"]]
        return reply | {"edits": edits}

    minutes, _ = await hold_council(replace(case.setup, script={**case.setup.script, "fix/chair": cite_unknown}))
    report = read_report(minutes)
    assert "[9]" not in report["answer"]
    assert "error_open" in [fact["kind"] for fact in report["trust"]["facts"]]
