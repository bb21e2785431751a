"""Chat completions under /v1: a council as a model, with raw HTTP and with the openai SDK."""

from __future__ import annotations

import asyncio
import base64
import http.client
import json
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import openai
import pytest

from council.render.tail import format_tail
from council.runs.tokens import add_token
from tests.acceptance.helpers import EVERYONE, QUESTION, SEATS, FixedAnswers, mark, wait_until
from tests.acceptance.panel.fake_clerk import PanelAnswers, write_answer
from tests.acceptance.refine.fake_authors import Authors, make_error, write_text
from tests.doors.web.server import Json, WebServer, environment
from tests.fake_provider import FakeProvider, Reply
from tests.trusted_project import trust_project

ANSWER = f"The synthesise of chair: {mark('chair', 'synthesise')}."
COMPLETIONS = "/v1/chat/completions"


@dataclass
class Streamed:
    """A stream that was read to its end."""

    chunks: list[Json] = field(default_factory=list)
    error: Json | None = None
    is_done: bool = False

    def add(self, line: bytes) -> None:
        text = line.decode().strip().removeprefix("data: ")
        if text == "[DONE]":
            self.is_done = True
        elif text.startswith("{"):
            chunk = json.loads(text)
            if "error" in chunk:
                self.error = chunk["error"]
            else:
                self.chunks.append(chunk)

    def texts(self, name: str) -> list[str]:
        deltas = [choice["delta"] for chunk in self.chunks for choice in chunk["choices"]]
        return [delta[name] for delta in deltas if delta.get(name)]

    @property
    def content(self) -> str:
        return "".join(self.texts("content"))

    @property
    def reasoning(self) -> str:
        return "".join(self.texts("reasoning_content"))

    @property
    def kinds(self) -> list[str]:
        """The kinds of text in the order in which they came."""
        names = [
            name
            for chunk in self.chunks
            for choice in chunk["choices"]
            for name, text in choice["delta"].items()
            if text
        ]
        return [name for name in names if name != "role"]


class ChatSite(WebServer):
    """A server whose seats use a fake provider."""

    def __init__(self, place: Path, provider: FakeProvider) -> None:
        self.provider, self.answers = provider, FixedAnswers()
        folder, env = place / "project", environment(place)
        env["PATH"] = f"{place / 'bin'}:{env['PATH']}"
        folder.mkdir()
        (folder / "core.py").write_text("def core_of_the_project(): ...\n")
        seats = "".join(f'[seats.{seat}]\nmodel = "sim:{seat}"\nfallback = []\n' for seat in SEATS)
        (folder / "council.toml").write_text(
            f'[providers.sim]\nwire = "openai"\nbase_url = "{provider.base_url}"\nbackoff = 0.01\n'
            f'[models]\ndefault = "sim:alpha"\nfast = "sim:small"\n{seats}[chair]\nmodel = "sim:chair"\nfallback = ["cli:claude"]\n'
            '[prices."sim:*"]\ninput = 1.0\noutput = 2.0\n[members."sim:*"]\nimages = true\n[members."sim:gamma"]\nimages = false\n[members."sim:chair"]\nimages = false\n'
        )  # fmt: skip
        trust_project(folder, **env)
        super().__init__(folder, env)

    def reset(self) -> None:
        self.provider.forget()
        self.answers = self.provider.answer = FixedAnswers()

    def complete(self, *texts: str, status: int = 200, headers: dict[str, str] | None = None, **body: Any) -> Json:
        response = self.ask("POST", COMPLETIONS, make_body(*texts, **body), headers=headers)
        assert response.status == status, response.body
        return dict(response.json)

    def stream(self, *texts: str, headers: dict[str, str] | None = None, **body: Any) -> Streamed:
        """Read a stream to its end."""
        streamed = Streamed()
        with self.open_stream(*texts, headers=headers, **body) as response:
            for line in response:
                streamed.add(line)
        return streamed

    def open_stream(self, *texts: str, headers: dict[str, str] | None = None, **body: Any) -> Any:
        return self.open_request("POST", COMPLETIONS, make_body(*texts, stream=True, **body), headers=headers)

    def report(self, run: str) -> Json:
        return dict(self.get(f"/api/runs/{run}")["report"])

    def runs(self) -> list[str]:
        return [row["run"] for row in self.get("/api/runs?limit=500")["runs"]]


