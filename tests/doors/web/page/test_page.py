"""The page in use: start, watch, stop, resume, browse and export runs."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.helpers import Workspace, mark
from tests.doors.web.page.browser import POLL_MS, Browser
from tests.doors.web.page.conftest import run_in_thread
from tests.doors.web.server import QUESTION, WebServer
from tests.fake_provider import FakeProvider, Gate, Reply
from tests.packet.fake_secrets import SECRETS
from tests.trusted_project import trust_project

Look = Callable[..., Browser]
PRICED = '[prices."sim:*"]\ninput = 1.0\noutput = 5.0\n'


def submit_question(seen: Browser, question: str = QUESTION) -> str:
    """Submit the form and return the label of its button."""
    seen.page.fill("#question", question)
    seen.page.wait_for_selector(".go .run:not([disabled])")
    label = seen.text(".go .run")
    seen.page.click(".go .run")
    seen.page.wait_for_selector(".seat")
    return label


def hold_chair(server: WebServer, provider: FakeProvider, look: Look) -> tuple[Gate, Browser]:
    """Open the page of a council whose chair answers as soon as the gate is released."""
    gate = Workspace(server.folder, provider).hold("synthesise")
    return gate, look().at(server.url)


def assert_no_errors(seen: Browser, site: WebServer) -> None:
    """Check that the page made no external request and had no error."""
    assert seen.external_requests(site.host) == []
    assert seen.errors == []


@pytest.mark.behaviour("50-page-start", "50-page-columns", "50-page-acting", "50-page-draft-answer", "issue-7-page-run")
def test_a_run_is_started_watched_stopped_and_resumed(server: WebServer, provider: FakeProvider, look: Look) -> None:
    table = Workspace(server.folder, provider)
    table.configure(more=PRICED)
    table.answers.instead["beta"] = Reply(text=" ".join(f"Word {n} of beta." for n in range(9000)), drip=0.02)
    seen = look().at(server.url)

    assert submit_question(seen).startswith("Run · at most $")
    seen.wait("mark => document.querySelector('[data-seat=alpha]').innerText.includes(mark)", mark("alpha", "draft"))
    seen.wait("() => document.querySelector('[data-seat=beta] .live-text')?.innerText.includes('Word 3 of beta')")
    assert seen.page.locator("[data-seat=beta]").get_attribute("data-state") == "writing"

    seen.page.click("button:has-text('Stop')")
    seen.wait_for_status("incomplete: stopped by you")
    assert "Cancelled before the last step" in seen.text(".notices")

    del table.answers.instead["beta"]
    text = "## The decision\n\nKeep **the archive** where it is.\n\n" + "And so on. " * 900
    table.answers.instead["chair"] = Reply(text=text, piece=40, stall=9_000)  # never ends
    seen.page.click(".notices button:has-text('Resume')")
    seen.page.wait_for_selector(".draft strong:has-text('the archive')")  # the chair is still writing
    seen.wait("() => document.querySelector('.draft .open-text').textContent.startsWith('And')")
    assert (seen.text(".draft h3"), seen.text(".draft .pill")) == ("The decision", "chair is writing")
    seen.page.click("button:has-text('Stop')")
    seen.wait_for_status("incomplete: stopped by you")
    assert not seen.page.is_visible(".draft")

    del table.answers.instead["chair"]
    seen.page.click(".notices button:has-text('Resume')")
    seen.wait_for_status("complete")
    seen.page.wait_for_selector(".answer .prose:has-text('The synthesise of chair')")  # it replaces the digest
    assert seen.texts(".seat-name") == ["alpha", "beta", "gamma", "chair"]
    assert_no_errors(seen, server)


AT_END = """() => {
    const body = document.querySelector('[data-seat=gamma] .body');
    const last = [...body.querySelectorAll('article')].at(-1);
    return last?.innerText.toLowerCase().startsWith('improve') && last.textContent.length > 4000
        && body.scrollHeight - body.scrollTop - body.clientHeight < 48;
}"""


@pytest.mark.behaviour("50-page-follows")
def test_a_column_follows_its_text_in_every_phase_until_the_reader_scrolls(
    server: WebServer, provider: FakeProvider, look: Look
) -> None:
    table = Workspace(server.folder, provider)
    long = "\n\n".join(f"Line {n} of gamma, which is long enough to wrap in a narrow column." for n in range(150))
    table.answers.instead["gamma/draft"] = Reply(text=long, piece=200)
    table.answers.instead["gamma/improve"] = Reply(text=long, piece=200, stall=12_000)  # never ends
    seen = look().at(server.url)
    submit_question(seen)
    seen.wait(AT_END)
    seen.page.hover("[data-seat=gamma] .body")
    seen.page.mouse.wheel(0, -600)
    seen.page.wait_for_selector("[data-seat=gamma] .jump:visible")
    seen.page.click("[data-seat=gamma] .jump")
    seen.wait(AT_END)
    assert not seen.page.is_visible("[data-seat=gamma] .jump")
    tab = look()  # without the first events, the order of the seats is that of the plan
    tab.page.goto(f"{server.url}&run={seen.page.url.rpartition('/')[2]}")
    tab.page.wait_for_selector("[data-seat=chair]")
    order = "() => [...document.querySelectorAll('.seat')].map(one => [one.dataset.seat, one.className])"
    assert tab.page.evaluate(order) == seen.page.evaluate(order)


@pytest.mark.behaviour("50-page-replay")
def test_the_timeline_replays_a_run_by_dragging_and_playing(server: WebServer, look: Look) -> None:
    run = run_in_thread(server.run_council)
    seen = look().run(server.url, run)
    plot = seen.page.locator(".plot input")
    box = plot.bounding_box()
    assert box is not None

    plot.click(position={"x": box["width"] * 0.5, "y": box["height"] / 2})  # waits until the layout no longer moves
    seen.wait_for_status("replay")
    assert not seen.page.locator(".answer").is_visible()
    there = float(plot.input_value())
    plot.press("ArrowLeft")
    seen.wait("there => Number(document.querySelector('.plot input').value) < there", there)
    plot.press("Home")
    seen.wait("() => !document.querySelector('.statement[data-showing=said]')")

    seen.page.keyboard.press("r")
    seen.wait_for_status("complete")
    assert seen.page.locator(".answer").is_visible()
    assert_no_errors(seen, server)


def run_judges(server: WebServer) -> str:
    """Run two judges who agree on one finding and dispute another."""
    shared = {"severity": "critical", "category": "security", "description": "The core returns one and checks nothing.", "location": "src/core.py:2", "recommendation": "Check it.", "fix": "Check it first.", "why": "It was forgotten.", "ref": "src/core.py:1"}  # fmt: skip
    lone = shared | {
        "severity": "minor",
        "description": "The name says nothing about the thing.",
        "location": "src/core.py:1",
    }
    first = {
        "verdict": "WARN",
        "confidence": "HIGH",
        "key_insight": "It is unchecked.",
        "recommendation": "Check it.",
        "schema_version": 2,
    }
    notes = {"revised_from": None, "steel_man": "It may be meant so.", "challenges": [], "acknowledgments": []}
    against = {
        "target_judge": "judge-1",
        "claim": "The name says nothing about the thing.",
        "response": "It is the name of the file.",
    }
    second = first | {"restated": "As before.", "reason": "src/core.py:2 is as it was."}
    lines = {
        "r1/judge-1": first | {"findings": [shared, lone]}, "r1/judge-2": first | {"findings": [shared]},
        "r2/judge-1": second | {"findings": [shared, lone], "debate_notes": notes},
        "r2/judge-2": second | {"verdict": "FAIL", "findings": [shared], "debate_notes": notes | {"revised_from": "WARN", "challenges": [against]}},
    }  # fmt: skip
    cast = server.folder / "judges.json"
    cast.write_text(
        "".join(f"[{json.dumps(key)}]\nreply = {toml(line)}\n" for key, line in lines.items()), encoding="utf-8"
    )
    seats = "".join(f'[seats.judge-{n}]\nmodel = "scripted:{cast}"\n' for n in (1, 2))
    (server.folder / "council.toml").write_text(seats, encoding="utf-8")
    trust_project(server.folder)
    return str(run_in_thread(server.run_council, "validate src/core.py", options={"debate": True}))


def toml(value: Any) -> str:
    """Format a JSON value as TOML, without nulls."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {toml(of)}" for key, of in value.items() if of is not None) + "}"
    return "[" + ", ".join(map(toml, value)) + "]" if isinstance(value, list) else json.dumps(value)


