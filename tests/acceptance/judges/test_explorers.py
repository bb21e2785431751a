"""Explorers: each works for one judge, and no judge waits for another judge's explorers."""

from __future__ import annotations

import json

import pytest

from tests.acceptance.helpers import Terminal, wait_for_exit, wait_until
from tests.acceptance.judges.fake_judges import JudgesWorkspace, look, written_up
from tests.fake_provider import Reply

FLAGS = ("--explorers=2", "--explorer-model=sim:explorer", "validate", "src/app.py")


@pytest.mark.behaviour("issue-3-explorers-own-pace")
def test_a_judge_does_not_wait_for_another_judges_explorers(judges: JudgesWorkspace) -> None:
    gate = judges.hold_key("look/judge-2-2")
    process = judges.process(*FLAGS, "--json")
    gate.wait()
    wait_until(lambda: "judge/judge-1" in judges.steps(), "judge-1 is asked")
    wait_until(lambda: judges.request("judge/judge-1").ended, "judge-1 has answered")
    assert "judge/judge-2" not in judges.steps()
    assert judges.request("look/judge-2-2").ended is None
    gate.release()
    done = wait_for_exit(process)
    assert (done.code, done.json["verdict"]) == (0, "PASS")
    first, last = judges.request("judge/judge-1"), judges.request("judge/judge-2")
    held = judges.request("look/judge-2-2")
    assert first.ended and held.ended and first.ended < held.ended <= last.arrived


@pytest.mark.behaviour("issue-3-explorers-own-judge", "20-explorer-replies")
def test_an_explorer_looks_up_through_the_gate_and_reports_only_to_its_judge(
    judges: JudgesWorkspace, council: Terminal
) -> None:
    hops = iter(
        [look("src/auth/jwt.py", "../../etc/passwd"), look(names=("*.md",), patterns=("print",)), look("README.md"), written_up("judge-1-1")]
    )  # fmt: skip
    judges.judge_answers.instead["look/judge-1-1"] = lambda seen: Reply(text=json.dumps(next(hops)))
    done = council(*FLAGS, "--jsonl")
    events = [json.loads(line) for line in done.out.splitlines()]
    looked = [event for event in events if event["type"] == "lookup"]
    assert [event["key"] for event in looked] == [
        f"judge/judge-1/explore/judge-1-explorer-1/look-{hop}/judge-1-explorer-1/{n}/look"
        for hop, n in ((2, 1), (2, 2), (3, 1), (3, 2), (4, 1))
    ]
    assert [(event["found"], event["why"]) for event in looked[:2]] == [(1, ""), (0, looked[1]["why"])]
    assert "outside the folder" in looked[1]["why"]
    turns = [seen for seen in judges.provider.log if judges.judge_answers.key(seen) == "look/judge-1-1"]
    assert [len(seen.body["messages"]) for seen in turns] == [2, 4, 6, 8]
    assert "base64.b64decode" in turns[1].prompt and "is outside the folder" in turns[1].prompt
    assert "PLAN.md" in turns[2].prompt and "print(sys.argv)" in turns[2].prompt
    assert "Now write up your Findings, Evidence and Assessment." in turns[3].prompt
    assert all(turns[n].body["messages"] == turns[3].body["messages"][: 2 * n + 2] for n in range(4))
    own, other = judges.request("judge/judge-1").prompt, judges.request("judge/judge-2").prompt
    assert "assessed judge-1-1" in own and "assessed judge-1-2" in own and "judge-2-1" not in own
    assert "assessed judge-2-1" in other and "judge-1-1" not in other
    report = council("report", "--format", "json").json
    assert [seat["name"] for seat in report["seats"]] == ["judge-1", "judge-2"]
    assert "2 asked, 2 answered, 4 explorers sent out" in (judges.folder / report["report_path"]).read_text()


@pytest.mark.behaviour("issue-3-explorers-own-judge")
def test_an_explorer_is_stopped_after_its_last_look_up_and_its_judge_continues(
    judges: JudgesWorkspace, council: Terminal
) -> None:
    judges.judge_answers.said["look/judge-1-1"] = look("README.md")
    done = council(*FLAGS, "--json")
    assert (done.code, done.json["verdict"]) == (0, "PASS")
    assert judges.steps().count("look/judge-1-1") == 4
    assert "judge/judge-1" in judges.steps()


@pytest.mark.behaviour("issue-3-explorer-timeout")
def test_an_explorer_that_hangs_is_dropped_after_its_timeout(
    judges: JudgesWorkspace, council: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COUNCIL_EXPLORER_TIMEOUT", "0.4")
    judges.judge_answers.instead["look/judge-2-1"] = Reply(hang=True)
    done = council(*FLAGS, "--json")
    report = done.json
    assert (done.code, report["verdict"], report["quorum"]["ok"]) == (0, "PASS", 2)
    assert [(row["seat"], row["state"]) for row in report["degraded"]] == [("judge-2-explorer-1", "timed_out")]
    assert "assessed judge-2-2" in judges.request("judge/judge-2").prompt
    assert "judge-2 continues without it" in (judges.folder / report["report_path"]).read_text()


@pytest.mark.behaviour("002-environment-variables")
def test_the_explorer_model_comes_from_the_flag_then_the_variable_then_the_first_family(
    judges: JudgesWorkspace, council: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    def asked(*flags: str) -> set[str]:
        judges.provider.forget()
        assert council("--explorers=1", *flags, "validate", "src/app.py").code == 0
        return {seen.model for seen in judges.provider.log if judges.judge_answers.key(seen).startswith("look/")}

    judges.judge_answers.explorers = 1
    assert asked() == {"default"}
    monkeypatch.setenv("COUNCIL_EXPLORER_MODEL", "simb:scout")
    assert asked() == {"scout"}
    assert asked("--explorer-model", "sim:other") == {"other"}


@pytest.mark.behaviour("issue-3-explorers-own-judge", "002-bench-cap")
def test_mixed_research_with_explorers_sends_the_planned_calls(judges: JudgesWorkspace, council: Terminal) -> None:
    done = council(
        "--mixed",
        "--explorers=2",
        "--explorer-model=sim:explorer",
        "research",
        "Kubernetes upgrade strategies",
        "--json",
    )
    assert done.code == 0, done.out
    counted = {
        phase: sum(key.startswith(f"{phase}/") for key in judges.steps())
        for phase in ("questions", "look", "judge", "consolidate")
    }
    assert counted == {"questions": 4, "look": 8, "judge": 4, "consolidate": 1}
    text = (judges.folder / done.json["report_path"]).read_text(encoding="utf-8")
    assert "3 judges per family scaled down to 2" in text
    heads = [
        "## Council Research:",
        "### Facets Explored",
        "### Synthesized Findings",
        "### Open Questions",
        "### Recommendation",
    ]
    assert [text.index(head) for head in heads] == sorted(text.index(head) for head in heads)
