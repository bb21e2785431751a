"""Fuzz the API with valid and invalid requests from its OpenAPI description."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode

from tests.doors.web.conftest import write_project
from tests.doors.web.server import Json, WebServer, environment

EXAMPLES = 10  # of each operation and mode
OPERATIONS = [
    ("POST", "/api/session"), ("POST", "/api/codes"), ("GET", "/api/protocols"), ("GET", "/api/members"), ("GET", "/api/roots"), ("GET", "/api/files"),
    ("GET", "/api/files/search"), ("GET", "/api/files/text"), ("GET", "/api/options"),
    ("POST", "/api/attachments"), ("GET", "/api/attachments"), ("GET", "/api/attachments/{id}"), ("DELETE", "/api/attachments/{id}"),
    ("GET", "/api/setup"), ("POST", "/api/setup/key"), ("POST", "/api/setup/search"),
    ("POST", "/api/estimate"), ("POST", "/api/runs"), ("GET", "/api/runs"), ("GET", "/api/runs/{run}"), ("DELETE", "/api/runs/{run}"), ("PATCH", "/api/runs/{run}"), ("GET", "/api/runs/{run}/events"),
    ("GET", "/api/stream"), ("GET", "/api/runs/{run}/report"), ("GET", "/api/runs/{run}/positions"), ("GET", "/api/runs/{run}/attempts"), ("GET", "/api/runs/{run}/packet"),
    ("POST", "/api/runs/{run}/cancel"), ("POST", "/api/runs/{run}/resume"), ("POST", "/api/runs/{run}/fork"), ("GET", "/api/runs/{run}/asks"),
    ("POST", "/api/runs/{run}/asks/{key}"), ("POST", "/api/runs/{run}/outcome"), ("GET", "/api/spend"), ("GET", "/api/evals"), ("GET", "/api/evals/{id}"),
    ("GET", "/v1/models"), ("GET", "/v1/models/{model}"), ("POST", "/v1/chat/completions"), ("POST", "/v1/responses"),
    ("GET", "/v1/responses/{response}"), ("DELETE", "/v1/responses/{response}"), ("POST", "/v1/responses/{response}/cancel"),
]  # fmt: skip
OPERATION_IDS = {
    "open_session", "create_code", "get_protocols", "get_members", "get_roots", "get_files", "estimate_run", "start_run", "get_runs",
    "get_run", "delete_run", "stream_run", "stream_runs", "get_report", "get_positions", "get_attempts", "get_packet", "cancel_run", "resume_run", "fork_run",
    "get_asks", "answer_ask", "get_spend", "get_evals", "get_eval", "get_options", "get_found_files", "get_file_text", "change_run", "record_outcome",
    "upload_attachment", "get_attachments", "get_attachment", "delete_attachment",
    "get_setup", "set_up_key", "set_up_search",
    "list_models", "get_model", "create_chat_completion", "create_response", "get_response", "delete_response", "cancel_response",
}  # fmt: skip
IDLE = (
    "/api/protocols",
    "/api/members",
    "/api/roots",
    "/api/attachments",
    "/api/setup",
    "/api/options",
    "/api/evals",
    "/v1/models",
)  # without parameters, so nothing can be invalid
CASES = [
    pytest.param(method, path, mode, id=f"{method} {path} {mode.value}")
    for method, path in OPERATIONS
    for mode in GenerationMode
    if mode is GenerationMode.POSITIVE or method == "POST" or path not in IDLE
]
SETTINGS = settings(
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
    return server.run_council()


@pytest.fixture(scope="module")
def described(server: WebServer) -> Json:
    response: Json = server.get("/api/openapi.json")
    return response


@pytest.mark.behaviour("50-web-openapi")
def test_the_description_has_exactly_these_operations(described: Json) -> None:
    response = {(method.upper(), path) for path, methods in described["paths"].items() for method in methods}
    assert response == set(OPERATIONS)
    names = {about["operationId"] for methods in described["paths"].values() for about in methods.values()}
    assert names == OPERATION_IDS  # clients are generated with these names: add, never rename
    for path, methods in described["paths"].items():
        for method, about in methods.items():
            good = about["responses"][min(about["responses"])]
            schemas = [content.get("schema") for content in good.get("content", {}).values()]
            assert all(schemas) and (schemas or method == "delete"), (method, path)


@pytest.mark.behaviour("50-web-openapi", "50-web-errors")
@pytest.mark.parametrize(("method", "path", "mode"), CASES)
def test_no_request_breaks_the_server(
    server: WebServer, described: Json, run: str, method: str, path: str, mode: GenerationMode
) -> None:
    operation = schemathesis.openapi.from_dict(described)[path][method]
    known: Any = {"run": run} if "{run}" in path and mode is GenerationMode.POSITIVE else None

    query: Any = {"run": [run]} if path == "/api/stream" and mode is GenerationMode.POSITIVE else None

    @SETTINGS
    @given(operation.as_strategy(mode, path_parameters=known, query=query))
    def check(case: schemathesis.Case) -> None:
        headers = {"Authorization": f"Bearer {server.token}"}
        response = case.call(base_url=f"http://{server.host}", headers=headers, timeout=60)
        assert response.status_code < 500, response.text
        if response.status_code >= 400 and response.headers["content-type"] == "application/json":
            fields = {"code", "message", "type", "param"} if path.startswith("/v1/") else {"code", "message", "field"}
            assert set(response.json()["error"]) == fields
            assert "\n" not in response.json()["error"]["message"]

    check()
