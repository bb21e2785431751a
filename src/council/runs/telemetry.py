"""OpenTelemetry spans of a run, a fold over its events: one for the run, each phase and each request. Needs the extra
`otel`.

The names follow the GenAI conventions. The trace id is derived from the run id, so that the parts of a resumed run are
one trace. A separate thread sends the spans; a collector that fails or hangs affects no run.
"""

from __future__ import annotations

import atexit
import hashlib
import json
import logging
import os
import re
import sys
import threading
import time
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter, SpanExporter
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.trace import Link, NonRecordingSpan, Span, SpanContext, SpanKind, Status, StatusCode, TraceFlags
from opentelemetry.util.types import AttributeValue

from council import events as ev
from council.engine.ledger import Ledger, Listener
from council.engine.minutes import read_plan
from council.events import Entry
from council.packet.secret_filter import redact_text
from council.settings.catalogue import split_member
from council.store.interface import AttemptResult, Record
from council.types import Message
from council.version import __version__

if TYPE_CHECKING:  # the module needs pydantic
    from council.engine.plan_object import PlanObject

Attributes = dict[str, AttributeValue]  # of a span, by name
FLUSH_TIMEOUT_S = 2.0  # at the end of the process
SERVICE = "council"
PROTOCOL_VARIABLES = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
CONTENT_VARIABLE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
CONTENT_VALUES = ("true", "1", "span_only", "span_and_event")
# Providers by their names in the GenAI conventions; any other has its own name.
PROVIDER_NAMES = {
    "google": "gcp.gemini",
    "mistral": "mistral_ai",
    "xai": "x_ai",
    "azure": "azure.ai.openai",
    "bedrock": "aws.bedrock",
}
# Attributes of token counts, by their names in `Usage.as_json`.
USAGE_ATTRIBUTES: dict[Literal["in", "out", "cached", "written"], str] = {
    "in": "input_tokens",
    "out": "output_tokens",
    "cached": "cache_read.input_tokens",
    "written": "cache_creation.input_tokens",
}
NAME = re.compile(r"[\w.:/@+*-]{1,200}")  # of a model or a response; anything else may be text of a prompt
NANOS = 1_000_000_000
_logger = logging.getLogger(__name__)


# Identifiers


def make_trace_id(run: str) -> int:
    """Return the trace id of a run: every process that works on it uses the same."""
    return int.from_bytes(hashlib.sha256(f"council run {run}".encode()).digest()[:16])


def make_span_id(run: str, what: str) -> int:
    return int.from_bytes(hashlib.sha256(f"council span {run} {what}".encode()).digest()[:8])


class RunIds(RandomIdGenerator):
    """Gives the next span of this thread the ids of its run."""

    def __init__(self) -> None:
        self.next = threading.local()

    def generate_trace_id(self) -> int:
        return getattr(self.next, "trace_id", 0) or super().generate_trace_id()

    def generate_span_id(self) -> int:
        return getattr(self.next, "span_id", 0) or super().generate_span_id()


# Export


def _close(provider: TracerProvider) -> None:
    """Send the remaining spans, for at most FLUSH_TIMEOUT_S. What the collector does not take by then is lost."""
    closing = threading.Thread(target=provider.shutdown, daemon=True)
    closing.start()
    closing.join(FLUSH_TIMEOUT_S)


@cache
def start_exporter() -> tuple[trace.Tracer, RunIds, TracerProvider]:
    """Start the exporter that the standard variables choose, once for this process."""
    if not logging.getLogger().handlers:  # otherwise each failed export is printed among the output
        logging.getLogger("opentelemetry").addHandler(logging.NullHandler())
    own_name = os.environ.get("OTEL_SERVICE_NAME") or "service.name=" in os.environ.get("OTEL_RESOURCE_ATTRIBUTES", "")
    about = {SERVICE_VERSION: __version__} | ({} if own_name else {SERVICE_NAME: SERVICE})
    ids = RunIds()
    provider = TracerProvider(resource=Resource.create(about), id_generator=ids, shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(make_exporter()))
    atexit.register(_close, provider)
    return provider.get_tracer(SERVICE, __version__), ids, provider


def make_exporter() -> SpanExporter:
    if os.environ.get("OTEL_TRACES_EXPORTER", "").strip() == "console":
        return ConsoleSpanExporter(out=sys.stderr)
    protocol = next(filter(None, map(os.environ.get, PROTOCOL_VARIABLES)), "http/protobuf")
    package = "grpc" if protocol == "grpc" and find_spec("opentelemetry.exporter.otlp.proto.grpc") else "http"
    module = import_module(f"opentelemetry.exporter.otlp.proto.{package}.trace_exporter")
    exporter: SpanExporter = module.OTLPSpanExporter()
    return exporter


