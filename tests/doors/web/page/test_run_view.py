"""The view of one run: the answer first, each failure once, who differs in sentences, and the timeline as a strip."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from council.engine.degraded import format_page_lines
from council.render.positions import build_position_history
from council.render.report import read_report
from tests.acceptance.helpers import Workspace
from tests.doors.web.page.browser import Browser
from tests.doors.web.page.conftest import run_in_thread
from tests.doors.web.server import WebServer
from tests.engine.seat_events import add_patches
from tests.fake_provider import FakeProvider, Reply
from tests.render.runs import NAMES, RunBuilder, plan

Look = Callable[..., Browser]
QUESTION = (
    "Should we move the order archive to cold storage this year, and which tables first, " + "given the audit, " * 20
)
KEYS = {"alpha": "ANTHROPIC_API_KEY", "beta": "OPENAI_API_KEY", "gamma": "GEMINI_API_KEY"}
MEMBERS = {"alpha": "anthropic:a", "beta": "openai:b", "gamma": "google:c"}
DIFFERENCES = [
    {"point": "when to partition", "sides": [{"seats": ["alpha", "beta"], "position": "now", "assumes": ""}, {"seats": ["gamma"], "position": "in Q3", "assumes": "write growth below 20 %"}]},
    *({"point": f"point {n}", "sides": [{"seats": [name], "position": f"{name} {n}", "assumes": ""} for name in NAMES]} for n in range(3)),
]  # fmt: skip
NOTES = {
    "agreed": ["keep it"], "unique": [], "taken_from": [],
    "contested": [{"point": "when to partition", "sides": [{"seat": "alpha", "position": "now", "assumes": ""}, {"seat": "gamma", "position": "in Q3", "assumes": ""}]}],
}  # fmt: skip

# Mount the view of a run over given events, as the exported file does.
MOUNT = """async ([events, detail, positions, isLive]) => {
    const { runView } = await import('/page/run_view.js');
    const source = { detail: async () => detail, positions: async () => positions, report: async () => '', save() {}, cancel() {}, members: async () => ({ members: [] }) };
    const follow = (run, handlers) => { events.forEach(handlers.entry); if (!isLive) handlers.end(); return () => {}; };
    const last = events.at(-1).at * 1000;
    const view = runView(events[0].run, { source, follow, canAct: true, reconnect() {}, openSetup: () => (window.isSetup = true), now: () => last + 1000 });
    document.querySelector('main').replaceChildren(view.node);
}"""
TOP = "selector => document.querySelector(selector).getBoundingClientRect().top + scrollY"
HEIGHT = "selector => document.querySelector(selector).getBoundingClientRect().height"


def mount(seen: Browser, server: WebServer, builder: RunBuilder, is_live: bool = False) -> Any:
    """Show a run, and return the page."""
    seen.at(server.url)
    entries = builder.entries if is_live else [entry for entry in builder.entries if entry.seq]
    detail = None if is_live else {"report": read_report(builder.minutes), "above": format_page_lines(builder.minutes)}
    seen.page.evaluate(MOUNT, [add_patches(entries), detail, build_position_history(builder.entries), is_live])
    seen.page.wait_for_selector(".seat")
    if not is_live:
        seen.page.wait_for_selector(".answer:not([hidden])")
    return seen.page


def start() -> RunBuilder:
    seats = [
        {"name": name, "role": f"Role of {name}", "perspective": f"view of {name}", "model": member, "vendor": member.partition(":")[0], "fallbacks": []}
        for name, member in MEMBERS.items()
    ]  # fmt: skip
    return RunBuilder(plan(seats=seats, question=QUESTION)).phase("draft").ask(*NAMES)


def drafted() -> RunBuilder:
    builder = start()
    for name in NAMES:
        builder.answer(name, f"{name} drafts this. " * 30, served_by=MEMBERS[name])
    return builder.end_phase().phase("synthesise")


def finished() -> RunBuilder:
    builder = drafted().answer("chair", "Keep it.").end_phase()
    return builder.close("Keep it.", notes=NOTES, differences=DIFFERENCES, agreement="partial")


def locked_out() -> RunBuilder:
    builder = start()
    for name in NAMES:
        detail = f"401: invalid x-api-key; check {KEYS[name]}"
        builder.fault(name, "auth", detail, member=MEMBERS[name]).mark_absent(name, "failed(auth)", detail, 1)
    return builder.end_phase().close("", status="failed", stopped="quorum", reason="no seat answered")


@pytest.mark.behaviour("50-page-failure-once")
def test_a_total_failure_tells_each_cause_once_with_its_variable_and_one_button(server: WebServer, look: Look) -> None:
    seen = look()
    page = mount(seen, server, locked_out())
    page.wait_for_selector(".notices li:has-text('GEMINI_API_KEY')")
    text = seen.text("main")
    for key in KEYS.values():
        assert text.count(key) == 1
    assert text.count("invalid x-api-key") == len(KEYS)
    for words in ("council resume", "failed(auth)", "waiting", "too few answered\nno seat"):
        assert words not in text
    assert seen.text(".answer .answer-head h2").lower() == "no answer"
    assert "was not asked" in seen.text("[data-seat=chair]")
    buttons = [one for one in seen.texts("main button") if one in ("Resume", "Retry", "Set up")]
    assert buttons == ["Retry"]
    page.click(".notices button:has-text('Setup')")
    assert page.evaluate("() => window.isSetup") is True
    assert not page.locator(".trust").count()
    assert seen.errors == []


@pytest.mark.behaviour("50-page-differences")
def test_disagreement_is_told_in_sentences_with_names_above_the_map(server: WebServer, look: Look) -> None:
    seen = look()
    page = mount(seen, server, finished())
    page.wait_for_selector(".differences")
    page.wait_for_selector(".map tbody th")
    lines = [" ".join(line.split()) for line in seen.texts(".differences > ul p")]
    assert lines[:3] == ["When to partition", "alpha and beta: now.", "gamma: in Q3, assuming write growth below 20 %."]
    assert page.locator(".differences details summary").inner_text() == "1 more point"
    assert "They differ:" not in seen.text(".answer")  # the sentences tell it
    order = [page.evaluate(TOP, one) for one in (".words", ".differences", ".map", ".seat-list", ".timeline")]
    assert order == sorted(order)
    page.click(".differences .chip:has-text('gamma')")
    assert "said" in page.evaluate("() => document.activeElement.dataset.showing")
    assert seen.errors == []


@pytest.mark.behaviour("50-page-side-sentences")
def test_beside_the_answer_stand_sentences_that_open(server: WebServer, look: Look) -> None:
    seen = look()
    page = mount(seen, server, finished())
    page.wait_for_selector(".answer-side .trust")
    assert seen.text(".trust p").startswith("Trust: ")
    assert page.locator(".answer-side details[open]").count() == 0
    page.click(".trust summary")
    assert len(seen.texts(".trust li")) == 2
    assert "used" in seen.text(".cost-panel p")
    text = seen.text("main")
    for words in ("strongest seat:", "not assessed whether", "·  only one saw", "landed", "Role of alpha · view"):
        assert words not in text
    assert seen.text("[data-seat=alpha] .who") == "view of alpha"
    assert seen.errors == []


@pytest.mark.behaviour("50-page-title")
@pytest.mark.parametrize("width", [390, 1024])
def test_the_title_is_one_line_and_shows_the_whole_question_on_focus(server: WebServer, look: Look, width: int) -> None:
    seen = look(viewport={"width": width, "height": 800})
    page = mount(seen, server, finished())
    seen.wait("() => document.title.includes('given the audit')")
    line = page.evaluate(HEIGHT, ".run-head h1")
    assert line < 35
    assert page.get_attribute(".run-head h1", "title") == QUESTION
    page.focus(".run-head h1")
    assert page.evaluate(HEIGHT, ".run-head h1") > 2 * line
    assert page.evaluate("() => document.documentElement.scrollWidth") == width


@pytest.mark.behaviour("50-page-strip")
def test_the_timeline_is_a_strip_above_the_text_of_a_live_run_and_below_the_evidence_after_it(
    server: WebServer, look: Look
) -> None:
    seen = look()
    page = mount(seen, server, drafted().ask("chair").stream("chair", "Keep it"), is_live=True)
    page.wait_for_selector(".draft:not([hidden])")
    assert page.evaluate(HEIGHT, ".timeline") < 45
    assert page.evaluate(TOP, ".draft .words") < 300
    assert page.evaluate(TOP, ".timeline") < page.evaluate(TOP, ".seat-list")

    page = mount(seen, server, finished())
    assert page.evaluate(HEIGHT, ".timeline") < 45
    assert page.evaluate(TOP, ".timeline") > page.evaluate(TOP, ".seat-list")
    assert not page.is_visible(".timeline .label")
    page.click(".timeline .opens")
    assert seen.texts(".timeline .label") == [*NAMES, "chair"]
    assert page.locator(".timeline .opens").get_attribute("aria-expanded") == "true"
    page.locator(".plot input").press("Home")
    page.wait_for_selector(".timeline[data-at=past]")
    box = page.locator(".timeline").bounding_box()
    assert box is not None and box["y"] + box["height"] <= 901  # it stays in view while it is used
    assert seen.errors == []


@pytest.mark.behaviour("50-page-failure-once", "50-page-acting")
def test_a_run_whose_keys_were_refused_opens_the_setup_and_is_tried_again(
    server: WebServer, provider: FakeProvider, look: Look
) -> None:
    table = Workspace(server.folder, provider)
    table.configure()
    for name in NAMES:
        table.answers.instead[name] = Reply(status=401)
    seen = look().run(server.url, run_in_thread(server.run_council))
    page = seen.page
    page.click(".notices button:has-text('Setup')")
    page.wait_for_selector("dialog.setup-dialog[open]")
    page.keyboard.press("Escape")
    table.answers.instead.clear()
    page.click(".notices button:has-text('Retry')")
    seen.wait_for_status("complete")
    page.wait_for_selector(".answer .words")
    assert not page.locator(".notices button").count()
    assert seen.errors == []
