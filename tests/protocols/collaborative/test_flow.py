"""Collaborative and triad protocols: prompts, phases and absent seats."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from council import events as ev
from council.engine.minutes import Minutes
from council.events import Entry
from council.members.scripted import Scripted
from council.protocols.common.lengths import find_opening
from council.render.markdown import render_answer, render_document, render_verbose
from council.render.report import build_report
from council.runs.service import Convener

pytestmark = pytest.mark.anyio
SEATS = {"alpha": "scripted:", "beta": "scripted:", "gamma": "scripted:", "chair": "scripted:"}
QUESTION = "Plan our offsite."
NAMES = ("alpha", "beta", "gamma")
SCRIPT = {
    **{f"draft/{name}": {"text": f"FIRST OF {name}"} for name in NAMES},
    **{f"improve/{name}": {"text": f"SECOND OF {name}"} for name in NAMES},
    "synthesise/chair": {"text": "Go to the sea."},
    "merge/chair": {"text": "Go to the hills."},
}


async def run(script: dict[str, Any], protocol: str = "collaborative") -> tuple[Minutes, Scripted]:
    member = Scripted(script=SCRIPT | script)
    convener = Convener(Path.cwd(), flags={"seats": SEATS}, members=[member])
    try:
        plan = await convener.plan([QUESTION], protocol=protocol)
        return await convener.run(plan, lambda entry: None), member
    finally:
        await convener.close()


def asked(member: Scripted) -> list[str]:
    return [call["key"] for call in member.calls]


def words_for(member: Scripted, key: str) -> str:
    return next(str(call["messages"][-1]["content"]) for call in member.calls if call["key"] == key)


@pytest.mark.behaviour("000-phases-collaborative")
async def test_draft_improve_synthesise_in_seven_calls() -> None:
    minutes, member = await run({})
    assert list(minutes.phases) == ["draft", "improve", "synthesise"]
    assert [key.split("/")[0] for key in asked(member)] == ["draft"] * 3 + ["improve"] * 3 + ["synthesise"]
    assert (minutes.status, minutes.verdict["answer"]) == ("complete", "Go to the sea.")


@pytest.mark.behaviour("000-improvers-read-all-drafts")
async def test_an_improver_gets_its_own_draft_both_others_and_its_strength() -> None:
    _, member = await run({})
    strengths = {
        "alpha": "depth and exploration",
        "beta": "practical grounding",
        "gamma": "elegance and alternative angles",
    }
    for name, strength in strengths.items():
        words = words_for(member, f"improve/{name}")
        assert all(f"FIRST OF {other}" in words for other in NAMES)
        assert (QUESTION in words, strength in words) == (True, True)
        assert words.index(f"FIRST OF {name}") == min(words.index(f"FIRST OF {other}") for other in NAMES)


@pytest.mark.behaviour("000-improve-never-skipped")
async def test_the_improve_round_runs_even_when_all_drafts_are_equal() -> None:
    _, member = await run({f"draft/{name}": {"text": "The same."} for name in NAMES})
    assert [key for key in asked(member) if key.startswith("improve")] == [f"improve/{name}" for name in NAMES]


@pytest.mark.behaviour("000-synthesis-from-improved", "10-first-recommendations")
async def test_the_chair_gets_the_improved_versions_and_only_the_first_words_of_the_drafts() -> None:
    drafts = {f"draft/{name}": {"text": f"# A title\n\nFIRST OF {name}{' word' * 57} LAST"} for name in NAMES}
    _, member = await run(drafts)
    words = words_for(member, "synthesise/chair")
    assert all(f"SECOND OF {name}" in words for name in NAMES)
    assert all(f"FIRST OF {name} word" in words for name in NAMES)
    assert "A title" not in words and "LAST" not in words
    assert words.count(" word …") == 3 and '"joined"' in words


@pytest.mark.behaviour("10-first-recommendations")
@pytest.mark.parametrize(
    ("draft", "shown"),
    [
        ("Use Postgres.", "Use Postgres."),
        ("# Answer\n\nUse Postgres.\n\n## Why\n\nIt is there.", "Use Postgres.\n\n\n\nIt is there."),
        ("word " * 60, ("word " * 60).strip()),
        ("word " * 61, f"{('word ' * 60).strip()} …"),
        ("海" * 61, f"{'海' * 60} …"),
        ("", ""),
    ],
)
def test_the_opening_of_a_draft_is_its_first_words_without_headings(draft: str, shown: str) -> None:
    assert find_opening(draft) == shown


@pytest.mark.behaviour("10-first-recommendations")
async def test_a_chair_that_reads_first_drafts_is_not_asked_who_joined_later() -> None:
    for script, protocol in (
        ({f"improve/{name}": {"fail": "server"} for name in NAMES}, "collaborative"),
        ({}, "triad"),
    ):
        _, member = await run(script, protocol)
        words = words_for(member, "merge/chair" if protocol == "triad" else "synthesise/chair")
        assert '"recommendation_shared_by"' in words and "joined" not in words


@pytest.mark.behaviour("10-absent-improver-keeps-draft")
async def test_an_improver_that_is_absent_keeps_its_draft() -> None:
    _, member = await run({"improve/beta": {"fail": "server"}})
    words = words_for(member, "synthesise/chair")
    assert [part in words for part in ("SECOND OF alpha", "FIRST OF beta", "SECOND OF gamma")] == [True] * 3


async def test_two_drafts_improve_each_other() -> None:
    _, member = await run({"draft/gamma": {"fail": "auth"}})
    assert [key for key in asked(member) if key.startswith("improve")] == ["improve/alpha", "improve/beta"]
    assert "FIRST OF beta" in words_for(member, "improve/alpha")


@pytest.mark.behaviour("10-one-draft-collaborative")
async def test_one_draft_goes_straight_to_the_synthesis() -> None:
    minutes, member = await run({f"draft/{name}": {"fail": "server"} for name in ("alpha", "beta")})
    assert asked(member)[-1] == "synthesise/chair"
    assert not [key for key in asked(member) if key.startswith("improve")]
    assert minutes.notes[0].what == "improve skipped"
    assert minutes.status == "complete"


@pytest.mark.behaviour("10-no-chair-digest")
async def test_without_a_chair_the_answer_is_a_digest_of_all_seats() -> None:
    minutes, _ = await run({"synthesise/chair": {"fail": "auth"}})
    assert (minutes.status, minutes.stopped) == ("incomplete", "chair")
    answer = minutes.verdict["answer"]
    assert answer.startswith("## No chair: digest of statements")
    assert all(f"SECOND OF {name}" in answer for name in NAMES)


@pytest.mark.behaviour("00-exit-failed")
async def test_a_run_without_statements_fails_without_an_answer() -> None:
    minutes, _ = await run({f"draft/{name}": {"fail": "auth"} for name in NAMES})
    assert (minutes.status, minutes.stopped, minutes.verdict["answer"]) == ("failed", "quorum", "")


@pytest.mark.behaviour("000-triad-four-calls")
async def test_the_triad_drafts_independently_and_merges_once() -> None:
    minutes, member = await run({}, "triad")
    assert list(minutes.phases) == ["draft", "merge"]
    assert len(asked(member)) == 4
    words = words_for(member, "merge/chair")
    assert all(f"FIRST OF {name}" in words for name in NAMES)
    assert "## Self-Critique" in words_for(member, "draft/alpha")
    assert minutes.verdict["answer"] == "Go to the hills."


@pytest.mark.behaviour("10-unsettled-flags", "10-confidence-marks")
@pytest.mark.parametrize(
    ("answer", "kinds"),
    [
        ("Go to the hills.", ["unsettled_flag", "low_marks"]),
        ("Go to the hills, but check first whether the law allows a camp fire there.", ["low_marks"]),
    ],
)
async def test_the_triad_reports_what_the_drafts_say_against_a_merged_answer(answer: str, kinds: list[str]) -> None:
    draft = "Go (LOW).\n\n## Self-Critique\n\n- **Critical:** the law may forbid a camp fire there."
    script = {f"draft/{name}": {"text": draft} for name in NAMES} | {"merge/chair": {"text": f"{answer}{NOTES}"}}
    minutes, _ = await run(script, "triad")
    facts = minutes.verdict["trust_facts"]
    assert [fact["kind"] for fact in facts] == kinds
    assert all(list(fact["seats"]) == list(NAMES) for fact in facts)
    assert build_report(minutes)["trust"]["level"] != "HIGH"


# Notes and the trust line

NOTES = '\n\n```council-notes\n{"agreed": ["the sea is near"], "contested": [], "recommendation_shared_by": ["alpha", "beta", "gamma"]}\n```\n'


@pytest.mark.behaviour("10-notes-stripped")
@pytest.mark.parametrize(("protocol", "key"), [("collaborative", "synthesise/chair"), ("triad", "merge/chair")])
async def test_notes_are_removed_from_the_answer_and_the_stream(protocol: str, key: str) -> None:
    streamed: list[str] = []
    member = Scripted(script=SCRIPT | {key: {"text": f"Go.{NOTES}"}, "draft/alpha": {"text": f"FIRST OF alpha{NOTES}"}})
    convener = Convener(Path.cwd(), flags={"seats": SEATS}, members=[member])
    try:
        plan = await convener.plan([QUESTION], protocol=protocol)
        minutes = await convener.run(plan, lambda entry: streamed.append(getattr(entry.event, "text", "")))
    finally:
        await convener.close()
    assert minutes.verdict["answer"] == "Go."
    assert (minutes.verdict["agreement"], minutes.verdict["notes"]["agreed"]) == ("full", ["the sea is near"])
    assert "Go." in "".join(streamed) and "council-notes" not in "".join(streamed)
    assert minutes.phases["draft"].said["alpha"].said == "FIRST OF alpha"
    quoted = [call["messages"][-1]["content"] for call in member.calls if "FIRST OF alpha" in str(call["messages"])]
    assert quoted and not any("the sea is near" in text for text in quoted)
    report = build_report(minutes)
    assert report["notes"]["recommendation_shared_by"] == list(NAMES)
    assert report["trust"]["level"] == "MEDIUM"
    assert report["trust"]["because"] == ["all answers are from one vendor (scripted)"]


@pytest.mark.behaviour("10-final-answer-stream", "10-final-answer-clean", "10-notes-by-content")
async def test_the_streamed_text_is_the_stored_answer_and_drafts_stay_as_they_are() -> None:
    chatty = "Sure! Here is the final answer:\n\nGo.\n\nOutcome: none\n\nLet me know if you need more."
    labelled = NOTES.replace("council-notes", "json")
    member = Scripted(
        script=SCRIPT | {"synthesise/chair": {"text": f"{chatty}{labelled}"}, "draft/alpha": {"text": chatty}}
    )
    streamed: list[str] = []

    def listen(entry: Entry) -> None:
        if isinstance(entry.event, ev.Delta) and entry.event.seat == "chair":
            streamed.append(entry.event.text)

    convener = Convener(Path.cwd(), flags={"seats": SEATS}, members=[member])
    try:
        minutes = await convener.run(await convener.plan([QUESTION], protocol="collaborative"), listen)
    finally:
        await convener.close()
    assert minutes.verdict["answer"] == "".join(streamed).rstrip() == "Go.\n\n> Outcome: none"
    assert minutes.verdict["agreement"] == "full"
    assert minutes.phases["draft"].said["alpha"].said == chatty


@pytest.mark.behaviour("10-notes-shown")
async def test_notes_are_shown_under_three_headings() -> None:
    notes = (
        '```council-notes\n{"agreed": ["AGREED"], "contested": [{"point": "POINT", "sides": [{"seat": "beta", "position": "CHEAP", '
        '"assumes": "OFF SEASON"}]}], "unique": [{"seat": "gamma", "point": "BOATS"}], "recommendation_shared_by": ["alpha", "beta"]}\n```'
    )
    minutes, _ = await run({"synthesise/chair": {"text": f"Go.\n{notes}"}})
    for text in (render_verbose(minutes), render_document(minutes)):
        assert "Where they agree\n\n- AGREED\n" in text
        assert "Where they differ, and on which assumption\n\n- POINT\n  - Beta: CHEAP (assumes: OFF SEASON)\n" in text
        assert "What only one saw\n\n- Gamma: BOATS\n" in text
    assert build_report(minutes)["trust"]["because"] == [
        "all answers are from one vendor (scripted)",
        "2 of 3 seats recommended this at first (alpha and beta)",
        "one point is disputed",
    ]


@pytest.mark.behaviour("10-notes-no-extra-call")
@pytest.mark.parametrize("tail", ["", "\n```council-notes\n{broken\n```", "\n```council-notes\n{"])
async def test_missing_or_broken_notes_cost_no_further_call(tail: str) -> None:
    minutes, member = await run({"synthesise/chair": {"text": f"Go to the sea.{tail}"}})
    assert (len(member.calls), minutes.verdict["answer"]) == (7, "Go to the sea.")
    assert (minutes.verdict["agreement"], minutes.verdict["notes"]) == ("", None)
    assert "agreement was not assessed" in build_report(minutes)["trust"]["because"]


@pytest.mark.behaviour("10-no-improver")
async def test_without_improvers_the_synthesis_works_on_the_drafts() -> None:
    minutes, member = await run({f"improve/{name}": {"fail": "server"} for name in NAMES})
    words = words_for(member, "synthesise/chair")
    assert all(f"FIRST OF {name}" in words for name in NAMES)
    assert (minutes.status, minutes.verdict["answer"]) == ("complete", "Go to the sea.")
    assert "No seat improved its draft: the answer is built from the drafts." in render_answer(minutes)
    assert build_report(minutes)["trust"]["level"] == "MEDIUM"
    assert {row["phase"] for row in build_report(minutes)["degraded"] if row["seat"]} == {"improve"}


@pytest.mark.behaviour("10-synthesis-limit")
async def test_the_synthesis_is_no_longer_than_the_longest_version() -> None:
    _, member = await run({"improve/beta": {"text": "word " * 395}})
    assert "no longer than the longest of them: at most 400 words" in words_for(member, "synthesise/chair")
    _, member = await run({"improve/beta": {"text": "海" * 395}})
    assert "in at most 400 words" in words_for(member, "synthesise/chair")


async def test_one_draft_is_not_compared_and_no_notes_are_requested() -> None:
    _, member = await run({f"draft/{name}": {"fail": "server"} for name in ("alpha", "beta")})
    words = words_for(member, "synthesise/chair")
    assert "strongest element of each" not in words and "council-notes" not in words
    assert "no other seat has checked" in words
