"""Absent judges: the others finish, and the report names the absent ones."""

from __future__ import annotations

import pytest

from tests.acceptance.helpers import Json, Terminal
from tests.acceptance.judges.fake_judges import MIXED, JudgesWorkspace, finding, opinion
from tests.fake_provider import Reply
from tests.packet.conftest import commit

LOCKED, BROKEN, HANGS = Reply(status=401), Reply(status=500), Reply(hang=True)
BUG = finding(
    "critical",
    "src/auth/jwt.py:7",
    "The signature is never checked.",
    quote="return json.loads(base64.b64decode(body))",
)


def text_of(judges: JudgesWorkspace, report: Json) -> str:
    return (judges.folder / report["report_path"]).read_text(encoding="utf-8")


def missing(report: Json) -> list[tuple[str, str]]:
    return [(row["seat"], row["state"]) for row in report["degraded"] if row["seat"]]


@pytest.mark.behaviour("issue-3-one-times-out")
def test_when_one_of_three_times_out_the_others_finish_and_it_is_reported(
    judges: JudgesWorkspace, council: Terminal
) -> None:
    judges.judge_answers.instead["judge/judge-3"] = HANGS
    judges.judge_answers.said["judge/judge-1"] = opinion("FAIL", BUG)
    judges.judge_answers.said["judge/judge-2"] = opinion("FAIL", BUG)
    done = council("--deep", "--timeout=4", "validate", "src/auth", "--json")
    report = done.json
    assert (done.code, report["status"], report["verdict"]) == (0, "complete", "FAIL")
    assert missing(report) == [("judge-3", "timed_out")]
    assert report["quorum"] == {"needed": 1, "ok": 2, "asked": 3}
    assert [(len(row["found_by"]), row["of"]) for row in report["findings"]] == [(2, 2)]
    text = text_of(judges, report)
    assert "judge-3 did not answer (sim:judge-3: ran out of time" in text
    assert "What follows is from two of three seats, so weigh it accordingly." in text
    assert "2/3 judges responded." in text
    assert [seat["file"] is not None for seat in report["seats"]] == [True, True, False]


@pytest.mark.behaviour("issue-3-eighty-percent", "00-banner-below-80-percent")
@pytest.mark.parametrize(("lost", "banner"), [(1, False), (2, True)])
def test_below_80_percent_the_report_has_a_banner(
    judges: JudgesWorkspace, council: Terminal, lost: int, banner: bool
) -> None:
    judges.judge_answers.instead |= {f"judge/judge-{n}": LOCKED for n in range(1, lost + 1)}
    done = council("--count=5", "--seat", "judge-5=sim:judge-5", "validate", "src/auth", "--json")
    assert (done.code, done.json["quorum"]["ok"]) == (0, 5 - lost)
    assert ("so weigh it accordingly." in text_of(judges, done.json)) is banner


@pytest.mark.behaviour("issue-3-second-family-lost", "40-one-message-per-vendor")
def test_when_the_whole_second_family_fails_the_first_decides_and_it_is_reported(
    judges: JudgesWorkspace, council: Terminal
) -> None:
    judges.judge_answers.instead |= {f"judge/{seat}": LOCKED for seat in MIXED if seat.startswith("codex")}
    done = council("--mixed", "validate", "src/auth", "--json")
    report = done.json
    assert (done.code, report["verdict"]) == (0, "PASS")
    assert [seat for seat, _ in missing(report)] == [seat for seat in MIXED if seat.startswith("codex")]
    text = text_of(judges, report)
    assert "codex-judge-1, codex-judge-2 and codex-judge-3 did not answer: simb refused the key: 401" in text
    assert "What follows is from three of six seats, so weigh it accordingly." in text
    assert text.startswith("## Council Consensus: PASS")
    assert council("gate").code == 0


@pytest.mark.behaviour("issue-3-all-fail")
@pytest.mark.parametrize(("reply", "code"), [(BROKEN, 1), (LOCKED, 4)])
def test_when_all_fail_the_error_suggests_resume_which_asks_them_again(
    judges: JudgesWorkspace, council: Terminal, reply: Reply, code: int
) -> None:
    judges.judge_answers.instead |= {f"judge/judge-{n}": reply for n in (1, 2)}
    done = council("validate", "src/auth")
    (run,) = judges.runs()
    assert done.code == code
    assert f"council resume {run}" in done.out + done.err
    report = council("report", "--format", "json").json
    assert (report["status"], report["verdict"]) == ("failed", None)
    assert council("gate").code == code
    judges.judge_answers.instead.clear()
    judges.provider.forget()
    again = council("resume", "--json")
    assert (again.code, again.json["verdict"], again.json["run"]) == (0, "PASS", run)
    assert sorted(judges.steps()) == ["judge/judge-1", "judge/judge-2"]
    assert council("runs", "fsck").code == 0


