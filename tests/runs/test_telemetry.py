"""Telemetry: the spans of a run at a collector on a real socket, and runs whose collector fails."""

from __future__ import annotations

import gzip
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes
from opentelemetry.semconv.attributes import error_attributes

from council.runs import run_context, telemetry
from tests.acceptance.helpers import Terminal, Workspace
from tests.fake_provider import Reply
from tests.trusted_project import write_user_file

QUESTION = "Should the archive move to cold storage?"
NAMES = {value for name, value in vars(gen_ai_attributes).items() if name.startswith("GEN_AI_") and isinstance(value, str)}  # fmt: skip
OLD_NAMES = {"gen_ai.system", "gen_ai.prompt", "gen_ai.completion", "gen_ai.usage.prompt_tokens"}


class Collector:
    """OTLP over HTTP: keeps the spans that arrive."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        kept = self.bodies

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                kept.append(gzip.decompress(body) if self.headers.get("Content-Encoding") == "gzip" else body)
                self.send_response(200)
                self.end_headers()

            def log_message(self, *what: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}"

    @property
    def spans(self) -> list[Any]:
        requests = [ExportTraceServiceRequest.FromString(body) for body in self.bodies]
        return [
            span for one in requests for resource in one.resource_spans for scope in resource.scope_spans for span in scope.spans
        ]  # fmt: skip


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    started = Collector()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", started.url)
    forget_exporter()
    yield started
    forget_exporter()
    started.server.shutdown()
    started.server.server_close()


def forget_exporter() -> None:
    """Send what is left, and read the variables again."""
    if telemetry.start_exporter.cache_info().currsize:
        telemetry.start_exporter()[2].shutdown()
    telemetry.start_exporter.cache_clear()
    run_context.sends_spans.cache_clear()


def run_command(workspace: Workspace, *flags: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a council in a new process, which sends its spans before it ends."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **variables}
    command = [sys.executable, "-m", "council", "--quiet", "--protocol", "triad", *flags, QUESTION]
    return subprocess.run(command, cwd=workspace.folder, env=env, capture_output=True, text=True, timeout=120, check=False)  # fmt: skip


def values(span: Any) -> dict[str, Any]:
    return {one.key: _value(one.value) for one in span.attributes}


def _value(value: Any) -> Any:
    kind = value.WhichOneof("value")
    return [_value(one) for one in value.array_value.values] if kind == "array_value" else getattr(value, kind)


@pytest.mark.behaviour("otel-spans", "otel-no-content")
def test_the_spans_of_a_run_arrive_with_the_names_of_the_conventions(
    workspace: Workspace, collector: Collector
) -> None:
    workspace.answers.instead["beta/draft"] = [Reply(status=500)]
    run = json.loads(run_command(workspace, "--json").stdout)["run"]
    spans = {span.span_id: span for span in collector.spans}
    (root,) = [span for span in spans.values() if not span.parent_span_id]
    assert (root.name, root.trace_id.hex()) == ("invoke_workflow triad", f"{telemetry.make_trace_id(run):032x}")
    assert {span.trace_id for span in spans.values()} == {root.trace_id}
    assert values(root)["gen_ai.workflow.name"] == "triad" and values(root)["council.status"] == "complete"
    phases = {span.name: span for span in spans.values() if span.parent_span_id == root.span_id}
    assert sorted(phases) == ["phase draft", "phase merge"]
    calls = [span for span in spans.values() if span.name.startswith("chat ")]
    assert len(calls) == len(workspace.provider.log) == 5
    assert {spans[call.parent_span_id].name for call in calls} == set(phases)
    failed = [call for call in calls if "error.type" in values(call)]
    assert [(values(call)["error.type"], values(call)["council.attempt"], call.status.code) for call in failed] == [("server", 1, 2)]  # fmt: skip
    good = next(call for call in calls if values(call)["council.seat"] == "alpha")
    told, seen = values(good), next(seen for seen in workspace.provider.log if seen.model == "alpha")
    assert (good.name, good.kind) == ("chat alpha", 3)  # a client
    wanted = {
        "gen_ai.operation.name": "chat", "gen_ai.provider.name": "sim", "gen_ai.request.model": "alpha", "gen_ai.agent.name": "alpha",
        "gen_ai.response.finish_reasons": ["stop"], "gen_ai.usage.input_tokens": seen.tokens["in"],
        "gen_ai.usage.output_tokens": seen.tokens["out"], "gen_ai.conversation.id": run,
    }  # fmt: skip
    assert wanted.items() <= told.items() and told["gen_ai.response.model"]
    used = {name for span in spans.values() for name in values(span) if name.startswith("gen_ai.")}
    assert used <= NAMES - OLD_NAMES and error_attributes.ERROR_TYPE == "error.type"
    assert all(span.end_time_unix_nano >= span.start_time_unix_nano > 0 for span in spans.values())
    assert not any(QUESTION.encode() in body or b"mark-alpha" in body for body in collector.bodies)


@pytest.mark.behaviour("otel-resume", "otel-content")
def test_the_parts_of_a_resumed_run_are_one_trace_and_content_is_sent_on_request(
    workspace: Workspace, council: Terminal, collector: Collector
) -> None:
    write_user_file("[telemetry]\ncontent = true\n")
    workspace.answers.instead["chair/merge"] = [Reply(status=401)]
    stopped = council("--json", "--protocol", "triad", QUESTION)
    forget_exporter()
    first = collector.spans
    assert (stopped.code, stopped.json["status"]) != (0, "complete")
    assert council("resume", "--json").json["status"] == "complete"
    forget_exporter()
    second = collector.spans[len(first) :]
    (root,) = [span for span in first if not span.parent_span_id]
    (part,) = [span for span in second if span.name == root.name]
    assert (part.trace_id, part.parent_span_id) == (root.trace_id, root.span_id)
    assert values(root)["error.type"] and values(part)["council.status"] == "complete"
    assert [span.name for span in second] == ["chat chair", "phase merge", part.name]  # nothing is sent twice
    assert len({span.span_id for span in [*first, *second]}) == len(first) + len(second)
    told = values(second[0])
    (asked,) = json.loads(told["gen_ai.input.messages"])
    assert asked["role"] == "user" and QUESTION in asked["parts"][0]["content"]
    assert "mark-chair-merge" in json.loads(told["gen_ai.output.messages"])[0]["parts"][0]["content"]
    assert json.loads(told["gen_ai.system_instructions"])[0]["type"] == "text"


@pytest.mark.behaviour("otel-harmless")
def test_a_collector_that_never_answers_neither_fails_nor_holds_up_a_run(workspace: Workspace) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        done = run_command(workspace, OTEL_EXPORTER_OTLP_ENDPOINT=url, OTEL_EXPORTER_OTLP_TIMEOUT="600")
        silent.settimeout(10)
        silent.accept()[0].close()  # it had tried
    assert (done.returncode, "mark-chair-merge" in done.stdout, "opentelemetry" in done.stderr.lower()) == (
        0,
        True,
        False,
    )


@pytest.mark.behaviour("otel-off")
def test_spans_are_sent_only_if_an_exporter_is_configured(
    workspace: Workspace, council: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    endpoint = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"}
    cases: list[tuple[dict[str, str], bool]] = [
        ({}, False), (endpoint, True), ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:9/v1/traces"}, True),
        ({"OTEL_TRACES_EXPORTER": "otlp"}, True), ({"OTEL_TRACES_EXPORTER": "console"}, True), ({**endpoint, "OTEL_TRACES_EXPORTER": "none"}, False),
        ({**endpoint, "OTEL_SDK_DISABLED": "true"}, False), ({"OTEL_TRACES_EXPORTER": "zipkin"}, False), ({"OTEL_SERVICE_NAME": "x"}, False),
    ]  # fmt: skip
    for env, wanted in cases:
        with monkeypatch.context() as patch:
            for name, value in env.items():
                patch.setenv(name, value)
            run_context.sends_spans.cache_clear()
            assert run_context.sends_spans() is wanted, env
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "otlp")
    monkeypatch.setitem(
        sys.modules, "opentelemetry.exporter.otlp.proto.http", None
    )  # as if the extra were not installed
    run_context.sends_spans.cache_clear()
    done = council("--json", "--protocol", "triad", QUESTION)
    run_context.sends_spans.cache_clear()
    assert done.code == 0 and "no spans are sent: pip install 'model-council[otel]'" in done.err
