"""The trust line: its table and the agreement of the seats."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from council import events as ev
from council.engine.minutes import Minutes
from council.engine.trust import (
    LEVELS,
    TABLE,
    compute_agreement,
    compute_trust,
    count_voices,
    format_trust,
)
from council.events import Entry

DATA = Path(__file__).parents[1] / "data" / "trust"
AGREEMENT = tomllib.loads((DATA / "agreement.toml").read_text())["case"]
NAMES = ("alpha", "beta", "gamma")
MEMBERS = {"alpha": "anthropic:a", "beta": "openai:b", "gamma": "google:c"}


def run(
    members: dict[str, str] | None = None, served: dict[str, str] | None = None, absent: tuple[str, ...] = (),
    status: str = "complete", verdict: dict[str, Any] | None = None, chair: str = "anthropic:chair",
) -> Minutes:  # fmt: skip
    """Return the minutes of a run with one round; `served` are the members that answered in place of others."""
    members, served = members or MEMBERS, served or {}
    seats = [
        {"name": name, "role": "", "perspective": "", "model": member, "vendor": member.partition(":")[0]}
        for name, member in members.items()
    ]
    presides = {"name": "chair", "role": "", "perspective": "", "model": chair, "vendor": chair.partition(":")[0]}
    events: list[Any] = [
        ev.Convened("r1", "n", {"protocol": "collaborative", "seats": seats, "chair": presides, "task": "ask"}),
        ev.PhaseStarted("draft"),
    ]
    for name, member in [*members.items(), ("chair", chair)]:
        events.append(ev.Asked(f"draft/{name}", "draft", name, member, []))
        if name in absent:
            events.append(ev.WasAbsent(f"draft/{name}", "draft", name, "failed(server)", "500", 1, {}))
        else:
            events.append(
                ev.Stated(f"draft/{name}", "draft", name, "ok", "Yes.", None, served.get(name, member), {}, 1, 0.1)
            )
    said = {"answer": "Yes.", "agreement": "full"} | (verdict or {})
    events.append(ev.Closed(status, said, {"made": 1, "replayed": 0, "in_doubt": 0}, ""))
    return Minutes.fold(Entry(n, float(n), event) for n, event in enumerate(events, 1))


def level(minutes: Minutes) -> str:
    return str(compute_trust(minutes)["level"])


# The table


@pytest.mark.behaviour("10-trust-table")
@pytest.mark.parametrize(
    ("given", "expected", "reason"),
    [
        ({}, "HIGH", ""),
        ({"verdict": {"verdict": "DISAGREE"}}, "CONTESTED", "the judges disagree"),
        ({"verdict": {"confidence": "CONTESTED"}}, "CONTESTED", "the answer is contested"),
        ({"verdict": {"trust_facts": [{"kind": "open_fatal", "detail": "beta-1"}]}}, "CONTESTED", "a fatal issue is open: beta-1"),
        ({"verdict": {"trust_facts": [{"kind": "open_dispute", "detail": ""}]}}, "CONTESTED", "members still disagree"),
        ({"absent": ("beta", "gamma")}, "LOW", "only one seat answered"),
        ({"status": "incomplete"}, "LOW", "the run is incomplete"),
        ({"status": "failed"}, "LOW", "the run is without an answer"),
        ({"members": {"alpha": "local:smollm2", "beta": "openai:b"}}, "LOW", "the small embedded model answered"),
        ({"chair": "local:smollm2"}, "LOW", "the small embedded model answered"),
        ({"verdict": {"details": {"empty": True}}}, "LOW", "no material was reviewed"),
        ({"verdict": {"agreement": "none"}}, "LOW", "no two seats share the recommendation"),
        ({"verdict": {"confidence": "LOW"}}, "LOW", "confidence LOW"),
        ({"absent": ("beta",)}, "MEDIUM", "beta is absent (2 of 3 seats answered)"),
        ({"members": {"alpha": "openai:a", "beta": "openai:b"}}, "MEDIUM", "all answers are from one vendor: openai"),
        ({"verdict": {"agreement": "partial"}}, "MEDIUM", "the seats agree only in part"),
        ({"verdict": {"agreement": ""}}, "MEDIUM", "agreement was not assessed"),
        ({"verdict": {"agreement": None}}, "MEDIUM", "agreement was not assessed"),
        ({"verdict": {"outcome": "MODIFIED"}}, "MEDIUM", "the answer was changed after criticism"),
        ({"verdict": {"trust_facts": [{"kind": "landed", "detail": ""}]}}, "MEDIUM", "severe criticism was valid"),
        ({"verdict": {"trust_facts": [{"kind": "unruled", "detail": ""}]}}, "MEDIUM", "an issue was not ruled on"),
        ({"verdict": {"trust_facts": [{"kind": "contested_points", "detail": "cost"}]}}, "MEDIUM", "contested: cost"),
        ({"verdict": {"trust_facts": [{"kind": "no_evidence", "detail": ""}]}}, "MEDIUM", "no evidence was verified"),
        ({"verdict": {"confidence": "MEDIUM"}}, "MEDIUM", "confidence MEDIUM"),
        ({"served": {"beta": "mistral:d"}}, "MEDIUM", "a fallback answered for beta"),
        ({"absent": ("chair",)}, "MEDIUM", "chair did not answer in draft"),
        ({"members": {"alpha": "local:/path/large.gguf", "beta": "openai:b"}}, "HIGH", ""),
    ],
)  # fmt: skip
def test_each_row_of_the_table(given: dict[str, Any], expected: str, reason: str) -> None:
    trust = compute_trust(run(**given))
    assert trust["level"] == expected
    assert reason in trust["because"] if reason else trust["because"] == []


@pytest.mark.behaviour("10-trust-table")
def test_the_lowest_row_wins_and_every_row_is_a_reason() -> None:
    trust = compute_trust(run(absent=("beta",), verdict={"agreement": "none", "verdict": "DISAGREE"}))
    assert trust["level"] == "CONTESTED"
    assert trust["because"] == [
        "the judges disagree",
        "no two seats share the recommendation",
        "beta is absent (2 of 3 seats answered)",
    ]


@pytest.mark.behaviour("10-trust-shared-member")
def test_seats_that_share_a_member_by_fallback_count_as_one() -> None:
    both = compute_trust(run(served={"beta": "anthropic:a", "gamma": "anthropic:a"}))
    assert both["level"] == "LOW"
    assert "all answers are from anthropic:a, by fallback" in both["because"]
    one_vendor = compute_trust(run(served={"beta": "anthropic:x", "gamma": "anthropic:y"}))
    assert "all answers are from one vendor: anthropic" in one_vendor["because"]
    chosen = dict.fromkeys(NAMES, "openai:b")
    assert compute_trust(run(members=chosen))["level"] == "MEDIUM"


def test_a_run_of_an_older_version_is_not_assessed() -> None:
    minutes = run()
    for key in ("agreement", "trust_facts", "notes"):
        minutes.verdict.pop(key, None)
    assert compute_trust(minutes) == {"level": "MEDIUM", "because": ["agreement was not assessed"]}


def test_the_trust_line_is_one_line() -> None:
    assert format_trust({"level": "HIGH", "because": []}) == "Trust: HIGH"
    assert format_trust({"level": "LOW", "because": ["a\n", "b"]}) == "Trust: LOW — a ; b"


def test_many_details_of_one_kind_are_one_reason() -> None:
    facts = [{"kind": "contested_points", "detail": f"p{n}"} for n in range(5)]
    assert compute_trust(run(verdict={"trust_facts": facts}))["because"] == ["contested: p0; p1 and 3 more"]


RUNS = st.fixed_dictionaries(
    {
        "served": st.dictionaries(st.sampled_from(NAMES), st.sampled_from(["openai:b", "mistral:d"])),
        "absent": st.sets(st.sampled_from([*NAMES, "chair"])).map(tuple),
        "status": st.sampled_from(["complete", "incomplete"]),
        "verdict": st.fixed_dictionaries(
            {
                "agreement": st.sampled_from(["", "full", "partial", "none"]),
                "confidence": st.sampled_from([None, "HIGH", "MEDIUM", "LOW", "CONTESTED"]),
                "verdict": st.sampled_from([None, "PASS", "DISAGREE"]),
                "trust_facts": st.lists(st.fixed_dictionaries({"kind": st.sampled_from(["landed", "unruled"]), "detail": st.just("")}), max_size=2),
            }
        ),
    }
)  # fmt: skip


@pytest.mark.behaviour("10-trust-never-raised")
@given(RUNS, st.sampled_from(NAMES))
def test_an_absence_a_dispute_or_a_shared_vendor_never_raises_the_level(given: dict[str, Any], name: str) -> None:
    before = LEVELS.index(level(run(**given)))  # type: ignore[arg-type]
    dispute = {"kind": "open_dispute", "detail": "x"}
    worse = [
        given | {"absent": tuple({*given["absent"], name})},
        given | {"verdict": given["verdict"] | {"trust_facts": [*given["verdict"]["trust_facts"], dispute]}},
        given | {"served": dict.fromkeys(NAMES, "openai:b")},
        given | {"members": {seat: f"openai:{seat}" for seat in NAMES}, "served": {}},
    ]
    assert all(LEVELS.index(level(run(**one))) >= before for one in worse[:3])  # type: ignore[arg-type]
    if not given["served"]:
        assert LEVELS.index(level(run(**worse[3]))) >= before  # type: ignore[arg-type]


@given(RUNS)
def test_the_level_never_exceeds_the_confidence(given: dict[str, Any]) -> None:
    confidence = given["verdict"]["confidence"] or "HIGH"
    assert LEVELS.index(level(run(**given))) >= LEVELS.index(confidence)  # type: ignore[arg-type]


def test_every_kind_of_the_shared_type_has_a_row() -> None:
    from typing import get_args

    from council.types import TrustFactKind

    assert set(get_args(TrustFactKind)) <= TABLE.keys()


# Agreement


@pytest.mark.behaviour("10-notes-agreement")
@pytest.mark.parametrize("case", AGREEMENT, ids=lambda case: case["name"])
def test_agreement_follows_from_the_notes(case: dict[str, Any]) -> None:
    found = compute_agreement(case.get("shared_by"), case.get("contested", False), case["voices"])
    assert found == case["agreement"]


def test_a_member_chosen_for_several_seats_stays_several_voices() -> None:
    assert count_voices([("alpha", "m", "m"), ("beta", "m", "m")]) == {"alpha": "alpha", "beta": "beta"}
    assert count_voices([("alpha", "m", "m"), ("beta", "n", "m")]) == {"alpha": "m", "beta": "m"}
    assert count_voices([("alpha", "m", ""), ("beta", "n", "")]) == {"alpha": "alpha", "beta": "beta"}
