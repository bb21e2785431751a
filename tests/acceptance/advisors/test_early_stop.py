"""`--early-stop`: a stand in a field, an end where all are sure of one thing, every change on record."""

from __future__ import annotations

import pytest

from tests.acceptance.advisors.advice import Advice, keys, stand, text_of, words_in
from tests.acceptance.helpers import QUESTION, Json, Table, Terminal
from tests.fake_provider import Reply


def named(table: Table) -> list[str | None]:
    return [(seen.body.get("response_format") or {}).get("json_schema", {}).get("name") for seen in table.provider.log]


@pytest.mark.usefixtures("cast")
@pytest.mark.behaviour("10-early-stop-off")
def test_without_the_flag_statements_are_free_text_and_every_round_is_run(table: Table, council: Terminal) -> None:
    council("--flow", "debate", QUESTION)
    assert sorted(map(str, named(table))) == ["None"] * 9 + ["RefereedRounds"]


@pytest.mark.usefixtures("cast")
@pytest.mark.behaviour("10-early-stop-ends", "10-early-stop-typed")
def test_when_all_are_sure_of_one_thing_the_debate_ends_and_says_what_it_saved(table: Table, council: Terminal) -> None:
    report = council("--json", "--flow", "debate", "--early-stop", QUESTION).json
    assert named(table) == ["Stand"] * 3 + ["Refereed"]
    assert report["calls"]["made"] == 4
    why = "the debate ended early: all 3 hold one stand with HIGH confidence after round 1; 6 calls saved"
    assert f"r2, r3 skipped: {why}" in text_of(table, report)
    assert [seat["confidence"] for seat in report["seats"]] == ["HIGH"] * 3
    assert words_in(table.prompt("referee/referee")) == keys("r1")


@pytest.mark.behaviour("10-early-stop-ends", "10-early-stop-typed", "10-shifts-recorded")
def test_a_debate_goes_on_until_all_are_of_one_mind_and_every_change_is_on_record(
    table: Table, council: Terminal, cast: Advice
) -> None:
    cast.said = {
        "r1/visionary": stand("against", "stay"),
        "r1/skeptic": stand("against", "stay"),
        "r2/visionary": stand(evidence="restores took 12 hours"),
        "r2/skeptic": stand(),
    }
    report = council("--json", "--rounds", "4", "--early-stop", QUESTION).json
    assert named(table) == ["Stand"] * 6 + ["RefereedRounds"]
    assert [(row["seat"], row.get("round"), row["from"], row["to"], row["weak"]) for row in report["shifts"]] == [
        ("visionary", 2, "against: stay", "for: move it", False),
        ("skeptic", 2, "against: stay", "for: move it", True),
        ("pragmatist", None, "pragmatist opens", "pragmatist ends", False),
    ]
    text = text_of(table, report)
    assert "visionary went from against: stay to for: move it in round 2: restores took 12 hours" in text
    assert "skeptic went from against: stay to for: move it in round 2: a weak flip" in text
    assert "r3, r4 skipped" in text and "6 calls saved" in text


@pytest.mark.behaviour("10-early-stop-goes-on", "10-early-stop-typed")
@pytest.mark.parametrize("doubt", [stand(confidence="MEDIUM"), stand("conditional"), stand(choice="move half only")])
def test_a_single_doubt_keeps_the_debate_going_to_its_last_round(
    table: Table, council: Terminal, cast: Advice, doubt: Json
) -> None:
    cast.said = {f"r{n}/skeptic": doubt for n in (1, 2, 3)}
    report = council("--json", "--flow", "debate", "--early-stop", QUESTION).json
    assert named(table) == ["Stand"] * 9 + ["RefereedRounds"]  # the final statement is typed too
    assert "skipped" not in text_of(table, report)


@pytest.mark.behaviour("10-early-stop-goes-on")
def test_the_last_word_of_one_who_fell_silent_still_counts(table: Table, council: Terminal, cast: Advice) -> None:
    cast.said = {"r1/skeptic": stand("against", "stay")}
    cast.instead["skeptic/r2"] = Reply(status=500)
    council("--flow", "debate", "--early-stop", QUESTION)
    assert keys("r3") <= set(table.asked())


@pytest.mark.behaviour("10-early-stop-typed")
def test_a_stand_is_shown_to_the_others_in_its_own_words(table: Table, council: Terminal, cast: Advice) -> None:
    cast.said = {"r1/skeptic": stand("against", "stay on disk", "LOW")}
    council("--rounds", "2", "--early-stop", QUESTION)
    prompt = table.prompt("r2/pragmatist")
    assert "**Stand:** against. **Choice:** stay on disk" in prompt
    assert "LOW" not in prompt  # how sure another is must not persuade


@pytest.mark.behaviour("10-no-chair-keeps-what-rules-found")
def test_what_advisors_declared_is_on_record_without_a_referee(table: Table, council: Terminal, cast: Advice) -> None:
    cast.instead["chair"] = Reply(status=500)
    cast.said |= {"r1/skeptic": stand("against", "stay"), "r2/skeptic": stand("for", "move it", evidence="")}
    cast.said["r2/visionary"] = stand("against", "stay", evidence="Restores take 12 hours.")
    done = council("--json", "--rounds", "2", "--early-stop", QUESTION)
    assert (done.code, done.json["status"]) == (3, "incomplete")
    assert {(one["seat"], one["weak"]) for one in done.json["shifts"]} == {("skeptic", True), ("visionary", False)}
    tally = done.json["answer"].partition("### Tally")[2]
    assert "- Pragmatist: for: move it\n- Visionary: against: stay\n- Skeptic: for: move it" in tally
    assert tally.endswith("### Dissent\n\n- Visionary: against: stay")