@pytest.mark.behaviour("50-page-map", "50-page-claims", "50-page-shifts", "50-page-terms")
def test_a_finding_opens_from_the_map_and_links_to_its_statement(server: WebServer, look: Look) -> None:
    seen = look().run(server.url, run_judges(server))
    seen.page.wait_for_selector(".map tbody th")
    assert seen.texts(".map tbody th") == ["critical\ncore.py:2", "minor\ncore.py:1", "the verdict"]
    assert seen.texts(".map .status") == ["all agree", "disputed", "disputed"]
    cells = [row.split() for row in seen.texts(".map tbody tr")]
    assert cells[1].count("opposes") == 1
    assert "WARN" in seen.text(".shifts") and "FAIL" in seen.text(".shifts")

    seen.page.keyboard.press("j")
    assert "Check it first." in seen.text(".map .detail")
    seen.page.keyboard.press("j")
    assert "It is the name of the file." in seen.text(".map .detail")
    seen.page.click(".map .detail .chip:has-text('judge-1')")
    flashed = seen.page.wait_for_selector(".flash")
    assert "The name says nothing about the thing." in flashed.inner_text()
    assert seen.page.evaluate("() => document.activeElement.dataset.key") == "r2 judge-1"
    seen.page.wait_for_selector(".trust")  # the card is complete: building it again would close the explanation
    seen.page.focus(".verdict .term")
    seen.page.keyboard.press("Enter")
    assert "said FAIL" in seen.text(".verdict .note:popover-open")
    assert seen.text(".run-head h1") == "Validate src/core.py"
    assert_no_errors(seen, server)