def make_body(*texts: str, **body: Any) -> Json:
    """Return a request. The texts are messages of user and assistant in turn."""
    roles = ("user", "assistant")
    messages = [{"role": roles[n % 2], "content": text} for n, text in enumerate(texts or (QUESTION,))]
    return {"model": "council/collaborative", "messages": messages} | body


@pytest.fixture(scope="module")
def chat_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChatSite]:
    with FakeProvider() as provider:
        served = ChatSite(tmp_path_factory.mktemp("chat"), provider)
        yield served
        provider.forget()
        served.close()


@pytest.fixture
def site(chat_server: ChatSite) -> ChatSite:
    chat_server.reset()
    return chat_server


def read_content(response: http.client.HTTPResponse, streamed: Streamed) -> None:
    """Read until there is content."""
    for line in response:
        streamed.add(line)
        if streamed.content:
            return


# Requests

BAD_REQUESTS: list[tuple[Json, int, str | None, str]] = [
    ({"n": 2}, 400, "n", 'n "2"'),
    ({"tools": [{}], "tool_choice": "required"}, 400, "tool_choice", "requires a tool"),
    ({"tool_choice": {"type": "function", "function": {"name": "f"}}}, 400, "tool_choice", "requires a tool"),
    ({"response_format": {"type": "xml"}}, 400, "response_format", "xml"),
    ({"model": "council/nonsense"}, 404, "model", "council/nonsense"),
    ({"model": "council/roster:/etc/passwd"}, 404, "model", "no model"),
    ({"messages": []}, 400, "messages", "at least 1"),
    ({"messages": [{"role": "user", "content": " "}]}, 400, "messages", "no text"),
    ({"messages": [{"role": "assistant", "content": "Yes."}]}, 400, "messages", '"assistant"'),
    ({"messages": [{"role": "robot", "content": "Yes."}]}, 400, "messages.0.role", "robot"),
    ({"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "http://x/y.png"}}]}]}, 400, "messages", "is not fetched"),
    ({"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,%%"}}]}]}, 400, "attachments", "not base64"),
    ({"messages": [{"role": "user", "content": [{"type": "input_audio", "input_audio": {}}]}]}, 400, "messages", '"input_audio"'),
    ({"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/png,x"}}]}]}, 400, "attachments", "not base64"),
    ({"messages": [{"role": "user", "content": [{"type": "file", "file": {"file_id": "f-1"}}]}]}, 400, "messages", "file without its content is not fetched"),
    ({"messages": [{"role": "user", "content": "Validate the plan"}], "model": "council"}, 400, "messages", "write the text under review below the first line"),
    ({"messages": "hello"}, 400, "messages", "list"),
]  # fmt: skip


@pytest.mark.behaviour("50-v1-errors", "50-v1-models")
def test_models_are_listed_and_bad_requests_get_errors_in_the_format_of_openai(site: ChatSite) -> None:
    before = site.runs()
    listed = site.get("/v1/models")
    names = [model["id"] for model in listed["data"]]
    assert {"council", "council/collaborative", "council/adversarial", "council/judges", "council/roster:executives", "council/title"} <= set(names)  # fmt: skip
    assert site.get("/v1/models/council/adversarial") == next(one for one in listed["data"] if one["id"] == "council/adversarial")  # fmt: skip
    for change, status, param, said in BAD_REQUESTS:
        error = site.complete(status=status, **change)["error"]
        assert set(error) == {"message", "type", "param", "code"}
        assert (error["param"], said in error["message"], error["type"]) == (param, True, "invalid_request_error"), (
            error
        )
        assert "\n" not in error["message"]
    answers = [
        site.ask("POST", COMPLETIONS, "{"), site.ask("GET", "/v1/embeddings"), site.ask("GET", "/v1/models/gpt-4"),
        site.ask("GET", "/v1/models", token=False), site.ask("GET", "/v1/models", headers={"Host": "evil.example"}),
    ]  # fmt: skip
    assert [(one.status, one.json["error"]["code"]) for one in answers] == [
        (400, "invalid_json"), (404, "unknown_path"), (404, "model_not_found"), (401, "unauthorized"), (400, "wrong_host"),
    ]  # fmt: skip
    assert (site.runs(), site.provider.log) == (before, [])


