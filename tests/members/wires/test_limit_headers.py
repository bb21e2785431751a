"""Headers with the limits of a vendor."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from multidict import CIMultiDict

from council.errors import Fault
from council.members.wires.limit_headers import MAX_RESET_S, read_limits
from council.types import Delivery, StatedLimit, current_delivery
from tests.fake_provider import FakeProvider, Reply
from tests.fakes.members import ASK, WIRES, seated

NAMES = [
    *(f"x-ratelimit-{part}-{kind}" for part in ("limit", "remaining", "reset") for kind in ("requests", "tokens")),
    *(
        f"anthropic-ratelimit-{kind}-{part}"
        for part in ("limit", "remaining", "reset")
        for kind in ("requests", "tokens", "input-tokens", "output-tokens")
    ),
]


def openai(kind: str = "requests", limit: str = "60", remaining: str = "59", reset: str = "1s") -> dict[str, str]:
    values = {"limit": limit, "remaining": remaining, "reset": reset}
    return {f"x-ratelimit-{part}-{kind}": value for part, value in values.items()}


def anthropic(kind: str, limit: str, remaining: str, reset: str) -> dict[str, str]:
    values = {"limit": limit, "remaining": remaining, "reset": reset}
    return {f"anthropic-ratelimit-{kind}-{part}": value for part, value in values.items()}


def read(headers: dict[str, str]) -> tuple[StatedLimit, ...]:
    return read_limits(CIMultiDict(headers))


@pytest.mark.behaviour("33-learned-limits")
def test_the_headers_of_openai_are_read() -> None:
    headers = {**openai(), **openai("tokens", "150000", "149984", "6ms")}
    assert read({name.title(): value for name, value in headers.items()}) == (
        StatedLimit("requests", 60, 59, 1.0),
        StatedLimit("tokens", 150_000, 149_984, 0.006),
    )


@pytest.mark.behaviour("33-learned-limits")
@pytest.mark.parametrize(
    ("reset", "seconds"),
    [("1s", 1), ("6m0s", None), ("1m30.5s", 90.5), ("120ms", 0.12), ("1s500ms", 1.5), ("0s", 0), ("7.66s", 7.66), ("12", 12)],
)  # fmt: skip
def test_a_reset_is_a_duration(reset: str, seconds: float | None) -> None:
    assert [one.reset for one in read(openai(reset=reset))] == ([] if seconds is None else [pytest.approx(seconds)])


@pytest.mark.behaviour("33-learned-limits")
def test_the_headers_of_anthropic_are_read_by_the_clock_of_the_vendor() -> None:
    vendor = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=3)
    reset = (vendor + timedelta(seconds=30)).isoformat().replace("+00:00", "Z")
    kinds = {"requests": "50", "tokens": "8000", "input-tokens": "40000", "output-tokens": "8000"}
    headers = {name: value for kind, most in kinds.items() for name, value in anthropic(kind, most, "7", reset).items()}
    date = vendor.strftime("%a, %d %b %Y %H:%M:%S GMT")
    assert read({**headers, "Date": date}) == (
        StatedLimit("requests", 50, 7, 30.0),
        StatedLimit("input", 40_000, 7, 30.0),
        StatedLimit("output", 8000, 7, 30.0),
    )
    only = {name: value for name, value in headers.items() if "input" not in name and "output" not in name}
    assert [one.kind for one in read({**only, "Date": date})] == ["requests", "tokens"]


@pytest.mark.behaviour("33-learned-limits")
@pytest.mark.parametrize(
    "changed",
    [
        *({"limit": text} for text in ("", "0", "-1", "1e3", "many", "٣", "9" * 40, "60, 60")),
        *({"remaining": text} for text in ("", "61", "-1", "x")),
        *({"reset": text} for text in ("", "s", "-1s", "soon", "NaN", "1e5", "2026-11-19", "9999-99-99T00:00:00Z", "24h0m0s")),
    ],
    ids=str,
)  # fmt: skip
def test_odd_values_are_ignored(changed: dict[str, str]) -> None:
    assert read({**openai("tokens"), **openai(**changed)}) == (StatedLimit("tokens", 60, 59, 1.0),)


@given(st.dictionaries(st.sampled_from([*NAMES, "Date"]), st.text(max_size=40) | st.from_regex(r"[0-9hms.:TZ-]{0,25}")))
def test_any_header_gives_valid_limits(headers: dict[str, str]) -> None:
    for one in read(headers):
        assert 0 <= one.left <= one.most
        assert 0 <= one.reset <= MAX_RESET_S


@pytest.mark.anyio
@pytest.mark.behaviour("33-learned-limits")
@pytest.mark.parametrize("status", [200, 429])
@pytest.mark.parametrize("wire", [wire for wire in WIRES if wire != "google"])
async def test_an_answer_and_a_refusal_tell_their_limits(provider: FakeProvider, wire: str, status: int) -> None:
    told: list[StatedLimit] = []
    provider.script("m1", Reply(status=status, headers=openai()))
    current_delivery.set(Delivery(on_limits=told.extend))
    member = seated(provider, wire)
    try:
        await member.send(member.prepare(ASK), lambda piece: None)
    except Fault as fault:
        assert fault.kind == "rate"
    await member.close()
    assert told == [StatedLimit("requests", 60, 59, 1.0)]
