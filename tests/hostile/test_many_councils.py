"""Many councils at once in one process, also if it may open few files."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.fake_provider import FakeProvider
from tests.hostile.councils import run_many

FEW_FILES = 256
SEATS = ("alpha", "beta", "gamma")


def configure(provider: FakeProvider) -> str:
    rows = [f'[seats.{seat}]\nmodel = "sim:{seat}"\nfallback = []' for seat in SEATS]
    chair = '[chair]\nmodel = "sim:chair"\nfallback = []'
    return "\n".join(['[providers.sim]\nwire = "openai"', f'base_url = "{provider.base_url}"', *rows, chair])


def convene_many(provider: FakeProvider, folder: Path, count: int, max_files: int | None) -> float:
    """Run the councils and return the peak memory. Each is complete and sends one request per seat."""
    done = run_many(folder, configure(provider), count, max_files)
    assert done.code == 0, done.err[-2000:]
    assert Counter(json.loads(done.out)) == {"complete": count}
    assert "Traceback" not in done.err
    assert not done.fsck, done.fsck
    assert Counter(seen.model for seen in provider.log) == dict.fromkeys((*SEATS, "chair"), count)
    return done.peak_mb


@pytest.mark.behaviour("14-many-councils")
def test_sixty_councils_at_once_are_complete_with_few_open_files(provider: FakeProvider, tmp_path: Path) -> None:
    convene_many(provider, tmp_path / "child", 60, FEW_FILES)


@pytest.mark.sweep
@pytest.mark.behaviour("14-many-councils")
@pytest.mark.parametrize("max_files", [None, FEW_FILES])
def test_five_hundred_councils_at_once_are_complete(
    provider: FakeProvider, tmp_path: Path, sweep_figures: Callable[..., None], max_files: int | None
) -> None:
    peak = convene_many(provider, tmp_path / "child", 500, max_files)
    sweep_figures("councils", councils=500, complete=500, worst_peak_mb=round(peak))
