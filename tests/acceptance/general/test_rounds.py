"""Rounds of the general protocol at a real endpoint: seats, order and prompts."""

from __future__ import annotations

import re
from typing import Any

import pytest

from council.wording import load_wording
from tests.acceptance.general.fake_general import (
    MEMBERS,
    FakeGeneral,
    answer,
    claim,
    groups,
    position,
    source,
    synthesis,
    told,
)
from tests.acceptance.helpers import wait_for_exit
from tests.fake_provider import Reply

TOPIC = "Should it move to cold storage?"


def opposed(general: FakeGeneral) -> None:
    """Two seats oppose each other on one topic; the third is silent on it."""
    general.says |= {
        "r1/generalist": position(claim(TOPIC, "yes", text="Moving saves four fifths.")),
        "r1/skeptic": position(claim(TOPIC, "no", text="Moving loses eleven hours a restore.")),
        "r1/domain_expert": position(claim("tape rotation")),
        "synthesise": synthesis("It depends on restores.", told("D1", "moving saves", "restores are slow")),
    }


@pytest.mark.behaviour("30-six-calls-without-disagreement", "30-advisory")
def test_no_disagreement_makes_six_calls_and_no_second_round(general: FakeGeneral) -> None:
    general.documents()
    done = general.ask("--search", "files:docs", search="")
    assert done.code == 0
    assert general.asked == ["research/chair", *(sorted_r1(general)), "clerk/chair", "synthesise/chair"]
    assert done.json["calls"]["made"] == 6
    assert done.json["disagreements"] == []
    assert done.json["verdict"] is None


def sorted_r1(general: FakeGeneral) -> list[str]:
    return [key for key in general.asked if key.startswith("r1/")]


@pytest.mark.behaviour("003-same-context", "30-round-one-apart")
def test_round_one_has_the_same_numbered_context_and_no_other_answers(general: FakeGeneral) -> None:
    general.documents()
    for seat in MEMBERS:
        general.says[f"r1/{seat}"] = position(claim("moving"), response=f"words-of-{seat}")
    general.ask("--search", "files:docs", search="")
    prompts = general.prompts("r1")
    assert set(prompts) == set(MEMBERS)
    contexts = {text[text.index("RESEARCH CONTEXT") : text.index("# Your part")] for text in prompts.values()}
    contexts = {re.sub(r"^[0-9a-f]{12}>>>$", "", text, flags=re.MULTILINE) for text in contexts}  # differs by reader
    assert len(contexts) == 1
    (context,) = contexts
    assert "RESEARCH CONTEXT\n================\n[1] " in context
    assert " — docs/" in context
    assert not any(f"words-of-{seat}" in text for text in prompts.values() for seat in MEMBERS)


@pytest.mark.behaviour("003-parallel-independent")
def test_round_one_is_one_parallel_wave(general: FakeGeneral) -> None:
    gate = general.workspace.provider.hold(lambda seen: general.who(seen)[0] == "r1")
    process = general.workspace.process("--protocol", "general", "--no-search", "--json", "Move the archive?")
    held = {seen.model for seen in gate.wait(count=3)}
    assert held == set(MEMBERS)
    assert general.asked == [f"r1/{seen.model}" for seen in gate.held]
    gate.release()
    assert wait_for_exit(process).code == 0
    assert general.asked[3:] == ["clerk/chair", "synthesise/chair"]


@pytest.mark.behaviour("003-only-disputing-agents", "30-round-two-disputants-alone")
def test_two_seats_that_oppose_are_asked_again_and_the_silent_third_is_not(general: FakeGeneral) -> None:
    opposed(general)
    done = general.ask()
    assert sorted(key for key in general.asked if key.startswith("r2/")) == ["r2/generalist", "r2/skeptic"]
    assert done.code == 0


@pytest.mark.behaviour("003-round-two-material")
def test_a_disputant_gets_its_own_first_answer_the_topic_the_opposing_position_and_the_same_context(
    general: FakeGeneral,
) -> None:
    general.documents()
    opposed(general)
    general.ask("--search", "files:docs", search="")
    prompt = general.prompts("r2")["generalist"]
    assert "Moving saves four fifths." in prompt
    assert TOPIC in prompt
    assert "Moving loses eleven hours a restore." in prompt
    assert prompt.count("RESEARCH CONTEXT\n================\n[1]") == 1
    assert "tape rotation" not in prompt


@pytest.mark.behaviour("003-persisting-told", "30-both-sides-in-the-answer")
def test_an_open_disagreement_is_in_the_answer_with_both_sides(general: FakeGeneral) -> None:
    opposed(general)
    done = general.ask()
    text = done.json["answer"]
    assert f'xperts disagree on "{TOPIC}"' in text
    assert "The case for moving saves." in text
    assert "The case for restores are slow." in text
    (dispute,) = done.json["disagreements"]
    assert {side["seat"] for side in dispute["positions"]} == {"generalist", "skeptic"}
    assert done.json["confidence"] == "CONTESTED"