def trace_run(ledger: Ledger, *, content: bool) -> Listener:
    """Return a listener that makes the spans of a run and passes events on. A failure ends the spans only."""
    listener = ledger.on_event
    try:
        content = content or os.environ.get(CONTENT_VARIABLE, "").lower() in CONTENT_VALUES
        spans: RunSpans | None = RunSpans(ledger.record, content)
    except Exception as error:
        _logger.debug("no spans: %s", error)
        return listener

    def on_event(entry: Entry) -> None:
        nonlocal spans
        listener(entry)
        try:
            if spans:
                spans.on_event(entry)
        except Exception as error:
            _logger.debug("no more spans of run %s: %s", ledger.run, error)
            spans = None

    return on_event


# Spans


class RunSpans:
    """The spans of one run that this process makes."""

    def __init__(self, record: Record, content: bool) -> None:
        self.record, self.content = record, content
        self.tracer, self.ids, _ = start_exporter()
        self.phases: dict[str, Span] = {}
        self.calls: dict[tuple[str, int], tuple[Span, float]] = {}  # with their start
        self.asked: dict[str, ev.Asked] = {}
        self.usd = 0.0
        self.run_span = self._start_run()

    def on_event(self, entry: Entry) -> None:
        at = entry.at
        match entry.event:
            case ev.PhaseStarted() as event:
                self.phase_span(event.phase, at)
            case ev.PhaseEnded() as event:
                if span := self.phases.pop(event.phase, None):
                    span.set_attribute("council.absent", event.absent)
                    span.end(int(at * NANOS))
            case ev.Asked() as event:
                self.asked[event.key] = event
            case ev.Attempted() as event:
                self.start_call(event, at)
            case ev.Faulted() as event:
                self.end_call(event.key, event.n, at, fault=event.kind, detail=event.detail)
            case ev.Billed() as event:
                self.usd += event.usd
                if known := self.calls.get((event.key, event.n)):
                    known[0].set_attribute("council.cost.usd", event.usd)
            case ev.Stated() as event:
                self.end_step(event.key, at, first_text=event.first_text)
            case ev.WasAbsent() as event:
                self.end_step(event.key, at, fault=event.state, detail=event.reason)
            case ev.Closed() as event:
                self.end_run(event, at)

    # The run

    def _start_run(self) -> Span:
        """Start the span of the run; of a resumed run that of this process's part, below the first one."""
        run, plan, part = self.record.run, self._plan, self._part
        sampled = TraceFlags(TraceFlags.SAMPLED)
        root = SpanContext(make_trace_id(run), make_span_id(run, "run"), is_remote=True, trace_flags=sampled)
        about: Attributes = {
            "gen_ai.operation.name": "invoke_workflow",
            "gen_ai.workflow.name": plan.get("protocol", ""),
            "gen_ai.conversation.id": run,
            "council.run": run,
            "council.task": plan.get("task", ""),
        }
        if self.content:
            about["council.question"] = redact_text(str(plan.get("question", "")))
        around = trace.get_current_span().get_span_context()  # of the program that uses the library
        return self._start(
            f"invoke_workflow {plan.get('protocol', '')}".strip(),
            f"part {part}" if part else "run",
            time.time(),
            about,
            parent=NonRecordingSpan(root) if part else None,
            links=[Link(around)] if around.is_valid else [],
        )

    def end_run(self, event: ev.Closed, at: float) -> None:
        why = event.stopped or event.status
        for key, n in list(self.calls):
            self.end_call(key, n, at, fault=why)
        for phase in reversed(list(self.phases)):
            self.phases.pop(phase).end(int(at * NANOS))
        self.run_span.set_attributes({"council.status": event.status, "council.cost.usd": round(self.usd, 9)})
        if event.status != "complete":
            self.run_span.set_attribute("error.type", why)
            self.run_span.set_status(Status(StatusCode.ERROR, why))
        self.run_span.end(int(at * NANOS))

    @property
    def _plan(self) -> PlanObject:
        first = next((entry.event for entry in self.record.entries if isinstance(entry.event, ev.Convened)), None)
        return read_plan(first.plan if first else {})

    @property
    def _part(self) -> int:
        """How often the run was resumed."""
        return sum(isinstance(entry.event, ev.Resumed) for entry in self.record.entries)

    def _start(
        self,
        name: str,
        what: str,
        at: float,
        about: Attributes,
        *,
        parent: Span | None,
        kind: SpanKind = SpanKind.INTERNAL,
        links: Sequence[Link] = (),
    ) -> Span:
        ids, run = self.ids.next, self.record.run
        ids.trace_id, ids.span_id = make_trace_id(run), make_span_id(run, what)
        try:
            context = trace.set_span_in_context(parent, Context()) if parent else Context()
            return self.tracer.start_span(name, context, kind, about, links, int(at * NANOS), record_exception=False)
        finally:
            ids.trace_id = ids.span_id = 0

    # Phases

    def phase_span(self, phase: str, at: float) -> Span:
        """Return the span of a phase. One that an earlier process began has another span in this one."""
        if not phase:
            return self.run_span
        if phase not in self.phases:
            parent = self.phase_span(phase.rpartition("/")[0], at)
            about: Attributes = {"council.run": self.record.run, "council.phase": phase}
            self.phases[phase] = self._start(f"phase {phase}", f"phase {phase} {self._part}", at, about, parent=parent)
        return self.phases[phase]

    # Requests

    def start_call(self, event: ev.Attempted, at: float) -> None:
        asked = self.asked.get(event.key)
        phase = asked.phase if asked else event.key.rpartition("/")[0]
        kind, model = split_member(event.member)
        operation = "invoke_agent" if kind == "cli" else "chat"
        about: Attributes = {
            "gen_ai.operation.name": operation,
            "gen_ai.provider.name": PROVIDER_NAMES.get(kind, kind),
            "gen_ai.request.model": model or kind,
            "gen_ai.agent.name": event.seat,
            "gen_ai.conversation.id": self.record.run,
            "gen_ai.output.type": "json" if asked and asked.schema_name else "text",
            "council.run": self.record.run,
            "council.phase": phase,
            "council.seat": event.seat,
            "council.attempt": event.n,
        }
        if self.content and asked:
            about |= _describe_messages(asked.messages)
        span = self._start(
            f"{operation} {model or kind}",
            f"call {event.key} {event.n}",
            at,
            about,
            parent=self.phase_span(phase, at),
            kind=SpanKind.CLIENT,
        )
        self.calls[event.key, event.n] = span, at

    def end_call(
        self, key: str, n: int, at: float, fault: str = "", detail: str = "", first_text: float | None = None
    ) -> None:
        if not (known := self.calls.pop((key, n), None)):
            return
        span, started = known
        for attempt in self.record.attempts.get(key, []):
            if attempt.n == n and attempt.result:
                span.set_attributes(_describe_result(attempt.result, self.content))
        if first_text and first_text > started:
            span.set_attribute("gen_ai.response.time_to_first_chunk", first_text - started)
        if fault:
            span.set_attribute("error.type", fault)
            span.set_status(Status(StatusCode.ERROR, detail if self.content else fault))
        span.end(int(at * NANOS))

    def end_step(self, key: str, at: float, fault: str = "", detail: str = "", first_text: float | None = None) -> None:
        """End the calls of a step that are still open."""
        self.asked.pop(key, None)
        for n in [n for other, n in self.calls if other == key]:
            self.end_call(key, n, at, fault, detail, first_text)


