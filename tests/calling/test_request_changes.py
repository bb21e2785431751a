"""Request changes between attempts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from council import events as ev
from council.calling.fault_table import (
    FAULT_TABLE,
    FailedAttempt,
    check_fault,
    find_missing_parameters,
    max_retries,
    next_attempt,
    parse_share,
)
from council.engine.ledger import Ledger
from council.errors import Fault
from council.types import Answer, Ask, Attachment, Usage
from tests.calling.helpers import KEY, answering, call, events_of, fault, step
from tests.run_session import FunctionMember, make_ask

pytestmark = pytest.mark.anyio


@pytest.mark.behaviour("40-context-too-long")
@pytest.mark.parametrize(
    ("words", "share"),
    [
        ("400: This model's maximum context length is 8192 tokens. However, your messages resulted in 16384 tokens.", 0.4),
        ("400: prompt is too long: 210000 tokens > 200000 maximum", 0.5),
        ("400: The input token count (1,200,000) exceeds the maximum number of tokens allowed (300,000).", 0.2),
        ("400: maximum context length is 4096 tokens, however you requested 12288 (4096 in the messages, 8192 more)", 0.5),
        ("413: Request Entity Too Large", 0.5),
        ("400: model big-128000 takes less than that", 0.5),
    ],
)  # fmt: skip
def test_a_request_is_truncated_to_half_or_to_the_limit_the_vendor_states(words: str, share: float) -> None:
    assert parse_share(words) == share


def test_a_truncated_answer_without_a_cap_is_retried_at_twice_its_output() -> None:
    failed = FailedAttempt(step(), FunctionMember("one", str), make_ask(), fault("length"), output_tokens=20_000)
    after = next_attempt(failed)
    assert after and after.ask.max_tokens == 40_000


@pytest.mark.parametrize(("warm", "warmer"), [(None, 0.7), (0.2, 0.7), (0.7, 1.0), (1.0, 1.0)])
def test_an_empty_answer_is_retried_at_a_higher_temperature(warm: float | None, warmer: float) -> None:
    after = next_attempt(FailedAttempt(step(), FunctionMember("one", str), make_ask(temperature=warm), fault("empty")))
    assert after and after.ask.temperature == warmer


def test_missing_parameters_are_listed_by_dotted_name() -> None:
    before = b'{"model": "m", "temperature": 1, "config": {"topK": 1, "thinking": {"level": 2}}, "messages": []}'
    after = b'{"model": "m", "config": {}, "messages": []}'
    assert list(find_missing_parameters(before, after)) == ["temperature", "config.topK", "config.thinking"]
    assert list(find_missing_parameters(b"no json", after)) == []


@pytest.mark.behaviour("40-optional-parameters-are-dropped")
async def test_dropped_parameters_are_recorded(ledger: Ledger) -> None:
    class Choosy(FunctionMember):
        def prepare(self, ask: object) -> bytes:
            body = super().prepare(ask)  # type: ignore[arg-type]
            return body if getattr(ask, "bare", False) else body[:-1] + b', "top_p": 1, "top_k": 2}'

    left = [fault("parameter"), "Tabs."]
    outcome = await call(ledger, step(), Choosy("one", lambda key: left.pop(0)))
    assert (outcome.state, outcome.dropped) == ("ok", ("top_p", "top_k"))
    assert events_of(ledger, ev.Attempted)[-1].why == "retry: without optional parameters (top_p, top_k)"


PICTURE = Attachment("attached/a.png", "image/png", "0" * 64, 3, "YWJj", 40, 30)
MANY_PARAMETERS = {"temperature": 0.5, "max_tokens": 10, "effort": "high", "attachments": (PICTURE,)}


class Painter(FunctionMember):
    """A member that takes images."""

    accepts = ("image",)


@pytest.mark.behaviour("40-optional-parameters-are-dropped")
@pytest.mark.parametrize(
    ("member", "words", "dropped"),
    [
        (Painter, "image_url is not supported", ("attached/a.png",)),
        (Painter, "temperature is not supported", ()),
        (FunctionMember, "the image is not supported", ()),  # it never got the image
    ],
)
def test_a_rejected_request_loses_its_attachments_or_its_optional_parameters(
    member: type[FunctionMember], words: str, dropped: tuple[str, ...]
) -> None:
    ask = replace(make_ask(), **MANY_PARAMETERS)  # type: ignore[arg-type]
    after = next_attempt(FailedAttempt(step(), member("one", str), ask, Fault("parameter", words)))
    assert after
    has_pictures = not dropped
    kept = (None, None, None, True) if has_pictures else (0.5, 10, "high", False)
    assert (after.ask.temperature, after.ask.max_tokens, after.ask.effort, after.ask.bare) == kept
    assert (after.ask.attachments == (PICTURE,), after.dropped) == (has_pictures, dropped)
    assert after.why == ("retry: without optional parameters" if has_pictures else "retry: without attached/a.png")


@pytest.mark.behaviour("30-member-raises")
async def test_a_member_that_cannot_prepare_the_bare_request_is_absent(ledger: Ledger) -> None:
    class Stubborn(FunctionMember):
        def prepare(self, ask: Ask) -> bytes:
            if ask.bare:
                raise SystemExit("never without my parameters")
            return super().prepare(ask)

    outcome = await call(ledger, step(), Stubborn("one", lambda key: fault("parameter")))
    assert outcome.state == "failed(parameter)"


# The chair


@pytest.mark.behaviour("40-chair-has-two-retries")
@pytest.mark.parametrize("kind", ["cut", "empty", "loop", "stub", "length", "schema", "parameter"])
async def test_faults_with_one_retry_have_two_for_the_chair(ledger: Ledger, kind: str) -> None:
    outcome = await call(ledger, replace(step(), is_chair=True), answering("one", fault(kind)))
    assert (outcome.state, outcome.attempts) == (FAULT_TABLE[kind].state, 3)


@pytest.mark.behaviour("40-chair-has-two-retries")
@pytest.mark.parametrize("kind", ["stall", "refused", "auth", "quota", "model"])
def test_stalls_and_permanent_faults_have_no_extra_retry_for_the_chair(kind: str) -> None:
    assert max_retries(kind, chair=True) == max_retries(kind) == FAULT_TABLE[kind].retries


async def test_the_chair_gets_twice_the_output_on_each_retry(ledger: Ledger) -> None:
    seen: list[int | None] = []

    class Noting(FunctionMember):
        def prepare(self, ask: object) -> bytes:
            seen.append(getattr(ask, "max_tokens", None))
            return super().prepare(ask)  # type: ignore[arg-type]

    ask = make_ask(KEY, schema={"type": "object"}, max_tokens=600)
    await call(
        ledger, replace(step(ask=ask), is_chair=True), Noting("one", lambda key: Answer("{", "length", Usage(1, 600)))
    )
    assert seen == [600, 1200, 2400]


@pytest.mark.parametrize(
    ("wait", "kept"), [(0, 0), (1.5, 1.5), (-1, None), (float("nan"), None), (float("inf"), None), ("3", None)]
)
def test_only_a_wait_of_some_seconds_is_kept_of_a_fault(wait: Any, kept: float | None) -> None:
    assert check_fault(Fault("rate", "slow down", retry_after=wait)).retry_after == kept


def test_what_a_fault_says_is_a_text() -> None:
    said: Any = {"no": "text"}
    assert check_fault(Fault("schema", "wrong", said=said)).said == ""
    assert check_fault(Fault("schema", "wrong", said="Tabs.")).said == "Tabs."
    unknown = check_fault(Fault("melted", "too hot"))
    assert (unknown.kind, unknown.detail) == ("member", 'Fault: unknown kind "melted": too hot')