@pytest.mark.behaviour("50-v1-stream", "50-v1-usage", "50-v1-context", "50-v1-no-files")
def test_reasoning_comes_before_the_chairs_text_and_the_last_chunk_has_usage_and_trust(site: ChatSite) -> None:
    gate = site.provider.make_gate()
    site.answers.instead["chair"] = Reply(text=ANSWER, pause=gate)
    messages = [
        {"role": "system", "content": "Answer as a pirate. mark-system-mark"},
        {"role": "user", "content": "What is cold storage? mark-earlier-mark"},
        {"role": "assistant", "content": "Cheap and slow. mark-answered-mark"},
        {
            "role": "user",
            "content": [{"type": "text", "text": QUESTION}, {"type": "text", "text": "See core.py and src/"}],
        },
    ]
    streamed = Streamed()
    with site.open_stream(messages=messages, tools=[{"type": "function"}], tool_choice="auto") as response:
        run = str(response.getheader("x-council-run"))
        read_content(response, streamed)
        assert site.get(f"/api/runs/{run}")["running"]  # the chair still writes
        assert ANSWER.startswith(streamed.content) and streamed.content != ANSWER
        gate.release()
        for line in response:
            streamed.add(line)
    tail = format_tail(site.report(run)["tail"])
    assert (streamed.content, streamed.is_done, streamed.error) == (f"{ANSWER}\n\n{tail}", True, None)
    kinds = streamed.kinds
    assert kinds.index("content") == kinds.count("reasoning_content") > 6
    assert all(mark(seat, phase) in streamed.reasoning for seat in SEATS for phase in ("draft", "improve"))
    assert mark("chair", "synthesise") not in streamed.reasoning
    *others, last = streamed.chunks
    assert not [chunk for chunk in others if "usage" in chunk or "council" in chunk]
    report = site.report(run)
    assert last["choices"][0]["finish_reason"] == "stop"
    assert last["council"] == {name: report[name] for name in ("run", "status", "trust", "cost", "degraded", "tail")} | {"trust": last["council"]["trust"]}  # fmt: skip
    assert last["council"]["trust"]["level"] == report["trust"]["level"]
    usage, tokens, bill = last["usage"], report["tokens"], site.provider.bill
    assert (usage["prompt_tokens"], usage["completion_tokens"]) == (tokens["in"], tokens["out"]) == (bill["in"], bill["out"])  # fmt: skip
    assert report["cost"]["usd"] > 0
    prompts = [seen.prompt for seen in site.provider.log]
    assert len(prompts) == 7
    for prompt in prompts:
        assert "See core.py and src/" in prompt and "core_of_the_project" not in prompt
        question, _, packet = prompt.partition("<<<Packet")
        assert "mark-system-mark" not in question
        assert all(f"mark-{name}-mark" in packet for name in ("system", "earlier", "answered"))
    merged = 'Take the middle way.\n\n---\n\n```council-notes\n{"agreed": []}\n```'
    site.answers.instead["chair"] = Reply(text=merged)
    listed = site.stream("And now?", stream_options={"include_usage": True}, model="council/ranking")
    assert listed.content.count("Take the middle way.") == 1 and "council-notes" not in listed.content
    assert [(chunk["choices"], "usage" in chunk) for chunk in listed.chunks[-2:]][1] == ([], True)
    assert (listed.chunks[-2]["choices"][0]["finish_reason"], "usage" in listed.chunks[-2]) == ("stop", False)