@pytest.mark.behaviour("50-page-keyboard")
def test_keyboard_shortcuts(server: WebServer, look: Look) -> None:
    seen = look().run(server.url, run_in_thread(server.run_council))
    keys = seen.page.keyboard
    keys.press("2")
    assert seen.texts(".seat-name") == ["beta"] or seen.page.locator(".seat:visible").count() == 1
    keys.press("f")
    assert not seen.page.locator(".rail").is_visible()
    keys.press("Escape")
    assert seen.page.locator(".rail").is_visible()
    keys.press("Escape")
    assert seen.page.locator(".seat:visible").count() == 4
    keys.press("?")
    assert seen.page.locator("dialog.help").is_visible()
    keys.press("Escape")
    assert not seen.page.locator("dialog.help").is_visible()


def run_twelve_seats(server: WebServer) -> str:
    """Run a ranking of twelve seats whose answers are long and have a wide table."""
    names = [f"seat-{n}" for n in range(1, 13)]
    cells = " | ".join(f"a column with many words {n}" for n in range(9))
    table = f"| {cells} |\n{'|---' * 9}|\n| {cells} |\n"
    text = "## What to do\n\nKeep **it**. " + "It is cheap and it works. " * 40 + f"\n\n{table}"
    cast = server.folder / "twelve.toml"
    cast.write_text("".join(f'["answer/{name}"]\ntext = {json.dumps(text)}\n' for name in names), encoding="utf-8")
    seats = [{"name": name, "lens": "one", "stance": "two", "model": f"scripted:{cast}"} for name in names]
    config = (server.folder / "council.toml").read_text() + f"[rosters.twelve]\nseats = {toml(seats)}\n"
    (server.folder / "council.toml").write_text(config, encoding="utf-8")
    trust_project(server.folder)
    return str(run_in_thread(server.run_council, protocol="ranking", options={"roster": "twelve"}))


@pytest.mark.behaviour("50-page-many-seats")
def test_twelve_seats_stay_below_three_screens_until_one_is_opened(server: WebServer, look: Look) -> None:
    seen = look().run(server.url, run_twelve_seats(server))
    page = seen.page
    for width, height in ((390, 844), (1400, 900)):
        page.set_viewport_size({"width": width, "height": height})
        assert page.evaluate("() => document.documentElement.scrollHeight") <= 3 * height
    assert page.locator(".seat-list").get_attribute("data-mode") == "list"
    assert page.locator(".statement:visible").count() == 0

    page.focus("[data-seat=seat-2] .seat-name")
    page.keyboard.press("Enter")
    first = page.locator("[data-seat=seat-2] [data-key^=answer]")
    assert first.locator("strong").count() == 0  # the earlier round is folded
    assert first.locator(".brief").inner_text().startswith("What to do")
    first.locator(".fold").click()
    assert first.locator("strong").inner_text() == "it"
    page.keyboard.press("7")
    assert page.locator(".seat:visible").count() == 1
    page.keyboard.press("Escape")

    page.set_viewport_size({"width": 390, "height": 844})
    first.locator("button:has-text('Open wide')").click()
    assert page.locator("dialog .wide td").count() == 9
    page.keyboard.press("Escape")
    seen.wait("() => !document.querySelector('dialog .wide')")
    for _ in range(3):  # one seat, columns, compact
        page.keyboard.press("v")
    page.reload()
    page.wait_for_selector(".seat-list[data-mode=compact]")  # remembered
    assert page.evaluate("() => document.documentElement.scrollWidth") == 390
    assert_no_errors(seen, server)


@pytest.mark.behaviour("50-page-diff")
def test_rounds_are_compared_word_by_word(server: WebServer, look: Look) -> None:
    seen = look().run(server.url, run_judges(server))
    seen.page.click("[data-seat=judge-2] [data-key^=r2] button:has-text('compare')")
    assert "WARN" in " ".join(seen.texts("[data-seat=judge-2] del"))
    assert "FAIL" in " ".join(seen.texts("[data-seat=judge-2] ins"))


