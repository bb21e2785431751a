"""`council eval`: arms at equal use, each item an ordinary run, nothing paid twice."""

from __future__ import annotations

import asyncio
import json
import os
import re

import pytest

import council as council_library
from council.protocols import protocol_names
from council.runs.history import list_run_titles
from tests.acceptance.helpers import Json, Terminal, Workspace, kill, wait_until
from tests.fake_provider import Reply, Seen
from tests.trusted_project import trust_project

ITEMS = 9
WORDS = "word " * 20


def write_set(workspace: Workspace) -> str:
    rows = [{"id": f"q{n}", "question": f"How much is item {n} times 2?", "answer": 2 * n} for n in range(ITEMS)]
    (workspace.folder / "set.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return "set.jsonl"


def answer_items(seen: Seen) -> Reply:
    """Alpha is right on two of three items, beta and gamma on all; the chair repeats the right answer."""
    n = int(re.findall(r"How much is item (\d+) times 2", seen.prompt)[-1])
    is_wrong = seen.model == "alpha" and n % 3 == 0
    return Reply(text=f"{WORDS * (1 + n % 3)}\n\nAnswer: {2 * n + is_wrong}")


@pytest.mark.behaviour("evidence-eval", "evidence-equal", "evidence-eval-resume")
def test_an_evaluation_compares_arms_at_equal_tokens_and_buys_nothing_twice(
    workspace: Workspace, council: Terminal
) -> None:
    workspace.provider.answer = answer_items
    name = write_set(workspace)
    first = council("eval", name, "--arms", "single,triad", "--json", "--seed", "4", "--no-plots")
    assert first.code == 0, first.err
    arms: dict[str, Json] = {arm["arm"]: arm for arm in first.json["arms"]}
    assert list(arms) == ["single", "triad", "self-consistency=triad"]
    assert arms["single"]["accuracy"]["mean"] == pytest.approx(6 / ITEMS)
    assert arms["triad"]["accuracy"] == {"mean": 1.0, "low": pytest.approx(0.6637, abs=1e-4), "high": 1.0, "n": ITEMS}
    assert arms["triad"]["calls"] == 4 * ITEMS
    equal = arms["self-consistency=triad"]
    assert equal["tokens"] == pytest.approx(arms["triad"]["tokens"], rel=0.05)
    against = arms["triad"]["against"]
    assert (against["arm"], against["wrong_to_right"], against["right_to_wrong"]) == ("self-consistency=triad", 3, 0)
    assert any("9 questions are few" in line for line in first.json["conclusions"])
    assert any("cannot be told apart" in line for line in first.json["conclusions"])
    assert set(workspace.runs()) == {run for arm in arms.values() for run in arm["runs"].values()}
    asked = len(workspace.provider.log)
    again = council("eval", name, "--arms", "single,triad", "--json", "--seed", "4", "--no-plots")
    assert again.json == first.json and len(workspace.provider.log) == asked
    fresh = council("eval", name, "--arms", "single,triad", "--seed", "4", "--fresh")
    assert len(workspace.provider.log) == 2 * asked
    assert (workspace.folder / "set.eval" / "answers.jsonl.old").exists()  # they were paid for
    assert "self-consistency (same tokens as triad)" in fresh.out and "files: set.eval" in fresh.out
    # The estimate does not know how often a budget is used up, so it is not shown for the equal arm.
    assert "uses about as much again as its council" in fresh.err
    assert f"{ITEMS} rows: self-consistency, each with the tokens of its council" in fresh.err
    plots = {path.name for path in (workspace.folder / "set.eval").iterdir() if path.suffix in (".png", ".svg")}
    assert {"differences.png", "differences.svg", "reliability.svg"} <= plots
    result = json.loads((workspace.folder / "set.eval" / "result.json").read_text())
    without_runs = [
        {key: value for key, value in arm.items() if key not in ("runs", "seconds")} for arm in result["arms"]
    ]
    assert without_runs == [{key: value for key, value in arm.items() if key not in ("runs", "seconds")} for arm in first.json["arms"]]  # fmt: skip
    assert "vote" not in protocol_names()  # its runs can be resumed, but it is not offered
    changed = council("eval", name, "--arms", "single,triad", "-m", "sim:beta", "--seed", "4")
    assert changed.code == 2 and "use --fresh to start over" in changed.err
    other = council("eval", name, "--arms", "single,triad", "--seed", "5")
    assert other.code == 2 and 'the answers in "set.eval" have the seed 4, not 5' in other.err
    assert len(workspace.provider.log) == 2 * asked


@pytest.mark.behaviour("evidence-new-answers", "evidence-members-alone")
def test_an_answer_that_only_the_chair_gives_is_counted_apart(workspace: Workspace, council: Terminal) -> None:
    """The seats agree on the first two items. On the last two they differ, and the chair has an answer of its own."""

    def answer(seen: Seen) -> Reply:
        n = int(re.findall(r"How much is item (\d+) times 2", seen.prompt)[-1])
        own = {"alpha": 0, "beta": 1, "gamma": 2, "chair": 3}[seen.model]
        return Reply(text=f"{WORDS}\n\nAnswer: {2 * n + (own if n > 1 else 0)}")

    workspace.provider.answer = answer
    found = council("eval", write_set(workspace), "--arms", "single,triad", "--limit", "4", "--json", "--no-plots")
    assert found.code == 0, found.err
    single, triad, equal = found.json["arms"]
    assert (triad["new_answers"], triad["new_answers_right"], triad["unanimous"]["mean"], triad["unanimous"]["n"]) == (2, 0, 1.0, 2)  # fmt: skip
    assert (triad["accuracy"]["mean"], triad["unreadable"], single["new_answers"], equal["new_answers"]) == (0.5, 0, 0, 0)  # fmt: skip
    seats = {one["seat"]: (one["members"], one["accuracy"]["mean"]) for one in triad["seats"]}
    assert seats == {"alpha": (["sim:alpha"], 1.0), "beta": (["sim:beta"], 0.5), "gamma": (["sim:gamma"], 0.5)}
    assert triad["against_single"]["right_to_wrong"] == 2 and triad["against_single"]["arm"] == "single"
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", found.json["answered"])
    assert any(
        "In 2 answers the chair gave what none of its seats had given; none of these was right." in line
        for line in found.json["conclusions"]
    )


@pytest.mark.behaviour("evidence-eval-resume")
def test_an_evaluation_that_is_killed_continues_without_paying_twice(workspace: Workspace) -> None:
    workspace.provider.answer = answer_items
    name = write_set(workspace)
    command = ("eval", name, "--arms", "triad", "--equal", "calls", "--json", "--no-plots", "--concurrency", "3")
    process = workspace.process(*command)
    wait_until(lambda: len(workspace.provider.log) > 20, "twenty requests")
    kill(process)
    result = workspace.council(*command)
    assert result.code == 0, result.err
    triad, equal = json.loads(result.out)["arms"]
    assert triad["calls"] == equal["calls"]
    assert len(workspace.runs()) == 2 * ITEMS
    repeated = len(workspace.provider.log) - triad["calls"] - equal["calls"]
    # Only requests that were open at the kill may be sent again; one that was recorded may not have been sent at all.
    assert -9 <= repeated <= 9


@pytest.mark.behaviour("evidence-eval-apart")
def test_runs_of_an_evaluation_are_listed_only_if_asked_for(workspace: Workspace, council: Terminal) -> None:
    workspace.provider.answer = answer_items
    name = write_set(workspace)

    def list_found(*arguments: str) -> list[str]:
        return [row["run"] for row in council(*arguments, "--json").json]

    assert council("eval", name, "--arms", "single,triad", "--limit", "2", "--no-plots").code == 0
    of_evaluation = workspace.runs()
    assert len(of_evaluation) == 6  # with the arm of equal use
    nothing = council("runs")
    assert nothing.out == "no other runs\n"
    assert nothing.err == "6 runs of evaluations not shown: use --all\n"
    asked = str(council("--json", "--protocol", "triad", "How much is item 0 times 2?").json["run"])
    assert list_found("runs") == list_found("runs", "--here") == list_found("runs", "list") == [asked]
    listed = council("runs")
    assert asked in listed.out and not [run for run in of_evaluation if run in listed.out]
    assert listed.err.count("not shown") == 1
    assert set(list_found("runs", "--all")) == set(list_found("runs", "list", "--all")) == {asked, *of_evaluation}
    assert council("runs", "--all").err == ""
    assert council("runs", "--status", "failed").err == ""
    assert list_found("runs", "search", "item", "times") == [asked]
    assert council("runs", "search", "item").err == "6 runs of evaluations not searched: use --all\n"
    assert set(list_found("runs", "search", "--all", "item", "times")) == {asked, *of_evaluation}
    assert list(list_run_titles(os.environ, "r")) == [asked]

    async def list_in_python(**how: bool) -> list[str]:
        async with council_library.Client() as client:
            return [row["run"] for row in await client.runs(**how)]

    assert asyncio.run(list_in_python()) == [asked]
    assert set(asyncio.run(list_in_python(all=True))) == {asked, *of_evaluation}


@pytest.mark.behaviour("evidence-eval-apart")
def test_runs_of_an_evaluation_are_counted_checked_exported_and_removed(workspace: Workspace, council: Terminal) -> None:  # fmt: skip
    workspace.provider.answer = answer_items
    workspace.configure(more='[prices."sim:*"]\ninput = 1\noutput = 1\n')
    command = ("eval", write_set(workspace), "--arms", "single", "--limit", "3", "--no-plots")
    assert council(*command).code == 0
    first, _, third = workspace.runs()
    assert council("spend", "--json").json["total"]["usd"] > 0
    assert council("runs", "fsck").out == "3 runs, no problems\n"
    assert json.loads(council("runs", "export", first[:6]).out)["run"] == first
    assert council("runs", "show", first).code == 0
    assert council("runs", "rm", first, "--yes").code == 0
    assert council("runs", "prune", "--keep", "1", "--yes").out.startswith("removed 1 run")
    assert workspace.runs() == [third]


def answer_untyped(seen: Seen) -> Reply | None:
    return None if seen.schema is not None else answer_items(seen)


@pytest.mark.behaviour("evidence-solo")
def test_solo_is_an_arm_with_its_own_arm_of_equal_use(workspace: Workspace, council: Terminal) -> None:
    workspace.provider.answer = answer_untyped
    name = write_set(workspace)
    members = ("-m", "sim:alpha", "-m", "sim:beta", "-m", "sim:gamma")
    command = ("eval", name, "--arms", "single,solo,collaborative,refine", *members, "--limit", "4", "--no-plots")
    found = council(*command, "--json")
    assert found.code == 0, found.err
    arms: dict[str, Json] = {arm["arm"]: arm for arm in found.json["arms"]}
    equal = ["self-consistency=solo", "self-consistency=collaborative", "self-consistency=refine"]
    assert list(arms) == ["single", "solo", "collaborative", "refine", *equal]
    assert {tuple(arms[one]["members"]) for one in ("single", "solo", *equal)} == {("sim:alpha",)}
    assert arms["solo"]["calls"] == 5 * 4 and arms["solo"]["against"]["arm"] == "self-consistency=solo"
    assert arms[equal[0]]["tokens"] == pytest.approx(arms["solo"]["tokens"], rel=0.1)
    assert found.json["members"] == ["sim:alpha", "sim:beta", "sim:gamma"]
    assert "solo" in council("eval", "--help").out


@pytest.mark.behaviour("evidence-solo")
@pytest.mark.parametrize("equal", ["tokens", "cost"])
def test_the_equal_arm_of_solo_has_the_member_of_solo(workspace: Workspace, council: Terminal, equal: str) -> None:
    lines = ["[providers.sim]", 'wire = "openai"', f'base_url = "{workspace.provider.base_url}"', "[models]"]
    lines += ['default = "sim:m1"', 'strong = "sim:m2"', '[prices."sim:m1"]', "input = 1.0", "output = 1.0"]
    lines += ['[prices."sim:m2"]', "input = 10.0", "output = 10.0"]
    (workspace.folder / "council.toml").write_text("\n".join(lines), encoding="utf-8")
    trust_project(workspace.folder)
    workspace.provider.answer = answer_untyped
    command = ("eval", write_set(workspace), "--arms", "single,solo", "--limit", "2", "--equal", equal, "--no-plots")
    found = council(*command, "--json")
    assert found.code == 0, found.err
    arms: dict[str, Json] = {arm["arm"]: arm for arm in found.json["arms"]}
    assert arms["single"]["members"] == ["sim:m1"]
    assert arms["solo"]["members"] == arms["self-consistency=solo"]["members"] == ["sim:m2"]
    assert arms["self-consistency=solo"]["usd"] == pytest.approx(arms["solo"]["usd"], rel=0.1)
    assert any("solo used sim:m2, and single sim:m1" in line for line in found.json["conclusions"])


@pytest.mark.behaviour("evidence-solo")
def test_check_and_seats_apply_to_the_arms_that_have_them(workspace: Workspace, council: Terminal) -> None:
    name = write_set(workspace)
    arms = ("--arms", "single,solo,triad,refine", "--check", "--seats", "2")
    plan = council("eval", name, *arms, "--limit", "1", "--dry-run", "--json")
    assert plan.code == 0, plan.err
    members = {group["protocol"]: len(group["members"]) for group in plan.json["groups"]}
    assert members == {"vote": 1, "solo": 1, "triad": 3, "refine": 3}  # two seats and a chair
    calls = {group["protocol"]: group["calls"]["max"] for group in plan.json["groups"]}
    assert calls["vote"] == 1 and calls["solo"] == 5 and calls["triad"] > 4


@pytest.mark.behaviour("evidence-graders")
def test_a_panel_grades_free_answers_and_each_answer_once(workspace: Workspace, council: Terminal) -> None:
    rows = [{"id": n, "question": f"Why is item {n} blue?", "answer": "it scatters light"} for n in range(2)]
    (workspace.folder / "free.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")

    def answer(seen: Seen) -> Reply:
        if "Grade an answer." in seen.prompt:
            return Reply(text="Both say so.\n\nAnswer: A" if "item 0" in seen.prompt or seen.model == "gamma" else "No.\n\nAnswer: B")  # fmt: skip
        return Reply(text="Because of the scattering of light in it.")

    workspace.provider.answer = answer
    found = council("eval", "free.jsonl", "--arms", "single", "--grader", "judges", "--judges", "sim:alpha,sim:beta,sim:gamma", "--json", "--no-plots")  # fmt: skip
    assert found.code == 0, found.err
    assert found.json["arms"][0]["accuracy"]["mean"] == 0.5
    assert len(workspace.provider.log) == 2 + 2 * 3
    assert council("runs", "--json").json == [] and len(workspace.runs()) == 2 + 2


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("eval",), "no data set was given"),
        (("eval", "none.jsonl"), 'the data set "none.jsonl" does not exist'),
        (("eval", "set.jsonl", "--arms", "duel"), 'unknown arm "duel"'),
        (("eval", "set.jsonl", "--arms", "triad,triad"), 'the arm "triad" is named twice'),
        (("eval", "set.jsonl", "--limit", "0"), '--limit "0" is out of range'),
        (("eval", "set.jsonl", "-o", "set.jsonl/x"), 'the folder "set.jsonl/x" cannot be made'),
        (("eval", "set.jsonl", "--arms", "triad:foo=1"), '"foo" is not an option'),
        (("eval", "set.jsonl", "--equal", "cost"), 'no price for "sim:alpha"'),
    ],
)
def test_bad_input_of_an_evaluation_is_one_line(workspace: Workspace, council: Terminal, arguments: tuple[str, ...], problem: str) -> None:  # fmt: skip
    write_set(workspace)
    found = council(*arguments)
    assert found.code == 2 and problem in found.err and not workspace.provider.log
    assert "--fresh" not in found.err  # which would not help