@pytest.mark.behaviour("50-v1-missing", "50-v1-broken-chair", "50-v1-idempotency")
def test_missing_seats_are_named_first_and_a_chair_that_fails_midway_ends_the_stream(site: ChatSite) -> None:
    gate = site.provider.make_gate()
    site.answers.instead |= {"gamma": Reply(refuse=True), "chair": [Reply(text=ANSWER, pause=gate, cut=1200), Reply(text=ANSWER)]}  # fmt: skip
    streamed, key = Streamed(), {"Idempotency-Key": "midway"}
    with site.open_stream(headers=key) as response:
        read_content(response, streamed)
        gate.release()
        for line in response:
            streamed.add(line)
    first = streamed.content.splitlines()[0]
    assert first.startswith("> gamma did not answer (") and "declined to answer" in first
    assert "What follows is from two of three seats" in first
    assert streamed.error and streamed.error["code"] == "answer_broke_off"
    assert "Idempotency-Key" in streamed.error["message"] and not streamed.is_done
    again = site.complete(headers=key)
    whole = again["choices"][0]["message"]["content"]
    assert whole.splitlines()[0] == first and f"\n\n{ANSWER}\n\n---\n\nTrust: " in whole
    assert {row["seat"] for row in again["council"]["degraded"] if row["state"] == "refused"} == {"gamma"}
    gate = site.provider.make_gate()
    site.answers.instead = {"chair": Reply(text=ANSWER, pause=gate)}
    streamed = Streamed()
    with site.open_stream() as response:
        read_content(response, streamed)
        run = response.getheader("x-council-run")
        site.post(f"/api/runs/{run}/cancel", {}, 202)
        for line in response:
            streamed.add(line)
    assert streamed.error and streamed.error["code"] == "run_stopped_midway"
    assert "cancelled" in streamed.error["message"] and not streamed.is_done
    gate.release()
    other = site.complete("Another question?", headers=key, status=422)
    assert other["error"]["code"] == "idempotency_key_reused"
    site.answers.instead = {"chair": Reply(refuse=True)}
    digest = site.complete(model="council/triad")
    lines = digest["choices"][0]["message"]["content"].splitlines()
    assert lines[0].startswith("> INCOMPLETE: no chair was available")
    assert digest["council"]["status"] == "incomplete"
    site.answers.instead = dict.fromkeys(SEATS, Reply(status=401))
    refused = site.ask("POST", COMPLETIONS, make_body(model="council/triad"))
    assert (refused.status, refused.json["error"]["code"]) == (502, "council_failed")
    assert refused.headers["x-should-retry"] == "false"
    assert site.stream(model="council/triad").error["code"] == "council_failed"  # type: ignore[index]


@pytest.mark.behaviour("50-v1-typed", "50-v1-models", "50-v1-title")
def test_typed_answers_are_content_after_acceptance_and_titles_take_one_cheap_call(site: ChatSite) -> None:
    site.answers.instead["chair/verdict"] = [Reply(text='{"answer": "half')]
    streamed = site.stream(model="council/adversarial")
    assert "half" not in streamed.content and "half" not in streamed.reasoning
    assert streamed.content.startswith(f"The answer: {mark('chair', 'verdict')}.")
    assert len(streamed.texts("content")) == 1
    assert mark("beta", "attack") in streamed.reasoning and "schema" in streamed.reasoning
    site.reset()
    site.provider.answer = None
    reviewed = site.complete("Review this function:\n\ndef f():\n    return 1 / 0", model="council")
    packet = site.provider.log[0].prompt.partition("<<<Packet")[2]
    assert "attached/message.md" in packet and "1 / 0" in packet
    verdict = reviewed["choices"][0]["message"]["content"]
    assert "**WARN · 2 of 2 judges" in verdict and "\n#### critical " in verdict
    assert verdict.startswith("> judge-1 said PASS and holds a critical finding")
    site.provider.forget()
    picture = {"type": "image_url", "image_url": {"url": encode_image_url()}}  # the fast model does not see it
    parts = [picture, {"type": "text", "text": "Write a title with 3 words."}]
    title = site.complete(model="council/title", messages=[{"role": "user", "content": parts}])
    assert [seen.model for seen in site.provider.log] == ["small"]
    message = title["choices"][0]["message"]
    assert message["content"].startswith("small says") and "reasoning_content" not in message
    unresearched = site.complete("Which tea is best?", model="council/general")
    assert "no research was made" in unresearched["choices"][0]["message"]["content"]


