"""Degradation lines above an answer: fallbacks, absences and killed runs."""

from __future__ import annotations

from typing import cast

import pytest

from council import events as ev
from council.engine.degraded import format_degraded_lines, format_missing_lines, format_notice_lines, format_page_lines
from council.engine.layout import STATE_DESCRIPTIONS, describe_state
from council.render.markdown import render_answer, render_document
from council.render.report import build_report
from council.types import FinalState
from tests.protocols.judges.runs import bench_plan
from tests.render.runs import RunBuilder, drafts, one_absent, plan, seat, triage


def with_fallback() -> RunBuilder:
    seats = [seat("alpha", model="ollama:qwen3"), seat("beta", model="local:smollm2")]
    builder = RunBuilder(plan(seats=seats)).phase("draft").ask("alpha", member="ollama:qwen3")
    builder.retry(
        "alpha",
        2,
        "fallback: ollama:qwen3 failed(net)",
        member="local:smollm2",
        fallback_for="ollama:qwen3",
        fallback_state="failed(net)",
    )
    return builder.answer("alpha", "a", served_by="local:smollm2").answer("beta", "b", served_by="local:smollm2")


@pytest.mark.behaviour("00-fallback-told")
def test_fallback_is_a_notice_in_the_report_and_in_degraded() -> None:
    minutes = with_fallback().end_phase().close().minutes
    assert format_notice_lines(minutes)[0] == format_degraded_lines(minutes)[0]
    assert "instead" not in render_answer(minutes)
    assert format_degraded_lines(minutes)[0] == (
        "alpha requested ollama:qwen3 (could not be reached): local:smollm2 answered instead."
    )
    assert build_report(minutes)["degraded"][0] == {
        "seat": "alpha",
        "phase": "draft",
        "state": "fallback",
        "reason": "requested ollama:qwen3, which failed(net): local:smollm2 answered instead",
    }


@pytest.mark.behaviour("00-fallback-told")
def test_explorers_are_not_reported_as_sharing_a_member() -> None:
    builder = (
        RunBuilder(bench_plan(seat("judge-1", model="sim:m1")))
        .phase("judge")
        .answer("judge-1", "x", served_by="sim:m1")
    )
    builder.phase("judge/judge-1/explore").answer("judge-1-explorer-1", "y", served_by="sim:m1")
    assert format_degraded_lines(builder.close("x", verdict="PASS").minutes) == []


@pytest.mark.behaviour("50-plain-words")
@pytest.mark.parametrize("state", STATE_DESCRIPTIONS)
def test_state_is_described_in_words(state: FinalState) -> None:
    line = format_degraded_lines(
        RunBuilder().phase("draft").answer("alpha", "a").ask("beta").mark_absent("beta", state, "").minutes
    )[1]
    assert line.startswith(f"beta did not answer (scripted:m1: {describe_state(state)}).")
    assert state not in line


@pytest.mark.behaviour("40-grouped-absences")
def test_absences_of_one_phase_and_state_are_one_line() -> None:
    builder = (
        drafts(RunBuilder())
        .phase("improve")
        .ask("alpha", "beta")
        .mark_absent("alpha")
        .mark_absent("beta")
        .end_phase()
        .close()
    )
    assert format_degraded_lines(builder.minutes) == [
        "alpha and beta did not answer in improve (server error: 500 from the server). Their earlier statements count."
    ]


@pytest.mark.behaviour("40-grouped-absences")
def test_a_group_names_its_seats_if_others_answered_and_its_reasons_if_they_differ() -> None:
    builder = drafts(RunBuilder()).phase("improve").answer("alpha", "x").ask("beta", "gamma")
    builder.mark_absent("beta", "timed_out", "no answer within 90 s")
    builder.mark_absent("gamma", "timed_out", "no answer within 300 s").end_phase().close()
    assert format_degraded_lines(builder.minutes) == [
        "beta and gamma did not answer in improve (ran out of time: no answer within 90 s / no answer within 300 s). "
        "Their earlier statements count."
    ]


@pytest.mark.behaviour("40-grouped-absences")
def test_absences_with_another_state_or_phase_have_their_own_line() -> None:
    builder = drafts(RunBuilder()).phase("improve").answer("alpha", "x").ask("beta", "gamma")
    builder.mark_absent("beta", "timed_out", "no answer within 90 s").mark_absent("gamma").end_phase().close()
    assert format_degraded_lines(builder.minutes) == [
        "beta did not answer in improve (scripted:m1: ran out of time: no answer within 90 s). Its earlier statement counts.",
        "gamma did not answer in improve (scripted:m1: server error: 500 from the server). Its earlier statement counts.",
    ]


