"""The report object: keys, order, cost and degradation."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

import jsonschema
import pytest

from council import events as ev
from council.engine.degraded import format_degraded_lines
from council.engine.minutes import Minutes
from council.render.report import build_report, dump_report
from tests.render.runs import RunBuilder, adversarial, collaborative, consensus, drafts, one_absent, plan, seat, triage

KEYS = [
    "schema", "run", "name", "status", "task", "protocol", "question", "target", "verdict", "outcome", "confidence", "trust",
    "answer", "tail", "seats", "chair", "consensus", "disagreements", "insights", "blind_spots", "findings", "dissent", "shifts", "sources", "claims",
    "degraded", "quorum", "calls", "tokens", "cost", "seconds", "report_path",
]  # fmt: skip
TRIAGE_KEYS = ["leader", "leader_reason", "agreed", "contested", "rulings"]
SEAT_KEYS = [
    "name", "label", "role", "perspective", "model", "served_by", "vendor", "state", "verdict", "confidence", "file", "tokens",
    "cost", "attempts", "seconds",
]  # fmt: skip


def schema(name: str) -> dict[str, Any]:
    text = (files("council") / "data" / "schemas" / f"{name}.json").read_text(encoding="utf-8")
    value: dict[str, Any] = json.loads(text)
    return value


def interrupted() -> RunBuilder:
    builder = RunBuilder().phase("draft").ask("alpha", "beta", "gamma").answer("alpha", "alpha drafts this.")
    return builder.close("", status="incomplete", stopped="interrupted", made=3)


def failed() -> RunBuilder:
    builder = RunBuilder().phase("draft")
    for name in ("alpha", "beta", "gamma"):
        builder.ask(name).mark_absent(name, "failed(auth)", "401: the key was refused", 1)
    return builder.close("", status="failed", stopped="quorum", made=3)


def priced() -> RunBuilder:
    builder = RunBuilder(plan(prices={"sim:alpha": 3.0, "sim:beta": 2.0, "sim:gamma": 1.0})).phase("draft")
    for name in ("alpha", "beta", "gamma"):
        builder.answer(name, "x", served_by=f"sim:{name}")
    return builder.end_phase().close()


EVERY_ENDING = [collaborative, adversarial, consensus, one_absent, interrupted, failed, priced, RunBuilder]


@pytest.mark.behaviour("00-report-object")
@pytest.mark.parametrize("build", EVERY_ENDING)
def test_report_has_every_key_in_the_order_of_the_spec(build: Any) -> None:
    value = build_report(build().minutes)
    extra = TRIAGE_KEYS if "leader" in value else []
    extra = [*extra, *(["strongest"] if build is priced else []), *(["stops"] if build is consensus else [])]
    assert list(value) == [*KEYS[: KEYS.index("degraded")], *extra, *KEYS[KEYS.index("degraded") :]]
    assert ("leader" in value) == (build in (adversarial, consensus))
    assert value["chair"]
    assert all(list(seat) == SEAT_KEYS for seat in [*value["seats"], value["chair"]])


@pytest.mark.behaviour("00-report-object", "00-published-schemas")
@pytest.mark.parametrize("build", EVERY_ENDING)
def test_report_matches_its_published_schema(build: Any) -> None:
    jsonschema.Draft202012Validator(schema("report")).validate(build_report(build().minutes))


@pytest.mark.behaviour("00-published-schemas")
@pytest.mark.parametrize("name", ["plan", "report", "error"])
def test_published_schema_is_itself_valid_and_requires_the_keys_of_the_spec(name: str) -> None:
    jsonschema.Draft202012Validator.check_schema(schema(name))
    assert schema(name)["properties"]["schema"]["const"] == f"council.{name}/1"


@pytest.mark.behaviour("00-published-schemas")
def test_plan_and_error_match_their_schemas() -> None:
    jsonschema.Draft202012Validator(schema("plan")).validate(plan("adversarial"))
    error = {"schema": "council.error/1", "error": 'no run "r9"', "exit": 2}
    jsonschema.Draft202012Validator(schema("error")).validate(error)


@pytest.mark.parametrize("key", [key for key in KEYS if key not in ("chair", "claims", "tail", "trust")])
def test_report_without_one_of_its_keys_breaks_the_schema(key: str) -> None:
    value = dict(build_report(collaborative().minutes))
    del value[key]
    assert not jsonschema.Draft202012Validator(schema("report")).is_valid(value)


@pytest.mark.behaviour("40-report-same-bytes")
def test_report_rebuilt_from_the_same_entries_is_the_same_bytes() -> None:
    builder = adversarial()
    assert dump_report(build_report(builder.minutes)) == dump_report(build_report(Minutes.fold(list(builder.entries))))
    assert dump_report(build_report(builder.minutes)).endswith(b"}\n")


def test_times_of_a_report_are_in_milliseconds() -> None:
    builder = RunBuilder().phase("draft").ask("alpha")
    builder.at += 1.23456
    value = build_report(builder.answer("alpha", "Tabs.", seconds=2.34567).end_phase().close().minutes)
    assert (value["seconds"], value["seats"][0]["seconds"]) == (5.235, 2.346)


def test_paths_of_findings_are_those_in_the_repository() -> None:
    """A run in the folder `shop` has paths relative to it, and so have its judges."""
    found = {"path": "cart.py", "location": "cart.py:7", "ref": "cart.py:9", "problem": "cart.py is long"}
    said = [
        {"seat": "judge-1", "location": "cart.py:8"},
        {"seat": "judge-2", "location": "order.py:1"},
        {"seat": "judge-3"},
    ]
    kept = {"path": "", "problem": "no tests"}
    findings = [found, found | {"by_judge": said}, kept, "a text"]
    value = build_report(RunBuilder(plan(packet={"prefix": "shop/"})).close(findings=findings).minutes)
    moved = found | {"path": "shop/cart.py", "location": "shop/cart.py:7", "ref": "shop/cart.py:9"}
    assert value["findings"] == [
        moved,
        moved | {"by_judge": [said[0] | {"location": "shop/cart.py:8"}, *said[1:]]},
        kept,
        "a text",
    ]


def test_report_keeps_text_of_any_language_readable() -> None:
    assert "Leerzeichen – natürlich".encode() in dump_report(
        build_report(RunBuilder().close("Leerzeichen – natürlich").minutes)
    )


@pytest.mark.behaviour("40-terminal-sequences")
def test_report_carries_no_control_characters_and_no_broken_unicode() -> None:
    text = dump_report(build_report(RunBuilder().close("a\x1b[31mb\x9b1mc\ud800d").minutes)).decode()
    assert '"answer": "abc\ufffdd"' in text


def test_verdict_fields_come_from_the_ruling() -> None:
    value = build_report(adversarial().minutes)
    assert (value["outcome"], value["confidence"], value["verdict"]) == ("MODIFIED", "MEDIUM", None)
    assert value["answer"] == "Mostly spaces."


def test_run_that_never_closed_is_incomplete() -> None:
    assert build_report(RunBuilder().phase("draft").minutes)["status"] == "incomplete"


def test_tokens_are_summed_over_seats_and_chair() -> None:
    assert build_report(collaborative().minutes)["tokens"] == {"in": 700, "out": 140, "cached": 35}


def test_quorum_counts_seats_that_spoke_and_ranking_needs_two() -> None:
    assert build_report(one_absent().minutes)["quorum"] == {"needed": 1, "ok": 2, "asked": 3}
    assert build_report(RunBuilder(plan("ranking")).minutes)["quorum"]["needed"] == 2


def test_absent_seat_is_listed_with_phase_state_and_reason() -> None:
    value = build_report(one_absent().minutes)
    assert value["degraded"] == [
        {"seat": "beta", "phase": "draft", "state": "failed(server)", "reason": "500 from the server"}
    ]
    assert [seat["state"] for seat in value["seats"]] == ["ok", "failed(server)", "ok"]


def test_notice_of_the_plan_is_degraded_without_a_seat() -> None:
    value = build_report(collaborative(plan(notices=["The seats share one model."])).minutes)
    assert value["degraded"][0]["seat"] is None
    assert value["degraded"][0]["reason"] == "The seats share one model."


def test_helpers_that_are_not_in_the_plan_are_no_seats_of_the_report() -> None:
    builder = RunBuilder().phase("r1").answer("alpha/explorer-1", "found it")
    assert [seat["name"] for seat in build_report(builder.minutes)["seats"]] == ["alpha", "beta", "gamma"]


def test_seat_shows_verdict_and_confidence_of_its_last_typed_reply() -> None:
    builder = RunBuilder().phase("r1").answer("alpha", "x", reply={"verdict": "FAIL", "confidence": "LOW"})
    builder.phase("r2").answer("alpha", "y", reply={"verdict": "PASS", "confidence": "HIGH"})
    first = build_report(builder.minutes)["seats"][0]
    assert (first["verdict"], first["confidence"]) == ("PASS", "HIGH")


# Cost


def paid_plan() -> Any:
    seats = [seat("alpha"), seat("beta", model="sim:m1", vendor="sim"), seat("gamma")]
    return plan(seats=seats)


def test_council_of_free_members_costs_nothing() -> None:
    assert build_report(collaborative().minutes)["cost"] == {"usd": 0.0, "estimated": False, "unpriced": []}


@pytest.mark.behaviour("40-unknown-price-is-unknown")
def test_unknown_price_is_null_and_names_the_member() -> None:
    builder = RunBuilder(paid_plan()).phase("draft").answer("alpha", "a").answer("beta", "b", served_by="sim:m1")
    value = build_report(builder.minutes)
    assert value["cost"] == {"usd": None, "estimated": False, "unpriced": ["sim:m1"]}
    assert [seat["cost"] for seat in value["seats"]] == [0.0, None, 0.0]


@pytest.mark.behaviour("40-unknown-price-is-unknown")
def test_failed_attempt_that_may_have_been_billed_makes_the_cost_unknown() -> None:
    builder = RunBuilder(paid_plan()).phase("draft").answer("alpha", "a").ask("beta", member="sim:m1")
    builder.fault("beta", "server", "500", member="sim:m1").mark_absent("beta")
    assert build_report(builder.minutes)["cost"]["unpriced"] == ["sim:m1"]


def test_refused_connection_is_never_billed() -> None:
    builder = RunBuilder(paid_plan()).phase("draft").answer("alpha", "a").ask("beta", member="sim:m1")
    builder.fault("beta", "net", "refused", member="sim:m1").mark_absent("beta", "failed(net)", "refused")
    assert build_report(builder.minutes)["cost"]["usd"] == 0.0


def test_free_fallback_does_not_hide_a_paid_one() -> None:
    builder = RunBuilder().phase("draft").answer("alpha", "a", served_by="openai:gpt-5.2")
    assert build_report(builder.minutes)["cost"]["unpriced"] == ["openai:gpt-5.2"]


# Degradation lines above the answer


@pytest.mark.behaviour("40-missing-said-above-the-answer")
def test_absence_is_shown_once_with_member_reason_and_count_of_seats() -> None:
    assert format_degraded_lines(one_absent().minutes) == [
        "beta did not answer (scripted:m1: server error: 500 from the server). "
        "What follows is from two of three seats, so weigh it accordingly."
    ]


def test_run_without_faults_has_no_degradation_lines() -> None:
    assert format_degraded_lines(collaborative().minutes) == []


@pytest.mark.behaviour("00-banner-below-80-percent")
@pytest.mark.parametrize(("absent", "banner"), [(1, False), (2, True)])
def test_banner_appears_below_80_percent_of_the_asked_seats(absent: int, banner: bool) -> None:
    names = ("a", "b", "c", "d", "e")
    builder = RunBuilder(plan("any", names)).phase("r1")
    for name in names[absent:]:
        builder.answer(name, "yes")
    for name in names[:absent]:
        builder.ask(name).mark_absent(name)
    (line,) = format_degraded_lines(builder.close().minutes)
    count = f"What follows is from {'three' if banner else 'four'} of five seats"
    assert line.endswith(f"{count}, so weigh it accordingly." if banner else f"{count}.")


def test_count_of_seats_is_shown_once_when_several_are_absent() -> None:
    builder = RunBuilder().phase("draft").answer("alpha", "a")
    for name in ("beta", "gamma"):
        builder.ask(name).mark_absent(name)
    lines = format_degraded_lines(builder.end_phase().close().minutes)
    assert sum("from one of three seats" in line and line.startswith("beta and gamma did not") for line in lines) == 1
    assert any(line.startswith("Only alpha drafted") for line in lines)


def test_seat_that_fails_after_its_draft_keeps_its_draft() -> None:
    builder = drafts(RunBuilder()).phase("improve").ask("beta").mark_absent("beta").end_phase().close()
    (line,) = format_degraded_lines(builder.minutes)
    assert line.endswith(" Its earlier statement counts.")


def test_shared_family_is_shown_above_the_answer() -> None:
    notice = "alpha and beta share a family, so their agreement means less."
    assert format_degraded_lines(collaborative(plan(notices=[notice])).minutes) == [notice]


def test_seats_that_fall_back_to_one_member_are_reported() -> None:
    seats = [seat("alpha", model="sim:m1"), seat("beta", model="sim:m2"), seat("gamma", model="sim:m3")]
    builder = RunBuilder(plan(seats=seats)).phase("draft")
    builder.answer("alpha", "a", served_by="sim:m1").answer("beta", "b", served_by="sim:m1").answer(
        "gamma", "c", served_by="sim:m3"
    )
    assert format_degraded_lines(builder.close().minutes) == [
        "beta requested sim:m2 (did not answer): sim:m1 answered instead.",
        "alpha and beta were all served by sim:m1, so their agreement means less.",
    ]


@pytest.mark.behaviour("20-incomplete-marker")
def test_interrupted_run_is_marked_and_says_how_to_continue() -> None:
    first = format_degraded_lines(interrupted().minutes)[0]
    assert first == "INCOMPLETE: interrupted before the last step; `council resume r7k2` continues from here."


def test_running_run_is_marked_incomplete() -> None:
    assert format_degraded_lines(RunBuilder().minutes)[0].startswith("INCOMPLETE: the run has not ended")


@pytest.mark.behaviour("10-no-chair-digest")
def test_digest_without_a_chair_is_called_a_digest() -> None:
    builder = triage(drafts(RunBuilder(plan("adversarial")))).phase("verdict").ask("chair").mark_absent("chair")
    lines = format_degraded_lines(builder.close("No chair", status="incomplete", stopped="chair").minutes)
    assert "digest of the statements" in lines[0]
    assert lines[1] == "the chair did not answer in verdict (scripted:m1: server error: 500 from the server)."


def test_single_draft_of_adversarial_is_reported_once_by_the_protocol() -> None:
    builder = RunBuilder(plan("adversarial")).phase("draft").answer("alpha", "a").end_phase()
    builder.close("A.", status="incomplete", incomplete="one draft only, there was no attacker")
    lines = format_degraded_lines(builder.minutes)
    assert lines[0] == "INCOMPLETE: one draft only, there was no attacker."
    assert sum("draft" in line for line in lines) == 1


def test_run_stopped_before_any_answer_names_the_cause() -> None:
    builder = RunBuilder().phase("draft").ask("alpha").close("", status="failed", stopped="interrupted")
    assert format_degraded_lines(builder.minutes) == [
        "FAILED: interrupted before any seat answered; `council resume r7k2` asks again."
    ]


@pytest.mark.behaviour("40-one-message-per-vendor")
def test_failed_run_says_so_and_why_each_seat_is_missing() -> None:
    lines = format_degraded_lines(failed().minutes)
    assert lines[0] == "FAILED: no seat answered; `council resume r7k2` asks again."
    assert [line.partition(": ")[0] for line in lines[1:]] == ["alpha, beta and gamma did not answer"]
    assert lines[1].partition(": ")[2].startswith("scripted refused the key: ")


def test_reason_stays_on_one_line_without_control_characters() -> None:
    builder = (
        RunBuilder()
        .phase("draft")
        .answer("alpha", "a")
        .ask("beta")
        .mark_absent("beta", reason="boom\n\x1b]0;title\x07 bang")
    )
    assert "boom bang" in format_degraded_lines(builder.close().minutes)[0]


def test_seat_absent_before_a_resume_is_not_reported_after_it_answered() -> None:
    builder = RunBuilder().phase("draft").answer("alpha", "a").answer("gamma", "c").ask("beta").mark_absent("beta")
    builder.add(ev.Resumed("r7k2")).ask("beta").answer("beta", "b").end_phase().close()
    assert format_degraded_lines(builder.minutes) == []
