"""Spans, logs, events and errors of runs with planted secrets: no secret and no key anywhere, and no text without
consent.
"""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest

from tests.acceptance.helpers import Terminal, Workspace
from tests.fake_provider import Reply, Seen
from tests.packet.fake_secrets import SECRETS, some
from tests.runs.test_telemetry import Collector, forget_exporter
from tests.runs.test_telemetry import collector as collector
from tests.trusted_project import trust_project, write_user_file

Json = dict[str, Any]
KEY = some("abcdefghijkmnpqrstuvwxyz23456789", 40, "key of the endpoint")  # no known shape
TOPIC = "zanzibar-archive-topic"
ANSWERED = "quokka-answer-words"
CHUNK: Json = {"object": "chat.completion.chunk", "created": 1}


@pytest.fixture
def planted(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """A council whose endpoint repeats secrets, its key and the prompt in every field of its answers and errors."""
    monkeypatch.setenv("SIM_KEY", KEY)
    workspace.configure()
    config = workspace.folder / "council.toml"
    config.write_text(config.read_text().replace('wire = "openai"', 'wire = "openai"\napi_key_env = "SIM_KEY"'))
    trust_project(workspace.folder)
    return workspace


def repeat_in_fields(text: str, secret: str) -> Reply:
    """Return an answer that has a secret as the name of its model and as its id."""
    about = CHUNK | {"id": secret, "model": secret}
    events = [
        about | {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": None}]},
        about | {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
    ]
    return Reply(raw="".join(f"data: {json.dumps(event)}\n\n" for event in events).encode() + b"data: [DONE]\n\n")


def find_leaks(texts: dict[str, str], *, secrets: bool = True, content: bool = True) -> list[tuple[str, str]]:
    """Return the places with a secret or a key, and with text of the question or of an answer."""
    wanted = {name: secret for name, (_, secret) in SECRETS.items()} if secrets else {}
    wanted |= {"the key": KEY} | ({"question": TOPIC, "answer": ANSWERED} if content else {})
    return [(place, name) for place, text in texts.items() for name, value in wanted.items() if value in text]


def spans_of(collector: Collector) -> str:
    forget_exporter()
    return "\n".join(body.decode("utf-8", "replace") for body in collector.bodies)


KINDS = sorted(SECRETS)


@pytest.mark.behaviour("otel-no-secrets", "otel-no-content")
@pytest.mark.parametrize("kinds", [KINDS[n::4] for n in range(4)], ids=lambda kinds: kinds[0])
def test_spans_logs_and_events_have_no_secret_and_no_text(
    planted: Workspace, council: Terminal, collector: Collector, caplog: pytest.LogCaptureFixture, kinds: list[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    texts = "\n".join(SECRETS[kind][0] for kind in kinds)
    (planted.folder / "material.txt").write_text(f"{TOPIC}\n{texts}\n")

    def echo(seen: Seen) -> Reply:
        return Reply(status=400, error={"error": {"message": f"{texts} {KEY} {seen.prompt}", "code": KEY}})

    planted.answers.instead |= {
        "alpha": repeat_in_fields(f"{ANSWERED}\n{texts}", SECRETS["github"][1]), "beta": echo, "gamma": repeat_in_fields(ANSWERED, KEY),
        "chair": repeat_in_fields(f"{ANSWERED} again", f"{TOPIC} {ANSWERED}"),
    }  # fmt: skip
    done = council("--jsonl", "--redact", "--protocol", "triad", f"What about {TOPIC} in material.txt?")
    assert "beta" in done.out and len(planted.provider.log) > 3
    spans = spans_of(collector)
    assert "gen_ai.request.model" in spans and find_leaks({"spans": spans}) == []
    reports = {path.name: path.read_text() for path in planted.reports()}
    stored = "\n".join(line for line in done.out.splitlines() if json.loads(line)["type"] != "delta")  # the live text
    shown = {"events": stored, "errors": done.err, "log": caplog.text, **reports}
    assert find_leaks(shown, content=False) == []
    assert find_leaks({"errors": done.err, "log": caplog.text}) == []


@pytest.mark.behaviour("otel-no-secrets", "otel-content")
def test_texts_that_the_user_sends_have_no_secret(planted: Workspace, council: Terminal, collector: Collector) -> None:
    write_user_file("[telemetry]\ncontent = true\n")
    texts = "\n".join(text for text, _ in SECRETS.values())
    planted.answers.instead["alpha"] = Reply(text=f"{ANSWERED}\n{texts}")
    planted.answers.instead["beta"] = Reply(status=400, error={"error": {"message": f"{texts} {KEY}"}})
    council("--json", "--protocol", "triad", f"What about {TOPIC}?")
    spans = spans_of(collector)
    assert TOPIC in spans and ANSWERED in spans
    assert find_leaks({"spans": spans}, content=False) == []
