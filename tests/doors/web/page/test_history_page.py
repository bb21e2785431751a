"""Evaluations on a history: the file with all cases, and the result on the page of the server."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from council.evals.evaluation import Arm
from council.evals.history.case_file import ChosenCases
from council.evals.history.cases import Fix, FixedLine, HistoryCase, Mined
from council.evals.history.labels import CaseLabels
from council.evals.history.page import PageCase, render_cases
from council.evals.history.summary import HistoryArmReviews, read_case, summarize
from council.runs.advice import list_results, save_result
from council.runs.eval_object import HistoryEvalObject
from tests.doors.web.page.browser import Browser
from tests.doors.web.server import WebServer, environment
from tests.evals.test_history_hits import REQUEST, make_finding, make_report

Look = Callable[..., Browser]
HOSTILE = '</style><script>alert(1)</script><img src="https://evil.test/x">\u202e'
LONG = "word" * 80
DIFF = f"diff --git a/src/cart.py b/src/cart.py\n@@ -1,2 +1,2 @@\n-old {HOSTILE}\n+new {LONG}\n same\n"


def make_pages() -> tuple[HistoryEvalObject, str]:
    """Return a result with a bug that both arms find, one that none finds, and a control; and its page."""
    lines = (FixedLine("src/cart.py", 40, "    return total"),)
    fixes = [Fix(f"{n}" * 40, f"Fix {HOSTILE}", "2026-02-01", lines) for n in "ab"]
    cases = [
        HistoryCase(f"{n:010}", f"{n:040}", f"{n + 1:040}", f"Change {HOSTILE} {LONG}", "2026-01-01", 20, tuple(own))
        for n, own in enumerate(([fixes[0]], [fixes[1]], []))
    ]
    found = make_finding(40, description=HOSTILE, quote=f"    return total {LONG}", severity="CRITICAL")
    reports = [make_report(found, verdict="FAIL"), make_report(make_finding(1)), make_report(verdict="PASS")]
    changed = {"src/cart.py": list(range(31, 51))}
    arms = [
        HistoryArmReviews(
            Arm(name, "judges"),
            {case.id: read_case(case, name, report, {}, changed) for case, report in zip(cases, reports, strict=True)},
        )
        for name in ("judges:count=2:models=sim:one+sim:two", "quick")
    ]
    result = summarize(ChosenCases(REQUEST, Mined(tuple(cases))), arms, {})
    shown = [
        PageCase(
            case,
            DIFF,
            {fix.commit: DIFF for fix in case.fixes},
            {arm.arm.name: arm.reviews[case.id] for arm in arms},
            CaseLabels(note=HOSTILE),
        )
        for case in cases
    ]
    page = "".join(render_cases(result, shown, "https://me:secret@github.com/acme/shop.git"))
    return result, page


@pytest.mark.behaviour("evidence-history-page")
def test_the_file_of_the_cases_has_no_script_and_allows_no_request() -> None:
    _, page = make_pages()
    (style,) = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', page)
    assert policy.startswith("default-src 'none'") and f"style-src 'sha256-{digest}'" in policy
    assert "script-src" not in policy and "unsafe" not in policy and "<script" not in page
    assert "secret" not in page and "\u202e" not in page
    assert 'href="https://github.com/acme/shop/commit/' in page


@pytest.mark.behaviour("evidence-history-page")
def test_the_file_shows_every_case_at_any_width_and_in_both_schemes(look: Look, tmp_path: Path) -> None:
    file = tmp_path / "cases.html"
    file.write_text(make_pages()[1], encoding="utf-8")
    seen = look()
    page = seen.page
    page.goto(file.as_uri())
    assert page.locator("article").count() == 3
    text = page.locator("main").inner_text()
    for words in (
        "found by judges:count=2",
        "not found",
        "control",
        "Fixed later",
        "hit",
        "found by 1 of 2: judge-1",
        "No findings.",
    ):
        assert words in text, words
    for one in page.locator("details").all():
        one.evaluate("node => { node.open = true }")
    assert page.locator(".diff .added").count() == 5 and page.locator(".diff .removed").count() == 5
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        for width in (390, 768, 1440):
            page.set_viewport_size({"width": width, "height": 900})
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), (scheme, width)
    colours = []
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        colours.append(page.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert colours[0] != colours[1]
    assert {url.partition(":")[0] for url in seen.asked} <= {"file", "data"} and seen.errors == []


@pytest.mark.behaviour("evidence-page", "evidence-history-page")
def test_the_result_is_listed_and_shown_beside_other_evaluations(server: WebServer, look: Look, tmp_path: Path) -> None:
    result, _ = make_pages()
    save_result(environment(tmp_path), result, tmp_path / "shop.eval", 1_790_000_000.0)
    assert list_results(environment(tmp_path)) == []  # it is no advice about protocols for questions
    (row,) = server.get("/api/evals")["evals"]
    assert (row["dataset"], row["questions"], row["arms"][1]) == ("history:/project", 3, "quick")
    assert server.get(f"/api/evals/{row['id']}")["arms"] == json.loads(json.dumps(result["arms"]))
    seen = look().at(server.url)
    page = seen.page
    page.click("header a:has-text('Evals')")
    page.click(".eval-list a")
    page.wait_for_selector(".evals table")
    text = " ".join(seen.text(".evals").split())
    for words in ("history:/project", "2 bugs", "1 control", "cases.html", "too few", "1 or more of 2"):
        assert words in text, words
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert seen.errors == []
