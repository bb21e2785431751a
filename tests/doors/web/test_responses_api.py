"""The Responses API under /v1, with raw HTTP and with the openai SDK."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openai
import pydantic
import pytest

from council.runs.tokens import add_token
from tests.acceptance.helpers import EVERYONE, QUESTION, SEATS, mark, wait_until
from tests.doors.web.server import Json
from tests.doors.web.test_chat import ANSWER, ChatSite, encode_image_url
from tests.doors.web.test_response_format import DECISION, FORMAT_MARK, GOOD, answer_with
from tests.fake_provider import FakeProvider
from tests.fakes.replies import Reply

RESPONSES = "/v1/responses"
FORMAT: Json = {"type": "json_schema", "name": "decision", "schema": DECISION, "strict": True}


@pytest.fixture(scope="module")
def responses_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChatSite]:
    with FakeProvider() as provider:
        served = ChatSite(tmp_path_factory.mktemp("responses"), provider)
        yield served
        provider.forget()
        served.close()


@pytest.fixture
def site(responses_server: ChatSite) -> ChatSite:
    responses_server.reset()
    return responses_server


def make_request(**body: Any) -> Json:
    return {"model": "council/triad", "input": QUESTION} | body


def create(site: ChatSite, status: int = 200, headers: Json | None = None, **body: Any) -> Json:
    response = site.ask("POST", RESPONSES, make_request(**body), headers=headers)
    assert response.status == status, response.body
    return dict(response.json)


def stream(site: ChatSite, **body: Any) -> list[Json]:
    """Return the events of a stream, whose names are those of their data."""
    events: list[Json] = []
    with site.open_request("POST", RESPONSES, make_request(stream=True, **body)) as response:
        assert response.status == 200
        name = ""
        for line in response:
            text = line.decode().strip()
            if text.startswith("event: "):
                name = text[7:]
            elif text.startswith("data: "):
                events.append(json.loads(text[6:]))
                assert events[-1]["type"] == name
    return events


def text_of(response: Json) -> str:
    (message,) = [item for item in response["output"] if item["type"] == "message"]
    return str(message["content"][0].get("text"))


def add_user(site: ChatSite, name: str, scope: str = "chat") -> Json:
    async def make_token() -> str:
        return await add_token(site.app_state.store, name, scope, None)

    token = asyncio.run_coroutine_threadsafe(make_token(), site.loop).result(30)
    return {"Authorization": f"Bearer {token}"}


MERGED = f"The merge of chair: {mark('chair', 'merge')}."


@pytest.mark.behaviour("50-v1-responses")
def test_a_response_has_the_answer_and_can_be_fetched_again(site: ChatSite) -> None:
    done = create(
        site,
        instructions="Be brief. mark-system-mark",
        metadata={"topic": "storage"},
        max_output_tokens=900,
        store=False,
    )
    assert (done["object"], done["status"], done["error"]) == ("response", "completed", None)
    assert [item["type"] for item in done["output"]] == ["reasoning", "message"]
    assert text_of(done).startswith(f"{MERGED}\n\n---\n\nTrust: ")
    assert mark("beta", "draft") in done["output"][0]["summary"][0]["text"]
    assert (done["metadata"], done["max_output_tokens"], done["store"]) == ({"topic": "storage"}, 900, True)
    assert done["instructions"] == "Be brief. mark-system-mark"
    assert all("mark-system-mark" in seen.prompt.partition("<<<Packet")[2] for seen in site.provider.log)
    report, bill = site.report(done["council"]["run"]), site.provider.bill
    assert done["id"] == f"resp_{report['run']}" and done["council"]["trust"]["level"] == report["trust"]["level"]
    assert (done["usage"]["input_tokens"], done["usage"]["output_tokens"]) == (bill["in"], bill["out"])
    assert site.get(f"{RESPONSES}/{done['id']}") == done
    plain = create(site, tail=False, input=[{"role": "user", "content": [{"type": "input_text", "text": QUESTION}]}])
    assert text_of(plain) == MERGED


@pytest.mark.behaviour("50-v1-responses-stream")
def test_a_stream_has_the_events_of_openai_in_order(site: ChatSite) -> None:
    events = stream(site, model="council/collaborative")
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    kinds = list(dict.fromkeys(event["type"] for event in events))
    assert kinds == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.reasoning_summary_part.added",
        "response.reasoning_summary_text.delta",
        "response.reasoning_summary_text.done",
        "response.reasoning_summary_part.done",
        "response.output_item.done",
        "response.content_part.added",
        "response.output_text.delta",
        "response.output_text.done",
        "response.content_part.done",
        "response.completed",
    ]
    text = "".join(event["delta"] for event in events if event["type"] == "response.output_text.delta")
    last = events[-1]["response"]
    assert text == text_of(last) and text.startswith(ANSWER)
    (done,) = [event for event in events if event["type"] == "response.output_text.done"]
    assert (done["text"], done["output_index"], done["item_id"]) == (text, 1, last["output"][1]["id"])
    assert events[0]["response"]["status"] == "in_progress" and events[0]["response"]["usage"] is None
    assert site.get(f"{RESPONSES}/{last['id']}")["output"][1] == last["output"][1]


@pytest.mark.behaviour("50-v1-responses-conversation")
def test_a_follow_up_has_the_earlier_question_answer_and_files(site: ChatSite) -> None:
    plan = f"data:text/markdown;base64,{base64.b64encode(b'mark-plan-mark').decode()}"
    parts = [
        {"type": "input_text", "text": "What is cold storage? mark-first-mark"},
        {"type": "input_image", "image_url": encode_image_url()},
        {"type": "input_file", "filename": "plan.md", "file_data": plan},
    ]
    first = create(site, input=[{"role": "user", "content": parts}], instructions="mark-old-mark")
    site.provider.forget()
    second = create(site, previous_response_id=first["id"], input="And its price? mark-second-mark")
    for seen in site.provider.log:
        question, _, packet = seen.prompt.partition("<<<Packet")
        assert "mark-second-mark" in question and "mark-first-mark" not in question
        assert "mark-first-mark" in packet and MERGED in packet and "mark-plan-mark" in packet
        assert "mark-old-mark" not in seen.prompt  # instructions are of one response
        assert ("image_url" in json.dumps(seen.body)) == (seen.model not in ("gamma", "chair"))
    assert second["previous_response_id"] == first["id"]
    plan_object = site.get(f"/api/runs/{second['council']['run']}")["plan"]
    assert plan_object["continues"] == first["council"]["run"] and plan_object["protocol"] == "triad"
    site.provider.forget()
    items = [{"role": "user", "content": "And now?"}, {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "mark-given-mark"}]}, {"type": "reasoning", "id": "rs_1", "summary": []}, {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"}, {"type": "function_call_output", "call_id": "c1", "output": [{"type": "input_text", "text": "mark-tool-mark"}]}, {"role": "user", "content": "Why?"}]  # fmt: skip
    create(site, previous_response_id=second["id"], input=items)
    for said in ("mark-first-mark", "mark-given-mark", "mark-tool-mark"):
        assert all(said in seen.prompt for seen in site.provider.log)
    error = create(site, 404, previous_response_id="resp_rnothing")["error"]
    assert (error["code"], error["param"]) == ("previous_response_not_found", "previous_response_id")


@pytest.mark.behaviour("50-v1-responses-background", "50-v1-responses-cancel")
def test_a_background_response_is_fetched_until_it_ends_and_can_be_cancelled(site: ChatSite) -> None:
    gate = site.provider.hold(model="chair")
    queued = create(site, background=True)
    assert (queued["status"], queued["output"], queued["background"]) == ("queued", [], True)
    path = f"{RESPONSES}/{queued['id']}"
    gate.wait()
    going = site.get(path)
    assert (going["status"], going["usage"], going["council"]) == ("in_progress", None, None)
    error = create(site, 409, previous_response_id=queued["id"])["error"]
    assert error["code"] == "run_conflict"
    gate.release()
    wait_until(lambda: site.get(path)["status"] == "completed", "the response is completed")
    assert text_of(site.get(path)).startswith(MERGED)
    assert site.post(f"{path}/cancel", {})["status"] == "completed"
    gate = site.provider.hold(model="chair")
    second = create(site, background=True)
    gate.wait()
    site.post(f"{RESPONSES}/{second['id']}/cancel", {})
    wait_until(lambda: site.get(f"{RESPONSES}/{second['id']}")["status"] == "cancelled", "it is cancelled")
    gate.release()
    digest = site.get(f"{RESPONSES}/{second['id']}")
    assert mark("alpha", "draft") in text_of(digest) and digest["council"]["status"] == "incomplete"


@pytest.mark.behaviour("50-v1-responses-format", "50-v1-format-failure")
def test_a_text_format_is_served_and_a_failure_keeps_the_run(site: ChatSite) -> None:
    answer_with(site)
    done = create(site, text={"format": FORMAT, "verbosity": "low"})
    assert json.loads(text_of(done)) == GOOD
    assert done["text"]["format"] == {name: FORMAT[name] for name in ("type", "name", "schema")}
    answer_with(site, "no", "no")
    failed = site.ask("POST", RESPONSES, make_request(text={"format": FORMAT}))
    assert (failed.status, failed.json["error"]["code"]) == (422, "response_format_failed")
    run = failed.headers["x-council-run"]
    stored = site.get(f"{RESPONSES}/resp_{run}")
    assert (stored["status"], stored["error"]["code"]) == ("failed", "response_format_failed")
    answer_with(site, Reply(refuse=True))
    events = stream(site, text={"format": {"type": "json_object"}})
    (refusal,) = [event for event in events if event["type"] == "response.refusal.done"]
    assert events[-1]["response"]["output"][-1]["content"] == [{"type": "refusal", "refusal": refusal["refusal"]}]
    answer_with(site, **dict.fromkeys(SEATS, Reply(status=401)))
    last = stream(site)[-1]
    assert (last["type"], last["response"]["error"]["code"]) == ("response.failed", "council_failed")
    assert create(site, 502)["error"]["code"] == "council_failed"


BAD_REQUESTS: list[tuple[Json, int, str]] = [
    ({"input": []}, 400, "input"),
    ({"input": [{"role": "assistant", "content": "Yes."}]}, 400, "input"),
    ({"input": [{"role": "user", "content": 4}]}, 400, "input"),
    ({"input": [{"role": "robot", "content": "Yes."}]}, 400, "input"),
    ({"input": [{"type": "item_reference", "id": "msg_1"}]}, 400, "input"),
    ({"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "http://x/y.png"}]}]}, 400, "input"),
    ({"input": [{"role": "user", "content": [{"type": "input_file", "file_id": "f-1"}]}]}, 400, "input"),
    ({"input": [{"role": "user", "content": [{"type": "input_audio"}]}]}, 400, "input"),
    ({"input": "Validate the plan", "model": "council"}, 400, "input"),
    ({"model": "gpt-5"}, 404, "model"),
    ({"tool_choice": "required", "tools": [{}]}, 400, "tool_choice"),
    ({"tool_choice": {"type": "file_search"}}, 400, "tool_choice"),
    ({"tool_choice": {"type": "allowed_tools", "mode": "required", "tools": []}}, 400, "tool_choice"),
    ({"top_logprobs": 2}, 400, "top_logprobs"),
    ({"include": ["message.output_text.logprobs"]}, 400, "include"),
    ({"conversation": "conv_1"}, 400, "conversation"),
    ({"prompt": {"id": "pmpt_1"}}, 400, "prompt"),
    ({"text": {"format": {"type": "grammar"}}}, 400, "text.format"),
    ({"text": {"format": {**FORMAT, "schema": {"$ref": "http://x/y"}}}}, 400, "text.format"),
    ({"metadata": {"a": "b" * 600}}, 400, "metadata.a"),
]  # fmt: skip


@pytest.mark.behaviour("50-v1-errors", "50-v1-responses")
def test_what_a_council_cannot_do_is_refused_with_its_field_before_anything_is_paid(site: ChatSite) -> None:
    before = site.runs()
    for change, status, param in BAD_REQUESTS:
        error = create(site, status, **change)["error"]
        assert (error["param"], "\n" in error["message"]) == (param, False), (change, error)
    harmless = {
        "tools": [{"type": "web_search"}],
        "tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": []},
    }
    assert (site.runs(), site.provider.log) == (before, [])
    assert create(site, **harmless, include=["reasoning.encrypted_content"], truncation="auto")["tools"] == []


@pytest.mark.behaviour("50-v1-responses-owners", "50-users-scope")
def test_responses_of_others_and_other_runs_are_unknown(site: ChatSite) -> None:
    ann, bob = add_user(site, "ann"), add_user(site, "bob", "runs")
    mine = create(site, headers=ann)
    path = f"{RESPONSES}/{mine['id']}"
    assert site.ask("GET", path, headers=ann).status == 200
    assert site.ask("DELETE", path, headers=ann).status == 403  # of the scope chat
    chatted = f"{RESPONSES}/resp_{site.complete(model='council/triad')['council']['run']}"
    for method, place, headers in (
        ("GET", path, bob),
        ("POST", f"{path}/cancel", bob),
        ("DELETE", path, bob),
        ("GET", f"{RESPONSES}/resp_rnothing", bob),
        ("GET", f"{RESPONSES}/resp_{mine['id'][5:8]}", ann),  # a prefix
        ("GET", f"{RESPONSES}/{mine['id'][5:]}", ann),
        ("GET", chatted, {}),
    ):
        refused = site.ask(method, place, {} if method == "POST" else None, headers=headers)
        assert (refused.status, refused.json["error"]["code"]) == (404, "response_not_found"), place
    assert create(site, 404, headers=bob, previous_response_id=mine["id"])["error"]["code"] == (
        "previous_response_not_found"
    )
    own = create(site, headers=bob)
    gone = site.ask("DELETE", f"{RESPONSES}/{own['id']}", headers=bob)
    assert gone.json == {"id": own["id"], "object": "response", "deleted": True}
    assert site.ask("GET", f"{RESPONSES}/{own['id']}", headers=bob).status == 404


class Decision(pydantic.BaseModel):
    decision: str
    risks: list[str]


@pytest.mark.behaviour("50-v1-responses", "50-v1-clients", "50-v1-retry")
def test_the_openai_sdk_uses_responses(site: ChatSite) -> None:
    client = openai.OpenAI(base_url=f"http://{site.host}/v1", api_key=site.token, timeout=60, max_retries=0)
    ask: Any = {"model": "council/triad", "input": QUESTION}
    whole = client.responses.create(**ask, extra_body={"tail": False})
    assert whole.output_text == MERGED and whole.usage and whole.usage.total_tokens > 0
    assert client.responses.retrieve(whole.id).output_text == MERGED
    events = list(client.responses.create(**ask, stream=True))
    assert events[-1].type == "response.completed"
    with client.responses.stream(**ask, previous_response_id=whole.id) as helper:
        kinds = {event.type for event in helper}
        final = helper.get_final_response()
    assert "response.output_text.delta" in kinds and final.output_text.startswith(MERGED)
    answer_with(site)
    parsed = client.responses.parse(**ask, text_format=Decision)
    assert parsed.output_parsed == Decision.model_validate(GOOD)
    gate = site.provider.hold(lambda seen: FORMAT_MARK in seen.prompt)
    begun = client.responses.create(**ask, background=True, text={"format": {"type": "json_object"}})
    gate.wait()
    client.responses.cancel(begun.id)
    wait_until(lambda: client.responses.retrieve(begun.id).status == "cancelled", "the response is cancelled")
    gate.release()
    client.responses.delete(begun.id)
    with pytest.raises(openai.NotFoundError, match="no response"):
        client.responses.retrieve(begun.id)
    before = len(site.runs())
    again = site.ask("POST", RESPONSES, ask, headers={"x-stainless-retry-count": "1"})
    assert again.status == 200 and len(site.runs()) == before
    answer_with(site, **dict.fromkeys(EVERYONE, Reply(status=400)))
    with pytest.raises(openai.InternalServerError, match="no seat answered"):
        client.responses.create(**ask)


def test_the_run_of_a_response_keeps_its_request(site: ChatSite, tmp_path: Path) -> None:
    done = create(site, reasoning={"effort": "low", "summary": "auto"})
    assert done["reasoning"] == {"effort": "low", "summary": None}
    assert site.get(f"/api/runs/{done['council']['run']}")["plan"]["effort"] == "low"
