"""Refine: phases, rulings, the chair's text, the check, and replies as models really write them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from council.engine.minutes import Minutes
from council.members.scripted import Scripted
from council.protocols.refine.flow import SETTLED
from council.render.markdown import render_answer
from council.render.report import build_report
from council.runs.service import Convener

pytestmark = pytest.mark.anyio
Json = dict[str, Any]
NAMES = ("alpha", "beta", "gamma")
QUESTION = "Where should we hold the offsite?"
VENDOR = {"alpha": "north", "beta": "east", "gamma": "south", "chair": "west"}
DRAFT = "Go to the sea in May. It costs 4,000 euros for ten people. Book the train early."


def draft_of(name: str) -> str:
    return f"{DRAFT} ({name} wrote this first.)"


def version_of(name: str) -> str:
    return f"Go to the sea in June. It costs 5,000 euros for ten people. Book the train early. ({name} wrote this.)"


TEXT = "Go to the sea in June. It costs 5,000 euros for ten people. Book the train early. (The chair wrote this.)"
NOTES: Json = {
    "agreed": ["the sea"],
    "contested": [],
    "unique": [],
    "taken_from": [],
    "closest_draft": "alpha",
    "recommendation_shared_by": list(NAMES),
    "joined": [],
}


def error(severity: str = "MAJOR", **fields: str) -> Json:
    return {
        "severity": severity,
        "hits": "It costs 4,000 euros",
        "flaw": "The train is not counted.",
        "correction": "It costs 5,000 euros.",
        "harm": "The budget is exceeded.",
        **fields,
    }


def attack(*errors: Json, same: bool | str = True) -> Json:
    return {"reply": {"errors": list(errors), "same_conclusion": same}}


def rulings(*landed: bool) -> list[Json]:
    return [{"issue": f"error-{n}", "landed": one, "why": "Checked."} for n, one in enumerate(landed, 1)]


def fix(*edits: tuple[str, str], landed: tuple[bool, ...] = (True,)) -> Json:
    """Return a correction: the n-th edit belongs to the n-th error."""
    rows = [{"issue": f"error-{n}", "find": find, "replace": new} for n, (find, new) in enumerate(edits, 1)]
    return {"reply": {"rulings": rulings(*landed), "edits": rows}}


def rewrite(name: str, *landed: bool) -> Json:
    return {"reply": {"rulings": rulings(*landed), "answer": version_of(name)}}


SCRIPT = {
    **{f"draft/{name}": {"text": draft_of(name)} for name in NAMES},
    **{f"attack/{name}/{name}": attack(error()) for name in NAMES},
    **{f"rewrite/{name}/{name}": rewrite(name, True) for name in NAMES},
    **{f"check/{name}": {"reply": {"errors": []}} for name in NAMES},
}


class Members(Scripted):
    """Scripted seats; the chair's notes name seats, which it sees under labels."""

    def __init__(self, script: Json, notes: Json | None) -> None:
        super().__init__(script=SCRIPT | script)
        self.notes = notes

    async def send(self, body: bytes, on_delta: Any) -> Any:
        request = json.loads(body)
        if request["key"] == "synthesise/chair" and request["key"] not in self.script:
            self.script = {**self.script, request["key"]: {"text": self.write(request["messages"][-1]["content"])}}
        return await super().send(body, on_delta)

    def write(self, prompt: str) -> str:
        if self.notes is None:
            return TEXT
        notes = json.dumps(self.notes)
        for name, label in show_labels(prompt).items():
            notes = notes.replace(f'"{name}"', f'"Response {label}"')
        return f"{TEXT}\n\n```council-notes\n{notes}\n```"


def show_labels(prompt: str) -> dict[str, str]:
    """Return the label of each author in the chair's prompt."""
    found = re.findall(r"<<<Response ([A-Z]) (\w+)\n(.*?)\n\2>>>", prompt, re.DOTALL)
    authors = [(re.search(r"\((\w+) wrote", text), label) for label, _, text in found]
    return {author[1]: label for author, label in authors if author}


