"""The pydantic-ai bridge: answers, fault kinds and disabled retries."""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import AsyncIterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from council.engine.ledger import Ledger
from council.errors import ConfigError, Fault
from council.members.base import MemberContext
from council.members.bridge import BridgeMember, make_pai_member, make_provider_member
from council.runs.service import Convener
from council.settings import Provider, load_settings
from council.store.interface import Record
from council.store.sqlite import SqliteStore
from council.types import Answer, Attachment, Usage
from tests.calling.helpers import RUN, call, step
from tests.fake_provider import FakeProvider, Reply
from tests.run_session import make_ask
from tests.trusted_project import trust_project

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(
        not find_spec("pydantic_ai"), reason="the extra pai is missing: pip install 'model-council[pai]'"
    ),
]  # importing it takes a second, in each process that collects the tests
SCHEMA = {"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"], "additionalProperties": False}  # fmt: skip
PICTURE = Attachment("attached/a.png", "image/png", "0", 6, base64.b64encode(b"png>>?").decode(), 4, 3)
CONTEXT = MemberContext(load_settings(Path(), {}), {}, Path())


def bridged(provider: FakeProvider, wire: str = "openai", **more: Any) -> BridgeMember:
    said = Provider("sim", wire=wire, base_url=provider.base(wire), vendor="sim", **more)
    return make_provider_member("sim:m1", said, key="sk-own-0123456789")


@pytest.fixture
async def member(provider: FakeProvider) -> AsyncIterator[BridgeMember]:
    made = bridged(provider)
    yield made
    await made.close()


async def send(member: BridgeMember, pieces: list[str] | None = None, **ask: Any) -> Answer:
    return await member.send(member.prepare(make_ask(**ask)), (pieces if pieces is not None else []).append)


@pytest.mark.filterwarnings("ignore:Inheritance class:DeprecationWarning")  # of the SDK of Google
@pytest.mark.behaviour("issue-5-bridge", "50-attachments-wires")
@pytest.mark.parametrize("wire", ["openai", "openai-responses", "anthropic", "google"])
async def test_bridge_streams_the_answer_and_reports_the_providers_usage(wire: str, provider: FakeProvider) -> None:
    member, pieces = bridged(provider, wire), list[str]()
    provider.script("m1", Reply(text="Tabs are better than spaces, by far."))
    answer = await send(member, pieces, attachments=(PICTURE,))
    await member.close()
    assert PICTURE.data in provider.log[0].raw.decode().replace("_", "/")  # Google's SDK uses the other alphabet
    assert answer.text == "".join(pieces) == "Tabs are better than spaces, by far."
    assert len(pieces) > 1
    assert (answer.finish, answer.model) == ("stop", "m1")
    assert answer.usage == Usage(provider.bill["in"], provider.bill["out"])
    assert provider.log[0].wire == wire


@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")  # of the SDK, about the values below
@pytest.mark.behaviour("14-usage-validated")
async def test_invalid_usage_is_unknown_through_the_bridge(member: BridgeMember, provider: FakeProvider) -> None:
    for value in (10**19, -5, float("nan"), int("9" * 400), "12", 3.5):
        provider.script("m1", Reply("Tabs.", usage=[{"prompt_tokens": 7, "completion_tokens": value}]))
        answer = await send(member)
        assert (answer.text, answer.usage.known) == ("Tabs.", False)
        assert answer.usage.output in (0, 3)


@pytest.mark.behaviour("issue-5-bridge")
async def test_typed_reply_uses_the_vendors_json_schema_mode(member: BridgeMember, provider: FakeProvider) -> None:
    answer = await send(member, schema=SCHEMA, schema_name="Draft")
    assert set(json.loads(answer.text)) == {"answer"}
    assert provider.log[0].body["response_format"]["json_schema"] == {"name": "Draft", "schema": SCHEMA, "strict": True}


async def test_typed_reply_puts_the_schema_in_the_prompt_without_json_schema_support(provider: FakeProvider) -> None:
    for wordy in (bridged(provider, structured="prompt"), bridged(provider, "anthropic")):
        await send(wordy, schema=SCHEMA)
        assert "JSON Schema" in provider.log[-1].prompt
        assert "response_format" not in provider.log[-1].body


async def test_bare_ask_omits_optional_parameters(member: BridgeMember, provider: FakeProvider) -> None:
    await send(member, temperature=0.3, max_tokens=99)
    await send(member, temperature=0.3, max_tokens=99, bare=True)
    full, bare = (seen.body for seen in provider.log)
    assert full["temperature"] == 0.3
    assert 99 in full.values()
    assert not {"temperature", "max_tokens", "max_completion_tokens"} & bare.keys()


async def test_key_that_does_not_fit_a_header_is_a_fault_and_nothing_is_sent(provider: FakeProvider) -> None:
    said = Provider("sim", base_url=provider.base("openai"), vendor="sim")
    member = make_provider_member("sim:m1", said, key="sk-one\nsk-two")
    with pytest.raises(Fault) as caught:
        await send(member)
    assert (caught.value.kind, provider.log) == ("auth", [])


FAULTS = [
    (Reply(status=400), "parameter"),
    (Reply(status=400, error={"message": "This model's maximum context length is 8192 tokens"}), "size"),
    (Reply(status=401), "auth"),
    (Reply(status=403), "auth"),
    (Reply(status=404), "model"),
    (Reply(status=429), "rate"),
    (Reply(status=429, error={"code": "insufficient_quota", "message": "no money"}), "quota"),
    (Reply(status=500), "server"),
    (Reply(status=502), "cut"),
    (Reply(status=503), "overload"),
    (Reply(status=504), "cut"),
    (Reply(status=529), "overload"),
    (Reply(text="Tabs are better than spaces.", cut=300), "cut"),
    (Reply(text="Tabs are better than spaces.", error_after="the server was lost"), "cut"),
]


