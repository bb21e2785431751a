"""Accessibility of the page: axe-core, live region, themes, phone width."""

from __future__ import annotations

import shutil
import subprocess
import tarfile
from collections.abc import Callable
from typing import Any

import pytest

from tests.doors.web.page.browser import Browser
from tests.doors.web.page.conftest import run_in_thread
from tests.doors.web.page.test_page import run_judges
from tests.doors.web.page.test_run_view import drafted, finished, locked_out, mount
from tests.doors.web.server import QUESTION, WebServer

Look = Callable[..., Browser]
PHONE = {"width": 390, "height": 844}


@pytest.fixture(scope="session")
def axe(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> str:
    """Return the source of axe-core from its npm package, which is fetched once and kept in the cache of pytest."""
    kept = pytestconfig.cache.mkdir("axe-core") / "axe.min.js" if pytestconfig.cache else None
    if kept and kept.exists():
        return kept.read_text(encoding="utf-8")
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed, so axe-core cannot be fetched")
    folder = tmp_path_factory.mktemp("axe")
    done = subprocess.run(
        ["npm", "pack", "axe-core@^4.10", "--silent"], cwd=folder, capture_output=True, text=True, timeout=120
    )
    packed = next(folder.glob("*.tgz"), None)
    if done.returncode or packed is None:
        pytest.skip(f"axe-core cannot be fetched from npm: {done.stderr.strip()[-200:]}")
    with tarfile.open(packed) as archive:
        file = archive.extractfile("package/axe.min.js")
        assert file is not None
        source = file.read().decode()
    if kept:
        fresh = folder / kept.name
        fresh.write_text(source, encoding="utf-8")
        shutil.move(fresh, kept)
    return source


def serious_violations(seen: Browser, axe: str) -> list[str]:
    seen.page.evaluate(axe)
    seen.page.evaluate("() => Promise.all(document.getAnimations().map(one => one.finished.catch(() => 0)))")
    found: list[dict[str, Any]] = seen.page.evaluate(
        "async () => (await axe.run(document, { resultTypes: ['violations'] })).violations"
    )
    return [
        f"{one['id']}: {node['target']} {node.get('failureSummary', '')[:300]}"
        for one in found
        if one["impact"] in ("serious", "critical")
        for node in one["nodes"][:3]
    ]


@pytest.mark.behaviour("issue-7-axe")
@pytest.mark.parametrize(
    ("scheme", "size"), [("light", None), ("dark", None), ("light", PHONE)], ids=["light", "dark", "phone"]
)
def test_axe_finds_nothing_serious_in_a_run(server: WebServer, look: Look, axe: str, scheme: str, size: Any) -> None:
    how = {"color_scheme": scheme, "reduced_motion": "reduce", **({"viewport": size} if size else {})}
    seen = look(**how).run(server.url, run_judges(server))
    seen.page.wait_for_selector(".map tbody th")
    seen.page.keyboard.press("j")
    for tab in ("packet", "money", "attempts", "events", "report") if scheme == "light" and not size else ("attempts",):
        seen.page.click(f"#tab-{tab}")
        if tab == "attempts":
            seen.page.click("#panel-attempts summary >> nth=0")
        assert serious_violations(seen, axe) == [], tab
    seen.page.locator(".plot input").press("ArrowLeft")
    seen.wait_for_status("replay")
    assert serious_violations(seen, axe) == []


@pytest.mark.behaviour("issue-7-axe")
@pytest.mark.parametrize(("scheme", "size"), [("dark", None), ("light", PHONE)], ids=["dark", "phone"])
def test_axe_finds_nothing_serious_in_a_failed_and_a_live_run_and_in_one_that_is_opened(
    server: WebServer, look: Look, axe: str, scheme: str, size: Any
) -> None:
    seen = look(**{"color_scheme": scheme, "reduced_motion": "reduce", **({"viewport": size} if size else {})})
    mount(seen, server, locked_out())
    assert serious_violations(seen, axe) == []
    text = "$$x^2$$\n\n| a | b |\n|---|---|\n| c | d |\n| e"
    page = mount(seen, server, drafted().ask("chair").stream("chair", text), is_live=True)
    page.wait_for_selector(".draft table")
    assert serious_violations(seen, axe) == []
    page = mount(seen, server, finished())
    page.wait_for_selector(".differences")
    page.evaluate("() => document.querySelectorAll('.answer details').forEach(one => { one.open = true })")
    page.click(".timeline .opens")
    assert serious_violations(seen, axe) == []


@pytest.mark.behaviour("issue-7-axe")
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious_in_the_start_form_and_its_dialogs(
    server: WebServer, look: Look, axe: str, scheme: str
) -> None:
    seen = look(color_scheme=scheme, reduced_motion="reduce").at(server.url)
    seen.page.click(".menu-button")
    assert serious_violations(seen, axe) == []
    seen.page.keyboard.press("Escape")
    seen.choose_protocol("judges")
    seen.page.evaluate("() => document.querySelectorAll('.start details').forEach(one => { one.open = true })")
    seen.page.fill("#question", QUESTION)
    seen.page.wait_for_selector(".plan .seats")
    assert serious_violations(seen, axe) == []
    seen.page.click("button:has-text('Add files')")
    seen.page.wait_for_selector(".tree li")
    assert serious_violations(seen, axe) == []
    seen.page.click("dialog button:has-text('Done')")
    seen.page.click("button:has-text('Add a key')")
    assert serious_violations(seen, axe) == []
    seen.page.click(".setup-dialog button:has-text('Close')")
    seen.page.click("button:has-text('Keys')")
    assert serious_violations(seen, axe) == []


@pytest.mark.behaviour("50-page-live-region")
def test_the_live_region_announces_phases_and_the_end_but_not_text(server: WebServer, look: Look) -> None:
    seen = look().at(server.url)
    seen.page.fill("#question", QUESTION)
    seen.page.wait_for_selector(".go .run:not([disabled])")
    seen.page.evaluate(
        """() => {
            window.announced = [];
            new MutationObserver(() => {
                const text = document.querySelector('.run [role=status][aria-live]')?.textContent;
                if (text && announced.at(-1) !== text) announced.push(text);
            }).observe(document.body, { subtree: true, childList: true, characterData: true });
        }"""
    )
    seen.page.click(".go .run")
    seen.wait_for_status("complete")
    announced = " ".join(seen.page.evaluate("() => window.announced"))
    assert "The run is complete." in announced
    assert "says: it depends" not in announced


@pytest.mark.behaviour("50-page-themes")
def test_theme_and_motion_follow_the_system_and_the_toggle(server: WebServer, look: Look) -> None:
    seen = look(color_scheme="dark", reduced_motion="reduce").run(server.url, run_in_thread(server.run_council))
    ground = "() => getComputedStyle(document.body).backgroundColor"
    dark = seen.page.evaluate(ground)
    seen.page.click("button.theme")
    assert seen.text("button.theme") == "Theme: light"
    assert seen.page.evaluate(ground) != dark
    seen.page.reload()
    seen.page.wait_for_selector("button.theme")
    assert seen.text("button.theme") == "Theme: light"
    seen.page.click("button.theme")
    assert seen.page.evaluate(ground) == dark
    moving = seen.page.evaluate(
        "() => document.getAnimations().filter(one => one.effect.getTiming().iterations > 1).length"
    )
    assert moving == 0


@pytest.mark.behaviour("50-page-phone")
def test_at_phone_width_nothing_is_wider_than_the_screen(server: WebServer, look: Look) -> None:
    seen = look(viewport=PHONE, has_touch=True).run(server.url, run_judges(server))
    assert seen.page.evaluate("() => document.documentElement.scrollWidth") == PHONE["width"]
    assert not seen.page.locator(".rail").is_visible()
    seen.page.click("button.menu")
    seen.page.click(".run-item a")
    assert not seen.page.locator(".rail").is_visible()
    seen.go("/new")
    assert seen.page.evaluate("() => document.documentElement.scrollWidth") == PHONE["width"]