@pytest.mark.behaviour("issue-3-all-fail")
def test_when_all_fail_with_explorers_resume_asks_them_again_too(judges: JudgesWorkspace, council: Terminal) -> None:
    judges.judge_answers.explorers = 1
    judges.judge_answers.instead |= {f"questions/judge-{n}": BROKEN for n in (1, 2)}
    words = ("--explorers=1", "--explorer-model=sim:explorer", "validate", "src/auth")
    assert council(*words).code == 1
    judges.judge_answers.instead.clear()
    judges.provider.forget()
    again = council("resume", "--json")
    assert (again.code, again.json["verdict"], len(judges.provider.log)) == (0, "PASS", 6)
    assert council("runs", "fsck").code == 0


@pytest.mark.behaviour("issue-3-all-fail")
def test_a_brainstorm_without_its_chair_is_incomplete_and_keeps_the_options(
    judges: JudgesWorkspace, council: Terminal
) -> None:
    judges.judge_answers.instead["consolidate/chair"] = LOCKED
    done = council("brainstorm", "caching approaches", "--json")
    assert (done.code, done.json["status"]) == (3, "incomplete")
    text = text_of(judges, done.json)
    assert text.startswith("## Council Brainstorm: caching approaches (INCOMPLETE)")
    assert "| Cache it | Cache it is fine. | Cache it is fine. |" in text
    judges.judge_answers.instead.clear()
    assert council("resume", "--json").json["status"] == "complete"
    assert judges.steps().count("judge/judge-1") == 1


@pytest.mark.behaviour("issue-3-no-second-family")
def test_without_a_second_family_mixed_warns_and_strict_refuses(judges: JudgesWorkspace, council: Terminal) -> None:
    judges.configure(second=False)
    done = council("--mixed", "validate", "src/auth", "--json")
    assert (done.code, [seat["name"] for seat in done.json["seats"]]) == (0, ["judge-1", "judge-2", "judge-3"])
    assert "--mixed found no second vendor family: all judges are of the first" in text_of(judges, done.json)
    assert done.json["verdict"] == "PASS"
    spent = len(judges.provider.log)
    refused = council("--mixed", "--strict", "validate", "src/auth", "--json")
    assert (refused.code, len(judges.provider.log)) == (2, spent)
    assert refused.json["error"].startswith("--mixed needs a second vendor family, but none is available")
    assert len(judges.runs()) == 1


@pytest.mark.behaviour("issue-3-nothing-changed", "packet-no-changes")
def test_without_changes_there_is_no_verdict_and_no_call(judges: JudgesWorkspace, council: Terminal) -> None:
    done = council("validate", "staged", "--json")
    report = done.json
    assert (done.code, report["verdict"], report["answer"], report["status"]) == (
        0,
        None,
        "no changes to review",
        "complete",
    )
    assert judges.provider.log == []
    assert (council("gate").code, council("validate", "staged", "--fail-on", "warn").code) == (0, 0)


@pytest.mark.behaviour("issue-3-empty-packet", "20-coverage-cap")
def test_a_review_without_material_makes_no_call_and_says_what_it_looked_for(
    judges: JudgesWorkspace, council: Terminal
) -> None:
    done = council("validate", "the whole idea of it", "--json")
    instead = 'no file here matches "the whole idea of it": reviewing the recent changes'
    assert (done.code, done.json["verdict"]) == (0, "PASS") and instead in text_of(judges, done.json)
    assert done.json["trust"]["level"] == "MEDIUM"
    assert "the words matched no file, so other material was reviewed" in done.json["trust"]["because"]
    assert f"! N{instead[1:]}." in council("runs", "replay", done.json["run"]).out
    calls = len(judges.provider.log)
    for _ in range(4):
        commit(judges.folder, {})
    looked_for = 'nothing to review: no file here matches "the whole idea of it"'
    plan = council("validate", "the whole idea of it", "--dry-run", "--json")
    assert (plan.code, plan.json["error"].startswith(looked_for)) == (2, True)
    done = council("validate", "the whole idea of it", "--json")
    assert (done.code, done.json["error"].startswith(looked_for)) == (2, True)
    assert len(judges.provider.log) == calls


@pytest.mark.behaviour("issue-3-output-folder", "00-report-file", "00-gitignore")
def test_the_output_folder_is_created_and_ignored_by_git(judges: JudgesWorkspace, council: Terminal) -> None:
    assert not (judges.folder / ".agents" / "council").exists()
    assert council("validate", "src/auth").code == 0
    assert (judges.folder / ".agents" / "council" / ".gitignore").read_text() == "*\n"
    first = council("report", "--format", "json").json["report_path"]
    assert council("validate", "src/auth").code == 0
    assert council("report", "--format", "json").json["report_path"] == first.replace(".md", "-2.md")
    again = council("recent", "--dry-run", "--json").json["packet"]["files"]
    assert not [path for path in again if path.startswith(".agents")]
