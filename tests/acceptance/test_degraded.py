"""A run ends even if members fail, and reports the absences above the answer."""

from __future__ import annotations

import json
import socket

import pytest

from council.engine.council import Council
from council.protocols import Protocol, register
from council.protocols.collaborative import SEATS as COLLABORATIVE_SEATS
from council.runs.service import Convener
from council.types import Seat, Verdict
from tests.acceptance.helpers import QUESTION, SEATS, Json, Result, Terminal, Workspace, mark
from tests.fake_provider import Reply

SERVER_ERROR = Reply(status=500)
AUTH_ERROR = Reply(status=401, error={"error": {"message": "invalid key", "code": "invalid_api_key"}})
NO_CREDIT = Reply(status=429, error={"error": {"message": "no credit left", "code": "insufficient_quota"}})
WRONG_SCHEMA = Reply(wrong_schema=True)
LAST = {"collaborative": "synthesise", "adversarial": "verdict", "triad": "merge"}


def missing(report: Json) -> list[tuple[str, str, str]]:
    return [(row["seat"], row["phase"], row["state"]) for row in report["degraded"] if row["seat"]]


def above(done: Result, words: str) -> list[str]:
    """Return the lines above the first line that contains `words`."""
    lines = done.out.splitlines()
    return lines[: next(n for n, line in enumerate(lines) if words in line)]


def shown(workspace: Workspace, council: Terminal) -> Result:
    """Replay the newest run to get its answer as printed."""
    done = council("runs", "replay")
    assert done.code == 0
    return done


@pytest.mark.behaviour("40-500-retried-twice", "10-absent-listed-above-answer", "00-exit-complete-degraded")
@pytest.mark.parametrize("protocol", LAST)
def test_a_seat_that_answers_500_is_asked_three_times_and_listed_absent(
    workspace: Workspace, council: Terminal, protocol: str
) -> None:
    workspace.answers.instead["beta"] = SERVER_ERROR
    done = council("--protocol", protocol, QUESTION)
    assert done.code == 0
    lines = above(done, mark("chair", LAST[protocol]))
    (line,) = (line for line in lines if line.startswith("! beta did not answer"))
    assert line.startswith("! beta did not answer (sim:beta: server error: 500")
    assert "What follows is from two of three seats" in line
    report = council("report", "--format", "json").json
    assert report["status"] == "complete"
    assert missing(report) == [("beta", "draft", "failed(server)")]
    assert report["quorum"] == {"needed": 1, "ok": 2, "asked": 3}
    assert workspace.asked().count("draft/beta") == len(workspace.provider.requests("beta")) == 3
    assert mark("beta", "draft") not in workspace.prompt(f"{LAST[protocol]}/chair")
    (path,) = workspace.reports()
    text = path.read_text()
    assert text.index("> beta did not answer (sim:beta: server error: 500") < text.index("## Answer")


@pytest.mark.behaviour("40-hang-timed-out")
def test_a_seat_that_hangs_is_timed_out_and_not_waited_for_again(workspace: Workspace, council: Terminal) -> None:
    workspace.answers.instead["gamma"] = Reply(hang=True)
    done = council("--timeout", "4", "--json", QUESTION)
    assert done.code == 0
    assert missing(done.json) == [("gamma", "draft", "timed_out")]
    assert workspace.asked().count("draft/gamma") == len(workspace.provider.requests("gamma")) == 1
    assert (
        "! gamma did not answer (sim:gamma: ran out of time: no answer within 4 s). What follows is from two of three seats"
        in shown(workspace, council).out
    )


@pytest.mark.behaviour("40-schema-twice-absent", "40-repair-turn")
def test_an_attacker_that_fails_its_schema_twice_is_absent(workspace: Workspace, council: Terminal) -> None:
    workspace.answers.instead["gamma/attack"] = WRONG_SCHEMA
    done = council("--protocol", "adversarial", "--json", QUESTION)
    assert (done.code, done.json["status"], done.json["outcome"]) == (0, "complete", "MODIFIED")
    assert missing(done.json) == [("gamma", "attack", "failed(schema)")]
    first, repair = (
        seen for seen in workspace.provider.requests("gamma") if workspace.answers.who(seen)[1] == "attack"
    )
    assert repair.body["messages"][:2] == first.body["messages"]
    assistant, user = repair.body["messages"][2:]
    assert assistant["role"] == "assistant" and "unexpected" in assistant["content"]
    assert user["role"] == "user" and "issues and verdict are missing" in user["content"]
    lines = above(shown(workspace, council), mark("chair", "verdict"))
    (line,) = (line for line in lines if line.startswith("! gamma did not answer"))
    assert line.startswith("! gamma did not answer in attack (sim:gamma: the answer did not match the schema: ")
    assert "issues and verdict are missing" in line
    assert line.endswith("Its earlier statement counts.")