async def run(
    script: Json | None = None, seats: tuple[str, ...] = NAMES, notes: Json | None = NOTES
) -> tuple[Minutes, Members]:
    member = Members(script or {}, notes)
    names = {"models": ["scripted:"] * len(seats)} if len(seats) != 3 else {}
    flags = names or {"seats": dict.fromkeys((*seats, "chair"), "scripted:")}
    convener = Convener(Path.cwd(), flags=flags, members=[member])
    try:
        plan = await convener.plan([QUESTION], protocol="refine")
        minutes = await convener.run(plan, lambda entry: None)
        assert await convener.audit(minutes.run) == []
        return minutes, member
    finally:
        await convener.close()


def phases(member: Members) -> list[str]:
    return list(dict.fromkeys(call["key"].split("/")[0] for call in member.calls))


def words_for(member: Members, key: str) -> str:
    return next(call["messages"][-1]["content"] for call in member.calls if call["key"] == key)


def facts(minutes: Minutes) -> dict[str, Json]:
    return {fact["kind"]: fact for fact in build_report(minutes)["trust"]["facts"]}


# Phases


@pytest.mark.behaviour("10-refine-phases")
async def test_draft_attack_rewrite_synthesise_check_in_that_order() -> None:
    minutes, member = await run()
    assert phases(member) == ["draft", "attack", "rewrite", "synthesise", "check"]
    counts = [sum(call["key"].startswith(f"{phase}/") for call in member.calls) for phase in phases(member)]
    assert counts == [3, 3, 3, 1, 2]
    assert (minutes.status, minutes.verdict["answer"]) == ("complete", TEXT)


@pytest.mark.behaviour("10-refine-sealed")
async def test_a_drafter_sees_no_other_words_and_has_no_role() -> None:
    _, member = await run()
    for name in NAMES:
        words = words_for(member, f"draft/{name}")
        assert not any(other in words.lower() for other in NAMES)


@pytest.mark.behaviour("10-refine-ring")
async def test_each_draft_is_attacked_by_one_other_seat_and_its_author_rules_without_a_name() -> None:
    _, member = await run({"attack/alpha/alpha": attack(error(flaw="It rains there."))})
    targets = {}
    for name in NAMES:
        words = words_for(member, f"attack/{name}/{name}")
        shown = [other for other in NAMES if f"({other} wrote this first.)" in words.split("# Your own draft")[0]]
        assert (len(shown), shown != [name]) == (1, True)
        targets[name] = shown[0]
    assert sorted(targets.values()) == sorted(NAMES)
    victim = targets["alpha"]
    words = words_for(member, f"rewrite/{victim}/{victim}")
    assert ("It rains there." in words, "error-1" in words, "Alpha" in words) == (True, True, False)
    others = [name for name in NAMES if name != victim]
    assert not any("It rains there." in words_for(member, f"rewrite/{name}/{name}") for name in others)


@pytest.mark.behaviour("10-refine-blind-chair")
async def test_the_chair_sees_every_version_without_its_author() -> None:
    minutes, member = await run()
    words = words_for(member, "synthesise/chair")
    assert sorted(show_labels(words)) == sorted(NAMES)
    assert all(version_of(name) in words for name in NAMES)
    shown = re.sub(r"\(\w+ wrote this(?: first)?\.\)", "", words).lower()
    assert not any(name in shown for name in NAMES)
    labels = {label: name for name, label in show_labels(words).items()}
    assert minutes.verdict["details"]["labels"]["chair"] == labels
    assert minutes.verdict["notes"]["closest_draft"] == "alpha"


