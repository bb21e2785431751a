"""Events: fields that earlier versions did not store."""

from __future__ import annotations

from typing import Any

import pytest

from council import events as ev
from council.types import Json, Outcome

STATEMENT: Json = {
    "key": "judge/judge-1", "phase": "judge", "seat": "judge-1", "state": "ok", "said": "Fine.", "reply": None,
    "served_by": "scripted:", "usage": {}, "attempts": 1, "seconds": 0.1,
}  # fmt: skip


@pytest.mark.parametrize(
    ("tag", "body", "field", "value"),
    [
        ("note", {"what": "attack skipped", "why": "consensus"}, "skipped", ["attack"]),
        ("note", {"what": "r2, r3 skipped", "why": "all agree"}, "skipped", ["r2", "r3"]),
        ("note", {"what": "second round skipped", "why": "one judge"}, "skipped", ["r2"]),
        ("note", {"what": "leading position: alpha", "why": "clear"}, "skipped", []),
        ("attempt", {"key": "draft/alpha", "seat": "alpha", "n": 2, "member": "b:m", "why": "fallback: a:m failed(net)"}, "fallback_for", "a:m"),
        ("attempt", {"key": "draft/alpha", "seat": "alpha", "n": 2, "member": "b:m", "why": "fallback: a:m failed(net)"}, "fallback_state", "failed(net)"),
        ("attempt", {"key": "draft/alpha", "seat": "alpha", "n": 2, "member": "a:m", "why": "retry: server"}, "fallback_for", ""),
        ("absence", {"key": "improve/beta", "phase": "improve", "seat": "beta", "state": "timed_out", "reason": "out since it was timed_out in draft"}, "since", "draft"),
        ("absence", {"key": "draft/beta", "phase": "draft", "seat": "beta", "state": "timed_out", "reason": "no answer"}, "since", ""),
        ("statement", {**STATEMENT, "cut": ["src/big.py", "the words of Alpha"]}, "cut_material", ["src/big.py"]),
        ("statement", STATEMENT, "cut_material", []),
    ],
)  # fmt: skip
def test_an_event_of_an_earlier_version_gets_its_typed_fields(tag: str, body: Json, field: str, value: Any) -> None:
    assert getattr(ev.parse_event(tag, body), field) == value


@pytest.mark.parametrize(
    ("tag", "event"),
    [
        ("note", ev.Noted("nothing skipped", "all phases were held")),
        ("attempt", ev.Attempted("draft/alpha", "alpha", 2, "b:m", "fallback: a:m failed(net)")),
        ("absence", ev.WasAbsent("r1/beta", "r1", "beta", "timed_out", "out since it was timed_out in draft")),
    ],
)
def test_a_stored_field_is_never_read_from_a_text(tag: str, event: ev.Event) -> None:
    assert ev.parse_event(tag, ev.dump_fields(event)) == event


def test_a_result_of_an_earlier_version_knows_which_cuts_are_material() -> None:
    old = Outcome("ok", "Fine.").as_json()
    old["cut"] = ["src/big.py", "the words of Alpha"]
    assert Outcome.from_json(old).cut_material == ("src/big.py",)
    now = Outcome("ok", "Fine.", cut=("the words of Alpha",))
    assert Outcome.from_json(now.as_json()) == now