@pytest.mark.behaviour("issue-5-bridge-faults")
@pytest.mark.parametrize(("reply", "kind"), FAULTS, ids=[f"{reply.status}-{kind}" for reply, kind in FAULTS])
async def test_error_is_mapped_to_a_fault_kind_after_one_request(
    reply: Reply, kind: str, member: BridgeMember, provider: FakeProvider
) -> None:
    provider.always("m1", reply)
    with pytest.raises(Fault) as caught:
        await send(member)
    assert caught.value.kind == kind
    assert len(provider.log) == 1  # the SDK's own retries are off
    assert "sk-own" not in caught.value.detail


async def test_retry_after_is_kept_in_the_fault(member: BridgeMember, provider: FakeProvider) -> None:
    provider.always("m1", Reply(status=429, headers={"Retry-After": "7"}))
    with pytest.raises(Fault) as caught:
        await send(member)
    assert caught.value.retry_after == 7


async def test_stream_without_a_terminator_is_cut(member: BridgeMember, provider: FakeProvider) -> None:
    provider.always("m1", Reply(text="Tabs are better than spaces.", finish=None, done=False))
    with pytest.raises(Fault, match="without its terminator") as caught:
        await send(member)
    assert (caught.value.kind, caught.value.said) == ("cut", "Tabs are better than spaces.")


async def test_silent_endpoint_times_out(provider: FakeProvider) -> None:
    provider.always("m1", Reply(hang=True))
    with pytest.raises(Fault) as caught:
        await send(bridged(provider, first_byte=0.3))
    assert caught.value.kind == "stall"


async def test_closed_port_is_a_network_fault() -> None:
    away = Provider("sim", base_url="http://127.0.0.1:9/v1", vendor="sim")
    with pytest.raises(Fault) as caught:
        await send(make_provider_member("sim:m1", away, key=None))
    assert caught.value.kind == "net"


@pytest.mark.parametrize(("finish", "word"), [("length", "length"), ("content_filter", "refused")])
async def test_finish_reason_is_reported(finish: str, word: str, member: BridgeMember, provider: FakeProvider) -> None:
    provider.script("m1", Reply(text="Tabs are", finish=finish))
    assert (await send(member)).finish == word


@pytest.mark.behaviour("issue-5-bridge-faults")
async def test_retry_loop_decides_the_number_of_attempts(
    member: BridgeMember, provider: FakeProvider, tmp_path: Path
) -> None:
    member.backoff = 0.0
    store = SqliteStore(tmp_path / "store")
    store.post(RUN, [("run", ("a run", "here", 1.0, "42", "{}"))])
    provider.always("m1", Reply(status=500))
    outcome = await call(Ledger(store, Record(RUN, "a run", "here", 1.0, "42", {})), step("sim:m1"), member)
    store.close()
    assert (outcome.state, len(provider.log)) == ("failed(server)", 3)
    assert "scripted 500" in outcome.reason


@pytest.mark.behaviour("issue-5-bridge-via")
async def test_provider_with_via_pai_uses_the_bridge(provider: FakeProvider) -> None:
    lines = ["[providers.sim]", f'base_url = "{provider.base_url}"', 'via = "pai"', "[models]", 'default = "sim:m1"']
    configured("\n".join(lines))
    convener = Convener()
    made = convener.members("sim:m1")
    assert isinstance(made, BridgeMember)
    assert (await made.send(made.prepare(make_ask()), lambda piece: None)).model == "m1"
    await convener.close()


def configured(text: str) -> None:
    Path("council.toml").write_text(text)
    trust_project()


@pytest.mark.behaviour("issue-5-bridge")
def test_pai_prefix_accepts_every_vendor_of_pydantic_ai() -> None:
    made = Convener(env={"DEEPSEEK_API_KEY": "k"}).members("pai:deepseek:deepseek-chat")
    assert isinstance(made, BridgeMember)
    assert (made.vendor, made.name, made.secret) == ("deepseek", "pai:deepseek:deepseek-chat", "k")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("pai:deepseek", "write pai:PROVIDER:MODEL"),
        ("pai:unknown:m1", "cannot be used, pydantic-ai reports"),
        ("pai:deepseek:deepseek-chat", "DEEPSEEK_API_KEY"),
    ],
)
def test_unusable_pai_member_raises_a_config_error(name: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        make_pai_member(name, CONTEXT)


@pytest.mark.behaviour("issue-5-bridge")
def test_missing_extra_is_named_in_the_error(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("pydantic_ai", "pydantic_ai.models", "pydantic_ai.models.openai"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ConfigError, match=r"pip install 'model-council\[pai\]'"):
        make_pai_member("pai:deepseek:deepseek-chat", CONTEXT)
    with pytest.raises(ConfigError, match=r"pip install 'model-council\[pai\]'"):
        make_provider_member("sim:m1", Provider("sim", base_url="http://127.0.0.1:9/v1"), key=None)


def test_prepare_is_deterministic(provider: FakeProvider) -> None:
    member = bridged(provider)
    assert member.prepare(make_ask(schema=SCHEMA)) == member.prepare(make_ask(schema=SCHEMA))


async def test_conversation_keeps_its_roles(member: BridgeMember, provider: FakeProvider) -> None:
    roles = ["system", "user", "assistant", "user"]
    ask = make_ask()
    ask = type(ask)(ask.key, tuple({"role": role, "content": f"{n}"} for n, role in enumerate(roles)))
    await member.send(member.prepare(ask), lambda piece: None)
    assert [message["role"] for message in provider.log[0].body["messages"]] == roles