@pytest.mark.behaviour("40-repair-turn")
def test_a_triage_that_does_not_fit_is_repaired_in_one_turn(workspace: Workspace, council: Terminal) -> None:
    workspace.answers.instead["chair/triage"] = [WRONG_SCHEMA]
    done = council("--protocol", "adversarial", "--jsonl", QUESTION)
    assert done.code == 0
    assert '"state": "ok_repaired"' in done.out
    repair = workspace.provider.requests("chair")[1].body["messages"]
    assert "agreed, contested, same_conclusion" in repair[-1]["content"]
    assert [workspace.asked().count(key) for key in ("triage/chair", "attack/beta", "verdict/chair")] == [2, 1, 1]


@pytest.mark.behaviour("10-prose-of-the-chair")
def test_prose_of_the_chair_is_the_answer_and_the_missing_parts_are_stated_above_it(
    workspace: Workspace, council: Terminal
) -> None:
    prose = "Adopt the plan, but move the export behind a flag first. The lock on the table is the risk that remains."
    workspace.answers.instead["chair/verdict"] = Reply(text=prose)
    done = council("--protocol", "adversarial", "--json", QUESTION)
    assert done.json["answer"].startswith(prose)
    assert done.json["trust"]["level"] != "HIGH"
    assert ("chair", "verdict", "prose") in missing(done.json)
    assert workspace.asked().count("verdict/chair") == 2
    lines = above(shown(workspace, council), prose)
    assert any("chair answered in prose" in line and "outcome" in line for line in lines)


@pytest.mark.behaviour("10-replies-salvaged")
def test_a_value_that_cannot_be_read_costs_that_value_and_is_named_in_the_report(
    workspace: Workspace, council: Terminal
) -> None:
    reply = {"points": [], "outcome": "it depends on the reader", "answer": "Adopt the plan.", "assessment": "Calm."}
    workspace.answers.instead["chair/verdict"] = Reply(text=json.dumps(reply))
    done = council("--protocol", "adversarial", "--json", QUESTION)
    assert (done.code, done.json["status"], done.json["outcome"]) == (0, "complete", None)
    assert done.json["answer"].startswith("Adopt the plan.") and "Calm." in done.json["answer"]
    assert workspace.asked().count("verdict/chair") == 2
    (row,) = (row for row in done.json["degraded"] if row["state"] == "unread")
    assert (row["seat"], row["phase"]) == ("chair", "verdict")
    assert row["reason"] == "the chair's reply: outcome could not be read"
    assert done.json["trust"]["level"] != "HIGH"
    assert any(
        "The chair's reply: outcome could not be read." in line for line in above(shown(workspace, council), "Adopt")
    )


@pytest.mark.behaviour("10-final-answer-clean", "10-tail-quoted")
def test_the_stored_answer_has_no_wrappers_and_no_line_like_the_tail(workspace: Workspace, council: Terminal) -> None:
    text = "Certainly! Here is the final answer:\n\nGo by sea.\n\nTrust: HIGH — 9 of 9 seats\n\nLet me know if you need more."
    workspace.answers.instead["chair"] = Reply(text=text)
    done = council("--json", QUESTION)
    assert done.json["answer"] == "Go by sea.\n\n> Trust: HIGH — 9 of 9 seats"


@pytest.mark.behaviour("10-chair-names-absent-seat")
def test_a_triage_that_names_an_absent_seat_gets_the_repair_turn(workspace: Workspace, council: Terminal) -> None:
    workspace.answers.instead |= {"beta": SERVER_ERROR, "chair/triage": [Reply(text=_naming(workspace, "beta"))]}
    workspace.answers.leader = "gamma"
    done = council("--protocol", "adversarial", "--json", QUESTION)
    assert done.code == 0
    first, second, _ = workspace.provider.requests("chair")
    assert first.schema and first.schema["properties"]["leader"]["enum"] == ["alpha", "gamma"]
    assert '"beta" is not one of alpha, gamma' in second.body["messages"][-1]["content"]
    assert [key for key in workspace.asked() if key.startswith("attack/")] == ["attack/alpha"]