def take_authors(site: ChatSite, **how: Any) -> Authors:
    answers = Authors(**how)
    site.answers = site.provider.answer = answers
    return answers


@pytest.mark.behaviour("50-v1-refine")
@pytest.mark.parametrize(("model", "more"), [("council/refine", {}), ("council/collaborative", {"check": True})])
def test_a_corrected_text_is_the_content_once_with_and_without_streaming(
    site: ChatSite, model: str, more: Json
) -> None:
    answers = take_authors(site)
    euros = "5,000" if model == "council/refine" else "4,000"
    error = make_error("MAJOR", f"It costs {euros} euros in all", "The train is not counted.")
    answers.errors["check/beta"] = [error]
    before = write_text("chair", "synthesise", euros)
    answer = before.replace(f"{euros} euros in all", f"6,000 euros in all {mark('chair', 'fix')}")
    streamed = site.stream(model=model, **more)
    whole = site.complete(model=model, **more)["choices"][0]["message"]["content"]
    for content in (streamed.content, whole):
        assert content.startswith(f"{answer}\n\n---\n\nOutcome: ")
        assert content.count("It costs") == 1
        assert "checked by" in content
    assert (len(streamed.texts("content")), streamed.error, streamed.is_done) == (1, None, True)
    assert "The train is not counted." in streamed.reasoning


@pytest.mark.behaviour("50-v1-panel")
def test_the_digest_of_a_panel_is_the_content_once_with_and_without_streaming(site: ChatSite) -> None:
    site.answers = site.provider.answer = PanelAnswers()
    streamed = site.stream(model="council/panel")
    whole = site.complete(model="council/panel")["choices"][0]["message"]["content"]
    for content in (streamed.content, whole):
        assert content.startswith("## Where they agree\n\n- Take the train.")
        assert [content.count(write_answer(seat)) for seat in ("alpha", "beta", "gamma")] == [1, 1, 1]
        assert "\nTrust: MEDIUM" in content
    assert (len(streamed.texts("content")), streamed.error, streamed.is_done) == (1, None, True)


@pytest.mark.behaviour("50-v1-solo")
def test_the_last_rewrite_of_one_member_is_content_while_it_is_written(site: ChatSite) -> None:
    answers = take_authors(site, is_solo=True)
    gate = site.provider.make_gate()
    answer = write_text("alpha", "rewrite-again", "4,000")
    answers.instead["alpha/rewrite-again"] = Reply(
        text=f"Here is the final answer:\n\n{answer}", pause=gate, pause_after=9
    )
    streamed = Streamed()
    with site.open_stream(model="council/solo") as response:
        run = str(response.getheader("x-council-run"))
        read_content(response, streamed)
        assert site.get(f"/api/runs/{run}")["running"]
        assert answer.startswith(streamed.content)
        gate.release()
        for line in response:
            streamed.add(line)
    tail = format_tail(site.report(run)["tail"])
    assert (streamed.content, streamed.is_done, streamed.error) == (f"{answer}\n\n{tail}", True, None)
    assert all(mark("alpha", phase) in streamed.reasoning for phase in ("draft", "rewrite"))
    assert mark("alpha", "rewrite-again") not in streamed.reasoning
    answers.errors["attack-again/alpha"] = []  # the first rewrite is the answer
    early = site.stream(model="council/solo")
    assert early.content.startswith(f"{write_text('alpha', 'rewrite', '4,000')}\n\n---\n\n")
    assert (early.content.count("It costs"), early.is_done) == (1, True)


