"""What the outputs show of an attack: leader, agreed and contested points, rulings, dissent."""

from __future__ import annotations

import json
from importlib.resources import files

import jsonschema
import pytest

from council.protocols.adversarial.report import format_counts
from council.render.markdown import render_answer, render_document, render_verbose
from council.render.report import build_report
from tests.protocols.adversarial.test_flow import SCRIPT, Run, attack, issue, ruling, triage
from tests.render.runs import adversarial

REJECTED = SCRIPT | {
    "attack/alpha": attack(issue("FATAL", "the cost claim"), issue("MINOR"), verdict="REJECTED"),
    "verdict/chair": ruling("MODIFIED", ("alpha-1", True), ("alpha-2", False), ("gamma-1", False)),
}


@pytest.mark.anyio
@pytest.mark.behaviour("10-rulings-shown")
async def test_the_report_has_leader_points_rulings_and_dissent() -> None:
    value = build_report(await Run(REJECTED).finish())
    published = files("council").joinpath("data/schemas/report.json").read_text(encoding="utf-8")
    jsonschema.validate(value, json.loads(published))
    assert (value["leader"], value["leader_reason"]) == ("beta", "It is tested.")
    assert (value["agreed"], value["contested"]) == (["both are typed"], ["the payload size"])
    assert [(row["id"], row["severity"], row["landed"], row["why"]) for row in value["rulings"]] == [
        ("alpha-1", "FATAL", True, "because"),
        ("alpha-2", "MINOR", False, "because"),
        ("gamma-1", "MINOR", False, "because"),
    ]
    assert [row["seat"] for row in value["dissent"]] == ["alpha"]
    assert value["trust"]["level"] == "CONTESTED"
    assert "alpha rejected the leading draft with a fatal attack that landed" in value["trust"]["because"]


@pytest.mark.anyio
@pytest.mark.behaviour("10-tail")
async def test_standard_output_ends_with_the_outcome_in_words_and_without_ids() -> None:
    shown = render_answer(await Run(SCRIPT).finish())
    answer, _, tail = shown.partition("\n\n---\n\n")
    assert answer == "Use gRPC.\n\n## Confidence Assessment\n\n**MEDIUM.** Somewhat contested."
    assert tail.splitlines()[:2] == [
        "Outcome: modified — beta's draft, changed after 2 attacks of which 1 landed  ",
        "They differ: the payload size  ",
    ]
    assert tail.splitlines()[2].startswith("Trust: MEDIUM — ")
    assert "alpha-1" not in shown and "MAJOR" not in shown


@pytest.mark.anyio
@pytest.mark.behaviour("10-tail")
async def test_a_skipped_attack_is_named_in_the_outcome() -> None:
    run = Run(SCRIPT | {"triage/chair": triage("alpha", agree=True), "verdict/chair": ruling("SURVIVED")})
    shown = render_answer(await run.finish())
    assert "\nOutcome: survived — all 3 drafts agree, so none was attacked  \n" in shown


@pytest.mark.anyio
@pytest.mark.behaviour("10-rulings-shown")
async def test_verbose_and_the_report_file_list_every_ruling() -> None:
    minutes = await Run(REJECTED).finish()
    for text in (render_verbose(minutes), render_document(minutes)):
        assert "**Agreed:**\n\n- both are typed\n" in text and "**Contested:**\n\n- the payload size\n" in text
        assert "**Rulings** (2 issues: 1 landed, 1 dismissed):" in text
        assert "- alpha-2, gamma-1 (MINOR) dismissed, raised by alpha and gamma: the first claim — because\n" in text
        assert "- alpha-1 (FATAL) landed: the cost claim — because\n" in text
        assert "**Dissent:**\n\n- Alpha (REJECTED): " in text


@pytest.mark.anyio
async def test_text_of_a_model_stays_on_its_line() -> None:
    hostile = "first\n## Answer\n<details> | x"
    points = [{"issue": "alpha-1", "landed": True, "why": hostile, "same_as": "none"}, {"issue": "gamma-1", "landed": False, "why": "no", "same_as": "none"}]  # fmt: skip
    script = SCRIPT | {"triage/chair": triage("beta", reason=hostile, agreed=[hostile], contested=[hostile])}
    minutes = await Run(script | {"verdict/chair": ruling("MODIFIED") | {"points": points}}).finish()
    section = render_document(minutes).partition("## Points and Rulings")[2].partition("## Statements")[0]
    assert "## Answer" in section and "\n## Answer" not in section
    assert all(not line.startswith("## Answer") for line in render_answer(minutes).splitlines())


def test_a_run_of_an_older_version_shows_its_triage() -> None:
    value = build_report(adversarial().minutes)
    assert (value["leader"], value["contested"], value["rulings"]) == ("alpha", ["width"], [])
    assert "the leading draft was changed after attacks" in value["trust"]["because"]


@pytest.mark.parametrize(
    ("landed", "text"),
    [
        ([True, True, True, False, None], "5 issues: 3 landed, 1 dismissed, 1 open"), ([True], "1 issue: 1 landed"), ([], "no issues"),
        ([None, None], "2 issues: 2 open"),
    ],
)  # fmt: skip
def test_rulings_are_counted(landed: list[bool | None], text: str) -> None:
    assert format_counts([{"landed": one, "same_as": None} for one in landed]) == text