@pytest.mark.behaviour("50-page-behind")
def test_every_tab_shows_its_details(server: WebServer, look: Look) -> None:
    seen = look().run(server.url, run_judges(server))
    page = seen.page
    page.click("#tab-packet")
    assert "src/core.py" in seen.text("#panel-packet")
    page.click("#panel-packet button")
    seen.wait("() => document.querySelector('#panel-packet pre')?.innerText.includes('return 1')")
    page.click("#tab-money")
    assert "Nothing was billed" in seen.text("#panel-money")
    page.click("#tab-attempts")
    page.click("#panel-attempts summary >> nth=0")
    seen.wait("() => document.querySelectorAll('#panel-attempts pre').length === 2")
    assert "messages" in seen.text("#panel-attempts pre")
    page.click("#tab-events")
    assert seen.texts(".event b")[:2] == ["convened", "phase"]
    page.click(".event >> nth=1")
    assert '"type": "phase"' in seen.text(".event-detail")
    page.click("#tab-report")
    seen.wait("() => document.querySelector('#panel-report .prose')?.innerText.includes('core.py')")
    assert_no_errors(seen, server)


@pytest.mark.behaviour("50-page-history")
def test_the_list_shows_unfinished_runs_first_and_can_be_searched(server: WebServer, look: Look) -> None:
    run_in_thread(server.run_council, "Should the kitchen close on Mondays?")
    unfinished = run_in_thread(server.run_council, "Should the cellar flood?")
    with server.database() as db:
        db.execute("UPDATE runs SET status = 'running' WHERE id = ?", [unfinished])
        db.execute("DELETE FROM events WHERE run = ? AND type = 'closed'", [unfinished])
    run_in_thread(server.run_council, "Should the garden grow?")
    seen = look().at(server.url)
    seen.wait("() => document.querySelectorAll('.run-item').length === 3")
    assert seen.texts(".run-item .q") == [
        "Should the cellar flood?",
        "Should the garden grow?",
        "Should the kitchen close on Mondays?",
    ]
    assert seen.page.locator(".run-item .resume").count() == 1
    assert seen.texts(".history h2") == ["UNFINISHED", "TODAY"]
    seen.wait("() => document.querySelector('.spend').innerText === 'Spent today\\n$0'")
    seen.page.fill(".rail input", "garden")
    seen.wait("() => document.querySelectorAll('.run-item').length === 1")
    seen.page.click(".run-item a")
    seen.page.wait_for_selector(".answer .prose")
    assert seen.text(".run-head h1") == "Should the garden grow?"
    seen.page.fill(".rail input", "")
    seen.page.click(".run-item button:has-text('Resume')")
    seen.wait(
        "() => document.querySelector('.run-head h1').innerText.includes('cellar') && document.querySelector('.run-head .pill').innerText === 'complete'"
    )
    assert_no_errors(seen, server)


@pytest.mark.behaviour("50-page-compare", "50-page-delete", "50-page-filters", "50-page-tab")
def test_a_person_filters_renames_compares_and_deletes_runs(server: WebServer, look: Look) -> None:
    storage = run_in_thread(server.run_council, "adversarial council: hot or cold storage?")
    garden = run_in_thread(server.run_council, "Should the garden grow?")
    seen = look()
    seen.at(server.url.replace("/#", "/?q=garden#"))
    page = seen.page
    seen.wait("() => document.querySelectorAll('.run-item').length === 1")
    page.click("button:has-text('Clear filters')")
    seen.wait("() => document.querySelectorAll('.run-item').length === 2 && !location.search")
    word = server.get("/api/runs?q=storage")["runs"][0]["outcome"]
    page.select_option("select[aria-label='Filter by result']", word)
    seen.wait(
        "word => document.querySelectorAll('.run-item').length === 1 && location.search === `?result=${word}`", word
    )
    page.click(".run-item a")
    page.wait_for_selector(".answer .prose")
    assert page.url.endswith(f"?result={word}#/run/{storage}")
    assert page.title().startswith("✓ ") and "icon-done.svg" in str(page.get_attribute("link[rel=icon]", "href"))

    page.fill("label:has-text('Day') input", "2001-02-03")
    seen.wait("() => document.querySelector('.history ~ p').innerText === 'No matching runs.'")
    page.click("button:has-text('Clear filters')")
    page.wait_for_selector(f".run-item [data-run='{garden}']")

    page.focus(f"[data-run='{garden}']")
    page.keyboard.press("e")
    page.fill("#run-title", "Growing")
    page.keyboard.press("Enter")
    seen.wait("() => document.querySelector('.run-item .q').innerText === 'Growing'")

    page.focus(f"[data-run='{garden}']")
    page.keyboard.press("c")
    assert "with another run" in seen.text(".tray")
    page.focus(f"[data-run='{storage}']")
    page.keyboard.press("c")
    page.wait_for_selector(".compare article + article .prose")
    assert page.url.endswith(f"#compare={garden},{storage}")
    seen.wait("() => document.querySelector('.compare [role=status]').innerText.includes('% of their text')")
    articles = seen.texts(".compare article")
    assert "Should the garden grow?" in articles[0] and word in articles[1] and "Cost" in articles[0]
    page.click("button:has-text('Swap sides')")
    page.wait_for_selector(f".compare article:first-child[data-run='{storage}']")

    page.hover(f".run-item[data-id='{garden}']")
    page.click(f".run-item[data-id='{garden}'] .dots")
    page.click(".row-actions button:has-text('Delete')")
    assert "cannot be undone" in seen.text(".run-dialog")
    page.click(".run-dialog button:has-text('Cancel')")
    assert len(server.get("/api/runs")["runs"]) == 2
    page.click(".row-actions button:has-text('Delete')")
    page.click(".run-dialog button:has-text('Delete')")
    seen.wait("() => document.querySelectorAll('.run-item').length === 1")
    assert [run["id"] for run in server.get("/api/runs")["runs"]] == [storage]
    assert_no_errors(seen, server)


