"""Reviews of a diff that is larger than the packet's budget: parts, their joined opinions, crashes and missing
answers.
"""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from council.protocols.judges.parts import list_parts
from council.runs.service import Convener
from tests.acceptance.helpers import Json, kill, wait_until
from tests.acceptance.judges.fake_judges import JudgesWorkspace, Reply, Result, Seen, finding, opinion, second
from tests.packet.conftest import commit

BUDGET = 1000
PART = re.compile(r"You see part (\d) of (\d)")
NAMES = [f"src/m{n}.py" for n in range(6)]


def changed_lines(n: int) -> list[str]:
    return [f"value_{n}_{line} = compute({line})  # of module {n}" for line in range(20)]


@pytest.fixture
def large(project: Path) -> Path:
    """A repository whose last commit changes six files."""
    commit(project, dict.fromkeys(NAMES, "start = 1\n"), "Add modules")
    for n in range(3):
        commit(project, {"README.md": f"# Shop {n}\n"}, f"Edit {n}")
    commit(
        project, {name: "\n".join(["start = 1", *changed_lines(n), ""]) for n, name in enumerate(NAMES)}, "Fill them"
    )
    return project


def queue(folder: Path, flags: Json | None = None, budget: int = BUDGET) -> tuple[str, int]:
    """Queue a review of the last commit with this budget. Return the run and the number of parts."""

    async def enqueue() -> tuple[str, int]:
        convener = Convener(folder)
        try:
            plan = await convener.plan(["validate", "HEAD~1..HEAD"], flags or {})
            packet = replace(plan.packet, budget=budget)
            return await convener.enqueue(replace(plan, packet=packet)), len(list_parts(packet))
        finally:
            await convener.close()

    return asyncio.run(enqueue())


def part_of(seen: Seen) -> int:
    found = PART.search(seen.prompt)
    return int(found[1]) if found else 0


def answer_by_part(**replies: Json) -> object:
    """Return a function that answers each part: `p1`, `p2`; the others pass."""
    return lambda seen: Reply(text=json.dumps(replies.get(f"p{part_of(seen)}") or opinion()))


def resume(judges: JudgesWorkspace, run: str) -> Result:
    return judges.council("resume", run, "--json")


@pytest.mark.behaviour("20-large-diff-split")
def test_each_judge_judges_every_part_and_its_opinions_are_joined(large: Path, judges: JudgesWorkspace) -> None:
    first = finding("significant", "src/m0.py:3", "The value is computed twice.", quote="value_0_1 = compute(1)")
    last = finding("minor", "src/m5.py:4", "The name says nothing.", quote="value_5_2 = compute(2)")
    judges.judge_answers.instead["judge/judge-1"] = answer_by_part(
        p1=opinion("PASS"),
        p2=opinion("WARN", first, confidence="MEDIUM", key_insight="Twice."),
        p3=opinion("PASS", last),
    )  # type: ignore[assignment]
    run, count = queue(large)
    assert count == 3
    done = resume(judges, run)
    report = done.json
    assert (done.code, report["verdict"], report["calls"]["made"]) == (0, "WARN", 2 * count), done.err
    for seat in ("judge-1", "judge-2"):
        prompts = [seen.prompt for seen in judges.provider.log if seen.model == seat]
        assert sorted(map(part_of, judges.provider.log)) == sorted([1, 2, 3] * 2)
        for n in range(len(NAMES)):
            rows = [f"+ | {line}" for line in changed_lines(n)]
            assert [sum(row in prompt for prompt in prompts) for row in rows] == [1] * len(rows)
        assert all("judged in another part of this review" in prompt for prompt in prompts)
    rows = {row["id"]: row for row in report["findings"]}
    assert set(rows) == {"judge-1.F1", "judge-1.F2"}
    assert all(row["verified"] for row in rows.values())
    (told,) = (one for one in report["opinions"] if one["seat"] == "judge-1")
    assert (told["verdict"], told["confidence"], told["key_insight"]) == ("WARN", "MEDIUM", "Twice.")
    assert [seat["state"] for seat in report["seats"]] == ["ok", "ok"]
    text = (large / report["report_path"]).read_text(encoding="utf-8")
    assert "2/2 judges responded" in text and "judge-1.md" in text
    for view in ("md", "html", "sarif", "junit", "github"):
        assert judges.council("report", run, "--format", view).code == 0, view
    assert judges.council("runs", "replay", run).code == 0
    assert judges.council("runs", "fsck").code == 0