@pytest.mark.behaviour("50-v1-disconnect", "50-v1-idempotency", "50-v1-retry")
def test_a_run_outlives_its_client_and_retries_join_it(site: ChatSite) -> None:
    gate, key = site.provider.hold(model="chair"), {"Idempotency-Key": "gone"}
    with site.open_stream(model="council/triad", headers=key) as response:
        run = response.getheader("x-council-run")
        gate.wait()
    with site.open_stream(model="council/triad") as response:
        joined = response.getheader("x-council-run")
        gate.wait(count=2)
    gate.release()
    assert site.complete(model="council/triad", headers=key)["council"]["run"] == run
    site.post(f"/api/runs/{run}/outcome", {"label": "wrong"})
    repeated = site.complete(model="council/triad", headers=key)
    assert repeated["council"]["decision_outcome"]["label"] == "wrong"
    assert repeated["council"]["trust"]["because"][0] == "the answer turned out wrong"
    assert "Trust: MEDIUM — the answer turned out wrong" in repeated["choices"][0]["message"]["content"]
    swapped = {"messages": make_body()["messages"], "model": "council/triad"}
    retried = site.ask("POST", COMPLETIONS, swapped, headers={"x-stainless-retry-count": "1"})
    assert retried.json["council"]["run"] == joined
    before = len(site.runs())
    new = [site.complete(model="council/triad", headers={"x-stainless-retry-count": "0"}), site.complete("Another?", model="council/triad", headers={"x-stainless-retry-count": "2"}, tail=False)]  # fmt: skip
    assert len(site.runs()) == before + 2 and not {one["council"]["run"] for one in new} & {run, joined}
    merged = f"The merge of chair: {mark('chair', 'merge')}."
    assert new[0]["choices"][0]["message"]["content"].startswith(f"{merged}\n\n---\n\nTrust: MEDIUM")
    assert new[1]["choices"][0]["message"]["content"] == merged
    stopped = site.provider.hold(model="chair")
    with site.open_stream(model="council/triad", cancel_on_disconnect=True) as response:
        run = response.getheader("x-council-run")
        stopped.wait()
    wait_until(lambda: not site.get(f"/api/runs/{run}")["running"], "the run is cancelled")
    assert site.get(f"/api/runs/{run}")["minutes"]["stopped"] == "cancelled"


@pytest.mark.behaviour("50-v1-no-agents", "50-users-scope")
def test_no_request_starts_a_command_line_agent_and_a_chat_token_is_enough(site: ChatSite) -> None:
    async def make_token() -> str:
        return await add_token(site.app_state.store, "ann", "chat", None)

    token = asyncio.run_coroutine_threadsafe(make_token(), site.loop).result(30)
    mine = {"Authorization": f"Bearer {token}"}
    done = site.complete(model="council/triad", headers=mine)
    setup = site.get(f"/api/runs/{done['council']['run']}")["plan"]
    assert setup["chair"]["fallbacks"] == []  # of the file: cli:claude
    assert site.ask("GET", "/v1/models", headers=mine).status == 200
    config = site.folder / "council.toml"
    text = config.read_text()
    program = site.folder.parent / "bin" / "claude"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    for wanted in (text.replace('model = "sim:chair"', 'model = "cli:claude"'), text):
        config.write_text(wanted)
        trust_project(site.folder, **site.env)
        if wanted != text:
            error = site.complete(model="council/triad", status=400)["error"]["message"]
    assert 'chair uses "cli:claude"' in error