@pytest.mark.behaviour("40-grouped-absences")
def test_absent_explorers_of_several_judges_are_one_line() -> None:
    builder = RunBuilder(bench_plan()).phase("judge").answer("judge-1", "x").answer("judge-2", "y")
    for n in (1, 2):
        builder.phase(f"judge/judge-{n}/explore/judge-{n}-explorer-1/look-1").ask(f"judge-{n}-explorer-1")
        builder.mark_absent(f"judge-{n}-explorer-1", "timed_out", "no answer within 60 s")
    (line,) = format_degraded_lines(builder.close("x", verdict="PASS").minutes)
    assert line == (
        "judge-1-explorer-1 and judge-2-explorer-1 did not answer in look-up 1 (ran out of time: no answer within 60 s). "
        "judge-1 and judge-2 continue without them."
    )


def test_absent_explorer_is_reported_with_the_consequence_for_its_judge() -> None:
    builder = RunBuilder(bench_plan()).phase("judge").answer("judge-1", "x").answer("judge-2", "y")
    builder.phase("judge/judge-1/explore/judge-1-explorer-1/look-1").ask("judge-1-explorer-1")
    builder.mark_absent("judge-1-explorer-1", "timed_out", "")
    (line,) = format_degraded_lines(builder.close("x", verdict="PASS").minutes)
    assert line == ("judge-1-explorer-1 did not answer in look-up 1 (ran out of time). judge-1 continues without it.")


def test_dead_chair_appears_once() -> None:
    builder = (
        triage(drafts(RunBuilder(plan("adversarial")))).phase("verdict").ask("chair").mark_absent("chair", "timed_out")
    )
    builder.mark_absent("chair", "timed_out", "out since it was timed_out in verdict", since="verdict")
    value = build_report(builder.close("No chair", status="incomplete", stopped="chair").minutes)
    assert len(value["degraded"]) <= 1


def test_seat_that_is_out_for_the_run_is_reported_once() -> None:
    builder = one_absent()
    closed = builder.entries.pop()
    builder.mark_absent("beta", "failed(server)", "out since it was failed(server) in draft", since="draft").add(
        closed.event
    )
    assert [row["seat"] for row in build_report(builder.minutes)["degraded"]] == ["beta"]


def test_seats_of_a_failed_run_are_not_left_waiting() -> None:
    builder = RunBuilder().phase("draft").ask("alpha").mark_absent("alpha").ask("beta")
    states = [
        one["state"] for one in build_report(builder.close("", status="failed", stopped="quorum").minutes)["seats"]
    ]
    assert states == ["failed(server)", "no_answer", "not_asked"]


@pytest.mark.behaviour("40-killed-run")
def test_killed_run_counts_its_calls_and_says_how_far_it_got() -> None:
    builder = RunBuilder().phase("draft").ask("alpha", "beta", "gamma").answer("alpha", "a")
    minutes = builder.minutes
    assert build_report(minutes)["calls"]["made"] == 3
    assert build_report(minutes)["answer"] == "No answer yet: the run stopped in draft, after 1 of 3 seats answered."
    assert not any("weigh it accordingly" in line for line in format_degraded_lines(minutes))
    assert "No answer yet" in render_answer(minutes) and "No answer yet" in render_document(minutes)


@pytest.mark.behaviour("40-killed-run")
def test_calls_of_a_resumed_run_are_those_of_all_its_processes() -> None:
    builder = RunBuilder().phase("draft").ask("alpha", "beta", "gamma").answer("alpha", "a")
    builder.add(ev.Resumed("r7k2")).ask("beta")
    assert build_report(builder.minutes)["calls"]["made"] == 4


def test_lost_quorum_names_its_phase() -> None:
    builder = triage(drafts(RunBuilder(plan("adversarial")))).phase("attack").ask("beta", "gamma")
    builder.mark_absent("beta").mark_absent("gamma").close("digest", status="incomplete", stopped="quorum")
    assert format_degraded_lines(builder.minutes)[0].startswith(
        "INCOMPLETE: too few seats answered in attack (0 of 2) to continue"
    )


def test_tokens_of_a_failed_seat_are_counted() -> None:
    builder = RunBuilder().phase("draft").ask("alpha")
    usage = {"in": 7, "out": 3, "cached": 0}
    builder.add(ev.WasAbsent("draft/alpha", "draft", "alpha", "truncated", "cut off", 2, usage))
    assert build_report(builder.minutes)["tokens"] == usage


# Keys that were refused


def lock_out(builder: RunBuilder, name: str, *vendors: str, kind: str = "auth") -> RunBuilder:
    """Let every vendor that is asked for a seat refuse its key."""
    for vendor in vendors:
        builder.fault(name, kind, f"401: no; check {vendor.upper()}_API_KEY", member=f"{vendor}:m")
    state = cast(FinalState, f"failed({kind})")
    return builder.mark_absent(name, state, "; then ".join(f"{vendor}: 401" for vendor in vendors))


@pytest.mark.behaviour("40-one-message-per-vendor")
def test_if_all_keys_are_refused_each_vendor_has_one_line_with_its_variable() -> None:
    builder = RunBuilder().phase("draft").ask("alpha", "beta", "gamma")
    lock_out(builder, "alpha", "anthropic", "openai", "google")
    lock_out(builder, "beta", "openai", "google", "anthropic")
    lock_out(builder, "gamma", "google", "anthropic", "openai")
    assert format_missing_lines(builder.close("", status="failed", stopped="quorum").minutes) == [
        "FAILED: no seat answered; `council resume r7k2` asks again.",
        "anthropic refused the key: 401: no; check ANTHROPIC_API_KEY.",
        "openai refused the key: 401: no; check OPENAI_API_KEY.",
        "google refused the key: 401: no; check GOOGLE_API_KEY.",
    ]