@pytest.mark.behaviour("20-large-diff-split")
def test_a_run_that_crashed_asks_only_the_missing_part(large: Path, judges: JudgesWorkspace) -> None:
    run, count = queue(large)
    gate = judges.provider.hold(lambda seen: seen.model == "judge-2" and part_of(seen) == 2)
    process = judges.process("resume", run)
    gate.wait()
    stated = "SELECT count(*) FROM events WHERE run = ? AND type = 'statement'"
    wait_until(lambda: judges.rows(stated, run) == [(2 * count,)], "the other parts")  # of judge-1 also the joined one
    kill(process)
    gate.release()
    before = len(judges.provider.log)
    report = resume(judges, run).json
    assert [(seen.model, part_of(seen)) for seen in judges.provider.log[before:]] == [("judge-2", 2)]
    assert (report["status"], report["verdict"]) == ("complete", "PASS")
    assert judges.council("runs", "fsck").code == 0


@pytest.mark.behaviour("20-unanswered-part")
def test_a_part_without_an_answer_is_a_named_hole_and_the_verdict_is_at_best_warn(
    large: Path, judges: JudgesWorkspace
) -> None:
    judges.judge_answers.instead["judge/judge-2"] = lambda seen: (
        Reply(status=400, text="no") if part_of(seen) == 2 else Reply(text=json.dumps(opinion()))
    )
    run, _ = queue(large)
    done = resume(judges, run)
    report = done.json
    assert (done.code, report["verdict"], report["status"]) == (3, "WARN", "complete"), done.err
    holes = [row["reason"] for row in report["degraded"] if row["state"] == "coverage_hole"]
    assert len(holes) == 1 and re.fullmatch(r"part 2 of 3 \(src/m\d\.py.*\): judge-2 did not answer", holes[0])
    shown = judges.council("report", run).out
    assert "The rest of its answer counts." in shown and "can be no better than WARN" in shown


@pytest.mark.behaviour("20-large-diff-split")
def test_a_run_whose_parts_all_failed_is_asked_again(large: Path, judges: JudgesWorkspace) -> None:
    judges.judge_answers.instead |= {
        f"judge/{name}": lambda seen: Reply(status=400, text="no") for name in ("judge-1", "judge-2")
    }
    run, count = queue(large)
    assert resume(judges, run).code not in (0, 3)
    judges.judge_answers.instead.clear()
    before = len(judges.provider.log)
    report = resume(judges, run).json
    assert (report["status"], report["verdict"], len(judges.provider.log) - before) == ("complete", "PASS", 2 * count)


@pytest.mark.behaviour("20-large-diff-split")
def test_a_debate_after_parts_is_one_fresh_request_per_judge(large: Path, judges: JudgesWorkspace) -> None:
    found = finding("significant", "src/m0.py:3", "The value is computed twice.", quote="value_0_1 = compute(1)")
    judges.judge_answers.instead["judge/judge-1"] = answer_by_part(p1=opinion("WARN", found))  # type: ignore[assignment]
    judges.judge_answers.said["r2/judge-1"] = second("WARN", reason="It is computed twice at src/m0.py:3.")
    run, count = queue(large, {"debate": True})
    report = resume(judges, run).json
    assert (report["verdict"], report["calls"]["made"]) == ("WARN", 2 * count + 2)
    asked = judges.request("r2/judge-1").body["messages"]
    assert [message["role"] for message in asked] == ["system", "user"]
    text = asked[1]["content"]
    packet, _, task = text.partition("Second round.")
    assert "judge-1.F1" in task and "The value is computed twice." in task and "judge-2 says PASS" in task
    assert "## Changes" in packet and "does not fit one request (1,000 tokens)" in packet
    assert not [row for row in report["degraded"] if row["state"] == "coverage_hole"]
    before = len(judges.provider.log)
    forked = judges.council("fork", run, "--from", "r2", "--json")
    assert forked.json["verdict"] == "WARN", forked.err
    assert judges.steps(before) == []  # the parts and the second round are unchanged
    assert judges.council("runs", "fsck").code == 0
