"""`response_format` of chat completions: the answer as JSON that was checked against the caller's schema."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openai
import pydantic
import pytest

from tests.acceptance.helpers import EVERYONE, QUESTION, SEATS, FixedAnswers, Instead, mark
from tests.acceptance.workers import kill_worker
from tests.doors.web.server import Json
from tests.doors.web.test_chat import COMPLETIONS, ChatSite, Streamed, make_body
from tests.fake_provider import FakeProvider
from tests.fakes.replies import Reply, Seen

DECISION: Json = {
    "type": "object",
    "properties": {"decision": {"type": "string"}, "risks": {"type": "array", "items": {"type": "string"}}},
    "required": ["decision", "risks"],
    "additionalProperties": False,
}
LOOSE: Json = {
    "type": "object",
    "properties": {"decision": {"type": "string", "pattern": "^[A-Z]"}, "more": {"$ref": "#"}},
    "required": ["decision"],
}
GOOD = {"decision": "Move it.", "risks": ["slow reads"]}
OBJECT: Json = {"type": "json_object"}
REVIEW = "Review this function:\n\ndef f():\n    return 1 / 0"
FORMAT_MARK = "A program reads your reply: send the JSON alone"


def make_format(schema: Any = DECISION, **more: Any) -> Json:
    return {"type": "json_schema", "json_schema": {"name": "decision", "schema": schema, **more}}


class FormatAnswers(FixedAnswers):
    """Fixed answers, and those to the request for JSON in turn: an object, a text or a reply."""

    def __init__(self, *written: Any) -> None:
        super().__init__()
        self.written = list(written)

    def __call__(self, seen: Seen) -> Reply:
        if FORMAT_MARK not in seen.prompt:
            return super().__call__(seen)
        said = self.written.pop(0) if self.written else GOOD
        if isinstance(said, Reply):
            return said
        return Reply(text=said if isinstance(said, str) else json.dumps(said, indent=1))


@pytest.fixture(scope="module")
def format_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChatSite]:
    with FakeProvider() as provider:
        served = ChatSite(tmp_path_factory.mktemp("format"), provider)
        yield served
        provider.forget()
        served.close()


@pytest.fixture
def site(format_server: ChatSite) -> ChatSite:
    format_server.reset()
    answer_with(format_server)
    return format_server


def answer_with(site: ChatSite, *written: Any, **instead: Instead) -> FormatAnswers:
    answers = FormatAnswers(*written)
    answers.instead = instead
    site.answers = site.provider.answer = answers
    return answers


def formatting(site: ChatSite) -> list[Seen]:
    return [seen for seen in site.provider.log if FORMAT_MARK in seen.prompt]


@pytest.mark.behaviour("50-v1-format", "50-v1-format-money")
def test_the_chair_writes_the_answer_as_json_that_fits_and_nothing_else_is_content(site: ChatSite) -> None:
    done = site.complete(response_format=make_format(), model="council/triad")
    message = done["choices"][0]["message"]
    assert json.loads(message["content"]) == GOOD and message["refusal"] is None
    assert mark("chair", "merge") in message["reasoning_content"] and "slow reads" not in message["reasoning_content"]
    (asked,) = formatting(site)
    assert asked.model == "chair" and asked.schema == DECISION
    assert mark("chair", "merge") in asked.prompt and "one vendor" not in message["content"]
    report = site.report(done["council"]["run"])
    assert report["answer"].startswith(f"The merge of chair: {mark('chair', 'merge')}.")
    assert done["council"]["tail"] == report["tail"] and report["tail"][-1].startswith("Trust: ")
    bill = site.provider.bill
    assert (done["usage"]["prompt_tokens"], done["usage"]["completion_tokens"]) == (bill["in"], bill["out"])
    plan = site.get(f"/api/runs/{done['council']['run']}")["plan"]
    assert plan["response_format"] == {"type": "json_schema", "name": "decision"}
    assert plan["phases"][-1] == {"name": "format", "calls": 1, "parallel": False}
    assert (plan["calls"]["max"], len(site.provider.log)) == (5, 5)
    whole = site.complete(model="council/triad")["choices"][0]["message"]["content"]
    assert whole.startswith(f"The merge of chair: {mark('chair', 'merge')}.")


@pytest.mark.behaviour("50-v1-format-stream")
def test_a_stream_has_progress_as_reasoning_and_then_only_json_that_was_checked(site: ChatSite) -> None:
    answer_with(site, {"decision": 4, "risks": []}, GOOD)
    streamed = site.stream(response_format=make_format(), model="council/collaborative")
    assert (json.loads(streamed.content), streamed.is_done) == (GOOD, True)
    assert len(streamed.texts("content")) == 1 and streamed.kinds[-1] == "content"
    assert "decision is 4, not string" in streamed.reasoning and mark("chair", "synthesise") in streamed.reasoning
    assert streamed.chunks[-1]["council"]["trust"]["level"]


@pytest.mark.behaviour("50-v1-format", "50-v1-schema-check")
def test_a_schema_that_vendors_refuse_is_served_and_checked_here(site: ChatSite) -> None:
    answer_with(site, {"decision": "move it"}, "```json\n{'decision': 'Move it.', \"x\": 1}\n```")
    done = site.complete(response_format=make_format(LOOSE, strict=True), model="council/triad")
    assert json.loads(done["choices"][0]["message"]["content"]) == {"decision": "Move it.", "x": 1}
    first, second = formatting(site)
    assert first.schema is None and '"pattern": "^[A-Z]"' in first.prompt
    assert 'decision is "move it", which does not match "^[A-Z]"' in second.prompt
    answer_with(site, "It is: [1, 2]", '{"any": [1e2]}')
    done = site.complete(response_format=OBJECT, model="council/triad")
    assert json.loads(done["choices"][0]["message"]["content"]) == {"any": [100.0]}


@pytest.mark.behaviour("50-v1-format-failure")
def test_an_answer_that_cannot_be_written_is_one_error_that_names_the_paid_run(site: ChatSite) -> None:
    answer_with(site, {"decision": 4, "risks": []}, {"decision": 5})
    refused = site.ask("POST", COMPLETIONS, make_body(response_format=make_format(), model="council/triad"))
    error, run = refused.json["error"], refused.headers["x-council-run"]
    assert (refused.status, error["code"], error["type"]) == (422, "response_format_failed", "invalid_request_error")
    assert "risks is missing" in error["message"] and f"run {run}" in error["message"]
    assert refused.headers["x-should-retry"] == "false"
    assert len(formatting(site)) == 2
    report = site.report(run)
    assert report["status"] == "complete" and mark("chair", "merge") in report["answer"]
    assert not [row for row in report["trust"]["because"] if "format" in row]
    answer_with(site, "no", "no")
    streamed = site.stream(response_format=make_format(), model="council/triad")
    assert (streamed.error and streamed.error["code"], streamed.content) == ("response_format_failed", "")
    answer_with(site, chair=Reply(refuse=True))
    stopped = site.complete(response_format=make_format(), model="council/triad", status=502)
    assert stopped["error"]["code"] == "run_stopped_midway" and "no chair was available" in stopped["error"]["message"]


@pytest.mark.behaviour("50-v1-format-refusal")
def test_a_refusal_has_the_field_of_openai(site: ChatSite) -> None:
    answer_with(site, Reply(refuse=True))
    message = site.complete(response_format=make_format(), model="council/triad")["choices"][0]["message"]
    assert message["content"] is None and "declined to answer" in message["refusal"]
    answer_with(site, **dict.fromkeys(EVERYONE, Reply(refuse=True)))
    streamed = site.stream(response_format=OBJECT, model="council/triad")
    assert "declined to answer" in "".join(streamed.texts("refusal")) and streamed.content == ""
    assert streamed.is_done


@pytest.mark.behaviour("50-v1-format-crash", "50-v1-retry")
def test_a_worker_that_is_killed_while_the_json_is_written_buys_no_other_step_again(site: ChatSite) -> None:
    gate, key = site.provider.hold(lambda seen: FORMAT_MARK in seen.prompt), {"Idempotency-Key": "format-crash"}
    body: Json = {"response_format": make_format(), "model": "council/triad"}
    streamed = Streamed()
    with site.open_stream(headers=key, **body) as response:
        gate.wait()
        kill_worker(Path(site.env["COUNCIL_DATA"]))
        gate.release()
        for line in response:
            streamed.add(line)
    assert (json.loads(streamed.content), streamed.is_done) == (GOOD, True)  # another worker continued
    done = site.complete(headers=key, **body)
    assert json.loads(done["choices"][0]["message"]["content"]) == GOOD
    asked = [seen.model for seen in site.provider.log]
    assert sorted(asked) == sorted([*SEATS, "chair", "chair", "chair"])  # only the open request was sent again
    first, second = formatting(site)
    assert first.raw == second.raw
    assert site.complete(headers=key, **body)["council"]["run"] == done["council"]["run"]
    assert len(site.provider.log) == 6
    site.complete(headers=key, response_format=OBJECT, model="council/triad", status=422)


@pytest.mark.behaviour("50-v1-format")
def test_models_without_a_chair_and_reviews_have_json_too(site: ChatSite) -> None:
    site.provider.answer = lambda seen: Reply(text=json.dumps(GOOD)) if FORMAT_MARK in seen.prompt else None
    for model in ("council/solo", "council/quick", "council/panel", "council/adversarial", "council/advisors"):
        done = site.complete(REVIEW, response_format=make_format(), model=model)
        assert json.loads(done["choices"][0]["message"]["content"]) == GOOD, model
    site.provider.forget()
    done = site.complete(REVIEW, response_format=make_format(), model="council")
    assert json.loads(done["choices"][0]["message"]["content"]) == GOOD
    (asked,) = formatting(site)
    assert "The findings of the review" in asked.prompt and "Verdict: WARN" in asked.prompt
    assert "severity: critical" in asked.prompt
    site.provider.forget()
    title = {"title": "Cold storage"}
    site.provider.answer = lambda seen: Reply(text=json.dumps(title))
    done = site.complete("Write a title as JSON.", response_format=OBJECT, model="council/title")
    assert json.loads(done["choices"][0]["message"]["content"]) == title
    assert len(site.provider.log) == 1  # the answer is the object already


BAD_FORMATS: list[tuple[Any, str]] = [
    ({"type": "xml"}, 'response_format.type "xml" is not supported'),
    ({"type": 4}, "response_format.type 4 is not supported"),
    ({"type": "json_schema"}, "response_format.json_schema is missing"),
    ({"type": "json_schema", "json_schema": {"name": "x"}}, "response_format.json_schema.schema is missing"),
    (make_format(name="a b"), "response_format.json_schema.name is not valid"),
    (make_format({"$ref": "https://example.com/x"}), "is not fetched"),
    (make_format({"properties": {"a": {"pattern": r"(?<=a)b"}}}), "look-around"),
]


@pytest.mark.behaviour("50-v1-errors", "50-v1-schema-limits")
def test_a_wrong_response_format_and_other_unsupported_fields_are_refused_before_anything_is_paid(
    site: ChatSite,
) -> None:
    before = site.runs()
    for given, said in BAD_FORMATS:
        error = site.complete(response_format=given, status=400)["error"]
        assert (error["param"] or "").startswith("response_format") and said in error["message"], error
        assert "\n" not in error["message"]
    for fields, param in (
        ({"logprobs": True}, "logprobs"),
        ({"logprobs": True, "top_logprobs": 3}, "logprobs"),
        ({"top_logprobs": 3}, "top_logprobs"),
        ({"modalities": ["text", "audio"], "audio": {"voice": "x", "format": "wav"}}, "audio"),
    ):
        assert site.complete(status=400, **fields)["error"]["param"] == param
    harmless = {
        "logprobs": False,
        "top_logprobs": 0,
        "modalities": ["text"],
        "seed": 4,
        "response_format": {"type": "text"},
    }
    assert site.complete(**harmless, stop=["x"], model="council/triad")["choices"][0]["message"]["content"]
    assert len(site.runs()) == len(before) + 1


class Risk(pydantic.BaseModel):
    name: str
    severity: int = pydantic.Field(ge=1, le=5)


class Decision(pydantic.BaseModel):
    decision: str
    risks: list[Risk]
    note: str | None


@pytest.mark.behaviour("50-v1-format", "50-v1-clients")
def test_the_openai_sdk_parses_the_answer_as_a_model(site: ChatSite) -> None:
    value = {"decision": "Move it.", "risks": [{"name": "slow", "severity": 2}], "note": None}
    answer_with(site, {**value, "risks": [{"name": "slow", "severity": 9}]}, value, value)
    client = openai.OpenAI(base_url=f"http://{site.host}/v1", api_key=site.token, timeout=60, max_retries=0)
    messages: Any = [{"role": "user", "content": QUESTION}]
    parsed = client.chat.completions.parse(model="council/triad", messages=messages, response_format=Decision)
    assert parsed.choices[0].message.parsed == Decision.model_validate(value)
    assert formatting(site)[0].schema and "severity is 9, not at most 5" in formatting(site)[1].prompt
    with client.chat.completions.stream(model="council/triad", messages=messages, response_format=Decision) as stream:
        final = stream.get_final_completion()
    assert final.choices[0].message.parsed == Decision.model_validate(value)
    answer_with(site, Reply(refuse=True))
    refused = client.chat.completions.parse(model="council/triad", messages=messages, response_format=Decision)
    assert refused.choices[0].message.parsed is None and refused.choices[0].message.refusal
    answer_with(site, "no", "no")
    with pytest.raises(openai.UnprocessableEntityError, match="response format"):
        client.chat.completions.parse(model="council/triad", messages=messages, response_format=Decision)
