"""The referee's answer: sections, shifts, labels, flags, and handling of invalid replies."""

from __future__ import annotations

from typing import Any

import pytest

from tests.acceptance.advisors.fake_advisors import ADVISORS, FakeAdvisors, moved, text_of
from tests.acceptance.helpers import QUESTION, Terminal, Workspace, mark
from tests.acceptance.test_machine_readable import fits
from tests.fake_provider import Reply

# The answer


@pytest.mark.usefixtures("answers")
@pytest.mark.behaviour("001-collapsed-perspectives", "10-advisors-referee-sections")
def test_the_answer_is_verdict_next_steps_tensions_and_perspectives(workspace: Workspace, council: Terminal) -> None:
    done = council("--flow", "parallel", QUESTION)
    heads = ["## Verdict", "## Next Steps", "## Tensions", "## Perspectives"]
    assert [line for line in done.out.splitlines() if line.startswith("#")] == heads
    assert all(f"- **{name.capitalize()}:** the view of {name}" in done.out for name in ADVISORS)
    assert "1. Measure it.\n2. Move it." in done.out
    assert mark("referee", "referee") in done.out
    assert "You are the referee of a council of advisors: balanced, fair" in workspace.prompt("referee/referee")


@pytest.mark.behaviour(
    "001-referee-evolution", "10-advisors-moved-table", "10-shifts-recorded", "004-referee-transcript"
)
def test_after_several_rounds_the_answer_and_shifts_show_how_positions_moved(
    workspace: Workspace, council: Terminal, answers: FakeAdvisors
) -> None:
    answers.ruling = {
        "positions": [
            moved("pragmatist"),
            moved("visionary", moved=True, evidence="egress costs | 90 dollars a TB"),
            moved("skeptic", moved=True),
        ]
    }
    report = council("--json", "--flow", "debate", QUESTION).json
    assert [(row["seat"], row["from"], row["to"], row["changed"], row["weak"]) for row in report["shifts"]] == [
        ("pragmatist", "pragmatist opens", "pragmatist ends", False, False),
        ("visionary", "visionary opens", "visionary ends", True, False),
        ("skeptic", "skeptic opens", "skeptic ends", True, True),
    ]
    answer = report["answer"]
    heads = ["## Verdict", "## Next Steps", "## Tensions", "## How Positions Moved", "## Perspectives"]
    assert [line for line in answer.splitlines() if line.startswith("#")] == heads
    assert "| Visionary | visionary opens | visionary ends | why visionary is there |" in answer
    weak = "| Skeptic | skeptic opens | skeptic ends | why skeptic is there **Weak flip: it names no evidence, possible anchoring.** |"
    assert weak in answer and weak in text_of(workspace, report)
    assert answer.count("Weak flip") == 1
    assert "How positions moved: for each advisor" in workspace.prompt("referee/referee")
    assert len(workspace.provider.log) == 10  # no extra call
    fits(report, "report")
    assert (report["verdict"], report["chair"]["verdict"]) == (None, None)  # only judges have these


@pytest.mark.usefixtures("answers")
@pytest.mark.behaviour("10-advisors-moved-table")
def test_after_one_round_there_are_no_shifts(workspace: Workspace, council: Terminal) -> None:
    report = council("--json", "--flow", "parallel", QUESTION).json
    assert report["shifts"] == []
    assert "How Positions Moved" not in report["answer"] + workspace.prompt("referee/referee")


@pytest.mark.usefixtures("answers")
@pytest.mark.behaviour("001-labels", "004-labels", "10-advisors-labels")
@pytest.mark.parametrize(
    ("flags", "labels", "last"),
    [
        (("--flow", "parallel"), ["council-pragmatist", "council-visionary", "council-skeptic"], "council-skeptic"),
        (("--rounds", "2"), [f"council-r{n}-{name}" for n in (1, 2) for name in ADVISORS], "council-r2-skeptic"),
    ],
)
def test_labels_name_the_round_if_there_are_several(
    workspace: Workspace, council: Terminal, flags: tuple[str, ...], labels: list[str], last: str
) -> None:
    verbose = council("--verbose", *flags, QUESTION).out
    heads = [line.split()[1] for line in verbose.splitlines() if line.startswith("#### ")]
    assert heads == labels
    assert "## council-referee (Referee)" in verbose
    report = council("report", "--format", "json").json
    assert (report["seats"][-1]["label"], report["chair"]["label"]) == (last, "council-referee")
    filed = text_of(workspace, report)
    assert all(f"<summary>{label}: ok" in filed for label in [*labels, "council-referee"])


def speech(words: int) -> str:
    return " ".join(f"point{n}" for n in range(words))