# A browser that asks for permission; the one of the tests refuses every notification. The tab is in the background.
NOTIFICATIONS = """
window.notes = [];
window.Notification = class {
    static permission = 'default';
    static requestPermission = async () => (Notification.permission = 'granted');
    constructor(title, { body }) { notes.push([title, body]); }
};
Object.defineProperty(document, 'visibilityState', { get: () => 'hidden' });
"""


@pytest.mark.behaviour("50-page-money", "50-page-tab", "50-page-waterfall")
def test_money_and_attempts_show_estimates_reserves_and_times(
    server: WebServer, provider: FakeProvider, look: Look
) -> None:
    table = Workspace(server.folder, provider)
    table.configure(more=PRICED)
    table.answers.instead["beta/draft"] = [Reply(cut=400)]  # billed as an estimate, then asked again
    table.answers.instead["gamma/improve"] = Reply(text="Gamma writes on. " * 500, stall=3000)  # never ends
    seen = look()
    seen.page.add_init_script(NOTIFICATIONS)
    seen.at(server.url)
    submit_question(seen)
    seen.page.click(".actions button:has-text('Notify me')")
    seen.page.wait_for_selector(".actions button[aria-pressed=true]")
    seen.wait("() => document.querySelector('[data-seat=gamma] .live-text')?.innerText.includes('Gamma writes on')")
    seen.page.click("#tab-money")
    seen.wait("() => document.querySelector('.money-bars [data-seat=gamma]')?.innerText.includes('reserved')")
    beta = seen.text(".money-bars [data-seat=beta]")
    assert " spent" in beta and "foreseen" in beta and "in doubt" in beta
    assert "more in doubt" in seen.text(".run-head .cost")
    assert seen.page.title().startswith("● ") and "icon-live.svg" in str(
        seen.page.get_attribute("link[rel=icon]", "href")
    )
    seen.page.click("#tab-attempts")
    rows = seen.texts(".attempt summary")
    first = next(row for row in rows if row.startswith("draft/beta#1"))
    second = next(row for row in rows if row.startswith("draft/beta#2"))
    assert "failed (cut)" in first and "in doubt" in first
    assert "first text" in second and " in, " in second and "est." not in second
    seen.page.click("button:has-text('Stop')")
    seen.wait_for_status("incomplete: stopped by you")
    seen.page.click("#tab-money")
    seen.wait("() => document.querySelector('.money-bars [data-seat=gamma]')?.innerText.match(/est\\.|in doubt/)")
    seen.wait("() => document.querySelector('.run-item .about').innerText.includes('est.')")
    assert seen.page.evaluate("() => window.notes") == [["Council: incomplete: stopped by you", QUESTION]]
    assert_no_errors(seen, server)


@pytest.mark.behaviour("50-page-files", "13-cheap")
def test_files_and_fast_models_are_chosen_and_change_the_plan(server: WebServer, look: Look) -> None:
    seen = look().at(server.url)
    seen.open_options()
    seen.page.click("button:has-text('Add files')")
    seen.page.wait_for_selector(".tree li")
    assert "secret.pem" not in seen.text(".tree") and ".env" not in seen.text(".tree")
    seen.page.click(".tree button:has-text('src/')")
    seen.page.check(".tree label:has-text('core.py') >> xpath=../input")
    seen.page.click("dialog button:has-text('Done')")
    assert seen.texts(".picked code") == ["src/core.py"]
    seen.page.fill("#question", "Is it sound?")
    seen.wait("() => document.querySelector('.plan').innerText.includes('1 file')")
    assert_no_errors(seen, server)
    seen.page.check("#option-cheap")  # the owner of this server has configured no fast model
    seen.wait("() => document.querySelector('.composer > .problem').innerText.includes('no fast model')")


