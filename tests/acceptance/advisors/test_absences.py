"""Advisors and referees that do not answer."""

from __future__ import annotations

import pytest

from tests.acceptance.advisors.fake_advisors import ADVISORS, FakeAdvisors, keys, text_of, words_in
from tests.acceptance.helpers import QUESTION, Terminal, Workspace
from tests.fake_provider import Reply


@pytest.mark.behaviour("10-advisors-absent")
def test_an_absent_advisor_is_asked_again_in_the_next_round_and_its_absence_is_reported(
    workspace: Workspace, council: Terminal, answers: FakeAdvisors
) -> None:
    answers.instead["skeptic/r1"] = Reply(status=500)
    done = council("--json", "--flow", "debate", QUESTION)
    report = done.json
    assert (done.code, report["status"], report["quorum"]["ok"]) == (0, "complete", 3)
    assert [(row["seat"], row["phase"], row["state"]) for row in report["degraded"] if row["seat"]] == [
        ("skeptic", "r1", "failed(server)")
    ]
    second = workspace.prompt("r2/skeptic")
    assert "You have not spoken yet." in second and words_in(second) == keys("r1", seats=ADVISORS[:2])
    third = workspace.prompt("r3/skeptic")
    assert words_in(third) == keys("r1", seats=ADVISORS[:2]) | keys("r2")
    referee = workspace.prompt("referee/referee")
    assert "Skeptic was absent from this round." in referee
    assert "skeptic did not answer in round 1" in text_of(workspace, report) and "It answered later." in text_of(
        workspace, report
    )


@pytest.mark.behaviour("10-advisors-absent")
def test_own_positions_keep_their_round_number_after_a_missed_round(
    workspace: Workspace, council: Terminal, answers: FakeAdvisors
) -> None:
    answers.instead["skeptic/r1"] = Reply(status=500)
    council("--flow", "debate", "--rounds", "4", QUESTION)
    prompt = workspace.prompt("r3/skeptic")
    assert "You, round 2" in prompt and "You, round 1" not in prompt and "not spoken yet" not in prompt


@pytest.mark.behaviour("10-advisors-absent")
def test_an_advisor_first_heard_in_the_last_round_is_not_asked_what_changed(
    workspace: Workspace, council: Terminal, answers: FakeAdvisors
) -> None:
    answers.instead["skeptic/r1"] = Reply(status=500)
    council("--rounds", "2", QUESTION)
    assert "You have not spoken yet" in workspace.prompt("r2/skeptic")
    assert "You have not spoken yet" not in workspace.prompt("r2/visionary")


@pytest.mark.behaviour("10-advisors-one-left")
def test_with_one_advisor_left_the_remaining_rounds_are_skipped_with_a_note(
    workspace: Workspace, council: Terminal, answers: FakeAdvisors
) -> None:
    answers.instead |= {"visionary": Reply(status=500), "skeptic": Reply(status=401)}
    done = council("--json", "--flow", "debate", QUESTION)
    report = done.json
    assert (done.code, report["status"]) == (0, "complete")
    assert {key for key in workspace.asked() if key.startswith(("r2", "r3"))} == set()
    assert "r2, r3 skipped: only one advisor is left" in text_of(workspace, report)
    assert "How Positions Moved" not in report["answer"]
    assert "What follows is from one of three seats, so weigh it accordingly." in text_of(workspace, report)


@pytest.mark.behaviour("00-exit-failed")
def test_the_run_fails_when_all_advisors_are_absent(
    workspace: Workspace, council: Terminal, answers: FakeAdvisors
) -> None:
    answers.instead |= {name: Reply(status=500) for name in ADVISORS}
    done = council("--json", "--flow", "parallel", QUESTION)
    assert (done.code, done.json["status"]) == (1, "failed")
    assert "referee/referee" not in workspace.asked()


@pytest.mark.behaviour("00-exit-incomplete", "10-no-chair-digest")
def test_without_a_referee_there_is_a_digest_of_the_last_statements(
    workspace: Workspace, council: Terminal, answers: FakeAdvisors
) -> None:
    answers.instead["chair"] = Reply(status=500)
    done = council("--json", "--rounds", "2", QUESTION)
    assert (done.code, done.json["status"]) == (3, "incomplete")
    answer = done.json["answer"]
    assert "No chair: digest of statements" in answer
    assert words_in(answer) == keys("r2")
    assert done.json["chair"]["label"] == "council-referee"


@pytest.mark.behaviour("00-exit-incomplete")
def test_earlier_statements_are_kept_when_all_fail_in_a_later_round(
    workspace: Workspace, council: Terminal, answers: FakeAdvisors
) -> None:
    answers.instead |= {f"{name}/r2": Reply(status=500) for name in ADVISORS}
    done = council("--json", "--rounds", "2", QUESTION)
    assert (done.code, done.json["status"]) == (3, "incomplete")
    assert words_in(done.json["answer"]) == keys("r1")
    assert done.json["chair"]["label"] == "council-referee"
    answers.instead.clear()
    assert council("resume", "--json").json["status"] == "complete"


@pytest.mark.behaviour("10-advisors-absent")
def test_the_referee_prompt_names_absent_advisors(
    workspace: Workspace, council: Terminal, answers: FakeAdvisors
) -> None:
    answers.instead["skeptic"] = Reply(status=500)
    council("--json", "--flow", "parallel", QUESTION)
    assert "\n\nSkeptic was absent.\n\n# Your part" in workspace.prompt("referee/referee")