@pytest.mark.behaviour("30-concede-resolves")
def test_a_typed_concession_resolves_the_disagreement(general: FakeGeneral) -> None:
    opposed(general)
    general.says |= {
        "r2/skeptic": answer("CONCEDE", "CONCEDE: the drill was mismeasured, source 2 says so."),
        "synthesise": synthesis(),
    }
    report = general.ask().json
    assert report["disagreements"] == []
    assert "disagree" not in report["answer"].lower()
    shift = next(one for one in report["shifts"] if one["seat"] == "skeptic")
    assert (shift["to"], shift["changed"], shift["weak"]) == ("CONCEDE", True, False)


@pytest.mark.behaviour("30-will-not-concede")
def test_the_words_i_will_not_concede_resolve_nothing(general: FakeGeneral) -> None:
    opposed(general)
    general.says["r2/skeptic"] = answer("MAINTAIN", "MAINTAIN: I will not concede, and others should not concede.")
    assert [one["topic"] for one in general.ask().json["disagreements"]] == [TOPIC]


@pytest.mark.behaviour("30-word-and-paragraph-are-one")
def test_a_paragraph_that_begins_with_another_word_than_the_typed_one_gets_the_repair_turn(
    general: FakeGeneral,
) -> None:
    opposed(general)
    general.says["r2/skeptic"] = [
        answer("CONCEDE", "MAINTAIN: it is true."),
        answer("MAINTAIN", "MAINTAIN: it is true."),
    ]
    report = general.ask().json
    assert general.asked.count("r2/skeptic") == 2
    assert len(report["disagreements"]) == 1


@pytest.mark.behaviour("30-no-deliberate")
@pytest.mark.parametrize("by", ["flag", "config"])
def test_without_deliberation_there_is_no_second_round_and_the_disagreement_stays_open(
    general: FakeGeneral, by: str
) -> None:
    opposed(general)
    if by == "config":
        general.configure("[general]\ndeliberate = false\n")
    report = general.ask(*(["--no-deliberate"] if by == "flag" else [])).json
    assert not any(key.startswith("r2/") for key in general.asked)
    assert [one["topic"] for one in report["disagreements"]] == [TOPIC]


def differ(general: FakeGeneral) -> None:
    """Two seats answer one question in different words; only the clerk can compare them."""
    opposed(general)
    general.says["r1/skeptic"] = position(claim("Is the cold tier wise?", "no", text="Migration loses hours."))
    general.says["clerk"] = groups(("c1 c2", "conflict"))


@pytest.mark.behaviour("30-clerk-groups-only", "30-claims-compared")
def test_the_clerk_sees_only_claims_and_can_only_name_them(general: FakeGeneral) -> None:
    differ(general)
    report = general.ask().json
    (dispute,) = report["disagreements"]
    assert [(side["seat"], side["answer"], side["id"]) for side in dispute["positions"]] == [
        ("generalist", "yes", "c1"),
        ("skeptic", "no", "c2"),
    ]
    prompt = general.prompts("clerk")["chair"]
    assert f"- c1 | {TOPIC} | yes | Moving saves four fifths." in prompt
    assert "- c3 | " in prompt
    assert not any(words in prompt for words in ("Move it.", "how often it is read", "skeptic", "0.9"))
    schema = next(seen.schema for seen in general.workspace.provider.log if general.who(seen)[0] == "clerk")
    assert schema is not None
    assert schema["properties"]["groups"]["items"]["properties"]["claims"]["items"]["enum"] == ["c1", "c2", "c3"]


@pytest.mark.behaviour("30-clerk-groups-only")
@pytest.mark.parametrize(
    ("wrong", "why"), [("c1 c9", "c9 is not in the list"), ("c1 c1", "c1: all claims of one member")]
)
def test_a_group_with_an_unknown_claim_or_of_one_seat_is_repaired_once_then_dropped_and_stated(
    general: FakeGeneral, wrong: str, why: str
) -> None:
    differ(general)
    general.says["clerk"] = groups((wrong, "agree"), ("c1 c2", "conflict"))
    report = general.ask().json
    assert general.asked.count("clerk/chair") == 2
    assert why in general.workspace.provider.log[4].prompt
    assert len(report["disagreements"]) == 1
    assert report["consensus"] == []
    assert any(f"was dropped: {why}" in row["reason"] for row in report["degraded"])


