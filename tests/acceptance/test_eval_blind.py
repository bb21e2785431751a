"""`council eval --grader blind`: judges compare texts in both orders, and nothing is paid twice."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable

import pytest

from tests.acceptance.helpers import Json, Terminal, Workspace, kill, wait_until
from tests.fake_provider import Reply, Seen
from tests.trusted_project import trust_project

ITEMS = 6
JUDGES = ("--judges", "sim:j1", "--judges", "sim:j2,sim:j3")
TEXT = re.compile(r"Text (A|B):\n\n<<<Text \1 (\w+)\n(.*?)\n\2>>>", re.DOTALL)
OPEN = '{"question": "Why?"}'
Judge = Callable[[Seen, dict[str, str]], str | Json]


def write_set(workspace: Workspace, count: int = ITEMS) -> str:
    rows = [{"id": f"q{n}", "question": f"What should the shop do about problem {n}?"} for n in range(count)]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (workspace.folder / "open.jsonl").write_text(text, encoding="utf-8")
    return "open.jsonl"


def read_texts(seen: Seen) -> dict[str, str]:
    """Return the two texts of a comparison by label; empty for any other request."""
    return {label: text for label, _, text in TEXT.findall(seen.prompt)}


def comparisons(workspace: Workspace) -> list[Seen]:
    return [seen for seen in workspace.provider.log if read_texts(seen)]


def prefer(texts: dict[str, str], words: str) -> Json:
    """Return the reply of a judge that prefers the text with these words."""
    better = next((label for label, text in texts.items() if words in text), "tie")
    scores = {f"score_{label.lower()}": 8 if label == better else 6.5 for label in texts}
    return {"reason_a": "It holds.", "reason_b": "It has a gap.", **scores, "better": better}


def answer_with(judge: Judge) -> Callable[[Seen], Reply | None]:
    def answer(seen: Seen) -> Reply | None:
        texts = read_texts(seen)
        if texts:
            said = judge(seen, texts)
            return Reply(text=said if isinstance(said, str) else json.dumps(said))
        if seen.schema is not None:
            return None
        return Reply(text=f"Rewritten by {seen.model}. " * 20 if "author again" in seen.prompt else "A plan. " * 20)

    return answer


def blind_command(*more: str, judges: tuple[str, ...] = JUDGES) -> tuple[str, ...]:
    return ("eval", "open.jsonl", "--arms", "single,solo", "--grader", "blind", *judges, "--no-plots", *more)


def arms_of(result: Json) -> dict[str, Json]:
    return {arm["arm"]: arm for arm in result["arms"]}


@pytest.mark.behaviour("evidence-blind", "evidence-blind-orders", "evidence-blind-names")
def test_judges_compare_two_texts_in_both_orders_without_names(workspace: Workspace, council: Terminal) -> None:
    write_set(workspace)
    workspace.provider.answer = answer_with(lambda seen, texts: prefer(texts, "Rewritten"))
    found = council(*blind_command("--json", "--seats", "2", "--check"))  # which are not for judges
    assert found.code == 0, found.err
    assert found.json["blind"]["against"] == "solo" and found.json["blind"]["judges"] == ["sim:j1", "sim:j2", "sim:j3"]
    assert found.json["blind"]["judging_members"] == {} and found.json["blind"]["calls"] == 2 * 3 * ITEMS
    arms = arms_of(found.json)
    assert list(arms) == ["single", "solo"] and arms["solo"]["blind"] is None
    single = arms["single"]["blind"]
    assert single["preference"] == {"mean": 0.0, "low": 0.0, "high": pytest.approx(0.459, abs=1e-3), "n": ITEMS}
    assert (single["won"], single["ties"], single["lost"], single["absent"]) == (0, 0, 3 * ITEMS, 0)
    assert (single["agreement"], single["score"], single["base_score"]) == (1.0, 6.5, 8.0)
    assert (single["words"], single["base_words"]) == (40.0, 60.0)
    assert single["equal_length"] == {"n": 0, "preference": None}
    assert arms["single"]["accuracy"]["n"] == 0 and arms["single"]["against"] is None and not arms["single"]["trust"]
    seen = comparisons(workspace)
    assert len(seen) == 2 * 3 * ITEMS
    orders = Counter((one.model, "Rewritten" in read_texts(one)["A"]) for one in seen)
    assert set(orders.values()) == {ITEMS} and len(orders) == 6
    for one in seen:
        own = one.prompt
        for text in read_texts(one).values():
            own = own.replace(text, "")
        assert not re.search(r"sim:|alpha|solo|single|\bj[123]\b", own)  # names are not added
        assert "Length, polish, headings and a sure tone do not count" in own
        assert "What should the shop do about problem" in own and len(one.body["messages"]) == 2  # a new conversation
    answers = [one.prompt for one in workspace.provider.log if not read_texts(one)]
    assert not any('as "Answer:' in prompt for prompt in answers)  # an open question has no form


@pytest.mark.behaviour("evidence-blind", "evidence-eval-resume")
def test_a_finished_comparison_asks_nothing_and_fresh_starts_over(workspace: Workspace, council: Terminal) -> None:
    write_set(workspace, 2)
    workspace.provider.answer = answer_with(lambda seen, texts: prefer(texts, "Rewritten"))
    first = council(*blind_command("--json"))
    asked = len(workspace.provider.log)
    again = council(*blind_command("--json"))
    assert again.json == first.json and len(workspace.provider.log) == asked
    answers = [run for arm in first.json["arms"] for run in arm["runs"].values()]
    compared = arms_of(first.json)["single"]["blind"]["runs"].values()
    assert set(workspace.runs()) == {*answers, *compared}  # each comparison is a run
    assert council("runs", "--json").json == []
    other = council(*blind_command("--json", judges=("--judges", "sim:j1")))
    assert other.json["blind"]["judges"] == ["sim:j1"]
    assert len(workspace.provider.log) == asked + 4  # other judges compare the same answers
    fresh = council(*blind_command("--fresh", "--json"))
    assert fresh.code == 0 and len(workspace.provider.log) == 2 * asked + 4
    assert (workspace.folder / "open.eval" / "comparisons.jsonl.old").exists()


@pytest.mark.behaviour("evidence-blind", "evidence-eval-resume")
def test_comparisons_that_are_killed_continue_without_paying_twice(workspace: Workspace) -> None:
    write_set(workspace)
    workspace.provider.answer = answer_with(lambda seen, texts: prefer(texts, "Rewritten"))
    command = blind_command("--json", "--concurrency", "2")
    gate = workspace.provider.hold(lambda seen: len(comparisons(workspace)) > 14)
    process = workspace.process(*command)
    wait_until(lambda: len(comparisons(workspace)) > 14, "fourteen comparisons")
    kill(process)
    gate.release()
    answers = len(workspace.provider.log) - len(comparisons(workspace))
    result = workspace.council(*command)
    assert result.code == 0, result.err
    single = arms_of(json.loads(result.out))["single"]["blind"]
    assert (single["comparisons"], single["preference"]["n"]) == (3 * ITEMS, ITEMS)
    assert len(workspace.provider.log) - len(comparisons(workspace)) == answers  # no answer was asked again
    open_requests = 2 * 3  # of the two comparisons at the kill
    assert 2 * 3 * ITEMS <= len(comparisons(workspace)) <= 2 * 3 * ITEMS + open_requests


@pytest.mark.behaviour("evidence-blind-orders", "evidence-blind-reply", "evidence-blind-summary")
def test_ties_unstable_judges_and_unreadable_replies_are_counted(workspace: Workspace, council: Terminal) -> None:
    write_set(workspace, 3)

    def judge(seen: Seen, texts: dict[str, str]) -> str | Json:
        if seen.model == "j1":
            return prefer(texts, "") | {"score_b": 8}  # always the first
        if seen.model == "j2":
            return prefer(texts, "no such words")
        return "Both have their merits."

    workspace.provider.answer = answer_with(judge)
    found = council(*blind_command("--json"))
    assert found.code == 0, found.err
    single = arms_of(found.json)["single"]["blind"]
    assert (single["preference"]["mean"], single["preference"]["n"]) == (0.5, 3)
    assert (single["won"], single["ties"], single["lost"]) == (0, 6, 0)
    assert (single["inconsistent"], single["absent"], single["agreement"]) == (3, 3, 1.0)
    lines = "\n".join(found.json["conclusions"])
    assert "3 of 6 comparisons changed with the order of the texts and count as ties" in lines
    assert "3 of 9 comparisons could not be read in both orders and are left out" in lines
    asked = len(workspace.provider.log)
    assert council(*blind_command("--json")).json == found.json and len(workspace.provider.log) == asked


@pytest.mark.behaviour("evidence-blind-reply")
def test_a_decision_against_its_own_scores_gets_a_repair_turn(workspace: Workspace, council: Terminal) -> None:
    write_set(workspace, 1)

    def judge(seen: Seen, texts: dict[str, str]) -> str | Json:
        found = prefer(texts, "Rewritten")
        if len(seen.body["messages"]) > 2:
            return found
        return found | {"score_a": found["score_b"], "score_b": found["score_a"]}

    workspace.provider.answer = answer_with(judge)
    found = council(*blind_command("--json"))
    single = arms_of(found.json)["single"]["blind"]
    assert (single["lost"], single["absent"], found.json["blind"]["calls"]) == (3, 0, 12)


@pytest.mark.behaviour("evidence-blind")
def test_comparisons_of_judges_that_cannot_be_reached_are_missing_and_asked_again(
    workspace: Workspace, council: Terminal
) -> None:
    write_set(workspace, 2)
    works = answer_with(lambda seen, texts: prefer(texts, "Rewritten"))
    workspace.provider.answer = lambda seen: Reply(status=401) if read_texts(seen) else works(seen)
    found = council(*blind_command("--json"))
    assert found.code != 0 and found.json["blind"]["unfinished"] == 2
    assert any("2 comparisons are missing" in line for line in found.json["conclusions"])
    assert any("nothing is concluded" in line for line in found.json["conclusions"])
    answers = len(workspace.provider.log) - len(comparisons(workspace))
    workspace.provider.answer = works
    again = council(*blind_command("--json"))
    assert again.code == 0 and again.json["blind"]["unfinished"] == 0
    assert len(workspace.provider.log) - len(comparisons(workspace)) == answers


@pytest.mark.behaviour("evidence-blind", "evidence-blind-judges")
def test_the_plan_counts_the_comparisons_and_the_table_shows_them(workspace: Workspace, council: Terminal) -> None:
    price = "input = 1.0\noutput = 2.0\n"
    workspace.configure(more="".join(f'[prices."sim:{name}"]\n{price}' for name in ("alpha", "beta", "gamma", "chair")))
    write_set(workspace, 2)
    workspace.provider.answer = answer_with(lambda seen, texts: prefer(texts, "Rewritten"))
    command = ("eval", "open.jsonl", "--arms", "single,solo,triad", "--grader", "blind", "--against", "single")
    plan = council(*command, "--dry-run")
    assert plan.code == 0, plan.err
    assert "4 rows: blind, 6 calls each, sim:alpha, sim:beta, sim:gamma" in plan.out and "cost: $" in plan.out
    planned = council(*command, "--dry-run", "--json").json
    assert [group["rows"] for group in planned["groups"] if group["protocol"] == "blind"] == [4]
    assert not workspace.provider.log and not (workspace.folder / "open.eval").exists()
    found = council(*command)
    assert found.code == 0, found.err
    assert "4 blind comparisons by sim:alpha, sim:beta, sim:gamma follow, 6 calls each, about $" in found.err
    assert "4 rows: blind, 6 calls each" in found.err
    lines = found.out.splitlines()
    start = next(n for n, line in enumerate(lines) if line.startswith("arm "))
    head, single, solo, triad = lines[start : start + 4]
    assert head.split()[:3] == ["arm", "against", "preferred"] and "equal length" in head
    assert single.split()[0] == "single" and "%" not in single  # the base
    assert solo.split()[:3] == ["solo", "single", "100"] and "6-0-0" in solo and "too few (0)" in solo
    assert triad.split()[:3] == ["triad", "single", "50"] and "0-6-0" in triad
    assert "Judges that also wrote texts, which they may favour: sim:alpha in single, solo, triad;" in found.out
    assert "preference.svg" in found.out and (workspace.folder / "open.eval" / "preference.png").exists()
    result = json.loads((workspace.folder / "open.eval" / "result.json").read_text(encoding="utf-8"))
    assert result["blind"]["usd"] > 0 and result["blind"]["tokens"] > 0
    assert (workspace.folder / "open.eval" / "table.txt").read_text(encoding="utf-8").splitlines()[start] == head


@pytest.mark.behaviour("evidence-blind-judges")
def test_judges_that_are_not_named_sit_in_no_arm_where_there_is_a_choice(
    workspace: Workspace, council: Terminal
) -> None:
    lines = ["[providers.sim]", 'wire = "openai"', f'base_url = "{workspace.provider.base_url}"']
    lines += ["[models]", 'default = "sim:m1"', 'strong = "sim:m2"', 'other = "sim:m3"', 'fast = "sim:m4"']
    (workspace.folder / "council.toml").write_text("\n".join(lines), encoding="utf-8")
    trust_project(workspace.folder)
    write_set(workspace, 1)
    workspace.provider.answer = answer_with(lambda seen, texts: prefer(texts, "Rewritten"))
    found = council("eval", "open.jsonl", "--arms", "single,solo", "--grader", "blind", "--json", "--no-plots")
    assert found.code == 0, found.err
    arms = arms_of(found.json)
    assert (arms["single"]["members"], arms["solo"]["members"]) == (["sim:m1"], ["sim:m2"])
    assert found.json["blind"]["judges"] == ["sim:m3", "sim:m4"]
    assert any("their difference is also one of models" in line for line in found.json["conclusions"])


@pytest.mark.behaviour("evidence-blind")
def test_rows_with_an_answer_are_left_out_of_a_blind_comparison(workspace: Workspace, council: Terminal) -> None:
    write_set(workspace, 1)
    with (workspace.folder / "open.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"question": "How much are 17 times 24?", "answer": 408}\n')
    workspace.provider.answer = answer_with(lambda seen, texts: prefer(texts, "Rewritten"))
    found = council(*blind_command("--json"))
    assert found.json["questions"] == 1
    assert "Rows with an answer that were left out: 1." in found.json["conclusions"]


@pytest.mark.behaviour("evidence-blind")
@pytest.mark.parametrize(
    ("rows", "flags", "problem"),
    [
        (OPEN, ("--arms", "solo"), '"solo" is the only one'),
        (OPEN, ("--arms", "solo,triad", "--against", "refine"), '--against "refine" is none of the arms: use one of'),
        (OPEN, ("--arms", "solo,self-consistency"), '"self-consistency" votes on short answers'),
        ('{"question": "Why?", "answer": "so"}', (), '"bad.jsonl" has no open question'),
        ('{"question": "  "}', (), 'line 1 of "bad.jsonl" has no "question"'),
        ('{"question": ["a"]}', (), '"question" is ["a"]'),
        (OPEN, ("--judges", "nobody:x"), '--judges: unknown provider "nobody"'),
        (OPEN, ("--judges", "anthropic:claude-opus-5.5"), "--judges: no API key for"),
        (OPEN, ("--judges", ",".join(f"sim:j{n}" for n in range(9))), "--judges names 9 members"),
    ],
)
def test_bad_input_of_a_blind_comparison_is_one_line(
    workspace: Workspace, council: Terminal, rows: str, flags: tuple[str, ...], problem: str
) -> None:
    (workspace.folder / "bad.jsonl").write_text(rows, encoding="utf-8")
    found = council("eval", "bad.jsonl", "--grader", "blind", *flags)
    assert found.code == 2 and problem in found.err and len(found.err.strip().splitlines()) == 1
    assert not workspace.provider.log and not found.out


def test_the_base_of_a_blind_comparison_needs_its_grader(workspace: Workspace, council: Terminal) -> None:
    write_set(workspace, 1)
    found = council("eval", "open.jsonl", "--arms", "single,solo", "--against", "solo")
    assert found.code == 2 and 'has no "answer"' in found.err
    (workspace.folder / "set.jsonl").write_text('{"question": "2+2?", "answer": 4}', encoding="utf-8")
    found = council("eval", "set.jsonl", "--arms", "single,solo", "--against", "solo")
    assert found.code == 2 and '--against "solo" belongs to --grader blind' in found.err
    (workspace.folder / "set.jsonl").write_text('{"question": "2+2?", "grader": "blind"}', encoding="utf-8")
    found = council("eval", "set.jsonl")
    assert found.code == 2 and "use --grader blind" in found.err
    assert not workspace.provider.log
