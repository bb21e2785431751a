"""Patches: applied one after the other they give the minutes, at every event."""

from __future__ import annotations

import json
import random

import pytest

from council import events as ev
from council.engine.minutes import Minutes
from council.engine.patches import PatchFold, list_records
from council.events import Entry
from council.types import Json
from tests.engine.seat_events import list_steps, merge_randomly, number, parse_entries
from tests.render.runs import NAMES, RunBuilder, adversarial, collaborative, one_absent


def merge(target: Json, patch: Json) -> Json:
    """Apply a JSON merge patch (RFC 7396)."""
    for name, value in patch.items():
        if value is None:
            target.pop(name, None)
        else:
            target[name] = merge(target.get(name, {}), value) if isinstance(value, dict) else value
    return target


def build(minutes: Minutes) -> Json:
    """Return the records of the minutes as one object."""
    state: Json = {}
    for place, record in list_records(minutes):
        inner = state
        for name in place:
            inner = inner.setdefault(name, {})
        inner |= record
    return state


def interrupted() -> RunBuilder:
    """A run whose process ended with an open request, and that was resumed; a fallback answered, another request was
    not.
    """
    builder = RunBuilder().phase("draft").ask(*NAMES)
    builder.add(ev.Labelled("draft", "beta", {"A": "alpha", "B": "gamma"}))
    builder.fault("alpha", "rate", "429", wait=2.0).retry("alpha", 2, "fallback: m1 failed(rate)", member="scripted:m2")
    builder.add(ev.Billed("draft/alpha", "alpha", 2, "scripted:m2", 0.25, estimated=True)).answer("alpha", "Yes.")
    builder.add(ev.Resumed("r7k2", 2.5), after=3600).ask("beta", "gamma").answer("beta", "No.")
    builder.add(ev.Labelled("draft", "beta", {"A": "gamma"}))
    builder.add(ev.Billed("draft/gamma", "gamma", 1, "scripted:m1", 0.5, in_doubt=True))
    builder.mark_absent("gamma", "in_doubt", "no answer").end_phase()
    return builder.add(ev.Resumed("r7k2"), after=60).phase("draft").ask("gamma").answer("gamma", "Perhaps.").close()


def in_any_order(seed: int) -> list[Entry]:
    return parse_entries(number(merge_randomly(list_steps(), random.Random(seed))))


RUNS = {
    "collaborative": collaborative().entries,
    "adversarial": adversarial().entries,
    "absent": one_absent().entries,
    "interrupted": interrupted().entries,
    **{f"order {seed}": in_any_order(seed) for seed in range(10)},
}


@pytest.mark.behaviour("50-page-one-fold")
@pytest.mark.parametrize("entries", RUNS.values(), ids=RUNS)
def test_patches_give_the_minutes_at_every_event(entries: list[Entry]) -> None:
    fold = PatchFold()
    state: Json = {}
    for n, entry in enumerate(entries, 1):
        merge(state, json.loads(json.dumps(fold.apply(entry))))
        assert state == build(Minutes.fold(entries[:n]))


@pytest.mark.behaviour("50-page-one-fold", "40-statements-in-seating-order")
@pytest.mark.parametrize("seed", range(10))
def test_places_sort_as_the_minutes_do(seed: int) -> None:
    minutes = Minutes.fold(in_any_order(seed))
    state = build(minutes)
    phases = sorted(state["phases"].values(), key=lambda phase: phase["place"])
    assert [phase["name"] for phase in phases] == list(minutes.phases)
    for phase in phases:
        seats = sorted(phase["seats"], key=lambda name: state["seats"][name]["place"])
        assert seats == list(minutes.phases[phase["name"]].keys)


def test_the_times_of_a_resumed_run_have_no_pauses() -> None:
    fold = PatchFold()
    seconds = [fold.apply(entry).get("seconds") for entry in interrupted().entries]
    assert max(second for second in seconds if second is not None) < 60


def test_what_was_open_when_a_process_ended_is_interrupted_until_it_is_asked_again() -> None:
    state = build(interrupted().minutes)
    steps = [(step["seat"], step["state"]) for step in state["steps"].values()]
    assert steps == [
        ("alpha", "ok"), ("beta", "stopped"), ("gamma", "stopped"), ("beta", "ok"), ("gamma", "in_doubt"), ("gamma", "ok"),
    ]  # fmt: skip
    assert [one.get("interrupted", False) for one in state["attempts"].values()][:4] == [False, True, True, False]
    assert "absent" not in state["phases"]["draft"]["seats"]["gamma"]


def test_a_patch_has_no_text_and_does_not_grow_with_the_run() -> None:
    def longest(rounds: int) -> int:
        builder = RunBuilder()
        for n in range(rounds):
            builder.phase(f"r{n:03}").ask(*NAMES)
            for name in NAMES:
                builder.phase(f"r{n:03}/{name}/look").answer(f"{name}-explorer-{n:03}", "x" * 5000)
                builder.now = f"r{n:03}"
                builder.answer(name, "x" * 5000)
            builder.end_phase()
        fold = PatchFold()
        return max(len(json.dumps(fold.apply(entry))) for entry in builder.close().entries)

    assert longest(40) == longest(10) < 5000
