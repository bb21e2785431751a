"""`--early-stop`: typed stances, an early end on unanimity, and recorded changes."""

from __future__ import annotations

import json

import pytest

from tests.acceptance.advisors.fake_advisors import FakeAdvisors, keys, stance_fields, text_of, words_in
from tests.acceptance.helpers import QUESTION, Json, Terminal, Workspace
from tests.fake_provider import Reply


def schema_names(workspace: Workspace) -> list[str | None]:
    return [
        (seen.body.get("response_format") or {}).get("json_schema", {}).get("name") for seen in workspace.provider.log
    ]


@pytest.mark.usefixtures("answers")
@pytest.mark.behaviour("10-early-stop-off")
def test_without_the_flag_statements_are_free_text_and_every_round_runs(
    workspace: Workspace, council: Terminal
) -> None:
    council("--flow", "debate", QUESTION)
    assert sorted(map(str, schema_names(workspace))) == ["None"] * 9 + ["RefereedRounds"]


@pytest.mark.usefixtures("answers")
@pytest.mark.behaviour("10-early-stop-ends", "10-early-stop-typed")
def test_unanimity_ends_the_debate_and_notes_the_saved_calls(workspace: Workspace, council: Terminal) -> None:
    report = council("--json", "--flow", "debate", "--early-stop", QUESTION).json
    assert schema_names(workspace) == ["Stand"] * 3 + ["Refereed"]
    assert report["calls"]["made"] == 4
    why = "the debate ended early: all 3 agree with HIGH confidence after round 1, all of one vendor; 6 calls saved"
    assert f"r2, r3 skipped: {why}" in text_of(workspace, report)
    assert [seat["confidence"] for seat in report["seats"]] == ["HIGH"] * 3
    assert words_in(workspace.prompt("referee/referee")) == keys("r1")


@pytest.mark.behaviour("10-early-stop-ends", "10-early-stop-typed", "10-shifts-recorded")
def test_a_debate_continues_until_unanimity_and_records_every_change(
    workspace: Workspace, council: Terminal, answers: FakeAdvisors
) -> None:
    answers.said = {
        "r1/visionary": stance_fields("against", "stay"),
        "r1/skeptic": stance_fields("against", "stay"),
        "r2/visionary": stance_fields(evidence="restores took 12 hours"),
        "r2/skeptic": stance_fields(),
    }
    report = council("--json", "--rounds", "4", "--early-stop", QUESTION).json
    assert schema_names(workspace) == ["Stand"] * 6 + ["RefereedRounds"]
    assert [(row["seat"], row.get("round"), row["from"], row["to"], row["weak"]) for row in report["shifts"]] == [
        ("visionary", 2, "against: stay", "for: move it", False),
        ("skeptic", 2, "against: stay", "for: move it", True),
        ("pragmatist", None, "pragmatist opens", "pragmatist ends", False),
    ]
    text = text_of(workspace, report)
    assert "visionary went from against: stay to for: move it in round 2: restores took 12 hours" in text
    assert "skeptic went from against: stay to for: move it in round 2: a weak flip" in text
    assert "r3, r4 skipped" in text and "6 calls saved" in text


@pytest.mark.behaviour("10-shifts-recorded")
def test_a_change_of_mind_is_noted_once_in_a_debate_that_goes_on(
    workspace: Workspace, council: Terminal, answers: FakeAdvisors
) -> None:
    doubts = {f"r{n}/skeptic": stance_fields(confidence="MEDIUM") for n in (1, 2, 3, 4)}
    answers.said = doubts | {"r1/visionary": stance_fields("against", "stay")}
    text = text_of(workspace, council("--json", "--rounds", "4", "--early-stop", QUESTION).json)
    assert text.count("visionary went from against: stay to for: move it in round 2") == 1


@pytest.mark.behaviour("10-early-stop-goes-on", "10-early-stop-typed")
@pytest.mark.parametrize(
    "doubt", [stance_fields(confidence="MEDIUM"), stance_fields("conditional"), stance_fields(choice="move half only")]
)
def test_a_single_doubt_keeps_the_debate_until_its_last_round(
    workspace: Workspace, council: Terminal, answers: FakeAdvisors, doubt: Json
) -> None:
    answers.said = {f"r{n}/skeptic": doubt for n in (1, 2, 3)}
    report = council("--json", "--flow", "debate", "--early-stop", QUESTION).json
    assert schema_names(workspace) == ["Stand"] * 9 + ["RefereedRounds"]  # the final statement is typed too
    assert "skipped" not in text_of(workspace, report)