@pytest.mark.behaviour("10-refine-check-reads-text-alone")
@pytest.mark.parametrize(("base", "readers"), [("alpha", ["beta", "gamma"]), ("beta", ["alpha", "gamma"])])
async def test_two_seats_that_did_not_write_the_base_check_the_text_alone(base: str, readers: list[str]) -> None:
    _, member = await run(notes=NOTES | {"closest_draft": base})
    checkers = [call["key"] for call in member.calls if call["key"].startswith("check/")]
    assert sorted(checkers) == [f"check/{name}" for name in readers]
    words = words_for(member, "check/gamma")
    assert (QUESTION in words, TEXT in words, "wrote this first" in words) == (True, True, False)
    assert version_of("alpha") not in words


@pytest.mark.behaviour("10-refine-fix")
async def test_the_author_corrects_what_is_right_and_the_tail_says_so() -> None:
    fixed = TEXT.replace("5,000", "6,000")
    script = {
        "check/beta": {"reply": {"errors": [error(hits="It costs 5,000 euros")]}},
        "check/gamma": {"reply": {"errors": [error("MINOR", hits="Book the train early", flaw="How early?")]}},
        "fix/chair": fix(("5,000", "6,000"), landed=(True, False)),
    }
    minutes, _ = await run(script)
    assert minutes.verdict["answer"] == fixed
    rows = build_report(minutes)["check"]["errors"]
    assert [(row["id"], row["state"]) for row in rows] == [("beta-1", "corrected"), ("gamma-1", "dismissed")]
    tail = build_report(minutes)["tail"]
    assert tail[0] == ("Outcome: built on alpha's answer; checked by beta and gamma: 2 errors found, 1 corrected")
    assert facts(minutes)["error_corrected"]["count"] == 1


@pytest.mark.behaviour("10-refine-second-check")
async def test_a_fatal_error_that_was_right_gets_one_more_check_and_no_third() -> None:
    fixed = TEXT.replace("sea", "hills")
    again = fixed.replace("hills", "lake")
    fatal = error("FATAL", hits="Go to the sea in June")
    script = {
        "check/beta": {"reply": {"errors": [fatal]}},
        "fix/chair": fix(("sea", "hills")),
        "check-again/beta": {"reply": {"errors": [error("FATAL", hits="Go to the hills in June")]}},
        "check-again/gamma": {"reply": {"errors": []}},
        "fix-again/chair": fix(("hills", "lake")),
    }
    minutes, member = await run(script)
    assert phases(member)[-4:] == ["check", "fix", "check-again", "fix-again"]
    assert minutes.verdict["answer"] == again
    assert facts(minutes)["error_corrected"]["count"] == 1
    assert minutes.verdict["shared_by"] is None  # the conclusion is no longer that of the drafts
    assert len(member.calls) <= minutes.plan["calls"]["max"]


@pytest.mark.behaviour("10-refine-settled")
@pytest.mark.parametrize("seats", [NAMES, NAMES[:2]])
async def test_drafts_that_agree_and_survive_their_attacks_are_not_rewritten(seats: tuple[str, ...]) -> None:
    script = {f"attack/{name}/{name}": attack() for name in seats}
    minutes, member = await run(script, seats=seats)
    assert phases(member) == ["draft", "attack"]
    assert minutes.verdict["answer"] == draft_of("alpha")
    assert SETTLED in [note.why for note in minutes.notes]
    assert minutes.verdict["agreement"] == "full"
    assert "checked" in facts(minutes)  # by its attacker
    agree = "both drafts agree, and neither" if len(seats) == 2 else "all 3 drafts agree, and no"
    assert build_report(minutes)["tail"][0].startswith(f"Outcome: alpha's draft — {agree} attack found a severe error")


async def test_a_small_error_of_a_settled_draft_is_corrected_by_its_author() -> None:
    script = {f"attack/{name}/{name}": attack(error("MINOR")) for name in NAMES}
    fixed = draft_of("alpha").replace("4,000", "5,000")
    script["fix/alpha"] = fix(("4,000", "5,000"))
    minutes, member = await run(script)
    assert phases(member) == ["draft", "attack", "fix"]
    assert minutes.verdict["answer"] == fixed
    report = build_report(minutes)
    assert [(row["id"], row["state"]) for row in report["check"]["errors"]] == [("gamma-1", "corrected")]
    assert [row["author"] for row in report["attacks"]] == ["beta", "gamma"]  # each error is told once