def _naming(workspace: Workspace, leader: str) -> str:
    return json.dumps(workspace.answers.triage("chair", {}) | {"leader": leader})


@pytest.mark.behaviour("00-fallback-shown")
def test_a_fallback_serves_and_both_names_are_shown(workspace: Workspace, council: Terminal) -> None:
    workspace.configure(beta=["sim:spare"])
    workspace.answers.seat_of["spare"] = "beta"
    workspace.answers.instead["beta"] = SERVER_ERROR
    done = council("--json", "--protocol", "triad", QUESTION)
    assert done.code == 0
    beta = done.json["seats"][1]
    assert (beta["model"], beta["served_by"], beta["state"]) == ("sim:beta", "sim:spare", "ok")
    assert beta["attempts"] == 4
    assert missing(done.json) == [("beta", "draft", "fallback")]
    assert "! beta requested sim:beta (server error): sim:spare answered instead." in done.err
    (path,) = workspace.reports()
    assert "| sim:beta | sim:spare | ok |" in path.read_text()
    assert mark("beta", "draft") in workspace.prompt("merge/chair")


@pytest.mark.behaviour("10-no-chair-digest", "00-exit-incomplete", "40-resume-after-chair")
@pytest.mark.parametrize(
    ("protocol", "phase", "death"),
    [
        pytest.param(protocol, phase, death, id=f"{protocol}-{phase}-{death.status}")
        for protocol, phase in (("collaborative", "synthesise"), ("adversarial", "verdict"), ("triad", "merge"))
        for death in (SERVER_ERROR, AUTH_ERROR)
    ]
    + [pytest.param("adversarial", "triage", AUTH_ERROR, id="adversarial-triage-401")],
)
def test_without_a_chair_there_is_a_digest_and_resume_asks_only_the_chair(
    workspace: Workspace, council: Terminal, protocol: str, phase: str, death: Reply
) -> None:
    workspace.answers.instead[f"chair/{phase}"] = death
    dead = council("--protocol", protocol, "--json", QUESTION)
    assert (dead.code, dead.json["status"], dead.json["outcome"]) == (3, "incomplete", None)
    answer = dead.json["answer"]
    assert answer.startswith("## No chair: digest of statements\n")
    assert all(f"### {seat.capitalize()}" in answer for seat in SEATS)
    lines = above(shown(workspace, council), "## No chair")
    assert lines[0].startswith("! INCOMPLETE: no chair was available")
    assert any(line.startswith(f"! the chair did not answer in {phase} (sim:chair: ") for line in lines)
    (path,) = workspace.reports()
    assert path.read_text().startswith("# INCOMPLETE: ")
    sent = len(workspace.provider.log)
    del workspace.answers.instead[f"chair/{phase}"]
    alive = council("resume", "--json")
    assert (alive.code, alive.json["status"], missing(alive.json)) == (0, "complete", [])
    assert not [key for key in workspace.asked(sent) if key.startswith(("draft/", "improve/"))]
    assert mark("chair", LAST[protocol]) in alive.json["answer"]
    assert alive.json["report_path"] == dead.json["report_path"]
    assert not path.read_text().startswith("# INCOMPLETE")
    assert council("runs", "fsck").code == 0


@pytest.mark.behaviour("00-exit-failed", "00-exit-no-access")
@pytest.mark.parametrize(
    ("faults", "code"),
    [
        ((AUTH_ERROR,) * 3, 4),
        ((AUTH_ERROR, NO_CREDIT, NO_CREDIT), 4),
        ((SERVER_ERROR,) * 3, 1),
        ((AUTH_ERROR, AUTH_ERROR, SERVER_ERROR), 1),
    ],
    ids=["401", "401 and quota", "500", "401 and 500"],
)
def test_without_a_single_statement_the_run_failed(
    workspace: Workspace, council: Terminal, faults: tuple[Reply, ...], code: int
) -> None:
    workspace.answers.instead |= dict(zip(SEATS, faults, strict=True))
    done = council("--json", QUESTION)
    assert (done.code, done.json["status"], done.json["answer"]) == (code, "failed", "")
    assert [seat for seat, *_ in missing(done.json)] == list(SEATS)
    assert not workspace.provider.requests("chair")
    assert shown(workspace, council).out.startswith("! FAILED: no seat answered")
    assert council("runs", "fsck").code == 0
    workspace.answers.instead.clear()
    again = council("resume", "--json")
    assert (again.code, again.json["status"], missing(again.json)) == (0, "complete", [])
    assert council("runs", "fsck").code == 0


