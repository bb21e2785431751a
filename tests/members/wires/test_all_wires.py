"""Behaviour shared by all wires, over a real socket: requests, answers and faults."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from council.errors import Fault
from council.types import Ask, Usage
from tests.fake_clock import skip
from tests.fake_provider import FakeProvider, Reply
from tests.fakes.members import ASK, KEY, KINDS, SCHEMA, WIRES, asked, fault, member_at, seated

pytestmark = pytest.mark.anyio
every_wire = pytest.mark.parametrize("wire", WIRES)
TYPED = replace(ASK, schema=SCHEMA, schema_name="Ballot")
FULL = replace(TYPED, temperature=0.2, max_tokens=900, effort="high", shared=2)
KEY_HEADERS = {
    "openai": "Authorization",
    "openai-responses": "Authorization",
    "anthropic": "x-api-key",
    "google": "x-goog-api-key",
}


# Requests


@pytest.mark.behaviour("issue-5-same-bytes")
@every_wire
@pytest.mark.parametrize("ask", [ASK, FULL])
def test_the_same_ask_gives_the_same_bytes(wire: str, ask: Ask) -> None:
    assert member_at("http://x/v1", wire).prepare(ask) == member_at("http://y/v1", wire).prepare(ask)


@pytest.mark.behaviour("issue-5-same-bytes")
@every_wire
async def test_a_stored_request_arrives_byte_for_byte(provider: FakeProvider, wire: str) -> None:
    member = seated(provider, wire)
    stored = member.prepare(replace(ASK, messages=({"role": "user", "content": "große Frage " * 100_000},)))
    for _ in range(2):
        await member.send(stored, lambda piece: None)
    await member.close()
    assert [seen.raw for seen in provider.log] == [stored, stored]
    assert {seen.model for seen in provider.log} == {"m1"}


@every_wire
def test_a_lone_surrogate_does_not_stop_a_request(wire: str) -> None:
    body = member_at("http://x/v1", wire).prepare(Ask("k", ({"role": "user", "content": "a\ud800b"},)))
    assert '"a?b"' in body.decode()


@every_wire
async def test_the_key_is_only_in_its_header(provider: FakeProvider, wire: str) -> None:
    await asked(seated(provider, wire))
    (seen,) = provider.log
    assert KEY in seen.headers[KEY_HEADERS[wire]]
    others = {name: value for name, value in seen.headers.items() if name != KEY_HEADERS[wire]}
    assert KEY not in f"{others} {seen.path} {seen.raw!r}"


@every_wire
async def test_without_a_key_no_key_header_is_sent(provider: FakeProvider, wire: str) -> None:
    await asked(seated(provider, wire, api_key=None))
    assert KEY_HEADERS[wire] not in provider.log[0].headers


@every_wire
@pytest.mark.parametrize("key", ["sk-one\nsk-two", "sk-\x00", "sk-…masked"])
async def test_an_invalid_key_is_reported_and_nothing_is_sent(provider: FakeProvider, wire: str, key: str) -> None:
    caught = await fault(seated(provider, wire, api_key=key))
    assert (caught.kind, provider.log, "sk-" in caught.detail) == ("auth", [], False)


@pytest.mark.behaviour("40-one-message-per-vendor")
@every_wire
async def test_a_refused_key_is_named_by_its_variable(provider: FakeProvider, wire: str) -> None:
    provider.answer = lambda seen: Reply(status=401)
    member = seated(provider, wire)
    member.endpoint.key_name = "SIM_API_KEY"
    caught = await fault(member)
    assert caught.kind == "auth" and caught.detail.endswith("; check SIM_API_KEY")


@pytest.mark.behaviour("40-optional-parameters-are-dropped")
@every_wire
async def test_a_bare_request_has_its_schema_in_the_prompt_and_no_optional_parameters(
    provider: FakeProvider, wire: str
) -> None:
    bare = replace(FULL, bare=True, temperature=None, max_tokens=None)
    await asked(seated(provider, wire, thinks=True), bare)
    (seen,) = provider.log
    least = {"openai": {"model", "messages", "stream"}, "openai-responses": {"store", "model", "input", "stream"},
             "google": {"contents", "systemInstruction"},
             "anthropic": {"model", "messages", "stream", "system", "max_tokens"}}  # fmt: skip
    assert set(seen.body) == least[wire]
    assert json.dumps(SCHEMA, separators=(",", ":")) in seen.prompt
    assert b"cache_control" not in seen.raw


@every_wire
@pytest.mark.parametrize("structured", ["json_object", "prompt"])
async def test_without_schema_support_the_schema_is_in_the_prompt(
    provider: FakeProvider, wire: str, structured: str
) -> None:
    await asked(seated(provider, wire, structured=structured), TYPED)
    assert json.dumps(SCHEMA, separators=(",", ":")) in provider.log[0].prompt
    assert provider.log[0].schema is None


@pytest.mark.behaviour("issue-5-native-structured-output")
@every_wire
async def test_a_typed_reply_uses_the_vendors_schema_parameter(provider: FakeProvider, wire: str) -> None:
    answer, _ = await asked(seated(provider, wire), TYPED)
    assert provider.log[0].schema == SCHEMA
    assert json.loads(answer.text) == {"yes": False}


@every_wire
def test_the_cap_includes_thinking_tokens(wire: str) -> None:
    fields = {
        "openai": ("max_tokens",),
        "openai-responses": ("max_output_tokens",),
        "anthropic": ("max_tokens",),
        "google": ("generationConfig", "maxOutputTokens"),
    }

    def cap(ask: Ask, **options: Any) -> int:
        found = json.loads(member_at("http://x/v1", wire, **options).prepare(ask))
        for name in fields[wire]:
            found = found[name]
        return int(found)

    capped = replace(ASK, max_tokens=600)
    assert cap(capped) == 600
    assert cap(capped, thinks=True) > 2000
    assert cap(replace(capped, effort="low")) < cap(replace(capped, effort="high"))


@pytest.mark.behaviour("issue-5-effort")
@every_wire
@pytest.mark.parametrize(
    ("wished", "known", "sent"),
    [
        ("medium", ["low", "medium", "high"], "medium"),
        ("medium", ["low", "high"], "high"),
        ("high", ["low"], "low"),
        ("low", [], None),
        (None, ["low", "medium", "high"], None),
    ],
)
def test_effort_is_mapped_to_the_levels_a_model_supports(
    wire: str, wished: str | None, known: list[str], sent: str | None
) -> None:
    body = json.loads(member_at("http://x/v1", wire, efforts=known).prepare(replace(ASK, effort=wished)))
    found = {
        "openai": body.get("reasoning_effort"),
        "openai-responses": body.get("reasoning", {}).get("effort"),
        "anthropic": body.get("output_config", {}).get("effort"),
        "google": body.get("generationConfig", {}).get("thinkingConfig", {}).get("thinkingLevel"),
    }
    assert found[wire] == (sent and (sent.upper() if wire == "google" else sent))


# Answers


@pytest.mark.behaviour("issue-5-three-wires")
@every_wire
async def test_a_streamed_answer_is_reported_in_pieces_and_returned_whole(provider: FakeProvider, wire: str) -> None:
    answer, heard = await asked(seated(provider, wire))
    assert answer.text == "".join(heard)
    assert provider.log[0].marker in answer.text
    assert len(heard) > 3
    assert (answer.finish, answer.model) == ("stop", "m1")
    assert answer.id
    assert answer.usage == Usage(provider.bill["in"], provider.bill["out"])
    assert provider.bill == provider.bill_of(wire)


@every_wire
async def test_an_unstreamed_answer_is_accepted(provider: FakeProvider, wire: str) -> None:
    provider.script("m1", Reply("At once.", stream=False, thinks="hm"))
    answer, heard = await asked(seated(provider, wire))
    assert (answer.text, heard) == ("At once.", ["At once."])
    assert (answer.finish, answer.usage.output) == ("stop", provider.bill["out"])


@pytest.mark.behaviour("issue-5-toxics")
@every_wire
@pytest.mark.parametrize("how", [{"slices": 1}, {"slices": 7}, {"blanks": True}, {"twice": True}, {"piece": 1}])
async def test_piece_sizes_do_not_change_the_answer(provider: FakeProvider, wire: str, how: dict[str, Any]) -> None:
    provider.script("m1", Reply("Tabs, wherever they lead.", **how))
    answer, heard = await asked(seated(provider, wire))
    assert answer.text == "".join(heard) == "Tabs, wherever they lead."
    assert answer.usage == Usage(provider.bill["in"], provider.bill["out"])


@every_wire
async def test_thinking_is_reported_as_activity_without_text(provider: FakeProvider, wire: str) -> None:
    provider.script("m1", Reply("Tabs.", thinks="Let me see now.", piece=50))
    answer, heard = await asked(seated(provider, wire))
    assert (answer.text, heard[0], "".join(heard)) == ("Tabs.", "", "Tabs.")
    assert answer.usage.output == provider.bill["out"]


@pytest.mark.behaviour("wire.usage-is-the-largest-report")
@every_wire
async def test_usage_is_the_largest_report_not_the_sum(provider: FakeProvider, wire: str) -> None:
    reports = [
        {"prompt_tokens": 7, "completion_tokens": n, "prompt_tokens_details": {"cached_tokens": 3}} for n in (1, 5, 4)
    ]
    provider.script("m1", Reply(usage=reports))
    assert (await asked(seated(provider, wire)))[0].usage == Usage(7, 5, 3)


@pytest.mark.behaviour("40-unknown-tokens-are-unknown")
@every_wire
@pytest.mark.parametrize("reports", [[], [{}], [{"prompt_tokens": None, "completion_tokens": None}]])
async def test_unreported_usage_is_unknown_not_zero(provider: FakeProvider, wire: str, reports: list[Any]) -> None:
    provider.script("m1", Reply(usage=reports))
    assert (await asked(seated(provider, wire)))[0].usage == Usage(known=False)


@every_wire
@pytest.mark.parametrize("reports", [[{"completion_tokens": "many"}], [{"prompt_tokens": -4, "completion_tokens": 3}]])
async def test_invalid_usage_values_are_ignored(provider: FakeProvider, wire: str, reports: list[Any]) -> None:
    provider.script("m1", Reply("Tabs.", usage=reports))
    answer, _ = await asked(seated(provider, wire))
    assert (answer.text, answer.usage.input) == ("Tabs.", 0)
    assert answer.usage.output in (0, 3)


@every_wire
async def test_an_answer_at_its_length_limit_has_finish_length(provider: FakeProvider, wire: str) -> None:
    provider.script("m1", Reply(finish="length"), Reply(empty=True, thinks="on and on", finish="length"))
    assert (await asked(seated(provider, wire)))[0].finish == "length"
    second, _ = await asked(seated(provider, wire))
    assert (second.text, second.finish) == ("", "length")


@every_wire
@pytest.mark.parametrize(
    "reply", [Reply("I will not.", refuse=True), Reply(finish="content_filter"), Reply(refuse=True, stream=False)]
)
async def test_a_refusal_has_finish_refused(provider: FakeProvider, wire: str, reply: Reply) -> None:
    provider.script("m1", reply)
    answer, _ = await asked(seated(provider, wire))
    assert answer.finish == "refused"
    if reply.text:
        assert answer.text == "I will not."


@every_wire
async def test_a_connection_is_reused_after_an_answer(provider: FakeProvider, wire: str) -> None:
    member = seated(provider, wire, max_connections=1)
    for _ in range(3):
        await member.send(member.prepare(ASK), lambda piece: None)
    (connections,) = member.endpoint.join_pool().session.connector._conns.values()  # type: ignore[union-attr]
    await member.close()
    assert len(connections) == 1


# Faults


@pytest.mark.behaviour("wire.status-decides-the-kind")
@every_wire
@pytest.mark.parametrize(
    ("status", "kind"),
    [(302, "endpoint"), (400, "parameter"), (401, "auth"), (402, "quota"), (403, "auth"), (404, "model"), (413, "size"),
     (429, "rate"), (500, "server"), (502, "cut"), (503, "overload"), (504, "cut"), (529, "overload")],
)  # fmt: skip
async def test_error_statuses_map_to_fault_kinds(provider: FakeProvider, wire: str, status: int, kind: str) -> None:
    provider.script("m1", Reply(status=status))
    caught = await fault(seated(provider, wire))
    assert caught.kind == kind
    assert caught.detail.startswith(f"{status}: ")


@pytest.mark.behaviour("wire.status-decides-the-kind")
@every_wire
@pytest.mark.parametrize("path", ["/v2", "/v1/chat/completions", ""])
async def test_a_wrong_url_is_an_endpoint_fault_not_a_model_fault(provider: FakeProvider, wire: str, path: str) -> None:
    caught = await fault(member_at(provider.address + (path or "/nothing"), wire))
    assert (caught.kind, caught.detail) == (
        "endpoint",
        "404: Not Found: base_url does not look like a model endpoint; is /v1 missing, or is wire wrong?",
    )


@every_wire
async def test_connection_errors_are_described(provider: FakeProvider, wire: str) -> None:
    plain = await fault(member_at(provider.address.replace("http:", "https:"), wire))
    refused = await fault(member_at("http://127.0.0.1:1", wire))
    assert [one.kind for one in (plain, refused)] == ["net", "net"]
    assert plain.detail.endswith("the server does not use TLS: start base_url with http://")
    assert refused.detail == "no connection to http://127.0.0.1:1: connection refused"


@every_wire
@pytest.mark.parametrize(
    "reply",
    [
        Reply(error_after="the engine died"),
        Reply(done=False, finish=None),
        Reply(cut=60),
        Reply(reset=60),
        Reply(stream=False, cut=30),
    ],
)
async def test_an_incomplete_answer_is_a_cut(provider: FakeProvider, wire: str, reply: Reply) -> None:
    provider.script("m1", reply)
    caught = await fault(seated(provider, wire))
    assert caught.kind == "cut"
    assert reply.error_after in caught.detail


@every_wire
async def test_an_error_after_200_keeps_the_partial_text(provider: FakeProvider, wire: str) -> None:
    provider.script("m1", Reply("Tabs or spaces?", piece=4, error_after=f"no more of {KEY}"))
    caught = await fault(seated(provider, wire))
    assert (caught.said, KEY in caught.detail) == ("Tabs", False)


@pytest.mark.behaviour("wire.only-content-moves-the-clock")
@every_wire
@pytest.mark.parametrize("reply", [Reply(hang=True), Reply(comments=True)])
async def test_silence_and_keep_alives_stall(provider: FakeProvider, wire: str, reply: Reply) -> None:
    provider.script("m1", reply)
    assert (await fault(seated(provider, wire, first_byte=0.15))).kind == "stall"


@every_wire
async def test_an_answer_that_stops_stalls_and_keeps_the_partial_text(provider: FakeProvider, wire: str) -> None:
    stall = 2400 if wire == "openai-responses" else 900  # its first events are longer
    provider.script("m1", Reply("Tabs, I say, and tabs again.", piece=4, stall=stall))
    caught = await fault(seated(provider, wire, idle=0.2))
    assert caught.kind == "stall"
    assert caught.said.startswith("Tabs")


@every_wire
async def test_a_slow_stream_is_an_answer(provider: FakeProvider, wire: str) -> None:
    provider.script("m1", Reply("Tabs, drop by drop.", piece=4))
    member, pieces = seated(provider, wire, idle=100.0, first_byte=1000.0), list[str]()

    def hear(piece: str) -> None:
        pieces.append(piece)
        skip(90)

    answer = await member.send(member.prepare(ASK), hear)
    await member.close()
    assert answer.text == "Tabs, drop by drop."
    assert len(pieces) > 3  # together longer than the idle timeout


# Connections


@every_wire
async def test_the_probe_counts_the_models_without_a_billed_call(provider: FakeProvider, wire: str) -> None:
    member = seated(provider, wire)
    assert await member.probe() == "answered, 3 models"
    stranger = seated(provider, wire, model="m9")
    assert await stranger.probe() == "answered, 3 models, m9 not listed"
    await stranger.close()
    provider.script("/models", Reply(status=401))
    with pytest.raises(Fault) as caught:
        await member.probe()
    await member.close()
    assert (caught.value.kind, provider.bill["calls"]) == ("auth", 0)


@every_wire
def test_importing_a_wire_does_not_import_aiohttp(wire: str) -> None:
    module = wire.replace("-", "_")
    code = (
        f"import sys, council.members.wires.{module}; sys.exit('aiohttp' in sys.modules or 'pydantic' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# Arbitrary input

NAMES = ["choices", "delta", "content", "usage", "error", "finish_reason", "type", "text", "message", "content_block",
         "message_delta", "message_start", "candidates", "parts", "thought", "finishReason", "usageMetadata", "index",
         "promptFeedback", "blockReason", "stop_reason", "stop_details", "response.output_text.delta", "response.completed",
         "response.output_item.added", "response", "status", "incomplete_details", "reason", "output", "item", "phase"]  # fmt: skip
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.sampled_from(NAMES),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner),
    max_leaves=12,
)


@every_wire
@given(event=JSON)
def test_any_event_is_parsed_or_rejected(wire: str, event: Any) -> None:
    hearing = KINDS[wire].parser(lambda piece: None)
    try:
        hearing.feed_json(json.dumps(event).encode(), hearing.parse_event)
        hearing.build_answer(str)
    except Fault as caught:
        assert caught.kind == "cut"
    except ValueError as error:
        assert "unreadable" in str(error)


@every_wire
@given(lines=st.lists(st.binary(max_size=80).map(lambda line: b"data: " + line)))
def test_any_bytes_are_parsed_or_rejected(wire: str, lines: list[bytes]) -> None:
    try:
        KINDS[wire].parser(lambda piece: None).feed_lines(lines)
    except ValueError as error:
        assert "unreadable" in str(error)


@pytest.mark.behaviour("40-unknown-tokens-are-unknown")
@every_wire
@pytest.mark.parametrize(("read", "written"), [(0, 0), (100, 0), (0, 50)])
async def test_zero_usage_for_a_complete_answer_is_unknown(
    provider: FakeProvider, wire: str, read: int, written: int
) -> None:
    provider.script("m1", Reply(usage=[{"prompt_tokens": read, "completion_tokens": written}]))
    answer, _ = await asked(seated(provider, wire))
    assert not answer.usage.known