@pytest.mark.behaviour("40-one-message-per-vendor")
def test_seats_with_one_refused_key_share_a_line_and_the_count() -> None:
    builder = RunBuilder().phase("draft").answer("alpha", "a").ask("beta", "gamma")
    lock_out(builder, "beta", "openai")
    lock_out(builder, "gamma", "openai")
    assert format_missing_lines(builder.end_phase().close().minutes)[0] == (
        "beta and gamma did not answer: openai refused the key: 401: no; check OPENAI_API_KEY. "
        "What follows is from one of three seats, so weigh it accordingly."
    )


@pytest.mark.behaviour("40-one-message-per-vendor")
def test_a_seat_that_no_vendor_serves_is_named_before_the_vendors() -> None:
    builder = RunBuilder().phase("draft").answer("alpha", "a").answer("beta", "b").ask("gamma")
    lock_out(builder, "gamma", "openai", "google")
    assert format_missing_lines(builder.end_phase().close().minutes) == [
        "gamma did not answer: every key was refused. What follows is from two of three seats, so weigh it accordingly.",
        "openai refused the key: 401: no; check OPENAI_API_KEY.",
        "google refused the key: 401: no; check GOOGLE_API_KEY.",
    ]


@pytest.mark.behaviour("50-plain-words")
def test_seats_that_the_budget_does_not_cover_are_described_in_words() -> None:
    builder = RunBuilder().phase("draft").answer("alpha", "a").ask("beta", "gamma")
    for name in ("beta", "gamma"):
        builder.mark_absent(name, "skipped(budget)", "")
    (line, *_) = format_missing_lines(builder.end_phase().close().minutes)
    assert line.startswith(
        "beta and gamma did not answer (not asked, because the budget did not cover the request). What follows is from one"
    )


@pytest.mark.behaviour("50-plain-words")
@pytest.mark.parametrize(
    ("phase", "name"), [("draft", "draft"), ("r2", "round 2"), ("look-1", "look-up 1"), ("answer", "the answer phase")]
)
def test_phases_are_named_in_words(phase: str, name: str) -> None:
    builder = RunBuilder(plan("any", ("a", "b"))).phase("first").answer("a", "x").answer("b", "y").end_phase()
    builder.phase(phase).answer("a", "x").ask("b").mark_absent("b", "timed_out", "")
    line = format_missing_lines(builder.end_phase().close().minutes)[0]
    assert line == f"b did not answer in {name} (scripted:m1: ran out of time). Its earlier statement counts."


@pytest.mark.behaviour("50-plain-words")
def test_many_absent_seats_are_counted() -> None:
    names = tuple(f"judge-{n}" for n in range(1, 9))
    builder = RunBuilder(plan("any", names)).phase("r1").answer(names[0], "x").ask(*names[1:])
    for name in names[1:]:
        builder.mark_absent(name, "timed_out", "")
    (line,) = format_missing_lines(builder.end_phase().close().minutes)
    assert line.startswith("seven seats did not answer (ran out of time). What follows is from one of eight seats")


@pytest.mark.behaviour("50-page-failure-once")
@pytest.mark.parametrize(
    ("stopped", "line"),
    [
        ("cancelled", "Cancelled before the last step; resume it to continue from here."),
        ("budget", "Stopped by the budget; raise the cap (`max_cost`) to continue."),
        ("quorum", "Too few seats answered in draft (1 of 1) to continue; resume it to ask the absent ones again."),
        ("chair", "No chair was available; below is a digest of the statements, without a ruling."),
    ],
)
def test_beside_a_button_the_reason_of_an_incomplete_run_names_no_command(stopped: str, line: str) -> None:
    builder = RunBuilder().phase("draft").answer("alpha", "a").end_phase()
    minutes = builder.close("a", status="incomplete", stopped=stopped).minutes
    assert format_page_lines(minutes)[0] == line
    assert "`council " not in " ".join(format_page_lines(minutes))


@pytest.mark.behaviour("50-page-failure-once")
def test_beside_a_button_a_failure_is_told_by_its_absences_alone() -> None:
    builder = RunBuilder().phase("draft").ask("alpha").mark_absent("alpha", "failed(server)", "500 from the server")
    minutes = builder.close("", status="failed", stopped="quorum", reason="no seat answered").minutes
    (line,) = format_page_lines(minutes)
    assert line.startswith("alpha did not answer in draft (") and line.count("500 from the server") == 1
    failed = RunBuilder().close("", status="failed", stopped="interrupted").minutes
    assert format_page_lines(failed)[0] == "Interrupted before any seat answered; resume it to continue from here."