DROP = """([name, type, text]) => {
    const data = new DataTransfer();
    data.items.add(new File([text], name, { type }));
    document.querySelector('.start').dispatchEvent(new DragEvent('drop', { dataTransfer: data, bubbles: true, cancelable: true }));
}"""
PASTE = """text => {
    const data = new DataTransfer();
    data.setData('text/plain', text);
    document.querySelector('#question').dispatchEvent(new ClipboardEvent('paste', { clipboardData: data, bubbles: true, cancelable: true }));
}"""


RED_PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC"
PASTE_IMAGE = """base64 => {
    const bytes = Uint8Array.from(atob(base64), one => one.charCodeAt(0));
    const data = new DataTransfer();
    data.items.add(new File([bytes], 'image.png', { type: 'image/png' }));
    document.querySelector('#question').dispatchEvent(new ClipboardEvent('paste', { clipboardData: data, bubbles: true, cancelable: true }));
}"""


@pytest.mark.behaviour("50-page-form", "50-page-attachments")
def test_the_form_offers_examples_every_option_and_attachments(server: WebServer, look: Look) -> None:
    seen = look(viewport={"width": 390, "height": 800}).at(server.url)
    page = seen.page
    page.click(".example >> nth=2")
    assert page.input_value("#question").startswith("Rank these names") and not page.is_visible(".examples")
    seen.wait("() => document.querySelector('.plan').innerText.includes('ranking')")

    seen.choose_protocol("judges")
    seen.open_options()
    assert "security-audit" in page.locator("#option-preset option").all_inner_texts()
    page.select_option("#option-preset", "security-audit")
    page.fill("#option-decisions", "Keep the archive, for now.\nNo new vendor.")
    page.select_option("#option-effort", "high")
    page.check("#option-redact")
    page.evaluate(DROP, ["photo.heic", "image/heic", "x\0"])
    refused = "is neither an image (PNG, JPEG, WebP, GIF) nor a PDF nor text"
    seen.wait(f"() => document.querySelector('.attachments-field .problem').innerText.includes('{refused}')")
    page.evaluate(DROP, ["plan.md", "text/markdown", "Move the archive."])
    page.evaluate(PASTE, "Costs of the archive. " * 300)
    seen.wait("() => document.querySelectorAll('.picked li').length === 2")
    page.fill("#question", "review this plan")
    seen.wait("() => !document.querySelector('.attached [data-busy]')")
    kept = {one["name"]: one["id"] for one in run_in_thread(lambda: server.get("/api/attachments"))}
    assert {*kept} == {"plan.md", "pasted.txt"}
    gone = kept.pop("pasted.txt")
    with page.expect_request(lambda one: one.url.endswith("/api/estimate") and gone not in one.post_data) as sent:
        page.click("button[aria-label='Remove pasted.txt']")
    assert sent.value.post_data_json == {
        "question": "validate review this plan", "protocol": "judges", "options": {"preset": "security-audit"}, "effort": "high", "redact": True,
        "decisions": ["Keep the archive, for now.", "No new vendor."], "uploads": [kept["plan.md"]],
    }  # fmt: skip
    seen.wait("() => document.querySelector('.plan').innerText.includes('1 file')")

    page.click("button:has-text('Add files')")
    page.fill(".find", "core")
    seen.wait("() => document.querySelector('.tree').innerText.includes('src/core.py')")
    page.click("button[aria-label='View core.py']")
    seen.wait("() => document.querySelector('.preview pre')?.innerText.includes('return 1')")
    secret = SECRETS["github"][1]
    (server.folder / "planted.txt").write_text(f"token {secret}\n")
    page.fill(".find", "planted")
    page.click("button[aria-label='View planted.txt']")
    seen.wait("() => document.querySelector('.preview .problem')?.innerText.includes('planted.txt:1 (')")
    assert "[redacted:" in page.inner_text(".preview") and secret not in page.content()
    page.fill(".find", "core")
    page.check(".tree label:has-text('core.py') >> xpath=../input")
    seen.wait("() => document.querySelector('.total').innerText.startsWith('2 files, about')")
    assert page.evaluate("() => document.documentElement.scrollWidth") == 390

    assert_no_errors(seen, server)
    page.click(".files-dialog button:has-text('Done')")
    page.evaluate(PASTE_IMAGE, RED_PIXEL)
    page.evaluate(PASTE_IMAGE, RED_PIXEL)
    shown = "[...document.querySelectorAll('.picked .thumb')].filter(one => one.naturalWidth === 1)"
    seen.wait(f"() => {shown}.length === 2")
    assert {"image.png", "image-2.png"} < set(page.locator(".attached code").all_inner_texts())
    seen.wait("() => !document.querySelector('.attached [data-busy]')")
    kept = {one["name"]: one["id"] for one in run_in_thread(lambda: server.get("/api/attachments"))}
    second = kept.pop("image-2.png")
    with page.expect_request(lambda one: one.url.endswith("/api/estimate") and second not in one.post_data) as sent:
        page.click("button[aria-label='Remove image-2.png']")
    assert sorted(sent.value.post_data_json["uploads"]) == sorted(kept.values())
    seen.wait(
        "() => document.querySelector('.composer > .problem').innerText.includes('can see \"attached/image.png\"')"
    )