async def test_of_settled_drafts_the_one_with_the_fewest_errors_is_the_answer() -> None:
    script = {f"attack/{name}/{name}": attack(error("MINOR")) for name in NAMES} | {"attack/alpha/alpha": attack()}
    minutes, member = await run(script)
    assert phases(member) == ["draft", "attack"]
    assert f"{DRAFT} (" in minutes.verdict["answer"]
    assert draft_of("alpha") != minutes.verdict["answer"]  # no seat attacks its own draft


async def test_one_small_error_without_agreement_is_reason_enough_to_rewrite() -> None:
    script = {f"attack/{name}/{name}": attack(same=name != "alpha") for name in NAMES}
    _, member = await run(script)
    assert "rewrite" in phases(member)


# The chair's text


@pytest.mark.behaviour("10-refine-two-seats")
async def test_two_seats_attack_each_other_and_both_check_the_text() -> None:
    minutes, member = await run(seats=NAMES[:2], notes=NOTES | {"recommendation_shared_by": ["alpha", "beta"]})
    keys = [call["key"] for call in member.calls]
    assert sorted(keys[-3:]) == ["check/alpha", "check/beta", "synthesise/chair"]
    assert len(keys) == 9
    assert minutes.verdict["answer"] == TEXT
    assert build_report(minutes)["tail"][0].startswith("Outcome: built on alpha's answer; checked by")


@pytest.mark.behaviour("10-refine-differences")
async def test_what_others_decided_differently_is_in_the_tail_and_not_in_the_text() -> None:
    sides = [
        {"seat": "alpha", "position": "June", "assumes": "school holidays do not matter"},
        {"seat": "beta", "position": "September", "assumes": ""},
    ]
    minutes, _ = await run(notes=NOTES | {"contested": [{"point": "When to go", "sides": sides}]})
    assert minutes.verdict["answer"] == TEXT
    line = build_report(minutes)["tail"][1]
    assert "When to go" in line
    assert "June (alpha, assuming school holidays do not matter) or September (beta)" in line


@pytest.mark.behaviour("10-refine-unsettled-errors")
@pytest.mark.parametrize(
    ("ruling", "severity", "is_shown"),
    [(True, "MAJOR", False), (False, "MAJOR", True), (False, "FATAL", True), (False, "MINOR", False)],
)
async def test_the_chair_decides_a_severe_error_that_its_author_dismissed(
    ruling: bool, severity: str, is_shown: bool
) -> None:
    script = {f"attack/{name}/{name}": attack(error(severity, flaw="It rains there.")) for name in NAMES}
    script |= {f"rewrite/{name}/{name}": rewrite(name, ruling) for name in NAMES}
    script["attack/alpha/alpha"] = attack(error())  # one severe error, so that the drafts are rewritten
    _, member = await run(script)
    words = words_for(member, "synthesise/chair")
    assert ("It rains there." in words, "The author's reply: Checked." in words) == (is_shown, ruling is False)


async def test_a_draft_that_was_not_rewritten_reaches_the_chair_with_its_errors() -> None:
    _, member = await run({"rewrite/alpha/alpha": {"fail": "server"}})
    words = words_for(member, "synthesise/chair")
    assert (draft_of("alpha") in words, version_of("alpha") in words) == (True, False)
    assert words.count("The train is not counted.") == 1


async def test_without_a_chair_the_run_is_incomplete_and_shows_the_statements() -> None:
    minutes, member = await run({"synthesise/chair": {"fail": "server"}})
    assert (minutes.status, phases(member)[-1]) == ("incomplete", "synthesise")
    assert "No chair: digest of statements" in render_answer(minutes)


async def test_a_chair_without_notes_leaves_agreement_unassessed() -> None:
    minutes, _ = await run(notes=None)
    assert (minutes.status, minutes.verdict["answer"]) == ("complete", TEXT)
    assert "not_assessed" in facts(minutes)
    assert build_report(minutes)["tail"][0].startswith("Outcome: checked by alpha and beta")


