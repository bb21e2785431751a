"""Forks: other members from a phase on; unchanged requests are not sent again."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from pathlib import Path

import pytest

from council import events as ev
from council.runs.service import Convener
from tests.acceptance.crash_trials import library_processes
from tests.acceptance.general.conftest import general
from tests.acceptance.general.fake_general import FakeGeneral, answer, claim, position
from tests.acceptance.helpers import QUESTION, SEATS, Json, Result, Terminal, Workspace, comparable, mark
from tests.acceptance.judges.conftest import judges, project
from tests.acceptance.judges.fake_judges import JudgesWorkspace, opinion, second
from tests.fake_provider import Reply, Seen

__all__ = ["general", "judges", "project"]


def other_beta(workspace: Workspace) -> None:
    """Configure a second model for beta that answers differently."""
    workspace.answers.seat_of["other"] = "beta"

    def speak(seen: Seen) -> Reply:
        _, phase = workspace.answers.who(seen)
        return Reply(text=f"Quite another {phase}: {mark('beta', phase)}.")

    workspace.answers.instead["other"] = speak


def finish_run(council: Terminal, protocol: str = "collaborative") -> str:
    done = council("--json", "--protocol", protocol, QUESTION)
    assert (done.code, done.json["status"]) == (0, "complete")
    return str(done.json["run"])


def parent_of(workspace: Workspace, council: Terminal) -> str:
    """Finish a collaborative run and clear the request log."""
    other_beta(workspace)
    run = finish_run(council)
    workspace.provider.forget()
    return run


def check_store(council: Terminal) -> None:
    done = council("runs", "fsck")
    assert done.code == 0, done.out


# Requests


@pytest.mark.behaviour("issue-6-fork-improve", "50-fork")
def test_a_fork_with_another_beta_from_improve_sends_two_requests(workspace: Workspace, council: Terminal) -> None:
    run = parent_of(workspace, council)
    fork = council("fork", run, "--from", "improve", "--seat", "beta=sim:other", "--json")
    assert (fork.code, fork.json["status"]) == (0, "complete")
    assert workspace.asked() == ["improve/beta", "synthesise/chair"]
    assert "Quite another improve" in workspace.prompt("synthesise/chair")
    assert mark("alpha", "improve") in workspace.prompt("synthesise/chair")
    assert fork.json["calls"] == {"made": 2, "replayed": 5, "in_doubt": 0}
    check_store(council)


@pytest.mark.behaviour("issue-6-fork-draft")
def test_a_fork_from_draft_sends_five_requests_because_all_seats_read_beta(
    workspace: Workspace, council: Terminal
) -> None:
    run = parent_of(workspace, council)
    fork = council("fork", run, "--from", "draft", "--seat", "beta=sim:other", "--json")
    assert sorted(workspace.asked()) == [
        "draft/beta",
        "improve/alpha",
        "improve/beta",
        "improve/gamma",
        "synthesise/chair",
    ]
    assert fork.json["calls"] == {"made": 5, "replayed": 2, "in_doubt": 0}
    check_store(council)


@pytest.mark.behaviour("50-fork")
@pytest.mark.parametrize("flags", [(), ("--from", "draft"), ("--from", "synthesise"), ("--seat", "beta=sim:beta")])
def test_a_fork_without_changes_sends_no_requests(
    workspace: Workspace, council: Terminal, flags: tuple[str, ...]
) -> None:
    run = parent_of(workspace, council)
    before = council("report", run, "--json").json
    fork = council("fork", run, *flags, "--json")
    assert (fork.code, workspace.provider.log) == (0, [])
    assert fork.json["calls"] == {"made": 0, "replayed": 7, "in_doubt": 0}
    assert fork.json["answer"] == before["answer"]
    assert fork.json["cost"] == {"usd": 0, "estimated": False, "unpriced": []}
    check_store(council)


def test_another_chair_is_asked_only_for_the_synthesis(workspace: Workspace, council: Terminal) -> None:
    workspace.answers.seat_of["spare"] = "chair"
    run = parent_of(workspace, council)
    council("fork", run, "--seat", "chair=sim:spare")
    assert workspace.asked() == ["synthesise/chair"]
    assert workspace.provider.log[0].model == "spare"


def test_a_fork_of_a_fork_reuses_the_same_answers(workspace: Workspace, council: Terminal) -> None:
    run = parent_of(workspace, council)
    first = council("fork", run, "--from", "improve", "--seat", "beta=sim:other", "--json").json["run"]
    workspace.provider.forget()
    again = council("fork", first, "--from", "improve", "--seat", "beta=sim:beta", "--json")
    assert workspace.asked() == ["improve/beta", "synthesise/chair"]
    assert again.json["fork"] == {"run": first, "from": "improve"}
    check_store(council)


# Output


@pytest.mark.behaviour("50-fork-told")
def test_the_report_names_the_parent_run_and_the_reused_answers(workspace: Workspace, council: Terminal) -> None:
    run = parent_of(workspace, council)
    fork = council("fork", run, "--from", "improve", "--seat", "beta=sim:other", "--json").json
    assert fork["fork"] == {"run": run, "from": "improve"}
    (path,) = [path for path in workspace.reports() if f"| Run | {fork['run']} |" in path.read_text()]
    said = path.read_text()
    assert f"| Fork | of {run} from improve on, 5 statements taken from it |" in said
    assert "| Calls | 2 made, 5 replayed, 0 in doubt |" in said
    shown = council("runs", "show", fork["run"]).out
    assert f"protocol collaborative: a fork of {run} from improve on" in shown


def test_seats_that_share_a_vendor_only_in_the_fork_are_noted(workspace: Workspace, council: Terminal) -> None:
    lines = ["[providers.simb]", f'base_url = "{workspace.provider.base_url}"', "[providers.simc]"]
    workspace.configure(more="\n".join([*lines, f'base_url = "{workspace.provider.base_url}"']))
    workspace.answers.seat_of |= {"b": "beta", "c": "gamma"}
    apart = ("--seat", "beta=simb:b", "--seat", "gamma=simc:c")
    run = council("--json", "--protocol", "triad", *apart, QUESTION).json["run"]
    assert "agreement means less" not in council("report", run).out
    fork = council("fork", run, "--seat", "beta=sim:beta", "--json").json["run"]
    assert "alpha and beta use the same vendor (sim), so their agreement means less" in council("report", fork).out


@pytest.mark.behaviour("50-fork-told")
def test_a_member_that_will_not_be_asked_causes_a_warning(workspace: Workspace, council: Terminal) -> None:
    run = parent_of(workspace, council)
    late = council("fork", run, "--from", "synthesise", "--seat", "beta=sim:other")
    warning = (
        f"! beta was not asked from synthesise on in run {run}, so sim:other may never be: fork from an earlier phase."
    )
    assert late.code == 0
    assert workspace.provider.log == []
    assert warning in late.err.splitlines()
    (fork,) = {*workspace.runs()} - {run}
    again = council("fork", fork, "--from", "improve", "--seat", "beta=sim:beta")
    assert again.code == 0
    assert "fork from an earlier phase" not in again.err


@pytest.mark.behaviour("50-fork-refused")
@pytest.mark.parametrize(
    ("flags", "line"),
    [
        (("--from", "attack"), 'has no phase "attack" to fork from: it has draft, improve, synthesise'),
        (("--seat", "delta=sim:m1"), '--seat sets "delta", but this run has no such seat: its seats are alpha, beta, gamma, chair'),
        (("--seat", "beta=nope:m1"), 'unknown provider "nope" in "nope:m1"'),
        (("--seat", "beta"), '--seat "beta" is not NAME=MEMBER'),
    ],
)  # fmt: skip
def test_an_invalid_fork_is_a_one_line_error_and_sends_nothing(
    workspace: Workspace, council: Terminal, flags: tuple[str, ...], line: str
) -> None:
    run = parent_of(workspace, council)
    refused = council("fork", run, *flags)
    assert refused.code == 2
    assert line in refused.err
    assert refused.err.count("\n") == 1
    assert (workspace.provider.log, len(workspace.runs())) == ([], 1)


def test_a_fork_of_an_unknown_run_names_it(workspace: Workspace, council: Terminal) -> None:
    refused = council("fork", "r2222")
    assert (refused.code, refused.err.count("\n")) == (2, 1)
    assert 'there is no run "r2222"' in refused.err


# Crashes


def die_forking(folder: Path, env: dict[str, str], run: str, seq: int) -> None:
    """Fork in this process, and kill it with SIGKILL when event `seq` is emitted."""

    def listen(entry: ev.Entry) -> None:
        if entry.seq == seq:
            os.kill(os.getpid(), signal.SIGKILL)

    async def work() -> None:
        convener = Convener(folder, env)
        await convener.fork(run, listen, phase="improve", seats={"beta": "sim:other"})

    asyncio.run(work())


@pytest.mark.behaviour("50-fork-resumed")
def test_a_fork_killed_in_any_phase_resumes_to_the_same_result(workspace: Workspace, council: Terminal) -> None:
    run = parent_of(workspace, council)
    calm = council("fork", run, "--from", "improve", "--seat", "beta=sim:other", "--json").json
    ends = workspace.rows("SELECT seq FROM events WHERE run = ? AND type IN ('phase', 'phase_ended', 'statement', 'closed')", calm["run"])  # fmt: skip
    resumed = 0
    for (seq,) in ends:
        workspace.provider.forget()
        process = library_processes().Process(target=die_forking, args=(workspace.folder, dict(os.environ), run, seq))
        process.start()
        process.join(60)
        assert process.exitcode == -signal.SIGKILL
        check_store(council)
        if not workspace.rows(
            "SELECT 1 FROM runs WHERE status = 'running'"
        ):  # a run is stored before its first request
            assert workspace.asked() == []
            continue
        resumed += 1
        told = council("resume", "--json").json
        assert told["status"] == "complete"
        assert {key: told[key] for key in ("fork", "answer")} == {key: calm[key] for key in ("fork", "answer")}
        assert _comparable(told) == _comparable(calm)
        assert sorted(set(workspace.asked())) == ["improve/beta", "synthesise/chair"]
        assert len(workspace.asked()) <= 2 + told["calls"]["in_doubt"]  # one may not have been sent yet
        check_store(council)
    assert resumed >= 4


def _comparable(report: Json) -> Json:
    return {key: value for key, value in comparable(report).items() if key != "report_path"}


# Absences


@pytest.mark.behaviour("50-fork-absences")
def test_a_seat_absent_before_the_fork_stays_absent(workspace: Workspace, council: Terminal) -> None:
    other_beta(workspace)
    workspace.answers.instead["gamma/draft"] = Reply(status=400, error={"error": {"message": "no", "code": "context_length_exceeded"}})  # fmt: skip
    run = finish_run(council)
    del workspace.answers.instead["gamma/draft"]
    workspace.provider.forget()
    fork = council("fork", run, "--from", "improve", "--seat", "beta=sim:other", "--json").json
    assert workspace.asked() == ["improve/beta", "synthesise/chair"]
    assert [(row["seat"], row["phase"]) for row in fork["degraded"] if row["seat"]] == [("gamma", "draft")]
    check_store(council)


@pytest.mark.behaviour("50-fork-absences")
def test_a_seat_absent_after_the_fork_is_asked_again(workspace: Workspace, council: Terminal) -> None:
    workspace.answers.instead["gamma"] = Reply(status=401)
    run = finish_run(council)
    del workspace.answers.instead["gamma"]
    workspace.provider.forget()
    fork = council("fork", run, "--json").json
    assert sorted(workspace.asked()) == [
        "draft/gamma",
        "improve/alpha",
        "improve/beta",
        "improve/gamma",
        "synthesise/chair",
    ]
    assert fork["quorum"]["ok"] == 3
    check_store(council)


@pytest.mark.behaviour("50-fork-absences")
def test_a_new_member_of_an_excluded_seat_is_asked(workspace: Workspace, council: Terminal) -> None:
    """The skeptic's key is rejected in round 1; another member has the seat from round 2 on."""
    workspace.configure(
        more="\n".join(f'[seats.{seat}]\nmodel = "sim:{seat}"' for seat in ("pragmatist", "visionary", "skeptic"))
    )
    workspace.provider.answer = lambda seen: Reply(status=401) if seen.model == "skeptic" else None
    first = council("--json", "--rounds", "2", QUESTION)
    assert first.json["quorum"]["ok"] == 2
    workspace.provider.forget()
    fork = council("fork", first.json["run"], "--from", "r2", "--seat", "skeptic=sim:other", "--json")
    assert fork.json["quorum"]["ok"] == 3
    assert [seen.model for seen in workspace.provider.log].count("other") == 1
    check_store(council)


