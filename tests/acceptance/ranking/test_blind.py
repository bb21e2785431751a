"""Blind ranking at the endpoint and in the ledger: prompts, labels and the report."""

from __future__ import annotations

import json

import pytest

from tests.acceptance.helpers import QUESTION, SEATS, Terminal, Workspace, wait_for_exit
from tests.acceptance.ranking.fake_readers import STONES, Readers, keys, shown
from tests.acceptance.test_machine_readable import fits
from tests.acceptance.test_warnings import LONG, TOO_LONG
from tests.fake_provider import Reply

RANKING = ("--json", "--protocol", "ranking")


@pytest.mark.usefixtures("answers")
@pytest.mark.behaviour("10-ranking-calls")
def test_each_phase_is_one_wave_of_requests(workspace: Workspace) -> None:
    gates = {phase: workspace.hold(phase) for phase in ("answer", "rank", "synthesise")}
    process = workspace.process(*RANKING, QUESTION)
    expected: list[str] = []
    for phase, gate in gates.items():
        expected += keys(phase)
        gate.wait(count=len(keys(phase)))
        assert sorted(workspace.asked()) == sorted(expected)
        gate.release()
    done = wait_for_exit(process)
    assert (done.code, done.json["status"], done.json["calls"]["made"]) == (0, "complete", 7), done.err
    assert [len(wave) for wave in workspace.provider.waves()] == [3, 3, 1]


@pytest.mark.usefixtures("answers")
@pytest.mark.behaviour("10-ranking-blind", "10-prompts-name-no-vendor")
def test_no_prompt_names_a_seat_a_vendor_or_a_model_and_no_seat_reads_its_own_answer(
    workspace: Workspace, council: Terminal
) -> None:
    assert council(*RANKING, QUESTION).code == 0
    for seen in workspace.provider.log:
        seat, phase = workspace.answers.who(seen)
        assert not [name for name in (*SEATS, "sim:", '"sim"') if name in seen.prompt.lower()]
        if phase == "rank":
            assert STONES[seat] not in seen.prompt
            assert sorted(shown(seen.prompt).values()) == [name for name in SEATS if name != seat]
        if phase == "answer":
            assert not [stone for stone in STONES.values() if stone in seen.prompt]
        if phase == "synthesise":
            assert sorted(shown(seen.prompt).values()) == sorted(SEATS)


@pytest.mark.usefixtures("answers")
@pytest.mark.behaviour("10-ranking-label-map", "40-fsck")
def test_the_label_map_in_the_ledger_matches_the_prompts(workspace: Workspace, council: Terminal) -> None:
    report = council(*RANKING, QUESTION).json
    told = [json.loads(line) for line in council("runs", "replay", "--jsonl").out.splitlines()]
    labels = {event["reader"]: event["labels"] for event in told if event["type"] == "labels"}
    asked = {workspace.answers.who(seen)[0]: seen.prompt for seen in workspace.provider.log if shown(seen.prompt)}
    assert labels == {reader: shown(prompt) for reader, prompt in asked.items()}
    assert sorted(labels) == sorted((*SEATS, "chair"))
    assert council("runs", "replay", "--json").json == report
    assert council("runs", "fsck").code == 0


@pytest.mark.behaviour("10-ranking-table", "10-ranking-verbose")
def test_the_report_has_table_and_ballots_by_seat(workspace: Workspace, council: Terminal, answers: Readers) -> None:
    done = council(*RANKING, QUESTION)
    report = done.json
    fits(report, "report")
    assert [(row["seat"], row["place"], row["mean_rank"]) for row in report["ranking"]["table"]] == [
        ("alpha", 1, 1.0), ("beta", 2, 1.5), ("gamma", 3, 2.0),
    ]  # fmt: skip
    assert report["ranking"]["ballots"]["gamma"]["order"] == [
        {"seat": "alpha", "why": "Alpha came in as number 1."},
        {"seat": "beta", "why": "Beta came in as number 2."},
    ]
    assert (report["confidence"], report["ranking"]["winner"]) == ("MEDIUM", "alpha")
    text = (workspace.folder / report["report_path"]).read_text(encoding="utf-8")
    assert "## Ranking" in text and "| 1 | Alpha | 1 | 1 | 2 | 2 |" in text
    assert "1. Alpha: Alpha came in as number 1." in text
    plain = council("--protocol", "ranking", QUESTION)
    assert plain.out.partition("\n\n---\n")[0].splitlines()[-1] == report["answer"]


# Absences