def _describe_result(result: AttemptResult, content: bool) -> Attributes:
    """Return the attributes of a response: tokens, model, id and finish reason."""
    about: Attributes = {}
    if "fault" in result:
        return about
    usage = result.get("usage") or {}
    for name, attribute in USAGE_ATTRIBUTES.items():
        if usage.get(name) or (name in usage and name in ("in", "out")):
            about[f"gen_ai.usage.{attribute}"] = usage[name]
    if model := _clean_name(result.get("model")):
        about["gen_ai.response.model"] = model
    if finish := result.get("finish"):
        about["gen_ai.response.finish_reasons"] = [finish]
    if id_ := _clean_name(result.get("id")):
        about["gen_ai.response.id"] = id_
    if content and (text := result.get("text")):
        said = {
            "role": "assistant",
            "parts": [{"type": "text", "content": redact_text(text)}],
            "finish_reason": finish or "stop",
        }
        about["gen_ai.output.messages"] = json.dumps([said], ensure_ascii=False)
    return about


def _clean_name(value: Any) -> str:
    """Return a name that an endpoint reported, with secrets masked; "" if it is a text."""
    return redact_text(value) if isinstance(value, str) and NAME.fullmatch(value) else ""


def _describe_messages(messages: Sequence[Message]) -> Attributes:
    parts = [(one["role"], {"type": "text", "content": one["content"]}) for one in messages]
    system = [part for role, part in parts if role == "system"]
    rest = [{"role": role, "parts": [part]} for role, part in parts if role != "system"]
    return {
        "gen_ai.system_instructions": json.dumps(system, ensure_ascii=False),
        "gen_ai.input.messages": json.dumps(rest, ensure_ascii=False),
    }
