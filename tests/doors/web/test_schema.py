"""The OpenAPI description is true: valid and invalid requests made from it get the responses that it describes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import jsonschema
import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.core.parameters import ParameterLocation

from council.doors.web.app import describe_api
from tests.doors.web.conftest import write_project
from tests.doors.web.server import Json, WebServer, environment

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
SETTINGS = settings(derandomize=True, deadline=None, database=None, suppress_health_check=list(HealthCheck))
EXAMPLES, SWEEP_EXAMPLES = 2, 60  # random requests of each operation, beside those that cover its description
# The first requests of an operation are all sent, then every 8th.
FIRST_REQUESTS, STRIDE = 25, 8
OWN_HEADERS = {"idempotency-key", "last-event-id", "x-stainless-retry-count"}

schema = schemathesis.openapi.from_dict(describe_api())
# 400: the request fits the description, and what it names does not exist or is not possible now.
schema.config.checks.positive_data_acceptance.expected_statuses.append("400")


@dataclass
class Site:
    """A server with a run and a response."""

    server: WebServer
    run: str
    response: str
    requests: Counter[str] = field(default_factory=Counter)

    def check(self, case: schemathesis.Case) -> None:
        """Send a request, and run all checks of schemathesis on the response."""
        is_valid = case.meta is not None and case.meta.generation.mode.is_positive
        if is_valid:
            self._name_known(case)
        headers = self._choose_headers(case)
        response = case.call(base_url=f"http://{self.server.host}", headers=headers, timeout=60)
        assert response.status_code < 500, response.text
        if response.status_code >= 400:
            assert_is_one_line(response.json(), case.path)
        case.validate_response(response, headers=headers)

    def _name_known(self, case: schemathesis.Case) -> None:
        """Let every other valid request name a run that exists, and let no two have the same Idempotency-Key."""
        number = self.requests[case.operation.label]
        if "Idempotency-Key" in case.headers:
            case.headers["Idempotency-Key"] = f"{case.headers['Idempotency-Key'][:200]}-{self.requests.total()}"
        if number % 2 and case.method != "DELETE":
            known = {"run": self.run, "response": self.response}
            case.path_parameters.update({name: known[name] for name in case.path_parameters.keys() & known.keys()})
            if case.path == "/api/stream":
                case.query["run"] = [self.run]

    def _choose_headers(self, case: schemathesis.Case) -> Mapping[str, str]:
        """Return the token, unless the token is what the request has wrong."""
        about = case.meta.components.get(ParameterLocation.HEADER) if case.meta else None
        if about and about.mode.is_negative and not OWN_HEADERS & {name.lower() for name in case.headers}:
            return {}
        return {"Authorization": f"Bearer {self.server.token}"}


def assert_is_one_line(error: Json, path: str) -> None:
    names = {"code", "message", "type", "param"} if path.startswith("/v1/") else {"code", "message", "field"}
    assert set(error["error"]) == names
    assert "\n" not in error["error"]["message"]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    place = tmp_path_factory.mktemp("schema")
    server = WebServer(write_project(place), environment(place))
    yield Site(server, server.run_council(), server.post("/v1/responses", {"model": "council", "input": "?"})["id"])
    server.close()


@pytest.mark.behaviour("50-web-openapi", "50-web-errors")
@schema.parametrize()
@settings(SETTINGS, max_examples=EXAMPLES)
def test_responses_are_as_described(case: schemathesis.Case, site: Site) -> None:
    number = site.requests[case.operation.label]
    site.requests[case.operation.label] += 1
    if number < FIRST_REQUESTS or number % STRIDE == 0:
        site.check(case)


@pytest.mark.sweep
@pytest.mark.behaviour("50-web-openapi", "50-web-errors")
@schema.parametrize()
@settings(SETTINGS, max_examples=SWEEP_EXAMPLES)
def test_all_responses_are_as_described(case: schemathesis.Case, site: Site) -> None:
    site.requests[case.operation.label] += 1
    site.check(case)


@pytest.fixture(scope="module")
def described() -> Json:
    return describe_api()


@pytest.mark.behaviour("50-web-openapi")
def test_the_description_has_exactly_these_operations(described: Json) -> None:
    response = {(method.upper(), path) for path, methods in described["paths"].items() for method in methods}
    assert response == set(OPERATIONS)
    names = {about["operationId"] for methods in described["paths"].values() for about in methods.values()}
    assert names == OPERATION_IDS  # clients are generated with these names: add, never rename
    for path, methods in described["paths"].items():
        for method, about in methods.items():
            good = about["responses"][min(about["responses"])]
            schemas = [
                content.get("schema") or content.get("itemSchema") for content in good.get("content", {}).values()
            ]
            assert all(schemas) and (schemas or method == "delete"), (method, path)


@pytest.mark.behaviour("50-web-openapi")
def test_every_example_fits_its_schema(described: Json) -> None:
    found = [
        (content["schema"], content["example"])
        for methods in described["paths"].values()
        for operation in methods.values()
        for response in operation["responses"].values()
        for content in response.get("content", {}).values()
        if "schema" in content and "example" in content
    ]
    found += [
        (one, example) for one in described["components"]["schemas"].values() for example in one.get("examples", ())
    ]
    assert len(found) > 200
    for one, example in found:
        jsonschema.validate(example, {**one, "components": described["components"]}, jsonschema.Draft202012Validator)


@pytest.mark.behaviour("50-web-openapi")
def test_limits_that_the_server_checks_are_described(described: Json) -> None:
    schemas = described["components"]["schemas"]
    assert schemas["RunChange"]["properties"]["title"]["maxLength"] == 200
    assert {"trust", "tail", "chair"} <= {*schemas["Report"]["required"]}
    kinds = described["paths"]["/api/runs/{run}/report"]["get"]["responses"]["200"]["content"]
    assert {*kinds} == {"text/plain", "application/json", "application/sarif+json", "text/html"}


@pytest.mark.behaviour("50-web-methods")
def test_allow_names_every_method_of_a_path(site: Site, described: Json) -> None:
    for path, methods in described["paths"].items():
        named = path.replace("{run}", site.run).replace("{response}", site.response)
        known = {"OPTIONS", *map(str.upper, methods), *(["HEAD"] if "get" in methods else [])}
        told = site.server.ask("OPTIONS", named)
        assert (told.status, {*told.headers["allow"].split(", ")}) == (204, known), path
        refused = site.server.ask("PUT", named)
        assert (refused.status, refused.headers["allow"]) == (405, told.headers["allow"]), path
        if "post" not in methods:
            assert site.server.ask("POST", named, "text", headers={"Content-Type": "text/plain"}).status == 405, path
    assert site.server.ask("OPTIONS", "/api/nothing").status == 404
    assert site.server.ask("OPTIONS", "/api/runs", token=False).status == 401