@pytest.mark.behaviour("30-clerk-groups-only")
def test_a_repaired_group_is_used_without_a_remark(general: FakeGeneral) -> None:
    differ(general)
    general.says["clerk"] = [groups(("c1 c9", "agree")), groups(("c1 c2", "conflict"))]
    report = general.ask().json
    assert len(report["disagreements"]) == 1
    assert not any("dropped" in row["reason"] for row in report["degraded"])


@pytest.mark.behaviour("30-uncompared-is-no-consensus")
@pytest.mark.parametrize("said", [groups(), "no json at all", Reply(status=500)])
def test_without_a_useful_clerk_nothing_is_agreed_and_the_report_says_why(general: FakeGeneral, said: Any) -> None:
    differ(general)
    general.says |= {"clerk": said, "synthesise": synthesis()}
    report = general.ask().json
    assert (report["consensus"], report["disagreements"], report["status"]) == ([], [], "complete")
    text = (general.workspace.folder / report["report_path"]).read_text(encoding="utf-8")
    assert "claims were not compared" in text
    assert load_wording("en").table["reasons"]["not_assessed"] in report["trust"]["because"]
    assert report["trust"]["level"] != "HIGH"
    stated = any("The clerk did not answer" in row["reason"] for row in report["degraded"])
    assert stated == (said != groups())
    assert ("\n- claims were compared only where their questions are the same: " in text) == stated


@pytest.mark.behaviour("30-values-decide")
def test_code_overrides_a_clerk_that_calls_different_values_agreed(general: FakeGeneral) -> None:
    general.says |= {
        "r1/generalist": position(claim("How many tps does it sustain?", "about 20k tps", text="It sustains 20k.")),
        "r1/skeptic": position(claim("What throughput is possible?", "at most 5k tps", text="It sustains 5k.")),
        "r1/domain_expert": position(),
        "clerk": groups(("c1 c2", "agree")),
        "synthesise": synthesis("It depends.", told()),
    }
    report = general.ask().json
    assert report["consensus"] == []
    assert [side["answer"] for side in report["disagreements"][0]["positions"]] == ["about 20k tps", "at most 5k tps"]
    assert report["trust"]["level"] == "CONTESTED"
    text = (general.workspace.folder / report["report_path"]).read_text(encoding="utf-8")
    assert "the clerk was overridden" in text
    assert "the clerk said agree" in text


@pytest.mark.behaviour("30-conditions")
def test_claims_that_depend_on_a_condition_are_qualified_and_start_no_second_round(general: FakeGeneral) -> None:
    general.says |= {
        "r1/generalist": position(claim(TOPIC, "yes", text="Move it.", holds_when="it is rarely read")),
        "r1/skeptic": position(claim(TOPIC, "no", text="Keep it.", holds_when="it is read daily")),
        "r1/domain_expert": position(),
    }
    report = general.ask().json
    assert not any(key.startswith("r2/") for key in general.asked)
    assert (report["consensus"], report["disagreements"]) == ([], [])
    assert {one["status"] for one in report["claims"]} == {"qualified"}
    assert "# Answers that depend on a condition" in general.prompts("synthesise")["chair"]


@pytest.mark.behaviour("30-claims-compared")
def test_at_most_six_claims_of_a_seat_count_and_ids_run_through_all_seats(general: FakeGeneral) -> None:
    general.says["r1"] = position(*(claim(f"Is part {n} needed?") for n in range(1, 10)))
    report = general.ask().json
    assert [one["id"] for one in report["claims"]] == [f"c{n}" for n in range(1, 19)]
    assert [one["by"] for one in report["claims"]] == [[seat] for seat in MEMBERS for _ in range(6)]


@pytest.mark.behaviour("30-older-replies")
def test_claims_with_a_topic_and_a_stance_are_still_read_and_equal_stances_agree_on_nothing(
    general: FakeGeneral,
) -> None:
    def older(stance: str) -> Any:
        row = {"topic": "moving", "stance": stance, "text": f"I {stance} it.", "confidence": 0.9, "sources": [1]}
        return position(response="x") | {"claims": [row], "sources": [source("docs/cost.md")]}

    general.documents()
    general.says |= {
        "r1/generalist": older("supports"),
        "r1/skeptic": older("opposes"),
        "r1/domain_expert": older("supports"),
    }
    general.says |= {"clerk": {"same": []}, "synthesise": synthesis("It depends.", told())}
    report = general.ask("--search", "files:docs", search="").json
    assert [one["seat"] for one in report["disagreements"][0]["positions"]] == list(MEMBERS)
    assert report["consensus"] == []
    assert not any("were removed" in row["reason"] for row in report["degraded"])


@pytest.mark.behaviour("30-no-claims-no-drop")
def test_members_without_claims_still_count(general: FakeGeneral) -> None:
    general.says["r1"] = position(response="I recommend moving the archive next year.")
    report = general.ask().json
    assert report["status"] == "complete"
    assert "clerk/chair" not in general.asked
    assert report["claims"] == []


