"""The start view: one composer with question, attachments, protocol menu, options and the price on its button."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from council.runs.service import Convener
from council.runs.tokens import add_token
from tests.acceptance.helpers import Workspace
from tests.doors.web.page.browser import Browser
from tests.doors.web.page.conftest import run_in_thread
from tests.doors.web.server import QUESTION, WebServer
from tests.fake_provider import FakeProvider, Reply
from tests.settings.memory_keyring import Ring, use_ring

Look = Callable[..., Browser]
PRICED = '[prices."sim:*"]\ninput = 1.0\noutput = 5.0\n'
HEIGHT = "() => document.querySelector('#question').getBoundingClientRect().height"


@pytest.mark.behaviour("50-page-start", "50-page-composer")
def test_the_menu_names_every_protocol_with_a_sentence_a_picture_and_a_price(
    server: WebServer, provider: FakeProvider, look: Look
) -> None:
    Workspace(server.folder, provider).configure(more=PRICED)
    seen = look().at(server.url)
    assert seen.text(".menu-button b") == "Automatic" and not seen.page.is_visible(".protocol-menu")
    seen.page.click(".menu-button")
    names = seen.texts(".protocol-menu .protocol b")
    assert names[:6] == ["Automatic", "Decide", "Review", "Research", "Rank", "Refine"]
    assert len(names) == len(seen.texts(".protocol-menu .sentence")) == len(seen.texts(".protocol-menu .picture"))
    prices = dict(zip(names, seen.texts(".protocol-price"), strict=True))
    assert prices["Decide"].startswith("$") and prices["Research"] == prices["Automatic"] == ""
    assert seen.page.is_visible(".protocol-row:has(#protocol-general) button:has-text('Set up')")

    seen.page.keyboard.press("ArrowDown")  # the first protocol after the automatic choice
    seen.page.keyboard.press("Enter")
    assert not seen.page.is_visible(".protocol-menu") and seen.text(".menu-button b") == "Decide"
    seen.page.fill("#question", QUESTION)
    seen.wait("() => document.querySelector('.go .run').innerText.startsWith('Run · at most $')")
    assert seen.text(".plan .lead").startswith("adversarial")
    assert seen.errors == []


@pytest.mark.behaviour("50-page-composer")
def test_the_question_grows_with_its_text_and_runs_with_the_keyboard(server: WebServer, look: Look) -> None:
    seen = look().at(server.url)
    before = seen.page.evaluate(HEIGHT)
    seen.page.fill("#question", QUESTION + "\n" * 12)
    assert seen.page.evaluate(HEIGHT) > before + 100
    seen.page.fill("#question", QUESTION)
    assert seen.page.evaluate(HEIGHT) == before
    seen.page.wait_for_selector(".go .run:not([disabled])")
    seen.page.press("#question", "Control+Enter")
    seen.page.wait_for_selector(".seat")


@pytest.mark.behaviour("50-page-composer")
def test_the_keyboard_starts_nothing_before_its_price_is_shown(server: WebServer, look: Look) -> None:
    seen = look().at(server.url)
    with seen.page.expect_response("**/api/estimate"):
        seen.page.fill("#question", QUESTION)
        seen.page.press("#question", "Control+Enter")
    seen.wait("() => document.querySelector('.go .run').innerText === 'Run · free'")
    assert not any(url.endswith("/api/runs") for url in seen.asked)
    assert run_in_thread(lambda: server.get("/api/runs"))["runs"] == []


@pytest.mark.behaviour("50-page-composer")
def test_one_line_says_which_options_are_set(server: WebServer, look: Look) -> None:
    seen = look().at(server.url)
    assert seen.text(".composer-options .set") == "Cap, effort, members, files, checks"
    assert not seen.page.is_visible("#option-max_cost")
    seen.page.click(".composer-options > summary")
    seen.page.fill("#question", QUESTION)
    seen.page.fill("#option-max_cost", "0.5")
    seen.page.select_option("#option-effort", "high")
    seen.page.check("#option-check")
    seen.page.wait_for_selector("#member-beta")
    seen.page.select_option("#member-beta", "human")
    said = seen.text(".composer-options .set")
    assert said == "beta: human · cap $0.50 · effort: high · check the answer"


@pytest.mark.behaviour("50-page-composer")
def test_examples_and_filters_depend_on_the_list_of_runs(server: WebServer, look: Look) -> None:
    seen = look().at(server.url)
    seen.page.wait_for_selector(".examples")
    assert not seen.page.is_visible(".filters")
    seen.page.fill("#question", QUESTION)
    assert not seen.page.is_visible(".examples")
    run_in_thread(server.run_council)
    other = look().at(server.url)
    other.page.wait_for_selector(".run-item")
    assert other.page.is_visible(".filters") and not other.page.is_visible(".examples")


@pytest.mark.behaviour("50-page-draft")
def test_a_draft_survives_a_reload_and_belongs_to_its_tab(server: WebServer, look: Look) -> None:
    seen = look().at(server.url)
    page = seen.page
    seen.choose_protocol("judges")
    seen.open_options()
    page.fill("#question", "Is src/core.py sound?")
    page.select_option("#option-preset", "security-audit")
    page.select_option("#option-effort", "high")
    page.check("#option-redact")
    page.fill("#option-decisions", "Keep it.\nNo new vendor.")
    page.wait_for_selector(".member-menus select")
    seat = page.locator(".member-menus b").first.inner_text()
    page.select_option(f"#member-{seat}", "human")
    other = seen.context.new_page()
    other.goto(server.url)
    other.wait_for_selector("#question")
    assert other.input_value("#question") == "" and other.inner_text(".menu-button b") == "Automatic"
    other.fill("#question", "Another question")

    page.reload()
    with page.expect_request("**/api/estimate") as sent:
        page.wait_for_selector("#question")
    assert page.input_value("#question") == "Is src/core.py sound?"
    assert sent.value.post_data_json == {
        "question": "validate Is src/core.py sound?", "protocol": "judges", "options": {"preset": "security-audit"},
        "effort": "high", "redact": True, "decisions": ["Keep it.", "No new vendor."], "seats": {seat: "human"},
    }  # fmt: skip
    assert other.input_value("#question") == "Another question"


ATTACH = """([name, type, base64]) => {
    const data = new DataTransfer();
    data.items.add(new File([Uint8Array.from(atob(base64), one => one.charCodeAt(0))], name, { type }));
    document.querySelector('.start').dispatchEvent(new DragEvent('drop', { dataTransfer: data, bubbles: true, cancelable: true }));
}"""
RED_PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC"


@pytest.mark.behaviour("50-page-draft", "50-page-attachments")
def test_attachments_survive_a_reload_until_they_expire(server: WebServer, look: Look) -> None:
    seen = look().at(server.url)
    page = seen.page
    page.fill("#question", QUESTION)
    page.set_input_files("input[type=file]", {"name": "plan.md", "mimeType": "text/markdown", "buffer": b"Move it."})
    page.evaluate(ATTACH, ["chart.png", "image/png", RED_PIXEL])
    seen.wait("() => document.querySelectorAll('.attached li:not([data-busy])').length === 2")
    other = seen.context.new_page()
    other.goto(server.url)
    other.wait_for_selector("#question")
    assert other.locator(".attached li").count() == 0

    page.reload()
    seen.wait("() => document.querySelector('.attached .thumb')?.naturalWidth === 1")
    assert [text.split("\n")[:2] for text in seen.texts(".attached li")] == [["plan.md", "8 B"], ["chart.png", "69 B"]]
    page.click("button[aria-label='Remove chart.png']")
    page.wait_for_selector(".go .run:not([disabled])")
    assert "1 file" in seen.text(".plan")

    uploads = server.app_state.uploads
    uploads.remove("", [one["id"] for one in uploads.find_all("")])  # as after a day
    page.reload()
    seen.wait(
        "() => document.querySelector('.attachments-field .problem')?.innerText.startsWith('\"plan.md\" is no longer kept')"
    )
    assert seen.texts(".attached li") == []
    page.wait_for_selector(".go .run:not([disabled])")
    assert {line for line in seen.errors if "400" not in line} == set()  # no seat of this server can see an image


@pytest.mark.behaviour("50-page-phone", "50-page-composer")
def test_the_composer_fits_a_phone_with_long_names_and_an_open_menu(server: WebServer, look: Look) -> None:
    seen = look(viewport={"width": 390, "height": 844}).at(server.url)
    name = f"{'a-very-long-name' * 12}.md"
    seen.page.set_input_files("input[type=file]", {"name": name, "mimeType": "text/markdown", "buffer": b"Move it."})
    seen.page.fill("#question", "Is " + "x" * 400 + " sound?")
    seen.page.wait_for_selector(".go .run:not([disabled])")
    seen.open_options()
    assert seen.page.evaluate("() => document.documentElement.scrollWidth") == 390
    seen.page.click(".menu-button")
    menu = seen.page.locator(".protocol-menu").bounding_box()
    assert menu is not None and (menu["x"], menu["width"]) == (0, 390) and menu["y"] + menu["height"] == 844


@pytest.mark.behaviour("50-page-attachments")
def test_a_run_takes_its_attachments_and_the_next_question_starts_without(server: WebServer, look: Look) -> None:
    seen = look().at(server.url)
    seen.page.fill("#question", QUESTION)
    seen.page.set_input_files("input[type=file]", {"name": "a.md", "mimeType": "text/markdown", "buffer": b"Move it."})
    seen.wait("() => document.querySelectorAll('.attached li:not([data-busy])').length === 1")
    seen.page.wait_for_selector(".go .run:not([disabled])")
    seen.page.click(".go .run")
    seen.page.wait_for_selector(".seat")
    run = seen.page.url.rpartition("/")[2]
    seen.go("/new")
    assert (seen.page.input_value("#question"), seen.texts(".attached li")) == ("", [])
    assert run_in_thread(lambda: server.get("/api/attachments")) == []
    run_in_thread(lambda: server.wait_for_end(run))
    packet = run_in_thread(lambda: server.get(f"/api/runs/{run}/packet"))
    assert packet["receipt"]["files"] == ["attached/a.md"]


KEY = "-".join(["sk", "ant", "typed", "0123456789abcdef"])


@pytest.fixture
def ring() -> Iterator[Ring]:
    with use_ring() as ring:
        yield ring


@pytest.fixture
def bare_server(server: WebServer, provider: FakeProvider) -> WebServer:
    """A server without keys, whose vendor is the fake provider in the user's own settings."""
    (server.folder / "council.toml").unlink()
    own = Path(server.env["XDG_CONFIG_HOME"]) / "council" / "config.toml"
    own.parent.mkdir(parents=True)
    own.write_text(f'[providers.anthropic]\nbase_url = "{provider.base("anthropic")}"\n')
    return server


