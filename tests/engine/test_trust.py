"""The trust line: its table and the agreement of the seats."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from council import events as ev
from council.engine.agreement import compute_agreement, count_voices, join_sides
from council.engine.minutes import Minutes
from council.engine.trust import LEVELS, LIMITS, OUTCOMES, SUPPORTS, compute_trust
from council.events import Entry
from council.render.report import build_report
from council.types import OutcomeLabel, RecordedOutcome, RunOutcomes, Side
from council.wording import load_wording

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
    return compute_trust(minutes).level


def reasons(minutes: Minutes) -> list[str]:
    return load_wording("en").list_reasons(compute_trust(minutes).limits)


def fact(kind: str, **values: Any) -> dict[str, Any]:
    """Return a verdict with one fact."""
    return {"verdict": {"trust_facts": [{"kind": kind, **values}]}}


# The table


@pytest.mark.behaviour("10-trust-table")
@pytest.mark.parametrize(
    ("given", "expected", "reason"),
    [
        ({}, "HIGH", ""),
        (fact("disagree"), "CONTESTED", "judges of different vendors contradict each other"),
        (fact("overturned"), "CONTESTED", "the leading draft was overturned"),
        (fact("contradictory_ruling"), "CONTESTED", "the chair's ruling contradicts itself"),
        (fact("open_fatal", count=1), "CONTESTED", "a fatal attack was not ruled on"),
        (fact("open_dispute", detail="the price"), "CONTESTED", "members still disagree: the price"),
        ({"verdict": {"confidence": "CONTESTED"}}, "CONTESTED", "the answer is contested"),
        ({"absent": ("beta", "gamma")}, "LOW", "only alpha answered"),
        ({"status": "incomplete"}, "LOW", "the run is incomplete"),
        ({"status": "failed"}, "LOW", "the run has no answer"),
        ({"members": {"alpha": "local:smollm2", "beta": "openai:b"}}, "LOW", "the small embedded model answered"),
        ({"chair": "local:smollm2"}, "LOW", "the small embedded model answered"),
        (fact("no_material"), "LOW", "no material was reviewed"),
        ({"verdict": {"agreement": "none"}}, "LOW", "no two members recommended this at first"),
        ({"verdict": {"agreement": "none", "shared_by": ["beta"]}}, "LOW", "no two members recommended this at first"),
        ({"verdict": {"confidence": "LOW"}}, "LOW", "the members' own confidence is low"),
        ({"absent": ("beta",)}, "MEDIUM", "beta did not answer (2 of 3 seats did)"),
        ({"members": {"alpha": "openai:a", "beta": "openai:b"}}, "MEDIUM", "all answers are from one vendor (openai)"),
        ({"verdict": {"agreement": "partial"}}, "MEDIUM", "the seats agree only in part"),
        (
            {"verdict": {"agreement": "partial", "shared_by": ["alpha", "gamma"]}},
            "MEDIUM",
            "2 of 3 seats recommended this at first (alpha and gamma)",
        ),
        ({"verdict": {"agreement": ""}}, "MEDIUM", "agreement was not assessed"),
        ({"verdict": {"agreement": None}}, "MEDIUM", "agreement was not assessed"),
        (fact("in_turn"), "MEDIUM", "the seats spoke in turn, so later ones had read the others"),
        (fact("modified", count=1, total=2), "MEDIUM", "the leading draft was changed after attacks"),
        (fact("modified"), "MEDIUM", "the chair changed the leading draft on its own"),
        (fact("landed", count=1, total=3), "MEDIUM", "1 of 3 attacks was severe and landed"),
        (fact("unruled", count=2), "MEDIUM", "2 attacks were not ruled on"),
        (fact("contested_points", detail="cost", count=1), "MEDIUM", "one point is disputed"),
        (fact("no_evidence"), "MEDIUM", "no source supports it"),
        (fact("shared_member", detail="openai:b", seats=["alpha", "beta"]), "MEDIUM", "openai:b answered for alpha and beta, so they count once"),
        ({"verdict": {"confidence": "MEDIUM"}}, "MEDIUM", "the members' own confidence is medium"),
        ({"served": {"beta": "mistral:d"}}, "MEDIUM", "a fallback answered for beta"),
        ({"absent": ("chair",)}, "MEDIUM", "chair did not answer in draft"),
        ({"members": {"alpha": "local:/path/large.gguf", "beta": "openai:b"}}, "HIGH", ""),
    ],
)  # fmt: skip
def test_each_row_of_the_table(given: dict[str, Any], expected: str, reason: str) -> None:
    minutes = run(**given)
    assert level(minutes) == expected
    assert reason in reasons(minutes) if reason else reasons(minutes) == []


@pytest.mark.behaviour("10-trust-table")
def test_the_lowest_row_wins_and_every_row_is_a_reason() -> None:
    minutes = run(absent=("beta",), verdict={"agreement": "none", "trust_facts": [{"kind": "disagree"}]})
    assert level(minutes) == "CONTESTED"
    assert reasons(minutes) == [
        "judges of different vendors contradict each other",
        "no two members recommended this at first",
        "beta did not answer (2 of 3 seats did)",
    ]


@pytest.mark.behaviour("10-trust-one-level")
@pytest.mark.parametrize("confidence", [None, *LEVELS])
def test_a_confidence_is_never_above_the_level(confidence: str | None) -> None:
    report = build_report(run(verdict={"confidence": confidence, "agreement": "none"}))
    assert report["confidence"] in (None, report["trust"]["level"])


def test_high_trust_states_its_limit() -> None:
    report = build_report(run())
    assert report["trust"]["level"] == "HIGH"
    assert "members can share an error" in report["tail"][-1]
    assert "members can share an error" not in build_report(run(absent=("beta",)))["tail"][-1]


@pytest.mark.behaviour("10-trust-shared-member")
def test_seats_that_share_a_member_by_fallback_count_as_one() -> None:
    both = run(served={"beta": "anthropic:a", "gamma": "anthropic:a"})
    assert level(both) == "LOW"
    assert "anthropic:a answered for all seats" in reasons(both)
    one_vendor = run(served={"beta": "anthropic:x", "gamma": "anthropic:y"})
    assert "all answers are from one vendor (anthropic)" in reasons(one_vendor)
    chosen = dict.fromkeys(NAMES, "openai:b")
    assert level(run(members=chosen)) == "MEDIUM"


def test_a_run_of_an_older_version_keeps_its_facts() -> None:
    minutes = run()
    minutes.verdict.pop("agreement", None)
    minutes.verdict.pop("trust_facts", None)
    minutes.verdict.pop("notes", None)
    assert (level(minutes), reasons(minutes)) == ("MEDIUM", ["agreement was not assessed"])
    assert level(run(verdict={"verdict": "DISAGREE"})) == "CONTESTED"
    assert level(run(verdict={"outcome": "MODIFIED"})) == "MEDIUM"


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
    before = LEVELS.index(level(run(**given)))
    dispute = {"kind": "open_dispute", "detail": "x"}
    worse = [
        given | {"absent": tuple({*given["absent"], name})},
        given | {"verdict": given["verdict"] | {"trust_facts": [*given["verdict"]["trust_facts"], dispute]}},
        given | {"served": dict.fromkeys(NAMES, "openai:b")},
        given | {"members": {seat: f"openai:{seat}" for seat in NAMES}, "served": {}},
    ]
    assert all(LEVELS.index(level(run(**one))) >= before for one in worse[:3])
    if not given["served"]:
        assert LEVELS.index(level(run(**worse[3]))) >= before


@given(RUNS)
def test_the_level_never_exceeds_the_confidence(given: dict[str, Any]) -> None:
    confidence = given["verdict"]["confidence"] or "HIGH"
    assert LEVELS.index(level(run(**given))) >= LEVELS.index(confidence)


# How decisions turned out


def outcome(label: OutcomeLabel, value: str = "") -> RecordedOutcome:
    return {"at": 1.0, "label": label, "value": value, "note": ""}


@pytest.mark.behaviour("evidence-outcome-shown")
def test_high_never_stands_without_the_outcome_and_keeps_its_limit() -> None:
    minutes = run()
    assert build_report(minutes)["tail"][-1].startswith("Trust: HIGH — all 3 seats")
    minutes.outcomes = RunOutcomes(outcome("wrong", "43"))
    report = build_report(minutes)
    assert report["tail"][-1].startswith("Trust: HIGH — the answer turned out wrong: the right value is 43; ")
    assert "members can share an error" in report["tail"][-1]
    assert report["trust"]["because"] == ["the answer turned out wrong: the right value is 43"]
    minutes.outcomes = RunOutcomes(outcome("right"))
    report = build_report(minutes)
    assert report["tail"][-1].startswith("Trust: HIGH — the answer turned out right; ")
    assert report["trust"]["because"] == []


@pytest.mark.behaviour("evidence-outcome-follow-up")
@pytest.mark.parametrize(
    ("plan", "known", "expected"),
    [
        ({"continues": "r0", "earlier_wrong": ["r0"]}, {}, ["an earlier answer of this conversation turned out wrong (r0)"]),
        ({"continues": "r0"}, {"r0": "wrong"}, ["an earlier answer of this conversation turned out wrong (r0)"]),
        ({"continues": "r0", "earlier_wrong": ["r0"]}, {"r0": "right"}, []),
        ({"continues": "r0"}, {"r0": "wrong", "r00": "wrong"}, ["2 earlier answers of this conversation turned out wrong (r0, r00)"]),
        ({"fork": {"run": "r0", "from": "draft"}}, {"r0": "wrong"}, ["the answer of r0, of which this is a fork, turned out wrong"]),
        ({"fork": {"run": "r1", "from": "draft"}, "continues": "r0"}, {"r0": "wrong"}, ["an earlier answer of this conversation turned out wrong (r0)"]),
    ],
)  # fmt: skip
def test_a_follow_up_says_which_earlier_answers_turned_out_wrong_by_what_is_known_now(
    plan: dict[str, Any], known: dict[str, OutcomeLabel], expected: list[str]
) -> None:
    minutes = run()
    minutes.plan = {**minutes.plan, **plan}  # type: ignore[typeddict-item]
    minutes.outcomes = RunOutcomes(None, known)
    assert (reasons(minutes), level(minutes)) == (expected, "HIGH")


def test_every_kind_of_the_shared_type_has_a_row() -> None:
    table = load_wording("en").table
    assert {*LIMITS, *OUTCOMES} <= table["reasons"].keys()
    assert set(SUPPORTS) <= table["supports"].keys()


# Agreement


@pytest.mark.behaviour("10-notes-agreement")
@pytest.mark.parametrize("case", AGREEMENT, ids=lambda case: case["name"])
def test_agreement_follows_from_the_notes(case: dict[str, Any]) -> None:
    found = compute_agreement(case.get("shared_by"), case.get("contested", False), case["voices"])
    assert found == case["agreement"]


def test_seats_of_equal_positions_are_one_side_and_a_seat_with_two_positions_is_on_none() -> None:
    rows = [("alpha", "Now.", ""), ("beta", "now", ""), ("gamma", "Later", "growth"), ("gamma", "Never", "")]
    assert join_sides(rows) == (Side(("alpha", "beta"), "Now.", ""),)
    assert join_sides([("alpha", "now", ""), ("alpha", "now", "")]) == (Side(("alpha",), "now", ""),)


def test_a_member_chosen_for_several_seats_stays_several_voices() -> None:
    assert count_voices([("alpha", "m", "m"), ("beta", "m", "m")]) == {"alpha": "alpha", "beta": "beta"}
    assert count_voices([("alpha", "m", "m"), ("beta", "n", "m")]) == {"alpha": "m", "beta": "m"}
    assert count_voices([("alpha", "m", ""), ("beta", "n", "")]) == {"alpha": "alpha", "beta": "beta"}
