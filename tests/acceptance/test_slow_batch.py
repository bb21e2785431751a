"""`council batch --slow`: each phase of all rows is one job of a vendor, at half the price."""

from __future__ import annotations

import json
import re
from collections import Counter

import pytest

from council.runs import waves
from tests.acceptance.helpers import Terminal, Workspace, check_store, kill, wait_until
from tests.acceptance.test_batch import CALLS, TRIAD, read_lines, set_prices, write_rows
from tests.trusted_project import trust_project

ROWS = 5
SLOW = ("-o", "out.jsonl", "--slow", *TRIAD)


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch, workspace: Workspace) -> None:
    """Send waves soon, through an endpoint with a batch interface."""
    path = workspace.folder / "council.toml"
    path.write_text(path.read_text().replace("backoff = 0.01", "backoff = 0.01\nbatches = true"))
    trust_project(workspace.folder)
    for name, seconds in (("QUIET_S", 0.1), ("FIRST_POLL_S", 0.02), ("MAX_POLL_S", 0.05)):
        monkeypatch.setattr(waves, name, seconds)


def count_cost(workspace: Workspace) -> float:
    return float(sum(line["report"]["cost"]["usd"] for line in read_lines(workspace)))


@pytest.mark.behaviour("32-slow-batch")
def test_each_phase_of_all_rows_is_one_job_for_each_model(workspace: Workspace, council: Terminal) -> None:
    rows = write_rows(workspace, ROWS)
    done = council("batch", rows, *SLOW)
    assert done.code == 0, done.err
    assert {line["status"] for line in read_lines(workspace)} == {"complete"}
    jobs = workspace.provider.batches.jobs.values()
    assert [len(job.requests) for job in jobs] == [ROWS] * CALLS  # three seats, and then the chair
    assert {seen.path for seen in workspace.provider.log} == {"batch"}
    assert done.err.count("requests were sent to sim:") == CALLS
    assert "has no effect" not in done.err
    again = council("batch", rows, *SLOW)
    assert (again.code, len(workspace.provider.log)) == (0, ROWS * CALLS)
    check_store(council)


@pytest.mark.behaviour("32-slow-batch")
def test_a_provider_without_a_batch_interface_answers_at_once_at_its_price(
    workspace: Workspace, council: Terminal
) -> None:
    path = workspace.folder / "council.toml"
    path.write_text(path.read_text().replace("batches = true", ""))
    trust_project(workspace.folder)
    done = council("batch", write_rows(workspace, 2), *SLOW)
    assert done.code == 0
    assert "! --slow has no effect on sim:alpha, sim:beta, sim:chair, sim:gamma: their providers" in done.err
    assert (workspace.provider.batches.jobs, len(workspace.provider.log)) == ({}, 2 * CALLS)


@pytest.mark.behaviour("32-slow-batch")
def test_the_price_is_half(workspace: Workspace, council: Terminal) -> None:
    set_prices(workspace)
    rows = write_rows(workspace, 2)
    full, half = (
        council("batch", rows, "-o", "out.jsonl", *TRIAD, "--dry-run", "--json", *flags).json["cost"]["expected"]
        for flags in ((), ("--slow",))
    )
    assert half == pytest.approx(full / 2, rel=0.01)
    assert council("batch", rows, *SLOW).code == 0
    slow = count_cost(workspace)
    (workspace.folder / "out.jsonl").unlink()
    (workspace.folder / "out.jsonl.batch").unlink(missing_ok=True)
    (workspace.folder / "out.jsonl.waves").unlink()
    assert council("batch", rows, "-o", "out.jsonl", *TRIAD).code == 0
    assert slow == pytest.approx(count_cost(workspace) / 2, rel=0.01)


@pytest.mark.sweep
@pytest.mark.behaviour("32-slow-batch-resume")
def test_a_slow_batch_that_is_killed_pays_for_no_request_twice(workspace: Workspace, council: Terminal) -> None:
    rows = write_rows(workspace, ROWS)
    workspace.provider.batches.is_held = True
    batch = workspace.process("batch", rows, *SLOW)
    path = workspace.folder / "out.jsonl.waves"
    wait_until(lambda: path.exists() and path.read_text().count('"job"') == 3, "the first wave was sent")
    kill(batch)
    workspace.provider.batches.is_held = False
    done = council("batch", rows, *SLOW)
    assert done.code == 0, done.err
    assert {line["status"] for line in read_lines(workspace)} == {"complete"}
    asked = Counter((seen.model, seen.prompt) for seen in workspace.provider.log)
    assert (len(asked), set(asked.values())) == (ROWS * CALLS, {1})
    in_doubt = [line["report"]["calls"]["in_doubt"] for line in read_lines(workspace)]
    assert in_doubt == [3] * ROWS  # counted, because the process cannot know what the vendor has billed
    check_store(council)


@pytest.mark.behaviour("32-slow-batch")
def test_the_file_of_waves_has_no_text_of_a_request(workspace: Workspace, council: Terminal) -> None:
    assert council("batch", write_rows(workspace, 1), *SLOW).code == 0
    for line in (workspace.folder / "out.jsonl.waves").read_text().splitlines():
        assert set(json.loads(line)) <= {"wave", "member", "requests", "job", "ended"}
        assert all(re.fullmatch(r"[0-9a-f]{32}-\d+", name) for name in json.loads(line).get("requests", ()))
