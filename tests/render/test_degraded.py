"""What stands above an answer when not all went as planned: stand-ins, plain words, killed runs."""

from __future__ import annotations

import pytest

from council import events as ev
from council.render.degraded import degraded_lines
from council.render.markdown import answer, document
from council.render.report import report
from council.render.states import WORDS, in_words

from .benches import bench_plan
from .entries import Story, drafts, one_absent, plan, seat, triage


def fallen_back() -> Story:
    seats = [seat("alpha", model="ollama:qwen3"), seat("beta", model="local:smollm2")]
    story = Story(plan(seats=seats)).phase("draft").asked("alpha", member="ollama:qwen3")
    story.again("alpha", 2, "fallback: ollama:qwen3 failed(net)", member="local:smollm2")
    return story.said("alpha", "a", served_by="local:smollm2").said("beta", "b", served_by="local:smollm2")


@pytest.mark.behaviour("00-fallback-told")
def test_stand_in_is_said_above_the_answer_and_in_degraded() -> None:
    minutes = fallen_back().ended().closed().minutes
    assert degraded_lines(minutes)[0] == (
        "alpha asked ollama:qwen3: it could not be reached (failed(net)); local:smollm2 took its place."
    )
    assert report(minutes)["degraded"][0] == {
        "seat": "alpha",
        "phase": "draft",
        "state": "fallback",
        "reason": "asked ollama:qwen3, which failed(net): local:smollm2 took its place",
    }


@pytest.mark.behaviour("00-fallback-told")
def test_explorers_are_no_lenses_on_one_model() -> None:
    story = Story(bench_plan(seat("judge-1", model="sim:m1"))).phase("judge").said("judge-1", "x", served_by="sim:m1")
    story.phase("judge/judge-1/explore").said("judge-1-explorer-1", "y", served_by="sim:m1")
    assert degraded_lines(story.closed("x", verdict="PASS").minutes) == []


@pytest.mark.behaviour("50-plain-words")
@pytest.mark.parametrize("state", WORDS)
def test_state_is_said_in_plain_words_and_kept_in_brackets(state: str) -> None:
    line = degraded_lines(Story().phase("draft").said("alpha", "a").asked("beta").absent("beta", state, "").minutes)[1]
    assert line.startswith(f"beta did not answer in draft: {in_words(state)}")
    assert f"({state})" in line


def test_what_was_said_before_stands_on_every_line_it_is_true_for() -> None:
    story = drafts(Story()).phase("improve").asked("alpha", "beta").absent("alpha").absent("beta").ended().closed()
    assert [line.endswith("; what it said before stands.") for line in degraded_lines(story.minutes)] == [True, True]


def test_lost_explorer_is_told_by_what_it_means_for_its_judge() -> None:
    story = Story(bench_plan()).phase("judge").said("judge-1", "x").said("judge-2", "y")
    story.phase("judge/judge-1/explore/judge-1-explorer-1/look-1").asked("judge-1-explorer-1")
    story.absent("judge-1-explorer-1", "timed_out", "")
    (line,) = degraded_lines(story.closed("x", verdict="PASS").minutes)
    assert line == (
        "judge-1-explorer-1 did not answer in look-1: it ran out of time (timed_out); judge-1 goes on without it."
    )


def test_dead_chair_appears_once() -> None:
    story = triage(drafts(Story(plan("adversarial")))).phase("verdict").asked("chair").absent("chair", "timed_out")
    story.absent("chair", "timed_out", "out since it was timed_out in verdict")
    value = report(story.closed("No chair", status="incomplete", stopped="chair").minutes)
    assert len(value["degraded"]) <= 1


def test_seat_that_is_out_for_the_run_is_told_of_once() -> None:
    story = one_absent()
    closed = story.entries.pop()
    story.absent("beta", "failed(server)", "out since it was failed(server) in draft").tell(closed.event)
    assert [row["seat"] for row in report(story.minutes)["degraded"]] == ["beta"]


def test_seats_of_a_failed_run_are_not_left_waiting() -> None:
    story = Story().phase("draft").asked("alpha").absent("alpha").asked("beta")
    states = [one["state"] for one in report(story.closed("", status="failed", stopped="quorum").minutes)["seats"]]
    assert states == ["failed(server)", "no_answer", "not_asked"]


@pytest.mark.behaviour("40-killed-run")
def test_killed_run_counts_its_calls_and_says_how_far_it_came() -> None:
    story = Story().phase("draft").asked("alpha", "beta", "gamma").said("alpha", "a")
    minutes = story.minutes
    assert report(minutes)["calls"]["made"] == 3
    assert report(minutes)["answer"] == "No answer yet: the run stopped in draft, with 1 of 3 seats heard."
    assert not any("BELOW 80 %" in line for line in degraded_lines(minutes))
    assert "No answer yet" in answer(minutes) and "No answer yet" in document(minutes)


@pytest.mark.behaviour("40-killed-run")
def test_calls_of_a_resumed_run_are_those_of_its_last_process() -> None:
    story = Story().phase("draft").asked("alpha", "beta", "gamma").said("alpha", "a")
    story.tell(ev.Resumed("r7k2")).asked("beta")
    assert report(story.minutes)["calls"]["made"] == 1


def test_lost_quorum_names_its_phase() -> None:
    story = triage(drafts(Story(plan("adversarial")))).phase("attack").asked("beta", "gamma")
    story.absent("beta").absent("gamma").closed("digest", status="incomplete", stopped="quorum")
    assert degraded_lines(story.minutes)[0].startswith("INCOMPLETE: too few seats answered in attack (0 of 2) to go on")


def test_tokens_of_a_seat_that_failed_in_the_end_are_counted() -> None:
    story = Story().phase("draft").asked("alpha")
    usage = {"in": 7, "out": 3, "cached": 0}
    story.tell(ev.WasAbsent("draft/alpha", "draft", "alpha", "truncated", "cut off", 2, usage))
    assert report(story.minutes)["tokens"] == usage