@pytest.mark.behaviour("10-advisors-over-budget", "004-words-cost")
def test_a_statement_over_twice_its_limit_is_flagged_in_the_report(
    workspace: Workspace, council: Terminal, answers: FakeAdvisors
) -> None:
    answers.said = {"r1/visionary": speech(801), "r1/skeptic": speech(800), "r2/skeptic": speech(501)}
    report = council("--json", "--rounds", "2", QUESTION).json
    flagged = [line for line in text_of(workspace, report).splitlines() if "over twice its limit" in line]
    assert flagged == [
        "- visionary wrote 801 words in round 1: over twice its limit of 400",
        "- skeptic wrote 501 words in round 2: over twice its limit of 250",
    ]


# Invalid replies of the referee


@pytest.mark.behaviour("10-chair-names-absent-seat", "10-advisors-referee-slips")
@pytest.mark.parametrize("stranger", ["skeptic", "accountant"])
def test_a_referee_that_names_an_absent_or_unknown_advisor_gets_the_repair_turn(
    workspace: Workspace, council: Terminal, answers: FakeAdvisors, stranger: str
) -> None:
    answers.instead["skeptic"] = Reply(status=401)
    slips = [{"perspectives": [{"advisor": stranger, "view": "x"}]}]

    def invalid_reply(seen: Any) -> Reply | None:
        answers.ruling = slips.pop() if slips else {}
        return None

    answers.instead["chair/referee"] = invalid_reply
    done = council("--json", "--flow", "parallel", QUESTION)
    assert (done.code, done.json["status"]) == (0, "complete")
    asked = [seen for seen in workspace.provider.log if answers.who(seen)[0] == "referee"]
    assert len(asked) == 2
    assert f'"{stranger}" is not one of pragmatist, visionary' in asked[1].body["messages"][-1]["content"]
    assert done.json["chair"]["state"] == "ok_repaired"


@pytest.mark.behaviour("10-advisors-referee-slips")
def test_an_advisor_the_referee_leaves_out_is_listed(
    workspace: Workspace, council: Terminal, answers: FakeAdvisors
) -> None:
    answers.ruling = {
        "perspectives": [{"advisor": "pragmatist", "view": "Do it.\n\n## Tensions\n\nnone"}],
        "positions": [moved("visionary"), moved("visionary", moved=True)],
    }
    report = council("--json", "--rounds", "2", QUESTION).json
    answer = report["answer"]
    assert "- **Pragmatist:** Do it. ## Tensions none\n- **Visionary:** left out by the referee" in answer
    assert "- **Skeptic:** left out by the referee" in answer
    assert [line for line in answer.splitlines() if line.startswith("| Skeptic")] == [
        "| Skeptic |  |  | left out by the referee; see the minutes for its statement. |"
    ]
    assert answer.count("| Visionary |") == 1  # named twice, the first counts
    assert [(row["seat"], row["changed"]) for row in report["shifts"]] == [("visionary", False)]


def test_list_numbers_written_by_the_referee_are_not_duplicated(
    workspace: Workspace, council: Terminal, answers: FakeAdvisors
) -> None:
    answers.ruling = {"next_steps": ["1. Measure.", "2) Move."], "tensions": ["- a | b"]}
    out = council("--flow", "parallel", QUESTION).out
    assert "1. Measure.\n2. Move." in out and "\n- a | b\n" in out


@pytest.mark.behaviour("10-advisors-referee-sections", "10-no-chair-digest")
def test_a_referee_without_a_decision_gets_the_repair_turn_and_then_a_digest(
    workspace: Workspace, council: Terminal, answers: FakeAdvisors
) -> None:
    answers.ruling["decision"] = " \n"
    done = council("--json", "--flow", "parallel", QUESTION)
    assert (done.code, done.json["status"]) == (3, "incomplete")
    assert "decision is empty" in workspace.provider.log[-1].prompt
    assert "No chair: digest of statements" in done.json["answer"]


@pytest.mark.behaviour("10-advisors-referee-sections")
def test_empty_items_and_duplicate_headings_are_left_out(
    workspace: Workspace, council: Terminal, answers: FakeAdvisors
) -> None:
    answers.ruling |= {"tensions": ["", "- speed"], "next_steps": ["1) try", " "], "decision": "## Verdict\n\nMove it."}
    answer = council("--json", "--flow", "parallel", QUESTION).json["answer"]
    expected = "## Verdict\n\nMove it.\n\n## Next Steps\n\n1. try\n\n## Tensions\n\n- speed\n\n## Perspectives\n\n"
    assert answer.startswith(expected)
