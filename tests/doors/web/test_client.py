"""The OpenAPI description is complete: a client generated from it starts, follows and reads a run with typed fields."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from openapi_python_client import generate
from openapi_python_client.config import Config, ConfigFile, MetaType

from tests.doors.web.server import QUESTION, WebServer, events

NAME = "council_client"


@pytest.fixture
def client(site: WebServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Generate the client, and return a function that imports its modules."""
    source, folder = tmp_path / "openapi.json", tmp_path / "generated" / NAME
    source.write_text(json.dumps(site.get("/api/openapi.json")), encoding="utf-8")
    folder.parent.mkdir()
    settings = Config.from_sources(
        ConfigFile(post_hooks=[]), MetaType.NONE, source, "utf-8", overwrite=False, output_path=folder
    )
    assert list(generate(config=settings)) == []  # no part of the description was left out
    monkeypatch.syspath_prepend(str(folder.parent))
    yield lambda module: importlib.import_module(f"{NAME}.{module}")
    for module in [module for module in sys.modules if module.partition(".")[0] == NAME]:
        del sys.modules[module]


@pytest.mark.behaviour("50-web-client", "50-web-openapi")
def test_a_generated_client_starts_follows_and_reads_a_run(site: WebServer, client: Any) -> None:
    models = client("models")
    with client("client").AuthenticatedClient(base_url=f"http://{site.host}", token=site.token) as session:
        body = models.RunRequest(question=QUESTION, protocol="triad")
        started = client("api.starting.start_run").sync(client=session, body=body, idempotency_key="typed")
        assert isinstance(started, models.StartedRun)
        assert [seat.name for seat in started.plan.seats] == ["alpha", "beta", "gamma"]
        followed = client("api.events.stream_run").sync_detailed(started.run, client=session)
        found = list(events(iter(followed.content.splitlines(keepends=True))))
        closed = models.ClosedEvent.from_dict(found[-2]["data"])
        assert (closed.status, models.StreamEnd.from_dict(found[-1]["data"]).run) == ("complete", started.run)
        detail = client("api.history.get_run").sync(started.run, client=session)
        assert isinstance(detail, models.RunDetail)
        assert detail.status is models.RunStatus.COMPLETE
        assert detail.report.answer and detail.report.trust.level
        assert detail.minutes.phases[0].said[0].tokens.out >= 0
        listed = client("api.history.get_runs").sync(client=session, limit=1)
        assert (listed.runs[0].run, listed.more, listed.next_) == (started.run, False, None)
        attempts = client("api.history.get_attempts").sync(started.run, client=session)
        assert {attempt.seat for attempt in attempts} >= {"alpha", "beta", "gamma"}
        spent = client("api.history.get_spend").sync(client=session)
        assert spent.total.calls == 0  # scripted members cost nothing
        again = client("api.acting.resume_run").sync(started.run, client=session, body=models.EmptyRequest())
        assert isinstance(again, models.ErrorBody)
        assert (again.error.code, again.error.field) == ("run_conflict", None)
        gone = client("api.acting.delete_run").sync_detailed(started.run, client=session)
        assert gone.status_code == 204
