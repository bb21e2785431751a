"""The API tried with what its own description allows, and with what it does not: whatever is sent, nothing breaks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode

from tests.doors.web.conftest import write_project
from tests.doors.web.server import Json, WebServer, environment

EXAMPLES = 20  # of each operation and mode
OPERATIONS = [
    ("POST", "/api/session"), ("GET", "/api/protocols"), ("GET", "/api/members"), ("GET", "/api/roots"), ("GET", "/api/files"),
    ("POST", "/api/estimate"), ("POST", "/api/runs"), ("GET", "/api/runs"), ("GET", "/api/runs/{run}"), ("GET", "/api/runs/{run}/events"),
    ("GET", "/api/stream"), ("GET", "/api/runs/{run}/report"), ("GET", "/api/runs/{run}/attempts"), ("GET", "/api/runs/{run}/packet"),
    ("POST", "/api/runs/{run}/cancel"), ("POST", "/api/runs/{run}/resume"), ("POST", "/api/runs/{run}/fork"), ("GET", "/api/runs/{run}/asks"),
    ("POST", "/api/runs/{run}/asks/{key}"), ("GET", "/api/spend"),
]  # fmt: skip
IDLE = ("/api/protocols", "/api/members", "/api/roots")  # nothing can be said to them, so nothing wrong either
CASES = [
    pytest.param(method, path, mode, id=f"{method} {path} {mode.value}")
    for method, path in OPERATIONS
    for mode in GenerationMode
    if mode is GenerationMode.POSITIVE or path not in IDLE
]
QUIETLY = settings(
    max_examples=EXAMPLES, derandomize=True, deadline=None, database=None, suppress_health_check=list(HealthCheck)
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebServer]:
    place = tmp_path_factory.mktemp("schema")
    served = WebServer(write_project(place), environment(place))
    yield served
    served.close()


@pytest.fixture(scope="module")
def run(server: WebServer) -> str:
    return server.convened()


@pytest.fixture(scope="module")
def described(server: WebServer) -> Json:
    told: Json = server.get("/api/openapi.json")
    return told


@pytest.mark.behaviour("50-web-openapi")
def test_the_description_has_these_operations_and_no_others(described: Json) -> None:
    told = {(method.upper(), path) for path, methods in described["paths"].items() for method in methods}
    assert told == set(OPERATIONS)


@pytest.mark.behaviour("50-web-openapi", "50-web-errors")
@pytest.mark.parametrize(("method", "path", "mode"), CASES)
def test_nothing_that_is_sent_breaks_the_server(
    server: WebServer, described: Json, run: str, method: str, path: str, mode: GenerationMode
) -> None:
    operation = schemathesis.openapi.from_dict(described)[path][method]
    known: Any = {"run": run} if "{run}" in path and mode is GenerationMode.POSITIVE else None

    heard: Any = {"run": [run]} if path == "/api/stream" and mode is GenerationMode.POSITIVE else None

    @QUIETLY
    @given(operation.as_strategy(mode, path_parameters=known, query=heard))
    def tried(case: schemathesis.Case) -> None:
        headers = {"Authorization": f"Bearer {server.token}"}
        response = case.call(base_url=f"http://{server.host}", headers=headers, timeout=60)
        assert response.status_code < 500, response.text
        if response.status_code >= 400 and response.headers["content-type"] == "application/json":
            assert set(response.json()) == {"schema", "error", "exit"}
            assert "\n" not in response.json()["error"]

    tried()