@pytest.mark.behaviour("50-v1-images")
def test_images_reach_the_seats_that_see_and_the_others_are_named(site: ChatSite) -> None:
    earlier = [{"type": "image_url", "image_url": {"url": encode_image_url()}}, {"type": "text", "text": "What is it?"}]
    plan = {
        "filename": "plan.md",
        "file_data": f"data:text/markdown;base64,{base64.b64encode(b'mark-plan-mark').decode()}",
    }
    messages = [
        {"role": "user", "content": earlier},
        {"role": "assistant", "content": "A dot."},
        {"role": "user", "content": [{"type": "text", "text": QUESTION}, {"type": "file", "file": plan}]},
    ]
    streamed = site.stream(model="council/triad", messages=messages)
    lines = [line for line in streamed.content.splitlines() if line.startswith("> ")]
    assert streamed.content.startswith("> gamma did not see attached/image-1.png")
    assert [line.split()[1] for line in lines] == ["gamma", "chair"] and streamed.content.startswith(
        "\n>\n".join(lines)
    )
    for seen in site.provider.log:
        assert ("image_url" in json.dumps(seen.body)) == (seen.model not in ("gamma", "chair"))
        assert "mark-plan-mark" in seen.prompt and "[attached/image-1.png]" in seen.prompt
    rows = streamed.chunks[-1]["council"]["degraded"]
    assert [row["seat"] for row in rows if row["state"] == "unseen"] == ["gamma", "chair"]


def encode_image_url() -> str:
    return f"data:image/png;base64,{base64.b64encode(encode_png()).decode()}"


def encode_png() -> bytes:
    """Return an image of one pixel."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        body = kind + content
        return struct.pack(">I", len(content)) + body + struct.pack(">I", zlib.crc32(body))

    header = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    pixels = zlib.compress(b"\0\xff\0\0")
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


# The official client


@pytest.mark.behaviour("50-v1-clients")
def test_the_openai_sdk_completes_councils(site: ChatSite) -> None:
    url, messages = f"http://{site.host}/v1", [{"role": "user", "content": QUESTION}]
    client = openai.OpenAI(base_url=url, api_key=site.token, timeout=60)
    request: Any = {"model": "council/collaborative", "messages": messages}
    whole = client.chat.completions.create(**request, extra_body={"tail": False})
    assert whole.choices[0].message.content == ANSWER
    assert whole.council["run"]  # type: ignore[attr-defined]
    kinds, last = list[str](), None
    for chunk in client.chat.completions.create(**request, stream=True):
        delta = chunk.choices[0].delta
        kinds += [name for name in ("reasoning_content", "content") if getattr(delta, name, None)]
        last = chunk
    assert kinds == sorted(kinds, reverse=True) and set(kinds) == {"reasoning_content", "content"}
    assert last and last.usage
    assert last.usage.total_tokens == whole.usage.total_tokens  # type: ignore[union-attr]
    assert {model.id for model in client.models.list()} >= {"council", "council/title"}
    assert client.models.retrieve("council/roster:executives").id == "council/roster:executives"
    with pytest.raises(openai.NotFoundError, match="no model"):
        client.chat.completions.create(**request | {"model": "gpt-4"})
    with pytest.raises(openai.BadRequestError) as refused:
        client.chat.completions.create(**request, n=3)
    assert refused.value.param == "n"
    with pytest.raises(openai.AuthenticationError):
        client.with_options(api_key="wrong").models.list()
    asyncio.run(check_async_client(url, site.token, request))
    site.answers.instead = dict.fromkeys(EVERYONE, Reply(status=400))
    with pytest.raises(openai.APIError, match="no seat answered"):
        list(client.chat.completions.create(**request, stream=True))
    with pytest.raises(openai.InternalServerError, match="no seat answered"):
        client.chat.completions.create(**request)


async def check_async_client(url: str, token: str, request: Any) -> None:
    async with openai.AsyncOpenAI(base_url=url, api_key=token, timeout=60) as client:
        whole = await client.chat.completions.create(**request, extra_body={"tail": False})
        assert whole.choices[0].message.content == ANSWER
        stream = await client.chat.completions.create(**request, stream=True, stream_options={"include_usage": True})
        chunks = [chunk async for chunk in stream]
        assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices).startswith(ANSWER)
        assert chunks[-1].usage and not chunks[-1].choices