@pytest.mark.behaviour("50-page-human")
def test_a_person_answers_in_the_page(server: WebServer, look: Look) -> None:
    seen = look().at(server.url)
    seen.page.fill("#question", QUESTION)
    seen.open_options()
    seen.page.wait_for_selector("#member-beta")
    seen.page.select_option("#member-beta", "human")
    seen.wait(
        "() => document.querySelector('#member-beta')?.value === 'human' && !document.querySelector('.go .run').disabled"
    )
    seen.page.click(".go .run")
    for words in ("A person drafts this.", "A person improves this."):
        seen.page.wait_for_selector("#asked-words")
        seen.page.fill("#asked-words", words)
        seen.page.click(".asks button:has-text('Answer')")
        seen.wait("words => document.querySelector('[data-seat=beta]').innerText.includes(words)", words)
    seen.wait_for_status("complete")
    assert_no_errors(seen, server)


@pytest.mark.behaviour("50-page-human")
def test_a_person_who_judges_fills_in_a_form_without_defaults(server: WebServer, look: Look) -> None:
    seats = '[seats.judge-1]\nmodel = "human"\n[seats.judge-2]\nmodel = "scripted:"\n'
    (server.folder / "council.toml").write_text(seats, encoding="utf-8")
    trust_project(server.folder)
    seen = look().at(server.url)
    seen.choose_protocol("judges")
    submit_question(seen, "src/core.py")
    form = seen.page.locator(".asks form")
    form.get_by_label("verdict").wait_for()
    assert form.get_by_label("verdict").input_value() == ""
    form.get_by_label("verdict").select_option("FAIL")
    form.get_by_label("confidence").select_option("HIGH")
    form.get_by_label("key insight").fill("It returns one and checks nothing.")
    form.locator("button:has-text('Add to findings')").click()
    form.get_by_label("severity").select_option("critical")
    form.get_by_label("description").fill("Nothing is checked at all.")
    form.get_by_label("location").fill("src/core.py:2")
    form.locator("button:has-text('Answer')").click()
    seen.wait_for_status("complete")
    seen.wait("() => document.querySelector('.map')?.innerText.includes('core.py:2')")
    assert "FAIL" in seen.text("[data-seat=judge-1] .position")
    assert_no_errors(seen, server)


@pytest.mark.behaviour("50-export-html")
def test_an_exported_file_works_offline(server: WebServer, look: Look, tmp_path: Path) -> None:
    run = run_judges(server)
    seen = look().run(server.url, run)
    with seen.page.expect_download() as waiting:
        seen.page.click("button:has-text('Share .html')")
    file = tmp_path / "run.html"
    waiting.value.save_as(file)

    alone = look(offline=True)
    alone.page.goto(file.as_uri())
    alone.page.wait_for_selector(".answer .prose")
    alone.page.wait_for_selector(".map tbody th")
    assert alone.text(".verdict") == seen.text(".verdict")
    assert alone.text(".trust") == seen.text(".trust")
    assert seen.text(".trust").startswith("Trust: ")
    assert alone.texts(".map tbody th") == seen.texts(".map tbody th")
    alone.page.keyboard.press("1")
    assert alone.page.locator(".seat:visible").count() == 1
    alone.page.locator(".plot input").press("ArrowLeft")
    alone.wait_for_status("replay")
    alone.page.click("#tab-report")
    alone.wait("() => document.querySelector('#panel-report .prose')?.innerText.includes('core.py')")
    assert {url.partition(":")[0] for url in alone.asked} <= {"file", "data"}
    assert alone.errors == []


GET_RUNS = """async () => {
    const headers = { Authorization: `Bearer ${sessionStorage.getItem('council-token')}` };
    return (await fetch('/api/runs', { headers })).status;
}"""