# Bad input


@pytest.mark.behaviour("10-refine-author-absent")
async def test_the_next_seat_corrects_the_text_if_the_chair_is_absent() -> None:
    script = {
        "check/beta": {"reply": {"errors": [error(hits="It costs 5,000 euros")]}},
        "fix/chair": {"fail": "server"},
        "fix/alpha": fix(("5,000", "6,000")),
    }
    minutes, member = await run(script)
    assert (minutes.status, minutes.verdict["answer"]) == ("complete", TEXT.replace("5,000", "6,000"))
    assert build_report(minutes)["check"]["author"] == "alpha"
    assert "Another member wrote this text" in words_for(member, "fix/alpha")


async def test_errors_stay_open_and_are_told_if_no_seat_corrects_the_text() -> None:
    script = {"check/beta": {"reply": {"errors": [error("FATAL", hits="It costs 5,000 euros")]}}}
    script |= {f"fix/{name}": {"fail": "server"} for name in (*NAMES, "chair")}
    minutes, _ = await run(script)
    assert minutes.verdict["answer"] == TEXT
    assert build_report(minutes)["trust"]["level"] == "CONTESTED"
    assert "1 still open" in build_report(minutes)["tail"][0]


async def test_a_new_answer_instead_of_errors_is_no_attack_and_the_draft_is_still_rewritten() -> None:
    essay = "I would rather go to the mountains, because the air is better and the train is faster. " * 20
    minutes, member = await run({"attack/alpha/alpha": {"reply": essay}})
    assert minutes.status == "complete"
    assert [row["seat"] for row in build_report(minutes)["degraded"] if row["phase"] == "attack"] == ["alpha"]
    without = [name for name in NAMES if "error-1" not in words_for(member, f"rewrite/{name}/{name}")]
    assert len(without) == 1
    assert essay[:80] not in words_for(member, f"rewrite/{without[0]}/{without[0]}")


async def test_a_counter_proposal_in_a_correction_is_cut() -> None:
    essay = "Go to the mountains. " * 200
    _, member = await run({"attack/alpha/alpha": attack(error(correction=essay))})
    assert all(len(words_for(member, f"rewrite/{name}/{name}")) < len(essay) + 3000 for name in NAMES)


@pytest.mark.behaviour("10-refine-rulings")
async def test_an_author_that_rules_on_nothing_is_asked_once_more_and_then_reported() -> None:
    silent = {"reply": {"rulings": [], "answer": version_of("alpha")}}
    minutes, member = await run({"rewrite/alpha/alpha": silent})
    asked = [call for call in member.calls if call["key"] == "rewrite/alpha/alpha"]
    assert len(asked) == 2
    assert "there is no ruling on error-1" in asked[1]["messages"][-1]["content"]
    assert [row["landed"] for row in build_report(minutes)["attacks"] if row["author"] == "alpha"] == [None]
    assert words_for(member, "synthesise/chair").count("The train is not counted.") == 1  # the chair decides


@pytest.mark.behaviour("10-refine-ignored-ruling")
@pytest.mark.parametrize(
    ("edits", "problem"),
    [
        ([], "error-1 is right, but no edit names it"),
        ([("It costs 7,000 euros", "It costs 6,000 euros")], 'the words "It costs 7,000 euros" are not in the text'),
        ([("e", "a")], "times: copy them exactly, and enough of them"),
        ([("5,000", "5,000")], "are replaced by the same words"),
    ],
)
async def test_an_error_that_is_right_without_a_usable_edit_is_asked_for_once_more_and_stays_open(
    edits: list[tuple[str, str]], problem: str
) -> None:
    script = {"check/beta": {"reply": {"errors": [error(hits="It costs 5,000 euros")]}}, "fix/chair": fix(*edits)}
    minutes, member = await run(script)
    asked = [call for call in member.calls if call["key"] == "fix/chair"]
    assert problem in asked[1]["messages"][-1]["content"]
    assert minutes.verdict["answer"] == TEXT
    assert [row["state"] for row in build_report(minutes)["check"]["errors"]] == ["open"]
    assert "error_open" in facts(minutes)


