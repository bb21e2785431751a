"""The programs in examples/ run on scripted members."""

from __future__ import annotations

import ast
import asyncio
import importlib
import inspect
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import aiohttp
import pytest
from aiohttp import web

import council
from council import protocols
from tests.paths import ROOT
from tests.vendor_trap import vendor_trap

EXAMPLES = ROOT / "examples"
pytestmark = pytest.mark.behaviour("issue-13-examples", "30-examples-ask-no-vendor")


@pytest.fixture(autouse=True)
def _scripted(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("COUNCIL_CONFIG", str(EXAMPLES / "scripted.toml"))
    monkeypatch.syspath_prepend(str(EXAMPLES))
    with vendor_trap():
        yield
    for path in EXAMPLES.glob("*.py"):
        sys.modules.pop(path.stem, None)
    protocols._registered.pop("devils-advocate", None)


def load(name: str) -> ModuleType:
    return importlib.import_module(name)


def call(name: str, *arguments: str) -> Any:
    result = load(name).main(*arguments)
    return asyncio.run(result) if inspect.iscoroutine(result) else result


def git(*words: str) -> None:
    identity = ["-c", "user.name=A", "-c", "user.email=a@example.com"]
    subprocess.run(["git", *identity, *words], check=True, capture_output=True)


def test_the_page_lists_every_example() -> None:
    listed = set(re.findall(r"^\| \[([^\]]+)\]", (EXAMPLES / "README.md").read_text(encoding="utf-8"), re.MULTILINE))
    assert listed == {path.name for path in EXAMPLES.iterdir() if path.suffix in (".py", ".ipynb")}
    assert len(listed) == 10


@pytest.mark.parametrize(
    ("name", "protocol", "calls"), [("decide", "adversarial", 7), ("own_protocol", "devils-advocate", 4), ("own_member", "triad", 4)]
)  # fmt: skip
def test_a_question_is_answered(name: str, protocol: str, calls: int, capsys: pytest.CaptureFixture[str]) -> None:
    report = call(name)
    assert (report.status, report.protocol, report.calls.made) == ("complete", protocol, calls)
    assert report.answer in capsys.readouterr().out


def test_own_member_answers_for_its_seat(capsys: pytest.CaptureFixture[str]) -> None:
    report = call("own_member", "When should we deploy?")
    assert [seat.served_by for seat in report.seats] == ["scripted:", "scripted:", "house:rules"]


def test_a_diff_is_reviewed(capsys: pytest.CaptureFixture[str]) -> None:
    git("init", "-q")
    for text in ("x = 1\n", "x = 2\n"):
        Path("a.py").write_text(text)
        git("add", "a.py")
        git("commit", "-qm", "Change x")
    assert call("review_diff", "HEAD~1") in (0, 1)
    assert re.search(r"^(?:PASS|WARN|FAIL|DISAGREE) - trust ", capsys.readouterr().out, re.MULTILINE)


def test_protocols_are_compared(capsys: pytest.CaptureFixture[str]) -> None:
    reports = call("compare_protocols")
    assert [report.protocol for report in reports] == ["triad", "collaborative", "ranking"]
    assert re.search(r"^triad +4 calls", capsys.readouterr().out, re.MULTILINE)


def test_a_batch_continues_where_it_stopped() -> None:
    Path("questions.txt").write_text("One?\nTwo?\n")
    assert call("batch", "questions.txt", "answers.jsonl") == 2
    Path("questions.txt").write_text("One?\nTwo?\nThree?\n")
    assert call("batch", "questions.txt", "answers.jsonl") == 1
    rows = [json.loads(line) for line in Path("answers.jsonl").read_text().splitlines()]
    assert {row["question"] for row in rows} == {"One?", "Two?", "Three?"}
    assert all(row["answer"] for row in rows)


def test_a_budget_is_kept() -> None:
    assert call("budget").status == "complete"


def test_a_stopped_run_is_resumed(capsys: pytest.CaptureFixture[str]) -> None:
    report = call("resume")
    assert (report.status, report.calls.made, report.calls.replayed) == ("complete", 4, 3)


async def read_events(port: int) -> list[tuple[str, Any]]:
    async with aiohttp.ClientSession() as session:
        url = f"http://127.0.0.1:{port}/ask"
        async with session.get(url, params={"question": "Tabs or spaces?"}) as response:
            text = (await response.read()).decode()
    blocks = [block.splitlines() for block in text.strip().split("\n\n")]
    return [(name.removeprefix("event: "), json.loads(data.removeprefix("data: "))) for name, data in blocks]


def test_a_web_app_streams_a_run() -> None:
    async def serve() -> list[tuple[str, Any]]:
        runner = web.AppRunner(load("web_app").make_app())
        await runner.setup()
        try:
            site = web.TCPSite(runner, "127.0.0.1", 0)
            await site.start()
            return await read_events(runner.addresses[0][1])
        finally:
            await runner.cleanup()

    events = asyncio.run(serve())
    assert {name for name, _ in events} == {"phase", "delta", "report"}
    assert council.Report.from_dict(events[-1][1]).status == "complete"


def test_the_notebook_runs_and_renders_reports() -> None:
    notebook = json.loads((EXAMPLES / "notebook.ipynb").read_text(encoding="utf-8"))
    cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    names: dict[str, Any] = {}

    async def run_cell(source: str) -> Any:
        """Run a cell as a notebook does: await is allowed, and the value of the last line is shown."""
        tree = ast.parse(source)
        if isinstance(tree.body[-1], ast.Expr):
            tree.body[-1] = ast.Assign([ast.Name("_", ast.Store())], tree.body[-1].value)
        code = compile(ast.fix_missing_locations(tree), "cell", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        if inspect.iscoroutine(waiting := eval(code, names)):
            await waiting
        return names.get("_")

    async def run_all() -> list[Any]:
        return [await run_cell(source) for source in cells]

    first, _, last = asyncio.run(run_all())
    assert "Trust: " in first._repr_markdown_()
    assert last.continues == first.run
    assert "<p>" in last._repr_html_()
