"""The picture of the README, generated from a run."""

from __future__ import annotations

import asyncio
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

from council.engine.minutes import Minutes
from council.render.report import build_report
from tests.doors.web.page.conftest import run_in_thread
from tests.paths import ROOT


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Load the script with a cast that streams at full speed."""
    spec = spec_from_file_location("make_picture", ROOT / "scripts" / "make_picture.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "make_picture", module)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "FIRST_TOKEN_DELAY_S", 0.0)
    monkeypatch.setattr(module, "BACKOFF", 0.01)
    for judge in module.CAST["judges"].values():
        monkeypatch.setitem(judge, "speed", 1e9)
    return module


@pytest.mark.behaviour("issue-7-picture")
def test_the_picture_is_there_and_small() -> None:
    picture = ROOT / "docs" / "council.png"
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert picture.stat().st_size < 400_000
    assert "docs/council.png" in (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.behaviour("issue-7-picture")
def test_the_cast_of_the_picture_produces_a_complete_run(script: Any, tmp_path: Path) -> None:
    summary = build_report(Minutes.fold(run_in_thread(lambda: asyncio.run(script.run_council(tmp_path)))))
    assert (summary["status"], summary["verdict"]) == ("complete", "FAIL")
    assert [one["state"] for one in summary["degraded"]] == ["failed(overload)"]
    assert [shift["seat"] for shift in summary["shifts"] if shift["changed"]] == ["judge-defender"]
    assert [finding["disputed"] for finding in summary["findings"]].count(True) == 1