async def test_fifty_errors_are_cut_to_the_four_most_severe_of_each_reader() -> None:
    many = [error("MINOR", flaw=f"Slip {n}.") for n in range(49)] + [error("FATAL", flaw="Wrong country.")]
    script = {"check/beta": {"reply": {"errors": many}}}
    script["fix/chair"] = fix(landed=(False,) * 4)
    minutes, member = await run(script)
    words = words_for(member, "fix/chair")
    assert words.index("Wrong country.") < words.index("Slip 0.")
    assert len(build_report(minutes)["check"]["errors"]) == 4
    assert facts(minutes)["error_dismissed_fatal"]["seats"] == ["beta"]
    assert build_report(minutes)["trust"]["level"] == "LOW"


async def test_without_a_check_the_answer_says_so() -> None:
    script = {f"check/{name}": {"fail": "server"} for name in NAMES}
    minutes, _ = await run(script)
    assert minutes.verdict["answer"] == TEXT
    assert "not_checked" in facts(minutes)
    assert "No other seat could check the answer below." in minutes.verdict["caveats"]


async def test_one_draft_is_rewritten_by_its_author_and_the_chair_with_low_trust() -> None:
    script = {"draft/beta": {"fail": "server"}, "draft/gamma": {"fail": "server"}}
    script["rewrite/alpha/alpha"] = rewrite("alpha")
    minutes, member = await run(script)
    assert phases(member) == ["draft", "rewrite", "synthesise", "check"]
    assert (minutes.status, minutes.verdict["answer"]) == ("complete", TEXT)
    assert build_report(minutes)["trust"]["level"] == "LOW"
    assert "council-notes" not in words_for(member, "synthesise/chair")


@pytest.mark.parametrize("count", [4, 8])
async def test_four_and_eight_seats_work(count: int) -> None:
    names = ("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta")[:count]
    script = {f"draft/{name}": {"text": draft_of(name)} for name in names}
    script |= {f"attack/{name}/{name}": attack(error()) for name in names}
    script |= {f"rewrite/{name}/{name}": rewrite(name, True) for name in names}
    script |= {f"check/{name}": {"reply": {"errors": []}} for name in names}
    minutes, member = await run(script, seats=names)
    assert minutes.verdict["answer"] == TEXT
    assert sum(call["key"].startswith("check/") for call in member.calls) == 2


# Agreement


@pytest.mark.behaviour("10-refine-agreement")
@pytest.mark.parametrize(
    ("same", "named", "agreement", "shared_by"),
    [
        ((True, True, True), NAMES, "full", ["alpha", "beta", "gamma"]),
        ((False, False, False), ("alpha",), "none", ["alpha"]),
        ((True, False, False), ("alpha", "beta"), "partial", ["alpha", "beta"]),
        (("maybe", "maybe", "maybe"), NAMES, "full", ["alpha", "beta", "gamma"]),
        ((False, True, True), NAMES, "", None),  # the chair counts two whose drafts differ by their own word
        ((True, False, True), ("alpha", "beta"), "partial", ["alpha", "beta"]),
    ],
)
async def test_agreement_is_that_of_the_sealed_drafts(
    same: tuple[Any, ...], named: tuple[str, ...], agreement: str, shared_by: list[str] | None
) -> None:
    pairs = dict(zip(("alpha", "beta", "gamma"), same, strict=True))
    script = {f"attack/{name}/{name}": attack(error(), same=one) for name, one in pairs.items()}
    minutes, _ = await run(script, notes=NOTES | {"recommendation_shared_by": list(named)})
    assert (minutes.verdict["agreement"], minutes.verdict["shared_by"]) == (agreement, shared_by)
