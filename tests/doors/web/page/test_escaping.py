"""Text of models, files and sources never becomes an element, a request or a script in the page."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

import council
from tests.doors.web.page.browser import Browser
from tests.doors.web.page.test_page import run_judges
from tests.doors.web.server import WebServer

Look = Callable[..., Browser]
PAGE = Path(council.__file__).parent / "doors" / "web" / "page"
PAYLOADS = [
    "<script>window.pwned=1</script>", "<img src=http://evil.test/a onerror=window.pwned=1>", "<svg onload=window.pwned=1>",
    "<svg><script>window.pwned=1</script></svg>", "<iframe src=http://evil.test/b></iframe>", "<iframe srcdoc='<script>parent.pwned=1</script>'>",
    "<object data=http://evil.test/c></object>", "<embed src=http://evil.test/d>", "<link rel=stylesheet href=http://evil.test/e>",
    "<style>@import 'http://evil.test/f';</style>", "<base href=http://evil.test/>", "<meta http-equiv=refresh content='0;url=http://evil.test/g'>",
    "<form action=http://evil.test/h><input name=x autofocus onfocus=window.pwned=1></form>", "<video src=http://evil.test/i onerror=window.pwned=1>",
    "<audio src=http://evil.test/j>", "<details open ontoggle=window.pwned=1>", "<body onload=window.pwned=1>", "<math><mtext><img src=x onerror=window.pwned=1></mtext></math>",
    "![pixel](http://evil.test/k.png)", "![](javascript:window.pwned=1)", "[click](javascript:window.pwned=1)", "[click](JaVaScRiPt:window.pwned=1)",
    "[click]( javascript:window.pwned=1)", "[click](data:text/html,<script>window.pwned=1</script>)", "[click](vbscript:msgbox)", "[click](file:///etc/passwd)",
    "[click](//evil.test/l)", "[click](\tjavascript:window.pwned=1)", "<http://evil.test/m>", "<javascript:window.pwned=1>",
    "[x]: javascript:window.pwned=1\n\n[x]", "`<img src=x onerror=window.pwned=1>`", "```html\n<script>window.pwned=1</script>\n```", "| <b onclick=window.pwned=1>a</b> |\n|---|\n| <img src=http://evil.test/n> |",
    "</script><script>window.pwned=1</script>", "</textarea><script>window.pwned=1</script>", "--><script>window.pwned=1</script><!--", "{{constructor.constructor('window.pwned=1')()}}",
    "javascript:window.pwned=1", "\" onmouseover=\"window.pwned=1\" x=\"",
]  # fmt: skip
TAGS = (
    "html head meta title link style script body header main nav aside section article div span p a button input select option "
    "textarea label form fieldset legend h1 h2 h3 h4 h5 h6 ul ol li dl dt dd table thead tbody tfoot tr th td pre code b i strong em s del ins br "
    "blockquote hr kbd details summary dialog svg g path line polyline circle text datalist optgroup footer wbr"
)
ALLOWED = set(TAGS.split())
STRUCTURE = {
    "run", "type", "key", "phase", "seat", "state", "status", "member", "model", "served_by", "severity", "verdict", "confidence",
    "outcome", "stopped", "kind", "vendor", "task", "protocol", "schema", "schema_version", "target_judge", "found_by", "absent", "schema_name",
    "role", "name", "stance", "fingerprint", "file", "folder",
}  # fmt: skip


def add_payloads(value: Any, payload: Iterator[str], name: str = "") -> Any:
    """Append a payload to every text except structural names; long texts get all payloads."""
    if isinstance(value, dict):
        return {key: add_payloads(of, payload, key) for key, of in value.items()}
    if isinstance(value, list):
        return [add_payloads(of, payload, name) for of in value]
    if not isinstance(value, str) or name in STRUCTURE:
        return value
    return "\n\n".join([value, *PAYLOADS]) if name in ("said", "answer", "content") else f"{value} {next(payload)}"


def sources(payload: Iterator[str]) -> list[dict[str, Any]]:
    """Sources with payloads in titles and URLs."""
    return [
        {"n": n, "title": next(payload), "url": url, "snippet": next(payload), "query": next(payload), "cited": True, "cited_by": []}
        for n, url in enumerate(["https://example.org/a", "javascript:window.pwned=1", "data:text/html,x", "files:notes.md", next(payload)], 1)
    ]  # fmt: skip


def poison_run(site: WebServer, run: str, turn: int) -> None:
    """Put the payloads into the stored events of a run."""
    payload = cycle([*PAYLOADS[turn:], *PAYLOADS[:turn]])
    with site.database() as db:
        for seq, kind, body in db.execute("SELECT seq, type, body FROM events WHERE run = ?", [run]).fetchall():
            event = add_payloads(json.loads(body), payload)
            if kind == "convened":
                packet = event["plan"]["packet"]
                packet["files"] = [*packet["files"], *PAYLOADS]
                packet["skipped"] = [{"path": one, "why": one} for one in PAYLOADS]
            if kind == "closed":
                event["verdict"]["sources"] = sources(payload)
                event["verdict"]["claims"] = [
                    {"claim": one, "topic": one, "by": ["judge-1"], "against": ["judge-2"], "sources": [1], "conceded": [], "status": "contradicted"}
                    for one in PAYLOADS
                ]  # fmt: skip
            db.execute("UPDATE events SET body = ? WHERE run = ? AND seq = ?", [json.dumps(event), run, seq])


def open_everything(seen: Browser) -> None:
    """Open every tab, row and detail."""
    page = seen.page
    for tab in ("packet", "money", "attempts", "events", "report"):
        page.click(f"#tab-{tab}")
    page.evaluate("() => { for (const one of document.querySelectorAll('details')) one.open = true }")
    page.evaluate("() => { for (const one of document.querySelectorAll('.event')) one.click() }")
    for _ in range(6):
        page.keyboard.press("j")
    page.locator(".plot input").press("ArrowLeft")
    seen.wait_for_status("replay")
    page.keyboard.press("r")
    seen.wait_for_status("complete")
    page.click("[data-key^=r2] button:has-text('compare') >> nth=0")
    seen.wait("() => document.querySelector('#panel-report .prose')")


def strange_parts(seen: Browser) -> list[str]:
    """Return elements outside the allow-list, event attributes, and unsafe links."""
    found: list[str] = seen.page.evaluate(
        """allowed => {
            const bad = [];
            for (const node of document.querySelectorAll('*')) {
                if (!allowed.includes(node.localName)) bad.push(`<${node.localName}>`);
                for (const { name, value } of node.attributes) {
                    if (name.startsWith('on')) bad.push(`${node.localName} ${name}`);
                    if (['src', 'action', 'formaction', 'srcdoc', 'data', 'xlink:href'].includes(name) && node.localName !== 'script') bad.push(`${node.localName} ${name}=${value}`);
                    if (name === 'href' && !/^(https?:|mailto:|#|\\/api\\/|\\/page\\/(style\\.css|icon(-[a-z]+)?\\.svg)$|data:,$)/.test(value)) bad.push(`${node.localName} href=${value}`);
                    if (name === 'href' && /^https?:/.test(value) && !/noopener noreferrer/.test(node.rel)) bad.push(`${value} without noopener`);
                }
            }
            if (window.pwned) bad.push('a script ran');
            return bad;
        }""",
        sorted(ALLOWED),
    )
    return found


@pytest.mark.behaviour("40-page-model-text", "issue-7-xss")
@pytest.mark.parametrize("turn", [0, 13, 27])
def test_forty_payloads_stay_text_in_the_page_and_in_its_file(
    server: WebServer, look: Look, tmp_path: Path, turn: int
) -> None:
    assert len(set(PAYLOADS)) == 40
    run = run_judges(server)
    poison_run(server, run, turn)
    seen = look().run(server.url, run)
    open_everything(seen)
    assert strange_parts(seen) == []
    assert seen.external_requests(server.host) == []
    assert not any("evil.test" in url for url in seen.asked)
    assert seen.errors == []
    assert PAYLOADS[0] in seen.page.locator("[data-seat=judge-1]").text_content()

    file = tmp_path / "run.html"
    file.write_bytes(server.ask("GET", f"/api/runs/{run}/report?format=html").body)
    alone = look()
    alone.page.goto(file.as_uri())
    alone.page.wait_for_selector(".answer .prose")
    open_everything(alone)
    assert strange_parts(alone) == []
    assert {url.partition(":")[0] for url in alone.asked} <= {"file", "data"}
    assert alone.errors == []


@pytest.mark.behaviour("40-page-model-text")
@pytest.mark.parametrize("module", sorted(str(path.relative_to(PAGE)) for path in PAGE.rglob("*.*js")))
def test_page_modules_never_parse_html(module: str) -> None:
    text = (PAGE / module).read_text(encoding="utf-8")
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|DOMParser|createContextualFragment|setHTML|srcdoc",
        text,
    )
    if module.startswith("vendor/"):
        return
    assert text.startswith("//"), "a module starts with a comment about its purpose"


@pytest.mark.behaviour("50-page-no-build")
def test_the_page_has_no_inline_script_or_style_and_no_external_url() -> None:
    page = (PAGE / "index.html").read_text(encoding="utf-8")
    assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\bon\w+=|style=", page)
    for path in filter(Path.is_file, PAGE.iterdir()):
        urls = re.findall(r"https?://[\w.]+", path.read_text(encoding="utf-8"))
        assert set(urls) <= {"http://www.w3.org"}, path.name


STREAM_AND_COMPARE = """async payloads => {
    const { liveText } = await import('/page/live_text.js');
    const { inline } = await import('/page/markdown.js');
    const { diffNode } = await import('/page/diff.js');
    const { runInSlices } = await import('/page/scheduler.js');
    const texts = [];
    for (const payload of payloads) {
        const live = liveText();
        document.body.append(live.node, diffNode(payload, `${payload} changed`));
        document.body.append(...inline(payload));
        live.update({ pieces: [...`${payload}\n\nThe end.\n\n`] });
        await new Promise(done => runInSlices([].values(), done));
        texts.push(live.node.querySelector('.prose').textContent);
    }
    return texts;
}"""


@pytest.mark.behaviour("40-page-model-text", "issue-7-xss")
def test_streamed_and_compared_payloads_stay_text(server: WebServer, look: Look) -> None:
    seen = look().at(server.url)
    texts = seen.page.evaluate(STREAM_AND_COMPARE, PAYLOADS)
    assert all("The end." in text for text in texts)
    assert strange_parts(seen) == []
    assert (seen.external_requests(server.host), seen.errors) == ([], [])
    # the check finds unsafe nodes
    seen.page.evaluate(
        """() => {
            const [link, picture] = [document.createElement('a'), document.createElement('object')];
            link.setAttribute('href', 'javascript:1');
            picture.setAttribute('onload', 'x');
            document.body.append(link, picture);
        }"""
    )
    assert strange_parts(seen) == ["a href=javascript:1", "<object>", "object onload"]