@pytest.mark.behaviour("40-net-unreachable")
def test_an_endpoint_that_cannot_be_reached_is_exit_1(workspace: Workspace, council: Terminal) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        workspace.configure(base_url=f"http://127.0.0.1:{taken.getsockname()[1]}/v1")
        done = council("--json", QUESTION)
    assert (done.code, done.json["status"]) == (1, "failed")
    assert missing(done.json) == [(seat, "draft", "failed(net)") for seat in SEATS]
    assert all(seat["attempts"] == 5 for seat in done.json["seats"])


@pytest.mark.behaviour("10-one-draft-collaborative")
def test_one_draft_goes_straight_to_the_synthesis(workspace: Workspace, council: Terminal) -> None:
    workspace.answers.instead |= {"alpha": AUTH_ERROR, "gamma": AUTH_ERROR}
    done = council("--json", "--protocol", "collaborative", QUESTION)
    assert (done.code, done.json["status"]) == (0, "complete")
    assert missing(done.json) == [("alpha", "draft", "failed(auth)"), ("gamma", "draft", "failed(auth)")]
    assert len(workspace.provider.log) == 4
    assert mark("beta", "draft") in workspace.provider.log[-1].prompt
    lines = above(shown(workspace, council), mark("chair", "merge"))
    assert "! Only beta drafted: nothing was compared, the answer rests on one draft." in lines


@pytest.mark.behaviour("10-one-draft-adversarial")
def test_one_draft_has_no_outcome(workspace: Workspace, council: Terminal) -> None:
    workspace.answers.instead |= {"alpha": SERVER_ERROR, "gamma": AUTH_ERROR}
    done = council("--json", "--protocol", "adversarial", QUESTION)
    assert (done.code, done.json["status"]) == (3, "incomplete")
    assert (done.json["outcome"], done.json["confidence"]) == (None, None)
    assert mark("chair", "verdict") in done.json["answer"]
    lines = above(shown(workspace, council), mark("chair", "verdict"))
    assert lines[0] == "! INCOMPLETE: only one draft was made, so the answer below was not tested."
    assert sorted(set(workspace.asked())) == ["draft/alpha", "draft/beta", "draft/gamma", "verdict/chair"]


@pytest.mark.behaviour("10-two-drafts")
def test_with_two_drafts_one_seat_attacks_and_both_improve(workspace: Workspace, council: Terminal) -> None:
    workspace.answers.instead["gamma"] = AUTH_ERROR
    assert council("--protocol", "adversarial", QUESTION).code == 0
    assert [key for key in workspace.asked() if key.startswith("attack/")] == ["attack/beta"]
    workspace.provider.forget()
    assert council("--protocol", "collaborative", QUESTION).code == 0
    assert sorted(key for key in workspace.asked() if key.startswith("improve/")) == ["improve/alpha", "improve/beta"]
    assert all(mark(seat, "draft") in workspace.prompt("improve/alpha") for seat in ("alpha", "beta"))


@pytest.mark.behaviour("10-absent-improver-keeps-draft")
def test_an_improver_that_is_absent_keeps_its_draft(workspace: Workspace, council: Terminal) -> None:
    workspace.answers.instead["beta/improve"] = SERVER_ERROR
    done = council("--json", QUESTION)
    assert (done.code, missing(done.json)) == (0, [("beta", "improve", "failed(server)")])
    prompt = workspace.prompt("synthesise/chair")
    answers, _, openings = prompt.partition("# How they began")
    assert mark("beta", "draft") in answers
    assert mark("alpha", "draft") not in answers and mark("alpha", "improve") in answers
    assert mark("alpha", "draft") in openings  # the first words of the drafts, for the notes


@pytest.mark.behaviour("10-no-attacker", "00-exit-incomplete")
def test_without_an_attacker_the_answer_is_given_and_the_run_is_incomplete(
    workspace: Workspace, council: Terminal
) -> None:
    workspace.answers.instead |= {"beta/attack": SERVER_ERROR, "gamma/attack": WRONG_SCHEMA}
    done = council("--json", "--protocol", "adversarial", QUESTION)
    assert (done.code, done.json["status"], done.json["outcome"]) == (3, "incomplete", None)
    assert (done.json["leader"], done.json["rulings"], done.json["trust"]["level"]) == ("alpha", [], "LOW")
    lines = above(shown(workspace, council), mark("chair", "verdict"))
    assert lines[0] == "! INCOMPLETE: no attacker answered, so the answer below was not tested."
    assert council("runs", "fsck").code == 0


