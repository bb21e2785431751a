"""The report object: its keys, its order, what it says of money and of who is missing."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

import jsonschema
import pytest

from council import events as ev
from council.minutes import Minutes
from council.render.report import degraded_lines, dump, report

from .entries import Story, adversarial, collaborative, consensus, drafts, one_absent, plan, seat, triage

KEYS = [
    "schema", "run", "name", "status", "task", "protocol", "question", "target", "verdict", "outcome", "confidence", "answer",
    "seats", "chair", "consensus", "disagreements", "insights", "blind_spots", "findings", "dissent", "shifts", "sources", "claims",
    "degraded", "quorum", "calls", "tokens", "cost", "seconds", "report_path",
]  # fmt: skip
SEAT_KEYS = [
    "name", "label", "role", "perspective", "model", "served_by", "vendor", "state", "verdict", "confidence", "file", "tokens",
    "cost", "attempts", "seconds",
]  # fmt: skip


def schema(name: str) -> dict[str, Any]:
    text = (files("council") / "data" / "schemas" / f"{name}.json").read_text(encoding="utf-8")
    value: dict[str, Any] = json.loads(text)
    return value


def interrupted() -> Story:
    story = Story().phase("draft").asked("alpha", "beta", "gamma").said("alpha", "alpha drafts this.")
    return story.closed("", status="incomplete", stopped="interrupted", made=3)


def failed() -> Story:
    story = Story().phase("draft")
    for name in ("alpha", "beta", "gamma"):
        story.asked(name).absent(name, "failed(auth)", "401: the key was refused", 1)
    return story.closed("", status="failed", stopped="quorum", made=3)


EVERY_ENDING = [collaborative, adversarial, consensus, one_absent, interrupted, failed, Story]


@pytest.mark.behaviour("00-report-object")
@pytest.mark.parametrize("tell", EVERY_ENDING)
def test_report_has_every_key_in_the_order_of_the_spec(tell: Any) -> None:
    value = report(tell().minutes)
    assert list(value) == KEYS
    assert all(list(seat) == SEAT_KEYS for seat in [*value["seats"], value["chair"]])


@pytest.mark.behaviour("00-report-object", "00-published-schemas")
@pytest.mark.parametrize("tell", EVERY_ENDING)
def test_report_obeys_its_published_schema(tell: Any) -> None:
    jsonschema.Draft202012Validator(schema("report")).validate(report(tell().minutes))


@pytest.mark.behaviour("00-published-schemas")
@pytest.mark.parametrize("name", ["plan", "report", "error"])
def test_published_schema_is_itself_valid_and_requires_the_keys_of_the_spec(name: str) -> None:
    jsonschema.Draft202012Validator.check_schema(schema(name))
    assert schema(name)["properties"]["schema"] == {"const": f"council.{name}/1"}


@pytest.mark.behaviour("00-published-schemas")
def test_plan_and_error_obey_their_schemas() -> None:
    jsonschema.Draft202012Validator(schema("plan")).validate(plan("adversarial"))
    error = {"schema": "council.error/1", "error": 'no run "r9"', "exit": 2}
    jsonschema.Draft202012Validator(schema("error")).validate(error)


@pytest.mark.parametrize("key", [key for key in KEYS if key not in ("chair", "claims")])
def test_report_without_one_of_its_keys_breaks_the_schema(key: str) -> None:
    value = report(collaborative().minutes)
    del value[key]
    assert not jsonschema.Draft202012Validator(schema("report")).is_valid(value)


@pytest.mark.behaviour("40-report-same-bytes")
def test_report_rebuilt_from_the_same_entries_is_the_same_bytes() -> None:
    story = adversarial()
    assert dump(report(story.minutes)) == dump(report(Minutes.fold(list(story.entries))))
    assert dump(report(story.minutes)).endswith(b"}\n")


def test_report_keeps_words_of_any_language_readable() -> None:
    assert "Leerzeichen – natürlich".encode() in dump(report(Story().closed("Leerzeichen – natürlich").minutes))


@pytest.mark.behaviour("40-terminal-sequences")
def test_report_carries_no_control_characters_and_no_broken_unicode() -> None:
    text = dump(report(Story().closed("a\x1b[31mb\x9b1mc\ud800d").minutes)).decode()
    assert '"answer": "abc\ufffdd"' in text


def test_verdict_fields_come_from_the_ruling() -> None:
    value = report(adversarial().minutes)
    assert (value["outcome"], value["confidence"], value["verdict"]) == ("MODIFIED", "MEDIUM", None)
    assert value["answer"] == "Mostly spaces."


def test_run_that_never_closed_is_incomplete() -> None:
    assert report(Story().phase("draft").minutes)["status"] == "incomplete"


def test_tokens_are_summed_over_seats_and_chair() -> None:
    assert report(collaborative().minutes)["tokens"] == {"in": 700, "out": 140, "cached": 35}


def test_quorum_counts_seats_that_spoke_and_ranking_needs_two() -> None:
    assert report(one_absent().minutes)["quorum"] == {"needed": 1, "ok": 2, "asked": 3}
    assert report(Story(plan("ranking")).minutes)["quorum"]["needed"] == 2


def test_absent_seat_is_listed_with_phase_state_and_reason() -> None:
    value = report(one_absent().minutes)
    assert value["degraded"] == [
        {"seat": "beta", "phase": "draft", "state": "failed(server)", "reason": "500 from the server"}
    ]
    assert [seat["state"] for seat in value["seats"]] == ["ok", "failed(server)", "ok"]


def test_notice_of_the_plan_is_degraded_without_a_seat() -> None:
    value = report(collaborative(plan(notices=["The seats are lenses on one model."])).minutes)
    assert value["degraded"][0]["seat"] is None
    assert value["degraded"][0]["reason"] == "The seats are lenses on one model."


def test_helpers_that_are_not_in_the_plan_are_no_seats_of_the_report() -> None:
    story = Story().phase("r1").said("alpha/explorer-1", "found it")
    assert [seat["name"] for seat in report(story.minutes)["seats"]] == ["alpha", "beta", "gamma"]


def test_seat_shows_verdict_and_confidence_of_its_last_typed_reply() -> None:
    story = Story().phase("r1").said("alpha", "x", reply={"verdict": "FAIL", "confidence": "LOW"})
    story.phase("r2").said("alpha", "y", reply={"verdict": "PASS", "confidence": "HIGH"})
    first = report(story.minutes)["seats"][0]
    assert (first["verdict"], first["confidence"]) == ("PASS", "HIGH")


# Money


def paid_plan() -> dict[str, Any]:
    seats = [seat("alpha"), seat("beta", model="sim:m1", vendor="sim"), seat("gamma")]
    return plan(seats=seats)


def test_council_of_free_members_costs_nothing() -> None:
    assert report(collaborative().minutes)["cost"] == {"usd": 0.0, "estimated": False, "unpriced": []}


@pytest.mark.behaviour("40-unknown-price-is-unknown")
def test_unknown_price_is_null_and_names_the_member() -> None:
    story = Story(paid_plan()).phase("draft").said("alpha", "a").said("beta", "b", served_by="sim:m1")
    value = report(story.minutes)
    assert value["cost"] == {"usd": None, "estimated": False, "unpriced": ["sim:m1"]}
    assert [seat["cost"] for seat in value["seats"]] == [0.0, None, 0.0]


@pytest.mark.behaviour("40-unknown-price-is-unknown")
def test_failed_attempt_that_may_have_been_billed_makes_the_cost_unknown() -> None:
    story = Story(paid_plan()).phase("draft").said("alpha", "a").asked("beta", member="sim:m1")
    story.faulted("beta", "server", "500", member="sim:m1").absent("beta")
    assert report(story.minutes)["cost"]["unpriced"] == ["sim:m1"]


def test_refused_connection_is_never_billed() -> None:
    story = Story(paid_plan()).phase("draft").said("alpha", "a").asked("beta", member="sim:m1")
    story.faulted("beta", "net", "refused", member="sim:m1").absent("beta", "failed(net)", "refused")
    assert report(story.minutes)["cost"]["usd"] == 0.0


def test_free_fallback_does_not_hide_a_paid_one() -> None:
    story = Story().phase("draft").said("alpha", "a", served_by="openai:gpt-5.2")
    assert report(story.minutes)["cost"]["unpriced"] == ["openai:gpt-5.2"]


# The sentences above the answer


@pytest.mark.behaviour("40-missing-said-above-the-answer")
def test_absence_is_said_with_phase_reason_and_count_of_seats() -> None:
    first, banner = degraded_lines(one_absent().minutes)
    assert first == (
        "beta did not answer in draft: its server failed (failed(server)): 500 from the server; "
        "the answer below is from 2 of 3 seats."
    )
    assert banner.startswith("BELOW 80 %: 2 of 3 seats answered")


def test_undisturbed_run_has_nothing_to_say() -> None:
    assert degraded_lines(collaborative().minutes) == []


@pytest.mark.behaviour("00-banner-below-80-percent")
@pytest.mark.parametrize(("absent", "banner"), [(1, False), (2, True)])
def test_banner_stands_below_four_fifths_of_the_asked_seats(absent: int, banner: bool) -> None:
    names = ("a", "b", "c", "d", "e")
    story = Story(plan("any", names)).phase("r1")
    for name in names[absent:]:
        story.said(name, "yes")
    for name in names[:absent]:
        story.asked(name).absent(name)
    assert any("BELOW 80 %" in line for line in degraded_lines(story.closed().minutes)) is banner


def test_count_of_seats_is_said_once_when_several_are_absent() -> None:
    story = Story().phase("draft").said("alpha", "a")
    for name in ("beta", "gamma"):
        story.asked(name).absent(name)
    lines = degraded_lines(story.ended().closed().minutes)
    assert sum("1 of 3 seats." in line and "did not answer" in line for line in lines) == 1
    assert any(line.startswith("Only alpha drafted") for line in lines)


def test_seat_that_fails_after_its_draft_keeps_its_draft() -> None:
    story = drafts(Story()).phase("improve").asked("beta").absent("beta").ended().closed()
    (line,) = degraded_lines(story.minutes)
    assert line.endswith("; what it said before stands.")


def test_shared_family_is_said_above_the_answer() -> None:
    notice = "alpha and beta share a family: they are lenses on one model."
    assert degraded_lines(collaborative(plan(notices=[notice])).minutes) == [notice]


def test_seats_that_fall_back_to_one_member_are_called_lenses_on_one_model() -> None:
    seats = [seat("alpha", model="sim:m1"), seat("beta", model="sim:m2"), seat("gamma", model="sim:m3")]
    story = Story(plan(seats=seats)).phase("draft")
    story.said("alpha", "a", served_by="sim:m1").said("beta", "b", served_by="sim:m1").said(
        "gamma", "c", served_by="sim:m3"
    )
    assert degraded_lines(story.closed().minutes) == [
        "beta asked sim:m2: did not answer; sim:m1 took its place.",
        "alpha and beta were all served by sim:m1: they are lenses on one model.",
    ]


@pytest.mark.behaviour("20-incomplete-marker")
def test_interrupted_run_is_marked_and_says_how_to_go_on() -> None:
    first = degraded_lines(interrupted().minutes)[0]
    assert first == "INCOMPLETE: interrupted before the last step; `council resume r7k2` goes on from here."


def test_running_run_is_marked_incomplete() -> None:
    assert degraded_lines(Story().minutes)[0].startswith("INCOMPLETE: the run has not ended")


@pytest.mark.behaviour("10-no-chair-digest")
def test_digest_without_a_chair_is_called_a_digest() -> None:
    story = triage(drafts(Story(plan("adversarial")))).phase("verdict").asked("chair").absent("chair")
    lines = degraded_lines(story.closed("No chair", status="incomplete", stopped="chair").minutes)
    assert "digest of the statements" in lines[0]
    assert lines[1] == "the chair did not answer in verdict: its server failed (failed(server)): 500 from the server."


def test_single_draft_under_adversarial_is_said_once_in_the_words_of_the_protocol() -> None:
    story = Story(plan("adversarial")).phase("draft").said("alpha", "a").ended()
    story.closed("A.", status="incomplete", incomplete="one draft only, nobody was there to attack it")
    lines = degraded_lines(story.minutes)
    assert lines[0] == "INCOMPLETE: one draft only, nobody was there to attack it."
    assert sum("draft" in line for line in lines) == 1


def test_run_stopped_before_anyone_answered_says_by_what() -> None:
    story = Story().phase("draft").asked("alpha").closed("", status="failed", stopped="interrupted")
    assert degraded_lines(story.minutes) == [
        "FAILED: interrupted before any seat answered; `council resume r7k2` asks again."
    ]


@pytest.mark.behaviour("40-one-message-per-vendor")
def test_failed_run_says_so_and_why_each_seat_is_missing() -> None:
    lines = degraded_lines(failed().minutes)
    assert lines[0] == "FAILED: no seat answered; `council resume r7k2` asks again."
    assert [line.split()[0] for line in lines[1:]] == ["alpha,"]
    shared = "alpha, beta and gamma did not answer: {} refused the key or login they share (failed(auth)): "
    assert lines[1].startswith(shared.format(failed().minutes.seats["alpha"].vendor))


def test_foreign_reason_stays_on_one_line_without_control_characters() -> None:
    story = Story().phase("draft").said("alpha", "a").asked("beta").absent("beta", reason="boom\n\x1b]0;title\x07 bang")
    assert "boom bang" in degraded_lines(story.closed().minutes)[0]


def test_seat_absent_before_a_resume_is_no_longer_missing_once_it_spoke() -> None:
    story = Story().phase("draft").said("alpha", "a").said("gamma", "c").asked("beta").absent("beta")
    story.tell(ev.Resumed("r7k2")).asked("beta").said("beta", "b").ended().closed()
    assert degraded_lines(story.minutes) == []