@pytest.mark.behaviour("10-early-stop-goes-on")
def test_the_last_stance_of_an_absent_advisor_still_counts(
    workspace: Workspace, council: Terminal, answers: FakeAdvisors
) -> None:
    answers.said = {"r1/skeptic": stance_fields("against", "stay")}
    answers.instead["skeptic/r2"] = Reply(status=500)
    council("--flow", "debate", "--early-stop", QUESTION)
    assert keys("r3") <= set(workspace.asked())


@pytest.mark.behaviour("10-early-stop-typed")
def test_the_stance_is_shown_to_the_others(workspace: Workspace, council: Terminal, answers: FakeAdvisors) -> None:
    answers.said = {"r1/skeptic": stance_fields("against", "stay on disk", "LOW")}
    council("--rounds", "2", "--early-stop", QUESTION)
    prompt = workspace.prompt("r2/pragmatist")
    assert "**Stance:** against. **Choice:** stay on disk" in prompt
    assert "LOW" not in prompt  # confidence of others must not persuade


@pytest.mark.behaviour("10-no-chair-keeps-what-rules-found")
def test_declared_changes_are_recorded_without_a_referee(
    workspace: Workspace, council: Terminal, answers: FakeAdvisors
) -> None:
    answers.instead["chair"] = Reply(status=500)
    answers.said |= {
        "r1/skeptic": stance_fields("against", "stay"),
        "r2/skeptic": stance_fields("for", "move it", evidence=""),
    }
    answers.said["r2/visionary"] = stance_fields("against", "stay", evidence="Restores take 12 hours.")
    done = council("--json", "--rounds", "2", "--early-stop", QUESTION)
    assert (done.code, done.json["status"]) == (3, "incomplete")
    assert {(one["seat"], one["weak"]) for one in done.json["shifts"]} == {("skeptic", True), ("visionary", False)}
    tally = done.json["answer"].partition("### Tally")[2]
    assert "- Pragmatist: for: move it\n- Visionary: against: stay\n- Skeptic: for: move it" in tally
    assert tally.endswith("### Dissent\n\n- Visionary: against: stay")


# Voices and choices


@pytest.mark.usefixtures("answers")
@pytest.mark.behaviour("10-early-stop-ends")
@pytest.mark.parametrize("flow", ["parallel", "sequential", "debate"])
def test_every_flow_stops_after_two_rounds_or_more_and_says_what_it_saved(
    workspace: Workspace, council: Terminal, flow: str
) -> None:
    flags = ("--flow", flow, "--rounds", "2", "--early-stop")
    plan = council("--dry-run", "--json", *flags, QUESTION).json
    assert plan["calls"] == {"min": 4, "max": 7}
    assert [phase["name"] for phase in plan["phases"] if phase.get("skippable")] == ["r2"]
    assert "r2 may not be needed: then 4 calls" in council("--dry-run", *flags, QUESTION).out
    report = council("--json", *flags, QUESTION).json
    assert report["calls"]["made"] == 4
    assert [(stop["skipped"], stop["calls"], stop["saved"]) for stop in report["stops"]] == [(["r2"], 3, None)]


@pytest.mark.behaviour("10-early-stop-voices")
def test_advisors_that_one_member_answers_for_by_fallback_are_one_voice(
    workspace: Workspace, council: Terminal, answers: FakeAdvisors
) -> None:
    seats = "\n".join(
        f'[seats.{name}]\nmodel = "sim:{name}"\nfallback = {json.dumps(fallback)}'
        for name, fallback in (("pragmatist", []), ("visionary", ["sim:pragmatist"]), ("skeptic", ["sim:pragmatist"]))
    )
    workspace.configure(more=seats)
    answers.instead |= {"visionary": Reply(status=500), "skeptic": Reply(status=500)}
    report = council("--json", "--rounds", "2", "--early-stop", QUESTION).json
    assert {seat["served_by"] for seat in report["seats"]} == {"sim:pragmatist"}
    assert keys("r2") <= set(workspace.asked())
    assert "stops" not in report


@pytest.mark.behaviour("10-early-stop-goes-on")
@pytest.mark.parametrize(
    ("choice", "other"),
    [
        ("Redis, not Postgres", "Postgres, not Redis"),
        ("buy", "buy vendor A"),
        ("move it", "do not move it"),
        ("move it", "move it now"),
    ],
)
def test_choices_that_may_mean_different_things_keep_the_debate(
    workspace: Workspace, council: Terminal, answers: FakeAdvisors, choice: str, other: str
) -> None:
    answers.said = {f"r1/{name}": stance_fields(choice=choice) for name in ("pragmatist", "visionary")}
    answers.said["r1/skeptic"] = stance_fields(choice=other)
    council("--json", "--rounds", "2", "--early-stop", QUESTION)
    assert keys("r2") <= set(workspace.asked())