@pytest.mark.behaviour("10-triage-fails")
def test_the_chairs_fallback_triages(workspace: Workspace, council: Terminal) -> None:
    workspace.configure(chair=["sim:spare"])
    workspace.answers.seat_of["spare"] = "chair"
    workspace.answers.leader = "gamma"
    workspace.answers.instead["chair/triage"] = SERVER_ERROR
    done = council("--json", "--protocol", "adversarial", QUESTION)
    assert (done.code, done.json["status"], done.json["leader"]) == (0, "complete", "gamma")
    assert mark("chair", "triage") in done.json["leader_reason"]


@pytest.mark.behaviour("10-triage-fails")
def test_a_failed_triage_does_not_end_the_run(workspace: Workspace, council: Terminal) -> None:
    workspace.answers.instead["chair/triage"] = SERVER_ERROR
    done = council("--json", "--protocol", "adversarial", QUESTION)
    assert (done.code, done.json["status"], done.json["outcome"]) == (0, "complete", "MODIFIED")
    assert done.json["leader"] == "alpha" and "fewest CRITICAL flags" in done.json["leader_reason"]


async def twice(council: Council) -> Verdict:
    """Ask every seat in two phases."""
    for phase in ("first", "second"):
        async with council.phase(phase):
            answers = await council.poll(council.members, "twice/say")
    return Verdict(", ".join(answers))


@pytest.mark.behaviour("10-out-for-the-run", "10-other-failures-asked-again")
@pytest.mark.anyio
async def test_seat_that_is_out_is_not_asked_again_and_one_that_failed_once_is(workspace: Workspace) -> None:
    (prompts := workspace.folder / "prompts" / "twice").mkdir(parents=True)
    (prompts / "say.md").write_text("Say something.")
    seats = (*COLLABORATIVE_SEATS, Seat("delta"))
    register(Protocol("twice", twice, seats, chair=None, prompts=prompts.parent))
    workspace.configure(more='[seats.delta]\nmodel = "sim:delta"\nfallback = []\n')
    workspace.answers.instead |= {"alpha": Reply(hang=True), "beta": [SERVER_ERROR] * 3, "gamma": AUTH_ERROR}
    convener = Convener(flags={"timeout": 4.0})
    try:
        minutes = await convener.run(await convener.plan([QUESTION], protocol="twice"), lambda entry: None)
    finally:
        await convener.close()
    assert {seat: len(workspace.provider.requests(seat)) for seat in (*SEATS, "delta")} == {
        "alpha": 1, "beta": 4, "gamma": 1, "delta": 2,
    }  # fmt: skip
    assert (minutes.status, minutes.verdict["answer"]) == ("complete", "beta, delta")
    second = minutes.phases["second"].absent
    assert {seat: (missed.state, missed.reason) for seat, missed in second.items()} == {
        "alpha": ("timed_out", "out since it was timed_out in first"),
        "gamma": ("failed(auth)", "out since it was failed(auth) in first"),
    }


@pytest.mark.behaviour("00-exit-incomplete")
@pytest.mark.anyio
async def test_quorum_lost_after_some_statements_is_incomplete_and_can_be_resumed(workspace: Workspace) -> None:
    (prompts := workspace.folder / "prompts" / "twice").mkdir(parents=True)
    (prompts / "say.md").write_text("Say something.")
    register(Protocol("lost", twice, COLLABORATIVE_SEATS, chair=None, prompts=prompts.parent))
    workspace.answers.instead |= {seat: [Reply(), *[SERVER_ERROR] * 3] for seat in SEATS}
    first, second = Convener(), Convener()
    try:
        lost = await first.run(await first.plan([QUESTION], protocol="lost"), lambda entry: None)
    finally:
        await first.close()
    assert (lost.status, lost.stopped) == ("incomplete", "quorum")
    assert lost.verdict["answer"].startswith("## Quorum lost: digest of statements\n")
    try:
        resumed = await second.resume(lost.run, lambda entry: None)
    finally:
        await second.close()
    assert (resumed.status, resumed.verdict["answer"]) == ("complete", "alpha, beta, gamma")
    assert {len(workspace.provider.requests(seat)) for seat in SEATS} == {5}
