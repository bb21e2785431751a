"""Evaluations on the page and in the HTTP API: the list, and one result with its table and plots."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from council.evals.blind import BlindTable, JudgementRow, Outcome, Pair
from council.evals.dataset import Item
from council.evals.evaluation import ArmResults, EvalTable, Evaluation, Result, parse_arms
from council.evals.statistics import format_p_cell
from council.runs.advice import save_result
from tests.doors.web.page.browser import Browser
from tests.doors.web.server import WebServer, environment

Look = Callable[..., Browser]
COUNT = 60


def make_table() -> EvalTable:
    """A table of three arms with sixty answers each."""
    rng, items = random.Random(1), tuple(Item(str(n), "q", "1") for n in range(COUNT))
    arms = parse_arms("single,collaborative")
    chances = {"single": 0.55, "collaborative": 0.85}

    def answer(arm: str, n: int) -> Result:
        right = rng.random() < chances.get(arm, 0.6)
        share = None if arm == "single" else rng.choice((0.34, 0.67, 1.0))
        level = "HIGH" if right and n % 3 else "MEDIUM"
        return Result(
            f"r{n}",
            "1",
            right,
            level,
            share,
            {"alpha": right, "beta": n % 2 == 0},
            900,
            7,
            0.01,
            2.0,
            served_by={"alpha": "sim:m1", "beta": "sim:m2"},
        )

    found = [ArmResults(arm, {item.id: answer(arm.name, n) for n, item in enumerate(items)}) for arm in arms]
    return EvalTable(Evaluation(items, tuple(arms), dataset="questions.jsonl"), found)


@pytest.mark.behaviour("evidence-page", "evidence-p-values", "evidence-calibration")
def test_evaluations_are_listed_and_one_is_shown_with_its_table_and_plots(server: WebServer, look: Look, tmp_path: Path) -> None:  # fmt: skip
    seen = look().at(server.url)
    page = seen.page
    page.click("header a:has-text('Evals')")
    page.wait_for_selector("text=There is no result yet.")
    table = make_table().as_json()
    save_result(environment(tmp_path), table, tmp_path / "questions.eval", 1_790_000_000.0)
    page.reload()
    page.click(".eval-list a")
    page.wait_for_selector(".evals table")
    text = " ".join(seen.text(".evals").split())
    for words in ("questions.jsonl", "What can be concluded", "60 questions", "models sim:m1 and sim:m2", "self-consistency (same tokens as collaborative)", "right by trust level", "not about which arm is right more often", "single used sim:m1"):  # fmt: skip
        assert words in text
    assert "self-consistency=" not in text
    order = [
        text.index(words)
        for words in ("what to do:", "right by share of the votes", "only other right", "how often chance alone")
    ]
    assert order == sorted(order)  # the text first, the tables and their terms last
    both = [one for arm in table["arms"] for one in (arm["against_single"], arm["against"]) if one]
    compared = [one["p_value"] for one in both]
    cells = seen.texts(".evals td")
    assert compared and {format_p_cell(p_value) for p_value in compared} <= set(cells)
    assert cells.count("too few") == 2  # the calibration error of sixty answers
    assert (
        len(seen.texts(".evals tbody tr")) == 3 + len(both) == 6 and page.locator(".eval-plot .eval-span").count() > 5
    )
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    listed = server.get("/api/evals")["evals"]
    assert [one["arms"][1] for one in listed] == ["collaborative"]
    assert server.get(f"/api/evals/{listed[0]['id']}")["conclusions"]
    assert server.ask("GET", "/api/evals/none").status == 404
    page.evaluate("location.hash = '#/evals/none'")
    page.wait_for_selector(".evals .problem")
    assert [one for one in seen.errors if "404" not in one] == []


def make_blind_table() -> EvalTable:
    """A table of three arms with forty open questions, compared by two judges."""
    rng, items = random.Random(2), tuple(Item(str(n), "q", "", grader="blind") for n in range(40))
    arms = parse_arms("single,solo,refine", "blind")
    result = Result("r1", "", None, "LOW", None, {}, 900, 7, 0.01, 2.0, "A text.", {"alpha": "sim:m1"})
    chances = {"single": 0.3, "refine": 0.7}

    def judge(chance: float, member: str) -> JudgementRow:
        outcome: Outcome = "text" if rng.random() < chance else "base"
        named = {"outcome": outcome, "inconsistent": False, "seat": "", "member": member, "replies": []}
        return {**named, "score": 7.5, "base_score": 6.5}

    pairs = {
        arm: {item.id: Pair("r2", 420, 400, [judge(chance, "sim:j1"), judge(chance, "sim:m1")], 1) for item in items}
        for arm, chance in chances.items()
    }
    compared = BlindTable("solo", pairs, {"solo": ["sim:m1"]}, 0, {"tokens": 9000, "calls": 160, "usd": 0.4})
    found = [ArmResults(arm, {item.id: result for item in items}) for arm in arms]
    evaluation = Evaluation(items, tuple(arms), dataset="open.jsonl", against="solo")
    return EvalTable(evaluation, found, comparisons=compared)


@pytest.mark.behaviour("evidence-page", "evidence-blind-summary")
def test_blind_comparisons_are_shown_with_their_preference(server: WebServer, look: Look, tmp_path: Path) -> None:
    save_result(environment(tmp_path), make_blind_table().as_json(), tmp_path / "open.eval", 1_790_000_000.0)
    seen = look().at(server.url)
    seen.page.click("header a:has-text('Evals')")
    seen.page.click(".eval-list a")
    seen.page.wait_for_selector(".evals table")
    text = " ".join(seen.text(".evals").split())
    assert "40 questions" in text and "judges sim:j1 and sim:m1" in text
    assert "Share of comparisons that prefer it to solo" in text and "Judges that also wrote texts" in text
    assert "Share of right answers" not in text and "equal tokens" not in text
    head, rows = seen.texts(".evals thead th"), seen.texts(".evals tbody tr")
    assert len(rows) == 3 and "equal length" in head and "inconsistent" in head
    assert "7.5 : 6.5" in rows[0] and "420 : 400" in rows[0] and "(40)" in rows[0]
    assert seen.page.locator(".eval-plot .eval-span").count() == 2
    shown = server.get(f"/api/evals/{server.get('/api/evals')['evals'][0]['id']}")
    assert shown["blind"]["judging_members"] == {"sim:m1": ["solo"]} and shown["arms"][1]["blind"] is None
    assert seen.errors == []
