"""Limits of a vendor per minute: those of the settings, and those that answers state without any setting."""

from __future__ import annotations

import json

import pytest

from tests.acceptance.helpers import QUESTION, Terminal, Workspace, check_store, wait_until
from tests.acceptance.shared_store import Workers
from tests.acceptance.test_many_workers import count_open, queue_runs
from tests.fakes.vendor_limits import EnforcedLimits

REQUESTS, TOKENS, WINDOW_S = 20, 20_000, 6.0  # of each model
MODELS = 4
ROWS, CALLS = 90, 4


@pytest.mark.behaviour("33-limits-per-minute")
def test_a_run_takes_what_it_has_used_from_the_limits_of_the_settings(workspace: Workspace, council: Terminal) -> None:
    limits = "requests_per_minute = 10_000\ninput_tokens_per_minute = 1_000_000\noutput_tokens_per_minute = 1_000_000\n"
    path = workspace.folder / "council.toml"
    path.write_text(path.read_text().replace("backoff = 0.01\n", f"backoff = 0.01\n{limits}"))
    workspace.provider.delay = 0.01
    assert council("--protocol", "triad", QUESTION).code == 0
    ((name, state),) = workspace.rows("SELECT name, state FROM limits")
    assert name == f"sim {workspace.provider.base_url}"
    assert set(json.loads(state)) == {"requests", "input", "output"}


@pytest.mark.behaviour("33-learned-limits")
def test_without_settings_nothing_is_stored_while_enough_is_left(workspace: Workspace, council: Terminal) -> None:
    workspace.provider.limits = EnforcedLimits(REQUESTS, TOKENS, per_model=True)
    assert council("--protocol", "triad", QUESTION).code == 0
    assert workspace.rows("SELECT name FROM limits") == []


@pytest.mark.behaviour("33-learned-limits")
def test_without_settings_a_limit_that_is_near_is_stored_for_the_model(workspace: Workspace, council: Terminal) -> None:
    limits = workspace.provider.limits = EnforcedLimits(5, TOKENS, window=1.0, per_model=True)
    path = workspace.folder / "council.toml"
    path.write_text(path.read_text().replace('"sim:alpha"', '"sim:beta"').replace('"sim:gamma"', '"sim:beta"'))
    assert council("--protocol", "collaborative", QUESTION).code == 0
    assert workspace.rows("SELECT name FROM limits") == [(f"sim {workspace.provider.base_url} sim:beta",)]
    assert sum(limits.count("requests")) == 7
    assert sum(limits.count("refused")) == 0


def check_windows(capsys: pytest.CaptureFixture[str], limits: EnforcedLimits) -> None:
    """Check that few requests were refused after the first window, and that the second window was used."""
    requests, tokens, refused = (limits.count(kind) for kind in ("requests", "tokens", "refused"))
    with capsys.disabled():
        print(f"\nby window: requests {requests}, tokens {tokens}, refused {refused}")
    assert sum(requests) == ROWS * CALLS
    assert sum(refused[1:]) <= 0.05 * ROWS * CALLS
    assert requests[1] >= 0.8 * REQUESTS * MODELS


@pytest.mark.sweep
@pytest.mark.behaviour("33-learned-limits")
@pytest.mark.parametrize("wire", ["openai", "anthropic"])
def test_a_batch_without_settings_slows_down_by_the_headers(
    workspace: Workspace, council: Terminal, capsys: pytest.CaptureFixture[str], wire: str
) -> None:
    limits = workspace.provider.limits = EnforcedLimits(REQUESTS, TOKENS, WINDOW_S, per_model=True)
    workspace.configure()
    path = workspace.folder / "council.toml"
    path.write_text(path.read_text().replace('wire = "openai"', f'wire = "{wire}"'))
    rows = "".join(json.dumps({"id": f"row {n}", "question": f"Question {n}?"}) + "\n" for n in range(ROWS))
    (workspace.folder / "rows.jsonl").write_text(rows, encoding="utf-8")
    done = workspace.council("batch", "rows.jsonl", "-o", "out.jsonl", "--protocol", "triad", "--concurrency", "20")
    assert done.code == 0, done.err
    lines = [json.loads(line) for line in (workspace.folder / "out.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [line["status"] for line in lines] == ["complete"] * ROWS
    check_windows(capsys, limits)


@pytest.mark.sweep
@pytest.mark.behaviour("33-learned-limits")
def test_workers_without_settings_slow_down_by_the_headers(
    shared: Workspace, shared_workers: Workers, council: Terminal, capsys: pytest.CaptureFixture[str]
) -> None:
    limits = shared.provider.limits = EnforcedLimits(REQUESTS, TOKENS, WINDOW_S, per_model=True)
    queue_runs(shared, ROWS)
    for _ in range(4):
        shared_workers.start("--concurrency", "10")
    wait_until(lambda: not count_open(), "the workers finished the runs", 240)
    check_windows(capsys, limits)
    check_store(council)
