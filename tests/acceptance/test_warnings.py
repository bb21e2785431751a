"""Cut prompts, dropped parameters, truncated answers and unasked seats are reported."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from council import events as ev
from council.render.report import build_report
from council.runs.outcome import StopEvent
from council.runs.service import Convener
from tests.acceptance.helpers import QUESTION, SEATS, Json, Terminal, Workspace, mark
from tests.acceptance.judges.conftest import judges, project
from tests.acceptance.judges.fake_judges import JudgesWorkspace, opinion
from tests.fake_provider import Reply

__all__ = ["judges", "project"]  # fixtures

TOO_LONG = Reply(
    status=400,
    error={
        "error": {"message": "This model's maximum context length is 8192 tokens", "code": "context_length_exceeded"}
    },
)
UNSUPPORTED_PARAMETER = Reply(
    status=400, error={"error": {"message": "Unsupported parameter: 'max_tokens'", "code": "unsupported_parameter"}}
)
LONG = " ".join(f"word{n}" for n in range(800))
LOOP = Reply(text="and so it goes " * 40_000, piece=60)  # longer than what is read at once


def rows(report: Json, *states: str) -> list[tuple[str, str, str]]:
    return [(row["seat"], row["state"], row["reason"]) for row in report["degraded"] if row["state"] in states]


# Too long


@pytest.mark.behaviour("40-context-too-long")
def test_a_judge_with_a_small_window_gets_less_material_and_the_verdict_is_limited(
    judges: JudgesWorkspace, council: Terminal
) -> None:
    (judges.folder / "src" / "zzz.py").write_text("value = 1\n" * 4000)
    judges.judge_answers.instead["judge/judge-2"] = [TOO_LONG]
    done = council("validate", "src", "--json")
    report = done.json
    assert (done.code, report["status"], report["verdict"]) == (3, "complete", "WARN")
    first, again = judges.provider.requests("judge-2")
    assert len(again.raw) < 0.6 * len(first.raw)
    assert again.prompt.startswith(first.prompt[:500]) and "Not all of the material fits" in again.prompt
    assert (report["seats"][1]["state"], report["seats"][1]["attempts"]) == ("ok", 2)
    (hole,) = rows(report, "coverage_hole")
    assert hole == ("judge-2", "coverage_hole", "src/zzz.py: too long for sim:judge-2 as judge-2")
    text = (judges.folder / report["report_path"]).read_text()
    assert "Not shown to the judges: src/zzz.py: too long for sim:judge-2" in text
    assert council("gate").code == 3
    assert council("runs", "fsck").code == 0


@pytest.mark.behaviour("40-context-too-long")
def test_a_judge_whose_cut_prompt_is_still_too_long_is_failed_size(judges: JudgesWorkspace, council: Terminal) -> None:
    judges.judge_answers.instead["judge/judge-2"] = TOO_LONG
    done = council("validate", "src/auth", "--json")
    assert (done.code, done.json["verdict"]) == (0, "PASS")
    assert [state for _, state, _ in rows(done.json, "failed(size)", "coverage_hole")] == ["failed(size)"]
    assert len(judges.provider.requests("judge-2")) == 2
    assert done.json["seats"][1]["state"] == "failed(size)"


@pytest.mark.behaviour("40-context-too-long")
def test_a_chair_that_cannot_fit_all_drafts_gets_their_beginnings(workspace: Workspace, council: Terminal) -> None:
    workspace.answers.instead |= {seat: Reply(text=f"{mark(seat, 'draft')} " + LONG) for seat in SEATS}
    workspace.answers.instead["chair"] = [TOO_LONG]
    done = council("--protocol", "triad", "--json", QUESTION)
    assert (done.code, done.json["status"]) == (0, "complete")
    again = workspace.provider.requests("chair")[1]
    assert QUESTION in again.prompt and all(mark(seat, "draft") in again.prompt for seat in SEATS)
    (caveat,) = rows(done.json, "cut")
    assert caveat[2] == "cut to fit sim:chair: the words of Alpha, the words of Beta, the words of Gamma"


# Cut off


@pytest.mark.behaviour("40-truncated-counts-if-whole")
def test_a_judge_truncated_after_its_verdict_counts_with_low_confidence(
    judges: JudgesWorkspace, council: Terminal
) -> None:
    judges.judge_answers.instead["judge/judge-1"] = Reply(
        text=json.dumps(opinion("FAIL", confidence="HIGH")), finish="length"
    )
    judges.judge_answers.said["judge/judge-2"] = opinion("WARN", confidence="HIGH")
    done = council("validate", "src/auth", "--json")
    report = done.json
    assert (report["verdict"], report["confidence"], report["quorum"]["ok"]) == ("FAIL", "LOW", 2)
    seat = report["seats"][0]
    assert (seat["state"], seat["verdict"], seat["confidence"]) == ("truncated", "FAIL", "LOW")
    caps = [seen.body.get("max_tokens") for seen in judges.provider.requests("judge-1")]
    assert len(caps) == 2 and caps[1] == 2 * (caps[0] or 8192)
    assert [row[:2] for row in rows(report, "truncated")] == [("judge-1", "truncated")]
    text = (judges.folder / report["report_path"]).read_text()
    assert "judge-1's answer was cut off at its length limit, but complete as a reply" in text
    assert council("runs", "fsck").code == 0


@pytest.mark.behaviour("40-truncated-counts-if-whole")
def test_a_judge_truncated_inside_its_verdict_does_not_count(judges: JudgesWorkspace, council: Terminal) -> None:
    judges.judge_answers.instead["judge/judge-1"] = Reply(text='{"verdict": "FA', finish="length")
    done = council("validate", "src/auth", "--json")
    assert (done.json["verdict"], done.json["quorum"]["ok"]) == ("PASS", 1)
    assert (done.json["seats"][0]["state"], done.json["seats"][0]["verdict"]) == ("truncated", None)


# Refused parameters


@pytest.mark.behaviour("40-optional-parameters-are-dropped")
def test_parameters_that_an_endpoint_refuses_are_left_out_and_named(workspace: Workspace, council: Terminal) -> None:
    workspace.answers.instead["chair/triage"] = [UNSUPPORTED_PARAMETER]
    workspace.answers.instead["chair/merge"] = Reply(
        text=json.dumps(workspace.answers.triage("chair", {}))
    )  # asked without a form
    done = council("--protocol", "adversarial", "--json", QUESTION)
    assert (done.code, done.json["status"]) == (0, "complete")
    first, again = workspace.provider.requests("chair")[:2]
    dropped = {name for name in first.body if name not in again.body}
    assert dropped == {"stream_options", "response_format"}
    reason = "sim:chair was asked without stream_options, response_format, which it refused"
    assert rows(done.json, "dropped") == [("chair", "dropped", reason)]
    assert "which it refused" in council("runs", "replay").out


# Loops


@pytest.mark.behaviour("40-repetition-loop")
def test_a_looping_answer_is_stopped_twice_and_its_seat_is_degenerate(workspace: Workspace, council: Terminal) -> None:
    workspace.answers.instead["beta"] = LOOP
    done = council("--protocol", "triad", "--jsonl", QUESTION)
    assert done.code == 0
    lines = [json.loads(line) for line in done.out.splitlines()]
    received = sum(len(line["text"]) for line in lines if line["type"] == "delta" and line["seat"] == "beta")
    assert received < len(LOOP.text or "")
    (absence,) = [line for line in lines if line["type"] == "absence"]
    assert (absence["seat"], absence["state"], absence["attempts"]) == ("beta", "degenerate", 2)
    assert [seen.body.get("temperature") for seen in workspace.provider.requests("beta")] == [None, 0.7]


# --no-resend and --grace


@pytest.mark.behaviour("40-no-resend")
def test_a_run_with_no_resend_leaves_interrupted_requests_in_doubt(workspace: Workspace, council: Terminal) -> None:
    workspace.answers.instead["beta"] = Reply(cut=10)
    done = council("--no-resend", "--protocol", "triad", "--json", QUESTION)
    assert (done.code, done.json["calls"]["in_doubt"]) == (0, 1)
    assert [seat["state"] for seat in done.json["seats"]] == ["ok", "in_doubt", "ok"]
    assert len(workspace.provider.requests("beta")) == 1


@pytest.mark.behaviour("40-no-resend")
def test_no_resend_is_kept_when_the_run_is_resumed(workspace: Workspace, council: Terminal) -> None:
    workspace.answers.instead |= dict.fromkeys(SEATS, Reply(cut=10))
    assert council("--no-resend", "--protocol", "triad", QUESTION).code == 1
    sent = len(workspace.provider.log)
    assert (sent, council("resume").code) == (3, 1)
    assert len(workspace.provider.log) == 6  # each seat asked once more


@pytest.mark.behaviour("40-grace")
def test_the_grace_flag_drops_a_silent_seat(workspace: Workspace, council: Terminal) -> None:
    workspace.answers.instead["gamma"] = Reply(hang=True)
    done = council("--grace", "3", "--timeout", "60", "--json", QUESTION)
    assert (done.code, done.json["status"]) == (0, "complete")
    (row,) = rows(done.json, "timed_out")
    assert row == ("gamma", "timed_out", "left behind after 3 s grace")


@pytest.mark.behaviour("40-grace")
@pytest.mark.parametrize("value", ["-1", "nan", "inf"])
def test_an_invalid_grace_is_rejected(workspace: Workspace, council: Terminal, value: str) -> None:
    done = council("--grace", value, QUESTION)
    assert (done.code, workspace.provider.log) == (2, [])
    assert "is out of range: use 0 or more seconds" in done.err


# Stopped


@pytest.mark.anyio
@pytest.mark.behaviour("40-skipped-cancel")
async def test_a_seat_that_was_not_asked_when_the_run_stopped_is_skipped(workspace: Workspace) -> None:
    gate, stop, answered = workspace.hold("draft", "gamma"), StopEvent(), asyncio.Event()
    convener = Convener()

    def listen(entry: ev.Entry) -> None:
        if isinstance(entry.event, ev.Stated) and entry.event.seat == "beta":
            answered.set()

    try:
        plan = await convener.plan([QUESTION], protocol="triad")
        run: asyncio.Task[Any] = asyncio.ensure_future(convener.run(plan, listen, stop=stop))
        await asyncio.to_thread(gate.wait)  # the request of gamma has arrived
        await answered.wait()
        stop.set()
        minutes = await run
    finally:
        await convener.close()
    value = build_report(minutes)
    assert (value["status"], value["chair"]["state"]) == ("incomplete", "skipped(cancel)")
    assert value["seats"][2]["state"] == "no_answer"
