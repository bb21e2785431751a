"""HTML export: only its own script and style may run, and model text stays data."""

from __future__ import annotations

import base64
import hashlib
import json
import re

import pytest

from council.engine.minutes import Minutes
from council.render.html import PAGE_DIR, bundle, render_run
from council.render.report import FinishedRun
from tests.render.runs import RunBuilder, collaborative


def render(builder: RunBuilder) -> str:
    return "".join(render_run(FinishedRun(Minutes.fold(builder.entries), builder.entries)))


def content_of(tag: str, text: str) -> str:
    (found,) = re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
    return str(found)


def run_data(text: str) -> dict[str, object]:
    (found,) = re.findall(r'<script type="application/json" id="council-run">(.*?)</script>', text, re.DOTALL)
    value: dict[str, object] = json.loads(found)
    return value


@pytest.mark.behaviour("50-export-html")
@pytest.mark.parametrize(("tag", "rule"), [("script", "script-src"), ("style", "style-src")])
def test_the_policy_names_the_script_and_the_style_by_their_hashes(tag: str, rule: str) -> None:
    text = render(collaborative())
    digest = base64.b64encode(hashlib.sha256(content_of(tag, text).encode()).digest()).decode()
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', text)
    assert f"{rule} 'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none'")
    assert "connect-src" not in policy
    assert "unsafe" not in policy


@pytest.mark.behaviour("50-export-html", "40-page-model-text")
def test_text_that_would_close_the_script_stays_data() -> None:
    said = "</script><script>alert(1)</script><!-- \u2028 ]]>"
    text = render(RunBuilder().phase("draft").ask("alpha").answer("alpha", said).close(said))
    assert text.count("<script") == 2
    assert "alert(1)</script>" not in text
    events = run_data(text)["events"]
    assert isinstance(events, list)
    assert [event["said"] for event in events if event["type"] == "statement"] == [said.replace("\u2028", "\n")]


@pytest.mark.behaviour("50-export-html")
def test_file_contains_events_report_and_degradation_lines() -> None:
    builder = (
        RunBuilder()
        .phase("draft")
        .ask("alpha", "beta")
        .answer("alpha", "This.")
        .mark_absent("beta", "failed(server)", "500")
    )
    result = run_data(render(builder.close("This.")))
    assert set(result) == {"events", "detail", "markdown"}
    assert "beta did not answer" in json.dumps(result["detail"])
    assert "delta" not in {event["type"] for event in result["events"]}  # type: ignore[attr-defined]


@pytest.mark.behaviour("50-export-html")
@pytest.mark.parametrize("entry", ["exported.js", "main.js"])
def test_every_module_is_bundled_once_before_its_importers(entry: str) -> None:
    made = bundle(entry)
    needed = [(name, user) for user in made.modules for name in _needs(user)]
    assert needed
    assert len(set(made.modules)) == len(made.modules)
    assert all(made.modules.index(name) < made.modules.index(user) for name, user in needed)
    assert not re.search(r"^(?:import|export) ", made.code, re.MULTILINE)
    lines = _read("run_view.js").split("\n")
    number = next(n for n, line in enumerate(lines) if "requestAnimationFrame" in line)
    at = made.lines.index((made.modules.index("run_view.js"), number))
    assert made.code.split("\n")[at] == lines[number]  # stack traces lead to the module


@pytest.mark.behaviour("50-export-html")
def test_the_inline_script_requests_nothing_and_cannot_be_closed_early() -> None:
    script = content_of("script", render(collaborative()))
    assert not re.search(r"<!--|</?script|/api/|EventSource", script, re.IGNORECASE)


def _needs(module: str) -> list[str]:
    return re.findall(r'from "\./([\w./-]+)"', _read(module))


def _read(module: str) -> str:
    return (PAGE_DIR / module).read_text(encoding="utf-8")