@pytest.mark.behaviour("50-page-one-stream")
def test_eight_tabs_share_one_stream_and_each_is_answered(
    server: WebServer, provider: FakeProvider, look: Look
) -> None:
    gate, seen = hold_chair(server, provider, look)
    submit_question(seen)
    where = seen.page.url
    tabs = [seen.page, *(seen.context.new_page() for _ in range(7))]
    for tab in tabs[1:]:
        tab.goto(where)
    gate.wait()
    for tab in tabs:
        tab.wait_for_function(
            "mark => document.querySelector('[data-seat=gamma]')?.innerText.includes(mark)",
            arg=mark("gamma", "improve"),
            polling=POLL_MS,
        )
        assert tab.evaluate(GET_RUNS) == 200
    tabs.pop(0).close()  # the leader is gone
    gate.release()
    for tab in tabs:
        tab.wait_for_function(
            "() => document.querySelector('.run-head .pill').innerText === 'complete'", timeout=60_000, polling=POLL_MS
        )
    assert seen.external_requests(server.host) == []


@pytest.mark.behaviour("issue-7-page-embedded")
def test_a_run_of_the_embedded_model(server: WebServer, look: Look) -> None:
    pytest.importorskip("xllamacpp", reason="the embedded model needs model-council[local]")
    (server.folder / "council.toml").unlink()
    (server.folder / "sky.md").write_text("The sky is green.\n", encoding="utf-8")
    seen = look().at(server.url)
    seen.choose_protocol("quick")
    assert submit_question(seen, "Is sky.md right?") == "Run · free"
    seen.page.wait_for_selector(".answer:not([hidden])", timeout=120_000)
    assert "local:smollm2" in seen.text(".seat .member")
    assert seen.text(".verdict") in ("PASS", "WARN", "FAIL")
    assert_no_errors(seen, server)


@pytest.mark.behaviour("50-page-reconnects")
def test_after_a_restart_the_page_reconnects_and_keeps_what_it_shows(
    server: WebServer, provider: FakeProvider, look: Look
) -> None:
    gate, seen = hold_chair(server, provider, look)
    seen.page.fill("#question", "A question that is not finished")
    run = run_in_thread(lambda: server.post("/api/runs", {"question": QUESTION}, 201))["run"]
    seen.go(f"/run/{run}")
    gate.wait()
    improved = mark("gamma", "improve")
    seen.wait("mark => document.querySelector('[data-seat=gamma]')?.innerText.includes(mark)", improved)

    run_in_thread(server.stop)
    seen.wait("() => document.querySelector('.banner')?.innerText.includes('cannot be reached')")
    assert improved in seen.text("[data-seat=gamma]")
    gate.release()
    run_in_thread(server.start, int(server.host.rpartition(":")[2]))
    seen.wait_for_status("complete")
    seen.wait("() => document.querySelector('.banner').hidden")
    assert improved in seen.text("[data-seat=gamma]")
    seen.go("/new")
    assert seen.page.input_value("#question") == "A question that is not finished"
    assert {line for line in seen.errors if "Failed to load resource" not in line} == set()  # the server was away


@pytest.mark.behaviour("40-web-token")
def test_a_page_on_another_port_receives_nothing_that_opens_the_api(server: WebServer, look: Look) -> None:
    received: list[str] = []

    class Other(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            received.append(str(self.headers))
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"<title>other</title>")

        def log_message(self, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Other) as other:
        threading.Thread(target=other.serve_forever, daemon=True).start()
        seen = look().at(server.url)
        page = seen.context.new_page()
        page.goto(f"http://127.0.0.1:{other.server_address[1]}/")
        stored = page.evaluate("() => [document.cookie, sessionStorage.length, localStorage.length]")
        other.shutdown()
    assert received
    assert not any(server.token in headers or "cookie" in headers.lower() for headers in received)
    assert (stored, seen.context.cookies()) == (["", 0, 0], [])


@pytest.mark.behaviour("50-page-reconnects")
def test_a_new_tab_gets_the_token_of_an_open_one_and_a_lonely_one_says_how_to_sign_in(
    server: WebServer, look: Look
) -> None:
    address = f"http://{server.host}/"
    seen = look().at(server.url)
    tab = seen.context.new_page()
    tab.goto(address)
    tab.wait_for_selector(".start")
    alone = look()
    alone.page.goto(address)
    alone.wait("() => document.querySelector('.banner')?.innerText.includes('signed out')")


@pytest.mark.behaviour("50-open")
def test_the_address_of_a_run_signs_in_and_shows_it(server: WebServer, look: Look) -> None:
    run = run_in_thread(lambda: server.run_council(protocol="triad"))
    seen = look()
    seen.page.goto(f"{server.url}&run={run}")
    seen.page.wait_for_selector(".answer:not([hidden])")
    assert seen.page.url.endswith(f"/#/run/{run}")
    assert_no_errors(seen, server)