@pytest.mark.behaviour("10-ranking-ballot-absent")
@pytest.mark.parametrize(
    "said",
    ["B, then A.", '{"dispute": "", "reasons": [], "order": ["A", "A"]}', '{"dispute": "", "reasons": []}', "[]"],
)
def test_an_unreadable_ballot_is_absent_and_reported(
    workspace: Workspace, council: Terminal, answers: Readers, said: str
) -> None:
    answers.instead["beta/rank"] = Reply(text=said)
    done = council(*RANKING, QUESTION)
    report = done.json
    assert (done.code, report["status"]) == (0, "complete")
    assert workspace.asked().count("rank/beta") == 2
    assert [(row["seat"], row["phase"], row["state"]) for row in report["degraded"] if row["seat"]] == [
        ("beta", "rank", "failed(schema)")
    ]
    assert sorted(report["ranking"]["ballots"]) == ["alpha", "gamma"]
    assert {row["seat"]: row["ballots"] for row in report["ranking"]["table"]} == {"alpha": 1, "beta": 2, "gamma": 1}
    told = council("runs", "replay", "--verbose")
    assert "beta did not answer in rank" in told.out and "Ballots: 2 of 3; absent: beta" in told.out


@pytest.mark.behaviour("10-ranking-ballot-absent")
def test_a_repaired_ballot_counts(workspace: Workspace, council: Terminal, answers: Readers) -> None:
    answers.instead["beta/rank"] = [Reply(text='{"dispute": "", "reasons": [], "order": ["A", "A"]}')]
    report = council(*RANKING, QUESTION).json
    assert sorted(report["ranking"]["ballots"]) == ["alpha", "beta", "gamma"]
    assert [seat["state"] for seat in report["seats"]] == ["ok", "ok_repaired", "ok"]


@pytest.mark.behaviour("10-ranking-verbose", "40-context-too-long")
def test_truncated_answers_are_reported_by_seat(workspace: Workspace, council: Terminal, answers: Readers) -> None:
    answers.instead |= {f"{seat}/answer": Reply(text=f"Build it of {STONES[seat]}. " + LONG) for seat in SEATS}
    answers.instead["gamma/rank"] = [TOO_LONG]
    report = council(*RANKING, QUESTION).json
    (cut,) = [row for row in report["degraded"] if row["state"] == "cut"]
    assert cut["reason"] in (
        "cut to fit sim:gamma: the words of Alpha, the words of Beta",
        "cut to fit sim:gamma: the words of Beta, the words of Alpha",
    )
    assert len(report["ranking"]["ballots"]) == 3


@pytest.mark.behaviour("10-ranking-no-ballot")
def test_without_a_ballot_the_answer_has_a_caveat(workspace: Workspace, council: Terminal, answers: Readers) -> None:
    answers.instead |= {f"{seat}/rank": Reply(text="A") for seat in SEATS}
    done = council("--protocol", "ranking", QUESTION)
    assert done.code == 0
    assert done.out.index("! No reader compared two answers") < done.out.index("The last word")
    assert council("report", "--json").json["confidence"] == "LOW"


@pytest.mark.behaviour("10-ranking-quorum")
def test_a_single_answer_ends_the_run_as_incomplete(workspace: Workspace, council: Terminal, answers: Readers) -> None:
    answers.instead |= {"beta": Reply(status=500), "gamma": Reply(status=500)}
    done = council(*RANKING, QUESTION)
    assert (done.code, done.json["status"], done.json["quorum"]) == (
        3, "incomplete", {"needed": 2, "ok": 1, "asked": 3},
    )  # fmt: skip
    assert not [key for key in workspace.asked() if key.startswith(("rank", "synthesise"))]
    answers.instead.clear()
    again = council("resume", "--json")
    assert (again.code, again.json["status"]) == (0, "complete")
    assert len(again.json["ranking"]["ballots"]) == 3


@pytest.mark.behaviour("10-ranking-reader-without-answer")
def test_a_seat_without_an_answer_reads_both_of_the_others(
    workspace: Workspace, council: Terminal, answers: Readers
) -> None:
    answers.instead["gamma/answer"] = Reply(status=500)
    report = council(*RANKING, QUESTION).json
    assert sorted(shown(workspace.prompt("rank/gamma")).values()) == ["alpha", "beta"]
    assert [row["seat"] for row in report["ranking"]["table"]] == ["alpha", "beta"]
    assert report["status"] == "complete"
    assert "gamma did not answer in the answer phase" in council("runs", "replay").out


@pytest.mark.behaviour("10-no-chair-keeps-what-rules-found")
def test_without_a_chair_the_report_still_has_the_table(
    workspace: Workspace, council: Terminal, answers: Readers
) -> None:
    answers.instead["chair"] = Reply(status=500)
    done = council(*RANKING, QUESTION)
    assert (done.code, done.json["status"], done.json["confidence"]) == (3, "incomplete", None)
    assert "No chair: digest of statements" in done.json["answer"]
    ranking = done.json["ranking"]
    assert ranking["table"][0]["seat"] == ranking["winner"] == "alpha"
    text = (workspace.folder / done.json["report_path"]).read_text(encoding="utf-8")
    assert "| 1 | Alpha | 1 | 1 | 2 | 2 |" in text