@pytest.mark.behaviour("50-page-setup")
def test_a_key_is_added_on_the_page_and_the_composer_is_usable_at_once(
    bare_server: WebServer, provider: FakeProvider, ring: Ring, look: Look
) -> None:
    seen = look().at(bare_server.url)
    page = seen.page
    page.fill("#question", QUESTION)
    assert "No vendor is set up yet" in seen.text(".missing")
    provider.script("/models", Reply(status=401, error={"message": "this key was revoked"}))
    page.click(".missing button")
    page.fill("#setup-key-value", KEY)
    page.keyboard.press("Enter")
    seen.wait("() => document.querySelector('.result.problem')?.innerText.includes('this key was revoked')")
    page.click(".setup-part:has(#setup-key) button[type=submit]")
    seen.wait("() => document.querySelector('.result.good')?.innerText === 'Anthropic is set up: 3 models.'")
    page.click(".setup-dialog button:has-text('Close')")

    assert not page.is_visible(".missing") and page.input_value("#question") == QUESTION
    seen.wait("() => document.querySelector('.go .run').innerText.startsWith('Run · at most $')")
    assert ring.held == {("council", "ANTHROPIC_API_KEY"): KEY}
    everywhere = "() => [document.documentElement.outerHTML, ...document.querySelectorAll('input')].map(one => one.value ?? one).join() + JSON.stringify([{ ...sessionStorage }, { ...localStorage }]) + location.href"
    assert KEY not in page.evaluate(everywhere)
    assert not any(KEY in url for url in seen.asked)