@pytest.mark.behaviour("30-silent-disputant-maintains")
def test_an_absent_disputant_keeps_its_position(general: FakeGeneral) -> None:
    opposed(general)
    general.says["r2/skeptic"] = "not json"
    done = general.ask()
    assert [one["topic"] for one in done.json["disagreements"]] == [TOPIC]
    assert any(row["seat"] == "skeptic" and row["phase"] == "r2" for row in done.json["degraded"])


@pytest.mark.behaviour("003-member-ids", "30-stamped-by-the-engine")
def test_member_ids_and_rounds_are_set_by_the_code_and_not_requested_from_a_model(general: FakeGeneral) -> None:
    opposed(general)
    general.ask()
    schema = next(seen.schema for seen in general.workspace.provider.log if general.who(seen)[0] == "r1")
    assert schema is not None
    assert not {"memberId", "role", "round"} & set(schema["properties"])
    (body,) = general.workspace.rows("SELECT body FROM events WHERE body LIKE '%round1Responses%'")
    assert '"memberId": "council_domain_expert"' in body[0].replace('":"', '": "')


@pytest.mark.behaviour("30-allies-are-no-opponents")
def test_a_disputant_is_not_confronted_with_its_own_side(general: FakeGeneral) -> None:
    opposed(general)
    general.says["r1/domain_expert"] = position(claim(TOPIC, "no", text="The contract forbids moving."))
    general.ask()
    against = {seat: text[text.rindex("Against it:") :] for seat, text in general.prompts("r2").items()}
    assert "The contract forbids moving." in against["generalist"]
    assert "Moving loses eleven hours a restore." in against["generalist"]
    assert "The contract forbids moving." not in against["skeptic"]
    assert "Moving saves four fifths." in against["skeptic"]
    assert "Moving loses eleven hours a restore." not in against["domain_expert"]


@pytest.mark.behaviour("30-one-name-for-a-dispute")
def test_a_dispute_keeps_its_name_from_the_second_round_to_the_synthesis(general: FakeGeneral) -> None:
    """The chair's D1 must be the members' D1."""
    opposed(general)
    for seat, stance in (("generalist", "yes"), ("skeptic", "no")):
        general.says[f"r1/{seat}"]["claims"].append(
            claim("Is a price rise due?", stance, text=f"A price rise: {stance}.")
        )
    first, second = answer("CONCEDE", topic="D1"), answer("MAINTAIN", topic="D2")
    general.says["r2/skeptic"] = {"answers": first["answers"] + second["answers"]}
    general.says["synthesise"] = synthesis("It depends.", told("D2", "one side", "the other side"))
    report = general.ask().json
    assert general.asked.count("synthesise/chair") == 1
    prompt = general.prompts("synthesise")["chair"]
    disputed, resolved = prompt.split("# Open disputes")[1].split("# Resolved disputes")
    assert "## D2\n\n<<<Question" in disputed
    assert "D1:\n\n<<<Question" in resolved
    (left,) = report["disagreements"]
    assert left["topic"] in disputed
    topic = left["topic"]
    assert f'xperts disagree on "{topic}"' in report["answer"]
    assert "The case for the other side." in report["answer"]


@pytest.mark.behaviour("30-one-name-for-a-dispute")
def test_the_report_explains_dispute_names_and_who_changed_position(general: FakeGeneral) -> None:
    opposed(general)
    general.says |= {"r2/skeptic": answer("CONCEDE", "CONCEDE: yes."), "synthesise": synthesis()}
    report = general.ask().json
    text = (general.workspace.folder / report["report_path"]).read_text(encoding="utf-8")
    assert f'- D1 is disputed: {TOPIC}: generalist "yes", skeptic "no"' in text
    assert "- skeptic gave way on D1: CONCEDE, a weak flip: it gives no grounds" in text


@pytest.mark.behaviour("30-six-calls-without-disagreement")
def test_the_report_says_why_there_was_no_second_round(general: FakeGeneral) -> None:
    report = general.ask().json
    text = (general.workspace.folder / report["report_path"]).read_text(encoding="utf-8")
    assert "- r2 skipped: no contradiction was found" in text


@pytest.mark.behaviour("30-silent-disputant-maintains")
def test_a_disputant_that_answers_no_point_is_asked_once_more_and_then_absent(general: FakeGeneral) -> None:
    opposed(general)
    general.says["r2/skeptic"] = {"answers": []}
    report = general.ask().json
    assert general.asked.count("r2/skeptic") == 2
    assert any(row["seat"] == "skeptic" and row["phase"] == "r2" for row in report["degraded"])
    assert [one["topic"] for one in report["disagreements"]] == [TOPIC]
