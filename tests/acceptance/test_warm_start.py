"""Warm start in the real command: the plan says so, and seats of one model share the vendor's cache."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.helpers import Terminal, wait_for_exit
from tests.fake_provider import FakeProvider
from tests.fork_server import Process
from tests.trusted_project import trust_project

LINE = "warm start: one seat on lab:m1 begins"


@pytest.fixture
def lab(provider: FakeProvider) -> Iterator[FakeProvider]:
    """Return the endpoint of a project whose seats ask one model over the messages wire, about a long file."""
    Path("council.toml").write_text(
        f'[providers.lab]\nwire = "anthropic"\nbase_url = "{provider.base("anthropic")}"\n'
        '[models]\ndefault = "lab:m1"\n[chair]\nmodel = "lab:m1"\n',
        encoding="utf-8",
    )
    Path("plan.md").write_text("Move the archive, one shelf at a time.\n" * 200, encoding="utf-8")
    trust_project()
    yield provider


@pytest.mark.behaviour("15-warm-start")
def test_judges_of_one_model_share_the_packet_in_the_cache(lab: FakeProvider, council: Terminal) -> None:
    assert LINE in council("--dry-run", "validate", "plan.md").out
    gate = lab.hold(nth=1)
    run = Process(["--quiet", "validate", "plan.md"], Path.cwd())
    gate.wait()
    gate.release()
    assert wait_for_exit(run).code in (0, 1)
    first, second = lab.log[:2]
    assert (first.tokens or {})["written"] == (second.tokens or {})["cached"] > 2000
    assert all("written" not in (seen.tokens or {}) for seen in lab.log[1:])


@pytest.mark.behaviour("15-warm-start")
@pytest.mark.parametrize("off", ["flag", "file"])
def test_without_the_warm_start_all_judges_are_asked_at_once(lab: FakeProvider, council: Terminal, off: str) -> None:
    flags = ["--no-warm"] if off == "flag" else []
    if off == "file":
        file = Path("council.toml")
        file.write_text(f"warm_start = false\n{file.read_text(encoding='utf-8')}", encoding="utf-8")
    assert LINE not in council(*flags, "--dry-run", "validate", "plan.md").out
    gate = lab.hold()
    run = Process(["--quiet", *flags, "validate", "plan.md"], Path.cwd())
    assert len(gate.wait(count=2)) == 2
    gate.release()
    assert wait_for_exit(run).code in (0, 1)