# Other protocols


@pytest.mark.behaviour("50-fork-no-second-search")
def test_a_fork_of_the_general_council_does_not_search_again(general: FakeGeneral) -> None:
    general.documents()
    general.says["r1"] = position(claim("moving", sources=(1,)))
    general.says["r1/other"] = position(claim("moving", "no", text="It is lost there."))
    general.says["r2"], council = answer("MAINTAIN"), general.council
    run = general.ask(search="--search=files:docs").json["run"]
    for path in (general.workspace.folder / "docs").iterdir():
        path.unlink()
    general.workspace.provider.forget()
    fork = council("fork", run, "--from", "r1", "--seat", "skeptic=sim:other", "--json")
    assert (fork.code, fork.json["status"]) == (0, "complete"), fork.err
    assert "research/chair" not in general.asked
    assert "r1/other" in general.asked and "r1/generalist" not in general.asked
    looked = "SELECT count(*) FROM events WHERE run = ? AND type = 'lookup'"
    assert general.workspace.rows(looked, fork.json["run"]) == [(1,)]
    assert "costs a fifth" in general.prompts("r1")["other"]
    check_store(council)


def test_a_fork_of_judges_asks_the_other_judge_and_counts_its_verdict(
    judges: JudgesWorkspace, council: Terminal
) -> None:
    run = _verdict_of(judges.council("--json", "--deep", "--debate", "validate", "src/auth"))
    judges.provider.forget()
    said = {"Opinion": opinion("FAIL", confidence="HIGH"), "SecondOpinion": second("FAIL")}
    judges.judge_answers.instead |= {
        key: lambda seen: Reply(text=json.dumps(said[seen.body["response_format"]["json_schema"]["name"]]))
        for key in ("judge/other", "r2/other")
    }
    fork = judges.council("fork", run, "--from", "r2", "--seat", "judge-1=sim:other", "--json")
    assert [seen.model for seen in judges.provider.log] == ["other"]
    verdicts = {seat["name"]: seat["verdict"] for seat in fork.json["seats"]}
    assert verdicts["judge-1"] == "FAIL" and verdicts["judge-2"] == "PASS"
    assert fork.json["calls"]["made"] == 1
    check_store(council)


def _verdict_of(done: Result) -> str:
    assert done.json["status"] == "complete"
    return str(done.json["run"])


def test_a_fork_keeps_all_seats(workspace: Workspace, council: Terminal) -> None:
    run = parent_of(workspace, council)
    fork = council("fork", run, "--from", "improve", "--seat", "beta=sim:other", "--json").json
    assert {seat["name"]: seat["model"] for seat in fork["seats"]} == {
        **{seat: f"sim:{seat}" for seat in SEATS}, "beta": "sim:other",
    }  # fmt: skip