@pytest.mark.behaviour("50-page-setup")
def test_a_protocol_that_needs_search_offers_its_setup(server: WebServer, ring: Ring, look: Look) -> None:
    seen = look().at(server.url)
    assert not seen.page.is_visible(".missing")
    seen.choose_protocol("general")
    assert seen.text(".missing span") == "Research needs a search provider."
    seen.page.click(".missing button")
    seen.page.select_option("#setup-search", "brave")
    seen.page.fill("#setup-search-value", KEY)
    seen.page.keyboard.press("Enter")
    seen.wait("() => document.querySelector('.result.good')?.innerText.startsWith('Brave is set up: not tested')")
    seen.page.keyboard.press("Escape")
    assert not seen.page.is_visible(".missing") and seen.text(".menu-button b") == "Research"
    seen.page.click(".menu-button")
    assert not seen.page.is_visible(".protocol-menu button")
    assert seen.errors == []


@pytest.mark.behaviour("50-page-setup")
def test_a_user_reads_who_can_set_up_a_vendor(bare_server: WebServer, look: Look) -> None:
    async def add() -> str:
        convener = Convener(bare_server.folder, bare_server.env)
        try:
            return await add_token(convener.store, "ann", "runs", None)
        finally:
            await convener.close()

    token = run_in_thread(lambda: asyncio.run(add()))
    seen = look().at(bare_server.url.replace(bare_server.token, token))
    assert "can only be set up by the owner of the server" in seen.text(".missing")
    assert seen.page.locator(".missing button").count() == 0
    assert seen.errors == []
